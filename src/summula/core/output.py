"""Results written to files batch by batch: whole or not at all.

Rows go to a temporary file in the folder of the target, which takes the target's name when the last one is written;
until then, and after any error, what was there stays as it was.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import DataError

__all__ = ["write_batches"]


def write_batches(batches: Iterable[NDArray[Any]], names: Sequence[str], path: str | os.PathLike[str]) -> int:
    """Write blocks of rows, one column a name, as Parquet or CSV by the ending of the path; returns how many rows."""
    import pyarrow as pa

    target = os.fspath(path)
    writer_of = _WRITERS.get(os.path.splitext(target)[1].lower())
    if writer_of is None:
        raise DataError(f"The ending of {target} says neither .parquet nor .csv.")
    folder = os.path.dirname(os.path.abspath(target))
    if not os.path.isdir(folder):
        raise DataError(f"There is no folder {folder} to write {os.path.basename(target)} to.")
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=".summula-", suffix=os.path.splitext(target)[1])
    os.close(handle)
    rows, writer = 0, None
    try:
        for batch in batches:
            block = np.asarray(batch).reshape(len(batch), -1)
            table = pa.table({name: np.ascontiguousarray(block[:, j]) for j, name in enumerate(names)})
            writer = writer_of(temporary, table.schema) if writer is None else writer
            writer.write_table(table)
            rows += len(block)
        if writer is None:
            raise DataError("There is nothing to write: no rows came.")
        writer.close()
        _publish(temporary, target)
    except BaseException:
        if writer is not None:
            with suppress(OSError):  # on a full disk closing fails as well
                writer.close()
        os.unlink(temporary)
        raise
    return rows


def _publish(temporary: str, target: str) -> None:
    """Give the finished file its name, on disk for good, with the rights new files get."""
    with open(temporary, "rb") as file:
        os.fsync(file.fileno())
    mask = os.umask(0)
    os.umask(mask)
    os.chmod(temporary, 0o666 & ~mask)
    os.replace(temporary, target)


def _parquet(path: str, schema: Any) -> Any:
    from pyarrow import parquet

    return parquet.ParquetWriter(path, schema)


def _csv(path: str, schema: Any) -> Any:
    from pyarrow import csv

    return csv.CSVWriter(path, schema)


_WRITERS = {".parquet": _parquet, ".pq": _parquet, ".csv": _csv}
