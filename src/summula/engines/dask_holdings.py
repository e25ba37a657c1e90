"""Data of Dask collections that stay on a cluster between passes.

first pass     a task uses the blocks that contain its rows; they are kept as far as they fit in memory
second pass    over the same parts: the rows of each part are stacked first, and kept instead of the blocks
later passes   a task uses its stacked rows on the worker that has them; nothing is transferred

If a part uses a small fraction of a block, the slice is cut on the worker that has the block. Data that are lost with a
worker are recomputed by Dask from the graph of the collection.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import dask.config

from summula.core.errors import DataError
from summula.engines.dask_blocks import Blocks, Piece, Recipe, Size, Values, cut

__all__ = ["Failure", "Holdings", "make_rows", "quiet_about_size"]

_SHARE = 0.4  # maximum fraction of the cluster's memory used by kept data

Range = tuple[int, int]
Span = tuple[Any, int, int, int]  # a block, its length, and the rows of it


class Failure:
    """A deterministic error, returned by a task instead of raised so that it is not retried."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


def make_rows(start: int, stop: int, recipe: Recipe, columns: Sequence[Sequence[Any]]) -> Any:
    """Return the rows of a part, from pieces of blocks."""
    for block, _, _ in (piece for pieces in columns for piece in pieces):
        if isinstance(block, Failure):
            return block
    try:
        return recipe.make(start, stop, columns)
    except DataError as error:
        return Failure(error)


def quiet_about_size() -> Any:
    """Disable Dask's warning about large graphs: parts of arrays contain their rows."""
    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"})


