"""Compiled sums over CSR rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.compilation.compile import kernel, row_dtypes

__all__ = ["column_sums", "normal_product", "residual_sums", "warmup"]

Array = NDArray[Any]


# Rows are given by the `indptr` of some rows and the `indices` and `data` of the whole matrix; columns are indexed with
# unsigned integers, which avoids a test for negative indices at every access.


@kernel
def normal_product(indptr: Array, indices: Array, data: Array, weight: Array, v: Array, out: Array) -> None:
    """out += X'W X v, with each row used twice while it is in cache."""
    weighted = len(weight) > 0
    for i in range(len(indptr) - 1):
        first, last = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        eta = 0.0
        for k in range(first, last):
            eta += data[k] * v[np.uint64(indices[k])]
        if weighted:
            eta *= weight[i]
        for k in range(first, last):
            out[np.uint64(indices[k])] += data[k] * eta


@kernel
def column_sums(indptr: Array, indices: Array, data: Array, weight: Array, Y: Array, out: Array) -> None:
    """out[j] += sum over rows of w (x_j, x_j^2, x_j y_1, x_j y_2, ...)."""
    weighted = len(weight) > 0
    for i in range(len(indptr) - 1):
        w = weight[i] if weighted else 1.0
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            j, x = np.uint64(indices[k]), data[k]
            wx = w * x
            out[j, 0] += wx
            out[j, 1] += wx * x
            for t in range(Y.shape[1]):
                out[j, 2 + t] += wx * Y[i, t]


@kernel
def residual_sums(indptr: Array, indices: Array, data: Array, weight: Array, Y: Array, V: Array, slope: Array) -> None:
    """Replace Y by the residual Y - X V, and slope += X'W (Y - X V)."""
    weighted = len(weight) > 0
    for i in range(len(indptr) - 1):
        first, last = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        w = weight[i] if weighted else 1.0
        for t in range(Y.shape[1]):
            r = Y[i, t]
            for k in range(first, last):
                r -= data[k] * V[np.uint64(indices[k]), t]
            Y[i, t] = r
            for k in range(first, last):
                slope[np.uint64(indices[k]), t] += data[k] * w * r


def warmup() -> None:
    """Compile the kernels for the common argument types."""
    none, y, one = np.empty(0), np.ones((1, 1)), np.ones(1)
    for dtype in row_dtypes():
        ends, at, x = np.array([0, 1], np.int32), np.zeros(1, np.int32), np.ones(1, dtype)
        for w in (none, one):
            normal_product(ends, at, x, w, one, one.copy())
            column_sums(ends, at, x, w, y, np.zeros((1, 3)))
            residual_sums(ends, at, x, w, y.copy(), y, y.copy())
