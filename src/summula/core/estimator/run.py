"""The state of one fit: its data, time limit, callbacks, and the best model so far."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from summula.core.data.cache import cached
from summula.core.data.chunks import Chunk, Part
from summula.core.data.sources import MappedSource, MemorySource, Source
from summula.core.engine.engine import SerialEngine, ThreadEngine, TreeSum, engine, local_engine
from summula.core.engine.threads import one_blas_thread
from summula.core.errors import ClusterError, DataError
from summula.core.estimator.input.finiteness import raise_if_not_finite
from summula.core.numerics.origins import pilot_origin
from summula.core.numerics.statistics import Statistic, blocks_of_part, sum_of_chunks, sums_of_part
from summula.core.numerics.sums import Sum

__all__ = ["OutOfTime", "Run", "Unnamed", "check_clock"]

S = TypeVar("S", bound=Statistic)
Array = NDArray[Any]

_SHORT = 2**23  # maximum number of values of rows in memory whose sums take about 10 milliseconds
_TASKS = 24  # enough to keep threads busy until the end of a pass


class OutOfTime(Exception):
    """`max_time` is exceeded."""


def check_clock(deadline: float | None) -> None:
    """Raise `OutOfTime` after the deadline."""
    if deadline is not None and time.monotonic() > deadline:
        raise OutOfTime


class Run:
    """The state of one fit: its data, engine, time limit and callbacks; a `quiet` run has no callbacks."""

    def __init__(
        self,
        estimator: Any,
        source: Source,
        X: Any = None,
        y: Any = None,
        *,
        quiet: bool = False,
        deadline: float | None = None,
    ) -> None:
        self.source = source
        self.engine = source.engine()
        self.parts = source.plan(self.engine.chunk_rows)
        self._chunk: Chunk | None = None  # the rows, if they are one chunk in memory
        self.estimator = estimator
        self._data = {"X": X, "y": _target_values(source, y, getattr(estimator, "classes_", None))}
        self.one_target = source.one_target
        self.n_jobs = getattr(estimator, "n_jobs", None)
        self._allows_nan = bool(getattr(estimator, "_allows_nan", False))
        self._rows_are_finite = False
        self._deadline = deadline
        self._offer: Callable[[], None] | None = None
        self._ignores_offers = False
        self._context: Any = None
        if getattr(estimator, "_skl_callbacks", None) and not quiet:
            self._context = estimator._init_callback_context(max_subtasks=None)
            self._context.call_on_fit_task_begin(estimator=estimator, **self._data)

    def use(self, source: Source) -> None:
        """Continue with another source, such as one with expanded features."""
        self.source, self.parts, self._chunk = source, source.plan(self.engine.chunk_rows), None

    def refine(self, work: float) -> None:
        """Split the rows into smaller parts: each value takes `work` times as long as in a plain sum."""
        self._chunk = None
        self.parts = self.source.plan(self.engine.chunk_rows, work)

    def keep_rows(self, *, scattered: bool = False, passes: int = 1) -> None:
        """Decode rows of files once for all later passes; `scattered` if these access rows in random order.

        `passes` are how many are likely: files that are quickly decoded are kept only for many.
        """
        kept = cached(self.source, scattered=scattered, passes=passes)
        if kept is not self.source:
            self.use(kept)

    @overload
    def sum(self, statistic: type[S], params: Any, task: str = ..., *, by_chunk: bool = ...) -> S: ...

    @overload
    def sum(self, statistic: Any, params: Any, task: str = ..., *, by_chunk: bool = ...) -> Any: ...

    def sum(self, statistic: Any, params: Any, task: str = "pass over the rows", *, by_chunk: bool = False) -> Any:
        """Return the statistic of all rows, computed in one pass; raise if NaN or infinities in the rows affect it.

        `by_chunk` schedules rows in memory in smaller parts, for statistics that take more time per row than parts are
        sized for. The result is bit-identical.
        """
        if (chunk := self._only_chunk()) is not None:
            return self._checked(self._sum_here(statistic, params, task, chunk))
        tree: TreeSum[Any] = TreeSum(statistic.merge)
        parts = self.tasks() if by_chunk else self.parts
        context = self._begin(task, len(parts))
        fn = functools.partial(blocks_of_part if parts is self.parts else sums_of_part, statistic, params)
        step: Any = None  # with smaller parts: the sum of the chunks so far in the current grid step
        map_parts = self.engine.map_ordered
        if isinstance(self.engine, ThreadEngine) and self._is_short and not by_chunk:
            map_parts = self.engine.map_short
        with closing(map_parts(fn, parts, n_jobs=self.n_jobs)) as results:
            for values in results:
                for place, value in values:
                    if parts is self.parts:
                        tree.push(value, place)
                    elif place % parts[0].step:
                        step = step.merge(value)
                    else:
                        if step is not None:
                            tree.push(step)
                        step = value
                self._tick(context)
        if step is not None:
            tree.push(step)
        self._end(context)
        return self._checked(tree.result())

    def _only_chunk(self) -> Chunk | None:
        """Return the rows if they are one chunk in memory, else None: the engine's overhead would exceed the sums."""
        if self._chunk is None and (
            len(self.parts) == 1
            and len(self.parts[0]) <= self.parts[0].chunk_rows
            and isinstance(self.source, MemorySource)
            and type(self.engine) in (SerialEngine, ThreadEngine)
        ):
            (self._chunk,) = self.parts[0].chunks()
        return self._chunk

    @property
    def rows_are_few(self) -> bool:
        """Whether the rows are one chunk in memory: submitting them to a thread would take longer than a pass."""
        return self._only_chunk() is not None

    @property
    def _is_short(self) -> bool:
        """Whether a pass is too short for the calling thread to wait for others, and to be reported part by part."""
        source = self.source
        few = isinstance(source, MemorySource) and source.n_rows * source.n_features <= _SHORT
        return few and self._deadline is None and self._context is None

    def _sum_here(self, statistic: Any, params: Any, task: str, chunk: Chunk) -> Any:
        """Return the statistic of rows that are one chunk."""
        context = self._begin(task, 1)
        with one_blas_thread():
            total = sum_of_chunks(statistic, (chunk,), params)
        self._tick(context)
        self._end(context)
        return total

    def _checked(self, total: Any) -> Any:
        """Return the sums; raise with the position of NaN or infinities in the rows if they are not finite."""
        if self.source.weighted and not np.any(getattr(total, "weight", 1.0)):
            raise DataError("All sample weights are zero: at least one row needs a positive weight.")
        if not self._rows_are_finite and not self._is_complete(total):
            # Checked only once: finite rows can still give non-finite sums where a loss overflows.
            self.raise_if_not_finite()
            self._rows_are_finite = True
        return total

    def _is_complete(self, total: Any) -> bool:
        if not isinstance(total, Sum):
            return True
        return total.is_finite() if self._allows_nan else total.is_complete(self.source.n_rows)

    @property
    def is_remote(self) -> bool:
        """Whether parts are computed in other processes, without access to this process's memory."""
        return bool(getattr(self.engine, "remote", False))

    def tasks(self) -> list[Part]:
        """Return the parts, or smaller ones of whole chunks if the rows are in memory."""
        if self.is_remote or not isinstance(self.source, MemorySource):
            return self.parts
        chunk_rows = self.parts[0].chunk_rows
        rows = chunk_rows * max(1, self.source.n_rows // (_TASKS * chunk_rows))
        return [
            replace(part, start=a, stop=min(a + rows, part.stop))
            for part in self.parts
            for a in range(part.start, part.stop, rows)
        ]

    def each(self, fn: Callable[[Part], Any], task: str = "pass over the rows") -> Iterator[Any]:
        """Yield the value of a function for each part, in row order, in one pass."""
        context = self._begin(task, len(self.parts))
        with closing(self.engine.map_ordered(fn, self.parts, n_jobs=self.n_jobs)) as results:
            for result in results:
                yield result
                self._tick(context)
        self._end(context)

    def raise_if_not_finite(self) -> None:
        """Raise DataError naming the position of the first NaN or infinity, if there is one."""
        given = self.source.base if isinstance(self.source, MappedSource) else self.source
        name = self.estimator.name if isinstance(self.estimator, Unnamed) else type(self.estimator).__name__
        raise_if_not_finite(given, name, allow_nan=self._allows_nan)

    def leading(self, rows: int) -> Run:
        """Return a quiet run over the first `rows` rows, loaded into memory."""
        chunk = self.source.chunk(0, min(rows, self.source.n_rows))
        few = MemorySource.of_chunk(chunk, self.source)
        with engine(local_engine()):
            return Run(self.estimator, few, quiet=True, deadline=self._deadline)

    def origin(self) -> NDArray[np.float64]:
        """Return an origin near the mean of [X, Y], computed from the first chunk."""
        return pilot_origin(self.first_chunk())

    def first_chunk(self) -> Chunk:
        """Return the first chunk of rows."""
        if (chunk := self._only_chunk()) is not None:
            return chunk
        first = self.parts[0]
        return self.source.chunk(first.start, min(first.start + first.chunk_rows, first.stop))

    def offer(self, assign: Callable[[], None]) -> None:
        """Register the function that assigns the current model, used if the fit is interrupted before a later offer."""
        if not self._ignores_offers:
            self._offer = assign

    def ignore_offers(self) -> None:
        """Ignore later offers: models offered from now on would be incomplete."""
        self._ignores_offers = True

    def step(self, task: str = "iteration") -> bool:
        """Report a step of an iterative solver to the callbacks; return True if one of them requests to stop."""
        self.check_clock()
        if self._context is None:
            return False
        context = self._begin(task, 0)
        return self._end(context)

    @property
    def has_callbacks(self) -> bool:
        """Whether callbacks are notified of every step."""
        return self._context is not None

    def finish(self) -> None:
        """Notify the callbacks that the fit has ended, and drop the last offer, which may refer to the rows."""
        if self._context is not None:
            self._context.call_on_fit_task_end(estimator=self.estimator, **self._data, reconstruction_attributes=dict)
        self._offer = None

    def _begin(self, task: str, subtasks: int) -> Any:
        if self._context is None:
            return None
        context = self._context.subcontext(task_name=task, max_subtasks=subtasks)
        return context.call_on_fit_task_begin(estimator=self.estimator)

    def _end(self, context: Any) -> bool:
        return context is not None and bool(context.call_on_fit_task_end(estimator=self.estimator))

    def _tick(self, context: Any) -> None:
        if context is not None:
            part = context.subcontext(task_name="part")
            part.call_on_fit_task_begin(estimator=self.estimator)
            part.call_on_fit_task_end(estimator=self.estimator)
        self.check_clock()

    def check_clock(self) -> None:
        """Raise `OutOfTime` after the deadline of the fit."""
        check_clock(self._deadline)

    def keep_offered(self, error: BaseException) -> bool:
        """Handle an interruption: assign the model offered last, if any, and return whether there is one."""
        if self._offer is None or not isinstance(error, KeyboardInterrupt | OutOfTime | ClusterError):
            return False
        self._offer()
        return True


def _target_values(source: Source, y: Any, classes: Array | None) -> Any:
    """Return the target for callbacks: its values or labels, even if y is the name of a column."""
    named = isinstance(y, str) or (isinstance(y, list | tuple) and any(isinstance(name, str) for name in y))
    if not named or not isinstance(source, MemorySource):
        return y
    if source.codes is not None and classes is not None:
        return classes[source.codes]
    return y if source.y is None else source.y[:, 0] if source.one_target else source.y


class Unnamed(BaseEstimator):
    """Placeholder for an estimator when data are read without one; `name` is used in error messages."""

    def __init__(self, name: str = "the computation") -> None:
        self.name = name
