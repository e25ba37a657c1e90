"""Compiled products of CSR rows with the coefficients of several outputs, and transposed products."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.compilation.compile import kernel, row_dtypes

__all__ = [
    "add_by_level",
    "add_level_products",
    "add_levels",
    "add_products",
    "add_squares",
    "add_transposed",
    "warmup",
]

Array = NDArray[Any]


# Rows are given by the `indptr` of some rows and the `indices` and `data` of the whole matrix; columns are indexed with
# unsigned integers, which avoids a test for negative indices at every access.


def add_products(indptr: Array, indices: Array, data: Array, V: Array, eta: Array) -> None:
    """eta += X V."""
    add_by_fours(indptr, indices, data, eta, V, None)


def add_transposed(indptr: Array, indices: Array, data: Array, S: Array, out: Array) -> None:
    """out += X'S."""
    add_by_fours(indptr, indices, data, S, out, True)


@kernel
def add_by_fours(indptr: Array, indices: Array, data: Array, R: Array, C: Array, transposed: Any) -> None:
    """R += X C, or C += X'R if `transposed` is not None; four outputs at a time, which are one vector each.

    The branches on None are decided by the compiler.
    """
    outputs = R.shape[1]
    fours = outputs // 4 * 4
    for i in range(len(indptr) - 1):
        first, last = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        for t in range(0, fours, 4):
            a, b, c, d = R[i, t], R[i, t + 1], R[i, t + 2], R[i, t + 3]
            for k in range(first, last):
                j, x = np.uint64(indices[k]), data[k]
                if transposed is None:
                    a += x * C[j, t]
                    b += x * C[j, t + 1]
                    c += x * C[j, t + 2]
                    d += x * C[j, t + 3]
                else:
                    C[j, t] += x * a
                    C[j, t + 1] += x * b
                    C[j, t + 2] += x * c
                    C[j, t + 3] += x * d
            if transposed is None:
                R[i, t], R[i, t + 1], R[i, t + 2], R[i, t + 3] = a, b, c, d
        for t in range(fours, outputs):
            a = R[i, t]
            for k in range(first, last):
                j = np.uint64(indices[k])
                if transposed is None:
                    a += data[k] * C[j, t]
                else:
                    C[j, t] += data[k] * a
            if transposed is None:
                R[i, t] = a


@kernel
def add_squares(indptr: Array, indices: Array, data: Array, C: Array, out: Array) -> None:
    """out[j, t] += sum_i x_ij^2 c_it."""
    for i in range(len(indptr) - 1):
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            j, x = np.uint64(indices[k]), data[k]
            for t in range(C.shape[1]):
                out[j, t] += x * x * C[i, t]


# Factors: a code > 0 has the parameter `starts[f] + code`; code 0 is the reference.


@kernel
def add_levels(codes: Array, starts: Array, v: Array, eta: Array) -> None:
    """Add the parameters of the levels of each row to eta."""
    for i in range(len(codes)):
        for f in range(len(starts)):
            if codes[i, f] > 0:
                eta[i] += v[starts[f] + codes[i, f]]


@kernel
def add_by_level(codes: Array, starts: Array, s: Array, out: Array) -> None:
    """out[level] += s, summed over the rows of each level."""
    for i in range(len(codes)):
        for f in range(len(starts)):
            if codes[i, f] > 0:
                out[starts[f] + codes[i, f]] += s[i]


@kernel
def add_level_products(codes: Array, starts: Array, block: Array, c: Array, first: int, H: Array) -> None:
    """Add to the rows of H of the levels: products with the columns of `block` and with all levels."""
    width = block.shape[1]
    for i in range(len(codes)):
        for f in range(len(starts)):
            if codes[i, f] > 0:
                row = first + starts[f] + codes[i, f]
                for j in range(width):
                    H[row, j] += c[i] * block[i, j]
                H[row, row] += c[i]
                for g in range(f + 1, len(starts)):
                    if codes[i, g] > 0:
                        column = first + starts[g] + codes[i, g]
                        H[row, column] += c[i]
                        H[column, row] += c[i]


def warmup() -> None:
    """Compile the kernels for the common argument types."""
    one = np.ones((1, 1))
    codes, starts = np.zeros((1, 1), np.int32), np.zeros(1, np.int64)
    add_levels(codes, starts, one[0], one[0].copy())
    add_by_level(codes, starts, one[0], one[0].copy())
    for dtype in row_dtypes():
        add_level_products(codes, starts, one.astype(dtype), one[0], 0, one.copy())
    for dtype in row_dtypes():
        ends, at, x = np.array([0, 1], np.int32), np.zeros(1, np.int32), np.ones(1, dtype)
        for sum_up in (add_products, add_transposed, add_squares):
            sum_up(ends, at, x, one, one.copy())
