"""Files as tables: what columns they have, how many rows, and their rows from any place to any other.

Parquet, CSV, Arrow IPC and .npy. Reading is serial and holds a batch at a time: threads each read their own rows.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import DataError

__all__ = ["CsvTable", "IpcTable", "NpyTable", "ParquetTable", "Table", "open_table"]

Array = NDArray[Any]
Columns = tuple[Array, ...]

_BATCH_ROWS = 16_384  # decoded at once; more would only need more memory
_BLOCK_LINES = 65_536  # lines of text parsed at once
_SNIFFED_BYTES = 1 << 20
_COUNTED_BYTES = 1 << 22


class Table(ABC):
    """A file with named columns.

    Attributes
    ----------
    path : str
    kinds : dict of str to str
        "float64", "float32", "number" (read as float64), "text" or what else a column holds, by name, in order.
    starts : list of int
        Rows where reading begins without decoding what comes before; then the number of rows.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.stamp = self._stamp()
        self.kinds: dict[str, str] = {}
        self.starts: list[int] = [0]

    @property
    def n_rows(self) -> int:
        """How many rows."""
        return self.starts[-1]

    def _stamp(self) -> tuple[int, int]:
        try:
            status = os.stat(self.path)
        except FileNotFoundError:
            raise DataError(f"The file {self.path} is gone; it has to stay in place until the fit is over.") from None
        return status.st_size, status.st_mtime_ns

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
            raise DataError(f"The file {self.path} cannot be read near row {seen}: {_one_line(error)}") from error
        if seen != stop:
            raise DataError(f"The file {self.path} ended at row {seen} of {stop}; it is cut short or was changed.")

    @abstractmethod
    def _read(self, start: int, stop: int, columns: Sequence[str]) -> Iterator[Columns]: ...


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


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
        raise DataError(f"The file {path} cannot be read; it is damaged or cut short: {_one_line(error)}") from error


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

    if kind not in ("float64", "float32", "number"):
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        return np.asarray(values.to_numpy(zero_copy_only=False))
    if kind == "number":
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if pa.types.is_decimal(values.type) or pa.types.is_null(values.type) or pa.types.is_float16(values.type):
            values = values.cast(pa.float64())
        elif values.null_count == 0 and not pa.types.is_boolean(values.type):
            return np.asarray(values.to_numpy(zero_copy_only=True))
        values = values.cast(pa.float64())
    elif values.type not in (pa.float64(), pa.float32()):
        values = values.cast(pa.float64())
    return np.asarray(values.to_numpy(zero_copy_only=values.null_count == 0))


def _columns(batch: Any, names: Sequence[str], kinds: dict[str, str]) -> Columns:
    return tuple(_column(batch.column(name), kinds[name]) for name in names)


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
        self.kinds = {field.name: _kind(field.type) for field in file.schema_arrow}
        self.metadata = file.metadata
        counts = (file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups))
        self.starts = [0, *accumulate(counts)]
        file.close()

    def _open(self, metadata: Any = None) -> Any:
        from pyarrow import parquet

        # Small buffered reads: the defaults hold whole row groups, several times over.
        return parquet.ParquetFile(self.path, metadata=metadata, pre_buffer=False, buffer_size=1 << 20)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "metadata": None}

    def _read(self, start: int, stop: int, columns: Sequence[str]) -> Iterator[Columns]:
        first = bisect_right(self.starts, start) - 1
        last = bisect_right(self.starts, stop - 1) - 1
        with self._open(self.metadata) as file:
            batches = file.iter_batches(
                _BATCH_ROWS, row_groups=range(first, last + 1), columns=list(columns), use_threads=False
            )
            for batch in _cut(batches, start - self.starts[first], stop - start):
                yield _columns(batch, columns, self.kinds)


class IpcTable(Table):
    """Arrow IPC (Feather) files, memory-mapped."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        with self._open() as reader:
            self.kinds = {field.name: _kind(field.type) for field in reader.schema}
            counts = (reader.get_batch(i).num_rows for i in range(reader.num_record_batches))
            self.starts = [0, *accumulate(counts)]

    def _open(self) -> Any:
        import pyarrow as pa

        return pa.ipc.open_file(pa.memory_map(self.path))

    def _read(self, start: int, stop: int, columns: Sequence[str]) -> Iterator[Columns]:
        first = bisect_right(self.starts, start) - 1
        with self._open() as reader:
            batches = (reader.get_batch(i) for i in range(first, reader.num_record_batches))
            for batch in _cut(batches, start - self.starts[first], stop - start):
                yield _columns(batch, columns, self.kinds)


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

    def _array(self) -> Array:
        array = np.load(self.path, mmap_mode="r", allow_pickle=False)
        if array.ndim not in (1, 2):
            raise DataError(f"The array in {self.path} has {array.ndim} dimensions; scan reads rows and columns.")
        return array[:, None] if array.ndim == 1 else array  # type: ignore[no-any-return]

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
        table = csv.read_csv(pa.BufferReader(head), parse_options=csv.ParseOptions(delimiter=self._delimiter))
        return {
            field.name: pa.float64() if _kind(field.type) in ("number", "float64", "float32") else pa.string()
            for field in table.schema
        }

    def _index(self) -> None:
        """Count lines, and note the place of every `_BLOCK_LINES`-th."""
        self._offsets, rows, position, ended = [self._body], 0, self._body, True
        with open(self.path, "rb") as file:
            file.seek(self._body)
            while block := file.read(_COUNTED_BYTES):
                if b"\n\n" in block or b"\n\r\n" in block:
                    line = self._line_of_blank(position, rows)
                    raise DataError(f"Line {line} of {self.path} is blank; remove it (one row a line).")
                found = block.count(b"\n")
                while (rows + found) // _BLOCK_LINES >= len(self._offsets):
                    self._offsets.append(position + _nth(block, len(self._offsets) * _BLOCK_LINES - rows))
                rows, position, ended = rows + found, position + len(block), block.endswith(b"\n")
        rows += not ended
        if self._offsets[-1] != position:
            self._offsets.append(position)
        self.starts = [*range(0, rows, _BLOCK_LINES), rows] if rows else [0]

    def _line_of_blank(self, position: int, rows: int) -> int:
        with open(self.path, "rb") as file:
            file.seek(position)
            for line, text in enumerate(file, start=rows + 2):
                if not text.strip():
                    return line
        return rows + 2

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
                    raise DataError(
                        f"{self.path} has line breaks inside quotes between lines {self.starts[block] + 2} and "
                        f"{self.starts[block + 1] + 1}; scan wants one row a line."
                    )
                yield _columns(batch.slice(a - self.starts[block], b - a), columns, self.kinds)

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
            raise DataError(f"{self.path}: {_located(error, row)}") from None
        return table.combine_chunks().to_batches()[0] if table.num_rows else table.to_batches()[0]


def _nth(block: bytes, n: int) -> int:
    """The place after the n-th line break of a block."""
    return int(np.flatnonzero(np.frombuffer(block, np.uint8) == 10)[n - 1]) + 1


def _located(error: BaseException, row: int) -> str:
    """pyarrow's sentence with the line of the file instead of the row of its block."""
    import re

    said = _one_line(error).removeprefix("CSV parse error: ")
    found = re.search(r"Row #(\d+): (.*)", said)
    if found:
        return f"line {row + int(found.group(1)) + 1}: {found.group(2)}"
    return f"after line {row + 1}: {said}"