class Holdings:
    """Futures of blocks, or of the rows of parts.

    Attributes
    ----------
    row_bytes : float
        Bytes per row.
    """

    def __init__(self, client: Any, columns: Sequence[Blocks | Values], recipe: Recipe, retries: int) -> None:
        self.client, self.columns, self.recipe, self.retries = client, columns, recipe, retries
        self.row_bytes = 8.0 * (recipe.n_features + recipe.n_targets + recipe.weighted)
        self._room = _SHARE * _memory(client)
        self._reset()

    def _reset(self) -> None:
        self._blocks: dict[tuple[int, int], Any] = {}  # by column and number
        self._staying: set[tuple[int, int]] = set()  # blocks kept for another pass
        self._used = 0.0  # bytes
        self._slices: list[Any] = []  # of blocks, for the tasks submitted last
        self._stacked: dict[Range, Any] = {}  # the rows of parts
        self._growing: dict[Range, Any] | None = None  # stacked rows of the current pass
        self._now: list[Range] = []
        self._last: list[Range] = []

    def clear(self) -> None:
        """Release everything."""
        # Explicitly, since garbage collection may happen late.
        _release(self._blocks.values(), self._slices, self._stacked.values(), (self._growing or {}).values())
        self._reset()

    # ------------------------------------------------------------------------------------------------------- passes

    def begin(self, ranges: list[Range]) -> None:
        """Start a pass over these parts."""
        again = ranges == self._last and not self._stacked.keys() >= set(ranges)
        _release((self._growing or {}).values())  # of an unfinished pass
        self._now, self._growing = ranges, {} if again and self._bytes(ranges) <= self._room else None

    def end(self) -> None:
        """End a pass after all its parts have been computed."""
        self._last = self._now
        if self._growing is not None:
            _release(self._blocks.values(), self._stacked.values())
            self._blocks.clear()
            self._staying.clear()
            self._used = self._bytes(self._now)
            self._stacked, self._growing = self._growing, None

    def _bytes(self, ranges: Sequence[Range]) -> float:
        return self.row_bytes * sum(stop - start for start, stop in ranges)

    def rows(self, ranges: Sequence[Range]) -> list[Any]:
        """Return the argument for the task of each part: a future of its rows, or the recipe and pieces of blocks."""
        # The scheduler already has the tasks that need these slices, since it processes messages in order.
        _release(self._slices)
        self._slices.clear()
        self._drop_blocks_before(ranges[0][0])
        if self._growing is not None:
            made = self._map(
                make_rows, [(*one, *given) for one, given in zip(ranges, self.pieces(ranges), strict=True)]
            )
            self._growing.update(zip(ranges, made, strict=True))
            return made
        others = [one for one in ranges if one not in self._stacked]
        pieces = dict(zip(others, self.pieces(others), strict=True))
        return [pieces[one] if one in pieces else self._stacked[one] for one in ranges]

    def _map(self, fn: Any, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        if not calls:
            return []
        futures: list[Any] = self.client.map(
            fn, *(list(column) for column in zip(*calls, strict=True)), pure=False, retries=self.retries
        )
        return futures

    # -------------------------------------------------------------------------------------------------------- pieces

    def pieces(self, ranges: Sequence[Range]) -> list[tuple[Recipe, list[list[Piece]]]]:
        """Return the recipe and the pieces of each column, for each part."""
        spans = [self._stacked_spans(*one) for one in ranges]
        if self._stacked and sum(b - a for some in spans for _, _, a, b in some) == sum(b - a for a, b in ranges):
            return [(self.recipe, [pieces]) for pieces in self._cut(spans)]
        columns = []
        for j, column in enumerate(self.columns):
            if isinstance(column, Values):
                columns.append([column.read(*one) for one in ranges])
                continue
            places = [column.spans(*one) for one in ranges]
            futures = self.blocks(j, sorted({k for some in places for k, _, _ in some}))
            columns.append(self._cut([[(futures[k], column.lengths[k], a, b) for k, a, b in some] for some in places]))
        return [(self.recipe, list(pieces)) for pieces in zip(*columns, strict=True)]

    def _stacked_spans(self, start: int, stop: int) -> list[Span]:
        return [
            (rows, last - first, max(start - first, 0), min(stop, last) - first)
            for (first, last), rows in self._stacked.items()
            if first < stop and start < last
        ]

    def _cut(self, parts: list[list[Span]]) -> list[list[Piece]]:
        """Return pieces for each part: the block with most of its rows as a whole, and slices of the other blocks."""
        chosen = []
        for spans in parts:
            most = max((b - a for _, _, a, b in spans), default=0)
            chosen.append([(block, a, b, b - a in (length, most)) for block, length, a, b in spans])
        slices = self._map(cut, [(block, a, b) for some in chosen for block, a, b, whole in some if not whole])
        self._slices += slices
        left = iter(slices)
        return [
            [Piece(block, a, b) if whole else Piece(next(left), 0, b - a) for block, a, b, whole in some]
            for some in chosen
        ]

    # -------------------------------------------------------------------------------------------------------- blocks

    def blocks(self, j: int, numbers: Sequence[int]) -> dict[int, Any]:
        """Return the futures of some blocks of a column."""
        column = self.columns[j]
        assert isinstance(column, Blocks)
        missing = [k for k in numbers if (j, k) not in self._blocks]
        if missing:
            keys = [column.keys[k] for k in missing]
            futures = self.client.get(column.subgraph(*missing), keys, sync=False, retries=self.retries)
            for k, future in zip(missing, futures, strict=True):
                self._blocks[j, k] = future
                if column.counted:
                    self._consider((j, k), column.lengths[k] * (8.0 if j else self.row_bytes))
        return {k: self._blocks[j, k] for k in numbers}

    def counted(self, j: int, k: int, size: Size) -> None:
        """Record the size of a block, and keep the block if it fits."""
        self._consider((j, k), size.bytes)
        if (j, k) not in self._staying and (j, k) in self._blocks:
            self._blocks.pop((j, k)).release()

    def _consider(self, block: tuple[int, int], size: float) -> None:
        if block not in self._staying and self._used + size <= self._room:
            self._used += size
            self._staying.add(block)

    def _drop_blocks_before(self, row: int) -> None:
        """Release blocks that no later part of this pass needs, unless they are kept for the next pass."""
        for j, k in list(self._blocks):
            column = self.columns[j]
            over = isinstance(column, Blocks) and column.offsets[k + 1] <= row
            if over and (self._growing is not None or (j, k) not in self._staying):
                self._blocks.pop((j, k)).release()


def _release(*futures: Iterable[Any]) -> None:
    for future in chain(*futures):
        future.release()


def _memory(client: Any) -> float:
    """Return the memory limit of all workers in bytes; infinite if any worker has no limit."""
    limits = [worker.get("memory_limit") or float("inf") for worker in client.scheduler_info(-1)["workers"].values()]
    return float(sum(limits)) if limits else float("inf")
