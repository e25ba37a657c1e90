"""A statistic computed separately for each group of rows: classes, folds, clusters.

The group of a row is an integer code 0, 1, ..., n_groups - 1. A statistic with elementwise formulas stores all groups
in one object with a leading axis of groups, computed in double precision by its `map_groups`. For other statistics the
rows of a chunk are partitioned by code, and each group has its own object.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.data.layout.blocks import aligned
from summula.core.numerics.sums import Groups, Sum

__all__ = [
    "ClassWeights",
    "Grouped",
    "group_sizes",
    "group_totals",
    "memberships",
    "partition",
    "regrouped",
    "sums_by_code",
]

Array = NDArray[Any]

_KERNEL_SIZE = 2**16  # block size (number of values) from which the kernel is used


@dataclass(frozen=True)
class ClassWeights(Sum):
    """The total weight of each class; `params` is the number of classes."""

    totals: Array

    @classmethod
    def map(cls, chunk: Chunk, params: int) -> Self:
        """Return the weights of one chunk."""
        assert chunk.codes is not None
        return cls(np.bincount(chunk.codes, weights=chunk.weight, minlength=params).astype(float))


class Grouped(NamedTuple):
    """A statistic of each group of rows, by `chunk.codes`: `run.sum(Grouped(Moments, n_classes), origins)`.

    The sum is the statistic with a leading axis of groups if it defines `map_groups`, else `Groups`. A statistic with
    large tables defines `accumulate_groups` instead, which adds the rows of a chunk to the sums in place.
    """

    statistic: Any
    n_groups: int

    def map(self, chunk: Chunk, params: Any) -> Any:
        """Return the statistics of the groups of one chunk."""
        assert chunk.codes is not None, "rows have codes"
        if hasattr(self.statistic, "map_groups"):
            return self.statistic.map_groups(chunk, chunk.codes, self.n_groups, params)
        return Groups(tuple(sums_by_code(self.statistic, chunk, chunk.codes, self.n_groups, params)))

    def accumulate(self, total: Any, chunk: Chunk, params: Any) -> Any:
        """Add the rows of one chunk to the statistics so far (None at first)."""
        if hasattr(self.statistic, "accumulate_groups"):
            return self.statistic.accumulate_groups(total, chunk, self.n_groups)
        one = self.map(chunk, params)
        return one if total is None else total.merge(one)

    def merge(self, a: Any, b: Any) -> Any:
        """Return the statistics of both sets of rows."""
        return a.merge(b)


def sums_by_code(
    statistic: Any, chunk: Chunk, codes: Array, n_groups: int, params: Any, *, left_out: int = -1
) -> list[Any]:
    """Return the statistic of each group except `left_out`; None for groups without rows in the chunk."""
    sums: list[Any] = [None] * n_groups
    for group, index in partition(codes):
        if group not in (-1, left_out):
            sums[group] = statistic.map(chunk if index is None else chunk.take(index), params)
    return sums


def partition(codes: Array) -> Iterator[tuple[int, Any]]:
    """Yield each code that occurs and the index of its rows: None for all rows, a slice, or an array."""
    if (codes == codes[0]).all():
        yield int(codes[0]), None
        return
    order = np.argsort(codes, kind="stable")
    least = int(codes[order[0]])
    sizes = np.bincount(codes.astype(np.intp) - least)
    ends = np.cumsum(sizes)
    for group in np.flatnonzero(sizes).tolist():
        places = order[ends[group] - sizes[group] : ends[group]]
        is_contiguous = places[-1] - places[0] == len(places) - 1
        yield group + least, slice(int(places[0]), int(places[-1]) + 1) if is_contiguous else places


def regrouped(sums: Any, places: Array, n_groups: int) -> Any:
    """Return the sums with group k moved to `places[k]` of `n_groups` groups; the others have no rows."""
    if isinstance(sums, Groups):
        groups: list[Any] = [None] * n_groups
        for place, group in zip(places.tolist(), sums.groups, strict=True):
            groups[place] = group
        return Groups(tuple(groups))
    moved: dict[str, Any] = {}
    for one in fields(sums):
        if is_dataclass(getattr(sums, one.name)):  # sums of sums
            moved[one.name] = regrouped(getattr(sums, one.name), places, n_groups)
            continue
        values = np.asarray(getattr(sums, one.name))
        moved[one.name] = np.zeros((n_groups, *values.shape[1:]), values.dtype)
        moved[one.name][places] = values
    return type(sums)(**moved)


def group_sizes(codes: Array, weight: Array | None, n_groups: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the number of rows and the sum of weights of each group; codes below 0 are skipped."""
    if len(codes) and codes.min() < 0:
        own = codes >= 0
        codes, weight = codes[own], None if weight is None else weight[own]
    count = np.bincount(codes, minlength=n_groups).astype(np.int64, copy=False)
    sums = count if weight is None else np.bincount(codes, weights=weight, minlength=n_groups)
    return count, sums.astype(np.float64)


def group_totals(block: Array, codes: Array, weight: Array | None, origin: Array) -> tuple[Array, Array]:
    """Return the sums of w (x - o) and w (x - o)^2 over the rows of each group; `origin` has one row per group.

    Small blocks use NumPy, since loading the compiled kernel takes longer. The choice depends only on the size of the
    block, so results are reproducible.
    """
    total, square = np.zeros(origin.shape), np.zeros(origin.shape)
    if block.size >= _KERNEL_SIZE:
        from summula.core.numerics.grouped_kernels import add_moments

        w = np.empty(0) if weight is None else np.ascontiguousarray(weight, np.float64)
        block = block.view()
        block.flags.writeable = False  # one signature for all sources of rows
        add_moments(block, codes, w, origin, total, square)
        return total, square
    members = memberships(codes, weight, len(origin))
    shifted = aligned(block - origin[codes])
    return np.asarray(members @ shifted), np.asarray(members @ aligned(shifted * shifted))


def memberships(codes: Array, weight: Array | None, n_groups: int) -> Any:
    """Return the sparse (n_groups, n) matrix with the weight of row i in the row of its group; -1 means no group."""
    from scipy import sparse

    w = np.ones(len(codes)) if weight is None else weight.astype(np.float64)
    rows = np.flatnonzero(codes >= 0)
    return sparse.csr_array((w[rows], (codes[rows], rows)), shape=(n_groups, len(codes)))
