"""Newton's method with step halving, for objectives whose value, gradient and Hessian are sums over the data.

From x the step solves H p = -g, and the decrement g'H^-1 g / 2 is the decrease predicted by the quadratic model:

    x+ = x + t p,   t = 1, 1/2, 1/4, ... until  f(x+) <= f(x) + c t g'p                                        (1)
    delta = g'H^-1 g / 2                                                                                       (2)

A pass that computes the Hessian costs several times one without. Once the relative decrement is small the Hessian
hardly changes, and the previous one is reused: each further step then reduces the error by about that relative change
(the chord method). The method is invariant to the scale of the variables: H is scaled to unit diagonal before it is
factored.

Under bounds l <= x <= u the step minimises the quadratic model within them, so every point is feasible.
References: Boyd and Vandenberghe, Convex Optimization, section 9.5; Nocedal and Wright, Numerical Optimization, ch. 3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from summula.core.numerics.solution import Solution

__all__ = ["Bounds", "Factor", "Local", "newton"]

Array = NDArray[np.float64]

_ARMIJO = 1e-4
_HALVINGS = 40
_CHORD = 1e-2  # relative step below which the Hessian is not recomputed
_ROUNDING = 1e-13  # relative differences of values below this are noise
_RANK = 1e-11  # eigenvalues of the scaled Hessian below this count as zero


class Local(NamedTuple):
    """An objective at a point; `factor` is that of the Hessian, if it is already available."""

    value: float
    gradient: Array
    hessian: Array | None = None
    factor: Factor | None = None


class Bounds(NamedTuple):
    """Lower and upper bounds, -inf and inf for no bound."""

    low: Array
    high: Array

    def clip(self, x: Array) -> Array:
        """The nearest point within the bounds."""
        return np.clip(x, self.low, self.high)


@dataclass(frozen=True)
class Factor:
    """Factorisation of a symmetric matrix: D^-1 H D^-1 = L L', or its eigendecomposition if it is singular."""

    scale: Array
    cholesky: Array | None
    values: Array | None = None
    vectors: Array | None = None

    @classmethod
    def of(cls, H: Array) -> Factor:
        """Factor H; for a singular matrix the pseudo-inverse in scaled variables is used."""
        diagonal = H.diagonal()
        scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
        C = H / scale / scale[:, None]
        try:
            L = np.asarray(np.linalg.cholesky(C), np.float64)
            if len(L) == 0 or L.diagonal().min() ** 2 > _RANK:
                return cls(scale, L)
        except np.linalg.LinAlgError:
            pass
        values, vectors = np.linalg.eigh((C + C.T) / 2)
        kept = values > _RANK * max(float(values[-1]), 0.0)
        return cls(scale, None, values[kept], vectors[:, kept])

    @property
    def rank(self) -> int:
        """Number of directions with positive curvature."""
        return len(self.scale) if self.values is None else len(self.values)

    @property
    def smallest(self) -> float:
        """Lower bound, up to rounding, on the smallest nonzero eigenvalue of the scaled matrix."""
        if self.values is not None:
            return float(self.values[0]) if len(self.values) else 0.0
        assert self.cholesky is not None
        inverse, _ = linalg.lapack.dtrtri(self.cholesky, lower=True)
        return 1.0 / max(float(np.square(inverse).sum()), 1e-300)

    def solve(self, b: Array) -> Array:
        """H^+ b."""
        b = b / (self.scale if b.ndim == 1 else self.scale[:, None])
        if self.cholesky is not None:
            x, _ = linalg.lapack.dpotrs(self.cholesky, b, lower=True)
        else:
            assert self.vectors is not None
            assert self.values is not None
            inside = self.vectors.T @ b
            x = self.vectors @ (inside / (self.values if b.ndim == 1 else self.values[:, None]))
        return np.asarray(x / (self.scale if b.ndim == 1 else self.scale[:, None]))

    def half_inverse(self) -> Array:
        """F with F F' = H^+."""
        if self.cholesky is not None:
            F = linalg.solve_triangular(self.cholesky, np.eye(len(self.scale)), lower=True).T
        else:
            assert self.vectors is not None
            assert self.values is not None
            F = self.vectors / np.sqrt(self.values)
        return np.asarray(F / self.scale[:, None])

    def null_space(self) -> Array:
        """N with H N = 0 and columns orthonormal in the scaled variables; no columns if H has full rank."""
        if self.vectors is None:
            return np.empty((len(self.scale), 0))
        return np.asarray(linalg.null_space(self.vectors.T) / self.scale[:, None])

    def root(self) -> Array:
        """R with R'R = H."""
        if self.cholesky is not None:
            R = self.cholesky.T
        else:
            assert self.vectors is not None
            assert self.values is not None
            R = (self.vectors * np.sqrt(self.values)).T
        return np.asarray(R * self.scale)


