"""Compiled sums of `newton.py` over few rows, for which the overhead of NumPy calls dominates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.compilation.compile import non_allocating_kernel

__all__ = ["squared_sums", "warmup"]

Array = NDArray[Any]


@non_allocating_kernel
def squared_sums(Z: Array, y: Array, weight: Array, v: Array, epsilon: float, slope: Array, curvature: Array) -> float:
    """Return the sum of the squared losses at v, and add its slope and curvature matrix to the last arguments.

    With epsilon < 0 the targets are classes, -1 and 1. A curvature array without rows is not computed.
    """
    value, p = 0.0, len(v)
    for i in range(len(y)):
        f = 0.0
        for a in range(p):
            f += Z[i, a] * v[a]
        over, sign = 1.0 - y[i] * f, -y[i]
        if epsilon >= 0.0:
            over, sign = abs(f - y[i]) - epsilon, 1.0 if f > y[i] else -1.0
        if over <= 0.0:
            continue  # NaN passes, and propagates to the sums
        value += weight[i] * over * over
        share = 2.0 * weight[i] * over * sign
        for a in range(p):
            slope[a] += share * Z[i, a]
        for a in range(len(curvature)):
            share = 2.0 * weight[i] * Z[i, a]
            for b in range(a + 1):
                curvature[a, b] += share * Z[i, b]
    for a in range(len(curvature)):
        for b in range(a):
            curvature[b, a] = curvature[a, b]
    return value


def warmup() -> None:
    """Compile for the usual types."""
    row = np.ones(1)
    squared_sums(np.ones((1, 1)), row, row, row, -1.0, np.zeros(1), np.zeros((1, 1)))
