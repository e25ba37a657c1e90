"""An interior-point method for losses with a kink: each step is one weighted Gram matrix of the rows.

The hinge loss, and each side of the epsilon-insensitive loss, is max(0, h_k - a_k'v) with some a_k and h_k,

    hinge                  a = y z,  h = 1            epsilon-insensitive    a = z, h = y - eps;  a = -z, h = -y - eps

so that with R = I (0 for an unpenalised intercept) the problem of `problem.py` is

    minimise  1/2 v'Rv + sum_k c_k xi_k      subject to   A v + xi - h = s >= 0,   xi >= 0                        (1)

Its multipliers are u (of s) and t = c - u (of xi), both >= 0, and R v = A'u. Newton's steps on

    R v = A'u,    A v + xi - h = s,    u s = mu,    t xi = mu,         mu -> 0                                    (2)

eliminate everything but v: with D = s/u + xi/t,

    (R + A'D^-1 A) dv = A'u - R v + A'D^-1 g                                                                     (3)

which Mehrotra's predictor and corrector solve with one factor. About 10 to 25 steps suffice, independent of the scales
of the columns; coordinate descent may need thousands of epochs for the same gap. Rows are summed in blocks on all
threads.

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
from summula.svm.linear.row_products import BLOCK_ROWS, RowProducts, is_small

__all__ = ["MOST_COLUMNS", "by_interior_point"]

Array = NDArray[Any]

MOST_COLUMNS = 512  # above this, a Gram matrix per step takes longer than coordinate descent
_BACK = 0.995  # fraction of the step to the boundary
_IDLE = 5  # number of steps without progress after which the best point is returned
_ROUNDING = 1e-6  # relative to the objective: a smaller gap that steps no longer reduce is rounding (unscaled columns)
_EMPTY = 1e-16  # relative to the objective: a smaller gap is rounding
_SETTLED = 1e-3  # distance to a bound, relative to C, within which a multiplier counts as being at it
_HEAVY = 16.0  # larger weights are reduced to this multiple of n times the median weight
_RAISE = 1e4  # factor by which that limit is raised if a multiplier reaches it


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
    """A strictly feasible point of (1).

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


class _Step(NamedTuple):
    """A step of v, the change of Z v, its length, and the gap u's + t'xi after it."""

    v: Array
    more: Array
    length: float
    gap: float


class _Work(NamedTuple):
    """Arrays shared by the kernels of one step: see `interior_point_kernels.py`."""

    wide: Array  # (4, sides * n): the inverse of D, two residuals, g
    rows: Array  # (3, n): weight, theta, and the change of the scores
    columns: Array  # (2, p): the scale of a factor, and the step of v
    L: Array  # (p, p)

    @classmethod
    def of(cls, sides: _Sides, columns: int) -> _Work:
        n = len(sides.c)
        return cls(np.empty((4, sides.h.size)), np.empty((3, n)), np.empty((2, columns)), np.empty((columns, columns)))


def _vectors(values: Array) -> tuple[Array, ...]:
    """Return the values of all sides and rows for the kernels: one vector for each index of the first axis."""
    return tuple(values.reshape(len(values), -1))


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
    with one_blas_thread():  # once for all steps: a single block uses no other threads
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
    """Solve with weights clipped to `most`: multipliers below that are optimal for the true weights, too.

    Steps from multipliers between 0 and 1e10 for some rows, and 1 for others, would end far from the optimum.
    """
    y, weight = y[kept], weight[kept]
    rows, most = RowProducts(chunk, problem.column, kept), _HEAVY * len(kept) * _median(weight)
    while True:
        solver = _Steps(rows, problem, y, weight, np.minimum(weight, most))
        fit = _iterated(solver, kept, tolerance, max_steps, on_step)
        heavy = weight > most
        used = np.abs(_over_sides(solver.sides.sign * solver.point.multiplier[0]))
        if fit.converged or (used[heavy] < most / 2).all():
            return fit
        most *= _RAISE


