"""Threads that run one kernel together and synchronise inside it.

Submitting work to another thread through Python takes longer than many steps of an algorithm. The members of a worker
group instead enter one kernel together: each executes its share of every step and waits at a barrier between steps. A
barrier takes less than a microsecond when all members are running. A member that waits longer first yields its
processor, then sleeps in short intervals, so that other threads and processes can run.

A persistent group waits about a millisecond for its next round before its threads return to the pool, where they block
without using a processor; `run` then starts it again.

All communication is through a table of int64, one row (a cache line) per member and a last one for the group.
With `SUMMULA_WORKER_GROUP=0` in the environment every group consists of its caller alone.
"""

from __future__ import annotations

import functools
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from typing import Any

import numpy as np

from summula.core.compilation.compile import internal_kernel, kernel
from summula.core.compilation.intrinsics import (
    compare_exchange,
    cpu_relax,
    load_acquire,
    sched_yield,
    sleep_microseconds,
    store_release,
)
from summula.core.engine.engine import check_watch
from summula.core.engine.threads import inside_pool, pool, thread_count

__all__ = [
    "LINE",
    "WorkerGroup",
    "barrier_wait",
    "group_size",
    "is_cancelled",
    "run_supervised",
    "wait_for_round",
    "warmup",
]

LINE = 8  # int64 values per cache line
_ARRIVALS, _ROUNDS_JOINED = range(2)  # columns of a member's row
_FAILED, _CANCELLED, _ROUND, _LINGER = range(4)  # columns of the group's row; no round will follow _ROUND = -1
_SPINS = 1_000  # polls before a waiting member yields: about 20 microseconds
_YIELDS = 200  # yields before it sleeps
_SLEEP = 50  # microseconds
_ROUND_POLLS = 4_000  # polls before a member of a persistent group returns to the pool: about a millisecond
_CHECK_SECONDS = 0.05  # seconds between checks of the clock by a supervising thread

_lock = threading.Lock()  # one group at a time
_latest: weakref.ref[WorkerGroup] | None = None


# ------------------------------------------------------------------------------------------------------------- kernels


@internal_kernel
def _back_off(polls: int) -> None:
    """Wait before polling again: spin at first, then yield, then sleep."""
    if polls <= _SPINS:
        cpu_relax()
    elif polls <= _SPINS + _YIELDS:
        sched_yield()
    else:
        sleep_microseconds(_SLEEP)


@internal_kernel
def barrier_wait(table: Any, member: int) -> None:
    """Wait until all members have reached this barrier."""
    members = len(table) - 1
    if members == 1:
        return
    flat = table.reshape(-1)
    arrivals = table[member, _ARRIVALS] + 1
    store_release(flat, member * LINE + _ARRIVALS, arrivals)
    for k in range(members):
        polls = 0
        while load_acquire(flat, k * LINE + _ARRIVALS) < arrivals:
            polls += 1
            _back_off(polls)
            if polls > _SPINS and load_acquire(flat, members * LINE + _FAILED) > 0:
                raise RuntimeError("another thread of the worker group has failed")


@internal_kernel
def is_cancelled(table: Any) -> bool:
    """Return whether the members should leave the kernel."""
    return load_acquire(table.reshape(-1), (len(table) - 1) * LINE + _CANCELLED) > 0  # type: ignore[no-any-return]


@internal_kernel
def wait_for_round(table: Any, member: int) -> bool:
    """Wait for the next round; return whether there is one for this member. Member 0 never waits."""
    if member == 0:
        return True
    group, flat, joined = len(table) - 1, table.reshape(-1), table[member, _ROUNDS_JOINED]
    place, polls = group * LINE + _ROUND, 0
    while True:
        latest = load_acquire(flat, place)
        if latest < 0:
            return False
        if latest > joined:
            table[member, _ROUNDS_JOINED] += 1
            return True
        polls += 1
        if polls <= _SPINS:
            cpu_relax()
        else:
            sched_yield()
        if polls > table[group, _LINGER]:
            compare_exchange(flat, place, joined, -1)


@kernel
def _start_round(table: Any) -> bool:
    """Announce a round; return whether the members are still waiting for one."""
    flat, place = table.reshape(-1), (len(table) - 1) * LINE + _ROUND
    latest = load_acquire(flat, place)
    return latest > 0 and compare_exchange(flat, place, latest, latest + 1)  # type: ignore[no-any-return]


# --------------------------------------------------------------------------------------------------------------- groups


def group_size(n_jobs: int | None = None) -> int:
    """Return the number of members of a group started here: 1 inside the pool or where groups are switched off."""
    switched_off = os.environ.get("SUMMULA_WORKER_GROUP", "").strip() == "0"
    return 1 if switched_off or inside_pool() else thread_count(n_jobs)


