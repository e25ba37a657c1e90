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
from scipy import sparse

from summula.core.data.chunks import Chunk
from summula.core.data.layout.blocks import empty_block, product, scratch_block
from summula.core.engine.engine import local_engine
from summula.core.engine.threads import one_blas_thread
from summula.optimize.solvers.newton_method import Factor
from summula.svm.linear.coordinates import CoordinateFit, judged_at, rows_in_memory
from summula.svm.linear.problem import LinearProblem

__all__ = ["MOST_COLUMNS", "by_interior_point"]

Array = NDArray[Any]

MOST_COLUMNS = 512  # beyond, a Gram matrix per step takes longer than coordinate descent
_ROWS = 2_048  # rows of a block
_BACK = 0.995  # share of the way to the boundary
_IDLE = 5  # steps without progress after which the best point is returned
_ROUNDING = 1e-6  # of the objective: a smaller gap that steps no longer reduce is rounding (unscaled columns)
_EMPTY = 1e-16  # of the objective: nothing is left but rounding
_SETTLED = 1e-3  # share of C from a bound within which a multiplier counts as being there


class _Rows:
    """The rows z_i with a weight: products with them, block by block on the threads of the engine."""

    def __init__(self, chunk: Chunk, column: float, kept: NDArray[np.intp]) -> None:
        if chunk.is_sparse:
            self.Z: Any = rows_in_memory(chunk, column)[kept]
        else:
            X = chunk.block(np.float64)
            self.Z = empty_block(len(kept), X.shape[1] + (column != 0.0))
            self.Z[:, : X.shape[1]] = X if len(kept) == len(X) else X[kept]
            self.Z[:, X.shape[1] :] = column
        self._blocks = [slice(a, min(a + _ROWS, len(kept))) for a in range(0, len(kept), _ROWS)]

    def _sum(self, of_block: Callable[[slice], Array]) -> Array:
        if len(self._blocks) == 1:
            return of_block(self._blocks[0])
        return np.asarray(local_engine().map_reduce(of_block, self._blocks, np.add))

    def scores(self, v: Array) -> Array:
        """Z v."""
        if len(self._blocks) == 1:
            return product(self.Z, v)
        return np.concatenate(list(local_engine().map_ordered(lambda part: product(self.Z[part], v), self._blocks)))

    def combined(self, theta: Array) -> Array:
        """Z'theta."""
        return self._sum(lambda part: product(self.Z[part].T, theta[part]))

    def gram(self, weight: Array) -> Array:
        """Z' diag(weight) Z."""
        root = np.sqrt(weight)

        def of_block(part: slice) -> Array:
            if sparse.issparse(self.Z):
                some = self.Z[part].multiply(root[part, None]).tocsr()
                return np.asarray((some.T @ some).toarray())
            block = scratch_block("weighted rows", part.stop - part.start, self.Z.shape[1])
            np.multiply(self.Z[part], root[part, None], out=block)
            return np.asarray(block.T @ block)

        return self._sum(of_block)


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
    """A point strictly inside the bounds of (1): s, xi, u, t > 0."""

    v: Array
    s: Array
    xi: Array
    u: Array
    t: Array

    @property
    def mu(self) -> float:
        return float((self.u * self.s).mean() + (self.t * self.xi).mean()) / 2

    def moved(self, step: _Point, length: float) -> _Point:
        return _Point(*(a + length * b for a, b in zip(self, step, strict=True)))

    def longest(self, step: _Point) -> float:
        """Return the longest step before a variable becomes 0; at most 1."""
        far = 1.0
        for value, change in zip(self[1:], step[1:], strict=True):
            far = min(far, 1.0 / max(float((-change / value).max()), 1.0))
        return far


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
    if len(kept) > _ROWS:
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
    solver = _Steps(_Rows(chunk, problem.column, kept), problem, y[kept], weight[kept])
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

    def __init__(self, rows: _Rows, problem: LinearProblem, y: Array, c: Array) -> None:
        self.rows, self.problem, self.y, self.c = rows, problem, y, c
        self.sides = _Sides.of(problem, y, c)
        self.penalised = np.ones(rows.Z.shape[1])
        if problem.is_free:
            self.penalised[-1] = 0.0
        self.point, self.count = _start(self.sides, len(self.penalised)), 0
        self.refresh()

    def refresh(self) -> None:
        """Z v, and A'u - R v, from the rows: steps only change them, and rounding adds up."""
        self.scores = self.rows.scores(self.point.v)
        theta = (self.sides.sign * self.point.u).sum(axis=0)
        self.slope = self.rows.combined(theta) - self.penalised * self.point.v

    def estimate(self) -> tuple[float, float]:
        """The gap, apart from the remaining slope, and the objective."""
        v, s, xi, u, t = self.point
        return float((u * s).sum() + (t * xi).sum()), 0.5 * float(v @ (self.penalised * v)) + float((self.c * xi).sum())

    def step(self) -> None:
        """One predictor and corrector step."""
        (_, s, xi, u, t), sign = self.point, self.sides.sign
        D = s / u + xi / t
        factor = Factor.of(np.diag(self.penalised) + self.rows.gram((1.0 / D).sum(axis=0)))
        slack = self.sides.h + s - xi - sign * self.scores

        def solved(us: Array, txi: Array) -> tuple[_Point, Array]:
            """The step for these values of mu - u s and mu - t xi, and what it adds to the scores."""
            g = slack - txi / t + us / u
            dv = factor.solve(self.slope + self.rows.combined((sign * g / D).sum(axis=0)))
            more = self.rows.scores(dv)
            du = (g - sign * more) / D
            return _Point(dv, (us - s * du) / u, (txi + xi * du) / t, du, -du), more

        first, _ = solved(-u * s, -t * xi)
        mu = self.point.mu
        target = mu * (self.point.moved(first, self.point.longest(first)).mu / mu) ** 3
        second, more = solved(target - u * s - first.u * first.s, target - t * xi - first.t * first.xi)
        length = _BACK * self.point.longest(second)
        self.point, self.count = self.point.moved(second, length), self.count + 1
        # Both equations of (2) that are linear lose this share of their error.
        self.scores, self.slope = self.scores + length * more, (1.0 - length) * self.slope

    def judged(self, point: _Point, tolerance: float) -> CoordinateFit:
        """Objective and gap at v; multipliers next to a bound are put there if the gap allows it."""
        share = point.u / self.c
        settled = np.where(share < _SETTLED, 0.0, np.where(share > 1 - _SETTLED, self.c, point.u))
        for u in (settled, point.u):
            theta = (self.sides.sign * u).sum(axis=0)
            fit = judged_at(self.rows, self.y, self.c, self.problem, point.v, theta, tolerance)
            if fit.converged:
                break
        # A certificate has to name few rows only: as long as most multipliers are between their bounds, go on.
        return fit._replace(converged=fit.converged and u is settled)


def _start(sides: _Sides, columns: int) -> _Point:
    """v = 0, multipliers in the middle, and slacks that meet (1)."""
    size = float(np.abs(sides.h).mean()) or 1.0
    s, xi = np.maximum(-sides.h, 0.0) + size, np.maximum(sides.h, 0.0) + size
    half = np.tile(sides.c / 2, (len(sides.h), 1))
    return _Point(np.zeros(columns), s, xi, half, half.copy())
