"""Centroids of classes, with or without shrinkage: computation from sums, and objective.

With W_k the weight of class k, c_k its mean, c that of all rows, and s_j the pooled standard deviation of column j,

    J = sum of ||x - m_k||^2 over the rows, least at the means m_k = c_k                                        (1)

Shrunken centroids are m_kj = c_j + e_kj d_kj with the standard errors e_kj = sqrt(1 / W_k - 1 / n) (s_j + median of s),
where d_kj minimises, with t_kj = (c_kj - c_j) / e_kj,

    1/2 (t_kj - d_kj)^2 + threshold |d_kj|                                                                      (2)

so it is t_kj soft-thresholded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from summula.core.model_files import schema
from summula.core.numerics.statistics import Moments

__all__ = ["CentroidFit", "Spread", "soft_threshold"]

Array = NDArray[np.float64]


def soft_threshold(t: Array, threshold: float) -> Array:
    """Return the minimiser of (2)."""
    return np.asarray(np.sign(t) * np.maximum(np.abs(t) - threshold, 0.0))


class Spread(NamedTuple):
    """The mean of all rows, the pooled standard deviations of the columns, and the standard errors of the means."""

    overall: Array
    within: Array
    errors: Array

    @classmethod
    def of(cls, sums: Moments, centroids: Array | None = None) -> Self:
        """Return the spread of the classes about their centroids, by default their means."""
        W = sums.weight[:, 0]
        n, some = W.sum(), W > 0
        apart = 0.0 if centroids is None else np.nan_to_num(sums.mean - centroids) ** 2
        squares = (W[:, None] * (np.nan_to_num(sums.variance) + apart)).sum(axis=0)
        within = np.sqrt(squares / max(n - some.sum(), 1.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            m = np.where(some, np.sqrt(np.maximum(1 / W - 1 / n, 0.0)), 0.0)[:, None]
        return cls(W @ np.nan_to_num(sums.mean) / n, within, m * (within + np.median(within)))

    def standardised(self, centroids: Array) -> Array:
        """Return deviations from the mean of all rows, in standard errors."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.errors > 0, (centroids - self.overall) / self.errors, 0.0)

    def centroids(self, deviations: Array) -> Array:
        """Return the centroids with these deviations."""
        return np.asarray(self.overall + self.errors * deviations)


_TABLE = schema.Array("float64", "n_classes", "n_features")


@schema.saved(centroids=_TABLE, deviations=_TABLE, threshold=schema.Real(0.0) | None)
@dataclass(frozen=True)
class CentroidFit:
    """Centroids, their deviations from the mean of all rows in standard errors, and the shrinkage threshold."""

    centroids: Array
    deviations: Array
    threshold: float | None
    statistic: ClassVar = Moments

    def objective(self, sums: Moments) -> tuple[float, float]:
        """Return (1), or with a threshold (2), and its suboptimality."""
        W, means = sums.weight, np.nan_to_num(sums.mean)
        if self.threshold is None:
            apart = float((W * np.where(W > 0, sums.mean_minus(self.centroids), 0.0) ** 2).sum())
            return float((W * np.nan_to_num(sums.variance)).sum()) + apart, apart
        spread = Spread.of(sums)
        apart = float((W * (spread.centroids(self.deviations) - self.centroids) ** 2).sum())
        t = spread.standardised(means)
        value = self._shrinking(t, self.deviations)
        return value + apart, value + apart - self._shrinking(t, soft_threshold(t, self.threshold))

    def _shrinking(self, t: Array, d: Array) -> float:
        assert self.threshold is not None
        return float((0.5 * (t - d) ** 2 + self.threshold * np.abs(d)).sum())
