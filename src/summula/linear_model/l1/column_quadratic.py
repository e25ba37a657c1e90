"""Least squares with many columns as an implicit quadratic: columns are gathered when they enter the working set.

With weights w of sum W, centred columns Xc and target yc,

    G = Xc'W Xc / W,   q = Xc'W yc / W,   c = yc'W yc / W,     slope  q - G v = Xc'W (yc - Xc v) / W            (1)

X is not copied, whether in C order, Fortran order or sparse; centring is applied as a correction to products. Only the
columns of a working set are copied, and only their part of G is computed, each entry once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from summula.core.data.layout.blocks import aligned, empty_block, inner, product
from summula.core.data.layout.fixed_order import (
    column_squares,
    gathered_columns,
    in_one_order,
    products_of_columns,
    transposed_product,
)
from summula.core.engine.engine import check_watch

__all__ = ["ColumnQuadratic"]

Array = NDArray[Any]

_SWEEPS = 5  # sweeps over sparse columns between evaluations of the gap


class ColumnQuadratic:
    """The quadratic (1) of one target on rows in memory.

    Parameters
    ----------
    X : ndarray of shape (n, d), or CSC matrix
    y : ndarray of shape (n,)
    weight : ndarray of shape (n,), or None
    fit_intercept : bool
        Whether columns and target are centred.
    """

    def __init__(self, X: Any, y: Array, weight: Array | None, fit_intercept: bool) -> None:
        self.sparse = sparse.issparse(X)
        self.X: Any = X if self.sparse else in_one_order(X)
        self.weight = weight
        n, d = X.shape
        self.W = float(n if weight is None else weight.sum())
        y = np.asarray(y, np.float64)
        self.mean_y = float(y.mean() if weight is None else inner(weight, y) / self.W) if fit_intercept else 0.0
        self.mean = self._times(np.ones(n) if weight is None else weight) / self.W if fit_intercept else np.zeros(d)
        self.y = y - self.mean_y
        self.c = inner(self.y, self._weighted(self.y)) / self.W
        self.q = self._correlated(self.y[:, None])[:, 0]
        self._place = np.full(d, -1, np.intp)
        self._columns = np.zeros(0, np.intp)
        self._Z: Any = None
        self._G = np.zeros((0, 0))

    def _weighted(self, r: Array) -> Array:
        return r if self.weight is None else (r.T * self.weight).T

    def _times(self, r: Array) -> Array:
        """Return X'r in float64."""
        if self.sparse:
            return np.asarray(self.X.T @ (r if self.X.dtype == np.float64 else r.astype(self.X.dtype)), np.float64)
        return transposed_product(self.X, r)

    def _correlated(self, R: Array) -> Array:
        """Return Xc'W R / W; a single column is computed as a matrix-vector product."""
        WR = self._weighted(R)
        if R.shape[1] == 1:
            return ((self._times(WR[:, 0]) - self.mean * float(WR.sum())) / self.W)[:, None]
        return np.asarray((self._times(WR) - np.outer(self.mean, WR.sum(axis=0))) / self.W)

    def squares(self) -> Array:
        """Return the diagonal of G."""
        w = np.ones(len(self.y)) if self.weight is None else self.weight
        if self.sparse:
            products = np.square(self.X.data.astype(np.float64)) * w[self.X.indices]
            total: Array = np.bincount(np.repeat(np.arange(len(self.q)), np.diff(self.X.indptr)), products, len(self.q))
        else:
            total = column_squares(self.X, w)
        return np.asarray(np.maximum(total / self.W - self.mean**2, 0.0))

    def _residual(self, V: Array, used: NDArray[np.intp]) -> Array:
        """Return yc - Xc V, for V (d, k) that is zero outside of the columns `used`."""
        R = np.repeat(self.y[:, None], V.shape[1], axis=1)
        if not len(used):
            return R
        if self.sparse:
            return np.asarray(R - self.X[:, used] @ V[used] + self.mean[used] @ V[used])
        self._gather(used)
        return np.asarray(R - product(self._Z, V[self._columns]))

    def slope(self, v: Array, used: NDArray[np.intp]) -> Array:
        """Return q - G v for all columns."""
        return self._correlated(self._residual(v[:, None], used))[:, 0]

    def slopes(self, V: Array) -> Array:
        """Return q - G V for all columns."""
        return self._correlated(self._residual(V, np.flatnonzero(V.any(axis=1))))

    def descend(
        self, columns: NDArray[np.intp], v: Array, penalty: Any, target: float, max_sweeps: int
    ) -> tuple[int, bool]:
        """Run coordinate descent on sparse columns, in place, without computing their part of G.

        Stops if the gap within the columns is at most `target`, or if sweeps progress slowly: then G is worth its cost.
        Returns the number of sweeps, and whether the target was reached.
        """
        from summula.optimize.solvers.l1_kernels import SparseColumns, sparse_sweep, survey

        Z = self.X[:, columns].astype(np.float64)
        mean, q = self.mean[columns], self.q[columns]
        weight = np.full(len(self.y), 1.0 / self.W) if self.weight is None else self.weight / self.W
        variance = np.maximum(np.asarray(Z.multiply(Z).T @ weight).ravel() - mean**2, 0.0)
        within = SparseColumns(Z.indptr, Z.indices, Z.data, mean, variance)
        r, shift = self.y - Z @ v, float(mean @ v)
        wrong, before, sweeps = np.empty_like(v), np.inf, 0
        while sweeps < max_sweeps:
            check_watch()
            shift = sparse_sweep(within, weight, r, shift, v, *penalty, _SWEEPS)
            sweeps += _SWEEPS
            # If columns are centred, weighted residuals sum to 0, so no correction for the means is needed.
            g = np.asarray(Z.T @ (weight * r)).ravel() + shift * mean
            gap = survey(v, g, q, self.c, *penalty, wrong)[1]
            if gap <= target or gap > before / 2:
                return sweeps, gap <= target
            before = gap
        return sweeps, False

    def block(self, columns: NDArray[np.intp]) -> Array:
        """Return the block of G of some columns."""
        self._gather(columns)
        if np.array_equal(columns, self._columns):
            return self._G
        at = self._place[columns]
        return np.asarray(self._G[np.ix_(at, at)])

    def _gather(self, columns: NDArray[np.intp]) -> None:
        """Copy columns that were not used before, and add their entries to G."""
        new = columns[self._place[columns] < 0]
        if not len(new):
            return
        k = len(self._columns)
        self._place[new] = np.arange(k, k + len(new))
        mean = self.mean[new]
        if self.sparse:
            Z = self.X[:, new].astype(np.float64)
            joined = Z if self._Z is None else sparse.hstack([self._Z, Z], format="csc")
            weighted = Z if self.weight is None else Z.multiply(self.weight[:, None]).tocsc()
            cross = np.asarray((joined.T @ weighted).todense()) / self.W
            self._columns = np.concatenate([self._columns, new])
            cross = cross - np.outer(self.mean[self._columns], mean)
        else:
            rows = empty_block(k + len(new), len(self.y))
            if self._Z is not None:
                rows[:k] = self._Z.T
            gathered_columns(self.X, new, mean, rows[k:])
            self._columns, joined = np.concatenate([self._columns, new]), rows.T  # contiguous columns
            weighted = aligned(rows[k:] if self.weight is None else rows[k:] * self.weight)
            cross = products_of_columns(rows, weighted, k) / self.W
        G = np.empty((k + len(new), k + len(new)))
        G[:k, :k], G[:, k:], G[k:, :k] = self._G, cross, cross[:k].T
        self._Z, self._G = joined, G
