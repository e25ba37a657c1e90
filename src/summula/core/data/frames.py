"""Frames (pandas, polars, pyarrow and others supported by narwhals) as tuples of NumPy columns.

Columns are shared, not copied, if the frame stores them as plain numbers.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.numbers import Origin, column_values, real_numbers
from summula.core.errors import DataError

__all__ = [
    "column_numbers",
    "frame_columns",
    "frame_library",
    "is_category",
    "is_frame",
    "no_such_column",
    "opened",
    "plain_doubles",
    "plain_texts",
    "pop_columns",
]

Array = NDArray[Any]

_MOST_NAMES = 8  # number of columns that error messages list


def is_frame(X: Any) -> bool:
    """Return whether X is a dataframe, without importing a frame library."""
    if isinstance(X, np.ndarray | list | tuple) or hasattr(X, "indptr"):
        return False
    import narwhals as nw

    return bool(nw.dependencies.is_into_dataframe(X))


def plain_doubles(X: Any) -> dict[str, Array]:
    """Return the columns of doubles of a pyarrow Table; none for other frames.

    Narwhals takes about 0.1 ms per column, which adds up in tables with many columns and few rows.
    """
    pa = sys.modules.get("pyarrow")
    if pa is None or not isinstance(X, pa.Table):
        return {}
    double = pa.float64()
    places = [j for j, dtype in enumerate(X.schema.types) if dtype == double]
    names = X.schema.names
    if len(places) <= X.num_rows or not X.num_rows:
        return {names[j]: X.column(j).to_numpy() for j in places}
    (batch,) = X.select(places).combine_chunks().to_batches()
    values = batch.to_tensor(null_to_nan=True, row_major=False).to_numpy()
    return {names[j]: values[:, k] for k, j in enumerate(places)}


def plain_texts(X: Any) -> dict[str, Any]:
    """Return the string columns of a pyarrow Table as one array of large strings each; none for other frames."""
    pa = sys.modules.get("pyarrow")
    if pa is None or not isinstance(X, pa.Table):
        return {}
    large, kinds = pa.large_string(), (pa.large_string(), pa.string())
    found = {field.name: X.column(j) for j, field in enumerate(X.schema) if field.type in kinds}
    return {name: _one_array(column if column.type == large else column.cast(large)) for name, column in found.items()}


def _one_array(column: Any) -> Any:
    """Return a pyarrow column as one array."""
    import pyarrow as pa

    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def frame_library(X: Any) -> str:
    """Return the library of a frame or series: "pandas", "polars", "pyarrow", ..."""
    return type(X).__module__.partition(".")[0]


def opened(X: Any) -> Any:
    """Return a narwhals frame, after checking that column names are unique."""
    import narwhals as nw

    try:
        return nw.from_native(X, eager_only=True)
    except nw.exceptions.DuplicateError:
        names = [str(name) for name in getattr(X, "column_names", X.columns)]
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise DataError(f"The frame has more than one column named {twice!r}; rename one of them.") from None


def pop_columns(X: Any, wanted: Iterable[str]) -> tuple[Any, list[Any]]:
    """Return a frame without some of its columns, and those columns."""
    frame = opened(X)
    wanted = list(wanted)
    for name in wanted:
        if name not in frame.columns:
            raise DataError(no_such_column(name, frame.columns))
    popped = [frame[name] for name in wanted]
    return frame.drop(wanted).to_native(), popped


def no_such_column(name: str, columns: Iterable[Any]) -> str:
    """Return the error message for a missing column, with the nearest name or all names."""
    names = [str(column) for column in columns]
    same = [one for one in names if one.strip().casefold() == name.strip().casefold()]
    near = same or difflib.get_close_matches(name, names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else "; its columns are " + _listed(columns) + "."
    return f"The data have no column {name!r}{hint}"


def _listed(names: Iterable[Any]) -> str:
    shown = [repr(name) for name in names]
    more = len(shown) - _MOST_NAMES
    return ", ".join(shown[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def column_numbers(column: Any, estimator: str, advice: str | None = None) -> Array:
    """Return a narwhals column as float64, float32, integers or booleans; `advice` is for text."""
    origin = Origin.column(column.name, frame_library(column.to_native()))
    origin = origin if advice is None else origin._replace(advice=advice)
    return real_numbers(column_values(column), origin, estimator)


def is_category(dtype: Any) -> bool:
    """Return whether a narwhals dtype is categorical: text, or a categorical type."""
    return str(dtype).startswith(("String", "Categorical", "Enum", "Object"))


def frame_columns(X: Any, estimator: str, factors: Any = None) -> Any:
    """Return the columns of a frame: its own 2-D array if it has one, else a tuple of 1-D arrays.

    With `factors` (see core/data/factors.py) categorical columns are converted to codes.
    """
    frame = opened(X)
    if frame.implementation.is_pandas():
        if len(X.columns) and all(str(d).startswith("Sparse") and d.fill_value == 0 for d in X.dtypes):
            return X.sparse.to_coo().tocsr()
        kinds = set(X.dtypes)
        if len(kinds) == 1 and isinstance(kind := kinds.pop(), np.dtype) and kind in (np.float64, np.float32):
            return X.to_numpy()
    if factors is None:
        return tuple(column_numbers(column, estimator) for column in frame.iter_columns())
    return tuple(
        factors.codes(column.name, _arrow_or_list(column)) if _categories(column) else column_numbers(column, estimator)
        for column in frame.iter_columns()
    )


def _arrow_or_list(column: Any) -> Any:
    """Return a column for `factors`, which report mixed types of objects."""
    import pyarrow as pa

    try:
        return column.to_arrow()
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return column.to_list()


def _categories(column: Any) -> bool:
    """Return whether a column is categorical; numbers stored as objects are numeric."""
    if str(column.dtype).startswith("Object"):
        return any(isinstance(value, str) for value in column.to_list())
    return is_category(column.dtype)
