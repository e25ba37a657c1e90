"""The rows of Dask collections: vertically stacked blocks, slices of which become chunks.

A part of the global grid takes its rows from the blocks that contain them,

    rows [start, stop) of X  =  the slices block_k[a:b], stacked                                              (1)

separately for X, y and the weights, so their blocks need not have the same boundaries. All functions run in the process
that has the blocks: the user's, or a worker.
"""

from __future__ import annotations

import copy
import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, NamedTuple

import dask.base
import numpy as np
from dask.local import get_sync
from dask.optimization import cull
from dask.sizeof import sizeof
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.data.frames import column_numbers, frame_columns, is_frame, pop_columns
from summula.core.data.numbers import WEIGHT, Origin, array_of, real_numbers
from summula.core.data.scan import checked_weight
from summula.core.data.sources import MemorySource, Source
from summula.core.data.sparse_format import canonical_csr, check_sparse
from summula.core.engine.threads import thread_count
from summula.core.errors import DataError
from summula.core.estimator.input.validation import FLOATS, as_targets

__all__ = ["Blocks", "Elsewhere", "Piece", "Recipe", "Size", "Values", "cut", "ground_of", "grounded", "measure"]

Array = NDArray[Any]

_client_lock = threading.Lock()


class Piece(NamedTuple):
    """Rows a to b of a block (or of the future of one)."""

    block: Any
    a: int
    b: int


class Size(NamedTuple):
    """Size of a block."""

    rows: int
    stored: int  # number of stored values, without the zeros of sparse blocks
    bytes: int


def cut(block: Any, a: int, b: int) -> Any:
    """Return some rows of a block."""
    if isinstance(block, MemorySource):
        return block.only(block.first_row + a, block.first_row + b)
    check_sparse(block, "in a block of X")  # slicing trusts its indices
    return block.iloc[a:b] if hasattr(block, "iloc") else block[a:b]


def measure(block: Any) -> Size:
    """Return the size of a block."""
    stored = int(block.nnz) if hasattr(block, "indptr") else int(np.prod(block.shape))
    return Size(int(block.shape[0]), stored, 8 * stored)


# ------------------------------------------------------------------------------------------------------- collections


class Values:
    """A column in local memory, or one value for all rows; its rows are sent with each part."""

    def __init__(self, values: Array, *, repeated: bool = False) -> None:
        self.values, self._repeated = values, repeated
        self.n_rows = None if repeated else len(values)

    def read(self, start: int, stop: int) -> list[Piece]:
        """Return the rows from `start` up to `stop`."""
        rows = np.repeat(self.values, stop - start) if self._repeated else self.values[start:stop]
        return [Piece(rows, 0, stop - start)]

    def forget(self) -> None:
        """Do nothing: there is no cache."""


class Blocks:
    """A collection: its vertically stacked blocks, and the graph that computes them."""

    def __init__(self, collection: Any) -> None:
        self.collection = collection  # keeps persisted data alive
        self.graph, self.keys = _graph_of(collection)
        self._cache = _BlockCache()
        self._set_lengths([] if _unknown(collection) else [int(n) for n in collection.chunks[0]])

    @property
    def counted(self) -> bool:
        """Whether the lengths of the blocks are known."""
        return len(self.lengths) == len(self.keys)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.offsets[-1]

    def count(self, sizes: Sequence[Size]) -> None:
        """Set the lengths of the blocks."""
        self._set_lengths([size.rows for size in sizes])

    def _set_lengths(self, lengths: list[int]) -> None:
        self.lengths, self.offsets = lengths, [0, *accumulate(lengths)]

    def spans(self, start: int, stop: int) -> list[tuple[int, int, int]]:
        """Return block number and row range of each slice in (1); empty blocks are skipped."""
        spans = []
        for k in range(max(bisect_right(self.offsets, start) - 1, 0), len(self.keys)):
            offset = self.offsets[k]
            if offset >= stop:
                break
            a, b = max(start - offset, 0), min(stop - offset, self.lengths[k])
            if a < b:
                spans.append((k, a, b))
        return spans

    def subgraph(self, *numbers: int) -> dict[Any, Any]:
        """Return the tasks that compute some blocks."""
        graph: dict[Any, Any] = cull(self.graph, [self.keys[k] for k in numbers])[0]
        return graph

    def compute(self, k: int) -> Any:
        """Return block k, computed in this thread or fetched from its cluster."""
        return self._compute_all([k])[0]

    def _compute_all(self, numbers: Sequence[int]) -> list[Any]:
        """Return some blocks. One call for all of them: a call costs more than most tasks."""
        if not numbers:
            return []
        client = active_client()
        get = get_sync if client is None else client.get
        return list(get(self.subgraph(*numbers), [self.keys[k] for k in numbers]))

    def read(self, start: int, stop: int) -> list[Piece]:
        """Return the rows from `start` up to `stop`, computed here; blocks shared between parts are computed once."""
        spans = self.spans(start, stop)
        complete = [k for k, a, b in spans if b - a == self.lengths[k]]
        blocks = dict(zip(complete, self._compute_all(complete), strict=True))
        blocks |= {k: self._cache.get(k, self.compute) for k, _, _ in spans if k not in blocks}
        return [Piece(blocks[k], a, b) for k, a, b in spans]

    def narrow(self) -> Blocks:
        """Return a collection with the same rows and a single column, if columns can be computed separately."""
        if hasattr(self.collection, "chunks") or self.collection.ndim == 1:
            return self
        return Blocks(self.collection[[self.collection.columns[0]]])

    def __getstate__(self) -> dict[str, Any]:
        return {"collection": self.collection, "lengths": self.lengths}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["collection"])  # type: ignore[misc]
        self._set_lengths(state["lengths"])

    def forget(self) -> None:
        """Drop the blocks read last."""
        self._cache.clear()


