"""Compiled loops of `bounds_betting.py` and `certification/monitor.py`, with their equation numbers."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from summula.core.compilation.compile import kernel

__all__ = ["advance", "multiply", "paces", "warmup", "watch"]

Array = NDArray[np.float64]

_SHIFT = 48  # bits to shift a float64 to the right to keep its exponent and the leading 4 bits of the mantissa


@kernel
def paces(x: Array, prior: float, count: int, pace: Array, root: Array) -> None:
    """Write 1 / sigma_t of (4), with prior = 1/4 + S_0 and count = n_0, and 1 / sqrt(n - t + 1)."""
    n = len(x)
    mean, square = 0.0, 0.0
    for t in range(n):
        pace[t] = 1.0 / math.sqrt((square + prior) / (count + t + 1.0))
        root[t] = 1.0 / math.sqrt(n - t)
        change = x[t] - mean
        mean += change / (t + 1.0)
        square += change * (x[t] - mean)


@kernel
def advance(
    x: Array, flip: bool, m: float, u: float, goal: float, pace: Array, root: Array, lines: Array, first: int
) -> float:
    """Return the capital, in units of the target, after betting on the rows by (2) and (3); stop at the goal.

    Row j of `lines` is the chord of the profile over the j-th cell (value at 0, slope); cells are given by bits of u.
    """
    up, down = (1.0 - 1e-12) / (1.0 - m), (1.0 - 1e-12) / m
    widest = 1.0 / math.sqrt(m * (1.0 - m))
    for t in range(len(x)):
        rest = 1.0 - u
        v = u if u < rest else rest
        j = max(int(np.float64(v).view(np.int64) >> _SHIFT) - first, 0)
        stake = (lines[j, 0] + lines[j, 1] * v) * root[t] * (pace[t] if pace[t] > widest else widest)
        most, least = u * up, rest * down
        stake = stake if stake < most else most
        stake = stake if stake < least else least
        loss = 1.0 - x[t] if flip else x[t]
        u += stake * (m - loss)
        if u >= goal:
            return u
    return u


@kernel
def multiply(x: Array, flip: bool, m: float, shares: Array, capital: Array, goal: float) -> bool:
    """Bet on the rows by (5) in place; return True as soon as the total capital reaches the goal."""
    for t in range(len(x)):
        gain = m - (1.0 - x[t] if flip else x[t])
        total = 0.0
        for j in range(len(shares)):
            capital[j] *= 1.0 + shares[j] * gain
            total += capital[j]
        if total >= goal:
            return True
    return False


@kernel
def watch(x: Array, limit: float, shares: Array, capital: Array, n_before: int, goal: float) -> int:
    """Bet by (2) of the monitor on rows after the first `n_before`, in place; return the row of the alarm, or -1."""
    before = 1.0 / (1.0 + math.log(1.0 + n_before))
    for t in range(len(x)):
        after = 1.0 / (1.0 + math.log(2.0 + n_before + t))
        join = (before - after) / len(shares)
        before, total = after, after
        for j in range(len(shares)):
            capital[j] = (capital[j] + join) * (1.0 + shares[j] * (x[t] - limit))
            total += capital[j]
        if total >= goal:
            return t
    return -1


def warmup() -> None:
    """Compile the kernels."""
    one = np.full(2, 0.5)
    paces(one, 0.25, 0, one.copy(), one.copy())
    advance(one, False, 0.5, 0.05, 0.95, one, one, np.ones((1, 2)), 0)
    multiply(one, False, 0.5, one, one.copy(), 20.0)
    watch(one, 0.5, one, one.copy(), 0, 20.0)
