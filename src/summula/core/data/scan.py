"""Data in files, larger than memory: `summula.scan("trips/*.parquet")` can be used wherever an array can.

A scan knows its columns and its number of rows, and reads any range of rows. Its plan uses the same global row grid as
that of an array: a part begins and ends at multiples of the grid, so it may read beyond its row groups, or skip rows
of the first one. The sums are therefore bit-identical to those of the array.
"""

from __future__ import annotations

import copy
import functools
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk, Part
from summula.core.data.frames import no_such_column
from summula.core.data.labels import Labels, distinct, group_numbers, merged
from summula.core.data.layout.stored_rows import BatchRows, ColumnPieces
from summula.core.data.readers.arrow_columns import ArrowColumns
from summula.core.data.readers.opening import Reading, open_tables
from summula.core.data.readers.table import Columns, Table
from summula.core.data.sources import Source
from summula.core.errors import DataError

__all__ = ["Piece", "Scan", "ScanSource", "checked_weight", "scan"]

Array = NDArray[Any]

_NUMBERS = ("float64", "float32", "number")
_MANY = 2**28  # total number of values above which a copying kernel justifies importing Numba


def scan(
    path: Any,
    columns: Sequence[str] | None = None,
    *,
    encoding: str | None = None,
    header: bool | None = None,
    query: str | None = None,
) -> Scan:
    """Rows in files, to fit and predict without loading them.

    Parameters
    ----------
    path : str, path, list of these, polars LazyFrame, or an object with `__arrow_c_stream__`
        Files: Parquet, CSV (.csv, .tsv, .txt), JSON lines (.jsonl, .ndjson), Arrow IPC (.arrow, .feather), .npy, and
        spreadsheets (.xlsx, .ods; needs the extra `excel`). Text may be compressed (.gz, .zst, .bz2). One file, a list,
        a pattern such as "trips/*.parquet", or a folder; files are read in the order of their names. "-" is standard
        input. Databases (extra `sql`): "duckdb:shop.duckdb" or "postgresql://user@host/shop". Or a stream of Arrow
        batches (a pyarrow reader, a DuckDB relation, ...).
    columns : list of str, optional
        Columns to use, in this order; None for all.
    encoding : str, optional
        Encoding of text, such as "latin-1"; by default UTF-8, UTF-16 and Latin-1 are detected.
    header : bool, optional
        Whether the first line of text contains column names; detected by default. Without a header they are named
        x0, x1, ...
    query : str, optional
        SQL or table name, for databases.

    Returns
    -------
    Scan
        Its `remarks` describe unusual properties of the files.

    Notes
    -----
    Semicolons, tabs or bars between fields, decimal commas, and dates such as 31.12.2024 are detected in text.
    Files without random access by row (compressed text, other encodings, line breaks inside quotes, JSON,
    spreadsheets, databases, streams) are written to a temporary file first, which is removed with the scan.

    Examples
    --------
    >>> import os, tempfile, numpy as np, summula
    >>> from summula.linear_model import LinearRegression
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "rows.npy")
    ...     np.save(path, np.array([[0.0, 1.0], [1.0, 3.0], [2.0, 5.0]]))
    ...     LinearRegression().fit(summula.scan(path), "x1").coef_.round(6)
    array([2.])
    """
    return Scan(open_tables(path, Reading(encoding, header, query)), columns)


