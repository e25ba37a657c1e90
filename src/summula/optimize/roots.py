"""Newton's method for systems of equations f(x) = 0 with as many equations as unknowns.

The linearisation at x is zero where

    J(x) p = -f(x),      x+ = x + t p                                                                              (1)

with J the Jacobian; in one variable x+ = x - f(x) / f'(x). The full step t = 1 converges quadratically near a simple
root, but may fail far from it. Along p the norm of f initially decreases, d|f|/dt = -|f|, so t is halved until

    |f(x + t p)|  <=  (1 - c t) |f(x)|,     c = 1e-4                                                               (2)

(damping). If J is singular, p is the least-squares solution of (1) of minimum norm. The method may then end at a
minimum of |f| that is not a root, which is reported.
Reference: Deuflhard, Newton Methods for Nonlinear Problems (2011), chapter 3; Nocedal and Wright, chapter 11.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import DataError, ParameterError
from summula.core.estimator.parameters import integer, real
from summula.core.numerics.solution import Solution
from summula.optimize.problems.objective import Objective, Trail, check_arguments, differences

__all__ = ["newton_root"]

Array = NDArray[np.float64]

_ENOUGH = 1e-4
_HALVINGS = 50
_ROUNDING = 4 * float(np.finfo(np.float64).eps)


def newton_root(
    f: Callable[[Any], Any],
    x0: Any,
    *,
    derivative: Callable[[Any], Any] | None = None,
    tolerance: float = 1e-10,
    max_steps: int = 100,
) -> Solution:
    """Find a root of f by damped Newton's method.

    Parameters
    ----------
    f : callable
        x -> number, or array of shape (d,): as many equations as unknowns.
    x0 : number or array of shape (d,)
        Starting point.
    derivative : callable, optional
        x -> f'(x), or the Jacobian of shape (d, d) with one row per equation. By default central differences.
    tolerance : float, default=1e-10
        Stop when the norm of f(x) is at most this value, or when steps no longer change x because of rounding.
    max_steps : int, default=100
        Maximum number of steps.

    Returns
    -------
    Solution
        `value` is the norm of f(x), and `trace` contains it for every step. `status` is "stalled" if it cannot be
        decreased further and is not zero.

    References
    ----------
    P. Deuflhard, Newton Methods for Nonlinear Problems (2011), section 3.2.

    Examples
    --------
    >>> from summula.optimize import newton_root
    >>> found = newton_root(lambda x: x**2 - 2, 1.0, derivative=lambda x: 2 * x)
    >>> round(found.x, 10), found.n_steps
    (1.4142135624, 4)
    """
    check_arguments("newton_root", tolerance=(tolerance, (real(0),)), max_steps=(max_steps, (integer(1),)))
    if derivative is not None and not callable(derivative):
        raise ParameterError(f"The 'derivative' parameter of newton_root must be a function of x, not {derivative!r}.")
    unknowns = Objective(f, x0, function="newton_root")  # handles numbers and arrays
    d = unknowns.start.size

    def values(x: Array) -> Array:
        try:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                F = np.asarray(f(unknowns.outside(x)), np.float64)
        except OverflowError:
            return np.full(d, np.inf)
        if F.size != d:
            raise DataError(f"f returned {F.size} values for {d} unknowns; newton_root needs {d} equations.")
        return F.reshape(d)

    def jacobian(x: Array) -> Array:
        if derivative is None:
            return differences(values, x)
        J = np.asarray(derivative(unknowns.outside(x)), np.float64)
        if J.size != d * d:
            raise DataError(f"derivative returned an array of shape {J.shape}; for {d} unknowns it must be {d} by {d}.")
        return J.reshape(d, d)

    x, trail = unknowns.start, Trail(unknowns)
    F = values(x)
    length = float(np.linalg.norm(F))
    if not np.isfinite(length):
        raise DataError("f is not finite at x0; choose another x0.")
    trail.add(x, length)
    for _ in range(max_steps):
        if length <= tolerance:
            break
        J = jacobian(x)
        p = _step(J, F)
        if np.linalg.norm(p) <= _ROUNDING * np.linalg.norm(x) and np.linalg.matrix_rank(J) == d:
            return trail.end(x, length, "converged", message="Steps no longer change x: f is zero up to rounding.")
        t = 1.0
        for _ in range(_HALVINGS):
            ahead = values(x + t * p)
            if np.linalg.norm(ahead) <= (1 - _ENOUGH * t) * length:  # (2); false for NaN
                break
            t /= 2
        else:
            return trail.end(x, length, "stalled", message=_advice(length))
        x, F, length = x + t * p, ahead, float(np.linalg.norm(ahead))
        trail.add(x, length)
    if length <= tolerance:
        return trail.end(x, length, "converged")
    return trail.end(x, length, "max_iter", message=_advice(length))


def _step(J: Array, F: Array) -> Array:
    """Solve (1), by least squares if J is singular."""
    try:
        p = np.linalg.solve(J, -F)
        if np.isfinite(p).all() and np.linalg.cond(J) < 1e14:
            return np.asarray(p, np.float64)
    except np.linalg.LinAlgError:
        pass
    if not np.isfinite(J).all():
        raise DataError("The derivative of f is not finite at an iterate; start from another x0.")
    return np.asarray(np.linalg.lstsq(J, -F, rcond=1e-12)[0])


def _advice(length: float) -> str:
    return (
        f"The norm of f is {length:.3g} and Newton steps hardly decrease it: there may be no root nearby; start from "
        "another x0, or check the derivative."
    )
