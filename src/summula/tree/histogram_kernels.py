"""Histograms of gradients: for each column and bin the sums, over the rows of a node, of gradient, curvature and 1.

The three come packed in one integer a row,

    p = (g << (2 K + c)) + (h << K) + 1,      |g| < 2^(64 - 3K - c - 1),  0 <= h < 2^c,                        (1)

so that a row costs one addition a column. K bits, at most 14, hold a count below 2^K: before there are so many rows the
packed sums are taken apart and added to wide ones. With few rows K is smaller, and gradients are finer. With c = 0
every curvature is 1, the count is their sum, and the gradient has the bits that are left:

    p = (g << K) + 1,      |g| < 2^(64 - 2K - 1).                                                               (2)

Integers add up exactly: the sums are the same in any order, on any number of threads, in any chunks.

Bins are bytes, row by row (one or two cache lines a row of thirty columns); rows of a node are scattered, so a
later one is fetched while this one is added.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from summula.core.compile import kernel

__all__ = ["COUNT_BITS", "accumulate", "accumulate_all", "warmup"]

COUNT_BITS = 14  # the largest K
_AHEAD = 24  # rows fetched ahead


@intrinsic
def _fetch(typing: Any, array: Any, index: Any) -> Any:
    """Ask for the cache line of an element; never waits."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, given[0])
        pointer = builder.gep(view.data, [given[1]])
        pointer = builder.bitcast(pointer, ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer(), number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [ir.IntType(8).as_pointer()], shape)
        builder.call(function, [pointer, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, index), generate


fetch: Any = _fetch  # the typing context is Numba's to give


@kernel
def _take_apart(packed: Any, sums: Any, first: int, last: int, count_bits: int, bits: int) -> None:
    """Add packed sums of the columns from `first` up to `last` to wide ones, and clear them."""
    mask = np.int64((1 << count_bits) - 1)
    wide = np.int64((1 << (count_bits + bits)) - 1)
    top = np.int64(2 * count_bits + bits)
    plain = bits == 0  # constant curvature: it is the count
    for f in range(first, last):
        for b in range(256):
            p = packed[f - first, b]
            if p != 0:
                count = p & mask
                if plain:
                    sums[f, b, 0] += p >> np.int64(count_bits)
                    sums[f, b, 1] += count
                else:
                    sums[f, b, 0] += p >> top
                    sums[f, b, 1] += (p >> np.int64(count_bits)) & wide
                sums[f, b, 2] += count
                packed[f - first, b] = 0


@kernel
def accumulate(
    bins: Any,
    rows: Any,
    gradients: Any,
    first: int,
    last: int,
    count_bits: int,
    bits: int,
    packed: Any,
    sums: Any,
) -> None:
    """Add the rows with these numbers to `sums`, shape (columns, 256, 3), for the columns from `first` up to `last`.

    `packed` is space for (last - first, 256) integers, all zero, and left so.
    """
    n, d = len(rows), np.uint64(bins.shape[1])
    flat, cells = bins.reshape(-1), packed.reshape(-1)
    low, width, most = np.uint64(first), np.uint64(last - first), (1 << count_bits) - 1
    for start in range(0, n, most):
        stop = min(start + most, n)
        safe = min(stop, n - _AHEAD)
        for i in range(start, stop):
            if i < safe:
                later = np.uint64(rows[i + _AHEAD])
                fetch(flat, later * d + low)
                fetch(gradients, later)
            row = np.uint64(rows[i])
            p = gradients[row]
            at = row * d + low
            for j in range(width):
                cells[(np.uint64(j) << np.uint64(8)) + np.uint64(flat[at + np.uint64(j)])] += p
        _take_apart(packed, sums, first, last, count_bits, bits)


@kernel
def accumulate_all(
    bins: Any, begin: int, end: int, gradients: Any, count_bits: int, bits: int, packed: Any, sums: Any
) -> None:
    """Add all rows from `begin` up to `end`, all columns."""
    d, most = np.uint64(bins.shape[1]), (1 << count_bits) - 1
    flat, cells = bins.reshape(-1), packed.reshape(-1)
    for start in range(begin, end, most):
        for i in range(start, min(start + most, end)):
            p = gradients[np.uint64(i)]
            at = np.uint64(i) * d
            for j in range(d):
                cells[(np.uint64(j) << np.uint64(8)) + np.uint64(flat[at + np.uint64(j)])] += p
        _take_apart(packed, sums, 0, bins.shape[1], count_bits, bits)


def warmup() -> None:
    """Compile for the types people use."""
    bins, rows, gradients = np.zeros((2, 1), np.uint8), np.arange(2, dtype=np.uint32), np.ones(2, np.int64)
    packed, sums = np.zeros((1, 256), np.int64), np.zeros((1, 256, 3), np.int64)
    accumulate(bins, rows, gradients, 0, 1, COUNT_BITS, 0, packed, sums)
    accumulate_all(bins, 0, 2, gradients, COUNT_BITS, 0, packed, sums)
