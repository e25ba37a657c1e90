"""Gradient descent: go downhill along the negative gradient.

    x+ = x - t grad f(x)                                                                                           (1)

Let the gradient have Lipschitz constant L: |grad f(x) - grad f(z)| <= L |x - z|. Then (the descent lemma)

    f(x+) <= f(x) - t (1 - t L / 2) |grad f(x)|^2                                                                  (2)

so that any step t < 2/L goes down, and t = 1/L gains most by this bound. If f is convex with minimum f* at x*, a step
t <= 1/L has f(x_k) - f* <= |x_0 - x*|^2 / (2 t k); if it is also strongly convex with constant m,

    f(x) - f*  <=  |grad f(x)|^2 / (2 m)                                                                           (3)

is a certificate, and each step 1/L takes the share m/L off the error: ill-conditioned problems are slow. On a quadratic
a step above 2/L multiplies the error along the steepest axis by 1 - tL < -1, so that it grows without end. What L is
need not be known: along the way

    L  >=  |grad f(x+) - grad f(x)| / |x+ - x|                                                                     (4)

which, when (1) diverges, soon is L itself (it is the power method).
References: Nesterov, Lectures on Convex Optimization (2018), sections 2.1 and 1.2; Boyd and Vandenberghe, 9.3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import ParameterError
from summula.core.estimator.parameters import integer, none, one_of, real
from summula.core.numerics.solution import Solution
from summula.optimize.line_searches import Line, Stop, backtracking, by_slopes, golden_section
from summula.optimize.objective import Objective, Trail, check_arguments

__all__ = ["gradient_descent"]

Array = NDArray[np.float64]

_RISES = 10  # times in a row that the value may grow
_HUGE = 1e150  # a gradient whose square is no number any more
_NOISE = 1e-12  # of the value: growth below it is rounding


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
    """Minimise a smooth function by going along its negative gradient.

    Parameters
    ----------
    f : callable
        x -> number.
    x0 : number or array of shape (d,)
        Where to start.
    gradient : callable, optional
        x -> array of shape (d,); central differences without it.
    step : float or {"backtracking", "secant", "golden"}, optional
        A number is the same step t always; a word is a search along the line (see `line_search`). By default 1/L where
        `lipschitz` is given, else "backtracking".
    lipschitz : float, optional
        L, the largest curvature. A fixed step of 2/L or more is refused.
    strong_convexity : float, optional
        m, the smallest curvature, where it is known: it gives the solution a `gap`, by (3).
    tolerance : float, default=1e-6
        The length of the gradient at which to stop.
    max_steps : int, default=10_000

    Returns
    -------
    Solution
        `trace` has the values, `path` the points. When a fixed step is too long, `status` is "diverged", `x` the best
        point seen, and `message` names a step that would be safe, by the L seen on the way.

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
    The values grow: step=0.25 is too long where the gradient changes at a rate of L = 10 or more; steps below 2/L = 0.2
    descend, and 1/L = 0.1 is safe.
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
            f"step={step:.6g} is not below 2/L = {2 / lipschitz:.6g}, from where on gradient descent need not go "
            f"down; use step={1 / lipschitz:.6g} (1/L), or leave it out."
        )
    objective = Objective(f, x0, gradient, function="gradient_descent")
    if isinstance(step, str):
        found, slope = _searching(objective, step, tolerance, max_steps)
    else:
        found, slope = _fixed(objective, float(step), tolerance, max_steps)
    if strong_convexity is not None:
        gap = float(slope @ slope) / (2 * strong_convexity)
        return replace(found, gap=gap)
    return found


def _fixed(objective: Objective, t: float, tolerance: float, max_steps: int) -> tuple[Solution, Array]:
    """(1) with one step for all; the solution and its gradient."""
    x, value = objective.start, objective.first_value()
    g, first, rises, L = objective.gradient(x), value, 0, 0.0
    best, trail = (x, value, g), Trail(objective)
    trail.add(x, value)
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
        if trail.fallen:
            return trail.bottomless(ahead, value_ahead), g
        if not finite or (rises >= _RISES and value_ahead > first):
            status = "diverged"
            break
        x, value, g = ahead, value_ahead, g_ahead
    else:
        status = "converged" if np.linalg.norm(g) <= tolerance else status
    if status == "converged":
        return trail.end(x, value, status), g
    return trail.end(best[0], best[1], status, message=_why(status, t, L, tolerance, g)), best[2]


def _why(status: str, t: float, L: float, tolerance: float, g: Array) -> str:
    """What to do about a descent that did not arrive."""
    if L and t >= 2 / L:
        return (
            f"The values {'grow' if status == 'diverged' else 'do not settle'}: step={t:.6g} is too long where the "
            f"gradient changes at a rate of L = {L:.4g} or more; steps below 2/L = {2 / L:.4g} descend, and 1/L = "
            f"{1 / L:.4g} is safe."
        )
    if status == "diverged":
        return f"f has no finite value or gradient after a step of {t:.6g} times the gradient; use a smaller step."
    safe = f", a longer step (up to {2 / L:.6g})" if L else ""
    return (
        f"The gradient has length {np.linalg.norm(g):.3g} and should have {tolerance:.3g}; allow more max_steps{safe} "
        "or use bfgs."
    )


def _searching(objective: Objective, search: str, tolerance: float, max_steps: int) -> tuple[Solution, Array]:
    """(1) with a search along each line; the solution and its gradient."""
    x, value = objective.start, objective.first_value()
    g, t, trail = objective.gradient(x), 1.0, Trail(objective)
    trail.add(x, value)
    for _ in range(max_steps):
        if np.linalg.norm(g) <= tolerance:
            return trail.end(x, value, "converged"), g
        if trail.stuck(g):
            return trail.end(x, value, "stalled", message=objective.why_stalled(x, g)), g
        line = Line(objective, x, -g, value, g)
        stop = _search(line, search, t)
        if stop.status == "unbounded":
            return trail.bottomless(line.point(stop.t), stop.value), g
        if stop.t == 0.0:
            return trail.end(x, value, "stalled", message=objective.why_stalled(x, g)), g
        x, value, g, t = line.point(stop.t), stop.value, line.gradient(stop.t), stop.t
        trail.add(x, value)
        if trail.fallen:
            return trail.bottomless(x, value), g
    if np.linalg.norm(g) <= tolerance:
        return trail.end(x, value, "converged"), g
    return trail.end(x, value, "max_iter", message=_why("max_iter", 0.0, 0.0, tolerance, g)), g


def _search(line: Line, search: str, last: float) -> Stop:
    """A step from the last one: twice as long to begin with, so that steps can grow again."""
    if search == "backtracking":
        return backtracking(line, 2 * last)
    if search == "secant":
        return by_slopes(line, last, 1e-3)
    return golden_section(line, last, 1e-4)
