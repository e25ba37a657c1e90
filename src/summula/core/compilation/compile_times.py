"""Time spent in a with-block on compiling kernels, on any thread, and on waiting for other processes to do so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event

__all__ = ["WAITING", "CompileTimes", "compile_times"]

WAITING = "summula:wait"  # the event of waiting for a kernel that another process compiles


class CompileTimes:
    """Time during which at least one kernel was being compiled, by this process or one that it waited for."""

    def __init__(self, *recorders: Any) -> None:
        self._recorders = recorders

    @property
    def seconds(self) -> float:
        """Total length of the union of all finished compilations."""
        total, depth, began = 0.0, 0, 0.0
        events = [pair for recorder in self._recorders for pair in recorder.buffer]
        for moment, one in sorted(events, key=lambda pair: pair[0]):
            if one.is_start:
                began = moment if depth == 0 else began
                depth += 1
            elif depth > 0:
                depth -= 1
                total += moment - began if depth == 0 else 0.0
        return float(total)


@contextmanager
def compile_times() -> Iterator[CompileTimes]:
    """Record compilations of kernels; kernels that are loaded from the disk cache do not count.

    Examples
    --------
    >>> from summula.core.compilation.compile_times import compile_times
    >>> with compile_times() as times:
    ...     total = sum(range(10))
    >>> times.seconds
    0.0
    """
    with event.install_recorder("numba:compile") as compiling, event.install_recorder(WAITING) as waiting:
        yield CompileTimes(compiling, waiting)
