"""Statistics that are sums over rows: computed per chunk (map), added (merge) and, if possible, subtracted (unmerge).

Notation: z_i is row i of Z = [X, Y], w_i its weight, o a fixed origin near the mean.

    Moments            n, W = sum w,  s = sum w (z - o),  q = sum w (z - o)^2                    elementwise
    Gram               n, W,          s,                  G = sum w (z - o)(z - o)'
    TriangularFactor   R with R'R = sum w a a',  a = (1, z - o) or z - o                         by orthogonal steps

Sums about an origin near the mean are as accurate as compensated merging and, unlike it, can be subtracted.
Two sums with different origins are re-centred before they are added. R is twice as accurate as G (it does not square
the condition number), but rows cannot be removed from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk, Part
from summula.core.data.layout.blocks import aligned, product, scratch_block
from summula.core.engine.engine import TreeSum
from summula.core.model_files import schema
from summula.core.numerics.grouped import group_sizes, group_totals, memberships
from summula.core.numerics.sums import Sum, merged_by

__all__ = [
    "Gram",
    "Moments",
    "Statistic",
    "TriangularFactor",
    "blocks_of_part",
    "off_centre",
    "sum_of_chunks",
    "sums_of_part",
    "triangle",
    "weight_sums",
]

Array = NDArray[np.float64]

_OFF_CENTRE = 1e2  # ratio of products about the origin and about the mean above which sums are recomputed
_TILE_COLUMNS = 4  # columns of a tile of BLAS, on most processors

S = TypeVar("S", bound="Statistic")


class Statistic(Protocol):
    """Protocol of statistics that are sums over rows."""

    @classmethod
    def map(cls, chunk: Chunk, params: Any) -> Self:
        """Return the statistic of one chunk."""

    def merge(self, other: Self) -> Self:
        """Return the statistic of both sets of rows."""


def sum_of_chunks(statistic: type[S], chunks: Iterable[Chunk], params: Any) -> S:
    """Return the statistic of some chunks, added from left to right."""
    total: S | None = None
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # the sums are checked for non-finite values
        add = getattr(statistic, "accumulate", None)  # adds in place
        for chunk in chunks:
            if add is not None:
                total = add(total, chunk, params)
                continue
            one = statistic.map(chunk, params)
            total = one if total is None else total.merge(one)
    assert total is not None, "there is at least one chunk"
    return total


def blocks_of_part(statistic: type[S], params: Any, part: Part) -> list[tuple[int, S]]:
    """Return the statistic of a part as blocks of the tree over the grid steps (see `TreeSum`)."""
    tree: TreeSum[S] = TreeSum(statistic.merge, part.start // part.step)
    for chunks in part.by_step():
        tree.push(sum_of_chunks(statistic, chunks, params))
    return tree.blocks()


def sums_of_part(statistic: type[S], params: Any, part: Part) -> list[tuple[int, S]]:
    """Return the statistic of each chunk of a part, with the number of its first row."""
    return [(chunk.start, sum_of_chunks(statistic, [chunk], params)) for chunk in part.chunks()]


def weight_sums(chunk: Chunk) -> tuple[int, float, float]:
    """Return the number of rows with positive weight, and the sums of weights and of their logarithms (0 without)."""
    if chunk.weight is None:
        return len(chunk), float(len(chunk)), 0.0
    positive = chunk.weight[chunk.weight > 0]
    return len(positive), float(positive.sum()), float(np.log(positive).sum())


def _in_products(chunk: Chunk, origin: Array) -> Array:
    """Return an origin as it is subtracted from rows in single precision, which may not hold it; else itself."""
    return origin if chunk.dtype == np.float64 else origin.astype(chunk.dtype).astype(np.float64)


def _in_range(square: NDArray[Any], total: NDArray[Any], n: int) -> bool:
    """Whether sums of n squares in single precision neither overflow nor, but for constant columns, lose digits."""
    some = (square > 0) | (total != 0)
    return bool(np.isfinite(square).all() and (square[some] >= n * np.finfo(square.dtype).tiny).all())


def _shifted(chunk: Chunk, origin: Array, *, lead: bool = False, block: NDArray[Any]) -> NDArray[Any]:
    """Return the rows of [X, Y] minus the origin, times the root of their weight; `lead` prepends the constant 1.

    The result is written into `block`.
    """
    dtype, d, first = block.dtype, chunk.n_features, int(lead)
    shift = origin.astype(dtype)
    if chunk.is_sparse:
        np.subtract(chunk.X.toarray(), shift[:d], out=block[:, first : first + d], casting="unsafe")
    else:
        chunk.write(block[:, first : first + d], shift[:d])
    if chunk.y is not None:
        np.subtract(chunk.y, shift[d:], out=block[:, first + d :], casting="unsafe")
    if lead:
        block[:, 0] = 1.0
    if chunk.weight is not None:
        block *= np.sqrt(chunk.weight)[:, None].astype(dtype)
    return block


def _by_column(dtype: str, **limits: Any) -> schema.Field:
    """Declare one value per column, or one per group and column."""
    shapes = (("n_features",), ("n_groups", "n_features"))
    return schema.Either(*(schema.Array(dtype, *shape, **limits) for shape in shapes))


@schema.saved(
    "core.statistics.Moments",
    count=_by_column("int64", low=0),
    weight=_by_column("float64"),
    origin=_by_column("float64"),
    total=_by_column("float64", finite=False),
    square=_by_column("float64", finite=False),
)
@dataclass(frozen=True)
class Moments(Sum):
    """Count, weight, mean and variance of each column of X, ignoring missing values (NaN).

    Attributes
    ----------
    count, weight, total, square : ndarray of shape (n_features,), or (n_groups, n_features) for groups of rows
        Number of rows, sum of weights, and sums of (x - origin) and its square, over the non-missing values.
    origin : ndarray of the same shape
    """

    count: NDArray[np.int64]
    weight: Array
    origin: Array
    total: Array
    square: Array

    @property
    def column_squares(self) -> Array:
        """Sums of squares of each column."""
        return self.square

    @property
    def column_totals(self) -> Array:
        """Sums of each column."""
        return self.total

    @classmethod
    @np.errstate(over="ignore", invalid="ignore")
    def map(cls, chunk: Chunk, params: Array) -> Self:
        """Return the moments of the features of one chunk about the origin `params`."""
        d = chunk.n_features
        if chunk.is_sparse:
            return cls._of_sparse(chunk, params)
        shift = _in_products(chunk, params)
        block = chunk.write(chunk.blank(d), shift.astype(chunk.dtype))
        w = np.ones(len(chunk), chunk.dtype) if chunk.weight is None else chunk.weight.astype(chunk.dtype)
        total = product(block.T, w[:, None])[:, 0]
        count, weight = np.full(d, len(chunk)), np.full(d, w.sum(dtype=np.float64))
        if np.isnan(total).any():
            present = ~np.isnan(block)
            count, weight = present.sum(axis=0), w.astype(np.float64) @ present
            block[~present] = 0.0
            total = product(block.T, w[:, None])[:, 0]
        np.multiply(block, block, out=block)
        square = product(block.T, w[:, None])[:, 0]
        if chunk.dtype != np.float64 and not _in_range(square, total, len(chunk)):
            return cls.map(replace(chunk, dtype=np.dtype(np.float64)), params)
        return cls(count, weight, shift, total.astype(np.float64), square.astype(np.float64)).recentre(params)

    @classmethod
    def _of_sparse(cls, chunk: Chunk, params: Array) -> Self:
        X = chunk.rows.about(params).csr()
        w = chunk.weights
        is_missing = np.isnan(X.data)
        count, weight = np.full(X.shape[1], len(chunk)), np.full(X.shape[1], w.sum())
        if is_missing.any():
            rows = np.repeat(np.arange(len(chunk)), np.diff(X.indptr))[is_missing]
            count = count - np.bincount(X.indices[is_missing], minlength=X.shape[1])
            weight = weight - np.bincount(X.indices[is_missing], weights=w[rows], minlength=X.shape[1])
        kept = type(X)((np.where(is_missing, 0.0, X.data).astype(np.float64), X.indices, X.indptr), shape=X.shape)
        total, square = kept.T @ w, kept.multiply(kept).T @ w
        return cls(count, weight, params, np.asarray(total).ravel(), np.asarray(square).ravel())

    @classmethod
    def map_groups(cls, chunk: Chunk, codes: NDArray[Any], n_groups: int, params: Array) -> Self:
        """Return the moments of each group of rows, as arrays of shape (n_groups, n_features).

        `params` is one origin for all groups, or one row per group.
        """
        origin = np.ascontiguousarray(np.broadcast_to(params, (n_groups, chunk.n_features)))
        if chunk.is_sparse:
            return cls._of_sparse_groups(chunk, codes, origin)
        return cls.of_block(chunk.in_place(np.float64), codes, chunk.weight, origin)

    @classmethod
    def of_block(cls, block: Array, codes: NDArray[Any], weight: Array | None, origin: Array) -> Self:
        """Return the moments of each group of the rows of a block in C order; `origin` has one row per group."""
        n_groups = len(origin)
        total, square = group_totals(block, codes, weight, origin)
        if np.isnan(total).any():
            present = aligned(~np.isnan(block), np.float64)
            counts = np.rint(memberships(codes, None, n_groups) @ present).astype(np.int64)
            weights = np.asarray(memberships(codes, weight, n_groups) @ present)
            filled = np.where(present > 0, block, origin[np.maximum(codes, 0)])
            return cls(counts, weights, origin, *group_totals(filled, codes, weight, origin))
        count, sums = group_sizes(codes, weight, n_groups)
        counts = np.broadcast_to(count[:, None], origin.shape).copy()
        weights = np.broadcast_to(sums[:, None], origin.shape).copy()
        return cls(counts, weights, origin, total, square)

    @classmethod
    def _of_sparse_groups(cls, chunk: Chunk, codes: NDArray[Any], origin: Array) -> Self:
        members = memberships(codes, chunk.weight, len(origin))
        count = np.bincount(codes[codes >= 0], minlength=len(origin))
        X = chunk.rows.about(origin[0]).csr().astype(np.float64)
        is_missing = np.isnan(X.data)
        missing = type(X)((is_missing.astype(np.float64), X.indices, X.indptr), shape=X.shape)
        kept = type(X)((np.where(is_missing, 0.0, X.data), X.indices, X.indptr), shape=X.shape)
        ones = type(members)((np.ones_like(members.data), members.indices, members.indptr), shape=members.shape)
        counts = count[:, None] - np.rint((ones @ missing).toarray()).astype(np.int64)
        weights = np.asarray(members.sum(axis=1))[:, None] - (members @ missing).toarray()
        total, square = (members @ kept).toarray(), (members @ kept.multiply(kept)).toarray()
        return cls(counts, weights, np.tile(origin[0], (len(origin), 1)), total, square).recentre(origin)

    @property
    def n_rows(self) -> int:
        """Total number of rows over all groups."""
        return int(np.max(np.sum(np.atleast_2d(self.count), axis=0)))

    @property
    def mean(self) -> Array:
        """Mean of each column."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.origin + self.total / self.weight

    def mean_minus(self, point: Array) -> Array:
        """Return the mean minus a point, with the digits that the mean of columns far from 0 loses."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray((self.origin - point) + self.total / self.weight)

    @property
    def variance(self) -> Array:
        """Biased variance of each column (divided by the sum of weights)."""
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            drift = self.total / self.weight
            return np.maximum(self.square / self.weight - drift**2, 0.0)

    def is_complete(self, n_rows: int) -> bool:
        """Return whether no value is missing."""
        return self.is_finite() and bool((np.sum(np.atleast_2d(self.count), axis=0) == n_rows).all())

    def unmerge(self, other: Self) -> Self:
        """Return the moments without the rows of `other`; exactly 0 if no rows remain."""
        left = super().unmerge(other)
        some = left.count != 0
        weight, total, square = (np.where(some, part, 0.0) for part in (left.weight, left.total, left.square))
        return replace(left, weight=weight, total=total, square=square)

    def _aligned(self, other: Self) -> tuple[Self, Self]:
        """Return both about the origin of these moments, or that of `other` if these have no rows."""
        if self.origin is other.origin or np.array_equal(self.origin, other.origin):
            return self, other
        origin = np.where(self.weight > 0, self.origin, other.origin)
        return self.recentre(origin), other.recentre(origin)

    def recentre(self, origin: Array) -> Self:
        """Return the same sums about another origin."""
        if origin is self.origin:
            return self
        shift = origin - self.origin
        if not shift.any():
            return replace(self, origin=origin)
        square = self.square - 2 * shift * self.total + shift**2 * self.weight
        return replace(self, origin=origin, total=self.total - shift * self.weight, square=square)


_ABOUT_ORIGIN: dict[str, schema.Field] = {
    "count": schema.Integer(0),
    "weight": schema.Real(),
    "log_weight": schema.Real(),
    "origin": schema.Array("float64", "n_columns"),
}


@schema.saved(
    "core.statistics.Gram",
    **_ABOUT_ORIGIN,
    total=schema.Array("float64", "n_columns", finite=False),
    products=schema.Array("float64", "n_columns", "n_columns", finite=False),
)
@dataclass(frozen=True)
class Gram(Sum):
    """Gram matrix: products of all pairs of columns of [X, Y] about an origin, summed over weighted rows.

    Attributes
    ----------
    count : int
        Number of rows with positive weight.
    weight : float
        Sum of weights.
    log_weight : float
        Sum of the logarithms of positive weights (0 without weights), used in likelihoods.
    origin, total : ndarray of shape (p,)
    products : ndarray of shape (p, p)
    """

    count: int
    weight: float
    log_weight: float
    origin: Array
    total: Array
    products: Array

    @classmethod
    def map(cls, chunk: Chunk, params: Array) -> Self:
        """Return the Gram matrix of one chunk about the origin `params`."""
        shift = params if chunk.is_sparse else _in_products(chunk, params)
        total, products = _sparse_products(chunk, params) if chunk.is_sparse else _dense_products(chunk, shift)
        return cls(*weight_sums(chunk), shift, total, products).recentre(params)

    @classmethod
    def accumulate(cls, before: Self | None, chunk: Chunk, params: Array) -> Self:
        """Add the Gram matrix of one chunk to that of earlier ones, in place (None at first)."""
        one = cls.map(chunk, params)
        if before is None:
            return one
        before.total[:] += one.total
        before.products[:] += one.products
        others = {name: getattr(before, name) + getattr(one, name) for name in ("count", "weight", "log_weight")}
        return replace(before, **others)

    @property
    def mean(self) -> Array:
        """Mean of each column."""
        return self.origin + self.total / self.weight

    def centred(self) -> Array:
        """Return the products about the mean, G - s s' / W."""
        return self.products - np.outer(self.total, self.total / self.weight)

    def recentre(self, origin: Array) -> Self:
        """Return the same sums about another origin."""
        if origin is self.origin:  # usual for the chunks of one pass
            return self
        shift = origin - self.origin
        if not shift.any():
            return replace(self, origin=origin)
        cross = np.outer(self.total, shift)
        products = self.products - cross - cross.T + self.weight * np.outer(shift, shift)
        return replace(self, origin=origin, total=self.total - self.weight * shift, products=products)

    def transformed(self, M: Array, offset: Array) -> Self:
        """Return the sums of the rows M z + offset."""
        products = M @ self.products @ M.T
        products = (products + products.T) / 2
        return replace(self, origin=M @ self.origin + offset, total=M @ self.total, products=products)


