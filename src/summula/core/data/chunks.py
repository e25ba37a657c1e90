"""Rows, divided into chunks on one global grid.

A plan depends on the data and `chunk_rows` only, never on workers:

    chunk  rows [k c, (k + 1) c) of the data, which a statistic maps at once, sized to fit into the cache
    part   a fixed number of consecutive chunks: the unit of work of a worker
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from summula.core.data.layout.blocks import (
    aligned,
    column_addresses,
    empty_block,
    is_canonical,
    is_plain,
    product,
    scratch_block,
    write_columns,
)
from summula.core.data.layout.fixed_order import column_products, is_contiguous, row_products
from summula.core.data.layout.stored_rows import BatchRows, ColumnPieces, FactorRows, SparseRows

if TYPE_CHECKING:
    from summula.core.data.sources import Source

__all__ = [
    "ROW_DATA",
    "Chunk",
    "Part",
    "chunk_rows_for",
    "part_rows_for",
]

Array = NDArray[Any]

_CHUNK_ELEMENTS = 2**18  # about 2 MB of float64: a block and its copy fit into the second-level cache
_PART_ELEMENTS = 2**21
_LEAST_PARTS = 8  # for data with as many chunks
_COPIED_ELEMENTS = 2**16  # for rows that are copied and multiplied at once
_FEW_ELEMENTS = 2**16  # maximum size of copies kept between passes
_LONG_ELEMENTS = 2**17  # above which products with a vector do not use BLAS, which would need a copy of the rows


@functools.lru_cache(maxsize=256)
def chunk_rows_for(width: float) -> int:
    """Return the rows per chunk for a number of stored values per row: a power of two between 1,024 and 65,536."""
    wanted = _CHUNK_ELEMENTS / max(width, 1.0)
    return int(2 ** np.clip(np.floor(np.log2(wanted)), 10, 16))


def part_rows_for(chunk_rows: int, width: float, n_features: int, n_rows: int) -> int:
    """Return the rows per part: enough that scheduling and merging d x d results cost little relative to the work.

    Few rows are divided into several parts, too, so that all threads have about the same number of rows.
    """
    wanted = max(min(_PART_ELEMENTS / max(width, 1.0), n_rows / _LEAST_PARTS), 2 * n_features)
    return chunk_rows * max(1, int(wanted // chunk_rows))


# What a row has in addition to its features.
ROW_DATA = ("y", "weight", "codes", "offset", "groups")


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows.

    Attributes
    ----------
    rows : ndarray (2-D), tuple of 1-D ndarrays (one per column), ColumnPieces, BatchRows, SparseRows, or FactorRows
        The features in the format of their source; `X` and `write` convert them to the format a statistic needs.
    y : ndarray of shape (n, n_targets), or None
        Numeric targets.
    weight : ndarray of shape (n,), or None
    start, stop : int
        The global row range.
    dtype : dtype
        float64 or float32, the precision of products.
    codes : ndarray of shape (n,) of int32, or None
        Class labels as indices of the classes; -1 for unknown labels.
    offset : ndarray of shape (n,), or None
        Terms added to the linear predictor.
    groups : ndarray of shape (n,) of int64, or None
        Numbers of the groups within which rows are dependent.
    """

    rows: Any
    y: Array | None
    weight: Array | None
    start: int
    stop: int
    dtype: np.dtype[Any]
    codes: Array | None = None
    offset: Array | None = None
    groups: Array | None = None

    def __post_init__(self) -> None:
        # Products of these arrays depend on their layout, like those of the features.
        for name, values in (("y", self.y), ("weight", self.weight), ("offset", self.offset)):
            if values is not None and values.dtype.kind == "f" and not is_plain(values):
                object.__setattr__(self, name, np.array(values, values.dtype.newbyteorder("="), order="C"))

    def __len__(self) -> int:
        return self.stop - self.start

    @property
    def is_sparse(self) -> bool:
        """Whether `X` is CSR."""
        return hasattr(self.rows, "indptr")

    @property
    def has_factors(self) -> bool:
        """Whether some columns are codes of factors."""
        return isinstance(self.rows, FactorRows)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self.rows) if isinstance(self.rows, tuple | ColumnPieces | BatchRows) else int(self.rows.shape[1])

    @functools.cached_property
    def target(self) -> Array:
        """The single target as numbers: the first column of y, or the codes of labels."""
        if self.codes is not None:
            return self.codes.astype(np.float64)
        assert self.y is not None, "there is a target"
        return np.asarray(self.y[:, 0])

    @property
    def weights(self) -> Array:
        """Weights of the rows, 1 if none were passed."""
        return np.ones(len(self)) if self.weight is None else self.weight

    @property
    def positive(self) -> Chunk:
        """Rows with positive weight; the chunk itself if all are."""
        taken = self._taken_positive
        return self if taken is None else taken

    @functools.cached_property
    def _taken_positive(self) -> Chunk | None:
        # None instead of the chunk itself: a reference to itself would keep the user's rows until garbage collection.
        return None if self.weight is None or self.weight.all() else self.take(np.flatnonzero(self.weight))

    @property
    def is_small(self) -> bool:
        """Whether the chunk is so small that copies of it may be kept."""
        return len(self) * self.n_features <= _FEW_ELEMENTS

    def kept(self, use: Hashable, make: Callable[[], Any]) -> Any:
        """Return `make()`, computed only once for few rows: it would dominate the passes of a small fit."""
        if not self.is_small:
            return make()
        values = self._kept.get(use)
        if values is None:
            values = self._kept[use] = make()
        return values

    @functools.cached_property
    def _kept(self) -> dict[Hashable, Any]:
        return {}

    @property
    def row_data(self) -> dict[str, Any]:
        """Columns in addition to the features, by name."""
        return {name: values for name in ROW_DATA if (values := getattr(self, name)) is not None}

    @property
    def order(self) -> Literal["C", "F"]:
        """Memory order of the rows in the source, which users expect of an output."""
        if isinstance(self.rows, tuple | ColumnPieces | BatchRows):
            return "F"
        if self.is_sparse or self.has_factors:
            return "C"
        down, across = (abs(step) for step in self.rows.strides)
        return "F" if down < across else "C"

    @property
    def X(self) -> Any:
        """The features: SciPy CSR for sparse rows, otherwise a 2-D array of `dtype` in any layout.

        Products use `block()` instead, whose layout does not depend on the source.
        """
        if self.is_sparse:
            return self.rows.csr()
        if isinstance(self.rows, tuple | ColumnPieces | BatchRows | FactorRows):
            return self.write(self.blank(self.n_features))
        return self.rows if self.rows.dtype == self.dtype else self.rows.astype(self.dtype)

    def blank(self, width: int, dtype: Any = None) -> Array:
        """Return an uninitialised block with as many rows: in C order and aligned, for any source."""
        return empty_block(len(self), width, self.dtype if dtype is None else dtype)

    def block(self, dtype: Any = None, origin: Array | None = None) -> Array:
        """Return the features minus `origin` as a dense block (see `blocks.py`).

        It must not be modified: without an origin it may be the user's memory.
        """
        dtype = self.dtype if dtype is None else np.dtype(dtype)
        if self.is_sparse:
            X = self.rows.csr().toarray()
            return aligned(X if origin is None else X - origin, dtype)
        if origin is None and isinstance(self.rows, np.ndarray) and is_canonical(self.rows, dtype):
            return self.rows
        return self.write(self.blank(self.n_features, dtype), origin)

    def in_place(self, dtype: Any) -> Array:
        """Return the features in C order, without a copy if possible: for kernels with a fixed order of summation.

        BLAS uses `block()`, whose alignment does not depend on the source either.
        """
        rows = self.rows
        plain = isinstance(rows, np.ndarray) and rows.dtype == dtype and rows.dtype.isnative
        return rows if plain and rows.flags.c_contiguous and rows.flags.aligned else self.block(dtype)

    def times(self, B: Array) -> Array:
        """Compute X B for B of shape (d,) or (d, k)."""
        if self.is_sparse:
            return np.asarray(self.X @ B)
        dtype, rows = np.result_type(self.dtype, B), self.rows
        if B.size != len(B):
            return self._times_several(B.astype(dtype, copy=False))
        if len(self) * self.n_features < _LONG_ELEMENTS:
            canonical = isinstance(rows, np.ndarray) and is_canonical(rows, dtype)
            return product(rows if canonical else self._scratch(dtype), B.astype(dtype, copy=False))
        # Rows in memory are read in place: copying them would take longer than the product.
        addresses = self._column_addresses()
        if addresses is not None:
            values = column_products(addresses, B.reshape(-1), len(self))
        else:
            in_place = isinstance(rows, np.ndarray) and rows.dtype == self.dtype and is_contiguous(rows)
            values = row_products(rows if in_place else self._scratch(self.dtype), B.reshape(-1))
        return np.asarray(values, dtype).reshape(len(self), *B.shape[1:])

    def _times_several(self, B: Array) -> Array:
        """Compute X B some rows at a time, so that their copy stays in the cache until it is multiplied."""
        B, rows = aligned(B), self.rows
        out = np.empty((len(self), *B.shape[1:]), B.dtype)
        step = max(64, _COPIED_ELEMENTS // max(self.n_features, 1) // 16 * 16)  # so that slices stay aligned
        whole = rows if isinstance(rows, np.ndarray) and is_canonical(rows, B.dtype) else None
        if isinstance(rows, ColumnPieces | FactorRows):
            whole = self._scratch(B.dtype)
        for a in range(0, len(self), step):
            b = min(a + step, len(self))
            some = whole[a:b] if whole is not None else self._between(a, b)._scratch(B.dtype)
            out[a:b] = product(some, B)
        return out

    def _between(self, a: int, b: int) -> Chunk:
        """Return the features of some of these rows, without copying columns."""
        rows = self.rows
        if isinstance(rows, BatchRows):
            some: Any = replace(rows, begin=rows.begin + a, end=rows.begin + b)
        else:
            some = tuple(column[a:b] for column in rows) if isinstance(rows, tuple) else rows[a:b]
        return Chunk(some, None, None, self.start + a, self.start + b, self.dtype)

    def _column_addresses(self) -> NDArray[np.uint64] | None:
        """Return the addresses of contiguous columns of doubles, or None."""
        if self.dtype != np.float64:
            return None
        if isinstance(self.rows, BatchRows):
            return self.rows.starts
        columns = self.rows if isinstance(self.rows, tuple | np.ndarray) else ()
        addresses, step = column_addresses(columns) if len(columns) else (None, 0)
        return addresses if step == 8 else None

    def _scratch(self, dtype: Any) -> Array:
        """Return all rows as a block that is valid until the next call."""
        return self.write(scratch_block("rows", len(self), self.n_features, dtype))

    def dense(self, dtype: Any = np.float64) -> Array:
        """Return the features as a dense array of a dtype, in any layout."""
        X = self.X.toarray() if self.is_sparse else self.X
        return np.asarray(X, dtype=dtype)

    def take(self, index: Any) -> Chunk:
        """Return some of these rows, selected by a slice or an array of indices, as a new chunk."""
        if self.is_sparse:
            kept = self.rows.csr()[index]
            rows: Any = SparseRows(kept, 0, kept.shape[0])
        elif isinstance(self.rows, tuple):
            rows = tuple(column[index] for column in self.rows)
        elif self.has_factors:
            rows = self.rows[index]
        else:
            rows = self.X[index]
        n = len(rows[0]) if isinstance(rows, tuple) else int(rows.shape[0])
        row_data: dict[str, Any] = {name: values[index] for name, values in self.row_data.items()}
        return replace(self, rows=rows, **row_data, stop=self.start + n)

    def write(self, out: Array, origin: Array | None = None) -> Array:
        """Copy dense features minus `origin` into `out`, of shape (n, n_features), and return it."""
        shift = np.zeros(self.n_features, out.dtype) if origin is None else origin
        if isinstance(self.rows, FactorRows):
            self.rows.write(out)
            if origin is not None:
                out -= shift
        elif isinstance(self.rows, ColumnPieces | BatchRows):
            self.rows.write(out, shift)
        else:
            write_columns(self.rows, shift, out)
        return out


@dataclass(frozen=True)
class Part:
    """A small description of some chunks of a source; when pickled, it contains only its own rows."""

    source: Source
    start: int
    stop: int
    chunk_rows: int
    step: int  # rows per grid step; a part of a file covers several steps

    def __len__(self) -> int:
        return self.stop - self.start

    def chunks(self) -> Iterator[Chunk]:
        """Yield the chunks of this part, in order."""
        return self.source.chunks(self.start, self.stop, self.chunk_rows)

    def by_step(self) -> Iterator[Iterator[Chunk]]:
        """Yield the chunks of each grid step."""
        return (chunks for _, chunks in groupby(self.chunks(), lambda chunk: chunk.start // self.step))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "source": self.source.only(self.start, self.stop)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
