"""A model of a whole table: encoder, model and target name in one estimator.

    prediction = model(encoder(row)),    for numbers clipped to the range of the training target, or a narrower one (1)

With costs, the predicted class minimises the expected cost under the model's probabilities p:

    argmin over k of sum over j of C[k, j] p_j                                                                   (2)

With a threshold t, for two classes, the second class is predicted if p_2 >= t.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from summula.core.data.frames import is_frame, no_such_column, pop_columns
from summula.core.data.output import column_of, write_tables
from summula.core.data.scan import Scan
from summula.core.errors import DataError, ParameterError
from summula.core.estimator.estimator import Estimator
from summula.core.estimator.rows import ProbabilityWriter
from summula.core.model_files import schema
from summula.preprocessing.kept_columns import kept_columns
from summula.preprocessing.paired_encoder import PairedEncoder
from summula.preprocessing.table_drift import Drift
from summula.preprocessing.table_encoder import TableEncoder
from summula.preprocessing.table_encoder_blocks import observed, table_blocks

__all__ = ["TableModel"]

Array = NDArray[Any]


def _column(X: Any, name: str) -> Array:
    """Return a column of a frame or of files."""
    if isinstance(X, Scan):
        if name not in X.kinds:
            raise DataError(no_such_column(name, X.columns))
        return np.concatenate([np.asarray(batch[0]) for batch in X.read(0, X.n_rows, [name])])
    if not is_frame(X):
        raise DataError(f"X is not a frame with a column {name!r}: pass a frame, or the target as y.")
    return np.asarray(pop_columns(X, [name])[1][0].to_numpy())


def _has_probabilities(self: Any) -> bool:
    return hasattr(self.model, "predict_proba")


def _parts_agree(table: Any, sizes: schema.Sizes) -> str | None:
    """Check a saved model: the model matches the columns of the encoder, and costs match its classes."""
    if not table.__sklearn_is_fitted__():
        return None
    width, model = table.encoder.n_columns_out, table.model
    if model.n_features_in_ != width:
        return f"model has {model.n_features_in_} features but encoder returns {width} columns"
    if getattr(model, "factor_levels_", None) or getattr(model, "category_levels_", None):
        return "model has text columns, but encoder returns numbers"
    classes = len(model.classes_) if hasattr(model, "classes_") else 0
    if table.low is not None and classes:
        return "low is for regression, but model is a classifier"
    if table.costs is not None:
        if not hasattr(model, "predict_proba"):
            return "costs need probabilities, but model has no predict_proba"
        if np.shape(table.costs) != (classes, classes):
            return f"costs must have shape ({classes}, {classes})"
    if table.threshold is not None and (classes != 2 or not hasattr(model, "predict_proba")):
        return "threshold needs a binary classifier with probabilities"
    return None


_COSTS = schema.Items(schema.Items(schema.Real())) | schema.Array("float64", "n_taken", "n_true")


@schema.saved(
    _parts_agree,
    encoder=schema.Object(TableEncoder, PairedEncoder),
    model=schema.Object(Estimator),
    target=schema.Text(),
    low=schema.Real() | None,
    high=schema.Real() | None,
    costs=_COSTS | None,
    metric=schema.Text(),
    threshold=schema.Real(0.0, 1.0) | None,
    clip_low=schema.Real() | None,
    clip_high=schema.Real() | None,
    training_hashes_=schema.Maybe(schema.Array("uint64", "n_training_rows")),
)
class TableModel(ProbabilityWriter, BaseEstimator):
    """An encoder, a model of the encoded rows, and the name of the target.

    Parameters
    ----------
    encoder : TableEncoder or PairedEncoder
        Encoder of the columns.
    model : estimator
        Classifier or regressor of the encoded rows.
    target : str
        Name of the column to predict.
    low, high : float, optional
        Range of the training target, to which predicted numbers are clipped.
    costs : list of list of float, optional
        C[k][j] of (2), costs[predicted class, true class] in the order of `classes_`, as in `summula.train` and
        `summula.certify`. (Files contain the transpose, as in the first version of the format.)
    metric : str, default=""
        Metric by which the model was selected.
    threshold : float, optional
        For two classes, the probability from which the second is predicted; by default 0.5.
    clip_low, clip_high : float, optional
        A narrower range to which predicted numbers are clipped.

    Attributes
    ----------
    classes_ : ndarray
        Class labels, for classifiers.
    feature_names_in_ : ndarray of str
        Names of the columns used.

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

    # Only set if given, so that hashes of models that were certified without them remain valid.
    clip_low: float | None = None
    clip_high: float | None = None

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
        clip_low: float | None = None,
        clip_high: float | None = None,
    ) -> None:
        self.encoder = encoder
        self.model = model
        self.target = target
        self.low = low
        self.high = high
        self.costs = costs
        self.metric = metric
        self.threshold = threshold
        if clip_low is not None:
            self.clip_low = clip_low
        if clip_high is not None:
            self.clip_high = clip_high

    def fit(self, X: Any, y: Any = None) -> TableModel:
        """Fit encoder and model.

        Parameters
        ----------
        X : frame
        y : array-like, optional
            Target; by default the column `target` of X.

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

    @staticmethod
    def _file_params(params: dict[str, Any]) -> dict[str, Any]:
        """Convert the parameters to or from their form in files, where costs are transposed."""
        costs = params.get("costs")
        if not isinstance(costs, np.ndarray | list | tuple):
            return params
        turned = costs.T if isinstance(costs, np.ndarray) else [list(row) for row in zip(*costs, strict=True)]
        return {**params, "costs": turned}

    @property
    def classes_(self) -> Any:
        """Classes of a classifier."""
        return self.model.classes_

    @property
    def feature_names_in_(self) -> Array:
        """Names of the columns used."""
        return np.array([column.name for column in self.encoder.columns_ if column.kind != "dropped"], dtype=object)

    @property
    def _not_features(self) -> tuple[str, ...]:
        return (self.target,)

    def predict(self, X: Any) -> Any:
        """Predict the target.

        Parameters
        ----------
        X : {frame, scan}
            Table with the columns of the training data, in any order; it may contain the target.

        Returns
        -------
        ndarray of shape (n_samples,), or an iterator of such blocks for a scan
        """
        check_is_fitted(self)
        return self.encoder.then(X, self._predicted)

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Any:
        """Predict the probability of each class, in the order of `classes_`.

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
        """Return the accuracy of a classifier, or R2 of a regressor.

        Parameters
        ----------
        X : {frame, scan}
        y : array-like, optional
            True values; by default the column `target` of X.

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

    def predict_to(
        self,
        X: Any,
        path: str | os.PathLike[str],
        *,
        proba: bool = False,
        keep: Sequence[str] = (),
        raw_text: bool = False,
        drift: Drift | None = None,
    ) -> int:
        """Predict and write the results to a Parquet or CSV file, batch by batch; the file is written atomically.

        Parameters
        ----------
        X : {frame, scan}
        path : path
            Output file, ending in .parquet or .csv. The column is named after the target, or "predicted target" if
            `keep` contains the target itself.
        proba : bool, default=False
            Whether to write the probability of each class as well, in columns "target[class]".
        keep : list of str
            Columns of X to be written unchanged before the predictions.
        raw_text : bool, default=False
            Whether to write text to CSV unchanged, even if a spreadsheet would interpret it as a formula.
        drift : Drift, optional
            Counts how the rows differ from the training rows.

        Returns
        -------
        int
            Number of rows written.
        """
        check_is_fitted(self)
        if proba and not hasattr(self, "predict_proba"):
            raise ParameterError(f"Probabilities need classes, but {self.target!r} is numeric: use proba=False.")
        keep = [keep] if isinstance(keep, str) else list(keep)
        names = self._written_names(proba, keep)
        tables = self._prediction_tables(X, names, kept_columns(X, keep, names), drift)
        return write_tables(tables, path, raw_text=raw_text)

    def _written_names(self, proba: bool, keep: Sequence[str] = ()) -> list[str]:
        name = f"predicted {self.target}" if self.target in keep else self.target
        return [name, *(self._class_names() if proba else ())]

    def _prediction_tables(self, X: Any, names: list[str], kept: Any, drift: Drift | None) -> Iterator[Any]:
        """Yield the predictions of every block of rows as an Arrow table, with the columns of `keep`."""
        import pyarrow as pa

        blocks = table_blocks(*self.encoder._checked(X, fitting=False), as_stored=True)
        blocks = blocks if drift is None else observed(blocks, drift.observe)
        proba = len(names) > 1

        def work(rows: Array) -> Any:
            chances = self.model.predict_proba(rows) if proba else None
            predicted = self._predicted(rows, chances)
            return [predicted, *([] if chances is None else chances.T)]

        with closing(self.encoder.encoded(blocks, work)) as batches:
            for columns in batches:
                beside = kept.take(len(columns[0]))
                found = {name: column_of(np.asarray(column)) for name, column in zip(names, columns, strict=True)}
                yield pa.table({**beside, **found})

    def _predicted(self, rows: Array, chances: Array | None = None) -> Array:
        """Return predictions for encoded rows; `chances` are their probabilities, if known."""
        if self.costs is not None:
            chances = self.model.predict_proba(rows) if chances is None else chances
            expected = chances @ np.ascontiguousarray(np.transpose(np.asarray(self.costs, np.float64)))
            return np.asarray(np.asarray(self.classes_)[expected.argmin(axis=1)])
        if self.threshold is not None:
            chances = self.model.predict_proba(rows) if chances is None else chances
            return np.asarray(np.asarray(self.classes_)[(chances[:, 1] >= self.threshold).astype(np.intp)])
        if chances is not None:
            return np.asarray(np.asarray(self.classes_)[chances.argmax(axis=1)])
        predicted = np.asarray(self.model.predict(rows))
        return self.clipped(predicted)

    def clipped(self, predicted: Array) -> Array:
        """Return predicted numbers clipped to `prediction_range`; classes unchanged."""
        return predicted if self.prediction_range is None else np.clip(predicted, *self.prediction_range)

    @property
    def prediction_range(self) -> tuple[float, float] | None:
        """Return the smallest and largest number that can be predicted; None if predictions are not clipped."""
        if self.low is None or self.high is None:
            return None
        low = self.low if self.clip_low is None else max(self.low, self.clip_low)
        high = self.high if self.clip_high is None else min(self.high, self.clip_high)
        return low, high

    def __sklearn_is_fitted__(self) -> bool:
        try:
            check_is_fitted(self.model)
        except ValueError:
            return False
        return isinstance(self.encoder, TableEncoder | PairedEncoder) and self.encoder.__sklearn_is_fitted__()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.model)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.input_tags.string = tags.input_tags.categorical = tags.input_tags.allow_nan = True
        return tags
