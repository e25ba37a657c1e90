"""Plain text tables, read block by block from any line on: a header line, then one row per line."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.readers.table import Columns, Table, column_kinds, first_words, kind_of
from summula.core.errors import DataError

__all__ = ["CsvTable"]

Array = NDArray[Any]

_BLOCK_LINES, _BLOCK_BYTES = 65_536, 1 << 23  # most lines of text parsed at once, and bytes, about
_SNIFFED_BYTES = 1 << 20
_COUNTED_BYTES = 1 << 22
_NEWLINE = 10


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
        self.kinds = {name: kind_of(dtype) for name, dtype in self._types.items()}
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
        kinds = column_kinds(table.schema, self.path)
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
