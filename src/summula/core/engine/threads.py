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
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

from summula.core.environment import FOUND

__all__ = [
    "LINE",
    "OFF",
    "ROUNDS",
    "STAY",
    "Team",
    "inside_pool",
    "one_blas_thread",
    "pool",
    "thread_count",
    "together",
]

LINE = 8  # integers in a cache line: no two members of a team write to the same
# Of a team: whether it has failed; how many rounds are called, -1 when there will be none; looks for the next one.
OFF, ROUNDS, STAY = range(3)
_STAY = 50_000  # looks for another round: about a millisecond

_inside = threading.local()
_pool: ThreadPoolExecutor | None = None
_pool_size = 0
_pool_lock = threading.Lock()
_team_lock = threading.Lock()
_present: weakref.ref[Team] | None = None  # who has worked last


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


class Team:
    """Threads that run task(place, k) for k = 0, ..., members - 1 at the same time for certain: they may meet there.

    Two teams, each with half of its members on the threads of the pool, would wait for ever; so they work one after the
    other. An error or Ctrl-C calls the meeting off (see `team_kernels`).

    Parameters
    ----------
    task : callable
        A kernel, in a loop of rounds (`team_kernels.called`) where `stays`; all members meet at the end of a round.
    members : int
        The first is the caller.
    stays : bool, optional
        Whether they wait a little for the next round: nothing is faster, and nobody else has the processor meanwhile.
    """

    def __init__(self, task: Callable[[Any, int], Any], members: int, *, stays: bool = False) -> None:
        if members > 1 and (inside_pool() or members > thread_count()):
            raise RuntimeError(f"a team of {members} cannot meet here")
        self._task, self._members, self._stays = task, members, stays
        self._others: list[Future[None]] = []
        self._failed: list[BaseException] = []  # the first is the cause of the others
        self._clear()

    def _clear(self) -> None:
        import numpy as np

        self._place = np.zeros((self._members + 1, LINE), np.int64)
        self._place[-1, ROUNDS], self._place[-1, STAY] = 1, _STAY if self._stays else 0
        self._others, self._failed, self._process = [], [], os.getpid()

    def run(self) -> None:
        """One round."""
        if self._members == 1:
            self._task(self._place, 0)
            return
        if _team_lock.locked():
            self.dismiss()  # others need the threads
        with _team_lock:
            try:
                self._replace()
                if not self._is_called():
                    self._hire()
                self._take_part(0)
            except BaseException:
                self._place[-1, OFF] = 1
                raise
            finally:
                if self._place[-1, OFF] or not self._stays:
                    self.dismiss()
        if self._failed:
            raise self._failed[0]

    def _replace(self) -> None:
        """If another team has stayed, let it go."""
        global _present
        last, _present = _present, weakref.ref(self)
        other = None if last is None else last()
        if other is not None and other is not self:
            other._place[-1, ROUNDS] = -1

    def _hire(self) -> None:
        self.dismiss()
        self._clear()
        for k in range(1, self._members):
            self._others.append(pool().submit(self._take_part, k))

    def dismiss(self) -> None:
        """Let the others go; none of them is left afterwards."""
        self._place[-1, ROUNDS] = -1
        if self._process == os.getpid():  # a fork leaves them behind
            wait(self._others)

    def _is_called(self) -> bool:
        """Whether all are still there."""
        if not self._others or self._process != os.getpid():
            return False
        from summula.core.engine.team_kernels import call

        return bool(call(self._place))

    def _take_part(self, k: int) -> None:
        try:
            self._task(self._place, k)
        except BaseException as error:
            self._failed.append(error)
            self._place[-1, OFF] = 1


class _BlasGuard:
    """Reference-counted limit of every BLAS in the process to one thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0
        self._controller: Any = None
        self._limit: Any = None

    def enter(self) -> None:
        with self._lock:
            self._depth += 1
            if self._depth == 1:
                if self._controller is None:
                    import scipy.linalg  # noqa: F401  loads SciPy's BLAS, so that the controller sees it
                    from threadpoolctl import ThreadpoolController

                    self._controller = ThreadpoolController().select(user_api="blas")
                _take_blas_control()
                self._limit = self._controller.limit(limits=1)

    def exit(self) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth == 0 and self._limit is not None:
                _take_blas_control()
                self._limit.restore_original_limits()
                _take_blas_control()
                self._limit = None


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
    global _pool, _pool_size, _pool_lock, _team_lock, _present, _guard
    _pool, _pool_size, _pool_lock, _team_lock, _present = None, 0, threading.Lock(), threading.Lock(), None
    _inside.yes = False
    limit = _guard._limit
    _guard = _BlasGuard()
    if limit is not None:
        _take_blas_control()
        limit.restore_original_limits()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads_after_fork)
