"""Conjugate gradients: minimise 1/2 x'Hx - b'x for a positive (semi)definite H given by its matrix-vector products.

With a diagonal scaling M (Jacobi), r = b - Hx, z = r / M and p the search direction (Hestenes and Stiefel 1952):

    a = r'z / p'Hp,   x += a p,   r -= a Hp,   z = r / M,   p = z + (r'z new / r'z old) p                        (1)

Started at 0, every x is in the span of b / M, H b / M, ...: with M = 1 the limit is the minimiser of minimum norm.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from summula.core.numerics.solution import Solution

__all__ = ["minimise_quadratic"]

Array = NDArray[np.float64]


def minimise_quadratic(
    product: Callable[[Array], Array],
    b: Array,
    *,
    scale: Array | None = None,
    tolerance: float = 1e-10,
    max_steps: int = 1_000,
    on_step: Callable[[Array, Array], bool] | None = None,
) -> Solution:
    """Iterate (1) from 0 until the scaled gradient is at most `tolerance` times that at 0.

    Parameters
    ----------
    product : callable
        v -> Hv.
    b : ndarray
    scale : ndarray, optional
        M, positive; 1 by default.
    tolerance, max_steps
        Stopping criteria.
    on_step : callable, optional
        Called with x and the negative gradient b - Hx after each step; True stops.

    Returns
    -------
    Solution
        `trace` contains the relative norm of the scaled gradient at each step; `gap` is NaN.
    """
    M = np.ones_like(b) if scale is None else scale
    x, r = np.zeros_like(b), b.copy()
    z = r / M
    rz = start = float(r @ z)
    p, trace, status = z.copy(), [1.0], "converged"
    if start == 0.0:
        return Solution(x, 0.0, np.nan, status, True, 0, (0.0,))
    while trace[-1] > tolerance:
        if len(trace) > max_steps:
            status = "max_iter"
            break
        Hp = product(p)
        curvature = float(p @ Hp)
        if curvature <= 0.0:  # no directions of positive curvature are left, up to rounding
            status = "converged" if trace[-1] < np.sqrt(tolerance) else "breakdown"
            break
        step = rz / curvature
        x += step * p
        r -= step * Hp
        z = r / M
        rz, last = float(r @ z), rz
        p = z + (rz / last) * p
        trace.append(float(np.sqrt(rz / start)))
        if on_step is not None and on_step(x, r):
            status = "stopped"
            break
    value = -0.5 * float(x @ (b + r))
    return Solution(x, value, np.nan, status, status == "converged", len(trace) - 1, tuple(trace))
