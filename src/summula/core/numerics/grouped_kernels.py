"""Compiled sums per group, in one pass over the rows of a block."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.compilation.compile import kernel

__all__ = ["add_moments", "warmup"]

Array = NDArray[Any]


@kernel
def add_moments(X: Array, codes: Array, weight: Array, origin: Array, total: Array, square: Array) -> None:
    """total[k] += w (x - o_k) and square[k] += w (x - o_k)^2 for every row x of group k; codes below 0 are skipped.

    Without weights `weight` is empty.
    """
    weighted, d = len(weight) > 0, np.uint64(X.shape[1])
    for i in range(np.uint64(len(X))):
        if codes[i] < 0:
            continue
        k = np.uint64(codes[i])
        w = weight[i] if weighted else 1.0
        for j in range(d):
            t = X[i, j] - origin[k, j]
            total[k, j] += w * t
            square[k, j] += w * (t * t)


def warmup() -> None:
    """Compile for the common argument types."""
    X, sums = np.zeros((1, 1)), np.zeros((1, 1))
    X.flags.writeable = False
    for weight in (np.empty(0), np.ones(1)):
        add_moments(X, np.zeros(1, np.int32), weight, sums, sums.copy(), sums.copy())
