"""Binary files, which store their schema and number of rows: Parquet, Arrow IPC and .npy."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.readers.table import BATCH_ROWS, Columns, Table, category_columns, column_kinds
from summula.core.errors import DataError

__all__ = ["IpcTable", "NpyTable", "ParquetTable"]

Array = NDArray[Any]

_WIDTHS = {"float64": 8, "float32": 4}  # bytes per value
_PLAIN = 0.9  # columns smaller than this fraction of their decoded size are encoded


def _cut(batches: Iterator[Any], skip: int, rows: int) -> Iterator[Any]:
    """Yield record batches without the first `skip` rows, `rows` in total."""
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
    """A Parquet file, read one row group at a time."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        file = self._open()
        self.kinds, self.categories = column_kinds(file.schema_arrow, path), category_columns(file.schema_arrow)
        self.metadata = file.metadata
        counts = (file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups))
        self.starts = [0, *accumulate(counts)]
        file.close()

    def _open(self, metadata: Any = None) -> Any:
        from pyarrow import parquet

        coded = [name for name, kind in self.kinds.items() if kind == "text"] if self.texts_in_arrow else None
        # Small buffered reads, one buffer per column: with the defaults whole row groups are in memory several times.
        return parquet.ParquetFile(
            self.path, metadata=metadata, pre_buffer=False, buffer_size=1 << 16, read_dictionary=coded
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "metadata": None}

    def plain(self, columns: Sequence[str]) -> bool:
        """Return whether the first row group is uncompressed and almost unencoded."""
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
            # Threads of a fit read different row groups; a single row group is decoded by columns in parallel.
            alone, groups = len(self.starts) == 2, range(first, last + 1)
            rows = self.batch_rows or BATCH_ROWS
            batches = file.iter_batches(rows, row_groups=groups, columns=list(columns), use_threads=alone)
            yield from self._columns(_cut(batches, start - self.starts[first], stop - start), columns)


class IpcTable(Table):
    """Arrow IPC (Feather) files, memory-mapped."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        with self._open() as reader:
            self.kinds, self.categories = column_kinds(reader.schema, path), category_columns(reader.schema)
            counts = (reader.get_batch(i).num_rows for i in range(reader.num_record_batches))
            self.starts = [0, *accumulate(counts)]

    def _open(self) -> Any:
        import pyarrow as pa

        return pa.ipc.open_file(pa.memory_map(self.path))

    def _read(self, start: int, stop: int, columns: Sequence[str]) -> Iterator[Columns]:
        first = bisect_right(self.starts, start) - 1
        with self._open() as reader:
            batches = (reader.get_batch(i) for i in range(first, reader.num_record_batches))
            cut = _cut(batches, start - self.starts[first], stop - start)
            yield from self._columns((_validated(batch, columns) for batch in cut), columns)


def _validated(batch: Any, columns: Sequence[str]) -> Any:
    """Return some columns of a batch; raise for offsets or codes out of range, which Arrow trusts as it reads."""
    chosen = batch.select(list(columns))
    chosen.validate(full=True)
    return chosen


class NpyTable(Table):
    """A 1-D or 2-D array in a .npy file, memory-mapped; its columns are named x0, x1, ..."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        array = self._array()
        kind = {"float64": "float64", "float32": "float32"}.get(str(array.dtype.newbyteorder("=")), "number")
        if array.dtype.kind not in "fiub":
            kind = "text" if array.dtype.kind in "USO" else str(array.dtype)
        self.kinds = {f"x{j}": kind for j in range(array.shape[1])}
        # Access is random; these are starting points for threads.
        self.starts = [*range(0, len(array), BATCH_ROWS * 32), len(array)] if len(array) else [0]

    def plain(self, columns: Sequence[str]) -> bool:
        """Return whether the values are stored as in memory."""
        return self._array().dtype.isnative and all(self.kinds[name] in _WIDTHS for name in columns)

    def _array(self) -> Array:
        array: Array = np.lib.format.open_memmap(self.path, mode="r")
        if array.ndim not in (1, 2):
            raise DataError(f"The array in {self.path} has {array.ndim} dimensions; scan reads rows and columns.")
        return array[:, None] if array.ndim == 1 else array

    def _read(self, start: int, stop: int, columns: Sequence[str]) -> Iterator[Columns]:
        array = self._array()
        chosen = [int(name[1:]) for name in columns]
        for a in range(start, stop, BATCH_ROWS):
            b = min(a + BATCH_ROWS, stop)
            yield tuple(array[a:b, j] for j in chosen)
