"""The search among sparse rows.

For metrics that are sums of terms g(x_j - z_j) with g(0) = 0, only columns in which both rows have a value are needed,
given the sums G of the rows themselves:

    V(x, z) = G(x) + G(z) + sum over common columns of g(x_j - z_j) - g(x_j) - g(z_j),      G(x) = sum_j g(x_j)     (1)

An inverted index (the rows by column) finds the common columns of a query with all rows. Sums in this order have other
rounding errors than V as defined in `kernels`; the difference is at most

    e (G(x) + G(z)),      e = 4 (m + 16) 2^-53 (1 + 2^max(p - 1, 0)),      m the number of values of both rows     (2)

so V is computed, column by column, only for rows for which (1) minus (2) is not above the worst value so far.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from summula.core.compilation.compile import internal_kernel, non_allocating_kernel
from summula.neighbors.search.base import MetricIndex, Neighbors
from summula.neighbors.search.kernels import CHEBYSHEV, HAMMING, POWER, SQUARES, offer, sort_neighbors
from summula.neighbors.search.metrics import Metric

__all__ = ["SparseIndex", "offer_sparse", "warmup"]

Array = NDArray[Any]

_STEP = 2**22  # maximum number of rows and values per kernel call, so that Ctrl-C works


@internal_kernel
def _term(t: float, tag: int, p: float) -> float:
    """Return g(t)."""
    if tag == SQUARES:
        return t * t
    if tag == HAMMING:
        return 1.0 if t != 0.0 else 0.0
    return abs(t) ** p if tag == POWER else abs(t)


@internal_kernel
def _sparse_value(A: Any, i: int, B: Any, k: int, tag: int, p: float) -> float:
    """Return V of row i of A and row k of B, whose column indices are sorted."""
    a, a_end, b, b_end = A[0][i], A[0][i + 1], B[0][k], B[0][k + 1]
    s = 0.0
    while a < a_end or b < b_end:
        if b >= b_end or (a < a_end and A[1][a] < B[1][b]):
            t = A[2][a]
            a += 1
        elif a >= a_end or B[1][b] < A[1][a]:
            t = -B[2][b]
            b += 1
        else:
            t = A[2][a] - B[2][b]
            a += 1
            b += 1
        v = _term(t, tag, p)
        s = max(s, v) if tag == CHEBYSHEV else s + v
    return s


@internal_kernel
def _add_common_columns(columns: Any, X: Any, q: int, tag: int, p: float, sums: Any) -> float:
    """Write the sums over common columns in (1) of query q and every row; return G of the query."""
    sums[:] = 0.0
    size = 0.0
    for a in range(X[0][q], X[0][q + 1]):
        j, x = X[1][a], X[2][a]
        g = _term(x, tag, p)
        size += g
        for b in range(columns[0][j], columns[0][j + 1]):
            z = columns[2][b]
            sums[columns[1][b]] += _term(x - z, tag, p) - g - _term(z, tag, p)
    return size


@non_allocating_kernel
def offer_sparse(index: Any, error: float, X: Any, first: int, metric: Any, sums: Any, V: Any, I: Any) -> None:  # noqa: E741
    """Offer all rows to the queries from `first` on."""
    tag, p, rows, columns, sizes = metric[0], metric[1], index.rows, index.columns, index.sizes
    for i in range(len(V)):
        q = first + i
        size = _add_common_columns(columns, X, q, tag, p, sums) if tag != CHEBYSHEV else 0.0
        for r in range(len(sizes)):
            both = size + sizes[r]
            if tag != CHEBYSHEV and both + sums[r] - error * both > V[i, 0]:
                continue
            v = _sparse_value(rows, r, X, q, tag, p)
            if v <= V[i, 0]:
                offer(V[i], I[i], v, r)


class InvertedRows(NamedTuple):
    """Sparse rows by row (CSR) and by column (CSC), each as (indptr, indices, data), and their sums G."""

    rows: tuple[Array, Array, Array]
    columns: tuple[Array, Array, Array]
    sizes: Array


@dataclass(frozen=True)
class SparseIndex(MetricIndex):
    """Sparse rows and their inverted index."""

    metric: Metric
    inverted: InvertedRows

    @classmethod
    def build(cls, X: Any, metric: Metric) -> SparseIndex:
        """Sort the values of a matrix by row and by column."""
        X = _in_order(X)
        with np.errstate(over="ignore"):
            g = _terms(np.abs(X.data.astype(np.float64)), metric)
        owner = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        sizes = np.bincount(owner, g, minlength=X.shape[0])
        return cls(metric, InvertedRows(_parts(X), _parts(X.tocsc()), sizes))

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        """Number of rows."""
        return len(self.inverted.sizes)

    def search(self, X: Any, k: int) -> Neighbors:
        """Compute V of the rows that may be near enough by (1) and (2)."""
        X = _in_order(X)
        found = Neighbors.none(X.shape[0], k, self.n_rows)
        tag, p = self.metric.tag, self.metric.p
        rows, columns, _ = self.inverted
        m = int(np.diff(rows[0]).max(initial=0) + np.diff(X.indptr).max(initial=0))
        error = 4.0 * (m + 16.0) * 2.0**-53 * (1.0 + 2.0 ** min(max(p - 1.0, 0.0), 1_000.0))
        counts = np.diff(columns[0])
        work = self.n_rows + int(counts[X.indices].sum()) // max(X.shape[0], 1)
        if tag == CHEBYSHEV:
            work = self.n_rows + len(rows[1]) + X.nnz // max(X.shape[0], 1) * self.n_rows
        step = max(1, _STEP // max(work, 1))
        query, sums = _parts(X), np.empty(self.n_rows)
        for a in range(0, X.shape[0], step):
            V, I = (values[a : a + step] for values in found)  # noqa: E741
            offer_sparse(self.inverted, error, query, a, (tag, p), sums, V, I)
        sort_neighbors(*found)
        return found


def _terms(t: Array, metric: Metric) -> Array:
    """Return g of absolute values."""
    if metric.tag == HAMMING:
        return np.asarray(t != 0.0, np.float64)
    if metric.tag == SQUARES:
        return t * t
    return np.asarray(t**metric.p) if metric.tag == POWER else t


def _in_order(X: Any) -> Any:
    """Return a CSR matrix without duplicates and with sorted column indices."""
    X = sparse.csr_matrix(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _parts(X: Any) -> tuple[Array, Array, Array]:
    """Return the arrays of a matrix in the types for which the kernel is compiled."""
    return X.indptr.astype(np.int64), X.indices.astype(np.int64), X.data.astype(np.float64)


def warmup() -> None:
    """Compile the kernels for the common argument types."""
    X = sparse.csr_matrix(np.eye(3))
    SparseIndex.build(X, Metric(SQUARES, 2.0, 1.0, 0.5)).search(X, 2)
