"""Compiled products of CSR rows with the coefficients of several outputs, and back. Serial, without the GIL."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.compile import kernel

__all__ = ["add_products", "add_squares", "add_transposed", "warmup"]

Array = NDArray[Any]


# Rows come as the `indptr` of some rows and the `indices` and `data` of the whole matrix; columns are indexed with
# unsigned integers, which spares a test for negative ones at every access.


@kernel
def add_products(indptr: Array, indices: Array, data: Array, V: Array, eta: Array) -> None:
    """eta += X V."""
    outputs = V.shape[1]
    for i in range(len(indptr) - 1):
        first, last = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        if outputs == 1:
            total = eta[i, 0]
            for k in range(first, last):
                total += data[k] * V[np.uint64(indices[k]), 0]
            eta[i, 0] = total
        else:
            for k in range(first, last):
                j, x = np.uint64(indices[k]), data[k]
                for t in range(outputs):
                    eta[i, t] += x * V[j, t]


@kernel
def add_transposed(indptr: Array, indices: Array, data: Array, S: Array, out: Array) -> None:
    """out += X'S."""
    outputs = S.shape[1]
    for i in range(len(indptr) - 1):
        first, last = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        if outputs == 1:
            s = S[i, 0]
            for k in range(first, last):
                out[np.uint64(indices[k]), 0] += data[k] * s
        else:
            for k in range(first, last):
                j, x = np.uint64(indices[k]), data[k]
                for t in range(outputs):
                    out[j, t] += x * S[i, t]


@kernel
def add_squares(indptr: Array, indices: Array, data: Array, C: Array, out: Array) -> None:
    """out[j, t] += sum_i x_ij^2 c_it."""
    for i in range(len(indptr) - 1):
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            j, x = np.uint64(indices[k]), data[k]
            for t in range(C.shape[1]):
                out[j, t] += x * x * C[i, t]


def warmup() -> None:
    """Compile the kernels for the types people use."""
    one = np.ones((1, 1))
    for dtype in (np.float64, np.float32):
        for index in (np.int32, np.int64):
            ends, at, x = np.array([0, 1], index), np.zeros(1, index), np.ones(1, dtype)
            for sum_up in (add_products, add_transposed, add_squares):
                sum_up(ends, at, x, one, one.copy())
