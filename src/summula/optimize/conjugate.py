"""Conjugate gradients for functions that need not be quadratic.

Each direction is the negative gradient bent towards the last direction,

    p_0 = -g_0,     p_{k+1} = -g_{k+1} + beta p_k,     x_{k+1} = x_k + t_k p_k                                     (1)
    beta = max(0, g_{k+1}'(g_{k+1} - g_k) / g_k'g_k)                (Polak and Ribiere, never negative)            (2)

with t_k nearly a minimum along the line, found by the secant method: |phi'(t)| <= |phi'(0)| / 100. On a quadratic with
exact searches the directions are conjugate, p_i'H p_j = 0, and d steps reach the minimum. Elsewhere conjugacy fades, so
that after d steps, or when p would not go downhill, it starts anew from -g (a restart). It needs no matrix: memory for
four vectors.
Reference: Nocedal and Wright, Numerical Optimization (2006), section 5.2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from summula.core.estimator.parameters import integer, none, real
from summula.core.numerics.solution import Solution
from summula.optimize.line_searches import Line, by_slopes
from summula.optimize.objective import Objective, Trail, check_arguments

__all__ = ["conjugate_gradient"]

_FLAT = 0.01  # share of the first slope that a search along a line may leave
_DOWNHILL = 1e-8  # share of |g| |p| by which a direction has to go down


def conjugate_gradient(
    f: Callable[[Any], Any],
    x0: Any,
    *,
    gradient: Callable[[Any], Any] | None = None,
    restart: int | None = None,
    tolerance: float = 1e-6,
    max_steps: int = 10_000,
) -> Solution:
    """Minimise a smooth function by nonlinear conjugate gradients (Polak-Ribiere+).

    Parameters
    ----------
    f : callable
        x -> number.
    x0 : number or array of shape (d,)
        Where to start.
    gradient : callable, optional
        x -> array of shape (d,); central differences without it.
    restart : int, optional
        After how many steps the direction starts anew from the negative gradient; d by default.
    tolerance : float, default=1e-6
        The length of the gradient at which to stop.
    max_steps : int, default=10_000

    Returns
    -------
    Solution
        `trace` has the values, `path` the points.

    See Also
    --------
    bfgs : usually fewer steps, with more memory.

    References
    ----------
    J. Nocedal and S. Wright, Numerical Optimization (2006), section 5.2.

    Examples
    --------
    >>> import numpy as np
    >>> from summula.optimize import conjugate_gradient
    >>> P = np.diag([1.0, 20.0])
    >>> found = conjugate_gradient(lambda x: x @ P @ x / 2, [5.0, 1.0], gradient=lambda x: P @ x)
    >>> found.status, found.n_steps
    ('converged', 2)
    """
    check_arguments(
        "conjugate_gradient",
        restart=(restart, (none, integer(1))),
        tolerance=(tolerance, (real(0),)),
        max_steps=(max_steps, (integer(1),)),
    )
    objective = Objective(f, x0, gradient, function="conjugate_gradient")
    x, value = objective.start, objective.first_value()
    g, trail = objective.gradient(x), Trail(objective)
    trail.add(x, value)
    every = len(x) if restart is None else restart
    p, t, since = -g, 1.0 / max(float(np.linalg.norm(g)), 1e-300), 0
    while np.linalg.norm(g) > tolerance:
        if len(trail.values) > max_steps:
            return trail.unfinished(x, value, g, tolerance)
        if trail.stuck(g):
            return trail.end(x, value, "stalled", message=objective.why_stalled(x, g))
        line = Line(objective, x, p, value, g)
        stop = by_slopes(line, t, _FLAT, least=2)
        if stop.status == "unbounded":
            return trail.bottomless(line.point(stop.t), stop.value)
        if stop.t == 0.0 and since == 0:
            return trail.end(x, value, "stalled", message=objective.why_stalled(x, g))
        if stop.t == 0.0:  # a direction that has gone stale
            p, since = -g, 0
            continue
        ahead = line.gradient(stop.t)
        beta = max(0.0, float(ahead @ (ahead - g)) / float(g @ g))  # (2)
        x, value, g, since = line.point(stop.t), stop.value, ahead, since + 1
        trail.add(x, value)
        if trail.fallen:
            return trail.bottomless(x, value)
        p = -g + beta * p
        if since >= every or float(g @ p) > -_DOWNHILL * float(np.linalg.norm(g) * np.linalg.norm(p)):
            p, since = -g, 0
        t = stop.t  # about one over the curvature: right again where that is the same
    return trail.end(x, value, "converged")
