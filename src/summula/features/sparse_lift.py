"""Monomials of sparse rows: only products of stored values can be nonzero.

The rank of a monomial of degree m with indices j1 <= ... <= jm is that of (j1, j2 + 1, ..., jm + m - 1) among the
m-subsets of N = d + m - 1 items in lexicographic order (of its indices with N = d for interactions only):

    rank = C(N, m) - 1 - sum_i C(N - 1 - a_i, m - i + 1)                                                        (1)
"""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.compilation.compile import kernel, row_dtypes
from summula.features.lift import own_rows

__all__ = ["lift_sparse", "warmup"]

Array = NDArray[Any]


@kernel
def _count(indptr: Array, degree: int, strict: bool, choose: Array, out: Array) -> None:
    """Write the number of nonzero monomials of each row."""
    for i in range(len(indptr) - 1):
        k = indptr[i + 1] - indptr[i]
        total = 0
        for m in range(1, degree + 1):
            total += choose[k, m] if strict else choose[k + m - 1, m]
        out[i] = total


@kernel
def _fill(
    indptr: Array,
    indices: Array,
    data: Array,
    degree: int,
    strict: bool,
    table: tuple[Array, Array],
    starts: Array,
    out: tuple[Array, Array],
) -> None:
    """Write the monomials of each row, by degree and then in lexicographic order.

    table : as from `_rank_table`.
    out : indices and data.
    """
    (ranks, sizes), (out_indices, out_data) = table, out
    pick = np.empty(degree, np.int64)
    product = np.empty(degree + 1, np.float64)
    product[0] = 1.0
    step = 1 if strict else 0
    for i in range(len(indptr) - 1):
        a, k, place = indptr[i], indptr[i + 1] - indptr[i], starts[i]
        offset = 0
        for m in range(1, degree + 1):
            # Enumerate all index tuples of length m; product[k] is the product of the first k entries.
            level = 0
            pick[0] = 0
            while level >= 0:
                if pick[level] >= k:
                    level -= 1
                    if level >= 0:
                        pick[level] += 1
                    continue
                product[level + 1] = product[level] * data[a + pick[level]]
                if level + 1 < m:
                    pick[level + 1] = pick[level] + step
                    level += 1
                    continue
                rank = sizes[m] - 1
                for digit in range(m):
                    shift = 0 if strict else digit
                    rank -= ranks[m, digit, indices[a + pick[digit]] + shift]
                out_indices[place] = offset + rank
                out_data[place] = product[m]
                place += 1
                pick[level] += 1
            offset += sizes[m]


def lift_sparse(X: Any, degree: int, n_out: int, interaction_only: bool) -> Any:
    """Return the monomials of the rows of a CSR matrix, as CSR."""
    from summula.core.errors import DataError

    X = own_rows(X)
    if not np.isfinite(X.data).all():
        bad = int(np.flatnonzero(~np.isfinite(X.data))[0])
        row = int(np.searchsorted(X.indptr, bad, side="right") - 1)
        raise DataError(
            f"Column {X.indices[bad]} is {X.data[bad]} at row {row} (NaN and inf are not allowed): impute it first."
        )
    d = X.shape[1]
    degree = min(degree, d) if interaction_only else degree
    widest = int(np.diff(X.indptr).max(initial=0))
    choose = np.array([[comb(n, m) for m in range(degree + 1)] for n in range(widest + degree)], np.int64)
    counts = np.empty(X.shape[0], np.int64)
    _count(X.indptr, degree, interaction_only, choose, counts)
    starts = np.concatenate([[0], np.cumsum(counts)])
    indices = np.empty(starts[-1], np.int64)
    data = np.empty(starts[-1], X.dtype)
    table = _rank_table(d, degree, interaction_only)
    _fill(X.indptr, X.indices, X.data, degree, interaction_only, table, starts, (indices, data))
    index_dtype = np.int32 if max(n_out, int(starts[-1])) <= np.iinfo(np.int32).max else np.int64
    lifted = type(X)((data, indices.astype(index_dtype), starts.astype(index_dtype)), shape=(X.shape[0], n_out))
    return lifted


def _rank_table(d: int, degree: int, strict: bool) -> tuple[Array, Array]:
    """Return the terms ranks[m, l, a] = C(N - 1 - a, m - l) of (1), and the number of monomials of each degree."""
    ranks = np.zeros((degree + 1, degree, d + degree), np.int64)
    sizes = np.zeros(degree + 1, np.int64)
    for m in range(1, degree + 1):
        N = d if strict else d + m - 1
        sizes[m] = comb(N, m)
        for place in range(m):
            ranks[m, place, :N] = [comb(N - 1 - a, m - place) for a in range(N)]
    return ranks, sizes


def warmup() -> None:
    """Compile the kernels for the common argument types."""
    from scipy.sparse import csr_array

    for dtype in row_dtypes():
        lift_sparse(csr_array(np.eye(2, dtype=dtype)), 2, 5, False)
