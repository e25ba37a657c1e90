"""Files as tables: what columns they have, how many rows, and their rows from any place to any other.

Parquet, CSV, Arrow IPC and .npy. Reading is serial and holds a batch at a time: threads each read their own rows.
"""

from __future__ import annotations

import os
import re
import sys
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from summula.core.data.arrow_columns import arrow_columns
from summula.core.errors import DataError

__all__ = ["CsvTable", "IpcTable", "NpyTable", "ParquetTable", "Table", "open_table", "release_memory", "spells_number"]

Array = NDArray[Any]
Columns = Sequence[Array]  # one array a column

_BATCH_ROWS = 16_384  # decoded at once; more would only need more memory
_BLOCK_LINES, _BLOCK_BYTES = 65_536, 1 << 23  # most lines of text parsed at once, and bytes, about
_SNIFFED_BYTES = 1 << 20
_COUNTED_BYTES = 1 << 22
_NEWLINE = 10
_WIDTHS = {"float64": 8, "float32": 4}  # bytes of a number
_PLAIN = 0.9  # columns that take less of their width than this are encoded


class Table(ABC):
    """A file with named columns.

    Attributes
    ----------
    path : str
    kinds : dict of str to str
        "float64", "float32", "number" (read as float64), "text" or what else a column holds, by name, in order.
    categories : frozenset of str
        The columns that the file itself calls categorical, whatever they hold.
    starts : list of int
        Rows where reading begins without decoding what comes before; then the number of rows.
    """

    # The text file that this one was rewritten from, if it was.
    rewritten_from: str | None = None
    # How `in_arrow` asks for rows: text as it is in Arrow, not as objects, and so many rows at once.
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
        """How many rows."""
        return self.starts[-1]

    def plain(self, columns: Sequence[str]) -> bool:
        """Whether these columns are numbers as they are in memory, so that decoding is little more than copying."""
        return False

    def _stamp(self) -> tuple[int, int]:
        try:
            status = os.stat(self.path)
        except FileNotFoundError:
            raise DataError(f"The file {self.path} is gone; it has to stay in place until the fit is over.") from None
        return status.st_size, status.st_mtime_ns

    def place(self, row: int) -> str:
        """Where a row, counted from 0, is to whoever looks at the file."""
        if self.rewritten_from is not None:
            return f"row {row + 2} of {self.rewritten_from} (the header is row 1)"
        return f"row {row + 1} of {self.path} (the first is row 1)"

    def read(self, start: int, stop: int, columns: Sequence[str]) -> Iterator[Columns]:
        """Rows `start` to `stop` of some columns, a batch at a time."""
        if self._stamp() != self.stamp:
            raise DataError(f"The file {self.path} changed while it was being read; start again.")
        seen = start
        try:
            for batch in self._read(start, stop, columns):
                seen += len(batch[0])
                yield batch
        except (OSError, ValueError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"The file {self.path} cannot be read near row {seen}: {first_words(error)}.") from error
        if seen != stop:
            raise DataError(f"The file {self.path} ended at row {seen} of {stop}; it is cut short or was changed.")

    def in_arrow(self, batch_rows: int) -> Self:
        """The same table read in batches of so many rows, text as Arrow arrays, coded where the file has it so."""
        other = object.__new__(type(self))  # no copy: a pickled table leaves things behind
        other.__dict__.update(self.__dict__, texts_in_arrow=True, batch_rows=batch_rows, _first=self)
        return other

    @abstractmethod
    def _read(self, start: int, stop: int, columns: Sequence[str]) -> Iterator[Columns]: ...

    def _columns(self, batches: Iterable[Any], names: Sequence[str]) -> Iterator[Columns]:
        """The columns of record batches in this order."""
        return arrow_columns(batches, names, self._as_array)

    def _as_array(self, values: Any, name: str) -> Any:
        as_it_is = self.texts_in_arrow and self.kinds[name] == "text"
        return values if as_it_is else _column(values, self.kinds[name])