def newton(
    evaluate: Callable[[Array, int], Local],
    x: Array,
    *,
    tolerance: float = 1e-12,
    max_steps: int = 100,
    bounds: Bounds | None = None,
    rounding: float = _ROUNDING,
    chord: float = _CHORD,
    lengthen: Callable[[Array, float], float] | None = None,
    on_step: Callable[[Array, Local, float], bool] | None = None,
) -> Solution:
    """Minimise from x until the decrement (2) is `tolerance` times the value.

    Parameters
    ----------
    evaluate : callable
        (x, order) -> Local; with order 2 including the Hessian (positive semidefinite), and its factor if it is known.
    x : ndarray
    tolerance, max_steps
        Stopping criteria; step halvings are not counted as steps.
    bounds : Bounds, optional
    rounding : float
        Relative differences of values below this are noise.
    chord : float
        Relative step below which the Hessian is not recomputed; 0 recomputes it in every step.
    lengthen : callable, optional
        (step, decrement) -> length of the first step, relative to Newton's; it is halved as others are.
    on_step : callable, optional
        Called with x, the objective there and the decrement before each step; True stops.

    Returns
    -------
    Solution
        `gap` is the decrement at x with the last Hessian, an estimate and not a bound; `trace` contains the decrements.
    """
    x = x if bounds is None else bounds.clip(x)
    here, trace, status = evaluate(x, 2), [], "max_iter"
    if not np.isfinite(here.value):
        return Solution(x, here.value, np.inf, "unbounded", False, 0)
    inverse = _factor(here)
    steps = 0
    while True:
        step = _step(x, here.gradient, inverse, bounds)
        decrement = -float(here.gradient @ step) / 2
        trace.append(decrement)
        size = abs(here.value)
        if on_step is not None and on_step(x, here, decrement):
            status = "stopped"
            break
        if decrement <= tolerance * size or not decrement > 0:
            status = "converged"
            break
        if steps == max_steps:
            break
        order = 2 if 2 * decrement > chord**2 * size else 1
        if steps == 0 and lengthen is not None:
            step = lengthen(step, decrement) * step
        found = _backtrack(evaluate, x, here, step, decrement, order, bounds, rounding)
        if found is None and here.hessian is None:  # the old Hessian is too inaccurate: recompute it
            here = evaluate(x, 2)
            inverse = _factor(here)
            continue
        if found is None:
            status = "converged" if decrement <= 1e-9 * size else "stalled"
            break
        steps += 1
        x, there = found
        if there.hessian is not None:
            inverse = _factor(there)
        elif not _falls(there, inverse, x, bounds, decrement):
            # Rounding, or the old Hessian is too inaccurate: a true Newton step decides.
            there = evaluate(x, 2)
            inverse = _factor(there)
            if -float(there.gradient @ _step(x, there.gradient, inverse, bounds)) / 2 > decrement / 2:
                here, status = there, "converged" if decrement <= 1e-9 * size else "stalled"
                break
        here = there
    return Solution(x, here.value, trace[-1], status, status == "converged", steps, tuple(trace))


def _factor(here: Local) -> Factor:
    """Return the factor of the Hessian: the given one, or a new one."""
    assert here.hessian is not None
    return Factor.of(here.hessian) if here.factor is None else here.factor


def _falls(there: Local, inverse: Factor, x: Array, bounds: Bounds | None, decrement: float) -> bool:
    """Whether a chord step reduced the decrement by at least a factor of ten."""
    step = _step(x, there.gradient, inverse, bounds)
    return bool(-float(there.gradient @ step) / 2 <= decrement / 10)


def _step(x: Array, g: Array, inverse: Factor, bounds: Bounds | None) -> Array:
    if bounds is None:
        return -inverse.solve(g)
    from scipy.optimize import lsq_linear

    # min ||R (p + H^-1 g)||^2 within the bounds; fixed variables (equal bounds) stay.
    R = inverse.root()
    target = -(R @ inverse.solve(g))
    low, high = bounds.low - x, bounds.high - x
    free = low < high
    p = np.zeros_like(x)
    if free.any():
        scale = inverse.scale[free]
        limits = (low[free] * scale, high[free] * scale)
        answer = lsq_linear(R[:, free] / scale, target, bounds=limits, method="bvls", tol=1e-14)
        p[free] = np.clip(answer.x / scale, low[free], high[free])
    return p


def _backtrack(
    evaluate: Callable[[Array, int], Local],
    x: Array,
    here: Local,
    step: Array,
    decrement: float,
    order: int,
    bounds: Bounds | None,
    rounding: float,
) -> tuple[Array, Local] | None:
    """Backtrack by rule (1); None if no step decreases the value."""
    t = 1.0
    noise = rounding * abs(here.value)
    for _ in range(_HALVINGS):
        point = x + t * step if bounds is None else bounds.clip(x + t * step)
        there = evaluate(point, order if t == 1.0 or order == 1 else 2)
        if there.value <= here.value - 2 * _ARMIJO * t * decrement + noise:
            return point, there
        if order == 1 and t == 1.0:
            return None
        t /= 2
    return None