class Scan:
    """Columns of vertically stacked files."""

    def __init__(self, tables: Sequence[Table], columns: Sequence[str] | None = None) -> None:
        self.tables = list(tables)
        self.kinds = _common_kinds(self.tables) if columns is None else _chosen_kinds(self.tables, columns)
        self.offsets = [0, *accumulate(table.n_rows for table in self.tables)]

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.kinds)

    @property
    def categories(self) -> list[str]:
        """Columns with a categorical type in the first file."""
        return [name for name in self.kinds if name in self.tables[0].categories]

    @property
    def remarks(self) -> list[str]:
        """Remarks on unusual properties of the files, one sentence each."""
        return list(dict.fromkeys(remark for table in self.tables for remark in table.remarks))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.offsets[-1]

    def __len__(self) -> int:
        return self.n_rows

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.n_rows, len(self.kinds)

    def __repr__(self) -> str:
        first = self.tables[0]
        files = (first.shown_as or first.path) if len(self.tables) == 1 else f"{len(self.tables)} files"
        return f"Scan({files}: {self.n_rows} rows, {len(self.kinds)} columns)"

    def select(self, columns: Sequence[str]) -> Scan:
        """Return the same rows with some of the columns."""
        return Scan(self.tables, columns)

    def in_arrow(self, batch_rows: int) -> Self:
        """Return the same rows read in batches of a given size, with text as Arrow arrays instead of objects."""
        other = copy.copy(self)
        other.tables = [table.in_arrow(batch_rows) for table in self.tables]
        return other

    def stored(self) -> Self:
        """Return the same rows read as Arrow arrays of the types in the files."""
        other = copy.copy(self)
        other.tables = [table.stored() for table in self.tables]
        return other

    def read(self, start: int, stop: int, columns: Sequence[str]) -> Iterator[Columns]:
        """Yield rows `start` to `stop` of some columns, batch by batch."""
        first = bisect_right(self.offsets, start) - 1
        for table, offset in zip(self.tables[first:], self.offsets[first:], strict=False):
            a, b = max(start - offset, 0), min(stop - offset, table.n_rows)
            if a < b:
                yield from table.read(a, b, columns)
            if offset + table.n_rows >= stop:
                return

    def starts(self) -> list[int]:
        """Rows at which reading can begin without decoding earlier ones."""
        placed = zip(self.tables, self.offsets, strict=False)
        return [offset + row for table, offset in placed for row in table.starts[:-1]]

    def place(self, row: int) -> str:
        """Describe the position of a row, counted from 0 over all files, for error messages."""
        number = min(bisect_right(self.offsets, row), len(self.tables)) - 1
        return self.tables[number].place(row - self.offsets[number])

    def vocabulary(self, column: str) -> list[str]:
        """Return the distinct values of a text column, sorted and without missing ones, in one pass."""
        from summula.core.engine.engine import current_engine

        if column not in self.kinds:
            raise DataError(no_such_column(column, list(self.kinds)))
        source = ScanSource(self, (), texts=(column,))
        engine = current_engine()
        values: set[str] = engine.map_reduce(source.distinct, source.plan(engine.chunk_rows), set.union)
        return sorted(values)

    def distinct(self, column: str, estimator: str) -> Array:
        """Return the distinct labels of a column, sorted, in one pass over that column."""
        from summula.core.engine.engine import current_engine

        source, engine = ScanSource(self, (), texts=(column,)), current_engine()
        look = functools.partial(_labels_of, estimator)
        found: Array = engine.map_reduce(look, source.plan(engine.chunk_rows), merged)
        # Text files do not distinguish integers from floats; labels are integers.
        untyped = found.dtype.kind == "f" and any(table.text_numbers for table in self.tables)
        return found.astype(np.int64) if untyped and np.abs(found).max() < 2**53 else found


def _common_kinds(tables: Sequence[Table]) -> dict[str, str]:
    """Return the kinds of the columns, which must be the same in all files."""
    first = tables[0]
    for table in tables[1:]:
        if table.kinds.keys() != first.kinds.keys():
            odd = sorted(first.kinds.keys() ^ table.kinds.keys())
            has, lacks = (table, first) if odd[0] in table.kinds else (first, table)
            raise DataError(
                f"The files have different columns: {has.path} has {odd[0]!r}, {lacks.path} does not; "
                "scan files with the same columns, or choose with columns=[...]."
            )
    return _chosen_kinds(tables, first.kinds)