def release_memory() -> None:
    """Give back what Arrow has read into and keeps for reading on: to be called when a fit has read its last rows."""
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()


def first_words(error: BaseException) -> str:
    """The first sentence of what a library says, without its full stop."""
    return " ".join(str(error).split()).split(". ")[0].rstrip(".")


def _kinds(fields: Iterable[Any], path: str) -> dict[str, str]:
    """The kind of each column of a schema, by name; names have to be different."""
    kinds: dict[str, str] = {}
    for field in fields:
        if field.name in kinds:
            raise DataError(f"{path} has more than one column named {field.name!r}; give each a name of its own.")
        kinds[field.name] = _kind(field.type)
    return kinds


def _categories(schema: Any) -> frozenset[str]:
    """The columns a schema calls categorical: by their type, or (Parquet has none for numbers) in a note by pandas."""
    import pyarrow as pa

    noted = (schema.pandas_metadata or {}).get("columns", ())
    by_type = [field.name for field in schema if pa.types.is_dictionary(field.type)]
    return frozenset(by_type + [str(c.get("name")) for c in noted if c.get("pandas_type") == "categorical"])


def open_table(path: str) -> Table:
    """The table in a file, by its ending."""
    kind = os.path.splitext(path)[1].lower()
    kinds = {
        ".parquet": ParquetTable,
        ".pq": ParquetTable,
        ".csv": CsvTable,
        ".txt": CsvTable,
        ".tsv": CsvTable,
        ".arrow": IpcTable,
        ".feather": IpcTable,
        ".ipc": IpcTable,
        ".npy": NpyTable,
    }
    if kind not in kinds:
        raise DataError(f"The ending of {path} is none that scan reads: {', '.join(kinds)}.")
    try:
        return kinds[kind](path)  # type: ignore[abstract]
    except PermissionError:
        raise DataError(f"The file {path} may not be read by this user.") from None
    except (OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"The file {path} cannot be read; it is damaged or cut short: {first_words(error)}.") from error


# --------------------------------------------------------------------------------------------------- Arrow to columns


def _kind(dtype: Any) -> str:
    import pyarrow as pa

    if pa.types.is_float64(dtype) or pa.types.is_float32(dtype):
        return str({"double": "float64", "float": "float32"}[str(dtype)])
    if pa.types.is_integer(dtype) or pa.types.is_boolean(dtype) or pa.types.is_decimal(dtype):
        return "number"
    if pa.types.is_float16(dtype) or pa.types.is_null(dtype):
        return "number"
    if pa.types.is_dictionary(dtype):
        return _kind(dtype.value_type)
    if pa.types.is_string(dtype) or pa.types.is_large_string(dtype) or pa.types.is_string_view(dtype):
        return "text"
    return str(dtype)


def _column(values: Any, kind: str) -> Array:
    """An Arrow array as NumPy: numbers as floats with NaN for null, text as objects."""
    import pyarrow as pa

    values = decoded(values)
    if kind not in ("float64", "float32", "number"):
        return np.asarray(values.to_numpy(zero_copy_only=False))
    if kind == "number":
        if values.null_count == 0 and pa.types.is_integer(values.type):
            return np.asarray(values.to_numpy(zero_copy_only=True))
        values = values.cast(pa.float64(), safe=False)  # whole numbers above 2^53 are rounded, as in arrays
    return np.asarray(values.to_numpy(zero_copy_only=values.null_count == 0))


def decoded(values: Any) -> Any:
    """An Arrow array without its dictionary."""
    import pyarrow as pa

    if not pa.types.is_dictionary(values.type):
        return values
    words = values.dictionary.cast(decoded_type(values.type))
    return pa.DictionaryArray.from_arrays(values.indices, words).dictionary_decode()


def decoded_type(dtype: Any) -> Any:
    """The type of an Arrow array without its dictionary."""
    import pyarrow as pa

    if not pa.types.is_dictionary(dtype):
        return dtype
    # Values cannot be taken from views.
    return pa.large_string() if pa.types.is_string_view(dtype.value_type) else dtype.value_type


