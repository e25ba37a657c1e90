"""The compiled loops of `l1_quadratic.py`: sweeps of coordinate descent (2), and the bound (4)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.compile import kernel

__all__ = ["survey", "sweep", "warmup"]

Array = NDArray[Any]


@kernel
def sweep(G: Array, g: Array, v: Array, a: float, b: float, positive: bool, times: int, least: float) -> float:
    """Up to so many sweeps over all columns, in place; gives the largest change of the last, in units of the slope."""
    n = len(v)
    largest = 0.0
    for _ in range(times):
        largest = 0.0
        for j in range(n):
            curve = G[j, j] + b
            if curve <= 0.0:
                continue
            old = v[j]
            z = g[j] + G[j, j] * old
            if z > a:
                new = (z - a) / curve
            elif z < -a and not positive:
                new = (z + a) / curve
            else:
                new = 0.0
            change = new - old
            if change != 0.0:
                v[j] = new
                for k in range(n):
                    g[k] -= G[j, k] * change
                largest = max(largest, abs(change) * curve)
        if largest <= least:
            return 0.0
    return largest


@kernel
def survey(
    v: Array, g: Array, q: Array, c: float, a: float, b: float, positive: bool, wrong: Array
) -> tuple[float, float]:
    """P(v) and the bound (4); `wrong` becomes how far each column is from its optimality condition."""
    fit, size, square, largest, steepness, start = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(len(v)):
        x = v[j]
        slope = g[j] - b * x
        steep = slope if positive else abs(slope)
        largest, start = max(largest, steep), max(start, abs(q[j]))
        if steep > 0.0 or x != 0.0:
            steepness += slope * slope
        if x == 0.0:
            wrong[j] = max(steep - a, 0.0)
        else:
            fit += (q[j] + g[j]) * x
            size += abs(x)
            square += x * x
            wrong[j] = abs(slope - a) if x > 0.0 else abs(slope + a)
    residual = max(c - fit, 0.0)
    t = 1.0 if largest <= a else a / largest
    value = residual / 2 + a * size + b / 2 * square
    if a == 0.0:  # no L1 penalty: by strong convexity; without any penalty the slope alone tells
        if b > 0.0:
            return value, steepness / (2 * b)
        return value, 0.0 if largest <= 1e-11 * start else value
    gap = (1 - t) ** 2 / 2 * (residual + b * square)
    for j in range(len(v)):
        if v[j] != 0.0:
            gap += max(a * abs(v[j]) - t * (g[j] - b * v[j]) * v[j], 0.0)
    return value, gap


def warmup() -> None:
    """Compile the kernels."""
    one = np.ones(1)
    survey(one, one, one, 1.0, 0.5, 0.0, False, one.copy())
    sweep(np.eye(1), np.ones(1), np.zeros(1), 0.5, 0.0, False, 1, 0.0)
