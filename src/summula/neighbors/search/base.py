"""What all indexes of training rows have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from summula.neighbors.search.metrics import Metric

__all__ = ["MetricIndex", "Neighbors", "SearchIndex"]

Array = NDArray[Any]


class Neighbors(NamedTuple):
    """The nearest rows of each query: their distances (or ranking values) and numbers, nearest first."""

    values: Array
    rows: Array

    @classmethod
    def none(cls, queries: int, k: int, n: int) -> Neighbors:
        """Return heaps of rows that any other row is nearer than."""
        return cls(np.full((queries, k), np.inf), np.full((queries, k), n, np.int64))


class SearchIndex:
    """Base class of indexes."""

    n_rows: int

    def nearest(self, X: Any, k: int) -> Neighbors:
        """Return the k nearest rows with their distances; those of rows that are not finite are NaN."""
        X, bad = _finite_rows(X)
        found = self._distances(X, k)
        found.values[bad] = np.nan
        return found

    def _distances(self, X: Any, k: int) -> Neighbors:
        raise NotImplementedError


@dataclass(frozen=True)
class MetricIndex(SearchIndex):
    """Base class of indexes that search by the ranking values of a metric."""

    metric: Metric

    def search(self, X: Any, k: int) -> Neighbors:
        """Return the k nearest rows with their ranking values."""
        raise NotImplementedError

    def _distances(self, X: Any, k: int) -> Neighbors:
        values, rows = self.search(self.metric.embedded(X), k)
        return Neighbors(self.metric.distances(values), rows)


def _finite_rows(X: Any) -> tuple[Any, Array]:
    """Return rows with zeros in place of values that are not finite, and the numbers of rows that have such."""
    values = X.data if sparse.issparse(X) else X
    is_finite = np.isfinite(values)
    if is_finite.all():
        return X, np.zeros(0, np.intp)
    X = X.copy()
    if sparse.issparse(X):
        X.data[~is_finite] = 0.0
        return X, np.unique(np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))[~is_finite])
    X[~is_finite] = 0.0
    return X, np.flatnonzero(~is_finite.all(axis=1))
