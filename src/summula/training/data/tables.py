"""Tables to train on: files, scans and frames behind one interface."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.data.frames import is_frame, opened
from summula.core.data.readers.opening import Reading, shown_name
from summula.core.data.scan import Scan, scan
from summula.core.errors import DataError, ParameterError
from summula.preprocessing import table_encoder_blocks
from summula.preprocessing.table_encoder_blocks import Blocks, Columns, Piece, blocks_in_order, table_blocks

__all__ = ["TableSource", "blocks_of_rows", "free_memory", "open_data", "open_table", "read_table"]

Array = NDArray[Any]

_AS_FOUND = Reading()


class TableSource(NamedTuple):
    """A table to train on: a scan of files, or a pyarrow Table in memory."""

    table: Any
    name: str
    columns: list[str]
    n_rows: int

    @property
    def is_scan(self) -> bool:
        """Whether the rows are in files."""
        return isinstance(self.table, Scan)

    def select(self, names: list[str]) -> TableSource:
        """Return the same rows with some of the columns."""
        return TableSource(self.table.select(names), self.name, names, self.n_rows)

    def in_memory(self, target: str) -> TableSource:
        """Return the rows as a pyarrow Table; a boolean target remains boolean."""
        if not self.is_scan:
            return self
        table = read_table(self.table)
        if _is_boolean(self.table, target):
            table = table.set_column(table.column_names.index(target), target, table[target].cast("bool"))
        return self._replace(table=table)

    def column(self, name: str) -> Any:
        """Return a column as a pyarrow array; booleans in files remain booleans."""
        if not self.is_scan:
            return self.table[name]
        column = read_table(self.table, [name])[name]
        return column.cast("bool") if _is_boolean(self.table, name) else column


def open_data(data: Any, remark: Callable[[str], None], reading: Reading = _AS_FOUND) -> TableSource:
    """Open paths, a scan or a frame as a table."""
    paths = isinstance(data, list | tuple) and all(isinstance(one, str | os.PathLike) for one in data)
    if isinstance(data, str | os.PathLike) or (paths and data) or hasattr(data, "sink_ipc"):
        found = open_table(data, remark, reading)
        return TableSource(found, shown_name(data), found.columns, found.n_rows)
    if isinstance(data, Scan):
        return TableSource(data, "the scan", data.columns, data.n_rows)
    if is_frame(data):
        found = _arrow_table(data)
        return TableSource(found, "the table", found.column_names, found.num_rows)
    raise ParameterError(
        f"data is a {type(data).__name__}; give a frame (pandas, polars, pyarrow), a path, or summula.scan(...)."
    )


def _arrow_table(frame: Any) -> Any:
    import pyarrow as pa

    try:
        table = opened(frame).to_arrow()
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise DataError(f"The frame cannot be read ({error}); give each column values of one type.") from None
    return table.drop_columns([name for name in table.column_names if name.startswith("__index_level_")])


def free_memory() -> float:
    """Return the available memory in bytes; infinite if the system does not report it."""
    with suppress(OSError, ValueError, StopIteration), open("/proc/meminfo", encoding="ascii") as file:
        # Linux: memory used by caches is available as well.
        return 1024.0 * int(next(line for line in file if line.startswith("MemAvailable")).split()[1])
    try:
        return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return float("inf")


def open_table(data: Any, remark: Callable[[str], None], reading: Reading = _AS_FOUND) -> Scan:
    """Open files, a pattern, a folder, standard input or a database; remark on unusual properties."""
    table = scan(data, **reading._asdict())
    for text in table.remarks:
        remark(text)
    return table


def read_table(table: Scan, names: list[str] | None = None, last: int | None = None) -> Any:
    """Return all rows, or those up to the last selected one, as a pyarrow Table."""
    import pyarrow as pa

    names = table.columns if names is None else names
    if not table.n_rows:
        raise DataError("The table has no rows; pass a table with rows.")
    blocks = table_blocks(table, names)
    blocks = blocks if last is None else blocks._replace(n_rows=min(last, table.n_rows), walk=None)
    pieces = list(blocks_in_order(blocks, lambda columns, start: columns))
    return pa.table({name: pa.chunked_array([_arrow(piece[name]) for piece in pieces]) for name in names})


def _is_boolean(table: Scan, name: str) -> bool:
    """Return whether a column of files is boolean: numeric as a feature, but classes as a target."""
    import pyarrow as pa

    if table.kinds[name] != "number" or not table.n_rows:
        return False
    first = next(one for one in table.tables if one.n_rows)
    stored = next(iter(first.stored().read(0, 1, [name])))[0]
    return bool(pa.types.is_boolean(getattr(stored, "type", None)))


def _arrow(values: Any) -> Any:
    import pyarrow as pa

    return pa.array(values, from_pandas=True) if isinstance(values, np.ndarray) else values


def blocks_of_rows(table: Any, names: list[str], chosen: NDArray[np.bool_]) -> Blocks:
    """Return some rows of a frame or of files as blocks on the row grid."""
    if isinstance(table, Scan) or len(chosen) > table_encoder_blocks.BLOCK_ROWS:
        return rows_of(table_blocks(table, names), chosen)
    return table_blocks(table.select(names).filter(_mask(chosen)))  # (one call for all columns of a wide table)


def rows_of(blocks: Blocks, chosen: NDArray[np.bool_]) -> Blocks:
    """Return the table restricted to some of its rows; blocks keep their positions on the grid."""

    def some(columns: Callable[[], Columns], start: int, stop: int) -> Columns:
        kept = chosen[start:stop]
        mask = _mask(kept)
        return {
            name: values[kept] if isinstance(values, np.ndarray) else values.filter(mask)
            for name, values in columns().items()
        }

    def walk() -> Iterator[Piece]:
        for piece in blocks.pieces():
            yield piece._replace(columns=partial(some, piece.columns, piece.start, piece.stop))

    return blocks._replace(read=lambda a, b: some(partial(blocks.read, a, b), a, b), walk=walk)


def _mask(kept: NDArray[np.bool_]) -> Any:
    import pyarrow as pa

    return pa.array(kept)
