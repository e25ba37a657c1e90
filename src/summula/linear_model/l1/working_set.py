"""Dense rows in memory with many columns: the sums of a likelihood on a few of them, and the slope of all.

    eta = o + b + sum of the columns in use,      slope_j = sum_i w_i s_i (x_ij - o_j)                          (1)

X is not modified. Columns are copied, minus their origins, when they are first used, so the sums of `glm/sums.py` on a
working set access only the copies; (1) for all columns is one product with X, corrected for the origins.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.layout.blocks import empty_block, product
from summula.core.data.layout.fixed_order import in_one_order, transposed_product
from summula.core.engine.threads import solving
from summula.core.numerics.origins import far_origin
from summula.linear_model.glm.objective import GlmProblem, Objective
from summula.linear_model.glm.sums import Slopes, dense_sums, derivatives_at, inner_of, weighted_rows

if TYPE_CHECKING:
    from summula.core.estimator.run import Run

__all__ = ["WorkingSetColumns"]

Array = NDArray[Any]
Columns = NDArray[np.intp]

_LEADING_ROWS = 256  # rows used to determine whether columns are far from 0


class WorkingSetColumns(Objective):
    """J on dense rows in memory; `on` restricts it to some of the columns."""

    def __init__(self, run: Run, problem: GlmProblem, origin: Array) -> None:
        super().__init__(run, problem, origin)
        chunk = run.source.chunk(0, run.source.n_rows)
        self.chunk, self.weight = weighted_rows(chunk, problem.class_weight)
        # Columns far from 0 are shifted: a product with them would lose significant digits.
        few = self.chunk.take(slice(0, _LEADING_ROWS))
        self.moved = far_origin(few) if problem.intercept else np.zeros(len(origin))
        X = self.chunk.block(np.float64, self.moved) if self.moved.any() else self.chunk.X
        self.X: Array = in_one_order(X.astype(self.chunk.X.dtype, copy=False))
        self._place = np.full(self.X.shape[1], -1, np.intp)
        self._held: Array = empty_block(0, len(self.X), self.X.dtype).T

    def on(self, columns: Columns, moving: NDArray[np.bool_]) -> FewColumns:
        """Return J on some of the columns; with several outputs, only the slopes `moving`, (K, columns), may change."""
        return FewColumns(self, columns, moving)

    def block(self, columns: Columns) -> Array:
        """Return some columns minus their origins, after a column of ones for the intercept."""
        new = columns[self._place[columns] < 0]
        if len(new):
            k = self._held.shape[1]
            self._place[new] = np.arange(k, k + len(new))
            held = empty_block(k + len(new), len(self.X), self.X.dtype).T  # contiguous columns
            held[:, :k] = self._held
            np.subtract(self.X[:, new], (self.origin - self.moved)[new].astype(self.X.dtype), out=held[:, k:])
            self._held = held
        n, width = len(self.X), self.first + len(columns)
        by_column = self.problem.outputs == 1  # (softmax is computed row by row)
        block = empty_block(width, n, self.X.dtype).T if by_column else empty_block(n, width, self.X.dtype)
        block[:, : self.first] = 1.0
        block[:, self.first :] = self._held[:, self._place[columns]]
        return block

    def sum(self, x: Array, order: int) -> Slopes:
        """Return value and slope at x, whose nonzero columns are copied; no Hessian of all columns is available."""
        theta = self.theta(x)
        used = np.flatnonzero(theta[self.first :].any(axis=1))
        few = np.concatenate([theta[: self.first], theta[self.first :][used]])
        point = self.at(x, 1)
        eta = predictor(self, self.block(used), few)
        with np.errstate(over="ignore", invalid="ignore"):
            value, slope, curvature = derivatives_at(point, self.target, eta, self.weight)
        gradient = np.empty_like(theta)
        total = slope.sum(axis=0)
        gradient[: self.first] = total
        for k in range(slope.shape[1]):  # a matrix-vector product is limited by memory bandwidth
            gradient[self.first :, k] = transposed_product(self.X, slope[:, k])
            gradient[self.first :, k] -= (self.origin - self.moved) * total[k]
        return Slopes(value, gradient, None, inner_of(curvature), np.zeros(0), self.total_weight)

    @functools.cached_property
    def target(self) -> Array:
        """Return the target."""
        return self.chunk.target

    @property
    def total_weight(self) -> float:
        """Return the sum of weights."""
        return float(len(self.chunk) if self.weight is None else self.weight.sum())


class FewColumns(Objective):
    """J on some of the columns of rows in memory."""

    def __init__(self, whole: WorkingSetColumns, columns: Columns, moving: NDArray[np.bool_]) -> None:
        super().__init__(whole.run, whole.problem, whole.origin[columns])
        self.whole, self.p = whole, self.first + len(columns)
        self.held = whole.block(columns)
        if self.problem.outputs > 1:
            intercepts = np.ones((self.problem.outputs, self.first), bool)
            self.free = np.flatnonzero(np.hstack([intercepts, moving]))

    def sum(self, x: Array, order: int) -> Slopes:
        """Return the sums at x."""
        whole, point = self.whole, self.at(x, order)
        some = self.problem.outputs > 1
        with np.errstate(over="ignore", invalid="ignore"):
            eta = predictor(whole, self.held, point.theta)
            value, slope, curvature = derivatives_at(point, whole.target, eta, whole.weight)
            # (A Hessian scales the block in place; its columns are contiguous.)
            block = _copied(self.held) if order == 2 and not some else self.held
            first = point._replace(order=1) if some else point
            gradient, hessian, largest = dense_sums(block, slope, curvature, first)
            if some and order == 2:
                hessian = self._hessian(*curvature)
        return Slopes(value, gradient, hessian, inner_of(curvature), largest, whole.total_weight)

    def _hessian(self, w: Array, p: Array) -> Array:
        """Return the sum of w (diag(p) - p p') (x) z z', for the parameters that may change."""
        output, column = np.divmod(self.free, self.p)
        wide = np.sqrt(w)[:, None] * p
        wide = np.asarray(wide[:, output] * self.held[:, column], self.held.dtype)
        H = -np.asarray(wide.T @ wide, np.float64)
        with solving(len(self.free) // self.problem.outputs):
            for k in range(self.problem.outputs):
                mine = np.flatnonzero(output == k)
                scaled = self.held[:, column[mine]] * np.sqrt(w * p[:, k]).astype(self.held.dtype)[:, None]
                H[np.ix_(mine, mine)] += scaled.T @ scaled
        return H


def _copied(block: Array) -> Array:
    """Return an aligned copy in Fortran order."""
    copy = empty_block(block.shape[1], len(block), block.dtype).T
    copy[...] = block
    return copy


def predictor(whole: WorkingSetColumns, block: Array, theta: Array) -> Array:
    """Return eta of all rows."""
    eta = product(block, theta.astype(block.dtype)).astype(np.float64, copy=False)
    offset = whole.chunk.offset
    return eta if offset is None else eta + offset[:, None]
