"""Plain text tables with a header line and one row per line, read block by block, starting at any line."""

from __future__ import annotations

import re
from bisect import bisect_right
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.printable import shortened
from summula.core.data.readers.dialects import ColumnTypes, Dialect, column_types, convert_options, parse_options
from summula.core.data.readers.table import Columns, Table, first_words, kind_of
from summula.core.data.readers.text_streams import TextFile
from summula.core.errors import DataError

__all__ = ["CsvTable"]

Array = NDArray[Any]

_BLOCK_LINES, _BLOCK_BYTES = 65_536, 1 << 23  # approximate maximum number of lines, and of bytes, parsed at once
_COUNTED_BYTES = 1 << 22
_NEWLINE = 10


class CsvTable(Table):
    """Text in UTF-8 with one row per line (no line breaks inside quotes), read in place.

    Opening it counts the lines without parsing, and records the offsets of blocks of lines, so that
    threads can start anywhere.
    """

    text_numbers = True

    def __init__(self, file: TextFile, dialect: Dialect) -> None:
        super().__init__(file.path)
        self.dialect = dialect
        self._types = self._sniff(file)
        self.kinds = {name: kind_of(dtype) for name, dtype in self._types.read.items()}
        self._offsets: list[int] = []
        self._index()

    def _sniff(self, file: TextFile) -> ColumnTypes:
        """Detect column names, and types from the first megabyte; numbers are read as float64."""
        import pyarrow as pa

        head, mark = file.head, self.stamp[0] - len(file.head) if file.whole else len(BOM_UTF8) * _has_mark(self.path)
        if not file.whole:
            head = head[: head.rfind(b"\n") + 1] or head
        self._body = mark + (head.find(b"\n") + 1 or len(head)) * self.dialect.header
        # A power of two, so that blocks start on the row grid.
        lines = min(_BLOCK_LINES, max(1, _BLOCK_BYTES * head.count(b"\n") // len(head)))
        self._lines = 1 << (lines.bit_length() - 1)
        try:
            return column_types(head, self.dialect, self.path)
        except pa.ArrowInvalid as error:
            raise self._located(error, -1) from None

    def _index(self) -> None:
        """Count line ends block by block, on all threads, and record the offset of every `_lines`-th line."""
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
        # Mapped piecewise: pages of a single map would count as memory of this process.
        return np.memmap(self.path, np.uint8, "r", offset=begin, shape=(min(count, self.stamp[0] - begin),))

    def place(self, row: int) -> str:
        """Describe the position of a row, counted from 0, in the file, for error messages."""
        if not self.dialect.header:
            return f"line {row + 1} of {self._shown}"
        return f"line {row + 2} of {self._shown} (the header is line 1)"

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
                    raise DataError(_uneven_lines_message(self._shown, text, self.starts[block] + 2))
                yield from self._columns([batch.slice(a - self.starts[block], b - a)], columns)

    def _parse(self, text: bytes, row: int, columns: Sequence[str]) -> Any:
        import pyarrow as pa
        from pyarrow import csv

        try:
            types = self._types.spelled if self.as_spelled else self._types.read
            table = csv.read_csv(
                pa.BufferReader(text),
                read_options=csv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=[*types]),
                parse_options=parse_options(self.dialect),
                convert_options=convert_options(self.dialect, types, columns),
            )
        except pa.ArrowInvalid as error:
            raise self._located(error, row) from None
        if not table.num_rows:
            return pa.RecordBatch.from_pylist([], table.schema)
        return table.combine_chunks().to_batches()[0]

    def _located(self, error: BaseException, row: int) -> DataError:
        """Convert pyarrow's error about a row of a block to one about a line of the file; the block starts at `row`."""
        message = first_words(error)
        if "UTF8" in message:
            return DataError(
                f"{self._shown} contains bytes that are not UTF-8 after line {row + 1}; specify the encoding "
                "with --encoding (encoding= in Python), such as latin-1."
            )
        found = re.search(r"Row #(\d+): (.*)", message)
        if found is None:
            return DataError(f"{self._shown}, after line {row + 1}: {message}.")
        line, what = row + int(found.group(1)) + self.dialect.header, found.group(2)
        if fields := re.match(r"Expected (\d+) columns, got (\d+)", what):
            wanted, got = fields.groups()
            return DataError(
                f"Line {line} of {self._shown} has {got} field{'' if got == '1' else 's'} and the header {wanted}; "
                "fix or remove it."
            )
        column, value = re.search(r"CSV column #(\d+)", message), re.search(r"invalid value ('.*')", what)
        if column and value:
            name = list(self._types.read)[int(column.group(1))]
            return DataError(
                f"Column {name!r} of {self._shown} contains {shortened(value.group(1))} at line {line}, and numbers in "
                "the first lines; make it one kind, or leave it out with columns=[...]."
            )
        return DataError(f"Line {line} of {self._shown}: {what}.")


def _has_mark(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(3) == BOM_UTF8


def _uneven_lines_message(path: str, text: bytes, first: int) -> str:
    """Return the reason why a block of lines has a different number of rows."""
    for line, content in enumerate(text.splitlines(), start=first):
        if not content.strip():
            return f"Line {line} of {path} is blank; remove it (scan needs one row per line)."
    return f"{path} has line breaks inside quotes after line {first - 1}; scan needs one row per line."