def _iterated(
    solver: _Steps,
    kept: NDArray[np.intp],
    tolerance: float,
    max_steps: int,
    on_step: Callable[[Callable[[], CoordinateFit]], bool],
) -> CoordinateFit:
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
    """Predictor and corrector steps, and the gap at the current point."""

    def __init__(self, rows: RowProducts, problem: LinearProblem, y: Array, weight: Array, c: Array) -> None:
        self.rows, self.problem, self.y, self.weight, self.c = rows, problem, y, weight, c
        self.sides = _Sides.of(problem, y, c)
        self.penalised = np.ones(rows.Z.shape[1])
        if problem.is_free:
            self.penalised[-1] = 0.0
        self.point, self.count = _start(self.sides, len(self.penalised)), 0
        self.gap = float((self.point.multiplier * self.point.slack).sum())
        self.flat = np.array([self.sides.sign.reshape(-1), self.sides.h.reshape(-1)])
        self.work = _Work.of(self.sides, len(self.penalised))
        self._few = is_small(rows.Z)
        self.refresh()

    def refresh(self) -> None:
        """Recompute Z v and A'u - R v from the rows, since rounding errors accumulate in their updates."""
        self.scores = self.rows.scores(self.point.v)
        theta = _over_sides(self.sides.sign * self.point.multiplier[0])
        self.slope = self.rows.combined(theta) - self.penalised * self.point.v

    def estimate(self) -> tuple[float, float]:
        """Return the gap, ignoring the remaining slope, and the objective."""
        return self.gap, self.objective

    def step(self) -> None:
        """Perform one predictor and corrector step."""
        after, self.count = np.empty_like(self.point.values), self.count + 1
        if self._few and self._step_few_rows(after):
            return
        dv, more, length, self.gap = self._step(after)
        self.point = _Point(self.point.v + length * dv, after)
        # The residuals of the two linear equations of (2) decrease by this fraction.
        self.scores, self.slope = self.scores + length * more, (1.0 - length) * self.slope
        v, slack = self.point.v, self.point.slack
        self.objective = 0.5 * float(v @ (self.penalised * v)) + float((self.c * slack[1]).sum())

    def _step(self, after: Array) -> _Step:
        from summula.svm.linear.interior_point_kernels import correct, move, predict

        (sign, h), (D, *rests, g), values = self.flat, self.work.wide, _vectors(self.point.values)
        rest, (weight, theta, _) = tuple(rests), self.work.rows
        predict(values, sign, h, self.scores, D, rest, g, weight, theta)
        H = self.rows.gram(weight)
        H.flat[:: len(H) + 1] += self.penalised
        factor = Factor.of(H)
        dv = factor.solve(self.slope + self.rows.combined(theta))
        correct(values, sign, h, self.scores, D, rest, g, self.rows.scores(dv), theta)
        dv = factor.solve(self.slope + self.rows.combined(theta))
        more = self.rows.scores(dv)
        return _Step(dv, more, *move(values, sign, D, rest, g, more, _BACK, _vectors(after)))

    def _step_few_rows(self, after: Array) -> bool:
        """Do the same in one kernel call; return False if (3) is singular."""
        from summula.svm.linear.interior_point_kernels import step_few_rows

        (v, values), wide, v_after = self.point, self.flat.shape[1], np.empty_like(self.slope)
        given = self.rows.Z, v, self.slope, self.scores, self.penalised, self.c, self.flat, values.reshape(4, wide)
        length, gap, objective = step_few_rows(*given, *self.work, _BACK, v_after, after.reshape(4, wide))
        if length:
            self.point, self.gap, self.objective = _Point(v_after, after), gap, objective
        return bool(length)

    def judged(self, point: _Point, tolerance: float) -> CoordinateFit:
        """Return objective and gap at v; multipliers near a bound are moved to it if the gap allows it."""
        here = point.multiplier[0]
        share = here / self.c
        settled = np.where(share < _SETTLED, 0.0, np.where(share > 1 - _SETTLED, self.c, here))
        for u in (settled, here):
            theta = _over_sides(self.sides.sign * u)
            fit = judged_at(self.rows, self.y, self.weight, self.problem, point.v, theta, tolerance)
            if fit.converged:
                break
        # A certificate should list few rows only: continue as long as most multipliers are between their bounds.
        return fit._replace(converged=fit.converged and u is settled)


def _median(weight: Array) -> float:
    """Return the median; equal weights need no sorting."""
    equal = len(weight) > 0 and (weight == weight[0]).all()
    return float(weight[0] if equal else np.median(weight))


def _start(sides: _Sides, columns: int) -> _Point:
    """Return v = 0, multipliers in the middle of their bounds, and slacks that satisfy (1)."""
    size = float(np.abs(sides.h).mean()) or 1.0
    values = np.empty((4, *sides.h.shape))
    values[:2] = np.maximum([-sides.h, sides.h], 0.0) + size
    values[2:] = sides.c / 2
    return _Point(np.zeros(columns), values)


def _over_sides(values: Array) -> Array:
    """Return the sums over the two sides of a loss, or the values themselves for a one-sided loss."""
    return np.asarray(values[0] if len(values) == 1 else values[0] + values[1])
