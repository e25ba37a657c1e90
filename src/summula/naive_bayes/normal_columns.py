"""Columns that are normal within each class, with missing values (NaN) ignored column by column.

Over the rows of class k whose column j is not missing, W_kj is the weight, m_kj the mean and s2_kj the variance:

    theta_kj = m_kj,   v_kj = s2_kj + eps,   eps = var_smoothing max_j Var(x_j)                                 (1)
    log p(x | k) = -1/2 sum over the columns j not missing in x of [log(2 pi v_kj) + (x_j - theta_kj)^2 / v_kj] (2)

If a column is missing in all rows of a class, theta and v are those of the rows of all classes.
(1) minimises, over theta and v, the negative log-likelihood with every variance increased by eps,

    J = 1/2 sum_kj W_kj [log(2 pi v_kj) + (s2_kj + eps + (m_kj - theta_kj)^2) / v_kj]                           (3)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.data.layout.blocks import aligned, product, scratch_block
from summula.core.errors import DataError
from summula.core.model_files import schema
from summula.core.numerics.grouped import group_sizes
from summula.core.numerics.statistics import Moments
from summula.core.numerics.sums import Sum

__all__ = ["ClassMoments", "ColumnMoments", "NormalColumns"]

Array = NDArray[np.float64]

_TINY = np.finfo(np.float64).tiny  # the variance of constant columns, for which any other value is impossible


class ColumnMoments(Sum):
    """Sums that include the moments of numeric columns in each class."""

    moments: Moments

    @property
    def column_squares(self) -> Array:
        """Sums of squares of each numeric column in each class."""
        return self.moments.column_squares

    @property
    def column_totals(self) -> Array:
        """Sums of the same columns in each class."""
        return self.moments.column_totals


@schema.saved(
    count=schema.Array("int64", "n_groups", low=0),
    weight=schema.Array("float64", "n_groups"),
    moments=schema.Object(Moments, n_features="n_features", n_groups="n_groups"),
)
@dataclass(frozen=True)
class ClassMoments(ColumnMoments):
    """Rows and weights of each class, and the moments of its columns over the values that are not missing."""

    count: NDArray[np.int64]
    weight: Array
    moments: Moments

    @classmethod
    def map_groups(cls, chunk: Chunk, codes: NDArray[Any], n_groups: int, params: Array) -> Self:
        """Return the sums of each class of rows; `params` has an origin for each."""
        moments = Moments.map_groups(chunk, codes, n_groups, params)
        return cls(*group_sizes(codes, chunk.weight, n_groups), moments)

    @property
    def n_rows(self) -> int:
        """Number of rows, of all classes together."""
        return int(self.count.sum())


@schema.saved(
    theta=schema.Array("float64", "n_classes", "n_normal"),
    var=schema.Array("float64", "n_classes", "n_normal", low=0.0),
    eps=schema.Real(0.0),
)
@dataclass(frozen=True)
class NormalColumns:
    """Means theta and variances `var` by class, and the value added to the variances (1)."""

    theta: Array
    var: Array
    eps: float

    @classmethod
    def of(cls, moments: Moments, var_smoothing: float) -> Self:
        """Return the estimates (1)."""
        theta, variance, W = np.nan_to_num(moments.mean), np.nan_to_num(moments.variance), moments.weight
        whole = np.maximum(W.sum(axis=0), _TINY)
        overall = (W * theta).sum(axis=0) / whole
        with np.errstate(over="ignore"):
            spread = (W * (variance + (theta - overall) ** 2)).sum(axis=0) / whole
        if not (np.isfinite(spread).all() and np.isfinite(var_smoothing * spread).all()):
            raise DataError("Some values are so large that their squares overflow float64; rescale the columns first.")
        eps = float(var_smoothing * spread.max(initial=0.0))
        unseen = (W == 0) & W.any(axis=1, keepdims=True)  # missing in all rows of a class: use all classes
        return cls(np.where(unseen, overall, theta), np.where(unseen, spread, variance) + eps, eps)

    @property
    def positive(self) -> Array:
        """Return the variances, with zeros replaced."""
        return np.maximum(self.var, _TINY)

    def objective(self, moments: Moments) -> tuple[float, float]:
        """Return (3) for these sums, and its distance from the minimum, which is attained at (1)."""
        some = moments.weight > 0
        W, v = moments.weight[some], self.positive[some]
        best = np.maximum(moments.variance[some] + self.eps, _TINY)
        ratio = (best + moments.mean_minus(self.theta)[some] ** 2) / v
        value = W @ (np.log(2 * np.pi * v) + ratio) / 2
        return float(value), float(W @ (ratio - 1 - np.log(best / v)) / 2)

    def log_density(self, X: Array, k: Any) -> Array:
        """Return (2) for class k; NaN for rows with infinite values."""
        v = self.positive[k]
        away = scratch_block("difference", *X.shape)
        np.square(np.subtract(X, self.theta[k], out=away), out=away)
        logs = np.log(2 * np.pi * v)
        density = product(away, (-0.5 / v)[:, None])[:, 0] - logs.sum() / 2
        if np.isfinite(density).all():
            return np.asarray(density)
        gone = np.isnan(X)
        away[gone] = 0.0
        logs_of_missing = product(aligned(gone, np.float64), logs[:, None])[:, 0]
        density = product(away, (-0.5 / v)[:, None])[:, 0] - (logs.sum() - logs_of_missing) / 2
        return np.where(np.isinf(X).any(axis=1), np.nan, density)
