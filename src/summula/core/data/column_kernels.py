"""Columns that are kept apart, as the batches of a file give them, copied into one block outside the GIL."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from summula.core.numerics.compile import kernel

__all__ = ["column_addresses", "copy_columns", "warmup"]

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
def _word(typing: Any, address: Any, index: Any) -> Any:
    """The word of 64 bits number `index` of those from an address on."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        first = builder.inttoptr(given[0], ir.IntType(64).as_pointer())
        return builder.load(builder.gep(first, [given[1]]))

    return types.uint64(types.uint64, types.int64), generate


read: Any = _read  # the typing context is Numba's to give
word: Any = _word
store: Any = _store

TILE = 16  # rows: two cache lines of each column


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


@kernel
def copy_columns(addresses: Any, step: int, shift: Any, out: int, strides: Any, n: int) -> None:
    """Copy n rows of columns of doubles, less `shift`, side by side into a block.

    addresses : where each column starts; the caller keeps the columns alive.
    step : bytes between the values of a column.
    out, strides : where the block starts, and the bytes between its rows and between its columns.
    """
    row_bytes, column_bytes = strides
    for first in range(0, n, TILE):  # a few rows of all columns at once: neither side leaves the cache
        last = min(first + TILE, n)
        for j in range(len(addresses)):
            by, source = shift[j], addresses[j] + np.uint64(step * first)
            target = out + np.uint64(row_bytes * first + column_bytes * j)
            for _ in range(first, last):
                store(target, read(source, 0) - by)
                source += np.uint64(step)
                target += np.uint64(row_bytes)


def warmup() -> None:
    """Compile for the types people use."""
    column = np.zeros(1)
    addresses = np.array([column.ctypes.data], np.uint64)
    copy_columns(addresses, 8, np.zeros(1), np.uint64(column.ctypes.data), column[None].strides, 0)
    nothing = np.zeros(10, np.uint64)  # a batch without columns
    column_addresses(np.uint64(nothing.ctypes.data), np.empty(0, np.int64), np.empty(0, np.uint64))
