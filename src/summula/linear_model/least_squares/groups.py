"""Groups of dependent rows, for cluster-robust standard errors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from summula.core.data.factors import FactorSource
from summula.core.data.frames import no_such_column
from summula.core.data.labels import group_codes
from summula.core.data.numbers import array_of
from summula.core.data.scan import ScanSource
from summula.core.data.sources import MemorySource, Source
from summula.core.errors import DataError

__all__ = ["GroupTotals", "with_groups"]

Array = NDArray[Any]


@dataclass(frozen=True)
class GroupTotals:
    """Totals of groups of rows, sorted by group number."""

    groups: Array
    totals: Array

    def merge(self, other: Self) -> Self:
        """Return the totals of the union of two sets of rows."""
        groups = np.union1d(self.groups, other.groups)
        totals = np.zeros((len(groups), self.totals.shape[1]))
        totals[np.searchsorted(groups, self.groups)] = self.totals
        totals[np.searchsorted(groups, other.groups)] += other.totals
        return type(self)(groups, totals)


def with_groups(source: Source, groups: Any) -> Source:
    """Return the source with groups: one label per row, or the name of a column of files."""
    if isinstance(source, FactorSource):
        return FactorSource(with_groups(source.base, groups), source.factors)
    if isinstance(source, ScanSource):
        if not isinstance(groups, str):
            raise DataError("The rows are read from files, so groups must be the name of a column.")
        if groups not in source.table.kinds:
            raise DataError(no_such_column(groups, source.table.columns))
        return source.with_groups(groups)
    if not isinstance(source, MemorySource):
        raise DataError('cov="cluster" needs rows in memory or in files; write the collection to Parquet and scan it.')
    if isinstance(groups, str):
        raise DataError(f"groups={groups!r} is a column name, but X has no named columns; pass one label per row.")
    labels = array_of(groups)
    labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if labels.shape != (source.n_rows,):
        raise DataError(f"groups has shape {labels.shape} but X has {source.n_rows} rows; pass one label per row.")
    return replace(source, groups=group_codes(labels))
