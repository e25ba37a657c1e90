"""Nonlinear conjugate gradients.

Each direction combines the negative gradient with the previous direction,

    p_0 = -g_0,     p_{k+1} = -g_{k+1} + beta p_k,     x_{k+1} = x_k + t_k p_k                                     (1)
    beta = max(0, g_{k+1}'(g_{k+1} - g_k) / g_k'g_k)                (Polak and Ribiere, never negative)            (2)

with t_k close to a minimum along the line, found by the secant method: |phi'(t)| <= |phi'(0)| / 100. On a quadratic
with exact line searches the directions are conjugate, p_i'H p_j = 0, and d steps reach the minimum. On other functions
conjugacy is lost gradually, so the method restarts from -g after d steps, or if p is not a descent direction. It stores
no matrix, only four vectors.
Reference: Nocedal and Wright, Numerical Optimization (2006), section 5.2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from summula.core.docstrings import inherit_docs
from summula.core.estimator.parameters import integer, none, real
from summula.core.numerics.solution import Solution
from summula.optimize.line_searches import Line, by_slopes
from summula.optimize.problems.objective import MINIMISER, Objective, check_arguments, start_trail

__all__ = ["conjugate_gradient"]

_FLAT = 0.01  # final slope of a line search, relative to the initial slope
_DOWNHILL = 1e-8  # minimum of -g'p / (|g| |p|) for a descent direction


@inherit_docs(MINIMISER)
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
    restart : int, optional
        Number of steps after which the direction is reset to the negative gradient; d by default.

    See Also
    --------
    bfgs : Usually fewer steps, but more memory.

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
    x, value, g, trail = start_trail(objective)
    every = len(x) if restart is None else restart
    p, t, since = -g, 1.0 / max(float(np.linalg.norm(g)), 1e-300), 0
    while np.linalg.norm(g) > tolerance:
        if (ended := trail.exhausted(x, value, g, tolerance, max_steps)) is not None:
            return ended
        line = Line(objective, x, p, value, g)
        stop = by_slopes(line, t, _FLAT, least=2)
        if stop.status == "unbounded":
            return trail.unbounded(line.point(stop.t), stop.value)
        if stop.t == 0.0 and since == 0:
            return trail.stalled(x, value, g)
        if stop.t == 0.0:  # conjugacy is lost: restart
            p, since = -g, 0
            continue
        ahead = line.gradient(stop.t)
        beta = max(0.0, float(ahead @ (ahead - g)) / float(g @ g))  # (2)
        x, value, g, since = line.point(stop.t), stop.value, ahead, since + 1
        trail.add(x, value)
        if trail.is_diverging:
            return trail.unbounded(x, value)
        p = -g + beta * p
        if since >= every or float(g @ p) > -_DOWNHILL * float(np.linalg.norm(g) * np.linalg.norm(p)):
            p, since = -g, 0
        t = stop.t  # about 1 / curvature, which usually changes little
    return trail.end(x, value, "converged")
