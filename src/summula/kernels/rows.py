"""Rows between which kernels are evaluated, block by block."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from summula.core.data.chunks import Chunk
from summula.core.data.layout.blocks import aligned, empty_block, is_canonical
from summula.core.data.layout.stored_rows import SparseRows
from summula.core.data.sparse_format import canonical_csr, check_sparse
from summula.core.numerics.origins import far_origin

__all__ = ["Rows", "far_columns_of", "rows_of", "rows_of_user"]

Array = NDArray[Any]

_PAIRS = 4_096  # pairs of rows whose differences are formed at once


class Rows(NamedTuple):
    """Rows in memory and their squared lengths: a dense block (`core/data/layout/blocks.py`) or CSR."""

    X: Any
    squares: Array

    def __len__(self) -> int:
        return int(self.X.shape[0])

    @property
    def is_sparse(self) -> bool:
        """Whether X is CSR."""
        return hasattr(self.X, "indptr")

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.X.shape[1])

    @property
    def dtype(self) -> Any:
        """float64 or float32: how products are computed."""
        return self.X.dtype

    def take(self, index: Any) -> Rows:
        """Return some of the rows, by an array of row numbers or a slice, as a new object."""
        X = self.X[index]
        if not self.is_sparse and not is_canonical(X):
            X = aligned(X)
        return Rows(X, self.squares[index])

    def dense(self) -> Array:
        """Return X as an array."""
        return np.asarray(self.X.toarray() if self.is_sparse else self.X)

    def products(self, other: Rows) -> Array:
        """Return X Z' for the rows Z of another object, as a new array in C order."""
        with np.errstate(over="ignore", invalid="ignore"):  # rows too far away; those of a fit are checked
            if self.is_sparse or other.is_sparse:
                return _sparse_products(self, other)
            return np.asarray(np.matmul(self.X, other.X.T, out=empty_block(len(self), len(other), self.dtype)))

    def distances(self, other: Rows, rows: Array, columns: Array) -> Array:
        """Return |x_i - z_j|^2 for pairs (i, j) of a row here and a row of another object, from their differences."""
        out = np.empty(len(rows))
        for a in range(0, len(rows), _PAIRS):
            some = slice(a, a + _PAIRS)
            D = self.X[rows[some]] - other.X[columns[some]]
            out[some] = _squares(D) if hasattr(D, "indptr") else np.square(np.asarray(D)).sum(axis=1)
        return out


def _squares(X: Any) -> Array:
    return np.asarray(X.multiply(X).sum(axis=1)).reshape(-1)


def _sparse_products(A: Rows, B: Rows) -> Array:
    P = A.X @ B.X.T
    return np.ascontiguousarray(P.toarray() if sparse.issparse(P) else P, dtype=A.dtype)


def rows_of(X: Any, origin: Array | None = None, dtype: Any = np.float64) -> Rows:
    """Return dense or CSR rows in a dtype; CSR rows minus an origin that is not 0 for most columns are dense."""
    if hasattr(X, "indptr") and origin is not None:
        if 2 * np.count_nonzero(origin) > len(origin):
            X = X.toarray()
        else:
            X, origin = SparseRows(X, 0, X.shape[0]).about(origin).csr(), None
    if hasattr(X, "indptr"):
        X = X.tocsr().astype(dtype, copy=False)
        X = X if X.has_sorted_indices else X.sorted_indices()  # (products would sort the user's matrix in place)
        return Rows(X, _squares(X).astype(dtype, copy=False))
    if origin is None:
        block = aligned(np.asarray(X), dtype)
    else:
        # Subtract in double precision first, so that single precision holds the digits of the difference.
        with np.errstate(over="ignore", invalid="ignore"):
            block = aligned(np.subtract(X, origin, dtype=np.float64), dtype)
    return Rows(block, np.einsum("ij,ij->i", block, block))


def far_columns_of(X: Any, weight: Array | None = None) -> Array | None:
    """Return the means of columns that are far from 0 (of CSR rows, only those without zeros), 0 for others; or None.

    Rows without weight are ignored.
    """
    n = int(X.shape[0])
    if not n:
        return None
    origin = far_origin(Chunk(SparseRows(X, 0, n) if hasattr(X, "indptr") else X, None, weight, 0, n, X.dtype))
    return origin if origin.any() else None


def rows_of_user(X: Any) -> Any:
    """Convert X or Z of a user to a block of doubles, or CSR."""
    if sparse.issparse(X):
        check_sparse(X)
        return canonical_csr(X).astype(np.float64)
    values = np.asarray(X, np.float64)
    return aligned(values.reshape(1, -1) if values.ndim == 1 else values)
