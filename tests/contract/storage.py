"""The ways data can be kept. Each entry turns a float64 array into the same numbers in another container.

Streams (`scan("x.parquet")`) and Dask collections join the first table when they exist: one line each.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[Any]


def names(d: int) -> list[str]:
    return [f"column {j}" for j in range(d)]


def columns(X: Array) -> dict[str, Array]:
    return {name: np.ascontiguousarray(column) for name, column in zip(names(X.shape[1]), X.T, strict=True)}


def _slice_of_larger(X: Array) -> Array:
    larger = np.full((2 * X.shape[0], 3 * X.shape[1]), np.nan)
    larger[::2, 1::3] = X
    return larger[::2, 1::3]


def _backwards(X: Array) -> Array:
    return X[::-1, ::-1].copy()[::-1, ::-1]


def _read_only(X: Array) -> Array:
    X = X.copy()
    X.flags.writeable = False
    return X


def _memory_map(X: Array) -> Array:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "X.npy"
        np.save(path, X)
        return np.load(path, mmap_mode="r")


def _mixed(X: Array) -> dict[str, Array]:
    """The columns in the smallest types that hold them exactly (see `registry._data`)."""
    kept = columns(X)
    first = names(X.shape[1])[:3]
    for name, dtype in zip(first, (np.int64, np.uint8, np.float32), strict=True):
        kept[name] = kept[name].astype(dtype)
    return kept


def _in_pieces(X: Array) -> pa.Table:
    half = len(X) // 2
    return pa.concat_tables([pa.table(columns(X[:half])), pa.table(columns(X[half:]))])


ARRAYS = {
    "Fortran order": np.asfortranarray,
    "slice": _slice_of_larger,
    "negative strides": _backwards,
    "read-only": _read_only,
    "memory map": _memory_map,
    "list of lists": lambda X: X.tolist(),
    "big endian": lambda X: X.astype(">f8"),
}

FRAMES = {
    "pandas": lambda X: pd.DataFrame(X, columns=names(X.shape[1])),
    "pandas, column by column": lambda X: pd.DataFrame(columns(X)),
    "pandas, mixed types": lambda X: pd.DataFrame(_mixed(X)),
    "pandas, objects": lambda X: pd.DataFrame(X, columns=names(X.shape[1])).astype(object),
    "pandas, nullable": lambda X: pd.DataFrame(_mixed(X)).convert_dtypes(),
    "pandas, other index": lambda X: pd.DataFrame(X, columns=names(X.shape[1]), index=np.arange(len(X))[::-1]),
    "polars": lambda X: pl.DataFrame(columns(X)),
    "polars, mixed types": lambda X: pl.DataFrame(_mixed(X)),
    "pyarrow": lambda X: pa.table(columns(X)),
    "pyarrow, mixed types": lambda X: pa.table(_mixed(X)),
    "pyarrow, in pieces": _in_pieces,
}

SPARSE = {
    "csr_array": sparse.csr_array,
    "csr_matrix": sparse.csr_matrix,
    "csc_array": sparse.csc_array,
    "csc_matrix": sparse.csc_matrix,
    "coo_array": sparse.coo_array,
    "csr_array, 64-bit indices": lambda X: _long_indices(sparse.csr_array(X)),
    "csr_array, unsorted": lambda X: _unsorted(sparse.csr_array(X)),
}


def _long_indices(X: Any) -> Any:
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def _unsorted(X: Any) -> Any:
    """Every row's entries in falling order of their column."""
    order = np.concatenate([np.arange(a, b)[::-1] for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)])
    return sparse.csr_array((X.data[order], X.indices[order], X.indptr), shape=X.shape)
