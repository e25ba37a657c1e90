"""An interior-point method for losses with a kink: each step is one weighted Gram matrix of the rows.

The hinge loss, and each side of the epsilon-insensitive loss, is max(0, h_k - a_k'v) with some a_k and h_k,

    hinge                  a = y z,  h = 1            epsilon-insensitive    a = z, h = y - eps;  a = -z, h = -y - eps

so that with R = I (0 for an intercept without penalty) the problem of `problem.py` is

    minimise  1/2 v'Rv + sum_k c_k xi_k      subject to   A v + xi - h = s >= 0,   xi >= 0                        (1)

Its multipliers are u (of s) and t = c - u (of xi), both >= 0, and R v = A'u. Newton's steps on

    R v = A'u,    A v + xi - h = s,    u s = mu,    t xi = mu,         mu -> 0                                    (2)

eliminate everything but v: with D = s/u + xi/t,

    (R + A'D^-1 A) dv = A'u - R v + A'D^-1 g                                                                     (3)

which Mehrotra's predictor and corrector solve with one factor. Some 10 to 25 steps suffice, whatever the scales of the
columns; coordinate descent may need thousands of epochs for the same gap. Rows are summed in blocks on all threads.

Mehrotra (1992), On the implementation of a primal-dual interior point method. Portnoy and Koenker (1997), The Gaussian
hare and the Laplacian tortoise, which solves median regression in this way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.engine.threads import one_blas_thread
from summula.optimize.solvers.newton_method import Factor
from summula.svm.linear.coordinates import CoordinateFit, judged_at
from summula.svm.linear.problem import LinearProblem
from summula.svm.linear.row_products import BLOCK_ROWS, RowProducts

__all__ = ["MOST_COLUMNS", "by_interior_point"]

Array = NDArray[Any]

MOST_COLUMNS = 512  # beyond, a Gram matrix per step takes longer than coordinate descent
_BACK = 0.995  # share of the way to the boundary
_IDLE = 5  # steps without progress after which the best point is returned
_ROUNDING = 1e-6  # of the objective: a smaller gap that steps no longer reduce is rounding (unscaled columns)
_EMPTY = 1e-16  # of the objective: nothing is left but rounding
_SETTLED = 1e-3  # share of C from a bound within which a multiplier counts as being there


class _Sides(NamedTuple):
    """The constraints of (1): `sign` and h of each side of the loss, one row each, and the weights c of the rows."""

    sign: Array  # (sides, n)
    h: Array
    c: Array  # (n,)

    @classmethod
    def of(cls, problem: LinearProblem, y: Array, c: Array) -> _Sides:
        if problem.positive >= 0:
            return cls(y[None, :], np.ones((1, len(y))), c)
        one = np.ones_like(y)
        return cls(np.array([one, -one]), np.array([y - problem.epsilon, -y - problem.epsilon]), c)


class _Point(NamedTuple):
    """A point strictly inside the bounds of (1), or a step from one to the next.

    `values` are s, xi, u and t, in that order along the first axis; all are > 0 at a point.
    """

    v: Array
    values: Array  # (4, sides, n)

    @property
    def slack(self) -> Array:
        """Return s and xi."""
        return self.values[:2]

    @property
    def multiplier(self) -> Array:
        """Return u and t."""
        return self.values[2:]

    def moved(self, step: _Point, length: float) -> _Point:
        return _Point(self.v + length * step.v, self.values + length * step.values)

    def longest(self, step: _Point) -> float:
        """Return the longest step before a variable becomes 0; at most 1."""
        return 1.0 / max(-float((step.values / self.values).min()), 1.0)


class _Products(NamedTuple):
    """u s and t xi of (2), and their sums."""

    values: Array  # (2, sides, n)
    gap: float
    mu: float

    @classmethod
    def at(cls, point: _Point) -> _Products:
        values = point.multiplier * point.slack
        us, txi = float(values[0].sum()), float(values[1].sum())
        return cls(values, us + txi, (us + txi) / values.size)


def by_interior_point(
    chunk: Chunk,
    y: Array,
    weight: Array,
    problem: LinearProblem,
    *,
    tolerance: float,
    max_steps: int,
    on_step: Callable[[Callable[[], CoordinateFit]], bool],
) -> CoordinateFit:
    """Minimise (1) until the duality gap is `tolerance` of the objective, or rounding ends the progress."""
    kept = np.flatnonzero(weight > 0)
    if len(kept) > BLOCK_ROWS:
        return _minimised(chunk, y, weight, problem, kept, tolerance, max_steps, on_step)
    with one_blas_thread():  # once for all steps: a single block needs no other threads
        return _minimised(chunk, y, weight, problem, kept, tolerance, max_steps, on_step)


def _minimised(
    chunk: Chunk,
    y: Array,
    weight: Array,
    problem: LinearProblem,
    kept: NDArray[np.intp],
    tolerance: float,
    max_steps: int,
    on_step: Callable[[Callable[[], CoordinateFit]], bool],
) -> CoordinateFit:
    solver = _Steps(RowProducts(chunk, problem.column, kept), problem, y[kept], weight[kept])
    best, best_gap, idle = solver.point, np.inf, 0

    def judged() -> CoordinateFit:
        fit = solver.judged(best, tolerance)
        return fit._replace(epochs=solver.count, dual=fit.dual.numbered(kept), beta=np.zeros(0))

    for _ in range(max_steps):
        solver.step()
        gap, primal = solver.estimate()
        idle = 0 if gap < 0.9 * best_gap else idle + 1
        best, best_gap = (solver.point, gap) if gap < best_gap else (best, best_gap)
        if on_step(judged):
            break
        if gap <= tolerance * primal:
            fit = judged()
            if fit.converged:
                return fit
            solver.refresh()
        if idle >= _IDLE or gap <= _EMPTY * primal:
            fit = judged()
            return fit._replace(converged=fit.gap <= max(tolerance, _ROUNDING) * abs(fit.primal))
    return judged()


class _Steps:
    """Predictor and corrector steps, and the gap where they are."""

    def __init__(self, rows: RowProducts, problem: LinearProblem, y: Array, c: Array) -> None:
        self.rows, self.problem, self.y, self.c = rows, problem, y, c
        self.sides = _Sides.of(problem, y, c)
        self.penalised = np.ones(rows.Z.shape[1])
        if problem.is_free:
            self.penalised[-1] = 0.0
        self.point, self.count = _start(self.sides, len(self.penalised)), 0
        self.products = _Products.at(self.point)
        self.refresh()

    def refresh(self) -> None:
        """Z v, and A'u - R v, from the rows: steps only change them, and rounding adds up."""
        self.scores = self.rows.scores(self.point.v)
        theta = _over_sides(self.sides.sign * self.point.multiplier[0])
        self.slope = self.rows.combined(theta) - self.penalised * self.point.v

    def estimate(self) -> tuple[float, float]:
        """The gap, apart from the remaining slope, and the objective."""
        v, slack = self.point.v, self.point.slack
        return self.products.gap, 0.5 * float(v @ (self.penalised * v)) + float((self.c * slack[1]).sum())

    def step(self) -> None:
        """One predictor and corrector step."""
        slack, multiplier = self.point.slack, self.point.multiplier
        products, sign, ratio = self.products, self.sides.sign, slack / multiplier
        D = ratio[0] + ratio[1]
        H = self.rows.gram(_over_sides(1.0 / D))
        H.flat[:: len(H) + 1] += self.penalised
        factor = Factor.of(H)
        missing = self.sides.h + slack[0] - slack[1] - sign * self.scores

        def solved(rest: Array) -> tuple[_Point, Array]:
            """The step for these values of mu - u s and mu - t xi, and what it adds to the scores."""
            rest = rest / multiplier
            g = missing + rest[0] - rest[1]
            dv = factor.solve(self.slope + self.rows.combined(_over_sides(sign * g / D)))
            more = self.rows.scores(dv)
            change = np.empty_like(self.point.values)
            np.divide(g - sign * more, D, out=change[2])
            np.negative(change[2], out=change[3])
            np.subtract(rest, ratio * change[2:], out=change[:2])
            return _Point(dv, change), more

        first, _ = solved(-products.values)
        after = _Products.at(self.point.moved(first, self.point.longest(first)))
        target = products.mu * (after.mu / products.mu) ** 3
        second, more = solved(target - products.values - first.multiplier * first.slack)
        length = _BACK * self.point.longest(second)
        self.point, self.count = self.point.moved(second, length), self.count + 1
        self.products = _Products.at(self.point)
        # Both equations of (2) that are linear lose this share of their error.
        self.scores, self.slope = self.scores + length * more, (1.0 - length) * self.slope

    def judged(self, point: _Point, tolerance: float) -> CoordinateFit:
        """Objective and gap at v; multipliers next to a bound are put there if the gap allows it."""
        here = point.multiplier[0]
        share = here / self.c
        settled = np.where(share < _SETTLED, 0.0, np.where(share > 1 - _SETTLED, self.c, here))
        for u in (settled, here):
            theta = _over_sides(self.sides.sign * u)
            fit = judged_at(self.rows, self.y, self.c, self.problem, point.v, theta, tolerance)
            if fit.converged:
                break
        # A certificate has to name few rows only: as long as most multipliers are between their bounds, go on.
        return fit._replace(converged=fit.converged and u is settled)


def _start(sides: _Sides, columns: int) -> _Point:
    """v = 0, multipliers in the middle, and slacks that meet (1)."""
    size = float(np.abs(sides.h).mean()) or 1.0
    values = np.empty((4, *sides.h.shape))
    values[:2] = np.maximum([-sides.h, sides.h], 0.0) + size
    values[2:] = sides.c / 2
    return _Point(np.zeros(columns), values)


def _over_sides(values: Array) -> Array:
    """The sums of the two sides of a loss; the values themselves where there is one."""
    return np.asarray(values[0] if len(values) == 1 else values[0] + values[1])
