"""Limited-memory BFGS (SciPy's), preconditioned by an approximate Hessian.

With H0 = R'R close to the Hessian, the variables u = s R x have curvature close to 1 in every direction, so few steps
suffice. SciPy's first step has length one; s is chosen so that it is the step -H0^-1 g.
References: Liu and Nocedal (1989); Byrd, Lu, Nocedal and Zhu (1995).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from summula.core.numerics.solution import Solution

__all__ = ["Preconditioner", "lbfgs"]

Array = NDArray[np.float64]


class Preconditioner(Protocol):
    """R of H0 = R'R, by its inverse."""

    def away(self, u: Array) -> Array:
        """R^-1 u."""

    def back(self, g: Array) -> Array:
        """R'^-1 g."""


def lbfgs(
    evaluate: Callable[[Array], tuple[float, Array]],
    x: Array,
    preconditioner: Preconditioner,
    *,
    enough: Callable[[Array, float, Array], bool],
    max_steps: int = 1_000,
    memory: int = 10,
) -> Solution:
    """Minimise from x until `enough(x, value, gradient)` holds.

    Parameters
    ----------
    evaluate : callable
        x -> value and gradient.
    x : ndarray
    preconditioner : Preconditioner
    enough : callable
        Whether a point is good enough.
    max_steps, memory : int
        Maximum number of steps, and number of stored pairs.

    Returns
    -------
    Solution
        `trace` contains the values; `gap` is NaN, since this solver does not compute one.
    """
    start = x
    value, gradient = evaluate(x)
    best, trace = (x, value, gradient), [value]
    round_slope = preconditioner.back(gradient)
    length = float(np.linalg.norm(round_slope))
    if enough(x, value, gradient) or not length > 0:
        return Solution(x, value, np.nan, "converged", True, 0, (value,))
    status, at_start = "max_iter", (value, round_slope * length)

    def around(u: Array) -> tuple[float, Array]:
        nonlocal best
        if not u.any():
            return at_start
        here = start + preconditioner.away(u * length)
        value, gradient = evaluate(here)
        if value <= best[1]:
            best = (here, value, gradient)
        if not np.isfinite(value):
            return np.inf, np.zeros_like(u)
        return value, preconditioner.back(gradient) * length

    def after(intermediate_result: optimize.OptimizeResult) -> None:
        nonlocal status
        trace.append(float(intermediate_result.fun))
        if enough(*best):
            status = "converged"
            raise StopIteration

    result = optimize.minimize(
        around,
        np.zeros_like(x),
        jac=True,
        method="L-BFGS-B",
        callback=after,
        options={
            "maxiter": max_steps,
            "maxfun": 20 * max_steps,
            "maxcor": memory,
            "maxls": 40,
            "ftol": 0.0,  # `enough` decides
            "gtol": 0.0,
        },
    )
    if status != "converged" and result.nit < max_steps:
        status = "stalled"  # no step decreases the value any more, because of rounding
    return Solution(best[0], best[1], np.nan, status, status == "converged", int(result.nit), tuple(trace))
