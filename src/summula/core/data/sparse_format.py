"""Validation of the index arrays of sparse matrices before compiled code reads them, and their canonical form.

SciPy checks indices when a matrix is built, not when `indices` is modified afterwards, and compiled loops
trust them: an index out of range accesses memory out of bounds. One pass over the indices costs little in comparison.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import DataError

__all__ = ["CHECKED_FORMATS", "as_dense", "canonical_csr", "check_sparse"]

Array = NDArray[Any]

_BLOCK = 2**17  # indices compared at a time

CHECKED_FORMATS = ("csr", "csc", "bsr", "coo")  # other formats have no index arrays that conversions trust


def check_sparse(X: Any, name: str = "X") -> None:
    """Raise a `DataError` if the index arrays of a sparse matrix do not fit its shape.

    Parameters
    ----------
    X : any
        Anything except a sparse matrix of `CHECKED_FORMATS` is ignored.
    name : str, default="X"
        Name in messages.
    """
    kind = getattr(X, "format", None)
    if kind == "coo" and hasattr(X, "coords"):
        _check_coordinates(X, name)
    elif kind in CHECKED_FORMATS and hasattr(X, "indptr"):
        _check_compressed(X, name)


def as_dense(X: Any, name: str = "X") -> Any:
    """Return a sparse matrix, whose index arrays are checked, as an array, and anything else unchanged."""
    if not hasattr(X, "toarray"):
        return X
    check_sparse(X, name)
    return X.toarray()


def canonical_csr(X: Any) -> Any:
    """Return a sparse matrix as CSR with sorted column indices, whose duplicates are added; X is not modified.

    So results do not depend on the order in which a row is stored, and squares are those of the entries, not of
    their summands. Indices have 32 bits if they fit, so that kernels are compiled for one index type.
    """
    X = X.tocsr()
    end = X.indptr[-1]  # the arrays may be longer
    indices, indptr = X.indices[:end], X.indptr
    if max(end, *X.shape) <= np.iinfo(np.int32).max:
        indices, indptr = indices.astype(np.int32, copy=False), indptr.astype(np.int32, copy=False)
    rows = type(X)((X.data[:end], indices, indptr), shape=X.shape)  # without the flags of X, which may be outdated
    if _is_canonical(indices, indptr):
        rows.has_canonical_format = True
        return rows
    rows = rows.copy()
    rows.sum_duplicates()
    return rows


def _is_canonical(indices: Array, indptr: Array) -> bool:
    """Return whether indices increase within every row; SciPy's own loop takes ten times as long."""
    blocks = np.unique(np.searchsorted(indptr, np.arange(0, len(indices), _BLOCK)))  # first rows of blocks in cache
    for first, last in pairwise([*blocks.tolist(), len(indptr) - 1]):
        start, stop = int(indptr[first]), int(indptr[last])
        falls = indices[start + 1 : stop] <= indices[start : stop - 1]
        ends = indptr[first + 1 : last] - (start + 1)
        if len(ends) and (ends[0] < 0 or ends[-1] >= len(falls)):  # of empty rows
            ends = ends[(ends >= 0) & (ends < len(falls))]
        falls[ends] = False
        if falls.any():
            return False
    return True


def _check_coordinates(X: Any, name: str) -> None:
    for axis, (index, size) in enumerate(zip(X.coords, X.shape, strict=True)):
        _check_vector(index, "row" if axis == 0 else "col", name)
        _check_same_length(index, X.data, name)
        _check_range(index, size, "row" if axis == 0 else "column", name)


def _check_compressed(X: Any, name: str) -> None:
    """Check CSR, CSC and BSR: `indptr` must not decrease from 0 to the size of `indices`, which must be in range."""
    rows, columns = X.shape if len(X.shape) == 2 else (1, *X.shape)
    if X.format == "bsr":
        rows, columns = rows // X.blocksize[0], columns // X.blocksize[1]
    outer, inner, axis = (columns, rows, "row") if X.format == "csc" else (rows, columns, "column")
    _check_vector(X.indptr, "indptr", name)
    _check_vector(X.indices, "indices", name)
    _check_same_length(X.indices, X.data, name)
    if len(X.indptr) != outer + 1:
        raise _damaged(name, f"indptr has {len(X.indptr)} entries where its shape {X.shape} needs {outer + 1}")
    if X.indptr[0] != 0 or X.indptr[-1] > len(X.indices):
        raise _damaged(
            name,
            f"indptr goes from {X.indptr[0]} to {X.indptr[-1]}, not from 0 to the {len(X.indices)} stored values",
        )
    falls = X.indptr[1:] < X.indptr[:-1]
    if falls.any():
        k = int(falls.argmax())
        raise _damaged(name, f"indptr decreases from {X.indptr[k]} to {X.indptr[k + 1]} at entry {k + 1}")
    _check_range(X.indices, inner, axis, name)


def _check_vector(index: Any, part: str, name: str) -> None:
    if not isinstance(index, np.ndarray) or index.ndim != 1 or index.dtype.kind not in "iu":
        raise _damaged(name, f"{part} is not a vector of integers")


def _check_same_length(index: Array, data: Any, name: str) -> None:
    if not isinstance(data, np.ndarray) or len(index) != len(data):
        stored = len(data) if isinstance(data, np.ndarray) else 0
        raise _damaged(name, f"it has {len(index)} indices and {stored} stored values")


def _check_range(index: Array, size: int, axis: str, name: str) -> None:
    # As unsigned integers negative indices are large: one pass checks both bounds.
    unsigned = index.view(f"u{index.itemsize}")
    if len(index) and unsigned.max() >= size:
        k = int((unsigned >= size).argmax())
        raise _damaged(
            name, f"stored value {k} has the {axis} index {index[k]}, and {axis}s are numbered from 0 to {size - 1}"
        )


def _damaged(name: str, fault: str) -> DataError:
    return DataError(f"The sparse matrix {name} is damaged: {fault}; build it again from its rows, columns and values.")