def off_centre(gram: Gram) -> bool:
    """Return whether the origin was so far from the mean that centring loses digits."""
    about_origin = gram.products.diagonal()
    about_mean = about_origin - gram.total * (gram.total / gram.weight)
    return bool(((about_origin > _OFF_CENTRE * about_mean) & (about_origin > 0)).any())


def _width(chunk: Chunk) -> int:
    """Return the number of columns of [X, Y]."""
    return chunk.n_features + (0 if chunk.y is None else chunk.y.shape[1])


def _dense_products(chunk: Chunk, origin: Array) -> tuple[Array, Array]:
    width, dtype = _width(chunk), chunk.dtype
    # BLAS multiplies tiles of several columns: one more column for the sums costs nothing, or a further row of tiles.
    lead = width % _TILE_COLUMNS != 0
    block = _shifted(chunk, origin, lead=lead, block=scratch_block("Gram", len(chunk), lead + width, dtype))
    with np.errstate(over="ignore", invalid="ignore"):
        # NumPy recognises a matrix times its own transpose and computes one triangle (syrk), without the GIL.
        products = (block.T @ block).astype(np.float64, copy=False)
        if lead:
            return products[0, 1:].copy(), products[1:, 1:].copy()
        return product(block.T, np.sqrt(chunk.weights).astype(dtype, copy=False)).astype(np.float64), products


