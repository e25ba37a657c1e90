"""Classes told apart by linear scores: what all linear classifiers do once they are fitted.

    s(x) = V x + b     one score for two classes, one a class for more                                          (1)
    class of x         the second of two where s > 0, else that of the largest score; of equal ones the first   (2)
    P(class k | x)     sigmoid(s) for the second of two, softmax(s)_k for more                                  (3)

A model that tells classes by something else than (1) says so in `_score_function`, and in what it makes of that.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.utils.validation import check_is_fitted

from summula.core.data.chunks import Chunk
from summula.core.errors import ParameterError
from summula.core.estimator.scoring import AccuracyScore, RowFunction
from summula.linear_model.linear_predictor import LinearScores

__all__ = ["LinearClassifier", "ProbabilityClassifier", "weights_of_labels"]

Array = NDArray[Any]


class LinearClassifier(AccuracyScore, LinearScores):
    """Classes by `coef_` and `intercept_`."""

    _labelled = True

    def decision_function(self, X: Any) -> Any:
        """The linear scores: positive for the second of two classes, or one score a class.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes); batches for a scan
        """
        return self._scores(X, self._decided)

    def predict(self, X: Any) -> Any:
        """The class with the largest score; of several with exactly this score the first.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) of labels; batches for a scan
        """
        check_is_fitted(self)
        classes, winners = self.classes_, self._winners
        return self._scores(X, lambda s: classes[winners(s)])

    def _row_function(self) -> RowFunction:
        return functools.partial(_codes, self._score_function(), self._winners)

    @staticmethod
    def _decided(scores: Array) -> Array:
        """Scores as scikit-learn shapes them."""
        return scores[:, 0] if scores.shape[1] == 1 else scores

    @staticmethod
    def _winners(scores: Array) -> Array:
        """The place of the class (2) of every row."""
        return (scores[:, 0] > 0).astype(np.intp) if scores.shape[1] == 1 else scores.argmax(axis=1)


class ProbabilityClassifier(LinearClassifier):
    """Classes, and their probabilities, by `coef_` and `intercept_`."""

    def predict_proba(self, X: Any) -> Any:
        """The probability of each class.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes), columns in the order of `classes_`; batches for a scan
        """
        return self._scores(X, self._probabilities)

    def predict_log_proba(self, X: Any) -> Any:
        """The logarithm of the probability of each class, exact also where the probability is nearly 0.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes); batches for a scan
        """
        return self._scores(X, self._log_probabilities)

    def predict_to(self, X: Any, path: str | os.PathLike[str], *, proba: bool = False, raw_text: bool = False) -> int:
        """Predict and write the results to a Parquet or CSV file, batch by batch; the file appears whole or not at all.

        Parameters
        ----------
        X : scan, or anything `predict` takes
        path : path
            Ends in .parquet or .csv. The column is called "prediction"; with `proba` there is one a class.
        proba : bool
            Whether to write probabilities instead of labels.
        raw_text : bool, default=False
            Whether to write text to CSV unchanged. By default text that a spreadsheet would take for a formula (it
            begins with =, +, -, @, a tab or a line break, and is no number) gets an apostrophe before it.

        Returns
        -------
        int
            Rows written.
        """
        if proba:
            return self._write(self.predict_proba(X), tuple(str(label) for label in self.classes_), path, raw_text)
        return super().predict_to(X, path, raw_text=raw_text)

    @staticmethod
    def _probabilities(scores: Array) -> Array:
        """Equation (3)."""
        if scores.shape[1] == 1:
            p = special.expit(scores[:, 0])
            return np.column_stack([1 - p, p])
        return np.asarray(special.softmax(scores, axis=1))

    @staticmethod
    def _log_probabilities(scores: Array) -> Array:
        if scores.shape[1] == 1:
            return np.column_stack([special.log_expit(-scores[:, 0]), special.log_expit(scores[:, 0])])
        return np.asarray(special.log_softmax(scores, axis=1))


def _codes(scores: RowFunction, winners: Callable[[Array], Array], chunk: Chunk) -> Array:
    """The place of the class of every row of a chunk."""
    return winners(scores(chunk))


def weights_of_labels(class_weight: Mapping[Any, float], classes: Array, *, all_known: bool = True) -> Array:
    """The weight of each class, 1 where none is given; `all_known` refuses any label that is no class.

    (Otherwise only weights without a single known label are refused: some rows may still be to come.)
    """
    known = classes.tolist()
    unknown = [label for label in class_weight if label not in known]
    if unknown and (all_known or len(unknown) == len(class_weight)):
        raise ParameterError(
            f"The classes, {unknown}, are not in class_weight's data: class_weight names labels that y does not "
            f"have; its labels are {known}."
        )
    return np.array([float(class_weight.get(label, 1.0)) for label in known])
