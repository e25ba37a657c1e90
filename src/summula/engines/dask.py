"""Engine that computes parts on the workers of a Dask cluster: `with summula.engine(client): ...`.

A task is a function and the description of a part. The part contains its rows (arrays, frames), their location (files),
or the futures of the blocks that contain them (Dask collections). Between passes only such blocks stay on the cluster;
parameters are sent with the function. So a task may run on any worker, and be repeated, with a bit-identical result: if
a worker dies, another one takes over.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from distributed import Client, rejoin, secede
from distributed.protocol import pickle

from summula.core.data.chunks import Part
from summula.core.data.layout.blocks import load_kernel
from summula.core.data.sources import MemorySource
from summula.core.engine.engine import SerialEngine, check_watch
from summula.core.engine.threads import one_blas_thread
from summula.core.errors import ClusterError, DataError, ParameterError
from summula.engines.dask_blocks import Blocks, Size, ground_of, grounded, measure
from summula.engines.dask_collections import DaskSource
from summula.engines.dask_holdings import Failure, make_rows, quiet_about_size
from summula.engines.dask_memory import keeping_freed_memory

__all__ = ["DaskEngine", "adapt"]

S = TypeVar("S")
T = TypeVar("T")

_MANY = 2**26  # values from which workers, which outlive a fit, load the kernel that copies columns
_AHEAD = 4  # tasks submitted per thread of the cluster, so that none idles and few results wait
_TICK = 0.2  # seconds of waiting between checks for interruption
_NAP = 0.002  # seconds between two polls of the state of a task
_LOOK = 1.0  # seconds between two queries for the number of workers
_SHARED_BYTES = 1 << 20  # larger functions are sent once and shared between workers


def adapt(client: Any, **options: Any) -> DaskEngine:
    """Return the engine of a client."""
    known = ("chunk_rows", "retries", "worker_timeout")
    for name in options:
        if name not in known:
            raise ParameterError(f"engine(client) has no option {name!r}; it has {', '.join(known)}.")
    return DaskEngine(client, **options)


class DaskEngine(SerialEngine):
    """Engine that computes parts on the workers of a Dask cluster.

    Parameters
    ----------
    client : dask.distributed.Client
    chunk_rows : int, optional
        Rows per chunk; by default chosen from the number of columns. Results depend on it in the last bits.
    retries : int, default=2
        Number of times a failed task is retried. (Errors in the data are raised immediately.)
    worker_timeout : float, default=60
        Seconds without any worker after which a fit is aborted.
    """

    remote = True

    def __init__(
        self, client: Any, *, chunk_rows: int | None = None, retries: int = 2, worker_timeout: float = 60.0
    ) -> None:
        super().__init__(chunk_rows=chunk_rows)
        if not isinstance(client, Client) or client.asynchronous:
            kind = "an asynchronous client" if isinstance(client, Client) else type(client).__name__
            raise ParameterError(f"engine() takes a synchronous dask.distributed.Client, not {kind}: Client(cluster).")
        if not isinstance(retries, int) or retries < 0:
            raise ParameterError(f"retries must be an int >= 0; got {retries!r}.")
        if not worker_timeout > 0:
            raise ParameterError(f"worker_timeout must be a positive number of seconds; got {worker_timeout!r}.")
        self.client, self.retries, self.worker_timeout = client, retries, worker_timeout
        self._await_connection()

    def __repr__(self) -> str:
        return f"DaskEngine({self.client!r}, chunk_rows={self.chunk_rows})"

    def map_ordered(
        self, fn: Callable[[T], S], parts: Sequence[T], *, n_jobs: int | None = None
    ) -> Generator[S, None, None]:
        """Yield the values of `fn` for the parts, in order; at most `n_jobs` are computed at a time."""
        if not len(parts):
            return
        shared = self._shared(fn)
        ground = ground_of(parts[0].source) if isinstance(parts[0], Part) else None
        if not isinstance(ground, DaskSource):
            yield from self._flow(compute_part, parts, lambda some: [(shared, part) for part in some], n_jobs)
            return
        holdings, stub = ground.holdings(self), ground.elsewhere()
        holdings.begin(_ranges(parts))

        def calls(some: Sequence[Any]) -> list[tuple[Any, ...]]:
            rows = holdings.rows(_ranges(some))
            sent = [replace(part, source=grounded(part.source, stub)) for part in some]
            return [(shared, part, one) for part, one in zip(sent, rows, strict=True)]

        yield from self._flow(compute_part, parts, calls, n_jobs)
        holdings.end()

    # ------------------------------------------------------------------------------------------- for Dask collections

    def measured(self, source: DaskSource, j: int) -> Generator[Size, None, None]:
        """Yield the sizes of the blocks of a column of the source."""
        holdings = source.holdings(self)

        def calls(numbers: Sequence[int]) -> list[tuple[Any, ...]]:
            return [(block,) for block in holdings.blocks(j, numbers).values()]

        for k, size in enumerate(self._flow(measure, range(source.n_blocks(j)), calls)):
            holdings.counted(j, k, size)
            yield size

    def computed(self, blocks: Blocks) -> Generator[Any, None, None]:
        """Yield all blocks of a collection, in order."""

        def calls(numbers: Sequence[int]) -> list[tuple[Any, ...]]:
            keys = [blocks.keys[k] for k in numbers]
            return [(block,) for block in self.client.get(blocks.subgraph(*numbers), keys, sync=False)]

        return self._flow(_itself, range(len(blocks.keys)), calls)

    def fetch(self, source: DaskSource, start: int, stop: int) -> MemorySource:
        """Return some rows of the source."""
        part = Part(source, start, stop, stop - start, stop - start)

        def calls(some: Sequence[Part]) -> list[tuple[Any, ...]]:
            rows = source.holdings(self).pieces(_ranges(some))
            return [(part.start, part.stop, *one) for part, one in zip(some, rows, strict=True)]

        rows: MemorySource
        (rows,) = self._flow(make_rows, [part], calls)
        return rows

    # -------------------------------------------------------------------------------------------------- tasks, in order

    def _flow(
        self,
        task: Callable[..., Any],
        items: Iterable[Any],
        calls: Callable[[Sequence[Any]], list[tuple[Any, ...]]],
        n_jobs: int | None = None,
    ) -> Generator[Any, None, None]:
        """Yield the values of `task` for the items, in order; `calls` returns its arguments for some of the items."""
        monitor = _ClusterMonitor(self.client, self.worker_timeout)
        remaining, running = iter(items), deque[_Sent]()

        def send(n: int) -> None:
            some = list(islice(remaining, n))
            if some:
                with monitor.request(), quiet_about_size():
                    columns = zip(*calls(some), strict=True)
                    futures = self.client.map(task, *map(list, columns), pure=False, retries=self.retries)
                running.extend(map(_Sent, some, futures))

        seceded = _secede()
        try:
            ahead = _AHEAD * max(monitor.threads(), 1)
            ahead = ahead if n_jobs is None or n_jobs < 0 else min(ahead, max(n_jobs, 1))
            send(ahead)
            while running:
                values = self._arrived(running, -(-ahead // 2), monitor)
                send(ahead - len(running))
                yield from values
        finally:
            # Pending tasks are cancelled; the results of running ones are dropped when they finish.
            for sent in running:
                sent.future.release()
            if seceded:
                rejoin()

    def _arrived(self, running: deque[_Sent], enough: int, monitor: _ClusterMonitor) -> list[Any]:
        """Remove the finished items at the front of the queue and return their values.

        Requests are expensive, so wait until there are `enough`, or for a short time.
        """
        while True:
            # distributed.wait uses the current client, and setting the current client would affect all threads.
            until = time.monotonic() + _TICK
            for sent in islice(running, enough):
                while sent.future.status in ("pending", "lost") and time.monotonic() < until:
                    time.sleep(_NAP)
            check_watch()
            monitor.check()
            done = _leading(running)
            values = self._gathered([sent.future for sent in done], monitor) if done else []
            if not values:
                continue
            for sent, value in zip(done, values, strict=True):
                if isinstance(value, Failure):
                    raise _with_rows(value.error, sent.item) from None
                running.popleft().future.release()
            return values

    def _gathered(self, futures: list[Any], monitor: _ClusterMonitor) -> list[Any]:
        """Return the values of finished tasks; an empty list if some were just lost with their worker."""
        # A client merges concurrent requests, and cancelling one (as a timeout does) cancels all of them, including
        # those of other fits. So requests are never cancelled, only abandoned.
        with monitor.request():
            gather = self.client.gather(futures, asynchronous=True)
            request = asyncio.run_coroutine_threadsafe(gather, self.client.loop.asyncio_loop)
        while not concurrent.futures.wait([request], timeout=_TICK).done:
            check_watch()
            monitor.check()
        try:
            with monitor.request():
                return list(request.result())
        except Exception:
            if all(future.status == "finished" for future in futures):
                raise
            return []

    def _await_connection(self) -> None:
        # Tasks of a worker that request its client share one, and may get it before it is connected: messages sent in
        # the meantime may be reordered, so that a task arrives before its dependencies.
        until = time.monotonic() + self.worker_timeout
        while self.client.status in ("newly-created", "connecting") and time.monotonic() < until:
            time.sleep(_NAP)

    def _shared(self, fn: Callable[..., Any]) -> Any:
        """Return the function, or a future of it if it is too large to be sent with every task."""
        packed = pickle.dumps(fn)
        if len(packed) < _SHARED_BYTES:
            return fn
        with quiet_about_size():
            return self.client.submit(pickle.loads, packed, pure=False, retries=self.retries)


def _secede() -> bool:
    """Release the worker's thread if called within a task, so that other tasks can use it; return whether it did."""
    try:
        secede()
    except (ValueError, KeyError, AttributeError):  # not in a task, already seceded, or in another thread
        return False
    return True


