"""Indexes for distances that are computed elsewhere: by SciPy, by the user, or in advance.

PairwiseIndex   the distances of some queries to all rows at a time, of which the k smallest are kept
GivenIndex      precomputed distances: all of them, or those stored in a sparse matrix
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial.distance import cdist

from summula.core.errors import DataError, ParameterError
from summula.neighbors.search.base import MetricIndex, Neighbors, SearchIndex
from summula.neighbors.search.metrics import BOOLEAN_METRICS, PairwiseMetric, is_distance_metric

__all__ = ["GivenIndex", "PairwiseIndex", "check_distances"]

Array = NDArray[Any]

_DISTANCES = 2**21  # distances per block
# 0 / 0 for two rows of zeros, which are equal
_ZERO_OVER_ZERO = (*BOOLEAN_METRICS, "braycurtis")


def _smallest(D: Array, k: int) -> Neighbors:
    """Return the k smallest values of each row, with ties going to the first columns; NaN comes last."""
    if k == D.shape[1]:
        order = np.argsort(D, axis=1, kind="stable")
        return Neighbors(np.take_along_axis(D, order, axis=1), order.astype(np.int64))
    limit = np.partition(D, k - 1, axis=1)[:, k - 1 : k]
    rows, columns = np.nonzero(~(limit < D))  # k values or, with ties, more
    order = np.lexsort((columns, D[rows, columns], rows))
    first = np.searchsorted(rows, np.arange(len(D)))[:, None] + np.arange(k)
    chosen = columns[order[first]]
    return Neighbors(np.take_along_axis(D, chosen, axis=1), chosen.astype(np.int64))


def _in_steps(nearest: Callable[[Any, int], Neighbors], X: Any, k: int, n: int) -> Neighbors:
    """Apply a function to queries in blocks, so that their distances to n rows need little memory."""
    step = max(1, _DISTANCES // n)
    return Neighbors.stacked([nearest(X[a : a + step], k) for a in range(0, X.shape[0], step)])


def check_distances(D: Any) -> None:
    """Raise if a precomputed distance is negative; missing ones are reported elsewhere."""
    values = D.data if sparse.issparse(D) else D
    if (values < 0).any():
        raise DataError("Negative values in data passed to precomputed distance matrix: they must be >= 0.")


@dataclass(frozen=True)
class PairwiseIndex(MetricIndex):
    """Index of rows whose distances are computed elsewhere."""

    metric: PairwiseMetric
    rows: Any

    @classmethod
    def build(cls, X: Any, metric: PairwiseMetric) -> PairwiseIndex:
        """Prepare the rows for the metric, and compute missing options from them."""
        what, options = metric
        if isinstance(what, str):
            if sparse.issparse(X):
                raise ParameterError(f"metric={what!r} needs dense rows: pass X.toarray().")
            X = np.asarray(X, np.float64)
            if what in ("seuclidean", "mahalanobis"):
                options = _with_scale(what, options, X)
            X = X != 0 if what in BOOLEAN_METRICS else X
        return cls(PairwiseMetric(what, options), X)

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        """Number of rows."""
        return int(self.rows.shape[0])

    def search(self, X: Any, k: int) -> Neighbors:
        """Compute the distances to all rows, some queries at a time."""
        return _in_steps(self._nearest, X, k, self.n_rows)

    def _nearest(self, X: Any, k: int) -> Neighbors:
        return _smallest(self.metric.ranked(self._pairwise(X)), k)

    def _pairwise(self, X: Any) -> Array:
        what, options = self.metric
        rows = self.rows
        if isinstance(what, str):
            return self._by_name(X)
        if is_distance_metric(what):
            return _by_object(what, X, rows)
        some = [X[i] for i in range(X.shape[0])]
        others = [rows[i] for i in range(rows.shape[0])]
        return np.array([[float(what(x, z, **options)) for z in others] for x in some]).reshape(len(some), -1)

    def _by_name(self, X: Any) -> Array:
        what, options = self.metric
        if what == "nan_euclidean":
            return _distances_without_missing(X, self.rows)
        X = X != 0 if what in BOOLEAN_METRICS else X
        try:
            with np.errstate(invalid="ignore", divide="ignore"):
                D = np.asarray(cdist(X, self.rows, what, **options))
        except (TypeError, ValueError) as error:
            raise ParameterError(f"metric={what!r} with metric_params={dict(options)!r}: {error}.") from None
        if what in _ZERO_OVER_ZERO:
            D[np.isnan(D)] = 0.0
        return D


def _distances_without_missing(X: Array, rows: Array) -> Array:
    """Return the distances (1)."""
    total, common = np.zeros((len(X), len(rows))), np.zeros((len(X), len(rows)))
    for x, z in zip(X.T, rows.T, strict=True):
        t = x[:, None] - z
        is_known = ~np.isnan(t)
        common += is_known
        total += np.where(is_known, t, 0.0) ** 2
    with np.errstate(invalid="ignore"):
        return np.asarray(np.sqrt(total * (X.shape[1] / np.where(common > 0, common, np.nan))))


def _by_object(metric: Any, X: Any, rows: Any) -> Array:
    """Return the distances of a DistanceMetric object of scikit-learn, which supports a single dtype."""
    for dtype in (np.float64, np.float32):
        try:
            return np.asarray(metric.pairwise(np.asarray(X, dtype), np.asarray(rows, dtype)), np.float64)
        except ValueError as error:
            problem = error
    raise ParameterError(f"metric={metric!r}: {problem}.") from None


def _with_scale(name: str, options: Mapping[str, Any], X: Array) -> dict[str, Any]:
    """Return the variances `V`, or the inverse covariance `VI`; by default those of the training rows."""
    d = X.shape[1]
    options = dict(options)
    unknown = sorted(set(options) - ({"V"} if name == "seuclidean" else {"V", "VI"}))
    if unknown:
        raise ParameterError(
            f"metric={name!r} does not support {', '.join(map(repr, unknown))} in metric_params: drop it."
        )
    if name == "seuclidean":
        V = np.asarray(options["V"] if "V" in options else X.var(axis=0, ddof=min(1, len(X) - 1)), np.float64)
        if V.shape != (d,) or not (V > 0).all():
            given = "" if "V" in options else " (here the variances of the training rows)"
            raise ParameterError(
                f"'V' of metric='seuclidean'{given} must be {d} positive numbers, one per column: drop constant "
                "columns, or pass metric_params={'V': ...}."
            )
        return {"V": V}
    if "VI" in options:
        VI = np.asarray(options["VI"], np.float64)
    else:
        VI = _inverse(options["V"] if "V" in options else np.cov(X, rowvar=False, ddof=min(1, len(X) - 1)), d)
    if VI.shape != (d, d):
        raise ParameterError(f"'VI' of metric='mahalanobis' must be a matrix of shape ({d}, {d}); got {VI.shape}.")
    return {"VI": np.ascontiguousarray(VI)}


def _inverse(V: Any, d: int) -> Array:
    V = np.asarray(V, np.float64).reshape((d, d) if d == 1 else np.shape(V))
    if V.shape != (d, d):
        raise ParameterError(f"'V' of metric='mahalanobis' must be a matrix of shape ({d}, {d}); got {V.shape}.")
    scale = np.sqrt(np.abs(np.diagonal(V)))
    if not (scale > 0).all() or np.linalg.matrix_rank(V / np.outer(scale, scale), hermitian=True) < d:
        raise ParameterError(
            "The covariance 'V' of metric='mahalanobis' (by default that of the training rows) is singular: drop "
            "columns that are constant or combinations of others, or pass metric_params={'VI': ...}."
        )
    return np.asarray(np.linalg.inv(V))


@dataclass(frozen=True)
class GivenIndex(SearchIndex):
    """Precomputed distances; a sparse matrix contains some of them, with explicit zeros."""

    n_rows: int

    def nearest(self, X: Any, k: int) -> Neighbors:
        """Return the k smallest distances of each row."""
        if sparse.issparse(X):
            return _of_graph(sparse.csr_matrix(X), k)
        X, bad = PairwiseMetric("precomputed", {}).queries(X)
        check_distances(X)
        found = _in_steps(_smallest, np.asarray(X, np.float64), k, self.n_rows)
        found.values[bad] = np.nan
        return found


def _of_graph(X: Any, k: int) -> Neighbors:
    """Return the k smallest stored distances of each row."""
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    check_distances(X)
    counts = np.diff(X.indptr)
    if counts.min() < k:
        raise DataError(
            f"{k} neighbors are required for each samples, but some samples have only {counts.min()} neighbors in "
            "precomputed graph matrix. Decrease number of neighbors used or recompute the graph with more neighbors."
        )
    owner = np.repeat(np.arange(X.shape[0]), counts)
    order = np.lexsort((X.indices, X.data, owner))
    chosen = order[X.indptr[:-1, None].astype(np.int64) + np.arange(k)]
    values = X.data[chosen].astype(np.float64)
    values[owner[~np.isfinite(X.data)]] = np.nan
    return Neighbors(values, X.indices[chosen].astype(np.int64))