def _chosen_kinds(tables: Sequence[Table], columns: Iterable[str]) -> dict[str, str]:
    return {name: _kind_of(name, tables) for name in columns}


def _kind_of(name: str, tables: Sequence[Table]) -> str:
    """Return the kind of a column; if it is numeric in every file, the widest type."""
    first = tables[0]
    if name not in first.kinds:
        raise DataError(no_such_column(name, list(first.kinds)))
    kind = first.kinds[name]
    for table in tables[1:]:
        here = table.kinds.get(name)
        if here is None:
            raise DataError(f"{first.path} has a column {name!r}, {table.path} does not; scan files that all have it.")
        if here != kind and not (here in _NUMBERS and kind in _NUMBERS):
            raise DataError(
                f"Column {name!r} is {kind} in {first.path} and {here} in {table.path}; "
                "scan files in which a column is of one kind."
            )
        kind = kind if here == kind else "number"
    return kind


def _labels_of(estimator: str, part: Part) -> Array:
    """Return the distinct labels in a part."""
    source, row, found = part.source, part.start, None
    assert isinstance(source, ScanSource)
    for batch in source.table.read(part.start, part.stop, source.texts):
        here = distinct(batch[0], row, estimator)
        found, row = here if found is None else merged(found, here), row + len(batch[0])
    assert found is not None, "there is at least one row"
    return found


