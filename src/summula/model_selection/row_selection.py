"""Selection of rows of arrays, frames and sparse matrices by their numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from summula.core.data.scan import Scan
from summula.core.data.sparse_format import check_sparse
from summula.core.errors import DataError

__all__ = ["check_rows_in_memory", "count_rows", "indexable", "take_rows"]


def check_rows_in_memory(X: Any, y: Any = None) -> None:
    """Raise for scans, names of columns, Dask collections, and sparse matrices with damaged indices."""
    check_sparse(X)
    for what, values in (("X", X), ("y", y)):
        if isinstance(values, Scan | str):
            given = "the name of a column" if isinstance(values, str) else "a scan"
            raise DataError(
                f"{what} must be in memory, not {given}: "
                "load the rows first, for instance with pandas.read_parquet, and pass the target as an array."
            )
        if hasattr(values, "__dask_graph__"):
            raise DataError(f"{what} must be in memory, not a Dask collection: pass {what}.compute().")


def indexable(values: Any, what: str = "X") -> Any:
    """Return rows that `take_rows` can select from: lists become arrays; scans and Dask collections raise an error."""
    check_rows_in_memory(*((values,) if what == "X" else (None, values)))
    return values if hasattr(values, "shape") else np.asarray(values)


def count_rows(values: Any) -> int:
    """Return the number of rows."""
    return int(values.shape[0])


def take_rows(values: Any, rows: Any) -> Any:
    """Return some rows, by their numbers or a mask, in the same kind of container; None for None."""
    if values is None:
        return None
    rows = np.asarray(rows)
    rows = np.flatnonzero(rows) if rows.dtype == bool else rows
    if hasattr(values, "iloc"):
        return values.iloc[rows]
    if hasattr(values, "take") and hasattr(values, "schema") and not hasattr(values, "clone"):  # pyarrow
        return values.take(rows)
    if hasattr(values, "tocsr"):
        return values.tocsr()[rows]
    return values[rows]
