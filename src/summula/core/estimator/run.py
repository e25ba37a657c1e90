"""One fit under way: sums over its rows, its clock, its callbacks, and the best model so far."""

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
from summula.core.engine.engine import TreeSum, engine, local_engine
from summula.core.errors import ClusterError, DataError
from summula.core.estimator.validation import raise_if_not_finite
from summula.core.numerics.statistics import Statistic, blocks_of_part, pilot_origin
from summula.core.numerics.sums import Sum

__all__ = ["OutOfTime", "Run", "Unnamed", "check_clock"]

S = TypeVar("S", bound=Statistic)
Array = NDArray[Any]


class OutOfTime(Exception):
    """`max_time` is over."""


def check_clock(deadline: float | None) -> None:
    """Raise `OutOfTime` after the deadline."""
    if deadline is not None and time.monotonic() > deadline:
        raise OutOfTime


class Run:
    """One fit under way: its data, engine, clock and callbacks; `quiet` does without the last two."""

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
        self.estimator = estimator
        self._data = {"X": X, "y": _target_values(source, y, getattr(estimator, "classes_", None))}
        self.one_target = source.one_target
        self.n_jobs = getattr(estimator, "n_jobs", None)
        self._allows_nan = bool(getattr(estimator, "_allows_nan", False))
        self._rows_are_finite = False
        self._deadline = deadline
        self._offer: Callable[[], None] | None = None
        self._withholds = False
        self._context: Any = None
        if getattr(estimator, "_skl_callbacks", None) and not quiet:
            self._context = estimator._init_callback_context(max_subtasks=None)
            self._context.call_on_fit_task_begin(estimator=estimator, **self._data)

    def use(self, source: Source) -> None:
        """Go on with another source, such as a lifted one."""
        self.source, self.parts = source, source.plan(self.engine.chunk_rows)

    def refine(self, work: float) -> None:
        """Cut the rows into smaller parts: the work on each value is so many times that of a sum."""
        self.parts = self.source.plan(self.engine.chunk_rows, work)

    def keep_rows(self, *, scattered: bool = False) -> None:
        """Decode rows of files once for all passes to come, which may want them scattered: for fits of several."""
        kept = cached(self.source, scattered=scattered)
        if kept is not self.source:
            self.use(kept)

    @overload
    def sum(self, statistic: type[S], params: Any, task: str = ..., *, by_chunk: bool = ...) -> S: ...

    @overload
    def sum(self, statistic: Any, params: Any, task: str = ..., *, by_chunk: bool = ...) -> Any: ...

    def sum(self, statistic: Any, params: Any, task: str = "pass over the rows", *, by_chunk: bool = False) -> Any:
        """The statistic of all rows, in one pass; NaN and infinities that show in it are located in the rows.

        `by_chunk` hands out rows in memory chunk by chunk: for statistics that do more work per row than a part is
        sized for. The sum has the same bits.
        """
        parts = self.tasks() if by_chunk else self.parts
        context = self._begin(task, len(parts))
        tree: TreeSum[Any] = TreeSum(statistic.merge)
        step: Any = None  # where parts are single chunks: the sum of those so far of one step of the grid
        fn = functools.partial(blocks_of_part, statistic, params)
        with closing(self.engine.map_ordered(fn, parts, n_jobs=self.n_jobs)) as results:
            for part, blocks in zip(parts, results, strict=True):
                if parts is self.parts:
                    for level, value in blocks:
                        tree.push(value, level)
                elif part.start % part.step:
                    step = step.merge(blocks[0][1])
                else:
                    if step is not None:
                        tree.push(step)
                    step = blocks[0][1]
                self._tick(context)
        if step is not None:
            tree.push(step)
        self._end(context)
        total = tree.result()
        if self.source.weighted and not np.any(getattr(total, "weight", 1.0)):
            raise DataError("Every sample_weight is zero; there is nothing to fit: give some row a positive weight.")
        if not self._rows_are_finite and not self._is_complete(total):
            # Once only: finite rows may have sums that are not, at a point where a loss overflows.
            self.raise_if_not_finite()
            self._rows_are_finite = True
        return total

    def _is_complete(self, total: Any) -> bool:
        if not isinstance(total, Sum):
            return True
        return total.is_finite() if self._allows_nan else total.is_complete(self.source.n_rows)

    @property
    def is_remote(self) -> bool:
        """Whether parts are computed where the memory of this process is not seen."""
        return bool(getattr(self.engine, "remote", False))

    def tasks(self) -> list[Part]:
        """The parts, cut into single chunks where the rows are in memory."""
        if self.is_remote or not isinstance(self.source, MemorySource):
            return self.parts
        return [
            replace(part, start=a, stop=min(a + part.chunk_rows, part.stop))
            for part in self.parts
            for a in range(part.start, part.stop, part.chunk_rows)
        ]

    def each(self, fn: Callable[[Part], Any], task: str = "pass over the rows") -> Iterator[Any]:
        """What a function says of each part, in the order of the rows, in one pass."""
        context = self._begin(task, len(self.parts))
        with closing(self.engine.map_ordered(fn, self.parts, n_jobs=self.n_jobs)) as results:
            for result in results:
                yield result
                self._tick(context)
        self._end(context)

    def raise_if_not_finite(self) -> None:
        """Raise a sentence that says where the first NaN or infinity is; return when there is none."""
        given = self.source.base if isinstance(self.source, MappedSource) else self.source
        name = self.estimator.name if isinstance(self.estimator, Unnamed) else type(self.estimator).__name__
        raise_if_not_finite(given, name, allow_nan=self._allows_nan)

    def leading(self, rows: int) -> Run:
        """A quiet run over the first rows alone, held in memory."""
        chunk = self.source.chunk(0, min(rows, self.source.n_rows))
        few = MemorySource.of_chunk(chunk, self.source)
        with engine(local_engine()):
            return Run(self.estimator, few, quiet=True, deadline=self._deadline)

    def origin(self) -> NDArray[np.float64]:
        """An origin near the mean of [X, Y], from the leading chunk."""
        return pilot_origin(self.first_chunk())

    def first_chunk(self) -> Chunk:
        """The leading rows."""
        first = self.parts[0]
        return self.source.chunk(first.start, min(first.start + first.chunk_rows, first.stop))

    def offer(self, assign: Callable[[], None]) -> None:
        """Keep this model, unless a better one is offered, if the fit is cut short."""
        if not self._withholds:
            self._offer = assign

    def withhold(self) -> None:
        """Keep no model if the fit is cut short: what is offered from now on would lack a part."""
        self._withholds = True

    def step(self, task: str = "iteration") -> bool:
        """Mark a step of an iterative solver; True when a callback asks to stop."""
        self.check_clock()
        if self._context is None:
            return False
        context = self._begin(task, 0)
        return self._end(context)

    def finish(self) -> None:
        """Tell the callbacks that the fit is over, and drop what was offered on the way: it may refer to the rows."""
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

    def settle(self, error: BaseException) -> bool:
        """After an interruption: assign what was offered, if anything was; True when there is a model."""
        if self._offer is None or not isinstance(error, KeyboardInterrupt | OutOfTime | ClusterError):
            return False
        self._offer()
        return True


def _target_values(source: Source, y: Any, classes: Array | None) -> Any:
    """The target as callbacks want it: its values or labels, also where the user gave the name of a column."""
    named = isinstance(y, str) or (isinstance(y, list | tuple) and any(isinstance(name, str) for name in y))
    if not named or not isinstance(source, MemorySource):
        return y
    if source.codes is not None and classes is not None:
        return classes[source.codes]
    return y if source.y is None else source.y[:, 0] if source.one_target else source.y


class Unnamed(BaseEstimator):
    """Stands for an estimator where data are read and there is none; `name` is what errors call the computation."""

    def __init__(self, name: str = "the computation") -> None:
        self.name = name