def _sparse_products(chunk: Chunk, origin: Array) -> tuple[Array, Array]:
    d = chunk.n_features
    X = chunk.rows.about(origin[:d]).csr()
    w = chunk.weights
    Y = np.empty((len(chunk), 0)) if chunk.y is None else chunk.y - origin[d:]
    Yw = Y * w[:, None]
    weighted = (
        X
        if chunk.weight is None
        else type(X)((X.data * np.repeat(w, np.diff(X.indptr)), X.indices, X.indptr), shape=X.shape)
    )
    products = np.empty((d + Y.shape[1], d + Y.shape[1]))
    products[:d, :d] = (weighted.T @ X).toarray()
    products[:d, d:] = X.T @ Yw
    products[d:, :d] = products[:d, d:].T
    products[d:, d:] = Y.T @ Yw
    total = np.concatenate([np.asarray(X.T @ w, dtype=np.float64), Yw.sum(axis=0)])
    return total, products


@schema.saved(
    "core.statistics.TriangularFactor",
    **_ABOUT_ORIGIN,
    R=schema.Array("float64", "n_rows", "n_terms", finite=False),
)
@dataclass(frozen=True)
class TriangularFactor(Sum):
    """A matrix R of at most p rows with R'R = A'A, for the weighted rows A = (1, z - o), or z - o without intercept.

    R is A itself if A has no more rows than columns, else the triangular factor of its QR factorisation.
    """

    count: int
    weight: float
    log_weight: float
    origin: Array
    R: Array = field(metadata=merged_by(lambda a, b: _triangle(np.vstack([a, b]))))

    @classmethod
    def map(cls, chunk: Chunk, params: tuple[Array, bool]) -> Self:
        """Return the factor of one chunk; `params` is the origin and whether to prepend the constant 1."""
        origin, intercept = params
        blank = chunk.blank(int(intercept) + _width(chunk), np.float64)
        block = _shifted(chunk, origin, lead=intercept, block=blank)
        return cls(*weight_sums(chunk), origin, _triangle(block))

    def recentre(self, origin: Array) -> Self:
        """Return self if the origin is the same; factors cannot be moved to another origin."""
        if not np.array_equal(self.origin, origin):
            raise ValueError("triangular factors about different origins cannot be merged")
        return self


def _triangle(rows: Array) -> Array:
    if len(rows) <= rows.shape[1]:
        return rows
    if not np.isfinite(rows).all():
        return np.full((rows.shape[1], rows.shape[1]), np.nan)
    return triangle(rows)


def triangle(rows: Array) -> Array:
    """Return R of the QR factorisation."""
    return np.asarray(np.linalg.qr(rows, mode="r"))
