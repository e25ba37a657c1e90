"""The compiled loops of `column_products.py`: equation (1), for X in C order and for its transpose in C order."""

from __future__ import annotations

from typing import Any

import numpy as np

from summula.core.numerics.compile import kernel

__all__ = ["add_columns", "add_rows", "warmup"]

_COLUMNS = 2048  # whose sums stay in the first-level cache


@kernel
def add_rows(X: Any, r: Any, out: Any) -> None:
    """Add X'r to `out`; X of shape (n, d) is in C order."""
    n, d = X.shape
    for first in range(0, d, _COLUMNS):
        last = min(first + _COLUMNS, d)
        some = out[first:last]
        i = 0
        while i + 4 <= n:
            x0, x1, x2, x3 = X[i, first:last], X[i + 1, first:last], X[i + 2, first:last], X[i + 3, first:last]
            r0, r1, r2, r3 = r[i], r[i + 1], r[i + 2], r[i + 3]
            for j in range(last - first):
                some[j] = (((some[j] + x0[j] * r0) + x1[j] * r1) + x2[j] * r2) + x3[j] * r3
            i += 4
        while i < n:
            x0, r0 = X[i, first:last], r[i]
            for j in range(last - first):
                some[j] += x0[j] * r0
            i += 1


@kernel
def add_columns(Z: Any, r: Any, out: Any) -> None:
    """Add Z r to `out`; Z of shape (d, n), the transpose of X, is in C order."""
    d, n = Z.shape
    j = 0
    while j + 8 <= d:
        z0, z1, z2, z3, z4, z5, z6, z7 = Z[j], Z[j + 1], Z[j + 2], Z[j + 3], Z[j + 4], Z[j + 5], Z[j + 6], Z[j + 7]
        s0, s1, s2, s3 = out[j], out[j + 1], out[j + 2], out[j + 3]
        s4, s5, s6, s7 = out[j + 4], out[j + 5], out[j + 6], out[j + 7]
        for i in range(n):
            by = r[i]
            s0 += z0[i] * by
            s1 += z1[i] * by
            s2 += z2[i] * by
            s3 += z3[i] * by
            s4 += z4[i] * by
            s5 += z5[i] * by
            s6 += z6[i] * by
            s7 += z7[i] * by
        out[j], out[j + 1], out[j + 2], out[j + 3] = s0, s1, s2, s3
        out[j + 4], out[j + 5], out[j + 6], out[j + 7] = s4, s5, s6, s7
        j += 8
    while j < d:
        s0 = out[j]
        for i in range(n):
            s0 += Z[j, i] * r[i]
        out[j] = s0
        j += 1


def warmup() -> None:
    """Compile for both precisions."""
    for dtype in (np.float64, np.float32):
        add_rows(np.zeros((1, 1), dtype), np.zeros(1), np.zeros(1))
        add_columns(np.zeros((1, 1), dtype), np.zeros(1), np.zeros(1))
