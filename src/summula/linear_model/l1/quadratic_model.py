"""The quadratic model of a likelihood with an L1 penalty about a point: a proximal Newton step, and a gap.

With gradient g and Hessian H of J at x = (b, V), the model of P = J + a |V|_1 is, up to a constant,

    g'(z - x) + 1/2 (z - x)'H (z - x) + a |V_z|_1                                                               (2)

Intercepts are not penalised and are eliminated: G = H_VV - H_Vb H_bb^+ H_bV is the Schur complement, and (2) an L1
quadratic in V. `step` goes to its minimiser (`optimize/solvers/l1_quadratic.py`); `gap` bounds the suboptimality of x
in (2), from a linear system and the duality gap, without solving (2).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.engine.threads import solving
from summula.linear_model.glm.objective import Objective
from summula.optimize.solvers.l1_quadratic import GramQuadratic, judged, minimise_l1, newton_on_face
from summula.optimize.solvers.newton_method import Factor, Local

__all__ = ["Point", "QuadraticModel", "evaluated", "local_gap", "promise_of", "slopes_of"]

Array = NDArray[Any]

_SWEPT, _MOST_SWEEPS = 1e-14, 1_000  # smallest relative tolerance of coordinate descent for (2)
_FACED = 1e-6  # tolerance below which (2) is solved exactly on the face of the support


class Point(NamedTuple):
    """A point, J there, and P."""

    x: Array
    here: Local
    value: float


class QuadraticModel:
    """The quadratic (2) about a point, intercepts eliminated."""

    def __init__(self, objective: Objective, hessian: Array) -> None:
        problem, p = objective.problem, objective.p
        self.free = objective.free  # entries included in the Hessian; the rest is fixed
        places = np.arange(problem.outputs * p)[self.free]
        self.penalty = problem.regulariser
        self.inner = np.flatnonzero(places % p == 0) if problem.intercept else np.zeros(0, np.intp)
        self.slopes = np.setdiff1d(np.arange(len(places)), self.inner)
        G = hessian[np.ix_(self.slopes, self.slopes)]
        G[np.diag_indices(len(G))] -= self.penalty.l2
        self.lift = np.zeros((len(self.inner), len(self.slopes)))
        self.factor: Factor | None = None
        if problem.intercept:
            H = hessian[np.ix_(self.inner, self.inner)]
            several = H.trace() if problem.outputs > 1 else 0.0  # softmax is invariant to a common intercept
            self.factor = Factor.of(H + several)
            self.lift = self.factor.solve(hessian[np.ix_(self.inner, self.slopes)])
            G -= hessian[np.ix_(self.slopes, self.inner)] @ self.lift
        self.G = np.ascontiguousarray((G + G.T) / 2)

    def _problem(self, at: Point, loss: float) -> tuple[Array, Array, Array, GramQuadratic]:
        """Return V at a point, the step of the intercepts there, the slope in V, and (2) as a quadratic in V."""
        x, g = at.x[self.free], at.here.gradient[self.free]
        v = x[self.slopes]
        shift = np.zeros(0)
        if self.factor is not None:
            shift = self.factor.solve(g[self.inner])
        slope = g[self.slopes] - self.penalty.l2 * v - self.lift.T @ g[self.inner]
        Gv = self.G[:, v != 0] @ v[v != 0]
        # The constant makes the quadratic about as large as the loss, to which its tolerance is relative.
        c = 2 * loss + max(float((Gv - 2 * slope) @ v), 0.0)
        return v, shift, slope, GramQuadratic(self.G, Gv - slope, c)

    def step(self, at: Point, loss: float, share: float) -> Array:
        """Return the step to the minimiser of (2), up to a fraction of the possible decrease."""
        v, shift, slope, quadratic = self._problem(at, loss)
        penalty = self.penalty
        tolerance = max(2 * share * judged(v, -slope, quadratic, penalty)[1] / quadratic.c, _SWEPT)
        with solving(len(v)):
            goal = minimise_l1(quadratic, penalty, start=v, tolerance=tolerance, max_sweeps=_MOST_SWEEPS).v
            if tolerance < _FACED:  # a linear system is more accurate than sweeps
                newton_on_face(self.G, quadratic.q, goal, penalty, 1)
        moved = goal - v
        part = np.empty(len(self.slopes) + len(self.inner))
        part[self.slopes] = moved
        part[self.inner] = -shift - self.lift @ moved
        step = np.zeros_like(at.x)
        step[self.free] = part
        return step

    def gap(self, at: Point, loss: float) -> float:
        """Bound the suboptimality of a point in (2), by duality there or at the minimum on its face."""
        v, shift, slope, quadratic = self._problem(at, loss)
        penalty = self.penalty
        face = self._minimum_on_face(v, quadratic.q)
        value, gap, _ = judged(v, -slope, quadratic, penalty)
        lower, rest, _ = judged(face, quadratic.q - self.G @ face, quadratic, penalty)
        by_intercepts = float(at.here.gradient[self.free][self.inner] @ shift) / 2
        return max(min(gap, max(value - lower, 0.0) + rest) + by_intercepts, 0.0)

    def _minimum_on_face(self, v: Array, q: Array) -> Array:
        """Return the minimiser of (2) among vectors with the signs of v, or a point on the way where a sign changes."""
        S = np.flatnonzero(v)
        if not len(S):
            return v
        H, here = self.G[np.ix_(S, S)], v[S]
        slope = H @ here - q[S] + self.penalty.l1 * np.sign(here) + self.penalty.l2 * here
        H.flat[:: len(S) + 1] += self.penalty.l2
        with solving(len(S)):
            step = -Factor.of(H).solve(slope)
        shrinks = step * here < 0
        share = min(1.0, float((-here[shrinks] / step[shrinks]).min(initial=1.0)))
        face = v.copy()
        face[S] = here + share * step
        return face


def slopes_of(objective: Objective, x: Array) -> Array:
    """Return V of a vector of parameters, output by output."""
    return x.reshape(objective.problem.outputs, objective.p)[:, objective.first :].ravel()


def promise_of(objective: Objective, at: Point, step: Array) -> float:
    """Return -D of (3)."""
    V, P = slopes_of(objective, at.x), slopes_of(objective, step)
    return -(float(at.here.gradient @ step) + objective.problem.regulariser.l1_increase(V, P))


def evaluated(objective: Objective, x: Array, order: int) -> Point:
    """Return J and P at x."""
    here = objective(x, order)
    return Point(x, here, here.value + objective.problem.regulariser.l1_value(slopes_of(objective, x)))


def local_gap(objective: Objective, x: Array) -> float:
    """Estimate the remaining decrease from x, if the quadratic model (2) is accurate."""
    at = evaluated(objective, x, 2)
    assert at.here.hessian is not None
    return QuadraticModel(objective, at.here.hessian).gap(at, objective.state.last()[0].value)
