"""Line searches: choose the step length from x in a direction p.

With phi(t) = f(x + t p), phi'(t) = p'grad f(x + t p) and phi''(t) = p'H(x + t p) p, four methods for t > 0:

    backtracking   t = s, s/2, s/4, ...   until   phi(t) <= phi(0) + c t phi'(0)   (Armijo),  c = 1e-4             (1)
    secant         t+ = t - phi'(t) (t - t-) / (phi'(t) - phi'(t-))                                                (2)
    newton         t+ = t - phi'(t) / phi''(t)       (Newton-Raphson)                                              (3)
    golden         a < u < v < b, u = b - r (b - a), v = a + r (b - a), r = (sqrt(5) - 1) / 2;
                   shrink the interval:  b = v if phi(u) < phi(v), else a = u                                      (4)

(1) accepts any step with sufficient decrease; the others find a minimum along the line. (2) and (3) solve phi' = 0,
which may also be a maximum, so they maintain a bracket: at its left end phi decreases and (1) holds; its right end is
too far (phi increases there, or (1) fails). A step outside the bracket is replaced by its midpoint, or by 2 t if there
is no right end yet. (4) needs neither derivatives nor smoothness, only that phi is unimodal; each step shrinks the
interval by 38 %.
References: Nocedal and Wright, Numerical Optimization (2006), chapter 3; Kiefer (1953) for (4).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.docstrings import inherit_docs
from summula.core.errors import DataError, ParameterError
from summula.core.estimator.parameters import integer, one_of, real
from summula.core.numerics.solution import Solution
from summula.optimize.problems.objective import MINIMISER, Objective, check_arguments, vector

__all__ = ["Line", "Stop", "backtracking", "by_slopes", "golden_section", "line_search"]

Array = NDArray[np.float64]

_ARMIJO = 1e-4
_SLACK = 1e-10  # relative tolerance on values: near a minimum slopes are more accurate than values
_NOISE = 4 * float(np.finfo(np.float64).eps)  # relative differences below this are rounding
_GOLDEN = (5.0**0.5 - 1) / 2
_FAR = 2.0**50  # times the first step: if phi still decreases there, f is considered unbounded


class Stop(NamedTuple):
    """Result of a line search."""

    t: float
    value: float
    status: str


class Line:
    """phi(t) = f(x + t p), its slope and curvature. Values are stored, and the gradient at the last point is cached."""

    def __init__(self, objective: Objective, x: Array, direction: Array, value: float, gradient: Array | None) -> None:
        self.objective, self.x, self.direction = objective, x, direction
        self.values, self.steps = [value], [0.0]
        self._at, self._gradient = 0.0, gradient

    def point(self, t: float) -> Array:
        """x + t p."""
        return np.asarray(self.x + t * self.direction)

    def value(self, t: float) -> float:
        """phi(t)."""
        if t == self.steps[-1]:
            return self.values[-1]
        value = self.objective.value(self.point(t))
        self.values.append(value)
        self.steps.append(t)
        return value

    def gradient(self, t: float) -> Array:
        """The gradient of f at x + t p."""
        if self._gradient is None or t != self._at:
            self._at, self._gradient = t, self.objective.gradient(self.point(t))
        return self._gradient

    def slope(self, t: float) -> float:
        """phi'(t)."""
        return float(self.gradient(t) @ self.direction)

    def curvature(self, t: float) -> float:
        """phi''(t)."""
        return float(self.direction @ self.objective.hessian(self.point(t)) @ self.direction)


