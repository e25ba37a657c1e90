"""Classifiers of several targets at once.

Labels of every target are encoded by its own classes. Scores are class proportions, concatenated over the targets, so
that the engine processes a single array of rows; public methods split it by target.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.frames import is_frame, opened
from summula.core.data.labels import Labels
from summula.core.data.numbers import array_of, column_values
from summula.core.data.scan import Scan
from summula.core.data.sources import Source
from summula.core.docstrings import inherit_docs
from summula.core.errors import DataError, ParameterError
from summula.core.estimator.classifier import ShareClassifier, row_weights
from summula.core.estimator.input.transformed_scan import TransformedScan
from summula.core.estimator.input.validation import check_fitted, collection_reader
from summula.core.estimator.rows import ROWS, ProbabilityWriter

__all__ = ["MultiOutputClassifier", "row_weights_of_outputs"]

Array = NDArray[Any]


class MultiOutputClassifier(ShareClassifier):
    """Base class of classifiers whose scores are class proportions, for one or several targets.

    With several targets `classes_` is a list of arrays, and so are probabilities.
    """

    def _source(
        self, X: Any, y: Any, sample_weight: Any, *, needs_y: bool = True, reset: bool = False, **options: Any
    ) -> Source:
        """Return the data as a source; labels of several targets are encoded here."""
        columns = _label_columns(X, y, type(self).__name__)
        if columns is None or len(columns) == 1:
            y = y if columns is None else columns[0]
            return super()._source(X, y, sample_weight, needs_y=needs_y, reset=reset, **options)
        known = [None] * len(columns) if reset else self._classes_of_outputs
        if len(known) != len(columns):
            raise DataError(f"y has {len(columns)} targets, and {type(self).__name__} was fitted to {len(known)}.")
        labels = [
            Labels(type(self).__name__, classes, options.get("unknown"), fewest=self._fewest_classes)
            for classes in known
        ]
        codes = [of_target.codes(column) for of_target, column in zip(labels, columns, strict=True)]
        y = np.column_stack(codes).astype(np.float64)
        source = super()._source(X, y, sample_weight, needs_y=needs_y, reset=reset, encoded=True, **options)
        if reset:
            self.classes_ = [of_target.classes for of_target in labels]
        return source

    @property
    def _classes_of_outputs(self) -> list[Array]:
        """Classes of every target."""
        return self.classes_ if isinstance(self.classes_, list) else [self.classes_]

    @property
    def n_classes_(self) -> Any:
        """Number of classes; a list for several targets."""
        check_fitted(self)
        sizes = [len(classes) for classes in self._classes_of_outputs]
        return sizes if isinstance(self.classes_, list) else sizes[0]

    @inherit_docs(ROWS)
    def predict(self, X: Any) -> Any:
        """Predict the class with the largest proportion; ties go to the first class.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs) of labels; batches for a scan, a Dask array for a Dask
        collection
        """
        check_fitted(self)
        if not isinstance(self.classes_, list):
            return super().predict(X)
        return self._by_row(X, self._score_function(), functools.partial(_labels_of_outputs, self.classes_))

    @inherit_docs(ROWS)
    def predict_proba(self, X: Any) -> Any:
        """Predict the probability of each class.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), columns in the order of `classes_`, or a list of such arrays, one per
        target; batches for a scan
        """
        return self._split_outputs(super().predict_proba(X))

    @inherit_docs(predict_proba)
    def predict_log_proba(self, X: Any) -> Any:
        """Predict the logarithm of the probability of each class."""
        return self._split_outputs(super().predict_log_proba(X))

    def _split_outputs(self, values: Any) -> Any:
        """Split rows of scores by target."""
        if not isinstance(self.classes_, list):
            return values
        ends = np.cumsum([len(classes) for classes in self.classes_])[:-1]
        if isinstance(values, np.ndarray):
            return np.split(values, ends, axis=1)
        return (np.split(batch, ends, axis=1) for batch in values)

    def _output_names(self) -> tuple[str, ...]:
        if not isinstance(self.classes_, list):
            return super()._output_names()
        return tuple(f"prediction{t}" for t in range(len(self.classes_)))

    @inherit_docs(ProbabilityWriter.predict_to)
    def predict_to(self, X: Any, path: Any, *, proba: bool = False, raw_text: bool = False) -> int:
        """Predict and write the results to a Parquet or CSV file, batch by batch; one column per target.

        Parameters
        ----------
        proba : bool, default=False
            Whether to write probabilities instead of labels, of one target.
        """
        if proba and isinstance(self.classes_, list):
            raise ParameterError(
                "predict_to writes probabilities of one target, and there are several: write those of "
                "predict_proba yourself, or leave out proba."
            )
        return super().predict_to(X, path, proba=proba, raw_text=raw_text)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags


def _label_columns(X: Any, y: Any, name: str) -> list[Array] | None:
    """Return the labels of each target; None for a vector of labels, or the name of a column."""
    if isinstance(X, Scan | TransformedScan) or collection_reader(X) is not None:
        if (isinstance(y, list | tuple) and len(y) > 1) or getattr(y, "ndim", 1) == 2:
            raise DataError(f"{name} takes several targets of rows in memory only: pass arrays, or one target.")
        return None
    if y is None or isinstance(y, str):
        return None
    if hasattr(y, "indptr"):
        raise DataError("sparse multilabel-indicator for y is not supported: pass a dense array, y.toarray().")
    if is_frame(y) and getattr(y, "ndim", 2) == 2:
        frame = opened(y)
        return [np.asarray(column_values(frame[c])) for c in frame.columns]
    if isinstance(y, list | tuple) and y and all(isinstance(label, str) for label in y):
        if is_frame(X) and len(y) != len(opened(X)) and len(y) > 1:
            raise DataError(f"y names {len(y)} columns: pass their values, y=X[{list(y)!r}], and drop them from X.")
        return None
    values = array_of(y, "The target y") if isinstance(y, np.ndarray | list | tuple) else y
    if getattr(values, "ndim", 1) != 2 or values.shape[1] == 0:
        return None
    return list(np.asarray(values).T)


def _labels_of_outputs(classes: Sequence[Array], scores: Array) -> Array:
    ends = np.cumsum([len(of_target) for of_target in classes])[:-1]
    shares = np.split(scores, ends, axis=1)
    return np.column_stack([c[s.argmax(axis=1)] for c, s in zip(classes, shares, strict=True)])


def row_weights_of_outputs(
    class_weight: Any, classes: Sequence[Array], codes: Array, weight: Array | None
) -> Array | None:
    """Return the weights of rows multiplied by those of their classes, of every target.

    Parameters
    ----------
    class_weight : None, "balanced", or (of several targets) a list of dicts
    classes : sequence of arrays
    codes : ndarray of shape (n_outputs, n)
    weight : ndarray of shape (n,), optional
    """
    if len(classes) == 1 or class_weight is None or isinstance(class_weight, str):
        each = [class_weight] * len(classes)
    elif not isinstance(class_weight, list | tuple):
        raise ParameterError(
            "For multi-output, class_weight should be a list of dicts, or the string 'balanced': give one dict per "
            f"target, {len(classes)} in all."
        )
    else:
        each = list(class_weight)
    if len(each) != len(classes):
        raise ParameterError(
            "For multi-output, number of elements in class_weight should match number of outputs: there are "
            f"{len(each)} for {len(classes)} targets."
        )
    for one, of_target, here in zip(each, classes, codes, strict=True):
        weight = row_weights(one, of_target, here.astype(np.intp), weight)
    return weight
