"""Bounds on the suboptimality of a point of J, from sums at that point.

Let g be the gradient and H the Hessian of J. All losses marked self-concordant have |l'''| <= l'', so along any
step p the curvature changes by a factor of at most exp(r), r = max_i |z_i'p|. With nu^2 = g'H^-1 g and
r <= R ||p||_H, R^2 = sum_j max_i z_ij^2 / (D_j^2 c), where D^2 = diag H and c the smallest eigenvalue of D^-1 H D^-1,

    J - min J <= nu^2   whenever  R nu <= 1/2                                            (Bach 2010, prop. 2)  (2)

H at a nearby point x0 can be used as well: with r = R ||x - x0||_H replace nu^2 by e^r nu^2 and R^2 by e^r R^2.

Without H, J is strongly convex in V once the intercepts are optimal. Optimising them decreases J by at most nu_b^2 (the
same bound, with R = 1 for one intercept, sqrt(2) for several) and changes the gradient in V by at most
e sqrt(tr H_VV) nu_b, so

    J - min J <= nu_b^2 + (||g_V|| + e sqrt(tr H_VV) nu_b)^2 / (2 lambda)                                       (3)

If neither applies, the suboptimality is estimated by the decrease of a Newton step:

    g'H^-1 g / 2                                                                                                (4)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.engine.threads import solving
from summula.linear_model.glm.objective import Curved, GlmProblem, Objective
from summula.linear_model.glm.sums import Diagonal
from summula.optimize.solvers.newton_method import Factor, Local

__all__ = ["gap_bounds", "judge", "newton_decrement"]

Array = NDArray[Any]


def gap_bounds(
    x: Array, gradient: Array, inner: Array, problem: GlmProblem, curved: Curved | None, diagonal: Array
) -> float:
    """Return the smaller of (2) and (3); infinite if neither applies.

    `inner` is the block of H of the intercepts at x, `curved` a Hessian at or near x, `diagonal` that of H.
    """
    if not problem.loss.self_concordant or problem.low is not None:
        return np.inf
    bounds = [np.inf]
    if curved is not None and curved.factor.cholesky is not None:
        factor, moved = curved.factor, x - curved.x
        size = np.concatenate([np.ones(int(problem.intercept)), curved.largest])
        widths = np.tile(size, problem.outputs) / factor.scale
        R = np.sqrt((2.0 if problem.outputs > 1 else 1.0) * float(widths @ widths) / factor.smallest)
        growth = np.exp(min(R * np.sqrt(max(moved @ curved.hessian @ moved, 0.0)), 700.0))
        nu = np.sqrt(max(float(gradient @ factor.solve(gradient)), 0.0) * growth)
        if R * np.sqrt(growth) * nu <= 0.5:
            bounds.append(float(nu**2) + _alike(gradient, problem))
    if problem.penalty > 0:
        bounds.append(_strong_bound(gradient, inner, problem, diagonal))
    return float(min(bounds))


def _alike(gradient: Array, problem: GlmProblem) -> float:
    """Return the gap in directions common to all classes, in which softmax is constant and J is the penalty alone."""
    if problem.outputs == 1 or problem.penalty == 0:
        return 0.0
    g = gradient.reshape(problem.outputs, -1)[:, int(problem.intercept) :].sum(axis=0)
    return float(g @ g) / (2 * problem.outputs * problem.penalty)


def _strong_bound(gradient: Array, inner: Array, problem: GlmProblem, diagonal: Array) -> float:
    """Bound (3)."""
    first, several = int(problem.intercept), problem.outputs > 1
    g = gradient.reshape(problem.outputs, -1)
    slope = float(np.linalg.norm(g[:, first:]))
    if not first:
        return slope**2 / (2 * problem.penalty)
    factor = Factor.of(inner + (inner.trace() if several else 0.0))  # softmax is invariant to a common intercept
    nu = np.sqrt(max(float(g[:, 0] @ factor.solve(g[:, 0])), 0.0))
    least = factor.smallest * float(np.square(factor.scale).min())
    if not (np.sqrt(2.0) if several else 1.0) * nu <= 0.5 * np.sqrt(least):
        return np.inf
    spread = float(diagonal.reshape(problem.outputs, -1)[:, first:].sum())
    return float(nu**2 + (slope + np.e * np.sqrt(spread) * nu) ** 2 / (2 * problem.penalty))


def judge(objective: Objective, x: Array) -> tuple[Local, float]:
    """Return the objective at x and a bound on its suboptimality, reusing what was computed there before."""
    problem = objective.problem
    if not objective.state.is_at(x):
        objective(x, 2 if objective.state.curved is not None else 1)
    (sums, here), curved = objective.state.last(), objective.state.curved
    if curved is not None:
        diagonal = np.diag(curved.hessian)
    elif problem.penalty > 0:
        diagonal = objective.run.sum(Diagonal, objective.at(x, 1), "diagonal").diagonal.T.ravel()
    else:
        diagonal = np.zeros(len(x))
    with solving(len(x)):
        return here, gap_bounds(x, here.gradient, sums.inner, problem, curved, diagonal)


def newton_decrement(objective: Objective, x: Array) -> float:
    """Return (4) at x if a Hessian is affordable, else infinity."""
    if not objective.affordable():
        return np.inf
    here = objective(x, 2)
    if objective.state.curved is None:  # curvatures overflow
        return np.inf
    return max(float(here.gradient @ objective.state.curved.factor.solve(here.gradient)) / 2, 0.0)