def run_supervised(tasks: Sequence[Callable[[], Any]], cancel: Callable[[], None]) -> None:
    """Run tasks on pool threads while the caller waits, so that Ctrl-C and time limits take effect during a kernel.

    When the wait is interrupted, `cancel` is called to end the tasks early, and the interruption is raised once all of
    them have ended.
    """
    futures = [pool().submit(task) for task in tasks]
    try:
        check_watch()
        while wait(futures, _CHECK_SECONDS).not_done:
            check_watch()
    except BaseException:
        cancel()
        wait(futures)
        raise
    for future in futures:
        future.result()


class WorkerGroup:
    """Threads that run ``task(table, member)`` for every member at the same time, and may wait for each other there.

    Two groups that each hold some of the pool's threads would deadlock, so only one group runs at a time. An error in
    one member ends the others at their next barrier.

    Parameters
    ----------
    task : callable
        A kernel. In a persistent group it loops over rounds (`wait_for_round`), and member 0 returns after each.
    members : int
        Number of members; member 0 is the caller, unless the group is supervised.
    persistent : bool, default=False
        Whether the members wait briefly for the next round.
    supervised : bool, default=False
        Whether all members run on pool threads while the caller handles Ctrl-C and time limits, for long-running
        kernels. They must poll `is_cancelled`. Has no effect inside the pool.
    """

    def __init__(
        self, task: Callable[[Any, int], Any], members: int, *, persistent: bool = False, supervised: bool = False
    ) -> None:
        if members > 1 and (inside_pool() or members > thread_count()):
            raise RuntimeError(f"A worker group of {members} members needs as many threads in the pool.")
        self._task, self._members, self._persistent = task, members, persistent
        self._supervised = supervised and not inside_pool()
        self._workers: list[Future[None]] = []
        self._errors: list[BaseException] = []  # the first caused the others
        self._is_cancelled = False
        self._reset()

    def _reset(self) -> None:
        self._table = np.zeros((self._members + 1, LINE), np.int64)
        group = self._table[-1]
        group[_ROUND], group[_LINGER] = 1, _ROUND_POLLS if self._persistent else 0
        group[_CANCELLED] = self._is_cancelled
        self._workers, self._errors, self._process = [], [], os.getpid()

    def run(self) -> None:
        """Run one round."""
        if self._members == 1:
            task = functools.partial(self._task, self._table, 0)
            run_supervised([task], self.cancel) if self._supervised else task()
            return
        if _lock.locked():
            self.stop()  # another group needs the threads
        with _lock:
            try:
                self._run_members()
            except BaseException:
                self._table[-1, _FAILED] = 1
                raise
            finally:
                if self._table[-1, _FAILED] or not self._persistent:
                    self.stop()
        if self._errors:
            raise self._errors[0]

    def _run_members(self) -> None:
        self._replace_latest()
        if self._supervised:
            self._reset()
            members = range(self._members)
            run_supervised([functools.partial(self._run_member, k) for k in members], self.cancel)
            return
        if not self._resume():
            self.start()
        self._run_member(0)

    def cancel(self) -> None:
        """Make members that poll `is_cancelled` return, in this round and any later one."""
        self._is_cancelled = True
        self._table[-1, _CANCELLED] = self._table[-1, _FAILED] = 1

    def start(self) -> None:
        """Submit all members but the first to the pool."""
        self.stop()
        self._reset()
        for k in range(1, self._members):
            self._workers.append(pool().submit(self._run_member, k))

    def stop(self) -> None:
        """End the other members, and wait until they have returned."""
        self._table[-1, _ROUND] = -1
        if self._process == os.getpid():  # threads do not survive a fork
            wait(self._workers)

    def _resume(self) -> bool:
        """Start a round with the members that are still waiting; return whether they are."""
        return bool(self._workers) and self._process == os.getpid() and bool(_start_round(self._table))

    def _replace_latest(self) -> None:
        """End the members of the previous group, which may still wait for a round."""
        global _latest
        previous, _latest = _latest, weakref.ref(self)
        other = None if previous is None else previous()
        if other is not None and other is not self:
            other._table[-1, _ROUND] = -1

    def _run_member(self, member: int) -> None:
        try:
            self._task(self._table, member)
        except BaseException as error:
            self._errors.append(error)
            self._table[-1, _FAILED] = 1


def _reset_after_fork() -> None:
    global _lock, _latest
    _lock, _latest = threading.Lock(), None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


def warmup() -> None:
    """Compile for the common argument types."""
    table = np.zeros((2, LINE), np.int64)
    barrier_wait(table, 0)
    wait_for_round(table, 0)
    is_cancelled(table)
    _start_round(table)