def compute_part(fn: Callable[[Any], Any], part: Any, rows: Any = None) -> Any:
    """Compute the function of a part on a worker; `rows` are passed separately for Dask collections."""
    if isinstance(rows, tuple):
        rows = make_rows(part.start, part.stop, *rows)
    if isinstance(rows, Failure):
        return rows
    if rows is not None:
        part = replace(part, source=grounded(part.source, rows))
    elif isinstance(part, Part) and (values := part.source.n_rows * part.source.n_features) >= _MANY:
        load_kernel(values)
    try:
        with one_blas_thread(), keeping_freed_memory():
            return fn(part)
    except (DataError, ParameterError, KeyboardInterrupt) as error:
        return Failure(error)


def _itself(value: T) -> T:
    return value


def _ranges(parts: Sequence[Any]) -> list[tuple[int, int]]:
    return [(part.start, part.stop) for part in parts]


class _Sent(NamedTuple):
    """A submitted task."""

    item: Any
    future: Any


def _leading(running: deque[_Sent]) -> list[_Sent]:
    """Return the finished tasks at the front of the queue; raise if the first one failed."""
    if any(sent.future.status == "cancelled" for sent in running):
        raise ClusterError("The tasks of this fit, or their dependencies, were cancelled on the cluster; fit again.")
    first = running[0]
    if first.future.status == "error":
        error = first.future.exception()
        raise _with_rows(error, first.item) from error.with_traceback(first.future.traceback())
    done = []
    for sent in running:
        if sent.future.status != "finished":
            break
        done.append(sent)
    return done


