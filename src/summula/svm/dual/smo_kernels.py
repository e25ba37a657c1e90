"""The compiled loops of `solver.py`: sequential minimal optimisation on a working set.

With f = K beta + q (the slope of the dual), a variable can grow while beta < high and shrink while beta > low. One step

    i    the variable with the smallest f among those that can grow                                             (1)
j    that with the largest (f_j - f_i)^2 / (K_ii + K_jj - 2 K_ij), f_j > f_i, among those that can shrink   (2)
t    (f_j - f_i) / (K_ii + K_jj - 2 K_ij), clipped where beta_i + t or beta_j - t reaches its bound          (3)

changes beta_i by t and beta_j by -t, which preserves the sum of beta. The choice (2) has the largest gain (Fan, Chen
and Lin 2005). Without an intercept there is no sum constraint, and one variable changes at a time:

    i    the variable with the largest gain f_i^2 / K_ii among those that can move against f_i                    (4)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.compilation.compile import internal_kernel, kernel
from summula.core.compilation.intrinsics import maximum, minimum

__all__ = ["accumulate", "accumulate_cached", "compile_steps", "descend_pairs", "descend_singles", "warmup"]

Array = NDArray[Any]

_BLOCK = 64  # number of values searched at once
_FLAT = 1e-12  # minimum curvature: that of indefinite kernels may be zero or negative
_INF = np.inf


@internal_kernel
def _least(f: Array, penalty: Array) -> int:
    """Return the index of the smallest f + penalty; -1 if all are infinite."""
    best, place = _INF, -1
    for a in range(0, len(f), _BLOCK):
        # (Slices, whose indices start at 0: otherwise the compiler uses gathers, since indices may be negative.)
        some, its_penalty, least = f[a : a + _BLOCK], penalty[a : a + _BLOCK], _INF
        for t in range(len(some)):
            least = minimum(least, some[t] + its_penalty[t])
        if least < best:
            best, place = least, a
    if place >= 0:
        for t in range(place, place + _BLOCK):
            if f[t] + penalty[t] == best:
                return t
    return -1


@internal_kernel
def _partner(
    f: Array, penalty: Array, row: Array, diagonal: Array, fi: float, kii: float, gain: Array
) -> tuple[int, float]:
    """Return the index of the largest gain (2), -1 if there is none, and the largest f - penalty."""
    best, place, top = 0.0, -1, -_INF
    for a in range(0, len(f), _BLOCK):
        some, its_penalty, its_gain = f[a : a + _BLOCK], penalty[a : a + _BLOCK], gain[a : a + _BLOCK]
        its_row, its_diagonal, most = row[a : a + _BLOCK], diagonal[a : a + _BLOCK], 0.0
        for t in range(len(some)):
            s = some[t] - its_penalty[t]
            top = maximum(top, s)
            d = maximum(s - fi, 0.0)
            its_gain[t] = d * d * np.reciprocal(maximum(kii + its_diagonal[t] - 2.0 * its_row[t], _FLAT))
            most = maximum(most, its_gain[t])
        if most > best:
            best, place = most, a
    if place >= 0:
        for t in range(place, place + _BLOCK):
            if gain[t] == best:
                return t, top
    return -1, top


@internal_kernel
def _move(f: Array, ri: Array, rj: Array, step: float) -> None:
    for t in range(len(f)):
        f[t] += step * (ri[t] - rj[t])


@internal_kernel
def _closed(beta: float, bound: float) -> float:
    """Return the penalty of a variable: infinite at a bound."""
    return _INF if beta == bound else 0.0


@kernel
def descend_pairs(
    K: Array, f: Array, beta: Array, low: Array, high: Array, tolerance: float, most: int
) -> tuple[int, float]:
    """Take steps (1) to (3) until the violation is at most the tolerance; return their number and the violation.

    f and beta are updated in place. Their length is a multiple of 64, padded by variables with low = high = 0.
    Penalties exclude variables at their bounds from the searches.
    """
    q = len(f)
    gain, diagonal, grow, shrink = np.empty(q), np.empty(q), np.empty(q), np.empty(q)
    for t in range(q):
        diagonal[t] = K[t, t]
        grow[t], shrink[t] = _closed(beta[t], high[t]), _closed(beta[t], low[t])
    left = _INF
    for step in range(most):
        i = _least(f, grow)
        if i < 0:
            return step, 0.0
        j, top = _partner(f, shrink, K[i], diagonal, f[i], diagonal[i], gain)
        left = top - f[i]
        if left <= tolerance or j < 0:
            return step, max(left, 0.0)
        eta = diagonal[i] + diagonal[j] - 2.0 * K[i, j]
        t = (f[j] - f[i]) / max(eta, _FLAT)
        if t >= high[i] - beta[i] or t >= beta[j] - low[j]:
            if high[i] - beta[i] <= beta[j] - low[j]:
                t = high[i] - beta[i]
                beta[j] = low[j] if t == beta[j] - low[j] else beta[j] - t
                beta[i] = high[i]
            else:
                t = beta[j] - low[j]
                beta[i], beta[j] = beta[i] + t, low[j]
        else:
            beta[i] += t
            beta[j] -= t
        _move(f, K[i], K[j], t)
        grow[i], shrink[i] = _closed(beta[i], high[i]), _closed(beta[i], low[i])
        grow[j], shrink[j] = _closed(beta[j], high[j]), _closed(beta[j], low[j])
    return most, left


@kernel
def descend_singles(
    K: Array, f: Array, beta: Array, low: Array, high: Array, tolerance: float, most: int
) -> tuple[int, float]:
    """Take steps (4) until no variable violates optimality by more than the tolerance."""
    q, left = len(f), _INF
    for step in range(most):
        best, place, left = 0.0, -1, 0.0
        for t in range(q):
            free = beta[t] < high[t] if f[t] < 0.0 else beta[t] > low[t]
            if free:
                left = max(left, abs(f[t]))
                gain = f[t] * f[t] / max(K[t, t], _FLAT)
                if gain > best:
                    best, place = gain, t
        if left <= tolerance or place < 0:
            return step, left
        before = beta[place]
        beta[place] = min(max(before - f[place] / max(K[place, place], _FLAT), low[place]), high[place])
        change, row = beta[place] - before, K[place]
        for t in range(q):
            f[t] += change * row[t]
    return most, left


@kernel
def accumulate(values: Array, change: Array, g: Array) -> None:
    """g += values' change: rows of kernel values in either precision, sums in double."""
    for r in range(values.shape[0]):
        row, c = values[r], change[r]
        for j in range(len(g)):
            g[j] += c * row[j]


@kernel
def accumulate_cached(store: Array, slots: Array, start: int, change: Array, g: Array) -> None:
    """Do the same for rows in these slots of a cache, whose columns from `start` on are those of g."""
    stop = start + len(g)
    for r in range(len(slots)):
        row, c = store[slots[r], start:stop], change[r]
        for j in range(len(g)):
            g[j] += c * row[j]


def compile_steps(dtype: str = "float64") -> None:
    """Compile the steps of a solver for kernel matrices of this type."""
    K, one = np.eye(_BLOCK, dtype=dtype), np.ones(_BLOCK)
    descend_pairs(K, np.zeros(_BLOCK), np.zeros(_BLOCK), -one, one, 1e-3, 1)
    accumulate(K, one, np.zeros(_BLOCK))


def warmup() -> None:
    """Compile for the usual types."""
    for dtype in ("float64", "float32"):
        compile_steps(dtype)
        K, one = np.eye(_BLOCK, dtype=dtype), np.ones(_BLOCK)
        descend_singles(K, np.zeros(_BLOCK), np.zeros(_BLOCK), -one, one, 1e-3, 1)
        accumulate_cached(K, np.zeros(1, np.int64), 0, one, np.zeros(_BLOCK))
