"""Products X'r and X v of rows in memory, in C or Fortran order, without a copy and with bit-identical results.

BLAS adds the terms of a product in an order that depends on the layout of X. Here every sum is split into four,

    s_l = sum of a_i b_i over i = l, l + 4, l + 8, ...,      a'b = (s_0 + s_1) + (s_2 + s_3)                        (1)

in double precision, each from left to right. Along contiguous values a vector instruction takes four terms of one sum,
across them one term of four sums; both read X at the speed of memory.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.layout.blocks import product, scratch_block, write_columns
from summula.core.engine.engine import local_engine
from summula.core.engine.threads import thread_count

__all__ = [
    "column_products",
    "column_squares",
    "gathered_columns",
    "in_one_order",
    "is_contiguous",
    "products_of_columns",
    "row_products",
    "transposed_product",
]

Array = NDArray[Any]

_BLOCK_ELEMENTS = 2**18
_SHARED_ELEMENTS = 2**21  # from which several threads are used
_MULTIPLIED_COLUMNS = 256  # operations of a matrix product per task
_FEW_ROWS = 2**11  # rows of a block summed with NumPy, which fits into the cache


def is_contiguous(X: Array) -> bool:
    """Return whether X is contiguous in C or Fortran order."""
    return bool(X.flags.c_contiguous or X.flags.f_contiguous)


def in_one_order(X: Array) -> Array:
    """Return X itself if it is contiguous in C or Fortran order, else a copy in C order."""
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
    """Compute the same bits without a kernel, for little work."""
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


def _in_ranges(task: Callable[[int, int], None], length: int, values: int, multiple: int = 1) -> None:
    """Run a task on ranges that partition `length`, one per thread of the engine; on one range for few values."""
    engine = local_engine()
    count = thread_count(getattr(engine, "n_jobs", None)) if values >= _SHARED_ELEMENTS else 1
    inner = np.linspace(0, length, count + 1)[1:-1].astype(int) // multiple * multiple
    ranges = list(pairwise([0, *inner.tolist(), length]))
    for _ in engine.map_ordered(lambda part: task(*part), ranges):
        pass


def _sum_columns(X: Array, r: Array, squared: bool = False) -> NDArray[np.float64]:
    """Compute X'r, or the sums of x_ij^2 r_i, on the threads of the engine."""
    out, r = np.empty(X.shape[1]), np.ascontiguousarray(r, np.float64)
    _in_ranges(lambda begin, end: _sum(X, r, begin, end, out, squared), X.shape[1], X.size)
    return out


def _block_product(X: Array, R: Array) -> Array:
    """Compute X'R from a copy of X as a block."""
    block = scratch_block("rows of a product", len(X), X.shape[1], X.dtype)
    write_columns(X, np.zeros(X.shape[1], X.dtype), block)
    return product(block.T, R.astype(X.dtype, copy=False))


def transposed_product(X: Array, R: Array) -> NDArray[np.float64]:
    """Compute X'R in double precision, on the threads of the engine.

    Parameters
    ----------
    X : ndarray of shape (n, d), contiguous in C or Fortran order
    R : ndarray of shape (n,) or (n, k)
    """
    if R.ndim == 2 and R.shape[1] > 1:
        several = np.zeros((X.shape[1], R.shape[1]))
        step = max(1, _BLOCK_ELEMENTS // max(X.shape[1], 1))
        for part in local_engine().map_ordered(lambda a: _block_product(X[a : a + step], R[a : a + step]),
                                               range(0, len(X), step)):  # fmt: skip
            several += part
        return several
    return _sum_columns(X, R.reshape(-1)).reshape(X.shape[1:] + R.shape[1:])


def column_squares(X: Array, w: Array) -> NDArray[np.float64]:
    """Compute sum_i w_i x_ij^2 for every column, in double precision, on the threads of the engine."""
    return _sum_columns(X, w, squared=True)


def gathered_columns(X: Array, columns: NDArray[np.intp], shift: Array, out: Array) -> None:
    """Write some columns of X minus `shift` into `out`, of shape (columns, n) in C order, on the engine's threads."""
    if X.flags.c_contiguous and "numba" in sys.modules:
        from summula.core.data.layout.fixed_order_kernels import gather_columns

        # (Each value is a cache line of X.)
        values = 8 * len(X) * len(columns)
        _in_ranges(lambda a, b: gather_columns(X, columns, shift, a, b, out), len(X), values, multiple=8)
    else:
        np.subtract(X[:, columns], shift, out=out.T)


def products_of_columns(A: Array, B: Array, repeated: int) -> Array:
    """Compute A B' for blocks A and B, some rows of A at a time, on the threads of the engine.

    From row `repeated` on, A B' is symmetric: the rows of A are those of B, up to weights. The rows of a task do not
    depend on the number of threads. BLAS uses one thread: its own keep spinning after a call, and would slow down what
    the threads of the engine do next.
    """
    out = np.empty((len(A), len(B)), np.result_type(A, B))

    starts = [*range(0, repeated, _MULTIPLIED_COLUMNS), *range(repeated, len(A), _MULTIPLIED_COLUMNS), len(A)]

    def multiply(rows: tuple[int, int]) -> None:
        start, stop = rows
        first = max(start - repeated, 0)
        out[start:stop, first:] = A[start:stop] @ B[first:].T

    for _ in local_engine().map_ordered(multiply, list(pairwise(starts))):
        pass
    same = out[repeated:]
    for a in range(0, len(same), _MULTIPLIED_COLUMNS):
        b = a + _MULTIPLIED_COLUMNS
        same[b:, a:b] = same[a:b, b:].T
    return out
