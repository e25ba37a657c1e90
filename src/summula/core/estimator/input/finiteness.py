"""Missing and infinite values: detected in the sums, located in the rows only if a sum is not finite."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk, Part
from summula.core.data.sources import Source
from summula.core.errors import DataError
from summula.core.numerics.sums import Sum, merged_by

__all__ = [
    "has_bad_values",
    "raise_if_not_finite",
    "raise_if_overflowing",
    "raise_if_products_overflow",
    "raise_if_underflowing",
]

Array = NDArray[Any]

_LEADING_ROWS = 256  # which show whether a column varies
_NO_ROW = np.iinfo(np.int64).max


def _not_finite(block: Array) -> Array:
    return ~np.isfinite(block)


@dataclass(frozen=True)
class _InvalidCounts(Sum):
    """Number of NaN and infinities per column, and the first row that has one."""

    counts: Array
    first: Array = field(metadata=merged_by(np.minimum))

    @classmethod
    def of(cls, is_bad: Callable[[Array], Array], part: Part) -> _InvalidCounts:
        total: _InvalidCounts | None = None
        for chunk in part.chunks():
            one = cls._of_stored(is_bad, chunk) if chunk.is_sparse else cls._of_block(is_bad(chunk.X), chunk.start)
            for column in _targets_and_offset(chunk):
                other = cls._of_block(is_bad(column), chunk.start)
                one = cls(np.append(one.counts, other.counts), np.append(one.first, other.first))
            total = one if total is None else total.merge(one)
        assert total is not None
        return total

    @classmethod
    def _of_block(cls, bad: Array, start: int) -> _InvalidCounts:
        return cls(bad.sum(axis=0), np.where(bad.any(axis=0), bad.argmax(axis=0) + start, _NO_ROW))

    @classmethod
    def _of_stored(cls, is_bad: Callable[[Array], Array], chunk: Chunk) -> _InvalidCounts:
        X = chunk.X
        bad = np.flatnonzero(is_bad(X.data))
        columns, first = X.indices[bad], np.full(X.shape[1], _NO_ROW)
        np.minimum.at(first, columns, chunk.start + np.searchsorted(X.indptr, bad, side="right") - 1)
        return cls(np.bincount(columns, minlength=X.shape[1]), first)


def has_bad_values(chunk: Chunk, *, allow_nan: bool = False) -> bool:
    """Whether the features or targets of a chunk contain NaN or infinities (only infinities with `allow_nan`)."""
    is_bad = np.isinf if allow_nan else _not_finite
    X = chunk.X.data if chunk.is_sparse else chunk.X
    return bool(is_bad(X).any() or any(is_bad(column).any() for column in _targets_and_offset(chunk)))


def _targets_and_offset(chunk: Chunk) -> list[Array]:
    """Return the targets and the offset of a chunk, if any, as column blocks."""
    offset = None if chunk.offset is None else chunk.offset[:, None]
    return [column for column in (chunk.y, offset) if column is not None]


def raise_if_overflowing(source: Source, square: Array) -> None:
    """Raise DataError for the first column whose sum of squares overflows."""
    for j in np.flatnonzero(~np.isfinite(square)):
        raise DataError(
            f"{source.column(int(j))} contains values so large that their squares overflow float64; rescale it first."
        )


def raise_if_products_overflow(products: Array) -> None:
    """Raise DataError unless sums of products of columns, whose rows are known no more, are finite."""
    if not np.isfinite(products).all():
        raise DataError("The sums of squares of the columns overflow float64: fit again, to rescaled columns.")


def raise_if_underflowing(source: Source, square: Array, total: Array, *, each: bool = True, dtype: Any = None) -> None:
    """Raise DataError for the first column that varies, and whose sum of squares loses digits to underflow.

    Parameters
    ----------
    square, total : ndarray of shape (n_features,)
        Sums of squares and of values about an origin. Where both are 0, the leading rows tell whether a column varies.
    each : bool
        Whether the model scales every column separately. If not, small columns next to a larger one are harmless.
    dtype : dtype, optional
        How the squares were computed; float64 by default.
    """
    number = np.finfo(np.float64 if dtype is None else dtype)
    least = source.n_rows * float(number.tiny)  # half a unit of the smallest numbers is lost in each square
    if not (square < least).any() or not (each or (square < least).all()):
        return
    lost = (square < least) & ((square > 0) | (total != 0))
    constant = np.flatnonzero((square == 0) & (total == 0))
    if not lost.any() and len(constant) and not source.is_sparse:
        lost[constant] = _vary(source.chunk(0, min(source.n_rows, _LEADING_ROWS)).positive, constant)
    for j in np.flatnonzero(lost):
        squares = "squares, times the weights," if source.weighted else "squares"
        raise DataError(
            f"{source.column(int(j))} contains values so small that their {squares} underflow {number.dtype}; "
            "rescale it first."
        )


def _vary(chunk: Chunk, columns: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Whether columns have several values within a class."""
    X = chunk.dense()[:, columns]
    codes = np.zeros(len(X), np.int32) if chunk.codes is None else chunk.codes
    varies = np.zeros(len(columns), bool)
    for code in np.unique(codes[codes >= 0]):
        mine = X[codes == code]
        varies |= ((mine < mine[0]) | (mine > mine[0])).any(axis=0)  # not where values are missing
    return varies


def raise_if_not_finite(source: Source, estimator: str, *, allow_nan: bool = False) -> None:
    """Raise DataError for the first column with NaN or infinities, if there is one."""
    engine = source.engine()
    count_invalid = functools.partial(_InvalidCounts.of, np.isinf if allow_nan else _not_finite)
    bad = engine.map_reduce(count_invalid, source.plan(engine.chunk_rows), _InvalidCounts.merge)
    columns = np.flatnonzero(bad.counts)
    if not len(columns):
        return
    j, row = int(columns[0]), int(bad.first[columns[0]])
    chunk = source.chunk(row, row + 1)
    k = j - source.n_features
    value = chunk.dense()[0, j] if k < 0 else np.hstack(_targets_and_offset(chunk))[0, k]
    label = source.column(j) if k < 0 else "The offset" if k == source.n_targets else _target_label(source, k)
    count, more = int(bad.counts[j]), len(columns) - 1
    kind = "missing value" if np.isnan(value) else "infinite value"
    others = f", as {'does' if more == 1 else 'do'} {more} other column{'' if more == 1 else 's'}" if more else ""
    raise DataError(
        f"{label} has {count} {kind}{'s' if count > 1 else ''} ({'NaN' if np.isnan(value) else 'inf'}; "
        f"first at row {row}){others}; {estimator} needs {'finite' if allow_nan else 'complete'} data: "
        "impute or drop them."
    )


def _target_label(source: Source, k: int) -> str:
    if source.target_names is not None:
        return f"The target {source.target_names[k]!r}"
    return "The target y" if source.n_targets == 1 else f"Column {k} of the target y"