class ScanSource(Source):
    """Columns of a scan as features, targets, weight and so on; with `labels` the target is returned as codes."""

    is_sparse = False
    streams = True

    def __init__(
        self,
        table: Scan,
        features: Sequence[str],
        targets: Sequence[str] = (),
        weight: str | None = None,
        *,
        texts: Sequence[str] = (),
        one_target: bool = True,
        labels: Labels | None = None,
        factors: Any = None,
        offset: str | None = None,
    ) -> None:
        self.labels, self.factors = labels, factors
        self.table, self.features, self.targets, self.texts = table, list(features), list(targets), list(texts)
        self.weight, self.offset = weight, offset
        self.groups: str | None = None
        self.n_rows, self.n_features = table.n_rows, len(features)
        self.n_targets = 0 if labels is not None else len(targets)
        self.one_target, self.weighted = one_target, weight is not None
        self.labelled, self.shifted = labels is not None and bool(targets), offset is not None
        self.names, self.target_names = tuple(features), tuple(targets) or None
        single = bool(features) and all(table.kinds[name] == "float32" for name in features)
        self.dtype = np.dtype(np.float32 if single else np.float64)

    def with_groups(self, column: str) -> ScanSource:
        """Return the same rows with the labels in a column as group numbers."""
        other = copy.copy(self)
        other.groups, other.grouped = column, True
        return other

    @property
    def width(self) -> float:
        """Stored values per row."""
        return float(max(self.n_features, 1))

    @property
    def plain(self) -> bool:
        """Whether the files store the features as in memory."""
        return not self.texts and all(table.plain(self.features) for table in self.table.tables)

    def starts(self) -> list[int]:
        """Rows at which a row group begins."""
        return self.table.starts()

    def chunks(self, start: int, stop: int, chunk_rows: int) -> Iterator[Chunk]:
        """Yield the rows from `start` up to `stop`, in chunks that end at multiples of `chunk_rows`."""
        row_data = [name for name in (self.weight, self.offset, self.groups) if name is not None]
        wanted = [*self.features, *self.targets, *row_data, *self.texts]
        pieces: list[Piece] = []
        at, end = start, min(_next_line(start, chunk_rows), stop)
        filled = start
        for batch in self.table.read(start, stop, wanted):
            begin, length = 0, len(batch[0])
            addresses = self._addresses(batch)
            while begin < length:
                take = min(length - begin, end - filled)
                pieces.append(Piece(batch, addresses, begin, begin + take))
                begin, filled = begin + take, filled + take
                if filled == end:
                    yield self._chunk(pieces, at, end)
                    pieces, at, end = [], end, min(end + chunk_rows, stop)

    def _addresses(self, batch: Columns) -> Array | None:
        """Return the addresses of the features of a batch, if they are doubles and a copying kernel is worthwhile."""
        worth = "numba" in sys.modules or self.n_rows * self.n_features >= _MANY
        return batch.addresses(self.n_features) if worth and isinstance(batch, ArrowColumns) else None

    def _chunk(self, pieces: list[Piece], start: int, stop: int) -> Chunk:
        d, first = self.n_features, pieces[0]
        if len(pieces) == 1 and first.addresses is not None:
            rows: Any = BatchRows(first.batch, first.addresses, first.begin, first.end)
        else:
            parts = tuple(self._coded(piece.columns(d), start) for piece in pieces)
            rows = parts[0] if len(parts) == 1 else ColumnPieces(parts)
        return replace(Chunk(rows, None, None, start, stop, self.dtype), **self._beside(pieces, start))

    def _beside(self, pieces: list[Piece], start: int) -> dict[str, Any]:
        """Return the columns in addition to the features, in the requested order."""
        row_data: dict[str, Any] = {}
        place = self.n_features + len(self.targets)
        if self.labels is not None and self.targets:
            row_data["codes"] = self.labels.codes(_values(pieces, self.n_features), start)
        elif self.targets:
            columns = [_joined(pieces, j) for j in range(self.n_features, place)]
            row_data["y"] = columns[0][:, None] if len(columns) == 1 else np.column_stack(columns)
        if self.weight is not None:
            row_data["weight"], place = checked_weight(_joined(pieces, place), start), place + 1
        if self.offset is not None:
            row_data["offset"], place = _joined(pieces, place), place + 1
        if self.groups is not None:
            row_data["groups"] = group_numbers(_values(pieces, place), start)
        return row_data

    def _coded(self, columns: tuple[Array, ...], start: int) -> tuple[Array, ...]:
        """Return features with text columns as codes of factors."""
        if self.factors is None:
            return columns
        named = zip(self.features, columns, strict=True)
        return tuple(self.factors.codes(name, c, start) if c.dtype.kind == "O" else c for name, c in named)

    def chunk(self, start: int, stop: int) -> Chunk:
        """Return the rows from `start` up to `stop` as one chunk."""
        return next(self.chunks(start, stop, stop))

    def only(self, start: int, stop: int) -> ScanSource:
        """Return self: the description of files is small."""
        return self

    def check_unchanged(self, estimator: str) -> None:
        """Raise if files are not those that the estimator was fitted to."""
        for table in self.table.tables:
            table.check_unchanged(estimator)

    def distinct(self, part: Part) -> set[str]:
        """Return the distinct values of a text column in a part."""
        values: set[str] = set()
        for batch in self.table.read(part.start, part.stop, self.texts):
            values.update(value for value in batch[0] if isinstance(value, str))
        return values


def _next_line(row: int, step: int) -> int:
    return (row // step + 1) * step


class Piece(NamedTuple):
    """Rows of a batch."""

    batch: Columns
    addresses: Array | None
    begin: int
    end: int

    def column(self, j: int) -> Array:
        """Return these rows of one column."""
        return self.batch[j][self.begin : self.end]

    def columns(self, count: int) -> tuple[Array, ...]:
        """Return these rows of the first columns."""
        return tuple(column[self.begin : self.end] for column in self.batch[:count])


def _values(pieces: list[Piece], j: int) -> Array:
    columns = [piece.column(j) for piece in pieces]
    return columns[0] if len(columns) == 1 else np.concatenate(columns)


def _joined(pieces: list[Piece], j: int) -> Array:
    return np.asarray(_values(pieces, j), dtype=np.float64)


def checked_weight(weight: Array, start: int) -> Array:
    """Validate weights read from a file."""
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if len(bad):
        at = int(bad[0])
        raise DataError(f"The weight is {weight[at]:g} at row {start + at}; weights must be finite and not negative.")
    return weight
