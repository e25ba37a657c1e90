"""Compiled sums over CSR rows. Each is a loop over rows and their stored values, without the GIL."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["column_sums", "normal_product", "warmup"]

Array = NDArray[Any]


@njit(nogil=True, cache=True)
def normal_product(indptr: Array, indices: Array, data: Array, weight: Array, v: Array, out: Array) -> None:
    """out += X'W X v. The row is still in cache when its inner product with v is spread back over it."""
    weighted = len(weight) > 0
    for i in range(len(indptr) - 1):
        first, last = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        eta = 0.0
        for k in range(first, last):
            eta += data[k] * v[indices[k]]
        if weighted:
            eta *= weight[i]
        for k in range(first, last):
            out[indices[k]] += data[k] * eta


@njit(nogil=True, cache=True)
def column_sums(
    indptr: Array,
    indices: Array,
    data: Array,
    weight: Array,
    Y: Array,
    total: Array,
    square: Array,
    cross: Array,
) -> None:
    """total += X'w, square += (X * X)'w, cross += X'W Y."""
    weighted = len(weight) > 0
    for i in range(len(indptr) - 1):
        w = weight[i] if weighted else 1.0
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            j, x = indices[k], data[k]
            total[j] += w * x
            square[j] += w * x * x
            for t in range(Y.shape[1]):
                cross[j, t] += w * x * Y[i, t]


def warmup() -> None:
    """Compile the kernels for the types people use."""
    none, y, one = np.empty(0), np.ones((1, 1)), np.ones(1)
    for dtype in (np.float64, np.float32):
        for index in (np.int32, np.int64):
            ends, at, x = np.array([0, 1], index), np.zeros(1, index), np.ones(1, dtype)
            for w in (none, one):
                normal_product(ends, at, x, w, one, one.copy())
                column_sums(ends, at, x, w, y, one.copy(), one.copy(), y.copy())
