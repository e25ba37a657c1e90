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
_NEGLIGIBLE = 1e-9  # relative decrement at which a fit that makes no progress has converged
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
        if not len(C):
            return cls(scale, C)
        # LAPACK expects columns: the transpose is factored and solved with where it lies.
        L, failed = linalg.lapack.dpotrf(C.T, lower=True, overwrite_a=C.dtype == np.float64)
        if not failed and L.diagonal().min() ** 2 > _RANK:
            return cls(scale, L)
        C = H / scale / scale[:, None]
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
    lengthen: Callable[[Array, float], Array] | None = None,
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
        (step, decrement) -> the first step to try instead of Newton's; it is halved as others are.
    on_step : callable, optional
        Called with x, the objective there and the decrement before each step; True stops.

    Returns
    -------
    Solution
        `gap` is the decrement at x with the last Hessian, an estimate and not a bound; `trace` contains the decrements.
    """
    problem, least = _Problem(evaluate, bounds, rounding), max(_NEGLIGIBLE, 10 * rounding)
    x = x if bounds is None else bounds.clip(x)
    here = evaluate(x, 2)
    if not np.isfinite(here.value):
        return Solution(x, here.value, np.inf, "unbounded", False, 0)
    at, trace, steps = _Iterate(x, here, _factor(here)), [], 0
    while True:
        step, decrement = problem.step(at)
        trace.append(decrement)
        size = abs(at.here.value)
        if on_step is not None and on_step(at.x, at.here, decrement):
            status = "stopped"
            break
        if decrement <= tolerance * size or not decrement > 0:
            status = "converged"
            break
        if steps == max_steps:
            status = "max_iter"
            break
        if steps == 0 and lengthen is not None:
            step = lengthen(step, decrement)
        order = 2 if 2 * decrement > chord**2 * size else 1
        negligible = decrement <= least * size
        found = problem.backtrack(at, step, decrement, order, shorten=not negligible and at.here.hessian is not None)
        if found is None and at.here.hessian is None:  # the old Hessian is too inaccurate: recompute it
            at = problem.at(at.x)
            continue
        stalled = found is None
        if found is not None:
            steps += 1
            at, slow = problem.arrive(*found, at.inverse, decrement)
            stalled = slow and negligible
        if stalled:
            status = "converged" if decrement <= _NEGLIGIBLE * size else "stalled"
            break
    return Solution(at.x, at.here.value, trace[-1], status, status == "converged", steps, tuple(trace))


class _Iterate(NamedTuple):
    """A point, the objective there, and the factor of the last Hessian, which may be that of an earlier point."""

    x: Array
    here: Local
    inverse: Factor


class _Problem(NamedTuple):
    """The objective, the bounds, and the relative differences of values that are noise."""

    evaluate: Callable[[Array, int], Local]
    bounds: Bounds | None
    rounding: float

    def at(self, x: Array) -> _Iterate:
        """Evaluate the objective with its Hessian."""
        here = self.evaluate(x, 2)
        return _Iterate(x, here, _factor(here))

    def step(self, at: _Iterate) -> tuple[Array, float]:
        """Return the Newton step and its decrement (2)."""
        step = _step(at.x, at.here.gradient, at.inverse, self.bounds)
        return step, -float(at.here.gradient @ step) / 2

    def backtrack(
        self, at: _Iterate, step: Array, decrement: float, order: int, *, shorten: bool
    ) -> tuple[Array, Local] | None:
        """Backtrack by rule (1); None if no step decreases the value.

        A whole step may leave the value as it is, up to noise; a shorter one has to decrease it. Without the Hessian
        (order 1) only the whole step is tried, unless `shorten`: expected curvature, too, may be too small.
        """
        t = 1.0
        noise = self.rounding * abs(at.here.value)
        for _ in range(_HALVINGS):
            point = at.x + t * step if self.bounds is None else self.bounds.clip(at.x + t * step)
            there = self.evaluate(point, order if t == 1.0 or order == 1 else 2)
            if there.value <= at.here.value - 2 * _ARMIJO * t * decrement + noise and (
                t == 1.0 or there.value < at.here.value
            ):
                return point, there
            if order == 1 and not shorten:
                return None
            t /= 2
        return None

    def arrive(self, x: Array, there: Local, inverse: Factor, decrement: float) -> tuple[_Iterate, bool]:
        """Return the next iterate, and whether a Newton step from there makes little progress."""
        if there.hessian is not None:
            return _Iterate(x, there, _factor(there)), False
        chord = _Iterate(x, there, inverse)
        if self.step(chord)[1] <= decrement / 10:
            return chord, False
        # Rounding, or the old Hessian is too inaccurate: a true Newton step decides.
        at = self.at(x)
        return at, self.step(at)[1] > decrement / 2


def _factor(here: Local) -> Factor:
    """Return the factor of the Hessian: the given one, or a new one."""
    assert here.hessian is not None
    return Factor.of(here.hessian) if here.factor is None else here.factor


def _step(x: Array, g: Array, inverse: Factor, bounds: Bounds | None) -> Array:
    p = -inverse.solve(g)
    if bounds is None:
        return p
    low, high = bounds.low - x, bounds.high - x
    if ((low <= p) & (p <= high)).all():
        return p
    from scipy.optimize import lsq_linear

    # min ||R (p + H^-1 g)||^2 within the bounds; fixed variables (equal bounds) stay.
    R = inverse.root()
    target = R @ p
    free = low < high
    p = np.zeros_like(x)
    if free.any():
        scale = inverse.scale[free]
        limits = (low[free] * scale, high[free] * scale)
        answer = lsq_linear(R[:, free] / scale, target, bounds=limits, method="bvls", tol=1e-14)
        p[free] = np.clip(answer.x / scale, low[free], high[free])
    return p
