"""X'r and X v for rows where they lie in memory, in C or Fortran order: no copy, and the same bits in both orders.

BLAS adds the terms of a product in an order that follows the layout of X. Here every sum of n terms is taken as four,

    s_l = sum of a_i b_i over i = l, l + 4, l + 8, ...,      a'b = (s_0 + s_1) + (s_2 + s_3)                        (1)

in double precision, each from left to right. Along contiguous values a vector instruction takes four terms of one sum,
across them one term of four sums; both read X at the speed of memory.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.layout.blocks import empty_block, product, write_columns
from summula.core.engine.engine import local_engine
from summula.core.engine.threads import thread_count

__all__ = ["column_products", "column_squares", "in_one_order", "is_contiguous", "row_products", "transposed_product"]

Array = NDArray[Any]

_BLOCK_ELEMENTS = 2**18
_SHARED_ELEMENTS = 2**21  # from which the work is worth handing to several threads
_FEW_ROWS = 2**11  # of the sums in NumPy: their blocks stay in the cache


def is_contiguous(X: Array) -> bool:
    """Whether X is contiguous in C or Fortran order."""
    return bool(X.flags.c_contiguous or X.flags.f_contiguous)


def in_one_order(X: Array) -> Array:
    """Return X itself where it is contiguous in C or Fortran order, else a copy in C order."""
    return X if is_contiguous(X) else np.ascontiguousarray(X)


def row_products(X: Array, v: Array) -> NDArray[np.float64]:
    """Compute X v in double precision, for X contiguous in C or Fortran order, in the calling thread."""
    if "numba" not in sys.modules:
        return _row_products(X, v)
    out = np.empty(len(X))
    _sum(X.T, np.ascontiguousarray(v, np.float64), 0, len(X), out)
    return out


def column_products(addresses: NDArray[np.uint64], v: Array, n: int) -> NDArray[np.float64]:
    """Compute X v with the same bits for n rows of columns of contiguous doubles that start at these addresses."""
    from summula.core.data.layout.column_kernels import sum_columns

    out = np.empty(n)
    sum_columns(addresses, np.ascontiguousarray(v, np.float64), n, out)
    return out


def _row_products(X: Array, v: Array) -> NDArray[np.float64]:
    """The same bits without the compiler, which takes longer to load than this takes."""
    out = np.empty(len(X))
    for a in range(0, len(X), _FEW_ROWS):
        some = X[a : a + _FEW_ROWS]
        sums = np.zeros((4, len(some)))
        for j, by in enumerate(v.astype(np.float64)):
            sums[j % 4] += some[:, j] * by
        out[a : a + _FEW_ROWS] = (sums[0] + sums[1]) + (sums[2] + sums[3])
    return out


def _sum(X: Array, r: Array, begin: int, end: int, out: Array, squared: bool = False) -> None:
    """Write X'r, or the sums of x_ij^2 r_i, for some of the columns of X into `out`."""
    from summula.core.data.layout.fixed_order_kernels import sum_across, sum_along

    if X.flags.c_contiguous:
        sum_across(X, r, begin, end, squared, out)
    else:
        sum_along(X.T, r, begin, end, squared, out)


def _sum_columns(X: Array, r: Array, squared: bool = False) -> NDArray[np.float64]:
    """Compute X'r, or the sums of x_ij^2 r_i, on the threads of the engine."""
    out, r, engine = np.empty(X.shape[1]), np.ascontiguousarray(r, np.float64), local_engine()
    count = thread_count(getattr(engine, "n_jobs", None)) if X.size >= _SHARED_ELEMENTS else 1
    ranges = list(pairwise(np.linspace(0, X.shape[1], count + 1).astype(int).tolist()))
    for _ in engine.map_ordered(lambda part: _sum(X, r, *part, out, squared), ranges):
        pass
    return out


def transposed_product(X: Array, R: Array) -> NDArray[np.float64]:
    """Compute X'R in double precision, on the threads of the engine.

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
    return _sum_columns(X, R.reshape(-1)).reshape(X.shape[1:] + R.shape[1:])


def column_squares(X: Array, w: Array) -> NDArray[np.float64]:
    """Compute sum_i w_i x_ij^2 for every column, in double precision, on the threads of the engine."""
    return _sum_columns(X, w, squared=True)


def _blocks(X: Array) -> Iterator[tuple[int, Array]]:
    """Copies of some rows at a time, with the number of the first one; each is valid until the next."""
    n, d = X.shape
    step = max(1, _BLOCK_ELEMENTS // max(d, 1))
    memory, zeros = empty_block(min(step, n), d, X.dtype), np.zeros(d, X.dtype)
    for a in range(0, n, step):
        block = memory[: min(step, n - a)]
        write_columns(X[a : a + step], zeros, block)
        yield a, block