def _with_rows(error: BaseException, item: Any) -> BaseException:
    """Return an error of the same type whose message includes the affected rows."""
    place = f"rows {item.start} to {item.stop}" if isinstance(item, Part) else f"part {item!r}"
    if type(error).__name__ in ("KilledWorker", "NoValidWorkerError"):
        return ClusterError(
            f"{place}: the workers that computed them died repeatedly, most likely because they ran out of memory; "
            "increase the memory of the workers, or use fewer threads per worker."
        )
    try:
        located = type(error)(f"{place}: {error}")
    except Exception:
        located = None
    return located if type(located) is type(error) else RuntimeError(f"{place}: {type(error).__name__}: {error}")


class _ClusterMonitor:
    """Detects the loss of a cluster: no scheduler, or no workers for too long."""

    def __init__(self, client: Any, timeout: float) -> None:
        self._client, self._timeout = client, timeout
        self._last_seen = self._last_check = time.monotonic()

    def threads(self) -> int:
        """Return the number of threads of all workers; 0 if there are none or the scheduler does not respond."""
        if self._client.status != "running":
            return 0
        try:
            return sum(self._client.sync(self._client.scheduler.ncores, callback_timeout=5.0).values())
        except (OSError, TimeoutError):
            return 0

    def check(self) -> None:
        """Raise if the cluster is lost."""
        self.check_open()
        now = time.monotonic()
        if now - self._last_check < min(_LOOK, self._timeout / 2):
            return
        self._last_check = now
        if self.threads():
            self._last_seen = time.monotonic()
        elif now - self._last_seen > self._timeout:
            raise ClusterError(
                f"The Dask cluster has had no workers for {self._timeout:g} s; start some and fit again "
                "(to wait longer: engine(client, worker_timeout=...))."
            )

    @contextmanager
    def request(self) -> Iterator[None]:
        """Convert errors of requests to a lost cluster, which vary, to ClusterError."""
        try:
            yield
        except (ClusterError, TimeoutError):
            raise
        except Exception:
            self.check_open()
            raise

    def check_open(self) -> None:
        """Raise if the client is not connected to a scheduler."""
        # A client that reconnects has lost all its tasks.
        if self._client.status != "running":
            raise ClusterError("The Dask client was closed or lost its scheduler in a fit; reconnect and fit again.")
