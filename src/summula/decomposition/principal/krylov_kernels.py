"""Compiled products with CSR rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.compilation.compile import kernel, row_dtypes
from summula.core.compilation.vector_intrinsics import add_row_products_8, add_row_products_16

__all__ = ["LANES", "normal_products", "warmup"]

Array = NDArray[Any]

LANES = 8  # vector length: rows of B consist of such vectors


@kernel
def normal_products(indptr: Array, indices: Array, data: Array, weight: Array, B: Array, out: Array) -> None:
    """out += X'W X B, where the width of B is a multiple of LANES.

    The rows of B used by a row of X are still in cache when its products are scattered back.
    """
    weighted, width, row_bytes = len(weight) > 0, B.shape[1], B.strides[0]
    if width % LANES or out.shape != B.shape:
        raise ValueError("the width of B must be a multiple of LANES and equal that of out")
    source, target = np.uint64(B.ctypes.data), np.uint64(out.ctypes.data)
    for i in range(len(indptr) - 1):
        first = np.int64(indptr[i])
        count = np.int64(indptr[i + 1]) - first
        if count == 0:
            continue
        x, j = data[first:].ctypes, indices[first:].ctypes
        w = weight[i] if weighted else 1.0
        t = 0
        while t + 2 * LANES <= width:
            at = np.uint64(8 * t)
            add_row_products_16(x, j, count, w, source + at, target + at, row_bytes)
            t += 2 * LANES
        if t < width:
            at = np.uint64(8 * t)
            add_row_products_8(x, j, count, w, source + at, target + at, row_bytes)


def warmup() -> None:
    """Compile the kernel for the usual types."""
    B, one = np.ones((1, LANES)), np.ones(1)
    ends, at = np.array([0, 1], np.int32), np.zeros(1, np.int32)
    for dtype in row_dtypes():
        normal_products(ends, at, one.astype(dtype), one, B, B.copy())
