"""Freed memory is kept while a task runs.

Dask starts its workers with MALLOC_TRIM_THRESHOLD_ set, so that freed memory returns to the system at once. A pass that
fills a block of some MB for every chunk is then given new pages each time, which costs more than the arithmetic (a Gram
matrix of 20 columns takes 2.8 times as long). During a task of ours the C library keeps what is freed; afterwards
Dask's setting holds again. Elsewhere than on such workers, or without the GNU C library, nothing is changed.
"""

from __future__ import annotations

import ctypes
import platform
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from summula.core.environment import FOUND

__all__ = ["keeping_freed_memory"]

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # names of mallopt(3)
_DEFAULT_MMAP = 128 << 10
_LARGEST_MMAP = 32 << 20
_KEPT = 256 << 20

_lock = threading.Lock()
_depth = 0


def _trim_setting() -> int | None:
    text = FOUND.get("MALLOC_TRIM_THRESHOLD_", "")
    return int(text) if text.isdigit() and platform.libc_ver()[0] == "glibc" else None


def _set(trim: int, mmap: int) -> None:
    library = ctypes.CDLL(None)
    library.mallopt(_MMAP_THRESHOLD, mmap)
    library.mallopt(_TRIM_THRESHOLD, trim)


@contextmanager
def keeping_freed_memory() -> Iterator[None]:
    """Let the process keep freed memory for the length of a with-block; concurrent blocks share the setting."""
    global _depth
    trim = _trim_setting()
    if trim is None:
        yield
        return
    with _lock:
        _depth += 1
        if _depth == 1:
            _set(_KEPT, _LARGEST_MMAP)
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0:
                _set(trim, _DEFAULT_MMAP)