def spells_number(text: str) -> bool:
    """Whether a column of a CSV file may hold this text and still be one of numbers.

    The reader's own rules: unlike Python's they have no 1_000 and no digits of other scripts.
    """
    import pyarrow as pa

    try:
        pa.scalar(text.strip(" \t")).cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def _cut(batches: Iterator[Any], skip: int, rows: int) -> Iterator[Any]:
    """Record batches without the first `skip` rows, `rows` in all."""
    for batch in batches:
        if skip >= batch.num_rows:
            skip -= batch.num_rows
            continue
        piece = batch.slice(skip, min(batch.num_rows - skip, rows))
        skip, rows = 0, rows - piece.num_rows
        yield piece
        if not rows:
            return


class ParquetTable(Table):
    """Parquet, a row group at a time."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        file = self._open()
        self.kinds, self.categories = _kinds(file.schema_arrow, path), _categories(file.schema_arrow)
        self.metadata = file.metadata
        counts = (file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups))
        self.starts = [0, *accumulate(counts)]
        file.close()

    def _open(self, metadata: Any = None) -> Any:
        from pyarrow import parquet

        coded = [name for name, kind in self.kinds.items() if kind == "text"] if self.texts_in_arrow else None
        # Small buffered reads, one buffer a column: the defaults hold whole row groups, several times over.
        return parquet.ParquetFile(
            self.path, metadata=metadata, pre_buffer=False, buffer_size=1 << 16, read_dictionary=coded
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "metadata": None}

    def plain(self, columns: Sequence[str]) -> bool:
        """Whether the first row group is neither compressed nor, to speak of, encoded."""
        if not self.n_rows or any(self.kinds[name] not in _WIDTHS for name in columns):
            return False
        with self._open(self.metadata) as file:
            group = file.metadata.row_group(0)
        wanted = [c for c in map(group.column, range(group.num_columns)) if c.path_in_schema in columns]
        if any(column.compression != "UNCOMPRESSED" for column in wanted):
            return False
        full = group.num_rows * sum(_WIDTHS[self.kinds[name]] for name in columns)
        return bool(sum(column.total_uncompressed_size for column in wanted) >= _PLAIN * full)

    def _read(self, start: int, stop: int, columns: Sequence[str]) -> Iterator[Columns]:
        first = bisect_right(self.starts, start) - 1
        last = bisect_right(self.starts, stop - 1) - 1
        with self._open(self.metadata) as file:
            # The threads of a fit each read row groups of their own; a single one is decoded by columns.
            alone, groups = len(self.starts) == 2, range(first, last + 1)
            rows = self.batch_rows or _BATCH_ROWS
            batches = file.iter_batches(rows, row_groups=groups, columns=list(columns), use_threads=alone)
            yield from self._columns(_cut(batches, start - self.starts[first], stop - start), columns)


class IpcTable(Table):
    """Arrow IPC (Feather) files, memory-mapped."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        with self._open() as reader:
            self.kinds, self.categories = _kinds(reader.schema, path), _categories(reader.schema)
            counts = (reader.get_batch(i).num_rows for i in range(reader.num_record_batches))
            self.starts = [0, *accumulate(counts)]

    def _open(self) -> Any:
        import pyarrow as pa

        return pa.ipc.open_file(pa.memory_map(self.path))

    def _read(self, start: int, stop: int, columns: Sequence[str]) -> Iterator[Columns]:
        first = bisect_right(self.starts, start) - 1
        with self._open() as reader:
            batches = (reader.get_batch(i) for i in range(first, reader.num_record_batches))
            yield from self._columns(_cut(batches, start - self.starts[first], stop - start), columns)


