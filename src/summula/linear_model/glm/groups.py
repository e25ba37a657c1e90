"""Groups of dependent rows, for standard errors: any labels, as one more column of numbers beside the target."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.factors import FactorSource
from summula.core.data.frames import no_such_column
from summula.core.data.numbers import array_of
from summula.core.data.scan import Piece, ScanSource
from summula.core.data.sources import MemorySource, Source
from summula.core.errors import DataError

__all__ = ["with_groups"]

Array = NDArray[Any]


def with_groups(source: Source, groups: Any) -> Source:
    """The source with the groups as the last column of y: one label per row, or the name of a column of files."""
    if isinstance(source, FactorSource):
        return FactorSource(with_groups(source.base, groups), source.factors)
    if isinstance(source, ScanSource):
        if not isinstance(groups, str):
            raise DataError("The rows come from files, so groups has to be the name of a column.")
        if groups not in source.table.kinds:
            raise DataError(no_such_column(groups, source.table.columns))
        return _GroupedScan(
            source.table,
            source.features,
            [*source.targets, groups],
            source.weight,
            one_target=False,
            labels=source.labels,
            factors=source.factors,
        )
    if not isinstance(source, MemorySource):
        raise DataError('cov="cluster" needs rows in memory or in files; write the collection to Parquet and scan it.')
    if isinstance(groups, str):
        raise DataError(f"groups={groups!r} names a column, but X has none; give one label a row.")
    codes = _codes(groups, source.n_rows)
    return replace(source, y=np.column_stack([np.asarray(source.y, np.float64), codes]), one_target=False)


def _codes(groups: Any, n: int) -> Array:
    labels = array_of(groups)
    labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if labels.shape != (n,):
        raise DataError(f"groups has shape {labels.shape} and X has {n} rows; give one label a row.")
    if labels.dtype.kind == "O":
        number: dict[Any, int] = {}
        for row, label in enumerate(labels.tolist()):
            if label is None or type(label).__name__ in ("NAType", "NaTType") or label != label:
                raise DataError(f"The group of row {row} is missing; give every row one, or drop the row.")
            number.setdefault(label, len(number))
        return np.array([number[label] for label in labels.tolist()], dtype=np.float64)
    missing = np.flatnonzero(labels != labels)
    if len(missing):
        raise DataError(f"The group of row {int(missing[0])} is missing; give every row one, or drop the row.")
    return np.asarray(np.unique(labels, return_inverse=True)[1], dtype=np.float64)


class _GroupedScan(ScanSource):
    """Columns of files, the last target of which numbers the groups."""

    def _target(self, pieces: list[Piece], j: int, start: int) -> Array:
        if j < self.n_targets - 1:
            return super()._target(pieces, j, start)
        labels = np.concatenate([piece.column(self.n_features + j) for piece in pieces])
        if labels.dtype.kind in "biuf":
            numbers = labels.astype(np.float64)
        else:
            number = {text: _number(text) for text in set(labels.tolist())}
            numbers = np.array([number[text] for text in labels.tolist()], dtype=np.float64)
        missing = np.flatnonzero(np.isnan(numbers))
        if len(missing):
            raise DataError(
                f"The group of row {start + int(missing[0])} is missing; give every row one, or drop the row."
            )
        return numbers


def _number(text: Any) -> float:
    """A number for a text that needs no table of all texts: 53 bits of a digest."""
    if text is None:
        return float("nan")
    return float(int.from_bytes(hashlib.blake2b(str(text).encode(), digest_size=8).digest(), "big") >> 11)
