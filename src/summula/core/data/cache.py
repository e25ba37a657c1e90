"""Cache of decoded rows of files: the first pass writes them to a scratch file, which later passes read.

Decoding Parquet or parsing CSV costs more than most sums. As rows are read, each chunk is written to its position in
an anonymous temporary file (in C order, in the precision of the source), which the system removes with the last handle
on it, however the process ends. Reading uses `pread` into new buffers, not a memory map, so memory stays bounded. The
cached rows are bit-identical to the original ones.

Files of plain numbers cost less to decode than to write, so they are not cached unless many passes follow. If writing
turns out slower than decoding (three times slower, if many passes follow) the remaining rows are decoded again in each
pass; those written before are used. For fits that access rows in another order than that of the files, all rows are
always written.
"""

from __future__ import annotations

import copy
import logging
import os
import shutil
import tempfile
import threading
import time
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.data.scan import ScanSource
from summula.core.data.sources import Source, WrappedSource
from summula.core.errors import DataError

__all__ = ["CachedSource", "cached"]

Array = NDArray[Any]

_log = logging.getLogger(__name__)

_TRIAL = 2**24  # bytes after which writing is compared with decoding
_SPARE = 1.2  # required free disk space relative to the size of the rows
_MANY = 4  # passes after which writing plain numbers pays off; writing may then take
_PATIENCE = 3.0  # times as long as decoding


def cached(source: Source, *, scattered: bool = False, passes: int = 1) -> Source:
    """Return a cached source for rows of files; other sources, or if disk or system do not permit it, unchanged.

    scattered : whether rows will be accessed in another order than that of the files.
    passes : expected number of further passes over the rows.
    """
    if isinstance(source, WrappedSource) and not isinstance(source, CachedSource):
        kept = cached(source.base, scattered=scattered, passes=passes)
        if kept is source.base:
            return source
        copied = copy.copy(source)  # factors or lifts of rows that are decoded once
        copied.base = kept
        return copied
    if not isinstance(source, ScanSource) or getattr(source.engine(), "remote", False) or not hasattr(os, "preadv"):
        return source
    if source.plain and not scattered and passes < _MANY:
        return source
    needed = source.n_rows * _row_bytes(source)
    folder = os.environ.get("SUMMULA_SCRATCH") or tempfile.gettempdir()
    try:
        free = shutil.disk_usage(folder).free
        if free < _SPARE * needed:
            _log.info("no scratch file: %d bytes are needed in %s and %d are free", needed, folder, free)
            return source
        return CachedSource(source, folder, scattered, _PATIENCE if passes >= _MANY else 1.0)
    except OSError as error:
        _log.info("no scratch file in %s: %s", folder, error)
        return source


