"""The compiled loops of `fixed_order.py`: equation (1), for X in C order and for its transpose in C order."""

from __future__ import annotations

from typing import Any

import numpy as np

from summula.core.compilation.compile import kernel

__all__ = ["sum_across", "sum_along", "warmup"]

_COLUMNS = 512  # whose four sums stay in the first-level cache


@kernel
def sum_across(X: Any, r: Any, begin: int, end: int, out: Any) -> None:
    """Write the sums of columns `begin` to `end` of X, of shape (n, d) in C order, into `out`."""
    n = len(r)
    sums = np.empty((4, _COLUMNS))
    for first in range(begin, end, _COLUMNS):
        last = min(first + _COLUMNS, end)
        m = last - first
        sums[:, :m] = 0.0
        s0, s1, s2, s3 = sums[0, :m], sums[1, :m], sums[2, :m], sums[3, :m]
        i = 0
        while i + 4 <= n:
            x0, x1, x2, x3 = X[i, first:last], X[i + 1, first:last], X[i + 2, first:last], X[i + 3, first:last]
            r0, r1, r2, r3 = r[i], r[i + 1], r[i + 2], r[i + 3]
            for j in range(m):
                s0[j] += x0[j] * r0
                s1[j] += x1[j] * r1
                s2[j] += x2[j] * r2
                s3[j] += x3[j] * r3
            i += 4
        while i < n:
            s, x0, r0 = sums[i % 4, :m], X[i, first:last], r[i]
            for j in range(m):
                s[j] += x0[j] * r0
            i += 1
        for j in range(m):
            out[first + j] = (s0[j] + s1[j]) + (s2[j] + s3[j])


@kernel
def sum_along(Z: Any, r: Any, begin: int, end: int, out: Any) -> None:
    """Write the sums of rows `begin` to `end` of Z, the transpose of X, of shape (d, n) in C order, into `out`."""
    n = len(r)
    even = n - n % 4
    j = begin
    while j < end:
        two = j + 1 < end
        a, b = Z[j], Z[j + 1 if two else j]
        a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = 0.0
        for i in range(0, even, 4):
            r0, r1, r2, r3 = r[i], r[i + 1], r[i + 2], r[i + 3]
            a0 += a[i] * r0
            a1 += a[i + 1] * r1
            a2 += a[i + 2] * r2
            a3 += a[i + 3] * r3
            b0 += b[i] * r0
            b1 += b[i + 1] * r1
            b2 += b[i + 2] * r2
            b3 += b[i + 3] * r3
        if even < n:
            a0 += a[even] * r[even]
            b0 += b[even] * r[even]
        if even + 1 < n:
            a1 += a[even + 1] * r[even + 1]
            b1 += b[even + 1] * r[even + 1]
        if even + 2 < n:
            a2 += a[even + 2] * r[even + 2]
            b2 += b[even + 2] * r[even + 2]
        out[j] = (a0 + a1) + (a2 + a3)
        if two:
            out[j + 1] = (b0 + b1) + (b2 + b3)
        j += 2


def warmup() -> None:
    """Compile for both precisions."""
    for dtype in (np.float64, np.float32):
        sum_across(np.zeros((1, 1), dtype), np.zeros(1), 0, 1, np.zeros(1))
        sum_along(np.zeros((1, 1), dtype), np.zeros(1), 0, 1, np.zeros(1))
