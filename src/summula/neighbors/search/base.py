"""Base class of indexes of training rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.neighbors.search.metrics import Metric, PairwiseMetric

__all__ = ["MetricIndex", "Neighbors", "SearchIndex"]

Array = NDArray[Any]


class Neighbors(NamedTuple):
    """The nearest rows of each query: their distances (or ranking values) and numbers, nearest first."""

    values: Array
    rows: Array

    @classmethod
    def none(cls, queries: int, k: int, n: int) -> Neighbors:
        """Return initial heaps, whose entries are farther away than any row."""
        return cls(np.full((queries, k), np.inf), np.full((queries, k), n, np.int64))

    @classmethod
    def stacked(cls, found: Sequence[Neighbors]) -> Neighbors:
        """Concatenate the neighbours of several groups of queries."""
        if len(found) == 1:
            return found[0]
        return cls(np.concatenate([one.values for one in found]), np.concatenate([one.rows for one in found]))

    def merged(self, later: Neighbors, k: int) -> Neighbors:
        """Return the k nearest of these rows and of rows with larger numbers, which lose ties."""
        values = np.hstack([self.values, later.values])
        order = np.argsort(values, axis=1, kind="stable")[:, :k]
        rows = np.hstack([self.rows, later.rows])
        return Neighbors(np.take_along_axis(values, order, axis=1), np.take_along_axis(rows, order, axis=1))


class SearchIndex:
    """Base class of indexes."""

    n_rows: int

    def nearest(self, X: Any, k: int) -> Neighbors:
        """Return the k nearest rows with their distances; those of rows that are not finite are NaN."""
        raise NotImplementedError


@dataclass(frozen=True)
class MetricIndex(SearchIndex):
    """Base class of indexes of rows that a metric compares."""

    metric: Metric | PairwiseMetric

    def search(self, X: Any, k: int) -> Neighbors:
        """Return the k nearest rows of `metric.queries` with their ranking values."""
        raise NotImplementedError

    def nearest(self, X: Any, k: int) -> Neighbors:
        """Return the k nearest rows with their distances; those of rows that are not finite are NaN."""
        X, bad = self.metric.queries(X)
        values, rows = self.search(X, k)
        values = self.metric.distances(values, rows)
        values[bad] = np.nan
        return Neighbors(values, rows)
