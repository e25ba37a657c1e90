"""The only file that starts a thread.

One pool per process. Its size is the number of available CPUs (cgroup limits included), capped by `OMP_NUM_THREADS` as
it was when Summula was imported (joblib and Dask set it for nested workers), `SUMMULA_NUM_THREADS` and `n_jobs`.
BLAS runs on one thread while the pool is busy, and throughout a fit of fewer than a thousand columns: its threads keep
spinning for a while after each call, and would take the CPUs from the pool. Solves of a thousand unknowns and more use
all of its threads.
Work submitted from inside a pool thread runs inline, since the pool cannot wait for itself.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

from summula.core.environment import INITIAL_ENVIRONMENT

__all__ = [
    "ONE_THREAD_BELOW",
    "inside_pool",
    "one_blas_thread",
    "pool",
    "solving",
    "thread_count",
    "together",
]

ONE_THREAD_BELOW = 1_000  # unknowns; larger solves use all BLAS threads

_inside = threading.local()
_pool: ThreadPoolExecutor | None = None
_pool_size = 0
_pool_lock = threading.Lock()


def _cap(environment: Mapping[str, str], name: str) -> float:
    return _first_number(environment.get(name, ""))


@functools.cache
def _first_number(text: str) -> float:
    # OMP_NUM_THREADS may be a list with one number per nesting level; the first applies here.
    first = text.split(",")[0].strip()
    return max(1, int(first)) if first.isdigit() else math.inf


@functools.cache
def _cpu_count() -> int:
    # Reading the cgroup files takes longer than a small fit, so it is done once per process.
    import joblib

    return int(joblib.cpu_count())


def thread_count(n_jobs: int | None = None) -> int:
    """Return the number of threads a fit may use now.

    `n_jobs` is interpreted as in joblib (-1 means all, -2 all but one); None means all.
    """
    caps = _cap(INITIAL_ENVIRONMENT, "OMP_NUM_THREADS"), _cap(os.environ, "SUMMULA_NUM_THREADS")
    available = int(min(_cpu_count(), *caps))
    if n_jobs is None:
        return available
    if n_jobs < 0:
        return max(1, available + 1 + n_jobs)
    return max(1, min(available, n_jobs))


def inside_pool() -> bool:
    """Return whether the calling thread belongs to the pool."""
    return getattr(_inside, "yes", False)


def _mark_inside() -> None:
    _inside.yes = True


def pool() -> ThreadPoolExecutor:
    """Return the pool of this process, created on first use and replaced when more threads become available."""
    global _pool, _pool_size
    n_threads = thread_count()
    with _pool_lock:
        if _pool is None or _pool_size < n_threads:
            # The smaller pool is not shut down: callers may still use it, and its threads end when it is collected.
            _pool = ThreadPoolExecutor(n_threads, thread_name_prefix="summula", initializer=_mark_inside)
            _pool_size = n_threads
        return _pool


def together(tasks: Sequence[Callable[[], Any]]) -> list[Any]:
    """Run a few short tasks concurrently, the last one in the calling thread, and return their values in order.

    For work that is finer than a pass over chunks. All tasks have ended when it returns or raises, Ctrl-C included.
    """
    if len(tasks) == 1 or inside_pool():
        return [task() for task in tasks]
    futures = [pool().submit(task) for task in tasks[:-1]]
    try:
        here = tasks[-1]()
    finally:
        wait(futures)
    return [future.result() for future in futures] + [here]


class _Blas(NamedTuple):
    """The functions of one BLAS library that read and set its number of threads."""

    get: Callable[[], int]
    set: Callable[[int], Any]

    @classmethod
    def of(cls, controller: Any) -> _Blas:
        """Return the functions of OpenBLAS itself if the process shares its pool, else those of the controller.

        The controller looks up its symbols at every call, and newer versions ignore all threads except the first to set
        a limit, until that thread releases control; here the limit may be set in one thread and removed in another.
        """
        if controller.internal_api == "openblas" and getattr(controller, "threading_layer", "") != "openmp":
            library = ctypes.CDLL(controller.filepath)  # already loaded
            for prefix, suffix in itertools.product(("", "scipy_"), ("", "64_", "_64")):
                get = getattr(library, f"{prefix}openblas_get_num_threads{suffix}", None)
                limit = getattr(library, f"{prefix}openblas_set_num_threads{suffix}", None)
                if get is not None and limit is not None:
                    return cls(get, limit)
        return cls(controller.get_num_threads, controller.set_num_threads)


class _BlasGuard:
    """Reference-counted limit of every BLAS in the process to one thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0
        self._by_thread: dict[int, int] = {}  # the depth that each thread contributes
        self._limited = False
        self._free_depth = 0  # above 0: the depth at which `suspend` has lifted the limit
        self._libraries: list[_Blas] | None = None
        self._before: list[tuple[_Blas, int]] = []  # libraries that were limited, and the number of threads each had

    def enter(self) -> None:
        me = threading.get_ident()
        with self._lock:
            self._depth += 1
            self._by_thread[me] = self._by_thread.get(me, 0) + 1
            if not self._limited:
                self._limit()

    def exit(self) -> None:
        me = threading.get_ident()
        with self._lock:
            self._depth -= 1
            self._by_thread[me] = self._by_thread.get(me, 0) - 1
            if self._depth == self._free_depth:
                self.restore()
            if self._depth == 0:
                self._by_thread.clear()  # (a generator may be closed by another thread than the one that opened it)

    def suspend(self) -> bool:
        """Give the calling thread all BLAS threads if it alone has set the limit; return whether it did."""
        with self._lock:
            alone = self._by_thread.get(threading.get_ident(), 0) == self._depth
            if not alone or not self._limited or self._free_depth:
                return False
            self.restore()
            self._free_depth = self._depth
            return True

    def resume(self) -> None:
        """Set the limit again after `suspend`."""
        with self._lock:
            self._free_depth = 0
            if not self._limited:
                self._limit()

    def _limit(self) -> None:
        self._limited = True
        libraries = self._find_libraries() if self._libraries is None else self._libraries
        self._before = [(library, threads) for library in libraries if (threads := library.get()) != 1]
        for library, _ in self._before:
            library.set(1)

    def _find_libraries(self) -> list[_Blas]:
        import scipy.linalg  # noqa: F401  loads SciPy's BLAS, so that the controller sees it
        from threadpoolctl import ThreadpoolController

        controllers = ThreadpoolController().select(user_api="blas").lib_controllers
        self._libraries = [_Blas.of(controller) for controller in controllers]
        return self._libraries

    def restore(self) -> None:
        """Restore the number of threads, unless another limit has been set in the meantime."""
        for library, threads in self._before:
            if library.get() == 1:
                library.set(threads)
        self._before, self._limited = [], False


_guard = _BlasGuard()


class _OneBlasThread:
    """Context of `one_blas_thread`; it has no state, so one object serves all blocks."""

    def __enter__(self) -> None:
        _guard.enter()

    def __exit__(self, *error: object) -> None:
        _guard.exit()


_one_blas_thread = _OneBlasThread()


def one_blas_thread() -> AbstractContextManager[None]:
    """Limit BLAS to one thread within a with-block; nested and concurrent blocks share the limit."""
    return _one_blas_thread


@contextmanager
def _all_blas_threads() -> Iterator[None]:
    suspended = _guard.suspend()
    try:
        yield
    finally:
        if suspended:
            _guard.resume()


def solving(size: int) -> AbstractContextManager[None]:
    """Use one BLAS thread for fewer than a thousand unknowns, which is faster and reproducible, else all threads."""
    return one_blas_thread() if size < ONE_THREAD_BELOW else _all_blas_threads()


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
