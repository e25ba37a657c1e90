"""Stable partitioning: the row index has consecutive entries for every node, which a split partitions.

Both sides preserve the order of their rows, so later passes over the bins access memory in ascending order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from summula.core.compilation.compile import internal_kernel

__all__ = ["gather", "scatter"]


@internal_kernel
def scatter(rows: Any, bins: Any, stride: int, goes_left: Any, start: int, stop: int, scratch: Any) -> int:
    """Copy rows[start:stop] to scratch[start:stop]: left rows from the start, right rows from the end.

    bins : the bin of row i, in the feature of the split, is bins[i * stride].

    Returns the number of rows that go left.
    """
    a, b, by = np.uint64(start), np.uint64(stop - 1), np.uint64(stride)
    for i in range(start, stop):
        row = rows[i]
        left = np.uint64(goes_left[bins[np.uint64(row) * by]])
        scratch[a] = row  # without a branch: the entry is overwritten if the row goes to the other side
        scratch[b] = row
        a += left
        b -= np.uint64(1) - left
    return int(a) - start


@internal_kernel
def gather(rows: Any, scratch: Any, start: int, stop: int, n_left: int, first: int, second: int) -> None:
    """Copy the two parts of scratch[start:stop] to `rows`, from `first` and `second` on, in their original order."""
    for i in range(n_left):
        rows[first + i] = scratch[start + i]
    for i in range(stop - start - n_left):
        rows[second + i] = scratch[stop - 1 - i]
