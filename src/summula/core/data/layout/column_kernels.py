"""Columns that are kept apart, as the batches of a file give them, copied into one block outside the GIL."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from summula.core.compilation.compile import internal_kernel, kernel

__all__ = ["column_addresses", "copy_columns", "copy_rows", "warmup"]

# The words of an ArrowArray, in Arrow's C data interface.
_NULLS, _OFFSET, _BUFFERS, _CHILDREN = 1, 2, 5, 6


@intrinsic
def _read(typing: Any, address: Any, index: Any) -> Any:
    """The double number `index` of those from an address on."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        first = builder.inttoptr(given[0], ir.DoubleType().as_pointer())
        return builder.load(builder.gep(first, [given[1]]))

    return types.float64(types.uint64, types.int64), generate


@intrinsic
def _store(typing: Any, address: Any, value: Any) -> Any:
    """Write a double to an address."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        builder.store(given[1], builder.inttoptr(given[0], ir.DoubleType().as_pointer()))
        return context.get_dummy_value()

    return types.void(types.uint64, types.float64), generate


@intrinsic
def _transpose(typing: Any, a: Any, b: Any, c: Any, d: Any, shift: Any, out: Any, row_bytes: Any) -> Any:
    """Write four rows of four columns of doubles, given by addresses, less four shifts, as rows: a 4 x 4 transpose."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        four = ir.VectorType(ir.DoubleType(), 4)

        def pointer(address: Any) -> Any:
            return builder.inttoptr(address, four.as_pointer())

        def load(address: Any) -> Any:
            return builder.load(pointer(address), align=8)

        def mix(x: Any, y: Any, places: tuple[int, ...]) -> Any:
            return builder.shuffle_vector(x, y, ir.Constant(ir.VectorType(ir.IntType(32), 4), places))

        columns, by = [load(address) for address in given[:4]], load(given[4])
        even = [mix(columns[k], columns[k + 1], (0, 4, 2, 6)) for k in (0, 2)]
        odd = [mix(columns[k], columns[k + 1], (1, 5, 3, 7)) for k in (0, 2)]
        rows = [mix(pair[0], pair[1], places) for places in ((0, 1, 4, 5), (2, 3, 6, 7)) for pair in (even, odd)]
        target = given[5]
        for row in rows:
            builder.store(builder.fsub(row, by), pointer(target), align=8)
            target = builder.add(target, given[6])
        return context.get_dummy_value()

    return types.void(*[types.uint64] * 6, types.int64), generate


@intrinsic
def _word(typing: Any, address: Any, index: Any) -> Any:
    """The word of 64 bits number `index` of those from an address on."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        first = builder.inttoptr(given[0], ir.IntType(64).as_pointer())
        return builder.load(builder.gep(first, [given[1]]))

    return types.uint64(types.uint64, types.int64), generate


read: Any = _read  # the typing context is Numba's to give
word: Any = _word
store: Any = _store
transpose: Any = _transpose

TILE_VALUES = 2**16  # of a tile that stays in the second-level cache


@kernel
def column_addresses(array: int, places: Any, out: Any) -> bool:
    """Where columns of doubles of a batch start; False if one of them has a gap.

    array : the address of the batch as an ArrowArray.
    places : which columns.
    """
    columns, first = word(array, _CHILDREN), word(array, _OFFSET)
    for j in range(len(places)):
        column = word(columns, places[j])
        if word(column, _NULLS) != 0:
            return False
        values = word(word(column, _BUFFERS), 1)  # after the bitmap of gaps
        out[j] = values + np.uint64(8) * (word(column, _OFFSET) + first)
    return True


@internal_kernel
def _copy(address: int, step: int, shift: float, out: int, row_bytes: int, first: int, last: int) -> None:
    """Copy rows `first` to `last` of one column, less its shift."""
    source, target = address + np.uint64(step * first), out + np.uint64(row_bytes * first)
    for _ in range(first, last):
        store(target, read(source, 0) - shift)
        source += np.uint64(step)
        target += np.uint64(row_bytes)


@kernel
def copy_columns(addresses: Any, step: int, shift: Any, out: int, strides: Any, n: int) -> None:
    """Copy n rows of columns of doubles, less `shift`, side by side into a block.

    addresses : where each column starts; the caller keeps the columns alive.
    step : bytes between the values of a column.
    out, strides : where the block starts, and the bytes between its rows and between its columns.
    """
    row_bytes, column_bytes = strides
    d = len(addresses)
    tile = max(16, TILE_VALUES // max(d, 1) // 4 * 4)  # rows of all columns at once: neither side leaves the cache
    shifts = shift.ctypes.data
    for first in range(0, n, tile):
        last = min(first + tile, n)
        whole = first + (last - first) // 4 * 4 if step == 8 and column_bytes == 8 else first
        j = 0
        while j + 4 <= d:
            begin, target = np.uint64(8 * first), out + np.uint64(row_bytes * first + 8 * j)
            a, b = addresses[j] + begin, addresses[j + 1] + begin
            c, e = addresses[j + 2] + begin, addresses[j + 3] + begin
            for i in range(0, whole - first, 4):
                by = np.uint64(8 * i)
                rows = target + np.uint64(row_bytes * i)
                transpose(a + by, b + by, c + by, e + by, np.uint64(shifts + 8 * j), rows, row_bytes)
            for k in range(j, j + 4):
                _copy(addresses[k], step, shift[k], out + np.uint64(column_bytes * k), row_bytes, whole, last)
            j += 4
        for k in range(j, d):
            _copy(addresses[k], step, shift[k], out + np.uint64(column_bytes * k), row_bytes, first, last)


@kernel
def copy_rows(rows: Any, shift: Any, out: int, row_bytes: int) -> None:
    """Copy rows of doubles in C order, less `shift`, into a block at `out` with `row_bytes` between its rows."""
    for i in range(rows.shape[0]):
        target = out + np.uint64(row_bytes * i)
        for j in range(rows.shape[1]):
            store(target + np.uint64(8 * j), rows[i, j] - shift[j])


def warmup() -> None:
    """Compile for the types people use."""
    column = np.zeros(1)
    addresses = np.array([column.ctypes.data], np.uint64)
    copy_columns(addresses, 8, np.zeros(1), np.uint64(column.ctypes.data), column[None].strides, 0)
    copy_rows(column[None], np.zeros(1), np.uint64(column.ctypes.data), 8)
    nothing = np.zeros(10, np.uint64)  # a batch without columns
    column_addresses(np.uint64(nothing.ctypes.data), np.empty(0, np.int64), np.empty(0, np.uint64))
