"""Sources: a common interface to rows in different containers.

A source knows its number of rows and the names of its columns, and returns any rows as a `Chunk`; its
`plan` divides them into parts. This file contains sources in memory: NumPy arrays of any order (including memory maps),
columns of frames, and SciPy CSR.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import ROW_DATA, Chunk, Part, chunk_rows_for, part_rows_for
from summula.core.data.layout.blocks import load_kernel
from summula.core.data.layout.stored_rows import FactorRows, SparseRows
from summula.core.engine.engine import Engine, current_engine

__all__ = ["MappedSource", "MemorySource", "Source", "WrappedSource"]

Array = NDArray[Any]

_MANY_VALUES = 2**22  # minimum number of values for a copying kernel
_SPAN_STEPS = 8  # minimum number of grid steps per part of a file, if earlier rows must be decoded


class Source(ABC):
    """Rows that can be divided into parts."""

    n_rows: int
    n_features: int
    n_targets: int
    one_target: bool
    names: tuple[str, ...] | None
    target_names: tuple[str, ...] | None
    dtype: np.dtype[Any]
    weighted: bool
    labelled: bool = False  # whether rows have codes of class labels
    shifted: bool = False  # whether rows have offsets
    grouped: bool = False  # whether rows have numbers of groups

    @property
    @abstractmethod
    def width(self) -> float:
        """Average number of stored values per row, to which the work per row is proportional."""

    @property
    @abstractmethod
    def is_sparse(self) -> bool:
        """Whether chunks are CSR."""

    @abstractmethod
    def chunk(self, start: int, stop: int) -> Chunk:
        """Return the rows from `start` up to `stop`, numbered over the whole data."""

    @abstractmethod
    def only(self, start: int, stop: int) -> Source:
        """Return the source restricted to these rows, with their global numbers, for pickling."""

    @property
    def streams(self) -> bool:
        """Whether rows are read again in every pass."""
        return False

    def chunks(self, start: int, stop: int, chunk_rows: int) -> Iterator[Chunk]:
        """Yield the rows from `start` (a multiple of `chunk_rows`) up to `stop`, chunk by chunk."""
        for a in range(start, stop, chunk_rows):
            yield self.chunk(a, min(a + chunk_rows, stop))

    def plan(self, chunk_rows: int | None = None, work: float = 1.0) -> list[Part]:
        """The parts, on the global row grid; they depend on the data, `chunk_rows` and `work` only.

        Parts are smaller if the work per value is `work` times that of a sum.
        """
        rows = chunk_rows or chunk_rows_for(self.width)
        step = part_rows_for(rows, work * self.width, self.n_features, self.n_rows)
        lines = self._lines(step)
        return [Part(self, a, b, rows, step) for a, b in zip(lines, [*lines[1:], self.n_rows], strict=True)]

    def _lines(self, step: int) -> list[int]:
        """Return the first rows of parts: every grid line, or the next row at which reading can begin."""
        if not self.streams:
            return list(range(0, self.n_rows, step))
        lines = [0]
        for start in self.starts():
            line = -(-start // step) * step
            enough = step if line == start else _SPAN_STEPS * step
            if line - lines[-1] >= enough and line < self.n_rows:
                lines.append(line)
        return lines

    def starts(self) -> list[int]:
        """Rows at which reading can begin without decoding earlier ones."""
        return [0]

    def engine(self) -> Engine:
        """Return the engine that computes its parts: the current one, unless the source requires its own."""
        return current_engine()

    def release(self) -> None:
        """Release resources kept for further passes."""
        return

    def reopened(self) -> Source:
        """Return the source for passes after its release, computed by the current engine."""
        return self

    def check_unchanged(self, estimator: str) -> None:
        """Raise if files are not those that the estimator was fitted to."""
        return

    def column(self, j: int) -> str:
        """Return the name of column j in error messages."""
        return f"Column {self.names[j]!r}" if self.names is not None else f"Column {j}"


@dataclass(frozen=True)
class MemorySource(Source):
    """Data in memory.

    Attributes
    ----------
    rows : ndarray (2-D), tuple of 1-D ndarrays (one per column), SciPy CSR, or FactorRows
    y : ndarray of shape (n_rows, n_targets), or None
    weight : ndarray of shape (n_rows,), or None
    dtype : dtype
        float64 or float32, the precision of products.
    names, target_names : tuple of str, or None
    first_row : int
        Global number of the first row.
    one_target : bool
        Whether y was one-dimensional.
    codes, offset, groups : ndarray of shape (n_rows,), or None
        As in a `Chunk`.
    """

    rows: Any
    y: Array | None
    weight: Array | None
    dtype: np.dtype[Any]
    names: tuple[str, ...] | None = None
    target_names: tuple[str, ...] | None = None
    first_row: int = 0
    one_target: bool = True
    codes: Array | None = None
    offset: Array | None = None
    groups: Array | None = None

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        """Number of rows."""
        return len(self.rows[0]) if isinstance(self.rows, tuple) else int(self.rows.shape[0])

    @property
    def n_features(self) -> int:  # type: ignore[override]
        """Number of columns."""
        return len(self.rows) if isinstance(self.rows, tuple) else int(self.rows.shape[1])

    @property
    def n_targets(self) -> int:  # type: ignore[override]
        """Number of targets; 0 without y."""
        return 0 if self.y is None else int(self.y.shape[1])

    @property
    def weighted(self) -> bool:  # type: ignore[override]
        """Whether rows have weights."""
        return self.weight is not None

    @property
    def labelled(self) -> bool:  # type: ignore[override]
        """Whether rows have codes of class labels."""
        return self.codes is not None

    @property
    def shifted(self) -> bool:  # type: ignore[override]
        """Whether rows have offsets."""
        return self.offset is not None

    @property
    def grouped(self) -> bool:  # type: ignore[override]
        """Whether rows have numbers of groups."""
        return self.groups is not None

    @property
    def row_data(self) -> dict[str, Any]:
        """Columns in addition to the features, by name."""
        return {name: values for name in ROW_DATA if (values := getattr(self, name)) is not None}

    @property
    def is_sparse(self) -> bool:
        """Whether chunks are CSR."""
        return hasattr(self.rows, "indptr")

    @property
    def width(self) -> float:
        """Average number of stored values per row."""
        if isinstance(self.rows, FactorRows):
            return float(self.rows.dense.shape[1] + self.rows.codes.shape[1])
        return self.rows.nnz / max(self.n_rows, 1) if self.is_sparse else float(self.n_features)

    def plan(self, chunk_rows: int | None = None, work: float = 1.0) -> list[Part]:
        """The parts, on the global row grid; they depend on the data, `chunk_rows` and `work` only."""
        if isinstance(self.rows, tuple) or (isinstance(self.rows, np.ndarray) and not self.rows.flags.c_contiguous):
            load_kernel(self.n_rows * self.n_features)
        elif isinstance(self.rows, np.ndarray) and self.rows.size >= _MANY_VALUES:
            load_kernel(0)  # if Numba is in use anyway: NumPy copies rows in C order fast enough
        return super().plan(chunk_rows, work)

    def only_chunk(self, chunk_rows: int | None = None) -> Chunk | None:
        """Return all rows if they are a single chunk of the grid, else None."""
        n = self.n_rows
        is_one = self.first_row == 0 and n <= (chunk_rows or chunk_rows_for(self.width))
        return self.chunk(0, n) if is_one else None

    def _rows(self, a: int, b: int) -> Any:
        if isinstance(self.rows, tuple):
            return tuple(column[a:b] for column in self.rows)
        return SparseRows(self.rows, a, b) if self.is_sparse else self.rows[a:b]

    def chunk(self, start: int, stop: int) -> Chunk:
        """Return the rows from `start` up to `stop`, numbered over the whole data."""
        a, b = start - self.first_row, stop - self.first_row
        y, weight, codes, offset, groups = (
            None if values is None else values[a:b]
            for values in (self.y, self.weight, self.codes, self.offset, self.groups)
        )
        return Chunk(self._rows(a, b), y, weight, start, stop, self.dtype, codes, offset, groups)

    def only(self, start: int, stop: int) -> MemorySource:
        """Return the source restricted to these rows, with their global numbers, for pickling."""
        chunk = self.chunk(start, stop)
        rows = chunk.X if self.is_sparse else chunk.rows
        return replace(self, rows=rows, **chunk.row_data, first_row=start)

    @classmethod
    def of_chunk(cls, chunk: Chunk, like: Source) -> MemorySource:
        """Return the rows of a chunk as a source in memory, numbered from 0, with the names of the original source."""
        rows = chunk.rows.csr() if chunk.is_sparse else chunk.rows if chunk.has_factors else chunk.X
        held = cls(rows, None, None, like.dtype, like.names, like.target_names, one_target=like.one_target)
        return replace(held, **chunk.row_data)


class WrappedSource(Source):
    """A source derived from another, `base`, with its rows, starting points and engine."""

    is_sparse = False  # blocks are dense

    def __init__(self, base: Source) -> None:
        self.base = base
        self.n_rows, self.n_features, self.n_targets = base.n_rows, base.n_features, base.n_targets
        self.one_target, self.names, self.target_names = base.one_target, base.names, base.target_names
        self.dtype, self.weighted = base.dtype, base.weighted
        self.labelled, self.shifted, self.grouped = base.labelled, base.shifted, base.grouped

    @property
    def width(self) -> float:
        """Stored values per row."""
        return self.base.width

    @property
    def streams(self) -> bool:
        """Whether the rows of `base` are read again in every pass."""
        return self.base.streams

    def starts(self) -> list[int]:
        """Rows at which reading can begin without decoding earlier ones."""
        return self.base.starts()

    def _lines(self, step: int) -> list[int]:
        return self.base._lines(step)

    def engine(self) -> Engine:
        """Return the engine required by the rows."""
        return self.base.engine()

    def release(self) -> None:
        """Release resources kept for further passes."""
        self.base.release()

    def reopened(self) -> Source:
        """Return the source for passes after it was released."""
        copied = copy.copy(self)
        copied.base = self.base.reopened()
        return copied

    def check_unchanged(self, estimator: str) -> None:
        """Raise if files are not those that the estimator was fitted to."""
        self.base.check_unchanged(estimator)


class MappedSource(WrappedSource):
    """A source whose features are a function of those of another: `lift` maps a dense block of rows to features.

    Its grid follows its own width; the other source reads the rows of each of its chunks.
    """

    def __init__(self, base: Source, lift: Callable[[Array], Array], n_features: int) -> None:
        super().__init__(base)
        self.lift, self.n_features, self.names = lift, n_features, None

    @property
    def width(self) -> float:
        """Stored values per row."""
        return float(self.n_features)

    def chunks(self, start: int, stop: int, chunk_rows: int) -> Iterator[Chunk]:
        """Yield the lifted rows from `start` up to `stop`, chunk by chunk."""
        for chunk in self.base.chunks(start, stop, chunk_rows):
            yield replace(chunk, rows=self.lift(chunk.block(self.dtype)))

    def chunk(self, start: int, stop: int) -> Chunk:
        """Return the lifted rows from `start` up to `stop`."""
        chunk = self.base.chunk(start, stop)
        return replace(chunk, rows=self.lift(chunk.block(self.dtype)))

    def only(self, start: int, stop: int) -> MappedSource:
        """Return the source restricted to these rows."""
        return MappedSource(self.base.only(start, stop), self.lift, self.n_features)
