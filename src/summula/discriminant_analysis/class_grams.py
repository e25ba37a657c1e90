"""Sums by class for fitting normal distributions: counts, weights, means and products of columns.

    n_k,   W_k = sum w,   s_k = sum w (x - o_k),   G_k = sum w (x - o_k)(x - o_k)'         over the rows of class k

The rows of a chunk are sorted by class once; each class is then one product of a contiguous block with itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.data.layout.blocks import empty_block, scratch_block
from summula.core.model_files import schema
from summula.core.numerics.sums import Sum

__all__ = ["ClassFourthPowers", "ClassGrams"]

Array = NDArray[np.float64]


@schema.saved(
    count=schema.Array("int64", "n_groups", low=0),
    weight=schema.Array("float64", "n_groups"),
    origin=schema.Array("float64", "n_groups", "n_features"),
    total=schema.Array("float64", "n_groups", "n_features", finite=False),
    products=schema.Array("float64", "n_groups", "n_features", "n_features", finite=False),
)
@dataclass(frozen=True)
class ClassGrams(Sum):
    """Products of every pair of columns, summed over the rows of each class about a separate origin.

    Attributes
    ----------
    count, weight : ndarray of shape (n_classes,)
        Number of rows with a positive weight, and sum of weights.
    origin, total : ndarray of shape (n_classes, n_features)
    products : ndarray of shape (n_classes, n_features, n_features)
    """

    count: NDArray[np.int64]
    weight: Array
    origin: Array
    total: Array
    products: Array

    @classmethod
    def map_groups(cls, chunk: Chunk, codes: NDArray[Any], n_groups: int, params: Array) -> Self:
        """Return the sums of each class of rows; `params` has an origin for each."""
        d, origin = chunk.n_features, params
        order = np.argsort(codes, kind="stable")
        order = order[np.searchsorted(codes[order], 0) :]  # codes below 0 are excluded
        own = codes[order]
        ends = np.searchsorted(own, np.arange(n_groups + 1))
        # An additional column of ones, so that the same products contain the totals.
        rows = scratch_block("class rows", len(order), d + 1)
        np.subtract(chunk.block(np.float64)[order], origin[own], out=rows[:, 1:])
        rows[:, 0] = 1.0
        weight = None if chunk.weight is None else chunk.weight[order].astype(np.float64)
        if weight is not None:
            rows *= np.sqrt(weight)[:, None]
        count, sums = np.zeros(n_groups, np.int64), np.zeros(n_groups)
        total, products = np.zeros((n_groups, d)), np.zeros((n_groups, d, d))
        for k in np.flatnonzero(np.diff(ends)).tolist():
            a, b = int(ends[k]), int(ends[k + 1])
            block = empty_block(b - a, d + 1)
            block[...] = rows[a:b]
            gram = block.T @ block
            count[k] = b - a if weight is None else np.count_nonzero(weight[a:b])
            sums[k] = b - a if weight is None else weight[a:b].sum()
            total[k], products[k] = gram[0, 1:], gram[1:, 1:]
        return cls(count, sums, origin, total, products)

    @property
    def column_squares(self) -> Array:
        """Sums of squares of each column in each class."""
        return np.diagonal(self.products, axis1=1, axis2=2)

    @property
    def column_totals(self) -> Array:
        """Sums of each column in each class."""
        return self.total

    @property
    def n_rows(self) -> int:
        """Number of rows, of all classes together."""
        return int(self.count.sum())

    @property
    def mean(self) -> Array:
        """Mean of each column in each class; 0 for classes without rows."""
        return np.where(self.weight[:, None] > 0, self.origin + self.total / self._divisor[:, None], 0.0)

    def mean_minus(self, points: Array) -> Array:
        """Return the means minus points, with the digits that means of columns far from 0 lose."""
        return np.asarray((self.origin - points) + self.total / self._divisor[:, None])

    @property
    def scatter(self) -> Array:
        """Return products about the means of the classes: G_k - s_k s_k' / W_k."""
        drift = np.einsum("ki,kj->kij", self.total, self.total / self._divisor[:, None])
        return np.asarray(self.products - drift)

    @property
    def _divisor(self) -> Array:
        return np.where(self.weight > 0, self.weight, 1.0)

    def _aligned(self, other: Self) -> tuple[Self, Self]:
        """Return both sums about the origins of this one, or of `other` for classes without rows here."""
        if self.origin is other.origin or np.array_equal(self.origin, other.origin):
            return self, other
        origin = np.where(self.weight[:, None] > 0, self.origin, other.origin)
        return self.recentre(origin), other.recentre(origin)

    @np.errstate(over="ignore", invalid="ignore")  # what overflows is reported by the fit
    def recentre(self, origin: Array) -> Self:
        """Return the same sums about other origins."""
        shift = origin - self.origin
        if not shift.any():
            return replace(self, origin=origin)
        cross = np.einsum("ki,kj->kij", self.total, shift)
        square = np.einsum("k,ki,kj->kij", self.weight, shift, shift)
        products = self.products - cross - np.swapaxes(cross, 1, 2) + square
        return replace(self, origin=origin, total=self.total - self.weight[:, None] * shift, products=products)


@dataclass(frozen=True)
class ClassFourthPowers(Sum):
    """The weighted sum of ||(x - m_k) / s_k||^4 over the rows of each class, which Ledoit-Wolf shrinkage needs."""

    total: Array

    @classmethod
    def map_groups(cls, chunk: Chunk, codes: NDArray[Any], n_groups: int, params: tuple[Array, Array]) -> Self:
        """Return the sums over one chunk; `params` are the means and the scales of the classes."""
        mean, scale = params
        own = np.maximum(codes, 0)
        away = (chunk.block(np.float64) - mean[own]) / scale[own]
        powers = (away * away).sum(axis=1) ** 2
        if chunk.weight is not None:
            powers = powers * chunk.weight
        total = np.bincount(own, weights=np.where(codes >= 0, powers, 0.0), minlength=n_groups)
        return cls(total.astype(np.float64))