def active_client() -> Any:
    """Return the client Dask would use now, or None."""
    # The first request in a worker creates its client; others wait, so that there are not two, or an unconnected one.
    with _client_lock:
        try:
            get = dask.base.get_scheduler()
        except RuntimeError:  # Dask is configured to use a client but has none; a worker still has its own
            from distributed import get_client

            with suppress(ValueError):
                return get_client()
            raise
    client = getattr(get, "__self__", None)
    return client if type(client).__module__.partition(".")[0] == "distributed" else None


def _unknown(collection: Any) -> bool:
    return not hasattr(collection, "chunks") or bool(np.isnan(np.asarray(collection.chunks[0], float)).any())


def _graph_of(collection: Any) -> tuple[dict[Any, Any], list[Any]]:
    """Return the fused tasks of an array or frame, and the keys of its blocks from top to bottom."""
    if hasattr(collection, "optimize"):  # a frame or series
        collection = collection.optimize()
        return dict(collection.__dask_graph__()), list(collection.__dask_keys__())
    nested, graph = collection.__dask_keys__(), collection.__dask_graph__()
    # Optimising drops data that are already persisted.
    persisted = {key: task for key, task in dict(graph).items() if type(task).__name__ == "Future"}
    fused = dict(collection.__dask_optimize__(graph, nested))
    return {**persisted, **fused}, [key[0] if isinstance(key, list) else key for key in nested]


