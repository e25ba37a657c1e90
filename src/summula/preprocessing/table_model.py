"""A model of a whole table: encoder, model and the name of the target in one estimator, and in one file.

    prediction = model(encoder(row)),    for numbers held within the range of the training target                (1)

With costs, the predicted class is the one whose expected cost under the model's probabilities p is smallest:

    argmin over k of sum over j of p_j C[j, k]                                                                   (2)

With a threshold t, for two classes, it is the second where p_2 >= t, and the first elsewhere.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from summula.core.data.frames import is_frame, no_such_column, pop_columns
from summula.core.data.scan import Scan
from summula.core.errors import DataError, ParameterError
from summula.core.estimator.estimator import Estimator
from summula.core.estimator.rows import ProbabilityWriter
from summula.core.model_files import schema
from summula.preprocessing.table_encoder import TableEncoder

__all__ = ["TableModel"]

Array = NDArray[Any]


def _column(X: Any, name: str) -> Array:
    """A column of a frame or of files."""
    if isinstance(X, Scan):
        if name not in X.kinds:
            raise DataError(no_such_column(name, X.columns))
        return np.concatenate([np.asarray(batch[0]) for batch in X.read(0, X.n_rows, [name])])
    if not is_frame(X):
        raise DataError(f"X is no frame with a column {name!r}: give a frame, or the target as y.")
    return np.asarray(pop_columns(X, [name])[1][0].to_numpy())


def _has_probabilities(self: Any) -> bool:
    return hasattr(self.model, "predict_proba")


def _parts_agree(table: Any, sizes: schema.Sizes) -> str | None:
    """Rule of saved models: the model takes the columns the encoder makes, and costs are those of its classes."""
    if not table.__sklearn_is_fitted__():
        return None
    width, model = len(table.encoder.get_feature_names_out()), table.model
    if model.n_features_in_ != width:
        return f"model takes {model.n_features_in_} columns and encoder makes {width}"
    if getattr(model, "factor_levels_", None) or getattr(model, "category_levels_", None):
        return "model has columns of text, and encoder makes numbers"
    classes = len(model.classes_) if hasattr(model, "classes_") else 0
    if table.low is not None and classes:
        return "low is about numbers, and model predicts classes"
    if table.costs is not None:
        if not hasattr(model, "predict_proba"):
            return "costs need probabilities, which model does not give"
        if np.shape(table.costs) != (classes, classes):
            return f"costs are not a table of {classes} x {classes}"
    if table.threshold is not None and (classes != 2 or not hasattr(model, "predict_proba")):
        return "threshold is for the probabilities of two classes"
    return None


_COSTS = schema.Items(schema.Items(schema.Real())) | schema.Array("float64", "n_true", "n_taken")


@schema.saved(
    _parts_agree,
    encoder=schema.Object(TableEncoder),
    model=schema.Object(Estimator),
    target=schema.Text(),
    low=schema.Real() | None,
    high=schema.Real() | None,
    costs=_COSTS | None,
    metric=schema.Text(),
    threshold=schema.Real(0.0, 1.0) | None,
    training_hashes_=schema.Maybe(schema.Array("uint64", "n_training_rows")),
)
class TableModel(ProbabilityWriter, BaseEstimator):
    """An encoder, a model of the encoded rows, and what the target is called.

    Parameters
    ----------
    encoder : TableEncoder
    model : estimator
    target : str
        The column to predict.
    low, high : float, optional
        Predicted numbers are held within these.
    costs : list of list of float, optional
        What it costs to take a true class (row) for another (column), in the order of `classes_`; see (2).
    metric : str, default=""
        What the model was chosen by, for whoever certifies it.
    threshold : float, optional
        The probability of the second of two classes from which on it is predicted; 0.5 when None.

    Attributes
    ----------
    classes_ : ndarray
        Of classifiers.
    feature_names_in_ : ndarray of str
        The columns that are used.

    Examples
    --------
    >>> import summula
    >>> from summula.linear_model import LogisticRegression
    >>> from summula.preprocessing import TableEncoder, TableModel
    >>> penguins = summula.datasets.load("penguins")
    >>> model = TableModel(TableEncoder(standardize=True), LogisticRegression(), "species").fit(penguins)
    >>> model.predict(penguins.slice(0, 2)).tolist()
    ['Adelie', 'Adelie']
    """

    def __init__(
        self,
        encoder: Any,
        model: Any,
        target: str,
        *,
        low: float | None = None,
        high: float | None = None,
        costs: Any = None,
        metric: str = "",
        threshold: float | None = None,
    ) -> None:
        self.encoder = encoder
        self.model = model
        self.target = target
        self.low = low
        self.high = high
        self.costs = costs
        self.metric = metric
        self.threshold = threshold

    def fit(self, X: Any, y: Any = None) -> TableModel:
        """Fit encoder and model.

        Parameters
        ----------
        X : frame
        y : array-like, optional
            The column `target` of X when None.

        Returns
        -------
        self
        """
        if y is None:
            y = _column(X, self.target)
            X = pop_columns(X, [self.target])[0]
        encoder = clone(self.encoder).fit(X)
        self.model = clone(self.model).fit(encoder.transform(X), y)
        self.encoder = encoder
        return self

    @property
    def classes_(self) -> Any:
        """The classes of a classifier."""
        return self.model.classes_

    @property
    def feature_names_in_(self) -> Array:
        """The columns that are used."""
        return np.array([column.name for column in self.encoder.columns_ if column.kind != "dropped"], dtype=object)

    @property
    def _not_features(self) -> tuple[str, ...]:
        return (self.target,)

    def predict(self, X: Any) -> Any:
        """Predict the target.

        Parameters
        ----------
        X : {frame, scan}
            With the columns of the training data, in any order; the target may be among them.

        Returns
        -------
        ndarray of shape (n_samples,), or an iterator of such blocks for a scan
        """
        check_is_fitted(self)
        return self.encoder.then(X, self._predicted)

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Any:
        """The probability of each class, in the order of `classes_`.

        Parameters
        ----------
        X : {frame, scan}

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or an iterator of such blocks for a scan
        """
        check_is_fitted(self)
        return self.encoder.then(X, self.model.predict_proba)

    def score(self, X: Any, y: Any = None) -> float:
        """The accuracy of classes, or R2 of numbers.

        Parameters
        ----------
        X : {frame, scan}
        y : array-like, optional
            The true values; the column `target` of X when None.

        Returns
        -------
        float
        """
        from sklearn.metrics import accuracy_score, r2_score

        if y is None:
            y = _column(X, self.target)
        predicted = self.predict(X)
        predicted = predicted if isinstance(predicted, np.ndarray) else np.concatenate(list(predicted))
        return float((accuracy_score if is_classifier(self.model) else r2_score)(y, predicted))

    def _output_names(self) -> tuple[str, ...]:
        return (self.target,)

    def _class_names(self) -> tuple[str, ...]:
        return tuple(f"{self.target}[{label}]" for label in np.asarray(self.classes_).tolist())

    def predict_to(self, X: Any, path: str | os.PathLike[str], *, proba: bool = False, raw_text: bool = False) -> int:
        """Predict and write the results to a Parquet or CSV file, batch by batch; the file appears whole or not at all.

        Parameters
        ----------
        X : {frame, scan}
        path : path
            Ends in .parquet or .csv. The column is called after the target; with `proba` there is one per class,
            "target[class]".
        proba : bool, default=False
            Whether to write probabilities instead of labels.
        raw_text : bool, default=False
            Whether to write text to CSV unchanged, also where a spreadsheet would take it for a formula.

        Returns
        -------
        int
            Rows written.
        """
        if proba and not hasattr(self, "predict_proba"):
            raise ParameterError(f"Probabilities are for classes, and {self.target!r} holds numbers: use proba=False.")
        return super().predict_to(X, path, proba=proba, raw_text=raw_text)

    def _predicted(self, rows: Array) -> Array:
        if self.costs is not None:
            expected = self.model.predict_proba(rows) @ np.asarray(self.costs, np.float64)
            return np.asarray(np.asarray(self.classes_)[expected.argmin(axis=1)])
        if self.threshold is not None:
            second = self.model.predict_proba(rows)[:, 1] >= self.threshold
            return np.asarray(np.asarray(self.classes_)[second.astype(np.intp)])
        predicted = np.asarray(self.model.predict(rows))
        return predicted if self.low is None else np.clip(predicted, self.low, self.high)

    def __sklearn_is_fitted__(self) -> bool:
        try:
            check_is_fitted(self.model)
        except ValueError:
            return False
        return isinstance(self.encoder, TableEncoder) and self.encoder.__sklearn_is_fitted__()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.model)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.input_tags.string = tags.input_tags.categorical = tags.input_tags.allow_nan = True
        return tags
