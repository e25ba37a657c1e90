"""Streams that can be read once are written to a temporary Arrow file first, which is removed with the scan.

The file grows in the system's temporary folder. Free space is looked at before every batch, so that a full disk is
reported before it happens; whatever happens, the file is gone afterwards.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from typing import Any

from summula.core.errors import DataError
from summula.core.files import IpcTable

__all__ = ["spooled"]

_RESERVE = 64 << 20  # bytes that are left to others


def spooled(stream: Any) -> IpcTable:
    """The rows of an Arrow stream in a temporary file."""
    import pyarrow as pa

    reader = pa.RecordBatchReader.from_stream(stream)
    folder = tempfile.mkdtemp(prefix="summula-")
    try:
        path = os.path.join(folder, "rows.arrow")
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, reader.schema) as writer:
            for batch in reader:
                need, free = batch.nbytes, shutil.disk_usage(folder).free
                if need + _RESERVE > free:
                    raise DataError(
                        f"The stream does not fit on disk: {free >> 20} MB are free in {folder}; "
                        "make room, set TMPDIR to a larger disk, or scan files instead."
                    )
                writer.write_batch(batch)
        table = IpcTable(path)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    # Also at the end of the process: weakref.finalize runs then.
    weakref.finalize(table, shutil.rmtree, folder, ignore_errors=True)
    return table
