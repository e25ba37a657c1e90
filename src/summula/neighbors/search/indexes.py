"""Indexes of the training rows: how the candidates for the nearest rows are found.

    BlockIndex      a k-d tree for few columns, or all rows in turn
    ProductIndex    squared distances in many columns, from products of matrices
    SparseIndex     sparse rows, in turn
    PairwiseIndex   distances that SciPy or the user computes

All give the k nearest rows, of equally near ones those of the smallest numbers, nearest first.

The scores of `ProductIndex` are, for rows less a centre, divided by the length R of the longest, in single precision,

    s(x, z) = |z|^2 / 2 (1 - e) - x'z - e |x| |z|                                                                   (1)

as one product of rows with two further columns. With e = (d + 16) 2^-24 above the rounding error of the product,

    s(x, z) <= (|x - z|^2 - |x|^2) / 2                                                                              (2)

so a row z that is nearer than the k-th nearest so far, at V_k, has

    s(x, z) <= (V_k / R^2 - |x|^2) / 2                                                                              (3)

and only rows with such a score are measured, in double precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial.distance import cdist

from summula.core.data.layout.blocks import aligned, empty_block, scratch_block
from summula.core.errors import DataError, ParameterError
from summula.neighbors.search import kernels
from summula.neighbors.search.metrics import Metric, PairwiseMetric, to_unit_rows

__all__ = ["BlockIndex", "Neighbors", "PairwiseIndex", "ProductIndex", "SearchIndex", "SparseIndex", "build_index"]

Array = NDArray[Any]

_TREE_COLUMNS = 15  # up to which a tree skips most rows
_QUERIES = 512  # rows that are multiplied at once
_TILE = 1_024  # training rows that they are multiplied with
_STEP = 2**22  # values that a kernel looks at before it returns, so that Ctrl-C works
_GROWN = 2**21  # rows that `grow_tree` looks at before it returns
_SEARCHED = 256  # queries per call of `search_tree`
_PRODUCT_ROWS = 256  # training rows from which scores are worth their while
_FAR = 1e15  # lengths of queries, in those of training rows, whose scores might overflow
_SIZES = (1e-100, 1e100)  # of R


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

    def search(self, X: Any, k: int) -> Neighbors:
        """Return the k nearest rows with their ranking values."""
        raise NotImplementedError

    def nearest(self, X: Any, k: int) -> Neighbors:
        """Return the k nearest rows with their distances; those of rows that are not finite are NaN."""
        X, bad = _finite_rows(X)
        found = self._distances(X, k)
        found.values[bad] = np.nan
        return found

    def _distances(self, X: Any, k: int) -> Neighbors:
        metric: Metric = self.metric  # type: ignore[attr-defined]
        values, rows = self.search(to_unit_rows(X) if metric.unit_rows else X, k)
        return Neighbors(metric.distances(values), rows)


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


@dataclass(frozen=True)
class BlockIndex(SearchIndex):
    """Rows in blocks of 32, which are the leaves of a k-d tree where there are boxes."""

    metric: Metric
    blocks: kernels.Blocks

    @classmethod
    def build(cls, X: Array, metric: Metric, *, tree: bool) -> BlockIndex:
        """Sort rows into blocks, split at medians along the widest column with a tree."""
        X = np.ascontiguousarray(X, np.float64)
        n, d = X.shape
        size = -(-n // kernels.BLOCK)
        members, boxes = np.arange(n), np.zeros((2 * size - 1 if tree else 0, 2, d))
        nodes, top = kernels.Scratch.empty().nodes, int(tree)
        nodes[0] = 0, 0, size
        while top:
            top = kernels.grow_tree(X, members, boxes, nodes, top, _GROWN)
        padded = np.zeros((size * kernels.BLOCK, d))
        padded[:n] = X[members] if tree else X
        values = np.ascontiguousarray(padded.reshape(size, kernels.BLOCK, d).transpose(0, 2, 1))
        return cls(metric, kernels.Blocks(values, members, boxes))

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        """Number of rows."""
        return len(self.blocks.members)

    def search(self, X: Array, k: int) -> Neighbors:
        """Visit the leaves that are near enough, or all blocks."""
        blocks, metric, scratch = self.blocks, (self.metric.tag, self.metric.p), kernels.Scratch.empty()
        X = np.ascontiguousarray(X, np.float64)
        found = Neighbors.none(len(X), k, self.n_rows)
        if len(blocks.boxes):
            leaves = np.empty(len(X), np.int64)
            kernels.nearest_leaves(blocks, X, leaves)
            order = np.argsort(leaves, kind="stable")
            for a in range(0, len(X), _SEARCHED):
                kernels.search_tree(blocks, X, order[a : a + _SEARCHED], metric, scratch, *found)
        else:
            step = max(1, _STEP // (kernels.BLOCK * max(X.shape[1], 1)) // _QUERIES)
            for a in range(0, len(X), _QUERIES):
                V, rows = (values[a : a + _QUERIES] for values in found)
                for b in range(0, len(blocks.values), step):
                    end = min(b + step, len(blocks.values))
                    kernels.offer_blocks(blocks, b, end, X[a : a + _QUERIES], metric, scratch.sums, V, rows)
        kernels.sort_neighbors(*found)
        return found


@dataclass(frozen=True)
class ProductIndex(SearchIndex):
    """Rows beside the factors of their scores, equation (1)."""

    metric: Metric
    rows: Array
    factors: Array
    centre: Array
    scale: float

    @classmethod
    def build(cls, X: Array, metric: Metric) -> SearchIndex:
        """Prepare the factors of the scores; rows all alike, or whose squares overflow, are left to blocks."""
        n, d = X.shape
        with np.errstate(over="ignore", invalid="ignore"):
            centre = X.mean(axis=0, dtype=np.float64)
            squares = [_squares(X[a : a + _TILE] - centre).max() for a in range(0, n, _TILE)]
            longest = float(np.sqrt(np.max(squares)))
        if not _SIZES[0] < longest < _SIZES[1]:
            return BlockIndex.build(X, metric, tree=False)
        scale = 2.0 ** -np.ceil(np.log2(longest))
        e = (d + 16) * 2.0**-24
        factors = empty_block(n, d + 2, np.float32)
        for a in range(0, n, _TILE):
            Z = (X[a : a + _TILE] - centre) * scale
            square = _squares(Z)
            factors[a : a + _TILE, :d] = Z
            factors[a : a + _TILE, d] = 0.5 * (1.0 - e) * square
            factors[a : a + _TILE, d + 1] = -e * np.sqrt(square)
        return cls(metric, X, factors, centre, scale)

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        """Number of rows."""
        return len(self.rows)

    def search(self, X: Array, k: int) -> Neighbors:
        """Measure the rows with scores below the threshold (3)."""
        X = np.ascontiguousarray(X, np.float64)
        found = Neighbors.none(len(X), k, self.n_rows)
        scale = self.scale**2
        for a in range(0, len(X), _QUERIES):
            some = X[a : a + _QUERIES]
            V, rows = (values[a : a + _QUERIES] for values in found)
            left, squares = self._left(some)
            for b in range(0, self.n_rows, _TILE):
                right = self.factors[b : b + _TILE]
                scores = scratch_block("scores", len(some), len(right), np.float32)
                np.matmul(left, right.T, out=scores)
                kernels.offer_tile(scores, b, self.rows, some, squares, scale, V, rows)
        kernels.sort_neighbors(*found)
        return found

    def _left(self, X: Array) -> tuple[Array, Array]:
        """Return the other factor of the scores, and |x|^2; all rows are candidates for rows that are too far away."""
        d = X.shape[1]
        with np.errstate(over="ignore", invalid="ignore"):
            Z = (X - self.centre) * self.scale
            squares = _squares(Z)
        left = scratch_block("queries", len(X), d + 2, np.float32)
        is_far = ~(squares < _FAR**2)
        Z[is_far] = 0.0
        left[:, :d] = -Z
        left[:, d] = ~is_far
        left[:, d + 1] = np.sqrt(np.where(is_far, 0.0, squares))
        squares[is_far] = -np.inf
        return left, squares


def _squares(Z: Array) -> Array:
    return np.asarray(np.einsum("ij,ij->i", Z, Z))


@dataclass(frozen=True)
class SparseIndex(SearchIndex):
    """Sparse rows in CSR format, columns of each row in order."""

    metric: Metric
    rows: tuple[Array, Array, Array]

    @classmethod
    def build(cls, X: Any, metric: Metric) -> SparseIndex:
        """Take the arrays of a matrix."""
        return cls(metric, _parts(X))

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        """Number of rows."""
        return len(self.rows[0]) - 1

    def search(self, X: Any, k: int) -> Neighbors:
        """Measure all rows."""
        found = Neighbors.none(X.shape[0], k, self.n_rows)
        width = 1 + (len(self.rows[1]) + X.nnz) // (self.n_rows + X.shape[0])
        step = max(1, _STEP // width // max(X.shape[0], 1))
        query = _parts(X)
        for a in range(0, self.n_rows, step):
            end = min(a + step, self.n_rows)
            kernels.offer_sparse(self.rows, a, end, query, (self.metric.tag, self.metric.p), *found)
        kernels.sort_neighbors(*found)
        return found


def _parts(X: Any) -> tuple[Array, Array, Array]:
    """Return the arrays of a CSR matrix in the types that the kernel is compiled for."""
    X = sparse.csr_matrix(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X.indptr.astype(np.int64), X.indices.astype(np.int64), X.data.astype(np.float64)


@dataclass(frozen=True)
class PairwiseIndex(SearchIndex):
    """Rows whose distances are computed elsewhere."""

    metric: PairwiseMetric
    rows: Any

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        """Number of rows."""
        return int(self.rows.shape[0])

    def _distances(self, X: Any, k: int) -> Neighbors:
        D = self._all(X)
        if np.isnan(D).any():
            raise DataError(f"The metric {self.metric.what!r} gave distances that are not numbers on these rows.")
        order = np.argsort(D, axis=1, kind="stable")[:, :k]
        return Neighbors(np.take_along_axis(D, order, axis=1), order.astype(np.int64))

    def _all(self, X: Any) -> Array:
        what, options = self.metric
        if what == "precomputed":
            D = np.asarray(X, np.float64)
            if (D < 0).any():
                raise DataError("Negative values in data passed to precomputed distance matrix: they must be >= 0.")
            return D
        rows = self.rows
        if callable(what):
            some = [X[i] for i in range(X.shape[0])]
            others = [rows[i] for i in range(rows.shape[0])]
            return np.array([[float(what(x, z, **options)) for z in others] for x in some]).reshape(len(some), -1)
        if sparse.issparse(rows):
            raise ParameterError(f"metric={what!r} needs dense rows: pass X.toarray().")
        try:
            return np.asarray(cdist(X, rows, what, **options))
        except (TypeError, ValueError) as error:
            raise ParameterError(f"metric={what!r} with metric_params={dict(options)!r}: {error}.") from None


def build_index(X: Any, metric: Metric | PairwiseMetric, algorithm: str) -> SearchIndex:
    """Return the index that suits the rows; `algorithm` is a hint.

    Parameters
    ----------
    X : block, or CSR matrix
    """
    if isinstance(metric, PairwiseMetric):
        return PairwiseIndex(metric, X)
    if metric.unit_rows:
        X = to_unit_rows(X)
    if sparse.issparse(X):
        return SparseIndex.build(X, metric)
    n, d = X.shape
    can_grow = metric.tag != kernels.HAMMING
    if can_grow and (algorithm in ("kd_tree", "ball_tree") or (algorithm == "auto" and d <= _TREE_COLUMNS)):
        return BlockIndex.build(X, metric, tree=n > kernels.BLOCK)
    if metric.tag == kernels.SQUARES and n >= _PRODUCT_ROWS:
        return ProductIndex.build(aligned(X), metric)
    return BlockIndex.build(X, metric, tree=False)
