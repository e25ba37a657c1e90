"""Streams that can be read only once are first written to a temporary Arrow file, which is removed with the scan.

The file is in the system's temporary folder. Free space is checked before every batch, so that a full disk is
reported in advance; the file is removed in any case.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from summula.core.data.numbers import is_wide_integer
from summula.core.data.readers.binary_tables import IpcTable
from summula.core.data.readers.table import Table, decoded, decoded_type, first_words
from summula.core.errors import DataError

__all__ = ["in_temporary_folder", "spooled"]

T = TypeVar("T", bound=Table)

_RESERVE = 64 << 20  # bytes left free for other processes


def in_temporary_folder(make: Callable[[str], T]) -> T:
    """Return the table that `make` builds in a new temporary folder, which is deleted with it, or after an error."""
    folder = tempfile.mkdtemp(prefix="summula-")
    try:
        table = make(folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    # Also at the end of the process: weakref.finalize runs then.
    weakref.finalize(table, shutil.rmtree, folder, ignore_errors=True)
    return table


def spooled(stream: Any) -> IpcTable:
    """Write the rows of an Arrow stream to a temporary file."""
    import pyarrow as pa

    try:
        reader = (
            stream if isinstance(stream, pa.RecordBatchReader) else pa.RecordBatchReader.from_stream(_narrow(stream))
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataError(
            f"The frame has a column of a type that Arrow cannot hold ({error}); cast or drop it."
        ) from None

    def write(folder: str) -> IpcTable:
        path = os.path.join(folder, "rows.arrow")
        try:
            _write(reader, path)
        except OSError as error:
            raise _no_room(folder) from error
        return IpcTable(path)

    return in_temporary_folder(write)


def _narrow(stream: Any) -> Any:
    """A frame whose integers of 128 bits, which Arrow has not, are float64, as in frames that are not streamed."""
    if not type(stream).__module__.startswith("polars") or not hasattr(stream, "schema"):
        return stream
    wide = [name for name, dtype in stream.schema.items() if is_wide_integer(dtype)]
    if not wide:
        return stream
    import narwhals as nw

    return nw.from_native(stream, eager_only=True).with_columns(nw.col(*wide).cast(nw.Float64)).to_native()


def _write(reader: Any, path: str) -> None:
    """Write all batches, decoding dictionaries: a stream may have several per column, a file may not."""
    import pyarrow as pa

    schema = pa.schema([pa.field(field.name, decoded_type(field.type)) for field in reader.schema])
    folder = os.path.dirname(path)
    with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        for batch in _batches(reader):
            plain = pa.RecordBatch.from_arrays([decoded(column) for column in batch.columns], schema=schema)
            if plain.nbytes + _RESERVE > shutil.disk_usage(folder).free:
                raise _no_room(folder)
            writer.write_batch(plain)


def _batches(reader: Any) -> Iterator[Any]:
    """Yield the batches of a stream; an error states where the stream failed."""
    import pyarrow as pa

    rows = 0
    while True:
        try:
            batch = reader.read_next_batch()
            batch.validate(full=True)
        except StopIteration:
            return
        except (OSError, pa.ArrowException) as error:
            if str(error).rstrip().endswith("KeyboardInterrupt"):  # a stream hides the type of errors
                raise KeyboardInterrupt from error
            raise DataError(f"The stream failed after row {rows}: {first_words(error)}.") from error
        yield batch
        rows += batch.num_rows


def _no_room(folder: str) -> DataError:
    free = shutil.disk_usage(folder).free
    return DataError(
        f"The stream does not fit on disk: {free >> 20} MB are free in {folder}; "
        "free disk space, set TMPDIR to a larger disk, or scan files instead."
    )
