"""Rows of a chunk that are not one block: sparse, pieces of columns, batches of files, rows with factors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.layout.blocks import write_addresses, write_columns

__all__ = ["BatchRows", "ColumnPieces", "FactorRows", "SparseRows"]

Array = NDArray[Any]


@dataclass(frozen=True)
class SparseRows:
    """Some rows of a CSR matrix, sharing its memory: `indptr` points into all of `indices` and `data`.

    Kernels use these three arrays directly; `csr()` copies the rows into a SciPy matrix.
    """

    matrix: Any
    start: int
    stop: int

    @property
    def indptr(self) -> Array:
        """Start and end offsets of each row."""
        ends: Array = self.matrix.indptr[self.start : self.stop + 1]
        return ends

    @property
    def indices(self) -> Array:
        """Column of each stored value of the whole matrix."""
        columns: Array = self.matrix.indices
        return columns

    @property
    def data(self) -> Array:
        """Stored values of the whole matrix."""
        values: Array = self.matrix.data
        return values

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.stop - self.start, int(self.matrix.shape[1])

    def csr(self) -> Any:
        """Return these rows as a SciPy matrix."""
        whole = self.start == 0 and self.stop == self.matrix.shape[0]
        return self.matrix if whole else self.matrix[self.start : self.stop]

    def about(self, origin: Array) -> SparseRows:
        """Return these rows minus an origin, which is 0 except for columns with (almost) no zeros."""
        far = np.flatnonzero(origin)
        if not len(far):
            return self
        X, (n, d) = self.csr(), self.shape
        columns, ends = np.tile(far, n), np.arange(0, n * len(far) + 1, len(far))
        shift = type(X)((np.tile(-np.asarray(origin, np.float64)[far], n), columns, ends), shape=(n, d))
        return SparseRows(X.astype(np.float64) + shift, 0, n)


@dataclass(frozen=True)
class ColumnPieces:
    """Columns in several vertically stacked pieces, such as batches of a file."""

    pieces: tuple[tuple[Array, ...], ...]

    def __len__(self) -> int:
        return len(self.pieces[0])

    def write(self, out: Array, shift: Array) -> None:
        """Copy the columns minus `shift`, piece by piece."""
        row = 0
        for columns in self.pieces:
            end = row + len(columns[0])
            write_columns(columns, shift, out[row:end])
            row = end


@dataclass(frozen=True)
class BatchRows:
    """The rows from `begin` up to `end` of a batch of a file, whose columns of doubles start at these addresses.

    `columns` are those of the batch, of which these are the first.
    """

    columns: Sequence[Array]
    addresses: NDArray[np.uint64]
    begin: int
    end: int

    def __len__(self) -> int:
        return len(self.addresses)

    @property
    def starts(self) -> NDArray[np.uint64]:
        """Address of the first of these rows in each column."""
        return self.addresses + np.uint64(8 * self.begin)

    def write(self, out: Array, shift: Array) -> None:
        """Copy all columns minus `shift` in one call, without the GIL."""
        if out.dtype != np.float64:
            columns = self.columns[: len(self)]
            write_columns(tuple(column[self.begin : self.end] for column in columns), shift, out)
            return
        write_addresses(self.starts, 8, shift, out)


@dataclass(frozen=True)
class FactorRows:
    """Numeric columns, then for each factor the indicators of all its levels except the first, as codes.

    `codes` has shape (n, factors); a factor of size m has the codes 0 (all zeros) to m.
    """

    dense: Array
    codes: Array
    sizes: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns, including indicators."""
        return len(self.dense), self.dense.shape[1] + sum(self.sizes)

    @property
    def starts(self) -> Array:
        """Column before the first indicator of each factor; the column of code k is starts + k."""
        before = np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.int64)
        return np.asarray(self.dense.shape[1] - 1 + before)

    def __getitem__(self, index: Any) -> FactorRows:
        return FactorRows(self.dense[index], self.codes[index], self.sizes)

    def write(self, out: Array) -> None:
        """Write the columns, including indicators."""
        d = self.dense.shape[1]
        out[:, :d] = self.dense
        out[:, d:] = 0.0
        rows = np.arange(len(self.dense))
        for start, codes in zip(self.starts, self.codes.T, strict=True):
            here = codes > 0
            out[rows[here], start + codes[here]] = 1.0
