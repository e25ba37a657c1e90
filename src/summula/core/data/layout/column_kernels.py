"""Kernels that copy or multiply separate columns, such as those of batches of a file, without the GIL."""

from __future__ import annotations

from typing import Any

import numpy as np

from summula.core.compilation.compile import internal_kernel, kernel, row_dtypes
from summula.core.compilation.intrinsics import copy_shifted, load_double, load_word, store_double
from summula.core.compilation.vector_intrinsics import transpose_4, transpose_8

__all__ = ["column_addresses", "copy_columns", "copy_rows", "sum_columns", "warmup"]

# The words of an ArrowArray, in Arrow's C data interface.
_NULLS, _OFFSET, _BUFFERS, _CHILDREN = 1, 2, 5, 6

_TILE_VALUES = 2**15  # values per tile, whose rows stay in the second-level cache until all columns are written
_ROWS = 2_048  # rows whose four sums stay in the second-level cache; fewer make the blocks of each column too short


@kernel
def column_addresses(array: int, places: Any, out: Any) -> bool:
    """Write the addresses of the double columns of a batch; return False if one is not contiguous.

    array : the address of the batch as an ArrowArray.
    places : which columns.
    """
    columns, first = load_word(array, _CHILDREN), load_word(array, _OFFSET)
    for j in range(len(places)):
        column = load_word(columns, places[j])
        if load_word(column, _NULLS) != 0:
            return False
        values = load_word(load_word(column, _BUFFERS), 1)  # after the validity bitmap
        out[j] = values + np.uint64(8) * (load_word(column, _OFFSET) + first)
    return True


@internal_kernel
def _copy(address: int, step: int, shift: float, out: int, row_bytes: int, first: int, last: int) -> None:
    """Copy rows `first` to `last` of one column minus its shift."""
    source, target = address + np.uint64(step * first), out + np.uint64(row_bytes * first)
    for _ in range(first, last):
        copy_shifted(source, shift, target)
        source += np.uint64(step)
        target += np.uint64(row_bytes)


@internal_kernel
def _copy_tile(addresses: Any, shift: Any, out: int, row_bytes: int, first: int, last: int) -> None:
    """Copy contiguous values of rows `first` to `last`, a multiple of 8 rows, into rows of contiguous values.

    Eight columns are read at a time, which is the number of streams that processors prefetch.
    """
    d, size = len(addresses), shift.itemsize
    starts, shifts = np.uint64(addresses.ctypes.data), np.uint64(shift.ctypes.data)
    for j in range(0, d - 7, 8):
        which, by, target = starts + np.uint64(8 * j), shifts + np.uint64(size * j), out + np.uint64(size * j)
        # Processors prefetch within a column, but not the next columns, or the next tile of the first ones.
        later, down = (which + np.uint64(64), 0) if j + 16 <= d else (starts, last - first)
        for i in range(first, last, 8):
            row, there = np.uint64(size * i), np.uint64(size * (i + down))
            transpose_8(shift[0], which, row, by, target + np.uint64(row_bytes * i), row_bytes, later, there)
    rest = d // 8 * 8
    if rest + 4 <= d:
        which, by, target = starts + np.uint64(8 * rest), shifts + np.uint64(size * rest), out + np.uint64(size * rest)
        for i in range(first, last, 4):
            row = np.uint64(size * i)
            transpose_4(shift[0], which, row, by, target + np.uint64(row_bytes * i), row_bytes, which, row)
    for k in range(d // 4 * 4, d):
        _copy(addresses[k], size, shift[k], out + np.uint64(size * k), row_bytes, first, last)


@kernel
def copy_columns(addresses: Any, step: int, shift: Any, out: int, strides: Any, n: int) -> None:
    """Copy n rows of columns, less `shift` and of its dtype (float64 or float32), side by side into a block.

    addresses : where each column starts; the caller keeps the columns alive.
    step : bytes between the values of a column.
    out, strides : where the block starts, and the bytes between its rows and between its columns.
    """
    row_bytes, column_bytes = strides
    d, size = len(addresses), shift.itemsize
    tile = max(16, _TILE_VALUES // max(d, 1) // 8 * 8)
    for first in range(0, n, tile):
        last = min(first + tile, n)
        whole = first
        if step == size and column_bytes == size:
            whole += (last - first) // 8 * 8
            _copy_tile(addresses, shift, out, row_bytes, first, whole)
        for k in range(d):
            _copy(addresses[k], step, shift[k], out + np.uint64(column_bytes * k), row_bytes, whole, last)


@kernel
def sum_columns(addresses: Any, v: Any, n: int, out: Any) -> None:
    """Write the n sums of (1) of `fixed_order.py` over columns of contiguous doubles times `v` into `out`."""
    d = len(addresses)
    sums = np.empty((4, _ROWS))
    for first in range(0, n, _ROWS):
        m = min(_ROWS, n - first)
        sums[:, :m] = 0.0
        s0, s1, s2, s3 = sums[0, :m], sums[1, :m], sums[2, :m], sums[3, :m]
        begin = np.uint64(8 * first)
        k = 0
        while k + 8 <= d:  # of eight columns, so that each sum is loaded and stored once for two of them
            a, b = addresses[k] + begin, addresses[k + 1] + begin
            c, e = addresses[k + 2] + begin, addresses[k + 3] + begin
            p, q = addresses[k + 4] + begin, addresses[k + 5] + begin
            s, t = addresses[k + 6] + begin, addresses[k + 7] + begin
            v0, v1, v2, v3, v4, v5, v6, v7 = v[k], v[k + 1], v[k + 2], v[k + 3], v[k + 4], v[k + 5], v[k + 6], v[k + 7]
            for i in range(m):
                s0[i] = (s0[i] + load_double(a, i) * v0) + load_double(p, i) * v4
                s1[i] = (s1[i] + load_double(b, i) * v1) + load_double(q, i) * v5
                s2[i] = (s2[i] + load_double(c, i) * v2) + load_double(s, i) * v6
                s3[i] = (s3[i] + load_double(e, i) * v3) + load_double(t, i) * v7
            k += 8
        while k < d:
            rest, a, v0 = sums[k % 4, :m], addresses[k] + begin, v[k]
            for i in range(m):
                rest[i] += load_double(a, i) * v0
            k += 1
        for i in range(m):
            out[first + i] = (s0[i] + s1[i]) + (s2[i] + s3[i])


@kernel
def copy_rows(rows: Any, shift: Any, out: int, row_bytes: int) -> None:
    """Copy rows of doubles in C order minus `shift` into a block at `out` with `row_bytes` between its rows."""
    for i in range(rows.shape[0]):
        target = out + np.uint64(row_bytes * i)
        for j in range(rows.shape[1]):
            store_double(target + np.uint64(8 * j), rows[i, j] - shift[j])


def warmup() -> None:
    """Compile for the common argument types."""
    column = np.zeros(1)
    addresses = np.array([column.ctypes.data], np.uint64)
    for dtype in row_dtypes():
        copy_columns(addresses, 8, np.zeros(1, dtype), np.uint64(column.ctypes.data), column[None].strides, 0)
    copy_rows(column[None], np.zeros(1), np.uint64(column.ctypes.data), 8)
    sum_columns(addresses, np.zeros(1), 0, np.empty(0))
    nothing = np.zeros(10, np.uint64)  # a batch without columns
    column_addresses(np.uint64(nothing.ctypes.data), np.empty(0, np.int64), np.empty(0, np.uint64))
