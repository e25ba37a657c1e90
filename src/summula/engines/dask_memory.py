"""Keep freed memory in the process while a task runs.

Dask starts its workers with MALLOC_TRIM_THRESHOLD_ set, so that freed memory is returned to the system immediately. A
pass that fills a block of a few MB per chunk then gets new pages each time, which costs more than the arithmetic (a
Gram matrix of 20 columns takes 2.8 times as long). During tasks of Summula the C library keeps freed memory; afterwards
Dask's setting is restored. Without this variable, or without the GNU C library, nothing is changed.
"""

from __future__ import annotations

import ctypes
import platform
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from summula.core.environment import INITIAL_ENVIRONMENT

__all__ = ["keeping_freed_memory"]

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # names of mallopt(3)
_DEFAULT_MMAP = 128 << 10
_LARGEST_MMAP = 32 << 20
_KEPT = 256 << 20

_lock = threading.Lock()
_depth = 0


def _trim_setting() -> int | None:
    text = INITIAL_ENVIRONMENT.get("MALLOC_TRIM_THRESHOLD_", "")
    return int(text) if text.isdigit() and platform.libc_ver()[0] == "glibc" else None


def _set(trim: int, mmap: int) -> None:
    library = ctypes.CDLL(None)
    library.mallopt(_MMAP_THRESHOLD, mmap)
    library.mallopt(_TRIM_THRESHOLD, trim)


@contextmanager
def keeping_freed_memory() -> Iterator[None]:
    """Keep freed memory in the process within a with-block; concurrent blocks share the setting."""
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
