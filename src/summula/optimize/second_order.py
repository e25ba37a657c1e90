"""Newton's method for minimisation: repeatedly minimise the quadratic approximation of f at x.

    (H + tau D) p = -g,     x+ = x + t p,     t = 1, 1/2, 1/4, ... until f(x + t p) <= f(x) + c t g'p              (1)

with g and H the gradient and the Hessian at x. If H is positive definite, tau is 0, and convergence near a minimum is
quadratic. If not, the quadratic has no minimum and -H^-1 g may be an ascent direction. With m < 0 the smallest
eigenvalue of D^-1/2 H D^-1/2, where D is the diagonal of |H| (so that the scaling of variables does not matter),

    tau = -2 m                                                                                                     (2)

reverses the most negative curvature, so that p is a descent direction; a singular H gets a tau that is tiny relative to
its largest eigenvalue. A shifted step has no natural length, so it may also be doubled. The number of shifts is
reported.

With the information (the expected Hessian) of a negative log-likelihood in place of H this is Fisher scoring; under a
canonical link, as in logistic regression, the two are the same.
A point with zero gradient and a negative eigenvalue is a saddle point or a maximum, and is reported as such.
References: Nocedal and Wright, Numerical Optimization (2006), section 3.4; Boyd and Vandenberghe, section 9.5.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from summula.core.docstrings import inherit_docs
from summula.core.errors import DataError
from summula.core.estimator.parameters import integer, real
from summula.core.numerics.solution import Solution
from summula.optimize.line_searches import Line, backtracking, by_slopes
from summula.optimize.problems.objective import MINIMISER, Objective, check_arguments, start_trail

__all__ = ["newton"]

Array = NDArray[np.float64]

_SINGULAR = 1e-10  # eigenvalues below this, relative to the largest, count as zero
_FLAT = 0.9  # final slope of the line search along a shifted step, relative to the initial slope
_ROUNDING = float(np.finfo(np.float64).eps)


@inherit_docs(MINIMISER)
def newton(
    f: Callable[[Any], Any],
    x0: Any,
    *,
    gradient: Callable[[Any], Any] | None = None,
    hessian: Callable[[Any], Any] | None = None,
    tolerance: float = 1e-8,
    max_steps: int = 200,
) -> Solution:
    """Minimise a smooth function by Newton's method, with step halving and shifted Hessians.

    Parameters
    ----------
    gradient, hessian : callable, optional
        x -> array of shape (d,); x -> array of shape (d, d). By default finite differences. With the expected Hessian
        of a negative log-likelihood (the Fisher information) this is Fisher scoring.
    tolerance : float, default=1e-8
        Stop when the norm of the gradient is at most this value, or when the decrease predicted by the quadratic
        model is below rounding error.
    max_steps : int, default=200
        Maximum number of steps.

    Returns
    -------
    Solution
        `trace` contains the objective values, `path` the iterates. `status` is "saddle" if the gradient is zero
        and the Hessian has a negative eigenvalue. `message` states in how many steps the Hessian was shifted.

    References
    ----------
    J. Nocedal and S. Wright, Numerical Optimization (2006), section 3.4.

    Examples
    --------
    >>> from summula.optimize import newton
    >>> found = newton(
    ...     lambda x: x**4 - 2 * x**2, 0.1, gradient=lambda x: 4 * x**3 - 4 * x, hessian=lambda x: 12 * x**2 - 4
    ... )
    >>> round(found.x, 8), round(found.value, 8), found.status
    (1.0, -1.0, 'converged')
    >>> found.message
    'The Hessian was not positive definite in 1 of 4 steps and was shifted.'
    """
    check_arguments("newton", tolerance=(tolerance, (real(0),)), max_steps=(max_steps, (integer(1),)))
    objective = Objective(f, x0, gradient, hessian, function="newton")
    x, value, g, trail = start_trail(objective)
    shifts = 0
    while True:
        p, smallest, shifted = _step(objective, x, g)
        small = bool(np.linalg.norm(g) <= tolerance)
        if small and smallest < 0:
            return trail.end(x, value, "saddle", message=_saddle(smallest))
        if small or (not shifted and -float(g @ p) / 2 <= _ROUNDING * abs(value)):
            return trail.end(x, value, "converged", message=_shifted(shifts, len(trail.values) - 1))
        if len(trail.values) > max_steps:
            return trail.out_of_steps(x, value, g, tolerance)
        line = Line(objective, x, p, value, g)
        stop = by_slopes(line, 1.0, _FLAT) if shifted else backtracking(line, 1.0)
        if stop.status == "unbounded":
            return trail.unbounded(line.point(stop.t), stop.value)
        if stop.t == 0.0:
            return trail.stalled(x, value, g)
        shifts += shifted
        x, value, g = line.point(stop.t), stop.value, objective.gradient(line.point(stop.t))
        trail.add(x, value)
        if trail.is_diverging:
            return trail.unbounded(x, value)


def _step(objective: Objective, x: Array, g: Array) -> tuple[Array, float, bool]:
    """Return Newton's direction (1), the smallest eigenvalue of H if negative (else 0), and whether H was shifted."""
    H = objective.hessian(x)
    if not (np.isfinite(H).all() and np.isfinite(g).all()):
        raise DataError("The gradient or the Hessian is not finite at an iterate; start from another x0.")
    diagonal = np.abs(np.diag(H))
    D = np.sqrt(np.where(diagonal > 0, diagonal, max(float(diagonal.max()), 1e-300)))
    C = H / D / D[:, None]
    try:
        factor = linalg.cho_factor(C, lower=True)
        if np.diag(factor[0]).min() ** 2 > _SINGULAR:
            return -linalg.cho_solve(factor, g / D) / D, 0.0, False
    except np.linalg.LinAlgError:
        pass
    values, vectors = np.linalg.eigh((C + C.T) / 2)
    smallest, largest = float(values[0]), float(np.abs(values).max())
    tau = 0.0
    if not largest:  # no curvature: p = -g
        return -g, 0.0, True
    if smallest <= _SINGULAR * largest:
        tau = max(-2 * smallest, _SINGULAR * largest - smallest)  # (2)
    p = -vectors @ ((vectors.T @ (g / D)) / (values + tau)) / D
    lowest = float(np.linalg.eigvalsh((H + H.T) / 2)[0]) if smallest < -_SINGULAR * largest else 0.0
    return np.asarray(p), lowest, tau > 0


def _shifted(shifts: int, steps: int) -> str:
    if not shifts:
        return ""
    return f"The Hessian was not positive definite in {shifts} of {steps} steps and was shifted."


def _saddle(smallest: float) -> str:
    return (
        f"The gradient is zero, but the Hessian has the eigenvalue {smallest:.3g}: a saddle point or a maximum, not a "
        "minimum; start from another x0."
    )
