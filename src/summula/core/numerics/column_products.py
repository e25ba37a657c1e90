"""X'r for a whole matrix in memory, in C or Fortran order, without a copy of it and with the same bits in both orders.

BLAS adds the terms of a product in an order that follows the layout of X. Here every sum over rows is taken row by row,

    out_j <- out_j + x_ij r_i,     i = 1, 2, ..., n                                                             (1)

in double precision: in C order for several columns at once (a vector instruction each), in Fortran order for eight
columns side by side, which hides the latency of an addition. Both read X at the speed of memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.blocks import empty_block, product, write_columns

__all__ = ["column_squares", "in_one_order", "transposed_product"]

Array = NDArray[Any]

_BLOCK_ELEMENTS = 2**18


def in_one_order(X: Array) -> Array:
    """Return X itself where it is contiguous in C or Fortran order, else a copy in C order."""
    return X if X.flags.c_contiguous or X.flags.f_contiguous else np.ascontiguousarray(X)


def transposed_product(X: Array, R: Array) -> NDArray[np.float64]:
    """Compute X'R in double precision.

    Parameters
    ----------
    X : ndarray of shape (n, d), contiguous in C or Fortran order
    R : ndarray of shape (n,) or (n, k)
    """
    if R.ndim == 2 and R.shape[1] > 1:
        several = np.zeros((X.shape[1], R.shape[1]))
        for a, block in _blocks(X):
            several += product(block.T, R[a : a + len(block)].astype(X.dtype, copy=False))
        return several
    from summula.core.numerics.column_product_kernels import add_columns, add_rows

    out = np.zeros(X.shape[1])
    r = np.ascontiguousarray(R.reshape(-1), np.float64)
    if X.flags.c_contiguous:
        add_rows(X, r, out)
    else:
        add_columns(X.T, r, out)
    return out.reshape(X.shape[1:] + R.shape[1:])


def column_squares(X: Array, w: Array) -> NDArray[np.float64]:
    """Compute sum_i w_i x_ij^2 for every column."""
    out = np.zeros(X.shape[1])
    for a, block in _blocks(X):
        np.multiply(block, block, out=block)
        out += product(block.T, w[a : a + len(block)].astype(X.dtype, copy=False))
    return out


def _blocks(X: Array) -> Iterator[tuple[int, Array]]:
    """Copies of some rows at a time, with the number of the first one; each is valid until the next."""
    n, d = X.shape
    step = max(1, _BLOCK_ELEMENTS // max(d, 1))
    memory, zeros = empty_block(min(step, n), d, X.dtype), np.zeros(d, X.dtype)
    for a in range(0, n, step):
        block = memory[: min(step, n - a)]
        write_columns(X[a : a + step], zeros, block)
        yield a, block
