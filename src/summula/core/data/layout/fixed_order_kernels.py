"""Kernels of `fixed_order.py`: equation (1), for X in C order and for its transpose, and copies of columns.

With `squared` they sum x_ij^2 r_i instead of x_ij r_i.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from summula.core.compilation.compile import kernel, row_dtypes
from summula.core.compilation.vector_intrinsics import four_products, four_squares

__all__ = ["gather_columns", "sum_across", "sum_along", "warmup"]

_COLUMNS = 4_096  # columns whose four sums fit into the second-level cache


@kernel
def sum_across(X: Any, r: Any, begin: int, end: int, squared: bool, out: Any) -> None:
    """Write the sums of columns `begin` to `end` of X, of shape (n, d) in C order, into `out`."""
    n = len(r)
    sums = np.empty((4, _COLUMNS))
    for first in range(begin, end, _COLUMNS):
        last = min(first + _COLUMNS, end)
        m = last - first
        sums[:, :m] = 0.0
        s0, s1, s2, s3 = sums[0, :m], sums[1, :m], sums[2, :m], sums[3, :m]
        i = 0
        while i + 8 <= n:  # eight rows at a time, so that each sum is loaded and stored once for two of them
            x0, x1, x2, x3 = X[i, first:last], X[i + 1, first:last], X[i + 2, first:last], X[i + 3, first:last]
            x4, x5, x6, x7 = X[i + 4, first:last], X[i + 5, first:last], X[i + 6, first:last], X[i + 7, first:last]
            r0, r1, r2, r3, r4, r5, r6, r7 = r[i], r[i + 1], r[i + 2], r[i + 3], r[i + 4], r[i + 5], r[i + 6], r[i + 7]
            if squared:
                for j in range(m):
                    s0[j] = (s0[j] + np.float64(x0[j]) * x0[j] * r0) + np.float64(x4[j]) * x4[j] * r4
                    s1[j] = (s1[j] + np.float64(x1[j]) * x1[j] * r1) + np.float64(x5[j]) * x5[j] * r5
                    s2[j] = (s2[j] + np.float64(x2[j]) * x2[j] * r2) + np.float64(x6[j]) * x6[j] * r6
                    s3[j] = (s3[j] + np.float64(x3[j]) * x3[j] * r3) + np.float64(x7[j]) * x7[j] * r7
            else:
                for j in range(m):
                    s0[j] = (s0[j] + x0[j] * r0) + x4[j] * r4
                    s1[j] = (s1[j] + x1[j] * r1) + x5[j] * r5
                    s2[j] = (s2[j] + x2[j] * r2) + x6[j] * r6
                    s3[j] = (s3[j] + x3[j] * r3) + x7[j] * r7
            i += 8
        while i < n:
            s, x0, r0 = sums[i % 4, :m], X[i, first:last], r[i]
            for j in range(m):
                s[j] += (np.float64(x0[j]) * x0[j] if squared else np.float64(x0[j])) * r0
            i += 1
        for j in range(m):
            out[first + j] = (s0[j] + s1[j]) + (s2[j] + s3[j])


@kernel
def sum_along(Z: Any, r: Any, begin: int, end: int, squared: bool, out: Any) -> None:
    """Write the sums of rows `begin` to `end` of Z, the transpose of X, of shape (d, n) in C order, into `out`."""
    n = len(r)
    even = n - n % 4
    sums, last = np.empty((4, 4)), end - 1
    to, by, count = np.uint64(sums.ctypes.data), np.uint64(r.ctypes.data), np.uint64(even)
    first, step = np.uint64(Z.ctypes.data), np.uint64(Z.itemsize * n)
    for j in range(begin, end, 4):
        a, b = first + step * np.uint64(j), first + step * np.uint64(min(j + 1, last))
        c, e = first + step * np.uint64(min(j + 2, last)), first + step * np.uint64(min(j + 3, last))
        if squared:
            four_squares(Z, a, b, c, e, by, count, to)
        else:
            four_products(Z, a, b, c, e, by, count, to)
        for k in range(min(4, end - j)):
            z, s = Z[j + k], sums[k]
            for i in range(even, n):
                s[i - even] += (np.float64(z[i]) * z[i] if squared else np.float64(z[i])) * r[i]
            out[j + k] = (s[0] + s[1]) + (s[2] + s[3])


@kernel
def gather_columns(X: Any, columns: Any, shift: Any, begin: int, end: int, out: Any) -> None:
    """Write rows `begin` to `end` of some columns of X minus `shift` into `out`, of shape (columns, n) in C order.

    Eight rows at a time, which are adjacent in `out`.
    """
    for first in range(begin, end, 8):
        last = min(first + 8, end)
        for k in range(len(columns)):
            j, by, target = np.uint64(columns[k]), shift[k], out[k]
            for i in range(first, last):
                target[i] = X[i, j] - by


def warmup() -> None:
    """Compile for the common argument types."""
    for dtype in row_dtypes():
        gather_columns(np.zeros((1, 1), dtype), np.zeros(1, np.intp), np.zeros(1), 0, 1, np.zeros((1, 1)))
        sum_across(np.zeros((1, 1), dtype), np.zeros(1), 0, 1, False, np.zeros(1))
        sum_along(np.zeros((1, 1), dtype), np.zeros(1), 0, 1, False, np.zeros(1))
