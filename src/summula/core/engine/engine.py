"""Engines evaluate a function on each part of the rows and add up the results.

    map_reduce(f, parts, merge) = merge of f(part) over all parts

Merging follows a binary tree over the positions of the parts, independent of which thread computed a part and when, so
results are bit-identical for any number of threads.
"""

from __future__ import annotations

import importlib
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import CancelledError, Future, wait
from contextlib import closing, contextmanager
from contextvars import ContextVar, copy_context
from itertools import islice
from numbers import Integral
from threading import Event
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from summula.core.engine.threads import inside_pool, one_blas_thread, pool, thread_count
from summula.core.errors import ParameterError

__all__ = [
    "Engine",
    "SerialEngine",
    "ThreadEngine",
    "TreeSum",
    "check_watch",
    "chosen_engine",
    "current_engine",
    "engine",
    "local_engine",
    "map_batches",
    "reading_ahead",
    "watched",
]

S = TypeVar("S")
T = TypeVar("T")


class TreeSum(Generic[S]):
    """A running sum over a stream of values, associated as a binary tree over their positions (pairwise summation).

    A block of level k is the sum of 2**k values starting at a multiple of 2**k. Two neighbouring blocks are merged as
    soon as they form a block of the next level, so at most about log2(n) sums are stored. A worker that has the values
    from `start` on returns their blocks; pushing the blocks gives the same tree as pushing the values.
    """

    def __init__(self, merge: Callable[[S, S], S], start: int = 0) -> None:
        self._merge = merge
        self._next = start
        self._blocks: list[tuple[int, S]] = []
        self._places: list[int] = []

    def push(self, value: S, level: int = 0) -> None:
        """Add the next value, or block of values."""
        place = self._next
        self._next += 1 << level
        while self._blocks and self._blocks[-1][0] == level and self._places[-1] % (2 << level) == 0:
            value = self._merge(self._blocks.pop()[1], value)
            place, level = self._places.pop(), level + 1
        self._blocks.append((level, value))
        self._places.append(place)

    def blocks(self) -> list[tuple[int, S]]:
        """Return the blocks so far as pairs (level, sum), from left to right."""
        return list(self._blocks)

    def result(self) -> S:
        """Return the sum of all values so far."""
        if not self._blocks:
            raise ValueError("cannot sum over zero parts")
        total = self._blocks[-1][1]
        for _, block in reversed(self._blocks[:-1]):
            total = self._merge(block, total)
        return total


@runtime_checkable
class Engine(Protocol):
    """Protocol of engines, which compute the parts of a sum in any order and add them in a fixed one."""

    chunk_rows: int | None

    def map_ordered(
        self, fn: Callable[[T], S], parts: Sequence[T], *, n_jobs: int | None = None
    ) -> Generator[S, None, None]:
        """Yield the values of `fn` for the parts, in order."""

    def map_reduce(
        self,
        fn: Callable[[T], S],
        parts: Sequence[T],
        merge: Callable[[S, S], S],
        *,
        n_jobs: int | None = None,
        on_part: Callable[[], None] | None = None,
    ) -> S:
        """Return the sum of `fn` over the parts; `on_part` is called after each and may raise to stop."""
        total = TreeSum(merge)
        with closing(self.map_ordered(fn, parts, n_jobs=n_jobs)) as values:
            for value in values:
                total.push(value)
                if on_part is not None:
                    on_part()
        return total.result()


def _is_whole(number: Any) -> bool:
    return isinstance(number, Integral)


class SerialEngine(Engine):
    """Engine that computes all parts in the calling thread."""

    def __init__(self, *, chunk_rows: int | None = None) -> None:
        if chunk_rows is not None and (not _is_whole(chunk_rows) or chunk_rows < 1):
            raise ParameterError(f"chunk_rows must be an int >= 1 or None; got {chunk_rows!r}.")
        self.chunk_rows = chunk_rows

    def __repr__(self) -> str:
        return f"SerialEngine(chunk_rows={self.chunk_rows})"

    def map_ordered(
        self, fn: Callable[[T], S], parts: Sequence[T], *, n_jobs: int | None = None
    ) -> Generator[S, None, None]:
        """Yield the values of `fn` for the parts, in order."""
        for part in parts:
            with one_blas_thread():
                value = fn(part)
            yield value


