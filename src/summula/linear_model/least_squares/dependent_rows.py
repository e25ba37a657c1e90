"""Covariances of least squares for dependent rows: within groups (cluster-robust), or over time (HAC).

With the scores s_i = w_i r_i u_i of the rows in orthonormal coordinates (`inference`), K of Cov = T K T' is

    cluster   K = c sum over groups of t t',   t = sum of s_i in the group,   c = G/(G - 1) (N - 1)/(N - p)     (1)
    HAC       K = S_0 + sum_l (1 - l/(L + 1)) (S_l + S_l'),   S_l = sum_i s_i s_{i-l}',   l = 1, ..., L         (2)

(2) uses the order of the rows, as in a time series; L is floor(4 (n/100)^(2/9)) by default.
References: Liang and Zeger (1986); Newey and West (1987, 1994); Greene, Econometric Analysis, section 20.5.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from summula.core.data.chunks import Chunk
from summula.core.data.layout.blocks import aligned, product
from summula.core.numerics.sums import Sum, merged_by
from summula.linear_model.least_squares.groups import GroupTotals
from summula.linear_model.least_squares.problem import Fit

__all__ = ["GroupMeat", "Scores", "SeriesMeat", "blocks_of_targets", "coordinates_of", "default_lags"]

Array = NDArray[np.float64]


class Scores(NamedTuple):
    """Inputs of a pass: the fit, whether there is an intercept, and the number of lags."""

    fit: Fit
    intercept: bool
    lags: int = 0


def default_lags(n_rows: int) -> int:
    """Newey and West's rule of thumb."""
    return int(np.floor(4 * (n_rows / 100) ** (2 / 9)))


def coordinates_of(chunk: Chunk, fit: Fit, intercept: bool) -> tuple[Array, Array]:
    """Return the orthonormal coordinates u of the rows of a chunk, and their residuals, one column per target."""
    assert chunk.y is not None
    assert fit.half_inverse is not None
    X = chunk.block(np.float64, fit.mean_x)
    residual = chunk.y - fit.mean_y - product(X, fit.coef)
    u = product(X, fit.half_inverse)
    if intercept:
        u = np.column_stack([np.full(len(chunk), fit.weight**-0.5), u])
    return u, residual


def scores_of(chunk: Chunk, given: Scores) -> tuple[Array, Array]:
    """Return the scores s_i, shape (n, targets * terms), and the weighted sums of squared residuals."""
    u, residual = coordinates_of(chunk, given.fit, given.intercept)
    w = chunk.weights
    scores = np.concatenate([u * (w * column)[:, None] for column in residual.T], axis=1)
    return scores, (w[:, None] * residual**2).sum(axis=0)


@dataclass(frozen=True)
class GroupMeat(Sum):
    """The totals of the scores of each group."""

    totals: GroupTotals = field(metadata=merged_by(GroupTotals.merge))
    squares: Array

    @classmethod
    def map(cls, chunk: Chunk, params: Scores) -> Self:
        """Return the sums of one chunk."""
        scores, squares = scores_of(chunk, params)
        keys, place = np.unique(np.asarray(chunk.groups), return_inverse=True)
        members = sparse.csr_array((np.ones(len(scores)), (place, np.arange(len(scores)))), (len(keys), len(scores)))
        return cls(GroupTotals(keys, np.asarray(members @ scores)), squares)

    def is_finite(self) -> bool:
        """Return whether all totals are finite."""
        return bool(np.isfinite(self.totals.totals).all())


@dataclass(frozen=True)
class SeriesMeat(Sum):
    """Products of scores at each lag, and the first and last scores, to be paired with those of adjacent rows.

    Attributes
    ----------
    products : ndarray of shape (lags + 1, targets * terms, targets * terms)
    first, last : ndarray of shape (at most lags, targets * terms)
    squares : ndarray of shape (targets,)
    """

    products: Array
    first: Array
    last: Array
    squares: Array

    @classmethod
    def map(cls, chunk: Chunk, params: Scores) -> Self:
        """Return the sums of one chunk."""
        scores, squares = scores_of(chunk, params)
        n, L = len(scores), params.lags
        products = np.zeros((L + 1, scores.shape[1], scores.shape[1]))
        for lag in range(min(L + 1, n)):
            products[lag] = aligned(scores[lag:]).T @ aligned(scores[: n - lag])
        return cls(products, scores[:L], scores[max(n - L, 0) :], squares)

    def merge(self, other: Self) -> Self:
        """Return the products of these rows and those that follow them."""
        products = self.products + other.products
        t, h = self.last, other.first
        for lag in range(1, len(products)):
            after = np.arange(max(0, lag - len(t)), min(lag, len(h)))  # indices in h of rows whose partner is in t
            if len(after):
                products[lag] += h[after].T @ t[len(t) + after - lag]
        L = len(products) - 1
        first = np.concatenate([self.first, other.first])[:L]
        both = np.concatenate([self.last, other.last])
        return type(self)(products, first, both[max(len(both) - L, 0) :], self.squares + other.squares)

    def weighted(self) -> Array:
        """Equation (2)."""
        L = len(self.products) - 1
        total: Array = self.products[0].copy()
        for lag in range(1, L + 1):
            total += (1 - lag / (L + 1)) * (self.products[lag] + self.products[lag].T)
        return total


def blocks_of_targets(matrix: Array, n_targets: int) -> list[Any]:
    """Return the diagonal blocks, one per target."""
    p = len(matrix) // n_targets
    return [matrix[j * p : (j + 1) * p, j * p : (j + 1) * p] for j in range(n_targets)]
