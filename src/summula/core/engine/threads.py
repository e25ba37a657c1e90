"""The only file that starts a thread.

One pool per process. Its size is what the machine gives us (cgroup limits included), capped by
`OMP_NUM_THREADS` as it was when Summula was imported (how joblib and Dask tell a worker that it is nested),
`SUMMULA_NUM_THREADS` and `n_jobs`.
While the pool works BLAS runs on one thread, so that two levels of threads never multiply. Work submitted
from inside a pool thread runs inline: the pool cannot wait for itself.
"""

from __future__ import annotations

import functools
import math
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

from summula.core.environment import FOUND

__all__ = [
    "inside_pool",
    "one_blas_thread",
    "pool",
    "thread_count",
    "together",
]

_inside = threading.local()
_pool: ThreadPoolExecutor | None = None
_pool_size = 0
_pool_lock = threading.Lock()


def _cap(environment: Mapping[str, str], name: str) -> float:
    # OMP_NUM_THREADS may hold a list, one number a nesting level: the first is ours.
    text = environment.get(name, "").split(",")[0].strip()
    return max(1, int(text)) if text.isdigit() else math.inf


@functools.cache
def _cpu_count() -> int:
    # Reads the cgroup's files, which takes longer than a small fit: once a process.
    import joblib

    return int(joblib.cpu_count())


def thread_count(n_jobs: int | None = None) -> int:
    """How many threads a fit may use now.

    `n_jobs` counts as in joblib (-1 is all, -2 all but one); None asks for all.
    """
    available = int(min(_cpu_count(), _cap(FOUND, "OMP_NUM_THREADS"), _cap(os.environ, "SUMMULA_NUM_THREADS")))
    if n_jobs is None:
        return available
    if n_jobs < 0:
        return max(1, available + 1 + n_jobs)
    return max(1, min(available, n_jobs))


def inside_pool() -> bool:
    """Whether the calling thread belongs to the pool."""
    return getattr(_inside, "yes", False)


def _mark_inside() -> None:
    _inside.yes = True


def pool() -> ThreadPoolExecutor:
    """The pool of this process, made when first asked for and remade when more threads are allowed."""
    global _pool, _pool_size
    wanted = thread_count()
    with _pool_lock:
        if _pool is None or _pool_size < wanted:
            # An outgrown pool is only let go: whoever still holds it may use it, and its threads end with it.
            _pool = ThreadPoolExecutor(wanted, thread_name_prefix="summula", initializer=_mark_inside)
            _pool_size = wanted
        return _pool


def together(tasks: Sequence[Callable[[], Any]]) -> list[Any]:
    """Run a few short tasks at the same time, the last one in the calling thread; their values in order.

    For work that is finer than a pass over chunks. When it is left, by an error or Ctrl-C too, none of them still runs.
    """
    if len(tasks) == 1 or inside_pool():
        return [task() for task in tasks]
    futures = [pool().submit(task) for task in tasks[:-1]]
    try:
        here = tasks[-1]()
    finally:
        wait(futures)
    return [future.result() for future in futures] + [here]


class _BlasGuard:
    """Reference-counted limit of every BLAS in the process to one thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0
        self._controller: Any = None
        self._before: list[tuple[Any, int]] = []  # libraries, and how many threads each had

    def enter(self) -> None:
        with self._lock:
            self._depth += 1
            if self._depth == 1:
                if self._controller is None:
                    import scipy.linalg  # noqa: F401  loads SciPy's BLAS, so that the controller sees it
                    from threadpoolctl import ThreadpoolController

                    self._controller = ThreadpoolController().select(user_api="blas")
                _take_blas_control()
                self._before = [(library, library.num_threads) for library in self._controller.lib_controllers]
                for library, _ in self._before:
                    library.set_num_threads(1)

    def exit(self) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth == 0:
                self.restore()

    def restore(self) -> None:
        """Give the threads back, except where somebody else has set another limit meanwhile."""
        _take_blas_control()
        for library, threads in self._before:
            if library.num_threads == 1:
                library.set_num_threads(threads)
        _take_blas_control()
        self._before = []


def _take_blas_control() -> None:
    # Newer threadpoolctl silently ignores all threads but the first to set a limit, until that one lets go. Here the
    # block that opens the limit and the one that closes it may be in different threads.
    from threadpoolctl import OpenBLASController

    if hasattr(OpenBLASController, "clear_controlling_thread"):
        OpenBLASController.clear_controlling_thread(force=True)


_guard = _BlasGuard()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread for the length of a with-block; nested and concurrent blocks share the limit."""
    _guard.enter()
    try:
        yield
    finally:
        _guard.exit()


def _forget_threads_after_fork() -> None:
    # Threads do not survive a fork; a child starts with no pool and with BLAS as the parent had it.
    global _pool, _pool_size, _pool_lock, _guard
    _pool, _pool_size, _pool_lock = None, 0, threading.Lock()
    _inside.yes = False
    left_open, _guard = _guard, _BlasGuard()
    if left_open._before:
        left_open.restore()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads_after_fork)
