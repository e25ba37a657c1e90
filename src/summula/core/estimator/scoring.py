"""Scores as sums over rows, so that files and collections are scored without loading them into memory.

With weights w, targets y and predictions f, about an origin o near the mean of y,

    R2        = 1 - sum w (y - f)^2 / (sum w (y - o)^2 - (sum w (y - o))^2 / sum w),   mean over targets        (1)
    accuracy  = sum w [y = f] / sum w                                                                           (2)

Data in memory are scored by scikit-learn's own metrics, so the scores of arrays are identical to scikit-learn's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils.validation import check_is_fitted

from summula.core.data.chunks import Chunk
from summula.core.data.frames import is_frame, pop_columns
from summula.core.data.labels import distinct
from summula.core.data.numbers import array_of
from summula.core.data.scan import Scan
from summula.core.errors import DataError, RowError, warn
from summula.core.estimator.input.finiteness import has_bad_values
from summula.core.estimator.input.transformed_scan import TransformedScan
from summula.core.estimator.input.validation import are_few_integers, as_targets, as_weights, collection_reader
from summula.core.estimator.run import Run
from summula.core.numerics.sums import Sum

__all__ = ["Hits", "SquaredErrors", "accuracy", "r2", "values_in_memory"]

Array = NDArray[Any]
_LONGEST = 200  # characters of an error of scikit-learn that is passed on
RowFunction = Callable[[Chunk], Array]


@dataclass(frozen=True)
class SquaredErrors(Sum):
    """The sums in (1), one value per target; `params` is the prediction function and the origin of the targets."""

    count: int
    weight: float
    total: Array
    square: Array
    residual: Array

    @classmethod
    def map(cls, chunk: Chunk, params: tuple[RowFunction, Array]) -> Self:
        """The sums of one chunk."""
        predict, origin = params
        assert chunk.y is not None
        y = chunk.y.astype(np.float64)
        w = chunk.weights
        with np.errstate(invalid="ignore", over="ignore"):
            error = y - np.asarray(predict(chunk), np.float64).reshape(y.shape)
            about = y - origin
            return cls(len(y), float(w.sum()), w @ about, w @ about**2, w @ error**2)

    @property
    def r2(self) -> float:
        """Equation (1); as in scikit-learn, a constant target scores 1 if it is predicted exactly and 0 otherwise."""
        spread = self.square - self.total**2 / self.weight
        # A spread due to rounding alone means that the target is constant.
        constant = spread <= 1e-15 * self.square
        share = 1 - self.residual / np.where(constant, 1.0, spread)
        return float(np.where(constant, np.where(self.residual > 0, 0.0, 1.0), share).mean())


@dataclass(frozen=True)
class Hits(Sum):
    """The sums in (2); `params` is the score function and the function from scores to class codes.

    `hits` is NaN if scores and rows contain non-finite values.
    """

    hits: float
    weight: float

    @classmethod
    def map(cls, chunk: Chunk, params: tuple[RowFunction, Callable[[Array], Array]]) -> Self:
        """The sums of one chunk."""
        scores = params[0](chunk)
        w = chunk.weights
        if not np.isfinite(scores).all() and has_bad_values(chunk):
            return cls(np.nan, float(w.sum()))
        return cls(float(w @ (params[1](scores) == chunk.codes)), float(w.sum()))


def _in_memory(X: Any) -> bool:
    return not isinstance(X, Scan | TransformedScan) and collection_reader(X) is None


def values_in_memory(X: Any, y: Any, sample_weight: Any, scoring: Any) -> tuple[Any, Any, Any]:
    """Return X, y and sample_weight as scikit-learn's scorers expect them, with named columns separated from X."""
    if not _in_memory(X):
        raise DataError(
            f"scoring={scoring!r} needs all rows in memory, but X is in files or a collection: score a subset of the "
            "rows, or use accuracy (scoring=None), which is computed batch by batch."
        )
    return _values(X, y, sample_weight)