class ThreadEngine(SerialEngine):
    """Engine that computes parts on the thread pool of this process (the default).

    Parameters
    ----------
    n_jobs : int, optional
        Maximum number of threads; -1 or None uses all threads of the pool.
    chunk_rows : int, optional
        Rows per chunk; by default chosen from the number of columns. Results depend on it in the last bits.
    """

    def __init__(self, n_jobs: int | None = None, *, chunk_rows: int | None = None) -> None:
        super().__init__(chunk_rows=chunk_rows)
        if n_jobs is not None and not _is_whole(n_jobs):
            raise ParameterError(f"n_jobs must be an int (-1 uses all threads) or None; got {n_jobs!r}.")
        self.n_jobs = n_jobs

    def __repr__(self) -> str:
        return f"ThreadEngine(n_jobs={self.n_jobs}, chunk_rows={self.chunk_rows})"

    def threads(self, n_jobs: int | None = None) -> int:
        """Return the number of threads that are used."""
        here = thread_count(self.n_jobs)
        return here if n_jobs is None else min(here, thread_count(n_jobs))

    def parts_ahead(self, n_jobs: int | None = None) -> int:
        """Return the number of parts that are computed or queued at the same time."""
        threads = self.threads(n_jobs)
        if threads == 1:
            return 1
        # One part is queued for each that runs, so threads never idle and few results are kept in memory.
        # (Submitting fewer parts limits the number of threads in use.)
        return 2 * threads if threads == pool()._max_workers else threads

    def map_ordered(
        self, fn: Callable[[T], S], parts: Sequence[T], *, n_jobs: int | None = None
    ) -> Generator[S, None, None]:
        """Yield the values of `fn` for the parts, in order."""
        if len(parts) < 2 or inside_pool() or self.threads(n_jobs) == 1:
            yield from super().map_ordered(fn, parts)
            return
        remaining = iter(parts)
        running: deque[Future[S]] = deque()
        executor, stopping = pool(), Event()

        def submit(part: T) -> None:
            context = copy_context()
            context.run(_stopping.set, stopping)
            running.append(executor.submit(context.run, fn, part))

        with one_blas_thread():
            try:
                for part in islice(remaining, self.parts_ahead(n_jobs)):
                    submit(part)
                while running:
                    value = running[0].result()
                    running.popleft()
                    for part in islice(remaining, 1):
                        submit(part)
                    yield value
            finally:
                # After an error or Ctrl-C no task may access the user's arrays any more.
                stopping.set()
                for future in running:
                    future.cancel()
                wait(running)

    def map_short(
        self, fn: Callable[[T], S], parts: Sequence[T], *, n_jobs: int | None = None
    ) -> Generator[S, None, None]:
        """Yield the values of `fn` for a few parts that take about as long as waking a thread, in order.

        The calling thread computes as many of them as it can, instead of waiting for threads of the pool. Nothing can
        stop it in between but Ctrl-C.
        """
        threads = min(self.threads(n_jobs), len(parts))
        if threads < 2 or inside_pool():
            yield from super().map_ordered(fn, parts)
            return
        values: dict[int, S] = {}
        errors: dict[int, BaseException] = {}
        remaining = deque(enumerate(parts))

        def work() -> None:
            while remaining:
                try:
                    place, part = remaining.popleft()
                except IndexError:  # another thread took the last one
                    return
                try:
                    values[place] = fn(part)
                except BaseException as error:
                    errors[place] = error
                    remaining.clear()

        with one_blas_thread():
            helpers = [pool().submit(copy_context().run, work) for _ in range(threads - 1)]
            try:
                work()
            finally:
                remaining.clear()
                wait([helper for helper in helpers if not helper.cancel()])
        if errors:
            raise errors[min(errors)]
        for place in range(len(parts)):
            yield values.pop(place)


_current: ContextVar[Engine | None] = ContextVar("summula_engine", default=None)
_default = ThreadEngine()


def current_engine() -> Engine:
    """Return the engine that fits currently use."""
    return _current.get() or _default


def chosen_engine() -> Engine | None:
    """Return the engine of the enclosing with-block, or None outside of any."""
    return _current.get()


def local_engine() -> Engine:
    """Return the current engine if its tasks share this process's memory, else a thread engine with equal chunks."""
    now = current_engine()
    return ThreadEngine(chunk_rows=now.chunk_rows) if getattr(now, "remote", False) else now


_ahead: ContextVar[bool] = ContextVar("summula_reading_ahead", default=False)


