"""Columns that are kept apart, as the batches of a file give them, copied into one block outside the GIL."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from summula.core.compile import kernel

__all__ = ["copy_columns", "warmup"]


@intrinsic
def _read(typing: Any, address: Any, index: Any) -> Any:
    """The double number `index` of those from an address on."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        first = builder.inttoptr(given[0], ir.DoubleType().as_pointer())
        return builder.load(builder.gep(first, [given[1]]))

    return types.float64(types.uint64, types.int64), generate


read: Any = _read  # the typing context is Numba's to give


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