def _joined(stretches: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merge adjacent ranges of rows, sorted."""
    joined: list[tuple[int, int]] = []
    for start, stop in sorted(stretches):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(stop, joined[-1][1])
        else:
            joined.append((start, stop))
    return joined


def _row_bytes(source: Source) -> int:
    return source.n_features * source.dtype.itemsize + _record(source).itemsize


def _record(source: Source) -> np.dtype[Any]:
    """Return the type of the values stored for a row in addition to its features."""
    there = {
        "y": source.n_targets > 0,
        "weight": source.weighted,
        "codes": source.labelled,
        "offset": source.shifted,
        "groups": source.grouped,
    }
    kinds = {"y": (np.float64, (source.n_targets,)), "codes": (np.int32,), "groups": (np.int64,)}
    return np.dtype([(name, *kinds.get(name, (np.float64,))) for name, has in there.items() if has])


class CachedSource(WrappedSource):
    """A source whose chunks are written to a scratch file when they are first read.

    With `scattered` all chunks are written; otherwise writing may take `patience` times as long as decoding.
    """

    def __init__(self, base: Source, folder: str, scattered: bool = False, patience: float = 1.0) -> None:
        super().__init__(base)
        self._always = scattered
        self._patience = patience
        self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 (closed by `release`)
        self._record = _record(base)
        self._rest = self.n_rows * self.n_features * self.dtype.itemsize  # offset of targets, weights and so on
        self._done: list[tuple[int, int]] = []  # written ranges of rows, sorted and disjoint
        self._lock = threading.Lock()
        self._closed = False  # whether writing has ended
        self._decoding = self._writing = 0.0  # seconds so far
        self._written = 0  # bytes

    def column(self, j: int) -> str:
        """Return the name of column j in error messages."""
        return self.base.column(j)

    def chunk(self, start: int, stop: int) -> Chunk:
        """Return the rows from `start` up to `stop` as one chunk, from the files."""
        return self.base.chunk(start, stop)

    def only(self, start: int, stop: int) -> Source:
        """Return the part that is sent to another process: the files."""
        return self.base.only(start, stop)

    def chunks(self, start: int, stop: int, chunk_rows: int) -> Iterator[Chunk]:
        """Yield the rows from `start` up to `stop`, chunk by chunk; rows read before come from the scratch file."""
        if self._has(start, stop):
            for a in range(start, stop, chunk_rows):
                yield self._read(a, min(a + chunk_rows, stop))
            return
        whole, clock = True, time.perf_counter()
        for chunk in self.base.chunks(start, stop, chunk_rows):
            decoding = time.perf_counter() - clock
            rows, kept = (chunk, False) if self._closed else self._keep(chunk, decoding)
            whole &= kept
            yield rows
            clock = time.perf_counter()
        if whole:
            with self._lock:
                self._done = _joined([*self._done, (start, stop)])

    def _has(self, start: int, stop: int) -> bool:
        """Return whether these rows are in the scratch file."""
        done = self._done
        at = bisect_right(done, (start, self.n_rows)) - 1
        return at >= 0 and stop <= done[at][1]

    def _keep(self, chunk: Chunk, decoding: float) -> tuple[Chunk, bool]:
        """Write a chunk to its position; return it in C order, to copy it once, and whether it was written."""
        rows = np.ascontiguousarray(chunk.write(np.empty((len(chunk), self.n_features), self.dtype)))
        clock, kept = time.perf_counter(), True
        try:
            self._put(rows, chunk.start * self.n_features * self.dtype.itemsize)
            if self._record.names:
                row_data = np.empty(len(chunk), self._record)
                for name, values in chunk.row_data.items():
                    row_data[name] = values
                self._put(row_data, self._rest + chunk.start * self._record.itemsize)
        except OSError as error:  # the disk is full: continue with the files
            _log.info("the scratch file is given up: %s", error)
            self._closed, kept = True, False
        self._check_cost(decoding, time.perf_counter() - clock, rows.nbytes)
        return replace(chunk, rows=rows), kept

    def _check_cost(self, decoding: float, writing: float, size: int) -> None:
        """Stop writing if it costs more than it can save."""
        with self._lock:
            self._decoding += decoding
            self._writing += writing
            self._written += size
            slow = self._written > _TRIAL and self._writing > self._patience * self._decoding
            if slow and not self._always and not self._closed:
                _log.info("the scratch file ends after %d bytes: it is slower than decoding", self._written)
                self._closed = True

    def _put(self, block: Array, place: int) -> None:
        view = memoryview(block.data).cast("B")
        while view:
            count = os.pwrite(self._file.fileno(), view, place)
            view, place = view[count:], place + count

    def _get(self, shape: tuple[int, ...], dtype: Any, place: int) -> Array:
        block = np.empty(shape, dtype)
        view = memoryview(block.data).cast("B")
        while view:
            count = os.preadv(self._file.fileno(), [view], place)
            if not count:
                raise DataError("The scratch file of this fit was truncated; free some disk space and fit again.")
            view, place = view[count:], place + count
        return block

    def _read(self, start: int, stop: int) -> Chunk:
        n = stop - start
        rows = self._get((n, self.n_features), self.dtype, start * self.n_features * self.dtype.itemsize)
        chunk = Chunk(rows, None, None, start, stop, self.dtype)
        if not self._record.names:
            return chunk
        row_data = self._get((n,), self._record, self._rest + start * self._record.itemsize)
        columns: dict[str, Any] = {name: np.ascontiguousarray(row_data[name]) for name in self._record.names}
        return replace(chunk, **columns)

    def release(self) -> None:
        """Release the disk space."""
        self._file.close()
        self.base.release()
