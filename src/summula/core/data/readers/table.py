"""A file as a table: its columns, its number of rows, and any range of its rows.

Reading is serial, one batch at a time; each thread reads different rows.
"""

from __future__ import annotations

import functools
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from summula.core.data.readers.arrow_columns import arrow_columns
from summula.core.errors import DataError

__all__ = [
    "BATCH_ROWS",
    "Columns",
    "Table",
    "category_columns",
    "column_kinds",
    "decoded",
    "decoded_type",
    "first_words",
    "kind_of",
    "release_memory",
    "spells_number",
]

_SHORT = 64  # maximum length of cached texts

Array = NDArray[Any]
Columns = Sequence[Array]  # one array per column

BATCH_ROWS = 16_384  # rows decoded at once; more would only need more memory


class Table(ABC):
    """A file with named columns.

    Attributes
    ----------
    path : str
    kinds : dict of str to str
        Kind of each column by name, in order: "float64", "float32", "number" (read as float64), "text", ...
    categories : frozenset of str
        Columns with a categorical type in the file.
    starts : list of int
        Rows where reading begins without decoding what comes before; then the number of rows.
    """

    # The file that this one was rewritten from, if any, and its name in messages if it is not the path.
    rewritten_from: str | None = None
    shown_as: str | None = None
    # Remarks on unusual properties of the file, one sentence each.
    remarks: tuple[str, ...] = ()
    # Whether numbers were text, so that their type (integer or not) is unknown.
    text_numbers = False
    # Whether rows are read as Arrow arrays of the types in the file.
    as_spelled = False
    # Set by `in_arrow`: text as Arrow arrays instead of objects, and the number of rows per batch.
    texts_in_arrow = False
    batch_rows: int | None = None

    def __init__(self, path: str) -> None:
        self.path = path
        self.stamp = self._stamp()
        self.kinds: dict[str, str] = {}
        self.categories: frozenset[str] = frozenset()
        self.starts: list[int] = [0]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.starts[-1]

    @property
    def _shown(self) -> str:
        return self.shown_as or self.path

    def plain(self, columns: Sequence[str]) -> bool:
        """Return whether these columns are stored as in memory, so that decoding is little more than copying."""
        return False

    def _stamp(self) -> tuple[int, int]:
        try:
            status = os.stat(self.path)
        except FileNotFoundError:
            raise DataError(
                f"The file {self._shown} was moved or deleted; keep it in place until the fit ends."
            ) from None
        return status.st_size, status.st_mtime_ns

    def check_unchanged(self, estimator: str) -> None:
        """Raise if the file is not the one that the estimator was fitted to."""
        try:
            if self._stamp() == self.stamp:
                return
            fault, cure = "changed", "fit again"
        except (DataError, OSError):
            fault, cure = "moved or deleted", "put it back, or fit again"
        raise DataError(f"The file {self._shown} was {fault} after {estimator} was fitted to its rows: {cure}.")

    def place(self, row: int) -> str:
        """Describe the position of a row, counted from 0, in the file, for error messages."""
        if self.rewritten_from is not None:
            return (
                f"row {row + 2} of {self.rewritten_from} (the header is row 1)"
                if self.text_numbers
                else (f"row {row + 1} of {self.rewritten_from} (the first is row 1)")
            )
        return f"row {row + 1} of {self._shown} (the first is row 1)"

    def read(self, start: int, stop: int, columns: Sequence[str]) -> Iterator[Columns]:
        """Yield rows `start` to `stop` of some columns, batch by batch."""
        if self._stamp() != self.stamp:
            raise DataError(f"The file {self._shown} changed while it was being read; start again.")
        row = start
        try:
            for batch in self._read(start, stop, columns):
                row += len(batch[0])
                yield batch
        except (OSError, ValueError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"The file {self._shown} cannot be read near row {row}: {first_words(error)}.") from error
        if row != stop:
            raise DataError(f"The file {self._shown} ended at row {row} of {stop}; it was truncated or changed.")

    def in_arrow(self, batch_rows: int) -> Self:
        """Return the table read in batches of a given size, with text as Arrow arrays (coded if it is in the file)."""
        other = object.__new__(type(self))  # not copy.copy: pickling drops attributes
        other.__dict__.update(self.__dict__, texts_in_arrow=True, batch_rows=batch_rows, _first=self)
        return other

    def stored(self) -> Self:
        """Return the table read as Arrow arrays of the types in the file, for copying columns."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, as_spelled=True, _first=self)
        return other

    @abstractmethod
    def _read(self, start: int, stop: int, columns: Sequence[str]) -> Iterator[Columns]: ...

    def _columns(self, batches: Iterable[Any], names: Sequence[str]) -> Iterator[Columns]:
        """Return the columns of record batches in this order."""
        return arrow_columns(batches, names, self._as_array)

    def _as_array(self, values: Any, name: str) -> Any:
        as_it_is = self.texts_in_arrow and self.kinds[name] == "text"
        return values if as_it_is or self.as_spelled else _column(values, self.kinds[name])


def release_memory() -> None:
    """Release Arrow's read buffers, after a fit has read its last rows."""
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()


