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
def _word(typing: Any, address: Any, index: Any) -> Any:
    """The word of 64 bits number `index` of those from an address on."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        first = builder.inttoptr(given[0], ir.IntType(64).as_pointer())
        return builder.load(builder.gep(first, [given[1]]))

    return types.uint64(types.uint64, types.int64), generate


read: Any = _read  # the typing context is Numba's to give
word: Any = _word


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
def copy_columns(addresses: Any, begin: int, shift: Any, out: Any) -> None:
    """The rows from `begin` on of columns at these addresses, less `shift`, into the rows of `out`.

    addresses : where each column starts; whoever calls keeps the columns alive.
    """
    for j in range(len(addresses)):
        column, by, address = out[j], shift[j], addresses[j] + np.uint64(8 * begin)
        for i in range(len(column)):
            column[i] = read(address, i) - by


def warmup() -> None:
    """Compile for the types people use."""
    column = np.zeros(1)
    addresses = np.array([column.ctypes.data], np.uint64)
    copy_columns(addresses, 0, np.zeros(1), np.zeros((1, 1)))
    nothing = np.zeros(10, np.uint64)  # a batch without columns
    column_addresses(np.uint64(nothing.ctypes.data), np.empty(0, np.int64), np.empty(0, np.uint64))
