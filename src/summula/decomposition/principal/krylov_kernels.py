"""Compiled products with CSR rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.compilation.compile import kernel

__all__ = ["normal_products", "warmup"]

Array = NDArray[Any]


@kernel
def normal_products(indptr: Array, indices: Array, data: Array, weight: Array, B: Array, out: Array) -> None:
    """out += X'W X B. The rows of B that a row of X meets are still in cache when its products are spread back."""
    weighted, width = len(weight) > 0, B.shape[1]
    eta = np.empty(width)
    for i in range(len(indptr) - 1):
        first, last = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        eta[:] = 0.0
        for k in range(first, last):
            x, j = data[k], np.uint64(indices[k])
            for t in range(width):
                eta[t] += x * B[j, t]
        if weighted:
            for t in range(width):
                eta[t] *= weight[i]
        for k in range(first, last):
            x, j = data[k], np.uint64(indices[k])
            for t in range(width):
                out[j, t] += x * eta[t]


def warmup() -> None:
    """Compile the kernel for the types people use."""
    B, one = np.ones((1, 2)), np.ones(1)
    ends, at = np.array([0, 1], np.int32), np.zeros(1, np.int32)
    for dtype in (np.float64, np.float32):
        normal_products(ends, at, one.astype(dtype), one, B, B.copy())
