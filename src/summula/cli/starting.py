"""Start-up of commands: most of the time of a short one is imports."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["rarely_collected", "uncollected"]


@contextmanager
def uncollected() -> Iterator[None]:
    """No search for garbage in a with-block of imports: they make none, and looking for it takes an eighth of a start.

    To be used as a decorator as well.
    """
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


@contextmanager
def rarely_collected() -> Iterator[None]:
    """Search for garbage rarely in a with-block: tables of many columns make many objects, nearly all of which stay."""
    before = gc.get_threshold()
    gc.set_threshold(50_000, 20, 50)
    try:
        yield
    finally:
        gc.set_threshold(*before)
