"""Coordinate descent: minimise over one variable at a time with the others fixed.

    x_j  <-  argmin over z of f(x_1, ..., x_{j-1}, z, x_{j+1}, ..., x_d),     j = 1, ..., d, 1, ..., d, ...        (1)

For a quadratic 1/2 x'Px + q'x the argmin is exact, and under bounds it is the nearest point within them:

    x_j  <-  clip(x_j - g_j / P_jj,  low_j, high_j),       g = Px + q                                              (2)

(without bounds this is the Gauss-Seidel method for Px = -q). Any other f is minimised along each axis by golden-section
search. If f is smooth and strictly convex, or a smooth convex function plus functions of single variables, the method
converges to the minimum; it may stop early at a kink that is not aligned with the axes. To maximise (coordinate ascent)
pass -f.

Suboptimality with respect to the minimum f* of the quadratic: f(x) - f* = 1/2 g'P^-1 g, and within finite bounds

    f(x) - f*  <=  sum_j max over z in [low_j, high_j] of g_j (x_j - z)                                            (3)

since f lies above its tangent planes.
References: Luo and Tseng (1992); Tseng (2001); Wright, Coordinate descent algorithms (2015).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import DataError, ParameterError
from summula.core.estimator.parameters import integer, real
from summula.core.numerics.solution import Solution
from summula.optimize.line_searches import Line, golden_section
from summula.optimize.problems.objective import Objective, Trail, check_arguments, differences
from summula.optimize.problems.quadratics import Quadratic, check_convex
from summula.optimize.solvers.linear_constraints import bound_pairs

__all__ = ["coordinate_descent"]

Array = NDArray[np.float64]

_WIDTH = 1e-8  # relative width of golden sections, about the best that function values allow


def coordinate_descent(
    f: Callable[[Any], Any] | tuple[Any, Any] | Quadratic,
    x0: Any = None,
    *,
    bounds: Any = None,
    tolerance: float = 1e-8,
    max_sweeps: int = 10_000,
) -> Solution:
    """Minimise a function by coordinate descent.

    Parameters
    ----------
    f : pair (P, q), Quadratic or callable
        The quadratic 1/2 x'Px + q'x with P positive semidefinite, minimised exactly along each axis; or any function
        x -> number, minimised along each axis by golden-section search.
    x0 : number or array of shape (d,), optional
        Starting point; 0 by default for a quadratic.
    bounds : pair (low, high), or one for each variable, optional
        Bounds of the variables, None or infinite for no bound; for quadratics only.
    tolerance : float, default=1e-8
        Stop when no variable changes by more than this in a sweep, relative to max(1, max_j |x_j|).
    max_sweeps : int, default=10_000
        Maximum number of sweeps over all variables.

    Returns
    -------
    Solution
        `n_steps` is the number of sweeps and `trace` contains the value after each; `path` contains every update. For
        a quadratic `gap` bounds the suboptimality, if possible.

    References
    ----------
    S. Wright, Coordinate descent algorithms, Mathematical Programming 151 (2015), 3-34.

    Examples
    --------
    >>> from summula.optimize import coordinate_descent
    >>> found = coordinate_descent(([[2.0, 1.0], [1.0, 2.0]], [-3.0, -3.0]))
    >>> found.status, found.x.round(6).tolist()
    ('converged', [1.0, 1.0])
    >>> coordinate_descent(([[2.0, 1.0], [1.0, 2.0]], [-3.0, -3.0]), bounds=(0.0, 0.5)).x.tolist()
    [0.5, 0.5]
    """
    check_arguments("coordinate_descent", tolerance=(tolerance, (real(0),)), max_sweeps=(max_sweeps, (integer(1),)))
    if isinstance(f, tuple | list):
        if len(f) != 2:
            raise ParameterError(f"coordinate_descent expects a quadratic as a pair (P, q); got {len(f)} items.")
        f = Quadratic(*f)
    if isinstance(f, Quadratic):
        return _quadratic(f, x0, bounds, tolerance, max_sweeps)
    if bounds is not None:
        raise ParameterError(
            "coordinate_descent supports bounds for quadratics (P, q) only; otherwise use constrained_minimum."
        )
    if x0 is None:
        raise ParameterError("coordinate_descent needs a starting point x0 if f is a function.")
    return _general(Objective(f, x0, function="coordinate_descent"), tolerance, max_sweeps)


def _quadratic(f: Quadratic, x0: Any, bounds: Any, tolerance: float, max_sweeps: int) -> Solution:
    """The exact steps (2)."""
    check_convex(f.P, "coordinate_descent")
    d = len(f.q)
    low, high = bound_pairs(bounds, d, "coordinate_descent")
    objective = Objective(f, np.zeros(d) if x0 is None else x0, function="coordinate_descent")
    if objective.start.size != d:
        raise DataError(f"x0 has {objective.start.size} entries and q has {d}; they must agree.")
    objective.is_number = False
    x = np.clip(objective.start, low, high)
    g, trail, diagonal = f.gradient(x), Trail(objective), np.diag(f.P)
    trail.add(x, f(x))
    values = [trail.values[0]]
    for sweep in range(max_sweeps):
        largest = 0.0
        for j in range(d):
            if diagonal[j] > 0:
                z = float(np.clip(x[j] - g[j] / diagonal[j], low[j], high[j]))
            else:  # linear along this axis: move to the bound, if there is one
                z = float(x[j] if g[j] == 0 else low[j] if g[j] > 0 else high[j])
            if not np.isfinite(z):
                trail.values = values
                return trail.unbounded(x, -np.inf)
            g += (z - x[j]) * f.P[:, j]
            largest, x[j] = max(largest, abs(z - x[j])), z
            trail.add(x, values[-1])
        values.append(f(x))
        if sweep % 50 == 49:
            g = f.gradient(x)  # remove the accumulated rounding errors
        if largest <= tolerance * max(1.0, float(np.abs(x).max())):
            break
    status = "converged" if largest <= tolerance * max(1.0, float(np.abs(x).max())) else "max_iter"
    trail.values = values
    message = "" if status == "converged" else "The variables have not converged; increase max_sweeps, or use bfgs."
    return trail.end(x, values[-1], status, gap=_gap(f, x, low, high), message=message)


def _gap(f: Quadratic, x: Array, low: Array, high: Array) -> float:
    """Return a bound on the suboptimality: exact without bounds, else (3); NaN if there is none."""
    g = f.gradient(x)
    if np.isinf(low).all() and np.isinf(high).all():
        lowest = Quadratic(f.P, g).lowest().value  # of f(x + p) - f(x) over p
        return max(-lowest, 0.0) if np.isfinite(lowest) else float("nan")
    furthest = np.where(g > 0, low, high)
    terms = np.where(g == 0, 0.0, g * (x - np.where(g == 0, x, furthest)))
    return float(terms.sum()) if np.isfinite(terms).all() else float("nan")


def _general(objective: Objective, tolerance: float, max_sweeps: int) -> Solution:
    """Perform the steps (1) by golden-section search, starting from the last step along each axis."""
    x, value = objective.start, objective.first_value()
    d, trail = len(x), Trail(objective)
    trail.add(x, value)
    values, steps, status = [value], np.full(d, 0.1) * np.maximum(1.0, np.abs(x)), "max_iter"
    for _ in range(max_sweeps):
        before = x
        for j in range(d):
            axis = np.zeros(d)
            axis[j] = 1.0
            signs = (-1.0, 1.0) if _slope(objective, x, axis) > 0 else (1.0, -1.0)
            for sign in signs:
                line = Line(objective, x, sign * axis, value, None)
                stop = golden_section(line, steps[j], _WIDTH)
                if stop.status == "unbounded":
                    trail.values = values
                    return trail.unbounded(line.point(stop.t), stop.value)
                if stop.value < value:
                    x, value = line.point(stop.t), stop.value
                    steps[j] = stop.t
                    break
            trail.add(x, value)
        values.append(value)
        if np.abs(x - before).max() <= tolerance * max(1.0, float(np.abs(x).max())):
            status = "converged"
            break
    trail.values = values
    message = "" if status == "converged" else "The variables have not converged; increase max_sweeps, or use bfgs."
    return trail.end(x, value, status, message=message)


def _slope(objective: Objective, x: Array, axis: Array) -> float:
    """Return the slope along an axis by finite differences, which gives the direction to search first."""
    return float(differences(lambda t: objective.value(x + t[0] * axis), np.zeros(1))[0])