@contextmanager
def reading_ahead() -> Iterator[None]:
    """Let `map_batches` compute ahead of its consumer, which must be part of this library, such as a file writer."""
    token = _ahead.set(True)
    try:
        yield
    finally:
        _ahead.reset(token)


def map_batches(
    where: Engine, fn: Callable[[T], S], parts: Sequence[T], *, n_jobs: int | None = None
) -> Generator[S, None, None]:
    """Yield the values of `fn` for the parts, in order, to an iterator consumed by the user's code.

    While the user's code runs, no part is being computed and the number of BLAS threads is the user's: a group of parts
    is computed in parallel, and its values are yielded one by one before the next group starts.
    """
    if _ahead.get() or not isinstance(where, ThreadEngine):
        with closing(where.map_ordered(fn, parts, n_jobs=n_jobs)) as values:
            yield from values
        return
    remaining = iter(parts)
    while group := list(islice(remaining, where.parts_ahead(n_jobs))):
        ready: deque[S] = deque()
        error: Exception | None = None
        try:
            ready.extend(where.map_ordered(fn, group, n_jobs=n_jobs))
        except Exception as failed:  # raised after the values before it have been yielded
            error = failed
        while ready:
            yield ready.popleft()
        if error is not None:
            raise error


_watch: ContextVar[Callable[[], None] | None] = ContextVar("summula_watch", default=None)
_stopping: ContextVar[Event | None] = ContextVar("summula_stopping", default=None)  # set when results are not needed


@contextmanager
def watched(check: Callable[[], None]) -> Iterator[None]:
    """Let engines call `check` while they wait; it raises to stop them."""
    token = _watch.set(check)
    try:
        yield
    finally:
        _watch.reset(token)


def check_watch() -> None:
    """Called by engines while they wait, and by long tasks: raise if the time limit of the fit is exceeded.

    In a task of the thread pool, also raise if its result is not needed any more, after an error or Ctrl-C.
    """
    stopping = _stopping.get()
    if stopping is not None and stopping.is_set():
        raise CancelledError
    check = _watch.get()
    if check is not None:
        check()


def _make(kind: Any, options: dict[str, Any]) -> Engine:
    if isinstance(kind, str):
        if kind not in _OPTIONS:
            raise ParameterError(f"Unknown engine {kind!r}; the engines are 'threads' and 'serial'.")
        for name in options:
            if name not in _OPTIONS[kind]:
                raise ParameterError(f"engine({kind!r}) has no option {name!r}; it has {' and '.join(_OPTIONS[kind])}.")
        return ThreadEngine(**options) if kind == "threads" else SerialEngine(**options)
    if isinstance(kind, Engine):
        if options:
            raise ParameterError(f"{kind!r} is already an engine: pass {', '.join(options)} to its constructor.")
        return kind
    for package in (base.__module__.partition(".")[0] for base in type(kind).__mro__):
        if package in _ADAPTERS:
            made: Engine = importlib.import_module(_ADAPTERS[package]).adapt(kind, **options)
            return made
    raise ParameterError(f"engine() takes 'threads', 'serial' or an engine object, not {type(kind).__name__} {kind!r}.")


_OPTIONS = {"threads": ("n_jobs", "chunk_rows"), "serial": ("chunk_rows",)}

# Cluster clients are recognised by their package, whose adapter is then imported by name.
_ADAPTERS = {"distributed": "summula.engines.dask"}


@contextmanager
def engine(kind: Any = "threads", **options: Any) -> Iterator[Engine]:
    """Select the engine that fits inside a with-block use.

    Parameters
    ----------
    kind : {"threads", "serial"}, Engine or dask.distributed.Client
        Threads of this process, the calling thread only, an existing engine, or the workers of a Dask cluster.
    **options
        `n_jobs` (threads only): maximum number of threads. `chunk_rows`: rows per chunk. For a Dask client also
        `retries` and `worker_timeout`: see `summula.engines.dask.DaskEngine`.

    Examples
    --------
    >>> import numpy as np, summula
    >>> from summula.linear_model import LinearRegression
    >>> X = np.arange(6.0).reshape(3, 2) ** 2
    >>> with summula.engine("serial"):
    ...     model = LinearRegression().fit(X, X[:, 0])
    >>> model.coef_.round(6) + 0.0
    array([1., 0.])
    """
    chosen = _make(kind, options)
    token = _current.set(chosen)
    try:
        yield chosen
    finally:
        _current.reset(token)
