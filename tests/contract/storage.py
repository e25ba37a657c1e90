"""Containers of data. Each entry converts a float64 array to the same numbers in another container.

Streams write named columns to files in a folder, and scan these. Dask collections hold them in blocks.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv, feather, parquet
from scipy import sparse

import summula

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
    "csr_array, sums": lambda X: _as_sums(sparse.csr_array(X)),
}


def _long_indices(X: Any) -> Any:
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def _unsorted(X: Any) -> Any:
    """Every row's entries in falling order of their column."""
    order = np.concatenate([np.arange(a, b)[::-1] for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)])
    return sparse.csr_array((X.data[order], X.indices[order], X.indptr), shape=X.shape)


def _as_sums(X: Any) -> Any:
    """Every entry x in two parts, 2x and -x, and memory for one more."""
    order = np.concatenate([np.r_[a:b, a:b] for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)])
    first = np.concatenate([np.repeat([True, False], k) for k in np.diff(X.indptr)])
    parts = np.where(first, 2.0, -1.0) * X.data[order]
    sums = sparse.csr_array((parts, X.indices[order], 2 * X.indptr), shape=X.shape)
    sums.data, sums.indices = np.append(sums.data, np.nan), np.append(sums.indices, sums.indices[:1])
    return sums


# ------------------------------------------------------------------------------------------------------------ streams

Columns = Mapping[str, Array]


def _in_smallest(table: Columns) -> dict[str, Array]:
    """The first three columns in the smallest types that hold them exactly."""
    kinds = zip(names(3), (np.int64, np.uint8, np.float32), strict=True)
    return dict(table) | {name: np.asarray(table[name]).astype(dtype) for name, dtype in kinds}


def _length(table: Columns) -> int:
    return len(next(iter(table.values())))


def _parquet(table: Columns, path: Path, row_group: int | None = None, **options: Any) -> Any:
    parquet.write_table(pa.table(dict(table)), path, row_group_size=row_group, **options)
    return summula.scan(path)


def _parquet_files(table: Columns, folder: Path) -> Any:
    """Files of unequal length, one of them without rows."""
    n = _length(table)
    for number, (a, b) in enumerate([(0, n // 7), (n // 7, n // 7), (n // 7, n // 2), (n // 2, n)]):
        parquet.write_table(pa.table(dict(table)).slice(a, b - a), folder / f"{number}.parquet", row_group_size=100)
    return summula.scan(folder)


def _csv(table: Columns, folder: Path) -> Any:
    csv.write_csv(pa.table(dict(table)), folder / "rows.csv")
    return summula.scan(folder / "rows.csv")


def _feather(table: Columns, folder: Path) -> Any:
    feather.write_feather(pa.table(dict(table)), folder / "rows.feather", chunksize=333)
    return summula.scan(folder / "rows.feather")


STREAMS = {
    "Parquet": lambda table, folder: _parquet(table, folder / "rows.parquet"),
    "Parquet, small row groups": lambda table, folder: _parquet(
        table, folder / "rows.parquet", 19 + _length(table) // 50
    ),
    "Parquet, compressed": lambda table, folder: _parquet(table, folder / "rows.parquet", 999, compression="zstd"),
    "Parquet, mixed types": lambda table, folder: _parquet(_in_smallest(table), folder / "rows.parquet", 500),
    "Parquet, several files": _parquet_files,
    "CSV": _csv,
    "Feather": _feather,
    "Arrow reader": lambda table, folder: summula.scan(pa.table(dict(table)).to_reader(max_chunksize=251)),
}


# --------------------------------------------------------------------------------------------------------------- Dask


def _dask_array(X: Array, rows: int) -> Any:
    import dask.array as da

    return da.from_array(X, chunks=(rows, X.shape[1]))


def _of_unknown_lengths(X: Array) -> Any:
    """Blocks of unknown length after a selection, which selects all rows, and none of one block."""
    import dask.array as da

    whole = da.from_array(np.vstack([X, np.full_like(X[: len(X) // 3], 1e9)]), chunks=(len(X) // 3, X.shape[1]))
    return whole[whole[:, 0] < 1e9]


def _dask_frame(frame: pd.DataFrame, partitions: int) -> Any:
    import dask.dataframe as dd

    return dd.from_pandas(frame, npartitions=partitions)


def _with_empty_partitions(X: Array) -> Any:
    import dask.dataframe as dd

    frame = FRAMES["pandas"](X)
    return dd.concat([_dask_frame(frame[:0], 1), _dask_frame(frame[:50], 2), _dask_frame(frame[:0], 1),
                      _dask_frame(frame[50:], 2)])  # fmt: skip


DASK = {
    "dask array": lambda X: _dask_array(X, len(X) // 3 + 1),
    "dask array, small blocks": lambda X: _dask_array(X, 17 + len(X) // 50),
    "dask array, unknown lengths": _of_unknown_lengths,
    "dask dataframe": lambda X: _dask_frame(FRAMES["pandas"](X), 4),
    "dask dataframe, mixed types": lambda X: _dask_frame(FRAMES["pandas, mixed types"](X), 3),
    "dask dataframe, empty partitions": _with_empty_partitions,
}