class _BlockCache:
    """Cache of the blocks requested last; each is computed once, even if several threads request it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._places: OrderedDict[int, _Place] = OrderedDict()

    def get(self, k: int, compute: Callable[[int], Any]) -> Any:
        with self._lock:
            place = self._places.setdefault(k, _Place())
            self._places.move_to_end(k)
            while len(self._places) > thread_count() + 1:  # one more than can be in use at once
                self._places.popitem(last=False)
        with place.lock:
            if not place.values:
                place.values.append(compute(k))
            return place.values[0]

    def clear(self) -> None:
        with self._lock:
            self._places.clear()


class _Place:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.values: list[Any] = []


# --------------------------------------------------------------------------------------------- from blocks to a source


@dataclass(frozen=True)
class Recipe:
    """Conversion of slices of blocks to features, targets and weights: the metadata of a source, without its rows.

    Attributes
    ----------
    estimator : str
        Name of the estimator in error messages.
    targets, weight, offset : names of the columns of frames that are not features
    labelled : bool
        Whether the target consists of codes of class labels.
    """

    estimator: str
    n_features: int
    n_targets: int
    one_target: bool
    names: tuple[str, ...] | None
    target_names: tuple[str, ...] | None
    dtype: np.dtype[Any]
    is_sparse: bool
    weighted: bool
    targets: tuple[str, ...] = ()
    weight: str | None = None
    offset: str | None = None
    labelled: bool = False

    def make(self, start: int, stop: int, columns: Sequence[Sequence[Piece]]) -> MemorySource:
        """Return rows `start` to `stop` from pieces of blocks: of X, and of y and the weights if these are separate."""
        blocks = [[cut(*piece) for piece in pieces] for pieces in columns]
        if isinstance(blocks[0][0], MemorySource):
            return _joined(blocks[0])
        try:
            rows, row_data = self._read(blocks)
        except DataError as error:
            # A block does not know the number of its first row.
            raise DataError(f"{error} (Rows counted from row {start}.)") if start else error from None
        if "weight" in row_data:
            row_data["weight"] = checked_weight(row_data["weight"], start)
        names = self.names, self.target_names
        return replace(MemorySource(rows, None, None, self.dtype, *names, start, self.one_target), **row_data)

    def _read(self, blocks: list[list[Any]]) -> tuple[Any, dict[str, Any]]:
        """Return the features, and the other columns by name."""
        ours = [*self.targets, *(name for name in (self.weight, self.offset) if name is not None)]
        popped: list[list[Any]] = []
        if ours:
            pairs = [pop_columns(block, ours) for block in blocks[0]]
            blocks = [[frame for frame, _ in pairs], *blocks[1:]]
            popped = [[columns[j] for _, columns in pairs] for j in range(len(ours))]
        rows = _stacked([self._features(block) for block in blocks[0]])
        numbers = [np.concatenate([column_numbers(one, self.estimator) for one in column]) for column in popped]
        others = iter(np.concatenate([array_of(block) for block in column]) for column in blocks[1:])
        row_data: dict[str, Any] = {}
        if self.offset is not None:
            row_data["offset"] = numbers.pop().astype(np.float64)
        if self.n_targets or self.labelled:
            given = np.column_stack(numbers[: len(self.targets)]) if self.targets else next(others)
            if self.labelled:
                row_data["codes"] = given.reshape(len(given)).astype(np.int32)
            else:
                row_data["y"] = as_targets(given, len(given), self.estimator).reshape(len(given), -1)
        if self.weighted:
            given = numbers[-1] if self.weight else next(others)
            row_data["weight"] = real_numbers(given, WEIGHT, self.estimator).astype(np.float64)
        return rows, row_data

    def _features(self, block: Any) -> Any:
        if is_frame(block):
            return frame_columns(block, self.estimator)
        if self.is_sparse:
            rows = canonical_csr(block)
            return rows if block.dtype in FLOATS else rows.astype(np.float64)
        values = np.asarray(block)
        if values.dtype in FLOATS:
            return values
        return real_numbers(values, Origin.features(values), self.estimator).astype(np.float64)


def _stacked(pieces: list[Any]) -> Any:
    """Stack features vertically: arrays, tuples of columns, or CSR."""
    if len(pieces) == 1:
        return pieces[0]
    if hasattr(pieces[0], "indptr"):
        from scipy import sparse

        return sparse.vstack(pieces, format="csr")
    if any(isinstance(piece, tuple) for piece in pieces):
        # Frames with a single dtype are converted to arrays, which may differ between blocks.
        columns = [piece if isinstance(piece, tuple) else tuple(piece.T) for piece in pieces]
        return tuple(np.concatenate(column) for column in zip(*columns, strict=True))
    return np.concatenate(pieces)


def _joined(sources: list[MemorySource]) -> MemorySource:
    row_data: dict[str, Any] = {
        name: np.concatenate([one.row_data[name] for one in sources]) for name in sources[0].row_data
    }
    return replace(sources[0], rows=_stacked([one.rows for one in sources]), **row_data)


@sizeof.register(MemorySource)
def _size_of_rows(source: MemorySource) -> int:
    """Return the size in bytes, which Dask uses to plan memory and transfers."""
    rows = source.rows
    if hasattr(rows, "indptr"):
        arrays = [rows.data, rows.indices, rows.indptr]
    else:
        arrays = list(rows) if isinstance(rows, tuple) else [rows]
    return sum(array.nbytes for array in [*arrays, *source.row_data.values()])


class Elsewhere(Source):
    """A source whose rows are in another process: sent with a task, and replaced by the rows on the worker."""

    streams = True  # the rows are not in this process's memory

    def __init__(self, recipe: Recipe, n_rows: int, width: float) -> None:
        self.recipe, self.n_rows, self._width = recipe, n_rows, width
        self.n_features, self.n_targets, self.one_target = recipe.n_features, recipe.n_targets, recipe.one_target
        self.names, self.target_names, self.dtype = recipe.names, recipe.target_names, recipe.dtype
        self.weighted, self.labelled, self.shifted = recipe.weighted, recipe.labelled, recipe.offset is not None

    @property
    def width(self) -> float:
        """Average number of stored values per row."""
        return self._width

    @property
    def is_sparse(self) -> bool:
        """Whether chunks are CSR matrices."""
        return self.recipe.is_sparse

    def chunk(self, start: int, stop: int) -> Chunk:
        """Raise: the rows are not available in this process."""
        raise NotImplementedError("these rows are in another process")

    def only(self, start: int, stop: int) -> Source:
        """Return self, which contains no rows."""
        return self


def ground_of(source: Source) -> Source:
    """Return the source with the rows, which others are functions of."""
    while hasattr(source, "base"):
        source = source.base
    return source


def grounded(source: Source, ground: Source) -> Source:
    """Return the same function of other rows."""
    if not hasattr(source, "base"):
        return ground
    copied = copy.copy(source)
    copied.base = grounded(source.base, ground)
    return copied
