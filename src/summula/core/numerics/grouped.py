"""The same statistic for every group of rows: classes, folds, clusters.

The groups of a chunk's rows are integer codes 0, 1, ..., n_groups - 1; the rows are partitioned by code.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk

__all__ = ["partition", "sums_by_code"]

Codes = NDArray[Any]


def sums_by_code(
    statistic: Any, chunk: Chunk, codes: Codes, n_groups: int, params: Any, *, left_out: int = -1
) -> list[Any]:
    """The statistic of each group but `left_out`; None for groups without rows in the chunk."""
    sums: list[Any] = [None] * n_groups
    for group, index in partition(codes):
        if group != left_out:
            sums[group] = statistic.map(chunk if index is None else chunk.take(index), params)
    return sums


def partition(codes: Codes) -> Iterator[tuple[int, Any]]:
    """The codes that occur and where their rows are: everywhere (None), a slice, or an array of places."""
    if (codes == codes[0]).all():
        yield int(codes[0]), None
        return
    order, sizes = np.argsort(codes, kind="stable"), np.bincount(codes)
    ends = np.cumsum(sizes)
    for group in np.flatnonzero(sizes).tolist():
        places = order[ends[group] - sizes[group] : ends[group]]
        together = places[-1] - places[0] == len(places) - 1
        yield group, slice(int(places[0]), int(places[-1]) + 1) if together else places
