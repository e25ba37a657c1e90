"""Order of the rows in stochastic gradient descent, and access to the rows in that order.

Rows are divided into pieces whose size depends only on the width of a row (a quarter of a megabyte each). In each epoch

    1. the pieces are shuffled,
    2. each sixteen consecutive pieces form a buffer, whose rows are shuffled.                                 (1)

A table of at most sixteen pieces is thus shuffled as a whole, a larger one nearly so: rows that are together in a
buffer come from sixteen random places. Only a buffer has to be in memory, and it fits the cache. The order depends only
on seed, epoch and row numbers, so it is the same for arrays, files and collections and for all chunk sizes and numbers
of threads. Validation rows are also drawn by row number.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from summula.core.data.chunks import Chunk, Part
from summula.core.data.layout.stored_rows import SparseRows
from summula.core.data.sources import MemorySource, Source
from summula.core.engine.engine import check_watch, local_engine
from summula.core.estimator.run import Run
from summula.core.numerics.origins import far_origin
from summula.core.numerics.sums import Sum, merged_by

__all__ = [
    "Buffer",
    "HeldOut",
    "RowSizes",
    "Visits",
    "rows_about",
    "rows_in_order",
    "score_origin",
    "squared_lengths",
]

Array = NDArray[Any]

_PIECE_ELEMENTS = 2**15
_PIECES = 16  # per buffer
_LEADING_ROWS = 256  # rows used to determine whether columns are far from 0
_FEW_BUFFERS = 4
_WORK_AT_ONCE = 2**20  # number of values over all epochs of one kernel call: a few milliseconds


@dataclass(frozen=True)
class RowSizes(Sum):
    """Number of rows and largest |x|^2, which determine the largest safe step.

    `params` is the number of classes, 0 for numeric targets.
    """

    weight: float
    largest: float = field(metadata=merged_by(max))
    total: float  # NaN or infinite if some value is
    counts: Array  # rows of each class

    @classmethod
    def map(cls, chunk: Chunk, params: int) -> Self:
        """Return the sums of one chunk."""
        X = rows_in_order(chunk)
        squares = squared_lengths(X)
        weight = float(len(chunk) if chunk.weight is None else chunk.weight.sum())
        counts = np.empty(0) if chunk.codes is None else np.bincount(chunk.codes, minlength=params)
        total = float(squares.sum(dtype=np.float64)) + (0.0 if chunk.y is None else float(chunk.y.sum()))
        return cls(weight, float(squares.max()), total, counts)


def rows_in_order(chunk: Chunk) -> Any:
    """Return the rows of a chunk as CSR or in C order: products with other layouts differ in the last digit."""
    if chunk.is_sparse:
        return _borrowed(chunk.rows)
    X = chunk.rows
    if isinstance(X, np.ndarray) and X.dtype == chunk.dtype and X.flags.c_contiguous:
        return X
    return chunk.write(np.empty((len(chunk), chunk.n_features), chunk.dtype))


def _borrowed(rows: Any) -> Any:
    """Return some rows of a CSR matrix as a CSR matrix that shares memory."""
    if not isinstance(rows, SparseRows):
        return rows
    first, last = int(rows.indptr[0]), int(rows.indptr[-1])
    own = csr_array(rows.shape, dtype=rows.data.dtype)
    # The constructor would copy views of larger arrays.
    own.data, own.indices, own.indptr = rows.data[first:last], rows.indices[first:last], rows.indptr - rows.indptr[0]
    return own


def score_origin(source: Source, fit_intercept: bool) -> Array:
    """Return an origin for scores: near the mean for columns far from 0, otherwise 0."""
    if not fit_intercept:
        return np.zeros(source.n_features)
    return far_origin(source.chunk(0, min(source.n_rows, _LEADING_ROWS)))


def rows_about(chunk: Chunk, origin: Array) -> Any:
    """Return the rows of a chunk minus an origin, in float64 unless the origin is 0."""
    if not origin.any():
        return rows_in_order(chunk) if chunk.is_sparse else chunk.block()
    return chunk.rows.about(origin).csr() if chunk.is_sparse else chunk.block(np.float64, origin)


def squared_lengths(X: Any) -> Array:
    """Return |x|^2 of each row."""
    if not hasattr(X, "indptr"):
        return np.asarray(np.einsum("ij,ij->i", X, X))
    if not X.has_canonical_format:  # duplicate entries must be summed before squaring
        X = X.copy()
        X.sum_duplicates()
    from summula.optimize.solvers.stochastic_descent.kernels import add_squares

    squares = np.zeros(X.shape[0])
    add_squares(X.indptr, X.data, squares)
    return squares


class HeldOut(NamedTuple):
    """Validation rows: listed, or drawn with a probability by row number."""

    listed: Array | None
    share: float
    seed: int

    def among(self, start: int, stop: int, piece: int) -> Array:
        """Return a mask of the validation rows from `start` up to `stop`."""
        if self.listed is not None:
            return np.asarray(self.listed[start:stop])
        first, last = start // piece, -(-stop // piece)
        drawn = [np.random.default_rng([self.seed, k]).random(piece) < self.share for k in range(first, last)]
        return np.asarray(np.concatenate(drawn)[start - first * piece : stop - first * piece])


class Buffer(NamedTuple):
    """Rows in the layout of the kernels, and the order in which to use them.

    Dense rows are `width` consecutive numbers of `data` each; of CSR rows `starts` says where they begin. An empty
    `weight` means none.
    """

    data: Array
    indices: Array | None
    starts: Array | None
    width: int
    y: Array
    weight: Array
    order: Array


class Visits:
    """The rows of a run, buffer by buffer, in the order (1)."""

    def __init__(self, run: Run, seed: int, *, shuffle: bool = True, held_out: HeldOut | None = None) -> None:
        from summula.core.engine.random_kernels import shuffle as shuffled

        source = run.source
        self.source, self.seed, self.shuffle, self.held_out = source, seed, shuffle, held_out
        self._shuffle = shuffled
        self.n_rows = source.n_rows
        self.piece = int(2 ** min(max(math.floor(math.log2(_PIECE_ELEMENTS / max(source.width, 1.0))), 4), 14))
        self.n_pieces = -(-self.n_rows // self.piece)
        # Rows in local memory are not sent to a cluster.
        self._reader = local_engine() if isinstance(source, MemorySource) else source.engine()
        self._here = in_place(source)
        if self._here is None and self.n_pieces <= _PIECES:
            self._here = self._joined(self._pieces(np.arange(self.n_pieces)))

    @property
    def epochs_at_once(self) -> int:
        """Maximum number of epochs per kernel call: 1 unless the rows are few, and in one buffer."""
        if self._here is None or self.n_pieces > _PIECES or self.held_out is not None:
            return 1
        return max(1, int(_WORK_AT_ONCE // max(self.n_rows * self.source.width, 1.0)))

    @property
    def whole(self) -> Buffer:
        """Return all rows as one buffer, with memory for their order."""
        assert self._here is not None
        check_watch()
        return self._here._replace(order=np.empty(self.n_rows, np.int64))

    def buffers(self, epoch: int) -> Iterator[Buffer]:
        """Yield all buffers of an epoch."""
        if self._here is not None and self.n_pieces <= _PIECES:
            check_watch()
            yield self._here._replace(order=self._places(epoch, 0, [(0, self.n_rows)]))
            return
        pieces = np.arange(self.n_pieces)
        if self.shuffle and self.n_pieces > _PIECES:
            self._shuffle(self.seed, epoch, 0, pieces)
        groups = [pieces[at : at + _PIECES] for at in range(0, self.n_pieces, _PIECES)]
        if self._here is not None:
            order = functools.partial(self._order, epoch)
            if len(groups) <= _FEW_BUFFERS:
                for numbered in enumerate(groups):
                    check_watch()
                    yield self._here._replace(order=order(numbered)[0])
                return
            # A thread computes the next order in the meantime, if there are enough rows to be worthwhile.
            with closing(local_engine().map_ordered(order, list(enumerate(groups)))) as orders:
                for rows, _ in orders:
                    check_watch()
                    yield self._here._replace(order=rows)
            return
        with closing(self._pieces(pieces)) as read:
            for number, group in enumerate(groups):
                check_watch()
                buffer = self._joined(next(read) for _ in group)
                yield buffer._replace(order=self._order(epoch, (number, group))[1])

    def _order(self, epoch: int, numbered: tuple[int, Array]) -> tuple[Array, Array]:
        """Return the rows of a buffer in the order of the epoch: their numbers, and their positions in the buffer."""
        number, pieces = numbered
        ranges = [(k * self.piece, min((k + 1) * self.piece, self.n_rows)) for k in pieces.tolist()]
        places = self._places(epoch, number, ranges)
        return np.concatenate([np.arange(a, b) for a, b in ranges])[places], places

    def _places(self, epoch: int, number: int, ranges: list[tuple[int, int]]) -> Array:
        """Return the positions in a buffer of the rows of these ranges, in the order of the epoch."""
        places = np.arange(sum(b - a for a, b in ranges))
        if self.shuffle:
            self._shuffle(self.seed, epoch, number + 1, places)
        if self.held_out is not None:
            out = np.concatenate([self.held_out.among(a, b, self.piece) for a, b in ranges])
            places = places[~out[places]]
        return places

    def _pieces(self, numbers: Array) -> Any:
        parts = [
            Part(self.source, k * self.piece, min((k + 1) * self.piece, self.n_rows), self.piece, self.piece)
            for k in numbers.tolist()
        ]
        return self._reader.map_ordered(_read, parts)

    def _joined(self, pieces: Any) -> Buffer:
        read = list(pieces)
        data, indices, counts, y, weight = (np.concatenate([one[j] for one in read]) for j in range(5))
        sparse = self.source.is_sparse
        starts = np.concatenate([[0], np.cumsum(counts)]) if sparse else None
        order = np.arange(len(y))
        return Buffer(data, indices if sparse else None, starts, self.source.n_features, y, weight, order)


def in_place(source: Any) -> Buffer | None:
    """Return the rows without copying if they are in memory in the layout of the kernels, otherwise None."""
    if not isinstance(source, MemorySource) or isinstance(source.rows, tuple):
        return None
    rows = source.rows
    arrays = [rows.data, rows.indices] if source.is_sparse else [rows]
    plain = all(isinstance(a, np.ndarray) and a.flags.c_contiguous and a.flags.writeable for a in arrays)
    # Kernels are compiled for two dtypes, in native byte order, and for writeable arrays.
    if not plain or arrays[0].dtype not in (np.float64, np.float32) or not arrays[0].dtype.isnative:
        return None
    y = np.ascontiguousarray(source.chunk(source.first_row, source.first_row + source.n_rows).target, np.float64)
    weight = np.empty(0) if source.weight is None else np.ascontiguousarray(source.weight, np.float64)
    if source.is_sparse:
        indices = rows.indices.astype(np.int32, copy=False)
        starts = rows.indptr.astype(np.int64, copy=False)
        return Buffer(rows.data, indices, starts, source.n_features, _own(y), _own(weight), np.empty(0, np.int64))
    return Buffer(rows.reshape(-1), None, None, source.n_features, _own(y), _own(weight), np.empty(0, np.int64))


def _own(values: Array) -> Array:
    return values if values.flags.writeable else values.copy()


def _read(part: Part) -> tuple[Array, Array, Array, Array, Array]:
    """Return the rows of a piece: values, column indices and entries per row (if sparse), targets, weights."""
    data, indices, counts, ys, weights = [], [], [], [], []
    for chunk in part.chunks():
        if chunk.is_sparse:
            rows = chunk.X
            data.append(rows.data)
            indices.append(rows.indices.astype(np.int32))
            counts.append(np.diff(rows.indptr).astype(np.int64))
        else:
            data.append(chunk.write(np.empty((len(chunk), chunk.n_features), chunk.dtype)).reshape(-1))
            indices.append(np.empty(0, np.int32))
            counts.append(np.empty(0, np.int64))
        ys.append(chunk.target.astype(np.float64))
        weights.append(np.empty(0) if chunk.weight is None else chunk.weight.astype(np.float64))
    return tuple(np.concatenate(column) for column in (data, indices, counts, ys, weights))  # type: ignore[return-value]
