"""Indexes of the training rows, which find the candidates for the nearest rows.

    BlockIndex      a k-d tree for few columns, or all rows in turn
    ProductIndex    squared distances in many columns, from products of matrices
    DeferredIndex   the same of a small table, prepared when there are enough queries
    SparseIndex     sparse rows (`sparse_rows`)
    PairwiseIndex   distances computed by SciPy or the user (`pairwise`)
    StreamedIndex   rows in files or Dask collections, block by block (`streamed`)
GivenIndex      precomputed distances (`pairwise`)

All return the k nearest rows, nearest first, with ties ordered by row number.

The scores of `ProductIndex` are, for rows minus a centre, divided by the largest norm R, in single precision,

    s(x, z) = |z|^2 / 2 (1 - e) - x'z - e |x| |z|                                                                   (1)

as one product of rows with two additional columns. With e = (d + 16) 2^-24 above the rounding error of the product,

    s(x, z) <= (|x - z|^2 - |x|^2) / 2                                                                              (2)

so a row z that is nearer than the k-th nearest so far, at V_k, has

    s(x, z) <= (V_k / R^2 - |x|^2) / 2                                                                              (3)

and only for rows with such a score is the distance computed, in double precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from summula.core.data.layout.blocks import aligned, empty_block, scratch_block
from summula.core.engine.engine import local_engine
from summula.neighbors.search import kernels
from summula.neighbors.search.base import MetricIndex, Neighbors, SearchIndex
from summula.neighbors.search.metrics import Metric, PairwiseMetric
from summula.neighbors.search.pairwise import GivenIndex, PairwiseIndex

__all__ = ["BlockIndex", "DeferredIndex", "ProductIndex", "build_index", "index_rows"]

Array = NDArray[Any]

_TREE_ROWS = 512  # number of rows up to which all distances take a few microseconds per query
_TREE_COLUMNS = 15  # number of columns up to which a tree is tried
_SURE_COLUMNS = 8  # number of columns up to which a tree is faster than products for any rows
_PROBES, _PROBED = 24, 6  # queries used to estimate this, and their neighbours
_LEAF_COST = 10  # time per leaf and column of a tree, relative to that of a product per row
_QUERIES = 1_024  # queries per product
_TILE = 512  # training rows per product
_STEP = 2**22  # maximum number of values per kernel call, so that Ctrl-C works
_GROWN = 2**21  # maximum number of rows per call of `grow_tree`
_SUBTREES = 8  # number of subtrees divided among threads
_SHARED_ROWS = 2**14  # minimum number of rows for using threads
_SORTED_QUERIES = 64  # number of queries from which their order matters for caching
_SEARCHED = 256  # queries per call of `search_tree`
_PRODUCT_ROWS = 256  # minimum number of training rows for scores
_SMALL_TABLE = 2**16  # maximum number of values of a table whose scores are computed when they are first needed
_FEW_QUERIES = 4  # maximum number of queries for which all its rows are measured instead
_FAR = 1e15  # norm of queries, relative to that of training rows, above which scores might overflow
_SIZES = (1e-100, 1e100)  # limits of R


@dataclass(frozen=True)
class BlockIndex(MetricIndex):
    """Rows in blocks of 32, which are the leaves of a k-d tree if there are boxes."""

    metric: Metric
    blocks: kernels.Blocks

    @classmethod
    def build(cls, X: Array, metric: Metric, *, tree: bool) -> BlockIndex:
        """Sort rows into blocks, split at medians along the widest column with a tree."""
        X = np.ascontiguousarray(X, np.float64)
        n, d = X.shape
        size = -(-n // kernels.BLOCK)
        members, boxes = np.arange(n), np.zeros((2 * size - 1 if tree else 0, 2, d))
        if tree:
            _grow(X, members, boxes, size)
        padded = np.zeros((size * kernels.BLOCK, d))
        padded[:n] = X[members] if tree else X
        values = np.ascontiguousarray(padded.reshape(size, kernels.BLOCK, d).transpose(0, 2, 1))
        return cls(metric, kernels.Blocks(values, members, boxes))

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        """Number of rows."""
        return len(self.blocks.members)

    def _kernel_metric(self) -> tuple[int, float] | None:
        """Return the metric in the form used by the kernels."""
        return None if self.metric.tag == kernels.SQUARES else (self.metric.tag, self.metric.p)

    def skips_most(self, X: Array) -> bool:
        """Return whether a tree is worthwhile, from the number of leaves visited for some of the training rows.

        This depends less on the number of columns than on the intrinsic dimension.
        """
        if not len(self.blocks.boxes):
            return True
        some = np.linspace(0, self.n_rows - 1, _PROBES).astype(np.intp)
        Q = np.ascontiguousarray(X[some], np.float64)
        found = Neighbors.none(len(Q), _PROBED, self.n_rows)
        metric, scratch = self._kernel_metric(), kernels.Scratch.empty()
        leaves = kernels.search_tree(self.blocks, Q, np.arange(len(Q)), metric, scratch, *found) / len(Q)
        return bool(leaves * X.shape[1] * _LEAF_COST < self.n_rows)

    def search(self, X: Array, k: int) -> Neighbors:
        """Search the leaves that are near enough, or all blocks."""
        blocks, metric, scratch = self.blocks, self._kernel_metric(), kernels.Scratch.empty()
        X = np.ascontiguousarray(X, np.float64)
        found = Neighbors.none(len(X), k, self.n_rows)
        if len(blocks.boxes):
            order = self._by_leaf(X)
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

    def _by_leaf(self, X: Array) -> Array:
        """Return the queries ordered by leaf, unless there are few."""
        if len(X) < _SORTED_QUERIES:
            return np.arange(len(X))
        leaves = np.empty(len(X), np.int64)
        kernels.nearest_leaves(self.blocks, X, leaves)
        return np.argsort(leaves, kind="stable")


@dataclass(frozen=True)
class ProductIndex(MetricIndex):
    """Rows with the factors of their scores, equation (1)."""

    metric: Metric
    rows: Array
    factors: Array
    centre: Array
    scale: float

    @classmethod
    def build(cls, X: Array, metric: Metric) -> MetricIndex:
        """Prepare the factors of the scores; identical rows, or rows whose squares overflow, are searched in blocks."""
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
        """Compute the distances of rows with scores below the threshold (3)."""
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
        """Return the other factor of the scores, and |x|^2; for queries too far away all rows are candidates."""
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


@dataclass(frozen=True)
class DeferredIndex(MetricIndex):
    """A small table: few queries measure every row, and only more of them prepare scores."""

    metric: Metric
    rows: Array

    @cached_property
    def prepared(self) -> MetricIndex:
        """The index that uses scores."""
        return ProductIndex.build(self.rows, self.metric)

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        """Number of rows."""
        return len(self.rows)

    def search(self, X: Array, k: int) -> Neighbors:
        """Measure all rows, or those whose scores are low enough."""
        if len(X) > _FEW_QUERIES:
            return self.prepared.search(X, k)
        X = np.ascontiguousarray(X, np.float64)
        found = Neighbors.none(len(X), k, self.n_rows)
        scores, squares = np.full((len(X), self.n_rows), -np.inf, np.float32), np.zeros(len(X))
        kernels.offer_tile(scores, 0, self.rows, X, squares, 1.0, *found)
        kernels.sort_neighbors(*found)
        return found


def _index_products(X: Array, metric: Metric) -> MetricIndex:
    """Return the index of aligned rows that multiplies matrices."""
    return ProductIndex.build(X, metric) if X.size > _SMALL_TABLE else DeferredIndex(metric, X)


def _grow(X: Array, members: Array, boxes: Array, size: int) -> None:
    """Split the rows into the `size` leaves of a tree: the first levels node by node, then subtrees in parallel."""
    engine = local_engine()

    def split(node: Array, budget: int = 1) -> Array:
        nodes = kernels.Scratch.empty().nodes
        nodes[0] = node
        top = kernels.grow_tree(X, members, boxes, nodes, 1, budget)
        while top and budget > 1:
            top = kernels.grow_tree(X, members, boxes, nodes, top, budget)
        return np.array(nodes[:top])

    level = np.array([[0, 0, size]])
    while 0 < len(level) < _SUBTREES and len(X) >= _SHARED_ROWS:
        level = np.concatenate(list(engine.map_ordered(split, list(level))))
    for _ in engine.map_ordered(lambda node: split(node, _GROWN), list(level)):
        pass


def _squares(Z: Array) -> Array:
    return np.asarray(np.einsum("ij,ij->i", Z, Z))


def build_index(X: Any, metric: Metric | PairwiseMetric, algorithm: str) -> SearchIndex:
    """Return a suitable index for the rows; `algorithm` is a hint.

    Parameters
    ----------
    X : block, or CSR matrix
    """
    if isinstance(metric, PairwiseMetric):
        is_given = isinstance(metric.what, str) and metric.what == "precomputed"
        return GivenIndex(int(X.shape[0])) if is_given else index_rows(X, metric, algorithm)
    return index_rows(X, metric.fitted_to(X), algorithm)


def index_rows(X: Any, metric: Metric | PairwiseMetric, algorithm: str) -> MetricIndex:
    """Return the index of rows, or of some of the rows that a metric was fitted to."""
    if isinstance(metric, PairwiseMetric):
        return PairwiseIndex.build(X, metric)
    X = metric.embedded(X)
    if sparse.issparse(X):
        from summula.neighbors.search.sparse_rows import SparseIndex

        return SparseIndex.build(X, metric)
    n, d = X.shape
    can_grow = metric.tag != kernels.HAMMING
    can_multiply = metric.tag == kernels.SQUARES and n >= _PRODUCT_ROWS
    if can_grow and (algorithm in ("kd_tree", "ball_tree") or (algorithm == "auto" and d <= _TREE_COLUMNS)):
        index = BlockIndex.build(X, metric, tree=n > (_TREE_ROWS if algorithm == "auto" else kernels.BLOCK))
        if algorithm == "auto" and can_multiply and d > _SURE_COLUMNS and not index.skips_most(X):
            return _index_products(aligned(X), metric)
        return index
    return _index_products(aligned(X), metric) if can_multiply else BlockIndex.build(X, metric, tree=False)
