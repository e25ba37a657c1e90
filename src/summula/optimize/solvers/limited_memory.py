"""Limited-memory BFGS, preconditioned by an approximate Hessian.

With H0 = R'R close to the Hessian, the variables u = R x have curvature close to 1 in every direction, so few steps
suffice; the first is -H0^-1 g. From the last m steps s_i and changes y_i of the gradient, the columns of S and Y, the
inverse of the Hessian is approximated in compact form, by products of tall matrices and vectors:

    B = c I + [S cY] [U'(D + c Y'Y) U, -U'; -U, 0] [S cY]',     U^-1 = triu(S'Y),  D = diag(S'Y),                  (1)
    c = s'y / y'y of the last step

A step of length t along p = -B g satisfies the weak conditions of Wolfe, by bracketing with secants of the slopes:

    f(u + t p) <= f(u) + 1e-4 t g'p,        g(u + t p)'p >= 0.9 g'p                                                (2)

References: Liu and Nocedal (1989); Byrd, Nocedal and Schnabel (1994), theorem 2.2, for (1).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from summula.core.numerics.solution import Solution

__all__ = ["Preconditioner", "lbfgs"]

Array = NDArray[np.float64]

_ARMIJO = 1e-4
_FLAT = 0.9
_TRIALS = 40  # step lengths
_ROUNDING = 1e-14  # relative differences of values below this are noise
_CURVED = 1e-12  # y's relative to |y| |s| below which a pair says nothing about the curvature


class Preconditioner(Protocol):
    """R of H0 = R'R, by its inverse."""

    def solve(self, u: Array) -> Array:
        """R^-1 u."""

    def solve_transposed(self, g: Array) -> Array:
        """R'^-1 g."""


class _Here(NamedTuple):
    """A point u and x = R^-1 u, the value, and the gradients by u and by x."""

    u: Array
    x: Array
    value: float
    slope: Array
    gradient: Array


class _Pairs:
    """The last steps and changes of the gradient as rows of two rings, with their products."""

    def __init__(self, memory: int, d: int) -> None:
        self._S, self._Y = np.zeros((memory, d)), np.zeros((memory, d))
        self._SY, self._YY = np.zeros((memory, memory)), np.zeros((memory, memory))
        self._ages: list[int] = []  # places in the rings, oldest first

    def push(self, s: Array, y: Array) -> None:
        """Store a pair, in place of the oldest if the memory is full; pairs without curvature are left out."""
        sy, yy = float(s @ y), float(y @ y)
        if not sy > _CURVED * float(np.linalg.norm(s)) * yy**0.5:
            return
        full = len(self._ages) == len(self._S)
        place = self._ages.pop(0) if full else len(self._ages)
        self._ages.append(place)
        self._S[place], self._Y[place] = s, y
        self._SY[:, place] = self._S @ y
        self._YY[:, place] = self._YY[place] = self._Y @ y

    def direction(self, g: Array) -> Array:
        """-B g of equation (1)."""
        ages = self._ages
        if not ages:
            return -g
        by_age = np.ix_(ages, ages)
        SY, YY = self._SY[by_age], self._YY[by_age]
        D, R, c = SY.diagonal(), np.triu(SY), float(SY[-1, -1] / YY[-1, -1])
        w = linalg.solve_triangular(R, (self._S @ g)[ages], check_finite=False)
        right = D * w + c * (YY @ w - (self._Y @ g)[ages])
        p = linalg.solve_triangular(R, right, trans="T", check_finite=False)
        of_y, of_s = np.zeros(len(self._S)), np.zeros(len(self._S))
        of_y[ages], of_s[ages] = c * w, p
        return np.asarray(of_y @ self._Y - of_s @ self._S - c * g)


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

    def at(u: Array) -> _Here:
        x = start + preconditioner.solve(u) if u.any() else start
        value, gradient = evaluate(x)
        return _Here(u, x, value, preconditioner.solve_transposed(gradient), gradient)

    here = at(np.zeros_like(x))
    trace, pairs, status = [here.value], _Pairs(memory, len(x)), "max_iter"
    while True:
        if enough(here.x, here.value, here.gradient) or not here.slope.any():
            status = "converged"
            break
        if len(trace) > max_steps:
            break
        there = _search(at, here, pairs.direction(here.slope))
        if there is None:
            status = "stalled"  # no step decreases the value any more, because of rounding
            break
        pairs.push(there.u - here.u, there.slope - here.slope)
        here = there
        trace.append(here.value)
    return Solution(here.x, here.value, np.nan, status, status == "converged", len(trace) - 1, tuple(trace))


def _search(at: Callable[[Array], _Here], here: _Here, p: Array) -> _Here | None:
    """Return a point along p that satisfies (2), or decreases the value; None if there is none."""
    first = float(here.slope @ p)
    noise = _ROUNDING * abs(here.value)
    low, high, at_low, at_high = 0.0, np.inf, first, np.inf  # the bracket, and the slopes at its ends
    best, t = None, 1.0
    for _ in range(_TRIALS):
        there = at(here.u + t * p)
        slope = float(there.slope @ p)
        if not there.value <= here.value + _ARMIJO * t * first + noise:
            high, at_high = t, slope if np.isfinite(there.value) else np.inf
        elif slope < _FLAT * first:
            low, at_low, best = t, slope, there
        else:
            return there
        if high == np.inf:
            # The secant of the slopes at 0 and t, but no more than ten times as far.
            t *= min(max(first / (first - slope), 2.0), 10.0) if slope > first else 10.0
        else:
            share = at_low / (at_low - at_high) if at_high > 0 else 0.5
            t = low + min(max(share, 0.1), 0.9) * (high - low)
    return best
