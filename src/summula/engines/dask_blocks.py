"""The rows of Dask collections: blocks one below the other, and how slices of them become chunks.

A part of the global grid takes what it needs from the blocks its rows lie in,

    rows [start, stop) of X  =  the slices block_k[a:b], stacked                                              (1)

for X, y and the weights each by themselves, so their blocks need not have the same boundaries. Everything here runs
in whichever process has the blocks: that of the user, or a worker.
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
from summula.core.data.scan import _checked_weight
from summula.core.data.sources import MemorySource, Source
from summula.core.data.sparse_format import check_sparse
from summula.core.engine.threads import thread_count
from summula.core.errors import DataError
from summula.core.estimator.validation import _FLOATS, _targets

__all__ = ["Blocks", "Elsewhere", "Piece", "Recipe", "Size", "Values", "cut", "ground_of", "grounded", "measure"]

Array = NDArray[Any]

_asking = threading.Lock()


class Piece(NamedTuple):
    """Rows a to b of a block (or of the future of one)."""

    block: Any
    a: int
    b: int


class Size(NamedTuple):
    """How much a block holds."""

    rows: int
    stored: int  # values, zeros of sparse blocks left out
    bytes: int


def cut(block: Any, a: int, b: int) -> Any:
    """Some rows of a block."""
    if isinstance(block, MemorySource):
        return block.only(block.first_row + a, block.first_row + b)
    check_sparse(block, "in a block of X")  # slicing trusts its indices
    return block.iloc[a:b] if hasattr(block, "iloc") else block[a:b]


def measure(block: Any) -> Size:
    """How much a block holds."""
    stored = int(block.nnz) if hasattr(block, "indptr") else int(np.prod(block.shape))
    return Size(int(block.shape[0]), stored, 8 * stored)


# ------------------------------------------------------------------------------------------------------- collections


class Values:
    """A column that is here already, or one value for all rows: every part takes its own rows of it along."""

    def __init__(self, values: Array, *, repeated: bool = False) -> None:
        self.values, self._repeated = values, repeated
        self.n_rows = None if repeated else len(values)

    def read(self, start: int, stop: int) -> list[Piece]:
        """The rows from `start` up to `stop`."""
        rows = np.repeat(self.values, stop - start) if self._repeated else self.values[start:stop]
        return [Piece(rows, 0, stop - start)]

    def forget(self) -> None:
        """There is nothing to forget."""


class Blocks:
    """One collection: its blocks one below the other, and the graph that computes them."""

    def __init__(self, collection: Any) -> None:
        self.collection = collection  # what it has persisted lives as long as someone holds it
        self.graph, self.keys = _graph_of(collection)
        self._shelf = _Shelf()
        self._set_lengths([] if _unknown(collection) else [int(n) for n in collection.chunks[0]])

    @property
    def counted(self) -> bool:
        """Whether the lengths of the blocks are known."""
        return len(self.lengths) == len(self.keys)

    @property
    def n_rows(self) -> int:
        """How many rows."""
        return self.offsets[-1]

    def count(self, sizes: Sequence[Size]) -> None:
        """Note the lengths of the blocks."""
        self._set_lengths([size.rows for size in sizes])

    def _set_lengths(self, lengths: list[int]) -> None:
        self.lengths, self.offsets = lengths, [0, *accumulate(lengths)]

    def spans(self, start: int, stop: int) -> list[tuple[int, int, int]]:
        """Equation (1): the number of each block and the rows of it; blocks without rows are passed over."""
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
        """What it takes to compute some blocks."""
        graph: dict[Any, Any] = cull(self.graph, [self.keys[k] for k in numbers])[0]
        return graph

    def compute(self, k: int) -> Any:
        """Block k, computed in this thread or fetched from the cluster it is on."""
        client = active_client()
        get = get_sync if client is None else client.get
        return get(self.subgraph(k), [self.keys[k]])[0]

    def read(self, start: int, stop: int) -> list[Piece]:
        """The rows from `start` up to `stop`, computed here; a block that others share is computed once."""
        pieces = []
        for k, a, b in self.spans(start, stop):
            shared = b - a < self.lengths[k]
            pieces.append(Piece(self._shelf.get(k, self.compute) if shared else self.compute(k), a, b))
        return pieces

    def narrow(self) -> Blocks:
        """As many rows with one column, where blocks can be computed without the others."""
        if hasattr(self.collection, "chunks") or self.collection.ndim == 1:
            return self
        return Blocks(self.collection[[self.collection.columns[0]]])

    def forget(self) -> None:
        """Let go of the blocks read last."""
        self._shelf.clear()


def active_client() -> Any:
    """The client Dask itself would use now; None without one."""
    # Whoever asks first in a worker makes its client: others wait for it, lest there be two, or one not yet connected.
    with _asking:
        try:
            get = dask.base.get_scheduler()
        except RuntimeError:  # Dask is set to use a client and knows none: in a worker there still is one
            from distributed import get_client

            with suppress(ValueError):
                return get_client()
            raise
    client = getattr(get, "__self__", None)
    return client if type(client).__module__.partition(".")[0] == "distributed" else None


def _unknown(collection: Any) -> bool:
    return not hasattr(collection, "chunks") or bool(np.isnan(np.asarray(collection.chunks[0], float)).any())


def _graph_of(collection: Any) -> tuple[dict[Any, Any], list[Any]]:
    """The tasks of an array or frame, fused, and the keys of its blocks from top to bottom."""
    if hasattr(collection, "optimize"):  # a frame or series
        collection = collection.optimize()
        return dict(collection.__dask_graph__()), list(collection.__dask_keys__())
    nested, graph = collection.__dask_keys__(), collection.__dask_graph__()
    # Optimising leaves out what is persisted already.
    persisted = {key: task for key, task in dict(graph).items() if type(task).__name__ == "Future"}
    fused = dict(collection.__dask_optimize__(graph, nested))
    return {**persisted, **fused}, [key[0] if isinstance(key, list) else key for key in nested]


class _Shelf:
    """The values asked for last; each is computed once, however many threads ask for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._places: OrderedDict[int, _Place] = OrderedDict()

    def get(self, k: int, compute: Callable[[int], Any]) -> Any:
        with self._lock:
            place = self._places.setdefault(k, _Place())
            self._places.move_to_end(k)
            while len(self._places) > thread_count() + 1:  # one more than can be in use
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
    """How slices of blocks become features, targets and weights: what a source says of itself, without its rows.

    Attributes
    ----------
    estimator : str
        Whom errors speak of.
    targets, weight, offset : names of the columns of frames that are not features
    labelled : bool
        Whether the target is codes of class labels.
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
        """Rows `start` to `stop` from pieces of blocks: of X, and of y and the weights where these have their own."""
        blocks = [[cut(*piece) for piece in pieces] for pieces in columns]
        if isinstance(blocks[0][0], MemorySource):
            return _joined(blocks[0])
        try:
            rows, beside = self._read(blocks)
        except DataError as error:
            # A block does not know its place.
            raise DataError(f"{error} (Rows counted from row {start}.)") if start else error from None
        if "weight" in beside:
            beside["weight"] = _checked_weight(beside["weight"], start)
        names = self.names, self.target_names
        return replace(MemorySource(rows, None, None, self.dtype, *names, start, self.one_target), **beside)

    def _read(self, blocks: list[list[Any]]) -> tuple[Any, dict[str, Any]]:
        """Features, and what rows have beside them."""
        ours = [*self.targets, *(name for name in (self.weight, self.offset) if name is not None)]
        popped: list[list[Any]] = []
        if ours:
            pairs = [pop_columns(block, ours) for block in blocks[0]]
            blocks = [[frame for frame, _ in pairs], *blocks[1:]]
            popped = [[columns[j] for _, columns in pairs] for j in range(len(ours))]
        rows = _stacked([self._features(block) for block in blocks[0]])
        numbers = [np.concatenate([column_numbers(one, self.estimator) for one in column]) for column in popped]
        others = iter(np.concatenate([array_of(block) for block in column]) for column in blocks[1:])
        beside: dict[str, Any] = {}
        if self.offset is not None:
            beside["offset"] = numbers.pop().astype(np.float64)
        if self.n_targets or self.labelled:
            given = np.column_stack(numbers[: len(self.targets)]) if self.targets else next(others)
            if self.labelled:
                beside["codes"] = given.reshape(len(given)).astype(np.int32)
            else:
                beside["y"] = _targets(given, len(given), self.estimator).reshape(len(given), -1)
        if self.weighted:
            given = numbers[-1] if self.weight else next(others)
            beside["weight"] = real_numbers(given, WEIGHT, self.estimator).astype(np.float64)
        return rows, beside

    def _features(self, block: Any) -> Any:
        if is_frame(block):
            return frame_columns(block, self.estimator)
        if self.is_sparse:
            return block.tocsr() if block.dtype in _FLOATS else block.tocsr().astype(np.float64)
        values = np.asarray(block)
        if values.dtype in _FLOATS:
            return values
        return real_numbers(values, Origin.features(values), self.estimator).astype(np.float64)


def _stacked(pieces: list[Any]) -> Any:
    """Features one below the other: arrays, tuples of columns, or CSR."""
    if len(pieces) == 1:
        return pieces[0]
    if hasattr(pieces[0], "indptr"):
        from scipy import sparse

        return sparse.vstack(pieces, format="csr")
    if any(isinstance(piece, tuple) for piece in pieces):
        # Frames of one type of number are given as arrays; a block may be and its neighbour not.
        columns = [piece if isinstance(piece, tuple) else tuple(piece.T) for piece in pieces]
        return tuple(np.concatenate(column) for column in zip(*columns, strict=True))
    return np.concatenate(pieces)


def _joined(sources: list[MemorySource]) -> MemorySource:
    beside: dict[str, Any] = {name: np.concatenate([one.beside[name] for one in sources]) for name in sources[0].beside}
    return replace(sources[0], rows=_stacked([one.rows for one in sources]), **beside)


@sizeof.register(MemorySource)
def _size_of_rows(source: MemorySource) -> int:
    """What Dask plans memory and transfers with."""
    rows = source.rows
    if hasattr(rows, "indptr"):
        arrays = [rows.data, rows.indices, rows.indptr]
    else:
        arrays = list(rows) if isinstance(rows, tuple) else [rows]
    return sum(array.nbytes for array in [*arrays, *source.beside.values()])


class Elsewhere(Source):
    """A source whose rows are not in this process: what is sent along with a task, to be grounded where they are."""

    def __init__(self, recipe: Recipe, n_rows: int, width: float) -> None:
        self.recipe, self.n_rows, self._width = recipe, n_rows, width
        self.n_features, self.n_targets, self.one_target = recipe.n_features, recipe.n_targets, recipe.one_target
        self.names, self.target_names, self.dtype = recipe.names, recipe.target_names, recipe.dtype
        self.weighted, self.labelled, self.shifted = recipe.weighted, recipe.labelled, recipe.offset is not None

    @property
    def width(self) -> float:
        """Stored values a row, on average."""
        return self._width

    @property
    def is_sparse(self) -> bool:
        """Whether chunks come as CSR."""
        return self.recipe.is_sparse

    @property
    def streams(self) -> bool:
        """Rows do not stay in this process's memory."""
        return True

    def chunk(self, start: int, stop: int) -> Chunk:
        """There are no rows to give."""
        raise NotImplementedError("these rows are in another process")

    def only(self, start: int, stop: int) -> Source:
        """It is small already."""
        return self


def ground_of(source: Source) -> Source:
    """The source that has the rows, below those that are functions of it."""
    while hasattr(source, "base"):
        source = source.base
    return source


def grounded(source: Source, ground: Source) -> Source:
    """The same function of other rows."""
    if not hasattr(source, "base"):
        return ground
    twin = copy.copy(source)
    twin.base = grounded(source.base, ground)
    return twin