def _values(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Return a frame without the columns named as target or weight, and the values of these columns."""
    several = isinstance(y, list | tuple) and bool(y) and all(isinstance(name, str) for name in y)
    targets = [y] if isinstance(y, str) else list(y) if several and is_frame(X) and len(y) != len(X) else []
    weights = [sample_weight] if isinstance(sample_weight, str) else []
    if not is_frame(X) or not targets + weights:
        return X, y, sample_weight
    X, columns = pop_columns(X, targets + weights)
    values = [column.to_numpy() for column in columns]
    if weights:
        sample_weight = values.pop()
    if targets:
        y = values[0] if isinstance(y, str) else np.column_stack(values)
    return X, y, sample_weight


def r2(model: Any, X: Any, y: Any, sample_weight: Any) -> float:
    """Return R2 of a regressor, by scikit-learn's metric or from sums over files and collections."""
    if _in_memory(X):
        X, y, sample_weight = _values(X, y, sample_weight)
        return _r2_in_memory(y, model.predict(X), sample_weight, type(model).__name__)
    with _scored(model, X, y, sample_weight) as run:
        params = (model._row_function(), run.origin()[run.source.n_features :])
        sums = run.sum(SquaredErrors, params, "score")
    if sums.count < 2:
        warn("R^2 score is not well-defined with less than two samples.", UndefinedMetricWarning)
        return float("nan")
    return float(sums.r2)


def _r2_in_memory(y: Any, predicted: Array, sample_weight: Any, name: str) -> float:
    """Return scikit-learn's R2; for one target of plain numbers its operations without its checks, to the same bits.

    Whatever the checks would find (NaN, different lengths, a constant target) is left to them.
    """
    plain = _are_plain(y, predicted, "f") and y.dtype == predicted.dtype == np.float64
    if plain and sample_weight is None and len(y) > 1:
        y_true, y_pred = y.reshape(-1, 1), predicted.reshape(-1, 1)
        with np.errstate(invalid="ignore", over="ignore"):
            residual = ((y_true - y_pred) ** 2).sum(axis=0)[0]
            spread = ((y_true - y_true.mean(axis=0)) ** 2).sum(axis=0)[0]
        if np.isfinite(residual) and np.isfinite(spread) and spread > 0:
            return float(1 - residual / spread)
    from sklearn.metrics import r2_score

    targets = as_targets(y, len(predicted), name)
    _raise_if_not_finite(targets, "The target y")
    _raise_if_not_finite(predicted, f"A prediction of {name}")
    return float(r2_score(targets, predicted, sample_weight=as_weights(sample_weight, len(predicted), name)))


def _raise_if_not_finite(values: Array, label: str) -> None:
    rows = np.flatnonzero(~np.isfinite(values).reshape(len(values), -1).all(axis=1))
    if len(rows):
        raise RowError(f"{label} is NaN or infinite", int(rows[0]), ", so there is no score; score the other rows.")


def _accuracy_in_memory(y: Any, predicted: Any, sample_weight: Any, name: str) -> float:
    """Return scikit-learn's accuracy; that of a few integers, which pass its checks, without them."""
    if sample_weight is None and _are_plain(y, predicted, "iub") and are_few_integers(y):
        return float((y == predicted).mean())
    from sklearn.metrics import accuracy_score

    try:
        if getattr(getattr(y, "dtype", None), "kind", "") in tuple("mMcV"):
            distinct(array_of(y, "The target y"), 0, name)  # raises; NumPy compares durations with integers
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))
    except (TypeError, ValueError) as error:
        values = array_of(y, "The target y")
        if values.ndim == 1:
            distinct(values, 0, name)  # says which values are no labels
        problem = " ".join(str(error).split())[:_LONGEST].rstrip(".")
        raise DataError(
            f"The target y cannot be compared with the predicted labels ({problem}); pass labels of the kind "
            f"that {name} was fitted to."
        ) from error


def _are_plain(y: Any, predicted: Any, kinds: str) -> bool:
    """Return whether targets and predictions are arrays of one dimension, equal length and a dtype of these kinds."""
    return (
        type(y) is type(predicted) is np.ndarray
        and y.ndim == 1
        and y.shape == predicted.shape
        and y.dtype.kind in kinds
        and predicted.dtype.kind in kinds
    )


def accuracy(model: Any, X: Any, y: Any, sample_weight: Any) -> float:
    """Return the accuracy of a classifier, by scikit-learn's metric or from sums over files and collections."""
    if _in_memory(X):
        X, y, sample_weight = _values(X, y, sample_weight)
        predicted, name = model.predict(X), type(model).__name__
        return _accuracy_in_memory(y, predicted, as_weights(sample_weight, len(predicted), name), name)
    with _scored(model, X, y, sample_weight) as run:
        sums = run.sum(Hits, (model._score_function(), model._winners), "score")
    return float(sums.hits / sums.weight)


@contextmanager
def _scored(model: Any, X: Any, y: Any, sample_weight: Any) -> Iterator[Run]:
    """Create a run over rows with targets; labels that did not occur in the fit have the code -1."""
    check_is_fitted(model)
    with model._evaluating(X, y, sample_weight, unknown=-1) as run:
        yield run
