"""Data in files, larger than memory: `summula.scan("trips/*.parquet")` stands wherever an array could.

A scan knows its columns and how many rows there are, and reads any stretch of them. Its plan lies on the same global
row grid as an array's: a part begins and ends at multiples of the grid, and reads on into the next row group, or over
the first rows of its own, to get there. So the sums, and their bits, are those of the array.
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
_MANY = 1_000_000_000  # numbers in all from which on a kernel that copies them is worth loading Numba


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
        The columns to use, in this order; all when None.
    encoding : str, optional
        The encoding of text, such as "latin-1"; UTF-8, UTF-16 and Latin-1 are detected when None.
    header : bool, optional
        Whether the first line of text holds the names of columns; detected when None. Without a header they are called
        x0, x1, ...
    query : str, optional
        What to read of a database: SQL, or the name of a table.

    Returns
    -------
    Scan
        Its `remarks` say what was unusual about the files.

    Notes
    -----
    Text may have semicolons, tabs or bars between fields, decimal commas, dates such as 31.12.2024: that is detected.
    Files that cannot be read from any row on (compressed text, other encodings, line breaks inside quotes, JSON,
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
    """Columns of some files, one below the other."""

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
        """The columns that the first file calls categorical."""
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
        """The same rows with some of the columns."""
        return Scan(self.tables, columns)

    def in_arrow(self, batch_rows: int) -> Self:
        """The same rows read in batches of a given size, text as Arrow arrays instead of objects."""
        other = copy.copy(self)
        other.tables = [table.in_arrow(batch_rows) for table in self.tables]
        return other

    def stored(self) -> Self:
        """The same rows read as Arrow arrays of the types that the files have."""
        other = copy.copy(self)
        other.tables = [table.stored() for table in self.tables]
        return other

    def read(self, start: int, stop: int, columns: Sequence[str]) -> Iterator[Columns]:
        """Rows `start` to `stop` of some columns, a batch at a time."""
        first = bisect_right(self.offsets, start) - 1
        for table, offset in zip(self.tables[first:], self.offsets[first:], strict=False):
            a, b = max(start - offset, 0), min(stop - offset, table.n_rows)
            if a < b:
                yield from table.read(a, b, columns)
            if offset + table.n_rows >= stop:
                return

    def starts(self) -> list[int]:
        """Rows where reading begins without decoding what comes before."""
        placed = zip(self.tables, self.offsets, strict=False)
        return [offset + row for table, offset in placed for row in table.starts[:-1]]

    def place(self, row: int) -> str:
        """Describe the position of a row, counted from 0 over all files, for error messages."""
        number = min(bisect_right(self.offsets, row), len(self.tables)) - 1
        return self.tables[number].place(row - self.offsets[number])

    def vocabulary(self, column: str) -> list[str]:
        """The different values of a text column, sorted; missing values left out. One pass."""
        from summula.core.engine.engine import current_engine

        if column not in self.kinds:
            raise DataError(no_such_column(column, list(self.kinds)))
        source = ScanSource(self, (), texts=(column,))
        engine = current_engine()
        values: set[str] = engine.map_reduce(source.distinct, source.plan(engine.chunk_rows), set.union)
        return sorted(values)

    def distinct(self, column: str, estimator: str) -> Array:
        """The different labels of a column, sorted. One pass over that column."""
        from summula.core.engine.engine import current_engine

        source, engine = ScanSource(self, (), texts=(column,)), current_engine()
        look = functools.partial(_labels_of, estimator)
        found: Array = engine.map_reduce(look, source.plan(engine.chunk_rows), merged)
        # Text files do not say whether a number is whole; a label is.
        untyped = found.dtype.kind == "f" and any(table.text_numbers for table in self.tables)
        return found.astype(np.int64) if untyped and np.abs(found).max() < 2**53 else found


def _common_kinds(tables: Sequence[Table]) -> dict[str, str]:
    """The kinds of the columns, which have to be the same in all files."""
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
    """The different labels in a part."""
    source, row, found = part.source, part.start, None
    assert isinstance(source, ScanSource)
    for batch in source.table.read(part.start, part.stop, source.texts):
        here = distinct(batch[0], row, estimator)
        found, row = here if found is None else merged(found, here), row + len(batch[0])
    assert found is not None, "there is at least one row"
    return found


class ScanSource(Source):
    """Some columns of a scan as features, targets, weight and so on; with labels the one target comes as codes."""

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
        """The same rows with the labels in a column as numbers of groups."""
        other = copy.copy(self)
        other.groups, other.grouped = column, True
        return other

    @property
    def width(self) -> float:
        """Stored values per row."""
        return float(max(self.n_features, 1))

    @property
    def plain(self) -> bool:
        """Whether the files hold the features as they are in memory."""
        return not self.texts and all(table.plain(self.features) for table in self.table.tables)

    def starts(self) -> list[int]:
        """Rows where a row group begins."""
        return self.table.starts()

    def chunks(self, start: int, stop: int, chunk_rows: int) -> Iterator[Chunk]:
        """The rows from `start` up to `stop`, in chunks that end at multiples of `chunk_rows`."""
        beside = [name for name in (self.weight, self.offset, self.groups) if name is not None]
        wanted = [*self.features, *self.targets, *beside, *self.texts]
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
        """Addresses of the features of a batch, if they are doubles and a copying kernel is worthwhile."""
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
        """The columns that rows have beside their features, in the order requested."""
        beside: dict[str, Any] = {}
        place = self.n_features + len(self.targets)
        if self.labels is not None and self.targets:
            beside["codes"] = self.labels.codes(_values(pieces, self.n_features), start)
        elif self.targets:
            columns = [_joined(pieces, j) for j in range(self.n_features, place)]
            beside["y"] = columns[0][:, None] if len(columns) == 1 else np.column_stack(columns)
        if self.weight is not None:
            beside["weight"], place = checked_weight(_joined(pieces, place), start), place + 1
        if self.offset is not None:
            beside["offset"], place = _joined(pieces, place), place + 1
        if self.groups is not None:
            beside["groups"] = group_numbers(_values(pieces, place), start)
        return beside

    def _coded(self, columns: tuple[Array, ...], start: int) -> tuple[Array, ...]:
        """Features with text as codes of factors."""
        if self.factors is None:
            return columns
        named = zip(self.features, columns, strict=True)
        return tuple(self.factors.codes(name, c, start) if c.dtype.kind == "O" else c for name, c in named)

    def chunk(self, start: int, stop: int) -> Chunk:
        """The rows from `start` up to `stop` as one chunk."""
        return next(self.chunks(start, stop, stop))

    def only(self, start: int, stop: int) -> ScanSource:
        """A description of files is small already."""
        return self

    def check_unchanged(self, estimator: str) -> None:
        """Raise if files are not those that the estimator was fitted to."""
        for table in self.table.tables:
            table.check_unchanged(estimator)

    def distinct(self, part: Part) -> set[str]:
        """The different values of a text column in a part."""
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
        """These rows of one column."""
        return self.batch[j][self.begin : self.end]

    def columns(self, count: int) -> tuple[Array, ...]:
        """These rows of the first columns."""
        return tuple(column[self.begin : self.end] for column in self.batch[:count])


def _values(pieces: list[Piece], j: int) -> Array:
    columns = [piece.column(j) for piece in pieces]
    return columns[0] if len(columns) == 1 else np.concatenate(columns)


def _joined(pieces: list[Piece], j: int) -> Array:
    return np.asarray(_values(pieces, j), dtype=np.float64)


def checked_weight(weight: Array, start: int) -> Array:
    """Weights of a file are checked as they come."""
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if len(bad):
        at = int(bad[0])
        raise DataError(f"The weight is {weight[at]:g} at row {start + at}; weights must be finite and not negative.")
    return weight