class NpyTable(Table):
    """A 1-D or 2-D array in a .npy file, memory-mapped; its columns are called x0, x1, ..."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        array = self._array()
        kind = {"float64": "float64", "float32": "float32"}.get(str(array.dtype), "number")
        if array.dtype.kind not in "fiub":
            kind = "text" if array.dtype.kind in "USO" else str(array.dtype)
        self.kinds = {f"x{j}": kind for j in range(array.shape[1])}
        # Any row is as near as any other; these are places to begin for threads.
        self.starts = [*range(0, len(array), _BATCH_ROWS * 32), len(array)] if len(array) else [0]

    def plain(self, columns: Sequence[str]) -> bool:
        """They always are."""
        return all(self.kinds[name] in _WIDTHS for name in columns)

    def _array(self) -> Array:
        array: Array = np.lib.format.open_memmap(self.path, mode="r")
        if array.ndim not in (1, 2):
            raise DataError(f"The array in {self.path} has {array.ndim} dimensions; scan reads rows and columns.")
        return array[:, None] if array.ndim == 1 else array

    def _read(self, start: int, stop: int, columns: Sequence[str]) -> Iterator[Columns]:
        array = self._array()
        chosen = [int(name[1:]) for name in columns]
        for a in range(start, stop, _BATCH_ROWS):
            b = min(a + _BATCH_ROWS, stop)
            yield tuple(array[a:b, j] for j in chosen)


class CsvTable(Table):
    """Comma-separated text with a header line; one row a line (no line breaks inside quotes).

    A first look counts the lines, quickly and without parsing, and notes where every so many of them begin, so that
    threads can start in the middle.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._delimiter = "\t" if path.lower().endswith(".tsv") else ","
        if not self.stamp[0]:
            raise DataError(f"The file {path} is empty; a CSV file begins with a line of column names.")
        self._types = self._sniff()
        self.kinds = {name: _kind(dtype) for name, dtype in self._types.items()}
        self._offsets: list[int] = []
        self._index()

    def _sniff(self) -> dict[str, Any]:
        """Column names, and types from the first megabyte: anything that looks like a number is read as float64."""
        import pyarrow as pa
        from pyarrow import csv

        with open(self.path, "rb") as file:
            head = file.read(_SNIFFED_BYTES)
        if len(head) < self.stamp[0]:
            head = head[: head.rfind(b"\n") + 1] or head
        self._body = head.find(b"\n") + 1 or len(head)
        # A power of two, so that the lines of the row grid are places to begin.
        lines = min(_BLOCK_LINES, max(1, _BLOCK_BYTES * head.count(b"\n") // len(head)))
        self._lines = 1 << (lines.bit_length() - 1)
        if b"\r" in head and b"\n" not in head:
            raise DataError(f"The lines of {self.path} end in carriage returns alone; write it with line feeds.")
        try:
            table = csv.read_csv(
                pa.BufferReader(head if head.endswith(b"\n") else head + b"\n"),
                read_options=csv.ReadOptions(use_threads=False, block_size=len(head) + 1),  # all of it is looked at
                parse_options=csv.ParseOptions(delimiter=self._delimiter),
            )
        except pa.ArrowInvalid as error:
            raise self._located(error, -1) from None
        kinds = _kinds(table.schema, self.path)
        numbers = {name: pa.float64() for name, kind in kinds.items() if kind in ("number", "float64", "float32")}
        yes_or_no = {field.name: field.type for field in table.schema if pa.types.is_boolean(field.type)}
        return dict.fromkeys(kinds, pa.string()) | numbers | yes_or_no

    def _index(self) -> None:
        """Count line ends block by block, on all threads, and note the place of every `_lines`-th line."""
        from summula.core.engine.engine import ThreadEngine

        size, begins = self.stamp[0], range(self._body, self.stamp[0], _COUNTED_BYTES)
        self._offsets, rows = [self._body], 0
        for begin, ends in zip(begins, ThreadEngine().map_ordered(self._line_ends, begins), strict=True):
            if (rows + ends) // self._lines >= len(self._offsets):
                places = np.flatnonzero(self._bytes(begin, _COUNTED_BYTES) == _NEWLINE)
                while (rows + ends) // self._lines >= len(self._offsets):
                    line = len(self._offsets) * self._lines - rows
                    self._offsets.append(begin + int(places[line - 1]) + 1)
            rows += ends
        rows += int(size > self._body and self._bytes(size - 1, 1)[0] != _NEWLINE)
        if self._offsets[-1] != size:
            self._offsets.append(size)
        self.starts = [*range(0, rows, self._lines), rows] if rows else [0]

    def _bytes(self, begin: int, count: int) -> Array:
        # Mapped piece by piece: a map of the whole would count as memory of this process once it is read.
        return np.memmap(self.path, np.uint8, "r", offset=begin, shape=(min(count, self.stamp[0] - begin),))

    def place(self, row: int) -> str:
        """Where a row, counted from 0, is to whoever looks at the file."""
        return f"line {row + 2} of {self.path} (the header is line 1)"

    def _line_ends(self, begin: int) -> int:
        return int(np.count_nonzero(self._bytes(begin, _COUNTED_BYTES) == _NEWLINE))

    def _read(self, start: int, stop: int, columns: Sequence[str]) -> Iterator[Columns]:
        first = bisect_right(self.starts, start) - 1
        last = bisect_right(self.starts, stop - 1) - 1
        with open(self.path, "rb") as file:
            for block in range(first, last + 1):
                file.seek(self._offsets[block])
                text = file.read(self._offsets[block + 1] - self._offsets[block])
                batch = self._parse(text, self.starts[block], columns)
                a, b = max(start, self.starts[block]), min(stop, self.starts[block + 1])
                if batch.num_rows != self.starts[block + 1] - self.starts[block]:
                    raise DataError(_not_one_row_a_line(self.path, text, self.starts[block] + 2))
                yield from self._columns([batch.slice(a - self.starts[block], b - a)], columns)

    def _parse(self, text: bytes, row: int, columns: Sequence[str]) -> Any:
        import pyarrow as pa
        from pyarrow import csv

        try:
            table = csv.read_csv(
                pa.BufferReader(text),
                read_options=csv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=[*self._types]),
                parse_options=csv.ParseOptions(delimiter=self._delimiter),
                convert_options=csv.ConvertOptions(
                    column_types=self._types, include_columns=list(columns), strings_can_be_null=True
                ),
            )
        except pa.ArrowInvalid as error:
            raise self._located(error, row) from None
        if not table.num_rows:
            return pa.RecordBatch.from_pylist([], table.schema)
        return table.combine_chunks().to_batches()[0]

    def _located(self, error: BaseException, row: int) -> DataError:
        """What pyarrow says of a row of a block, said of the line of the file; `row` is the first of the block."""
        said = first_words(error)
        found = re.search(r"Row #(\d+): (.*)", said)
        if found is None:
            return DataError(f"{self.path}, after line {row + 1}: {said}.")
        line, what = row + int(found.group(1)) + 1, found.group(2)
        if fields := re.match(r"Expected (\d+) columns, got (\d+)", what):
            wanted, got = fields.groups()
            return DataError(
                f"Line {line} of {self.path} has {got} field{'' if got == '1' else 's'} and the header {wanted}; "
                "mend or remove it."
            )
        column, value = re.search(r"CSV column #(\d+)", said), re.search(r"invalid value ('.*')", what)
        if column and value:
            name = list(self._types)[int(column.group(1))]
            return DataError(
                f"Column {name!r} of {self.path} holds {value.group(1)} at line {line}, and numbers in the first "
                "lines; make it one kind, or leave it out with columns=[...]."
            )
        return DataError(f"Line {line} of {self.path}: {what}.")


def _not_one_row_a_line(path: str, text: bytes, first: int) -> str:
    """Why a stretch of lines has another number of rows."""
    for line, content in enumerate(text.splitlines(), start=first):
        if not content.strip():
            return f"Line {line} of {path} is blank; remove it (scan wants one row a line)."
    return f"{path} has line breaks inside quotes after line {first - 1}; scan wants one row a line."
