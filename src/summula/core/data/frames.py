"""Frames (pandas, polars, pyarrow and whatever else narwhals reads) as tuples of NumPy columns.

Columns are shared, not copied, wherever the frame keeps them as plain numbers.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import DataError

__all__ = [
    "frame_columns",
    "frame_library",
    "is_category",
    "is_frame",
    "no_such_column",
    "opened",
    "pop_columns",
    "text_error",
]

Array = NDArray[Any]


def is_frame(X: Any) -> bool:
    """Whether X is a dataframe; no frame library is imported to find out."""
    if isinstance(X, np.ndarray | list | tuple) or hasattr(X, "indptr"):
        return False
    import narwhals as nw

    return bool(nw.dependencies.is_into_dataframe(X))


def frame_library(X: Any) -> str:
    """The name of the library a frame is of: "pandas", "polars", "pyarrow", ..."""
    return type(X).__module__.partition(".")[0]


def opened(X: Any) -> Any:
    """A frame as narwhals sees it; its names have to be different."""
    import narwhals as nw

    try:
        return nw.from_native(X, eager_only=True)
    except nw.exceptions.DuplicateError:
        names = [str(name) for name in getattr(X, "column_names", X.columns)]
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise DataError(f"The frame has more than one column named {twice!r}; give each a name of its own.") from None


def pop_columns(X: Any, wanted: Iterable[str]) -> tuple[Any, list[Any]]:
    """A frame without some of its columns, and those columns."""
    frame = opened(X)
    wanted = list(wanted)
    for name in wanted:
        if name not in frame.columns:
            raise DataError(no_such_column(name, frame.columns))
    popped = [frame[name] for name in wanted]
    return frame.drop(wanted).to_native(), popped


def no_such_column(name: str, columns: Iterable[Any]) -> str:
    """What to say of a column that is not there: the nearest name, or those there are."""
    near = difflib.get_close_matches(name, [str(column) for column in columns], n=1)
    hint = f"; did you mean {near[0]!r}?" if near else "; its columns are " + _listed(columns) + "."
    return f"The data have no column {name!r}{hint}"


def _listed(names: Iterable[Any], most: int = 8) -> str:
    shown = [repr(name) for name in names]
    return ", ".join(shown[:most]) + (f" and {len(shown) - most} more" if len(shown) > most else "")


def text_error(label: str, value: Any, row: int, estimator: str) -> DataError:
    """What to say of a column that holds something other than numbers."""
    value = str(value) if isinstance(value, str) else value  # not np.str_('...')
    return DataError(
        f"{label} holds {value!r} at row {row}, could not convert it to a number; {estimator} needs numbers: "
        "encode the column (for example with OneHotEncoder) or leave it out."
    )


def _numbers(column: Any, estimator: str) -> Array:
    """One column as float64, float32, integers or booleans."""
    import narwhals as nw

    name, dtype = column.name, column.dtype
    if dtype.is_numeric() or str(dtype) == "Boolean":
        values: Array = column.to_numpy()
        if values.dtype.kind in "fiub":
            return values.astype(np.float32) if values.dtype == np.float16 else values
        if values.dtype.kind == "c":
            raise DataError(f"Complex data not supported: column {name!r} holds complex numbers.")
        if str(dtype) == "Boolean":  # some are missing, so they came as objects
            return np.asarray(column.cast(nw.Float64).to_numpy(), np.float64)
    values = np.asarray(column.to_numpy())
    if values.dtype.kind in "mM":
        raise DataError(
            f"Column {name!r} holds dates or durations; {estimator} needs numbers: "
            "turn it into days, months or hours first."
        )
    return _parsed(values, name, estimator)


def _parsed(values: Array, name: str, estimator: str) -> Array:
    # Numbers kept as Python objects are numbers; text is text even when it spells a number.
    for row, value in enumerate(values):
        if isinstance(value, str | bytes):
            raise text_error(f"Column {name!r}", value, row, estimator)
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        for row, value in enumerate(values):
            try:
                number = np.ndim(np.float64(value)) == 0
            except (TypeError, ValueError):
                number = False
            if not number:
                raise text_error(f"Column {name!r}", value, row, estimator) from None
        raise


def is_category(dtype: Any) -> bool:
    """Whether a column of this narwhals dtype holds categories: text, or what a frame calls categorical."""
    return str(dtype).startswith(("String", "Categorical", "Enum", "Object"))


def frame_columns(X: Any, estimator: str, factors: Any = None) -> Any:
    """The columns of a frame: its own 2-D array where it has one, else a tuple of 1-D arrays.

    With `factors` (see core/data/factors.py) columns of categories become codes.
    """
    frame = opened(X)
    if frame.implementation.is_pandas():
        if all(str(dtype).startswith("Sparse") for dtype in X.dtypes) and len(X.columns):
            return X.sparse.to_coo().tocsr()
        kinds = set(X.dtypes)
        if len(kinds) == 1 and isinstance(kind := kinds.pop(), np.dtype) and kind in (np.float64, np.float32):
            return X.to_numpy()
    if factors is None:
        return tuple(_numbers(column, estimator) for column in frame.iter_columns())
    return tuple(
        factors.codes(column.name, _arrow_or_list(column)) if _categories(column) else _numbers(column, estimator)
        for column in frame.iter_columns()
    )


def _arrow_or_list(column: Any) -> Any:
    """A column for `factors`; that its objects are of several kinds is theirs to say."""
    import pyarrow as pa

    try:
        return column.to_arrow()
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return column.to_list()


def _categories(column: Any) -> bool:
    """Whether a column holds categories; numbers that are kept as objects are numbers."""
    if str(column.dtype).startswith("Object"):
        return any(isinstance(value, str) for value in column.to_list())
    return is_category(column.dtype)