@inherit_docs(MINIMISER)
def line_search(
    f: Callable[[Any], Any],
    x: Any,
    direction: Any,
    *,
    method: str = "secant",
    gradient: Callable[[Any], Any] | None = None,
    hessian: Callable[[Any], Any] | None = None,
    step: float = 1.0,
    tolerance: float = 1e-8,
    max_steps: int = 200,
) -> Solution:
    """Find a step length from x in a direction that decreases f.

    Parameters
    ----------
    x : number or array of shape (d,)
    direction : number or array of shape (d,)
        Search direction; it must be a descent direction.
    method : {"secant", "newton", "golden", "backtracking"}, default="secant"
        Equations (2), (3), (4) and (1) of this module: a minimum along the line, using slopes, slopes and curvatures,
        or values only; or a step with sufficient decrease.
    gradient, hessian : callable, optional
        Derivatives of f. By default finite differences, if the method needs them.
    step : float, default=1.0
        Initial step.
    tolerance : float, default=1e-8
        For "secant" and "newton" the slope at which to stop, relative to the slope at x; for "golden" the width of the
        interval, relative to its right end.
    max_steps : int, default=200
        Maximum number of steps.

    Returns
    -------
    Solution
        `x` is the step t, `value` is f(x + t direction), `path` contains the steps tried and `trace` the values there.
        `status` is "unbounded" if f decreases without bound.

    References
    ----------
    J. Nocedal and S. Wright, Numerical Optimization (2006), chapter 3.

    Examples
    --------
    >>> import numpy as np
    >>> from summula.optimize import line_search
    >>> found = line_search(lambda x: (x[0] - 3) ** 2 + x[1] ** 2, np.zeros(2), np.array([1.0, 0.0]), method="golden")
    >>> round(found.x, 6), found.status
    (3.0, 'converged')
    """
    check_arguments(
        "line_search",
        method=(method, (one_of("secant", "newton", "golden", "backtracking"),)),
        step=(step, (real(0, open_low=True),)),
        tolerance=(tolerance, (real(0),)),
        max_steps=(max_steps, (integer(1),)),
    )
    objective = Objective(f, x, gradient, hessian, function="line_search")
    p = vector(direction, "direction", "line_search")
    if p.shape != objective.start.shape:
        raise DataError(f"direction has {p.size} entries but x has {objective.start.size}; they must agree.")
    line = Line(objective, objective.start, p, objective.first_value(), None)
    if method == "golden":
        stop = golden_section(line, step, tolerance, max_steps)
    else:
        slope = line.slope(0.0)
        if not slope < 0:
            raise ParameterError(
                f"direction is not a descent direction: the slope of f along it is {slope:.3g}; reverse it, or use the "
                "negative gradient."
            )
        if method == "backtracking":
            stop = backtracking(line, step, max_steps)
        else:
            stop = by_slopes(line, step, tolerance, max_steps, newton=method == "newton")
    message = {
        "unbounded": f"f still decreases at step {stop.t:.3g}: it may have no minimum along this direction.",
        "stalled": "No step was found that decreases f further: the remaining decrease is below rounding error, or f "
        "does not decrease along the direction (check the gradient).",
    }.get(stop.status, "")
    return Solution(
        stop.t,
        stop.value,
        np.nan,
        stop.status,
        stop.status == "converged",
        len(line.steps) - 1,
        tuple(line.values),
        tuple(line.steps),
        message,
    )


def backtracking(line: Line, step: float, max_steps: int = 60) -> Stop:
    """Halve the step until the decrease is sufficient: (1)."""
    start, slope, t = line.values[0], line.slope(0.0), step
    for _ in range(max_steps):
        value = line.value(t)
        if value < start and value <= start + _ARMIJO * t * slope:  # the second may be lost in rounding
            return Stop(t, value, "converged")
        t /= 2
    return Stop(0.0, start, "stalled")


def by_slopes(
    line: Line, step: float, tolerance: float, max_steps: int = 60, *, newton: bool = False, least: int = 1
) -> Stop:
    """Find a point with |phi'(t)| <= tolerance |phi'(0)| at which (1) holds, by (2) or (3) within a bracket.

    At least `least` steps are evaluated (unless the slope is zero): two make the search exact on a parabola.
    """
    start, slope0 = line.values[0], line.slope(0.0)
    low, high, best = 0.0, np.inf, Stop(0.0, start, "stalled")
    before, t = (0.0, slope0), step
    for k in range(1, max_steps + 1):
        value, slope = line.value(t), line.slope(t)
        enough = value <= start + _ARMIJO * t * slope0 + _SLACK * abs(start)
        if enough and abs(slope) <= (tolerance if k >= least else _NOISE) * abs(slope0):
            return Stop(t, value, "converged")
        width = high - low
        if enough and slope < 0:
            low = t
        else:
            high = t
        if enough and value <= best.value:
            best = Stop(t, value, "stalled")
        if value == -np.inf or low > _FAR * step:
            return Stop(t, value, "unbounded")
        if high < np.inf and high - low <= _NOISE * high:
            break
        bend = line.curvature(t) if newton else (slope - before[1]) / (t - before[0])
        before = (t, slope)
        after = t - slope / bend if bend > 0 else np.inf
        # A bracket that does not shrink by a third is halved, so that convergence is guaranteed.
        inside = low < after < high and (high == np.inf or width == np.inf or high - low < 0.67 * width)
        if inside:
            t = min(float(after), 1e3 * t)
        else:
            t = 2 * t if high == np.inf else (low + high) / 2
    return best


def golden_section(line: Line, step: float, tolerance: float, max_steps: int = 200) -> Stop:
    """Golden-section search: shrink an interval that contains a minimum, equation (4)."""
    start = line.values[0]
    a, b = 0.0, step
    value, last = line.value(b), start
    while value < last:  # still decreasing: move the interval to the right
        if b > _FAR * step or value == -np.inf:
            return Stop(b, value, "unbounded")
        a, b, last = (b * _GOLDEN if b > step else 0.0), b / _GOLDEN, value
        value = line.value(b)
    u, v = b - _GOLDEN * (b - a), a + _GOLDEN * (b - a)
    at_u, at_v = line.value(u), line.value(v)
    for _ in range(max_steps):
        if b - a <= tolerance * b:
            break
        if at_u < at_v:
            b, v, at_v = v, u, at_u
            u = b - _GOLDEN * (b - a)
            at_u = line.value(u)
        else:
            a, u, at_u = u, v, at_v
            v = a + _GOLDEN * (b - a)
            at_v = line.value(v)
    t, value = (u, at_u) if at_u < at_v else (v, at_v)
    if value > start:
        return Stop(0.0, start, "stalled")
    return Stop(t, value, "converged" if b - a <= tolerance * b else "max_iter")
