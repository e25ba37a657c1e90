"""Scores as sums over rows, so that files and collections are scored without being held in memory.

With weights w, targets y and predictions f, about an origin o near the mean of y,

    R2        = 1 - sum w (y - f)^2 / (sum w (y - o)^2 - (sum w (y - o))^2 / sum w),   mean over targets        (1)
    accuracy  = sum w [y = f] / sum w                                                                           (2)

Values in memory go to scikit-learn's own metrics, so that scores of arrays are its scores to the bit.
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
from summula.core.data.scan import Scan
from summula.core.errors import DataError, warn
from summula.core.estimator.run import Run
from summula.core.estimator.validation import collection_reader, has_bad_values
from summula.core.numerics.sums import Sum

__all__ = ["Hits", "SquaredErrors", "accuracy", "r2", "values_in_memory"]

Array = NDArray[Any]
RowFunction = Callable[[Chunk], Array]


@dataclass(frozen=True)
class SquaredErrors(Sum):
    """The sums of (1), one value a target; `params` are what predicts a chunk, and the origin of the targets."""

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
        w = np.ones(len(y)) if chunk.weight is None else chunk.weight
        with np.errstate(invalid="ignore", over="ignore"):
            error = y - np.asarray(predict(chunk), np.float64).reshape(y.shape)
            about = y - origin
            return cls(len(y), float(w.sum()), w @ about, w @ about**2, w @ error**2)

    @property
    def r2(self) -> float:
        """Equation (1); a constant target counts as 1 when it is hit and as 0 when not, as in scikit-learn."""
        spread = self.square - self.total**2 / self.weight
        # What rounding leaves of a constant target is nothing.
        constant = spread <= 1e-15 * self.square
        share = 1 - self.residual / np.where(constant, 1.0, spread)
        return float(np.where(constant, np.where(self.residual > 0, 0.0, 1.0), share).mean())


@dataclass(frozen=True)
class Hits(Sum):
    """The sums of (2); `params` are what gives the scores of a chunk, and the codes of the classes by these.

    `hits` is NaN when scores and rows hold values that are not finite.
    """

    hits: float
    weight: float

    @classmethod
    def map(cls, chunk: Chunk, params: tuple[RowFunction, Callable[[Array], Array]]) -> Self:
        """The sums of one chunk."""
        scores = params[0](chunk)
        w = np.ones(len(chunk)) if chunk.weight is None else chunk.weight
        if not np.isfinite(scores).all() and has_bad_values(chunk):
            return cls(np.nan, float(w.sum()))
        return cls(float(w @ (params[1](scores) == chunk.codes)), float(w.sum()))


def _in_memory(X: Any) -> bool:
    return not isinstance(X, Scan) and collection_reader(X) is None


def values_in_memory(X: Any, y: Any, sample_weight: Any, scoring: Any) -> tuple[Any, Any, Any]:
    """What a scorer of scikit-learn can take: rows in memory, without the columns named as target or weight."""
    if not _in_memory(X):
        raise DataError(
            f"scoring={scoring!r} needs all rows in memory, and X is in files or a collection: score some of its rows, "
            "or take the accuracy, scoring=None, which is summed batch by batch."
        )
    return _values(X, y, sample_weight)


def _values(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """A frame without the columns that are named as target or weight, and their values."""
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


def _without(X: Any, dropped: tuple[str, ...], *named: Any) -> Any:
    """A collection without the columns that were no features in the fit, and are not asked for now."""
    lists = (one if isinstance(one, list | tuple) else [one] for one in named if isinstance(one, str | list | tuple))
    asked = {name for names in lists for name in names}
    gone = [name for name in dropped if name in getattr(X, "columns", ()) and name not in asked]
    return X.drop(columns=gone) if gone else X


def r2(model: Any, in_memory: Callable[..., float], X: Any, y: Any, sample_weight: Any) -> float:
    """R2 of a regressor, by scikit-learn (`in_memory`) or from sums over files and collections."""
    if _in_memory(X):
        return float(in_memory(*_values(X, y, sample_weight)))
    with _scored(model, X, y, sample_weight) as run:
        params = (model._row_function(), run.origin()[run.source.n_features :])
        sums = run.sum(SquaredErrors, params, "score")
    if sums.count < 2:
        warn("R^2 score is not well-defined with less than two samples.", UndefinedMetricWarning)
        return float("nan")
    return float(sums.r2)


def accuracy(model: Any, in_memory: Callable[..., float], X: Any, y: Any, sample_weight: Any) -> float:
    """The accuracy of a classifier, in the same way."""
    if _in_memory(X):
        return float(in_memory(*_values(X, y, sample_weight)))
    with _scored(model, X, y, sample_weight) as run:
        sums = run.sum(Hits, (model._score_function(), model._winners), "score")
    return float(sums.hits / sums.weight)


@contextmanager
def _scored(model: Any, X: Any, y: Any, sample_weight: Any) -> Iterator[Run]:
    """A run over rows with their targets; a label that the fit has not seen has the code -1."""
    check_is_fitted(model)
    if not isinstance(X, Scan):
        X = _without(X, getattr(model, "_not_features", ()), y, sample_weight)
    source = model._source(X, y, sample_weight, unknown=-1)
    try:
        yield Run(model, source, quiet=True)
    finally:
        source.release()
