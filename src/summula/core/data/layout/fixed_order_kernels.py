"""Kernels of `fixed_order.py`: equation (1), for X in C order and for its transpose, and copies of columns.

With `squared` they sum x_ij^2 r_i instead of x_ij r_i.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from summula.core.compilation.compile import kernel, row_dtypes

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


def _summing(squared: bool) -> Any:
    """Create the loop that multiplies four rows of Z by r, four terms of each sum at a time, in registers."""

    @intrinsic
    def _four_sums(typing: Any, Z: Any, a: Any, b: Any, c: Any, e: Any, r: Any, count: Any, out: Any) -> Any:
        """Write s_0 to s_3 of (1) for the rows at the addresses a to e, each of `count` values, a multiple of 4."""

        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            size = signature.args[0].dtype.bitwidth // 8
            stored = ir.VectorType(ir.DoubleType() if size == 8 else ir.FloatType(), 4)
            four, word = ir.VectorType(ir.DoubleType(), 4), ir.IntType(64)

            def load(kind: Any, address: Any, place: Any, step: int) -> Any:
                at = builder.add(address, builder.mul(place, ir.Constant(word, step)))
                return builder.load(builder.inttoptr(at, kind.as_pointer()), align=step)

            def term(address: Any) -> Any:
                x = load(stored, address, i, size)
                x = x if size == 8 else builder.fpext(x, four)
                return builder.fmul(builder.fmul(x, x) if squared else x, by)

            entry, zero = builder.block, ir.Constant(four, [0.0] * 4)
            loop, after = builder.append_basic_block("loop"), builder.append_basic_block("after")
            builder.cbranch(builder.icmp_unsigned(">", given[6], ir.Constant(word, 0)), loop, after)
            builder.position_at_end(loop)
            i, sums = builder.phi(word), [builder.phi(four) for _ in range(4)]
            by = load(four, given[5], i, 8)
            following = [builder.fadd(s, term(address)) for s, address in zip(sums, given[1:5], strict=True)]
            further = builder.add(i, ir.Constant(word, 4))
            for phi, start, again in zip([i, *sums], [ir.Constant(word, 0), *[zero] * 4], [further, *following],
                                         strict=True):  # fmt: skip
                phi.add_incoming(start, entry)
                phi.add_incoming(again, loop)
            builder.cbranch(builder.icmp_unsigned("<", further, given[6]), loop, after)
            builder.position_at_end(after)
            totals = [builder.phi(four) for _ in range(4)]
            for total, summed in zip(totals, following, strict=True):
                total.add_incoming(zero, entry)
                total.add_incoming(summed, loop)
            for k, total in enumerate(totals):
                place = builder.add(given[7], ir.Constant(word, 32 * k))
                builder.store(total, builder.inttoptr(place, four.as_pointer()), align=8)
            return context.get_dummy_value()

        return types.void(Z, *[types.uint64] * 7), generate

    return _four_sums


_four_products: Any = _summing(squared=False)
_four_squares: Any = _summing(squared=True)


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
            _four_squares(Z, a, b, c, e, by, count, to)
        else:
            _four_products(Z, a, b, c, e, by, count, to)
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
