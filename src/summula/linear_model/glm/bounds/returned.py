"""Rounding of a solution to the returned point, and its suboptimality.

A solver works with columns about an origin, in double precision: x = (lead, V). It returns V and the intercept
b = lead - V'o in the dtype of the data. If columns are far from 0, b cannot represent all digits of the lead, and the
returned point x_r = (b + V'o, V) differs from x. With the gap at x, where the intercept is optimal,

    J(x_r) - min J = (J(x_r) - J(x)) + (J(x) - min J)                                                          (1)

Usually x_r - x is so small that gradient and curvature at x bound the first bracket; else it is computed in one pass.
What the intercepts lost by rounding is returned too, so that (1) can be verified without finding x again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.numerics.exact import intercepts, shifts

if TYPE_CHECKING:
    from summula.linear_model.glm.objective import Objective

__all__ = ["Returned", "point_of", "returned", "rounded"]

Array = NDArray[Any]


class Returned(NamedTuple):
    """A returned point x_r: slopes (K, d), intercepts (K,), what their leads lost by rounding (K,), J and gap there."""

    x: Array
    coef: Array
    intercept: Array
    lost: Array
    value: float = np.nan
    gap: float = np.nan


def point_of(coef: Array, intercept: Array, origin: Array, fit_intercept: bool) -> Array:
    """Return x for returned slopes and intercepts; leads of several outputs are shifted to mean 0."""
    coef = np.asarray(coef, np.float64)
    if not fit_intercept:
        return coef.ravel()
    several = len(coef) > 1
    lead = shifts(coef, origin, intercept, np.zeros(len(coef)), relative=several)
    lead = lead - lead.mean() if several else lead
    return np.hstack([lead[:, None], coef]).ravel()


def rounded(objective: Objective, x: Array) -> Returned:
    """Return the rounded point."""
    problem, origin, dtype = objective.problem, objective.origin, objective.run.source.dtype
    theta = x.reshape(problem.outputs, objective.p)
    lead, coef = theta[:, : objective.first], theta[:, objective.first :]
    if dtype != np.float64:
        with np.errstate(over="ignore"):
            coef = coef.astype(dtype).astype(np.float64)
    if not problem.intercept:
        return Returned(coef.ravel(), coef, np.zeros(problem.outputs), np.zeros(problem.outputs))
    several = problem.outputs > 1
    # Only differences between outputs matter; for L1 fits intercepts are shifted to mean 0.
    common = float(np.mean(lead[:, 0] - coef @ origin)) if several and problem.l1 else 0.0
    intercept = intercepts(coef, origin, lead[:, 0], np.full(len(coef), -common), dtype=dtype)
    change = shifts(coef, origin, intercept, lead[:, 0], relative=several)
    return Returned(np.hstack([lead + change[:, None], coef]).ravel(), coef, intercept, -change)


def returned(objective: Objective, x: Array, value: float, gap: float, *, exact: bool = True) -> Returned:
    """Round a point and bound its suboptimality by (1); `value` and `gap` are those of x.

    Without `exact` no pass is made, and the first bracket of (1) is replaced by its quadratic model.
    """
    point = rounded(objective, x)
    cost = _cost(objective, x, point.x - x)
    if cost > 4 * float(np.finfo(objective.run.source.dtype).eps) * abs(value) and exact:  # smaller values are rounding
        here = objective(point.x, 1).value + objective.problem.regulariser.l1_value(point.coef)
        return point._replace(value=here, gap=gap + max(here - value, 0.0))
    return point._replace(value=value, gap=gap + (cost if np.isfinite(cost) else 0.0))


def _cost(objective: Objective, x: Array, step: Array) -> float:
    """Return an approximate upper bound on the increase of the objective by a small step; infinite if unknown."""
    if not step.any():
        return 0.0
    problem, state = objective.problem, objective.state
    if not state.is_at(x):
        return np.inf
    sums, here = state.last()
    gradient = here.gradient
    parts = step.reshape(problem.outputs, objective.p)
    if not parts[:, objective.first :].any():
        curved = float(parts[:, 0] @ sums.inner @ parts[:, 0])
    elif state.curved is not None and len(state.curved.hessian) == len(step):
        curved = float(step @ state.curved.hessian @ step)
    else:
        return np.inf
    by_penalty = 0.0
    if problem.l1:
        V = x.reshape(problem.outputs, objective.p)[:, objective.first :]
        by_penalty = problem.l1 * float((np.abs(V + parts[:, objective.first :]) - np.abs(V)).sum())
    # Twice the quadratic term, since the curvature changes along the step.
    return abs(float(gradient @ step) + by_penalty) + abs(curved)
