"""Parts computed by the workers of a Dask cluster: `with summula.engine(client): ...`.

A task is a function and the description of a part. The part carries its own rows (arrays, frames), says where they are
(files), or is given the blocks that hold them (Dask collections). Between passes nothing stays on the cluster but such
blocks: parameters travel inside the function. So a task may run anywhere, and again, and the result is the same to
the bit: workers may die, and others take over.
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

_AHEAD = 4  # tasks sent for each thread of the cluster: none idles, few results wait
_TICK = 0.2  # seconds of waiting after which we look whether to go on
_NAP = 0.002  # seconds between two looks at the state of a task
_LOOK = 1.0  # seconds after which we ask again for the workers
_SHARED_BYTES = 1 << 20  # a larger function is sent once, and passed on from worker to worker


def adapt(client: Any, **options: Any) -> DaskEngine:
    """The engine of a client."""
    known = ("chunk_rows", "retries", "worker_timeout")
    for name in options:
        if name not in known:
            raise ParameterError(f"engine(client) has no option {name!r}; it has {', '.join(known)}.")
    return DaskEngine(client, **options)


class DaskEngine(SerialEngine):
    """Parts on the workers of a Dask cluster.

    Parameters
    ----------
    client : dask.distributed.Client
    chunk_rows : int, optional
        Rows a chunk, instead of what the width of the data suggests. Results depend on it in the last bits.
    retries : int, default=2
        How often a task that raised is tried again. (Errors of the data are raised at once.)
    worker_timeout : float, default=60
        Seconds without any worker after which a fit gives up.
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
            raise ParameterError(f"retries must be a whole number, at least 0; got {retries!r}.")
        if not worker_timeout > 0:
            raise ParameterError(f"worker_timeout must be a number of seconds above 0; got {worker_timeout!r}.")
        self.client, self.retries, self.worker_timeout = client, retries, worker_timeout
        self._await_connection()

    def __repr__(self) -> str:
        return f"DaskEngine({self.client!r}, chunk_rows={self.chunk_rows})"

    def map_ordered(
        self, fn: Callable[[T], S], parts: Sequence[T], *, n_jobs: int | None = None
    ) -> Generator[S, None, None]:
        """The values of `fn` over the parts, in the order of the parts; at most `n_jobs` at a time."""
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
        """The sizes of the blocks of a column of the source."""
        holdings = source.holdings(self)

        def calls(numbers: Sequence[int]) -> list[tuple[Any, ...]]:
            return [(block,) for block in holdings.blocks(j, numbers).values()]

        for k, size in enumerate(self._flow(measure, range(source.n_blocks(j)), calls)):
            holdings.counted(j, k, size)
            yield size

    def computed(self, blocks: Blocks) -> Generator[Any, None, None]:
        """All blocks of a collection, in their order."""

        def calls(numbers: Sequence[int]) -> list[tuple[Any, ...]]:
            keys = [blocks.keys[k] for k in numbers]
            return [(block,) for block in self.client.get(blocks.subgraph(*numbers), keys, sync=False)]

        return self._flow(_itself, range(len(blocks.keys)), calls)

    def fetch(self, source: DaskSource, start: int, stop: int) -> MemorySource:
        """Some rows of the source."""
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
        """The values of `task` over the items, in their order; `calls` gives its arguments for some of them."""
        vigil = _Vigil(self.client, self.worker_timeout)
        remaining, running = iter(items), deque[_Sent]()

        def send(n: int) -> None:
            some = list(islice(remaining, n))
            if some:
                with vigil.asking(), quiet_about_size():
                    columns = zip(*calls(some), strict=True)
                    futures = self.client.map(task, *map(list, columns), pure=False, retries=self.retries)
                running.extend(map(_Sent, some, futures))

        giving_way = _give_way()
        try:
            ahead = _AHEAD * max(vigil.threads(), 1)
            ahead = ahead if n_jobs is None or n_jobs < 0 else min(ahead, max(n_jobs, 1))
            send(ahead)
            while running:
                values = self._arrived(running, -(-ahead // 2), vigil)
                send(ahead - len(running))
                yield from values
        finally:
            # What has not begun is taken back; what runs is forgotten when it is done.
            for sent in running:
                sent.future.release()
            if giving_way:
                rejoin()

    def _arrived(self, running: deque[_Sent], enough: int, vigil: _Vigil) -> list[Any]:
        """The values of the first item and of those after it that are there; they leave the queue.

        Asking costs time: we wait until there are `enough`, or for a moment.
        """
        while True:
            # Not distributed.wait: it takes the current client, and making ours the current one is felt by all threads.
            until = time.monotonic() + _TICK
            for sent in islice(running, enough):
                while sent.future.status in ("pending", "lost") and time.monotonic() < until:
                    time.sleep(_NAP)
            check_watch()
            vigil.look()
            done = _leading(running)
            values = self._gathered([sent.future for sent in done], vigil) if done else []
            if not values:
                continue
            for sent, value in zip(done, values, strict=True):
                if isinstance(value, Failure):
                    raise _told(value.error, sent.item) from None
                running.popleft().future.release()
            return values

    def _gathered(self, futures: list[Any], vigil: _Vigil) -> list[Any]:
        """The values of tasks that are done; none when some of them were lost with their worker just now."""
        # A client answers requests made at the same time together, and to cancel one, as a timeout does, cancels all:
        # those of other fits too. So a request is never cancelled; who does not want to wait leaves it to itself.
        with vigil.asking():
            gather = self.client.gather(futures, asynchronous=True)
            request = asyncio.run_coroutine_threadsafe(gather, self.client.loop.asyncio_loop)
        while not concurrent.futures.wait([request], timeout=_TICK).done:
            check_watch()
            vigil.look()
        try:
            with vigil.asking():
                return list(request.result())
        except Exception:
            if all(future.status == "finished" for future in futures):
                raise
            return []

    def _await_connection(self) -> None:
        # The first tasks of a worker that ask for its client share one, and all but the first get it before it is
        # connected: messages sent meanwhile may overtake each other, and a task come before what it needs.
        until = time.monotonic() + self.worker_timeout
        while self.client.status in ("newly-created", "connecting") and time.monotonic() < until:
            time.sleep(_NAP)

    def _shared(self, fn: Callable[..., Any]) -> Any:
        """The function, or the future of one that is too large to go with every task."""
        packed = pickle.dumps(fn)
        if len(packed) < _SHARED_BYTES:
            return fn
        with quiet_about_size():
            return self.client.submit(pickle.loads, packed, pure=False, retries=self.retries)


def _give_way() -> bool:
    """In a task of a worker: leave its place to those we wait for; True when there was one to leave."""
    try:
        secede()
    except (ValueError, KeyError, AttributeError):  # not in a task; its place left already; in a thread of its own
        return False
    return True


def compute_part(fn: Callable[[Any], Any], part: Any, rows: Any = None) -> Any:
    """What a worker does: the value of the function over a part, whose rows come along where it has none."""
    if isinstance(rows, tuple):
        rows = make_rows(part.start, part.stop, *rows)
    if isinstance(rows, Failure):
        return rows
    if rows is not None:
        part = replace(part, source=grounded(part.source, rows))
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
    """A task under way."""

    item: Any
    future: Any


def _leading(running: deque[_Sent]) -> list[_Sent]:
    """The tasks that are done, from the first to the first that is not; an error of the first is raised."""
    if any(sent.future.status == "cancelled" for sent in running):
        raise ClusterError("The tasks of this fit, or what they need, were cancelled on the cluster; fit again.")
    first = running[0]
    if first.future.status == "error":
        error = first.future.exception()
        raise _told(error, first.item) from error.with_traceback(first.future.traceback())
    done = []
    for sent in running:
        if sent.future.status != "finished":
            break
        done.append(sent)
    return done


def _told(error: BaseException, item: Any) -> BaseException:
    """The same kind of error, with the rows it is about."""
    place = f"rows {item.start} to {item.stop}" if isinstance(item, Part) else f"part {item!r}"
    if type(error).__name__ in ("KilledWorker", "NoValidWorkerError"):
        return ClusterError(
            f"{place}: the workers that computed them died again and again, most likely for want of memory; "
            "give the workers more, or have fewer threads in each."
        )
    try:
        told = type(error)(f"{place}: {error}")
    except Exception:
        told = None
    return told if type(told) is type(error) else RuntimeError(f"{place}: {type(error).__name__}: {error}")


class _Vigil:
    """Notices that a cluster is lost: its scheduler gone, or no worker for too long."""

    def __init__(self, client: Any, timeout: float) -> None:
        self._client, self._timeout = client, timeout
        self._seen = self._looked = time.monotonic()

    def threads(self) -> int:
        """Threads of all workers; 0 when there are none or nobody answers."""
        if self._client.status != "running":
            return 0
        try:
            return sum(self._client.sync(self._client.scheduler.ncores, callback_timeout=5.0).values())
        except (OSError, TimeoutError):
            return 0

    def look(self) -> None:
        """Raise when the cluster is lost."""
        self.check_open()
        now = time.monotonic()
        if now - self._looked < min(_LOOK, self._timeout / 2):
            return
        self._looked = now
        if self.threads():
            self._seen = time.monotonic()
        elif now - self._seen > self._timeout:
            raise ClusterError(
                f"The Dask cluster has had no workers for {self._timeout:g} s; start some and fit again "
                "(to wait longer: engine(client, worker_timeout=...))."
            )

    @contextmanager
    def asking(self) -> Iterator[None]:
        """What is asked of a cluster that is gone fails in many ways: say one thing."""
        try:
            yield
        except (ClusterError, TimeoutError):
            raise
        except Exception:
            self.check_open()
            raise

    def check_open(self) -> None:
        """Raise when there is no scheduler to talk to."""
        # A client that connects anew has lost all its tasks.
        if self._client.status != "running":
            raise ClusterError("The Dask client was closed, or lost its scheduler, in a fit; connect and fit again.")
