"""The layout of dense blocks in products: C order, starting at a multiple of 64 bytes.

The summation order of BLAS may follow the memory layout of its operands: kernels for small matrices do not pack them,
and some peel off unaligned values. Operands of BLAS are therefore the same for every source of equal rows, in
shape, strides, dtype and alignment: rows are copied into blocks created by `empty_block`, and the other factor of a
product is aligned by `product`.
"""

from __future__ import annotations

import importlib
import math
import sys
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "ALIGNMENT",
    "aligned",
    "column_addresses",
    "empty_block",
    "inner",
    "is_canonical",
    "is_plain",
    "load_kernel",
    "product",
    "scratch_block",
    "write_addresses",
    "write_columns",
]

Array = NDArray[Any]

ALIGNMENT = 64  # bytes: a cache line, and the widest vector register
_KEPT_BYTES = 2**23  # maximum size of a scratch block kept by a thread: enough for chunks of all but very wide data
_KERNELS = "summula.core.data.layout.column_kernels"
_MANY = 2**24  # values
_COPIED = 2**9  # below which values are always copied, since checking takes as long
_NARROW = 128  # columns
_FEW = 2**13  # below which a call of the kernel costs more than it saves


def empty_block(rows: int, width: int, dtype: Any = np.float64) -> Array:
    """Return an uninitialised array of shape (rows, width) in C order whose first value is aligned."""
    dtype = np.dtype(dtype)
    memory = np.empty(rows * width * dtype.itemsize + ALIGNMENT, np.uint8)
    return np.ndarray((rows, width), dtype, memory, -memory.ctypes.data % ALIGNMENT)


def is_canonical(array: Array, dtype: Any = None) -> bool:
    """Return whether an array has the layout of `empty_block`."""
    right_dtype = array.dtype.isnative and (dtype is None or array.dtype == dtype)
    return bool(right_dtype and array.flags.c_contiguous and array.ctypes.data % ALIGNMENT == 0)


def aligned(array: Array, dtype: Any = None) -> Array:
    """Return an aligned array in C order with the same values; the array itself if possible."""
    if is_canonical(array, dtype):
        return array
    width = math.prod(array.shape[1:])
    copy = empty_block(len(array), width, array.dtype if dtype is None else dtype).reshape(array.shape)
    copy[...] = array
    return copy


class _Scratch(threading.local):
    """Blocks that each thread reuses, so that they stay in its cache."""

    def __init__(self) -> None:
        self._memory: dict[str, Array] = {}

    def block(self, use: str, rows: int, width: int, dtype: Any) -> Array:
        dtype = np.dtype(dtype)
        size = rows * width * dtype.itemsize
        if size > _KEPT_BYTES:
            return empty_block(rows, width, dtype)
        memory = self._memory.get(use)
        if memory is None or len(memory) < size:
            memory = self._memory[use] = empty_block(1, size, np.uint8)[0]
        return np.ndarray((rows, width), dtype, memory)


_scratch = _Scratch()


def scratch_block(use: str, rows: int, width: int, dtype: Any = np.float64) -> Array:
    """Return an uninitialised block like `empty_block`, valid until the next call of this thread for the same use."""
    return _scratch.block(use, rows, width, dtype)


def _factor(B: Array, use: str = "factor") -> Array:
    """Return an aligned copy for one product."""
    if B.size > _COPIED and is_canonical(B):
        return B
    dtype = B.dtype if B.dtype.isnative else B.dtype.newbyteorder("=")
    copy = scratch_block(use, len(B), math.prod(B.shape[1:]), dtype)
    copy = copy if B.ndim == 2 else copy.reshape(B.shape)
    copy[...] = B
    return copy


def product(A: Array, B: Array) -> Array:
    """Compute A @ B, where A is a block, the transpose of one, or sparse; B is aligned first."""
    return np.asarray(A @ _factor(B))


def inner(a: Array, b: Array) -> float:
    """Compute the sum of a_i b_i of two vectors in any layout."""
    return float(_factor(a) @ _factor(b, "second factor"))


def is_plain(values: Array) -> bool:
    """Return whether values are contiguous and aligned to 16 bytes, as allocated by NumPy."""
    return bool(values.flags.c_contiguous and values.dtype.isnative and values.ctypes.data % 16 == 0)


def write_columns(columns: Any, shift: Array, out: Array) -> None:
    """Write columns minus `shift` into a block.

    Parameters
    ----------
    columns : 2-D ndarray, or sequence of 1-D ndarrays of one length
        In any layout and of any real dtype.
    shift : ndarray of shape (d,)
    out : ndarray of shape (n, d)
    """
    # Both methods are bit-identical, so the kernel is used only if it has been loaded (see `load_kernel`).
    compiled = out.size >= _FEW and _KERNELS in sys.modules
    same = out.dtype == np.float64 or (out.dtype == np.float32 and shift.dtype == np.float32)
    addresses, step = column_addresses(columns, out.dtype) if compiled and same else (None, 0)
    if compiled and _are_narrow_rows(columns, out) and out.strides[1] == out.itemsize:
        from summula.core.data.layout.column_kernels import copy_rows

        by = np.ascontiguousarray(shift, np.float64)
        copy_rows(columns, by, np.uint64(out.ctypes.data), out.strides[0])
    elif addresses is not None:
        write_addresses(addresses, step, shift, out)
    elif isinstance(columns, np.ndarray):
        np.subtract(columns, shift, out=out, casting="unsafe")
    else:
        for j, column in enumerate(columns):
            np.subtract(column, shift[j], out=out[:, j], casting="unsafe")


def _are_narrow_rows(columns: Any, out: Array) -> bool:
    """Return whether these are rows of a few doubles in C order, each of which NumPy would copy in a separate loop."""
    return bool(
        isinstance(columns, np.ndarray)
        and columns.shape[1] <= _NARROW
        and columns.dtype == out.dtype == np.float64
        and columns.dtype.isnative
        and columns.flags.carray  # in C order, aligned and writeable, as the kernel requires
    )


def load_kernel(values: int) -> None:
    """Load the kernel that copies columns, if there are enough values to justify importing Numba (0.4 s)."""
    if _KERNELS not in sys.modules and ("numba" in sys.modules or values >= _MANY):
        importlib.import_module(_KERNELS)


def write_addresses(addresses: NDArray[np.uint64], step: int, shift: Array, out: Array) -> None:
    """Write columns of the dtype of `out`, float64 or float32, given by their addresses, `step` bytes between values.

    The caller keeps the columns alive.
    """
    from summula.core.data.layout.column_kernels import copy_columns

    by = np.ascontiguousarray(shift, out.dtype)
    copy_columns(addresses, step, by, np.uint64(out.ctypes.data), out.strides, len(out))


def column_addresses(columns: Any, dtype: Any = np.float64) -> tuple[NDArray[np.uint64] | None, int]:
    """Return the addresses of columns of a dtype, and the strides of their rows in bytes.

    None for columns of other dtypes, for rows in C order, and before the kernels that take addresses are loaded.
    """
    if _KERNELS not in sys.modules:
        return None, 0
    if isinstance(columns, np.ndarray):
        down, across = columns.strides
        if columns.dtype != dtype or abs(down) >= abs(across):  # NumPy copies rows in C order fast enough
            return None, 0
        return (columns.ctypes.data + across * np.arange(columns.shape[1])).astype(np.uint64), down
    steps = {column.strides[0] for column in columns}
    if len(steps) != 1 or any(column.dtype != dtype for column in columns):
        return None, 0
    return np.array([column.__array_interface__["data"][0] for column in columns], np.uint64), steps.pop()
