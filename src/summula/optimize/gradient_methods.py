"""Gradient descent.

    x+ = x - t grad f(x)                                                                                           (1)

Let the gradient have Lipschitz constant L: |grad f(x) - grad f(z)| <= L |x - z|. Then (the descent lemma)

    f(x+) <= f(x) - t (1 - t L / 2) |grad f(x)|^2                                                                  (2)

so any step t < 2/L decreases f, and t = 1/L maximises the guaranteed decrease. If f is convex with minimum f* at x*,
then f(x_k) - f* <= |x_0 - x*|^2 / (2 t k) for t <= 1/L; if it is also strongly convex with constant m,

    f(x) - f*  <=  |grad f(x)|^2 / (2 m)                                                                           (3)

is a certificate, and each step 1/L reduces the error by the factor 1 - m/L: ill-conditioned problems are slow. On a
quadratic a step above 2/L multiplies the error along the steepest axis by 1 - tL < -1, so the method diverges. L need
not be known: it is estimated from the iterates,

    L  >=  |grad f(x+) - grad f(x)| / |x+ - x|                                                                     (4)

which, when (1) diverges, quickly approaches L (it is the power method).
References: Nesterov, Lectures on Convex Optimization (2018), sections 2.1 and 1.2; Boyd and Vandenberghe, 9.3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.docstrings import inherit_docs
from summula.core.errors import ParameterError
from summula.core.estimator.parameters import integer, none, one_of, real
from summula.core.numerics.solution import Solution
from summula.optimize.line_searches import Line, Stop, backtracking, by_slopes, golden_section
from summula.optimize.problems.objective import MINIMISER, Objective, check_arguments, start_trail

__all__ = ["gradient_descent"]

Array = NDArray[np.float64]

_RISES = 10  # number of consecutive increases of the value that are tolerated
_HUGE = 1e150  # gradients above this overflow when squared
_NOISE = 1e-12  # relative increases below this are rounding


@inherit_docs(MINIMISER)
def gradient_descent(
    f: Callable[[Any], Any],
    x0: Any,
    *,
    gradient: Callable[[Any], Any] | None = None,
    step: float | str | None = None,
    lipschitz: float | None = None,
    strong_convexity: float | None = None,
    tolerance: float = 1e-6,
    max_steps: int = 10_000,
) -> Solution:
    """Minimise a smooth function by gradient descent.

    Parameters
    ----------
    step : float or {"backtracking", "secant", "golden"}, optional
        A constant step size t, or the method of a line search (see `line_search`). By default 1/L if `lipschitz` is
        given, else "backtracking".
    lipschitz : float, optional
        Lipschitz constant L of the gradient (the largest curvature). A constant step of 2/L or more raises an error.
    strong_convexity : float, optional
        Strong convexity constant m (the smallest curvature). If given, the solution has a `gap`, by (3).

    Returns
    -------
    Solution
        `trace` contains the objective values, `path` the iterates. If a constant step is too large, `status` is
        "diverged", `x` is the best iterate, and `message` suggests a safe step, based on the estimate (4) of L.

    References
    ----------
    Y. Nesterov, Lectures on Convex Optimization (2018), section 1.2.3.

    Examples
    --------
    >>> import numpy as np
    >>> from summula.optimize import gradient_descent
    >>> P = np.diag([1.0, 10.0])
    >>> found = gradient_descent(lambda x: x @ P @ x / 2, [5.0, 1.0], gradient=lambda x: P @ x, lipschitz=10.0)
    >>> found.status, found.x.round(5).tolist()
    ('converged', [0.0, 0.0])
    >>> print(gradient_descent(lambda x: x @ P @ x / 2, [5.0, 1.0], gradient=lambda x: P @ x, step=0.25).message)
    The values grow: step=0.25 is too large, since the Lipschitz constant of the gradient is L = 10 or more; steps below
    2/L = 0.2 descend, and 1/L = 0.1 is safe.
    """
    check_arguments(
        "gradient_descent",
        step=(step, (none, real(0, open_low=True), one_of("backtracking", "secant", "golden"))),
        lipschitz=(lipschitz, (none, real(0, open_low=True))),
        strong_convexity=(strong_convexity, (none, real(0, open_low=True))),
        tolerance=(tolerance, (real(0),)),
        max_steps=(max_steps, (integer(1),)),
    )
    if step is None:
        step = "backtracking" if lipschitz is None else 1.0 / lipschitz
    if lipschitz is not None and not isinstance(step, str) and step >= 2.0 / lipschitz:
        raise ParameterError(
            f"step={step:.6g} is not below 2/L = {2 / lipschitz:.6g}, so gradient descent may diverge; use "
            f"step={1 / lipschitz:.6g} (1/L), or omit it."
        )
    objective = Objective(f, x0, gradient, function="gradient_descent")
    if isinstance(step, str):
        found, slope = _with_line_search(objective, step, tolerance, max_steps)
    else:
        found, slope = _with_constant_step(objective, float(step), tolerance, max_steps)
    if strong_convexity is not None:
        gap = float(slope @ slope) / (2 * strong_convexity)
        return replace(found, gap=gap)
    return found


def _with_constant_step(objective: Objective, t: float, tolerance: float, max_steps: int) -> tuple[Solution, Array]:
    """Iterate (1) with a constant step; return the solution and its gradient."""
    x, value, g, trail = start_trail(objective)
    best, first, rises, L = (x, value, g), value, 0, 0.0
    status = "max_iter"
    for _ in range(max_steps):
        if np.linalg.norm(g) <= tolerance:
            return trail.end(x, value, "converged"), g
        ahead = x - t * g
        value_ahead, g_ahead = objective.value(ahead), objective.gradient(ahead)
        trail.add(ahead, value_ahead)
        finite = bool(np.isfinite(value_ahead) and np.isfinite(g_ahead).all() and np.abs(g_ahead).max() < _HUGE)
        if finite and (ahead != x).any():
            L = max(L, float(np.linalg.norm(g_ahead - g) / np.linalg.norm(ahead - x)))  # (4)
        rises = rises + 1 if value_ahead > value + _NOISE * abs(value) else 0
        if value_ahead < best[1]:
            best = (ahead, value_ahead, g_ahead)
        if trail.is_diverging:
            return trail.unbounded(ahead, value_ahead), g
        if not finite or (rises >= _RISES and value_ahead > first):
            status = "diverged"
            break
        x, value, g = ahead, value_ahead, g_ahead
    else:
        status = "converged" if np.linalg.norm(g) <= tolerance else status
    if status == "converged":
        return trail.end(x, value, status), g
    return trail.end(best[0], best[1], status, message=_advice(status, t, L, tolerance, g)), best[2]


def _advice(status: str, t: float, L: float, tolerance: float, g: Array) -> str:
    """Return the message for a descent that did not converge."""
    if L and t >= 2 / L:
        return (
            f"The values {'grow' if status == 'diverged' else 'do not converge'}: step={t:.6g} is too large, since the "
            f"Lipschitz constant of the gradient is L = {L:.4g} or more; steps below 2/L = {2 / L:.4g} descend, and "
            f"1/L = {1 / L:.4g} is safe."
        )
    if status == "diverged":
        return f"f or its gradient is not finite after a step of {t:.6g} times the gradient; use a smaller step."
    safe = f", use a larger step (up to {2 / L:.6g})" if L else ""
    size = float(np.linalg.norm(g))
    return f"The norm of the gradient is {size:.3g} > {tolerance:.3g}; increase max_steps{safe} or use bfgs."


def _with_line_search(objective: Objective, search: str, tolerance: float, max_steps: int) -> tuple[Solution, Array]:
    """Iterate (1) with a line search in each step; return the solution and its gradient."""
    x, value, g, trail = start_trail(objective)
    t = 1.0
    for _ in range(max_steps):
        if np.linalg.norm(g) <= tolerance:
            return trail.end(x, value, "converged"), g
        if trail.is_stuck(g):
            return trail.stalled(x, value, g), g
        line = Line(objective, x, -g, value, g)
        stop = _search(line, search, t)
        if stop.status == "unbounded":
            return trail.unbounded(line.point(stop.t), stop.value), g
        if stop.t == 0.0:
            return trail.stalled(x, value, g), g
        x, value, g, t = line.point(stop.t), stop.value, line.gradient(stop.t), stop.t
        trail.add(x, value)
        if trail.is_diverging:
            return trail.unbounded(x, value), g
    if np.linalg.norm(g) <= tolerance:
        return trail.end(x, value, "converged"), g
    return trail.end(x, value, "max_iter", message=_advice("max_iter", 0.0, 0.0, tolerance, g)), g


def _search(line: Line, search: str, last: float) -> Stop:
    """Search for a step starting from the last one; backtracking starts at twice that, so that steps can grow."""
    if search == "backtracking":
        return backtracking(line, 2 * last)
    if search == "secant":
        return by_slopes(line, last, 1e-3)
    return golden_section(line, last, 1e-4)