def first_words(error: BaseException) -> str:
    """Return the first sentence of a library's message, without its full stop."""
    return " ".join(str(error).split()).split(". ")[0].rstrip(".")


def column_kinds(fields: Iterable[Any], path: str) -> dict[str, str]:
    """Return the kind of each column of a schema by name, after checking that names are unique."""
    kinds: dict[str, str] = {}
    for field in fields:
        if field.name in kinds:
            raise DataError(f"{path} has more than one column named {field.name!r}; rename one of them.")
        kinds[field.name] = kind_of(field.type)
    return kinds


def category_columns(schema: Any) -> frozenset[str]:
    """Return the categorical columns of a schema: by their type, or (for numbers in Parquet) by pandas metadata."""
    import pyarrow as pa

    noted = (schema.pandas_metadata or {}).get("columns", ())
    by_type = [field.name for field in schema if pa.types.is_dictionary(field.type)]
    return frozenset(by_type + [str(c.get("name")) for c in noted if c.get("pandas_type") == "categorical"])


# --------------------------------------------------------------------------------------------------- Arrow to columns


def kind_of(dtype: Any) -> str:
    """Return the kind of a column of an Arrow type, as in `Table.kinds`."""
    import pyarrow as pa

    if pa.types.is_float64(dtype) or pa.types.is_float32(dtype):
        return str({"double": "float64", "float": "float32"}[str(dtype)])
    if pa.types.is_integer(dtype) or pa.types.is_boolean(dtype) or pa.types.is_decimal(dtype):
        return "number"
    if pa.types.is_float16(dtype) or pa.types.is_null(dtype):
        return "number"
    if pa.types.is_dictionary(dtype):
        return kind_of(dtype.value_type)
    if pa.types.is_string(dtype) or pa.types.is_large_string(dtype) or pa.types.is_string_view(dtype):
        return "text"
    return str(dtype)


def _column(values: Any, kind: str) -> Array:
    """Convert an Arrow array to NumPy: numbers as floats with NaN for null, text as objects."""
    import pyarrow as pa

    values = decoded(values)
    if kind not in ("float64", "float32", "number"):
        try:
            return np.asarray(values.to_numpy(zero_copy_only=False))
        except pa.ArrowNotImplementedError:
            raise DataError(
                f"A column contains {values.type} values; give each part of them as a column, or drop it."
            ) from None
    if kind == "number":
        if values.null_count == 0 and pa.types.is_integer(values.type):
            return np.asarray(values.to_numpy(zero_copy_only=True))
        values = values.cast(pa.float64(), safe=False)  # integers above 2^53 are rounded, as in arrays
    return np.asarray(values.to_numpy(zero_copy_only=values.null_count == 0))


def decoded(values: Any) -> Any:
    """Return an Arrow array without its dictionary."""
    import pyarrow as pa

    if not pa.types.is_dictionary(values.type):
        return values
    words = values.dictionary.cast(decoded_type(values.type))
    return pa.DictionaryArray.from_arrays(values.indices, words).dictionary_decode()


def decoded_type(dtype: Any) -> Any:
    """Return the type of an Arrow array without its dictionary."""
    import pyarrow as pa

    if not pa.types.is_dictionary(dtype):
        return dtype
    # `take` does not support string views.
    return pa.large_string() if pa.types.is_string_view(dtype.value_type) else dtype.value_type


def spells_number(text: str) -> bool:
    """Return whether a numeric column of a CSV file may contain this text.

    These are the rules of the reader: unlike Python, it rejects 1_000 and digits of other scripts.
    """
    return _casts(text) if len(text) <= _SHORT else _casts.__wrapped__(text)


@functools.lru_cache(maxsize=4_096)  # wide tables have the same few words in thousands of columns
def _casts(text: str) -> bool:
    """Return whether Arrow reads a text as a number."""
    import pyarrow as pa

    try:
        pa.scalar(text.strip(" \t")).cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True
