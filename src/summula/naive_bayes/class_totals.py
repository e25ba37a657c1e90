"""Sums of columns by class, for models of counts and flags; missing values (NaN) are skipped.

    n_k,   W_k = sum w,   N_kj = sum w x_j over the rows whose column j is not missing        for the rows of class k

and for flags M_kj, the weight of the rows whose column j is missing. Each part of the rows accumulates into one table,
so that a wide table is not copied for each chunk.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.data.layout.blocks import aligned
from summula.core.errors import RowError
from summula.core.model_files import schema
from summula.core.numerics.grouped import memberships
from summula.core.numerics.sums import Merge, Sum

__all__ = ["ClassTotals", "Counts", "FlagTotals", "Flags", "as_flags", "split_missing"]

Array = NDArray[np.float64]

_MANY = 2**16  # number of stored values from which the kernel is used


@schema.saved(
    count=schema.Array("int64", "n_groups", low=0),
    weight=schema.Array("float64", "n_groups"),
    total=schema.Array("float64", "n_groups", "n_features", finite=False),
)
@dataclass(frozen=True)
class ClassTotals(Sum):
    """Rows, weights, and weighted sums of all columns, by class.

    Attributes
    ----------
    count, weight : ndarray of shape (n_classes,)
    total : ndarray of shape (n_classes, n_features)
    """

    nonnegative: ClassVar[Mapping[str, str]] = {**Sum.nonnegative, "total": "count"}

    count: NDArray[np.int64]
    weight: Array
    total: Array

    @property
    def n_rows(self) -> int:
        """Number of rows, of all classes together."""
        return int(self.count.sum())

    def _combined(self, other: Any, plus: Merge) -> Any:
        if type(self) is not type(other):  # one was saved before missing flags were counted
            return FlagTotals.of(self)._combined(FlagTotals.of(other), plus)
        return super()._combined(other, plus)

    @classmethod
    def zeros(cls, n_groups: int, n_features: int) -> Self:
        """Return the sums over no rows."""
        return cls(np.zeros(n_groups, np.int64), np.zeros(n_groups), np.zeros((n_groups, n_features)))

    @classmethod
    def add_rows(cls, before: Self | None, chunk: Chunk, rows: Any, n_groups: int) -> Self:
        """Add the sums of the rows of a chunk in place; `rows` is a block or CSR."""
        codes = chunk.codes
        assert codes is not None
        if before is None:
            before = cls.zeros(n_groups, chunk.n_features)
        own = codes >= 0
        before.count[...] += np.bincount(codes[own], minlength=n_groups)
        weight = chunk.weights
        before.weight[...] += np.bincount(codes[own], weights=weight[own], minlength=n_groups)
        _add_columns(before.total, chunk, rows)
        return before


@schema.saved(missing=schema.Array("float64", "n_groups", "n_features", finite=False))
@dataclass(frozen=True)
class FlagTotals(ClassTotals):
    """`ClassTotals` of flags, with the weight of the rows whose flag is missing.

    Attributes
    ----------
    missing : ndarray of shape (n_classes, n_features)
    """

    nonnegative: ClassVar[Mapping[str, str]] = {**ClassTotals.nonnegative, "missing": "count of missing values"}

    missing: Array

    @classmethod
    def zeros(cls, n_groups: int, n_features: int) -> Self:
        """Return the sums over no rows."""
        sums = ClassTotals.zeros(n_groups, n_features)
        return cls(sums.count, sums.weight, sums.total, np.zeros((n_groups, n_features)))

    @classmethod
    def of(cls, sums: ClassTotals) -> FlagTotals:
        """Return the sums, with zero missing flags if they were saved before these were counted."""
        if isinstance(sums, FlagTotals):
            return sums
        return cls(sums.count, sums.weight, sums.total, np.zeros_like(sums.total))

    @property
    def known(self) -> Array:
        """Return the weight of the rows whose flag is not missing, shape (n_classes, n_features)."""
        return np.asarray(self.weight[:, None] - self.missing)


def _add_columns(total: Array, chunk: Chunk, rows: Any) -> None:
    """Add the weighted sums of the columns of `rows`, a block or CSR, to the table of each class in place."""
    codes = chunk.codes
    assert codes is not None
    if hasattr(rows, "indptr") and rows.nnz >= _MANY:
        from summula.naive_bayes.count_kernels import add_sparse

        w = np.empty(0) if chunk.weight is None else np.ascontiguousarray(chunk.weight, np.float64)
        data = np.asarray(rows.data, np.float64)
        add_sparse(rows.indptr, rows.indices, data, codes.astype(np.int32), w, total)
    else:
        added = memberships(codes, chunk.weight, len(total)) @ rows
        total[...] += added.toarray() if hasattr(added, "toarray") else added


def split_missing(rows: Any) -> tuple[Any, Any]:
    """Return the rows with NaN replaced by 0, and the indicators of NaN; both as blocks or CSR."""
    if hasattr(rows, "indptr"):
        gone = np.isnan(rows.data)
        pattern = rows.indices, rows.indptr
        known = type(rows)((np.where(gone, 0.0, rows.data), *pattern), shape=rows.shape)
        return known, type(rows)((gone.astype(np.float64), *pattern), shape=rows.shape)
    gone = np.isnan(rows)
    return aligned(np.where(gone, 0.0, rows)), aligned(gone, np.float64)


@dataclass(frozen=True)
class Counts:
    """The statistic of counts: sums of non-negative columns. `name` is that of the model, for errors."""

    name: str = "the model"

    def accumulate_groups(self, before: ClassTotals | None, chunk: Chunk, n_groups: int) -> ClassTotals:
        """Add the sums of a chunk in place."""
        rows: Any = chunk.X if chunk.is_sparse else chunk.block(np.float64)
        least = _least(rows)
        if np.isnan(least):
            rows, _ = split_missing(rows)
            least = _least(rows)
        if -np.inf < least < 0:  # (infinities are located from the sums)
            where = np.flatnonzero((rows < 0).sum(axis=1) if chunk.is_sparse else (rows < 0).any(axis=1))
            raise RowError(
                f"Negative values in data passed to {self.name} (input X): the first is",
                chunk.start + int(where[0]),
                "; pass non-negative counts.",
            )
        return ClassTotals.add_rows(before, chunk, rows, n_groups)


def _least(rows: Any) -> float:
    """Return the smallest value of a block or CSR, at most 0; NaN if one is missing."""
    values = rows.data if hasattr(rows, "indptr") else rows
    with np.errstate(invalid="ignore"):
        return float(values.min(initial=0.0))


@dataclass(frozen=True)
class Flags:
    """The statistic of flags: weight of the rows above a threshold, per column; None expects columns of 0 and 1."""

    threshold: float | None = 0.0

    def rows(self, chunk: Chunk) -> Any:
        """Return the flags of a chunk as a block or CSR of 0 and 1."""
        return as_flags(chunk, self.threshold)

    def accumulate_groups(self, before: FlagTotals | None, chunk: Chunk, n_groups: int) -> FlagTotals:
        """Add the sums of a chunk in place."""
        rows, missing = self.rows(chunk), None
        if np.isnan(_least(rows)):
            rows, missing = split_missing(rows)
        sums = FlagTotals.add_rows(before, chunk, rows, n_groups)
        if missing is not None:
            _add_columns(sums.missing, chunk, missing)
        return sums


def as_flags(chunk: Chunk, threshold: float | None) -> Any:
    """Return whether each value is above a threshold, as 0 and 1; missing values remain missing."""
    X: Any = chunk.X if chunk.is_sparse else chunk.block(np.float64)
    if threshold is None:
        return X
    if chunk.is_sparse:
        flags = X.astype(np.float64)
        flags.data = np.where(np.isfinite(flags.data), flags.data > threshold, flags.data)
        return flags
    return aligned(np.where(np.isfinite(X), threshold < X, X))
