"""Rows of nodes: one array of row numbers, in which every node has a stretch; a split sorts its stretch in two.

Both sides keep the order of their rows, so that later passes over the bins move forwards in memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from summula.core.numerics.compile import kernel

__all__ = ["add_values", "gather", "leaf_sums", "leaf_values", "scatter", "warmup"]


@kernel
def scatter(rows: Any, bins: Any, stride: int, left: Any, start: int, stop: int, spare: Any) -> int:
    """Copy a stretch of `rows` to the same stretch of `spare`: from its start those whose bin goes left, the others
    backwards from its end. Gives the number of the former.

    bins : the bin of row i of the table, in the column of the split, is bins[i * stride].
    """
    a, b, by = np.uint64(start), np.uint64(stop - 1), np.uint64(stride)
    for i in range(start, stop):
        row = rows[i]
        goes = np.uint64(left[bins[np.uint64(row) * by]])
        spare[a] = row  # no branch to foretell: the place is used again when the row was not meant for it
        spare[b] = row
        a += goes
        b -= np.uint64(1) - goes
    return int(a) - start


@kernel
def gather(rows: Any, spare: Any, start: int, stop: int, lefts: int, first: int, second: int) -> None:
    """Bring the two parts of a stretch back to `rows`, to the places `first` and `second`, in their old order."""
    for i in range(lefts):
        rows[first + i] = spare[start + i]
    for i in range(stop - start - lefts):
        rows[second + i] = spare[stop - 1 - i]


@kernel
def leaf_sums(
    rows: Any, starts: Any, first: int, last: int, gradients: Any, curvatures: Any, unit: float, out: Any
) -> None:
    """Sums of gradient and curvature over the rows of the leaves from `first` up to `last`.

    In multiples of 1 / unit: integers, so that their order is nothing to them. No curvatures at all mean that every
    one is 1.
    """
    flat = len(curvatures) == 0
    for leaf in range(first, last):
        g, h = np.int64(0), np.int64(0)
        for i in range(starts[leaf], starts[leaf + 1]):
            row = np.uint64(rows[i])
            g += np.int64(np.rint(np.float64(gradients[row]) * unit))
            if not flat:
                h += np.int64(np.rint(np.float64(curvatures[row]) * unit))
        out[leaf, 0] = g / unit
        out[leaf, 1] = starts[leaf + 1] - starts[leaf] if flat else h / unit


@kernel
def leaf_values(
    rows: Any,
    starts: Any,
    leaves: Any,
    first: int,
    last: int,
    gradients: Any,
    curvatures: Any,
    unit: float,
    l2: float,
    rate: float,
    bounds: Any,
    value: Any,
    weight: Any,
) -> None:
    """-rate g / (h + l2), with the sums g and h of a leaf, and h, for the leaves from `first` up to `last`.

    bounds : of each node the least and the largest value before `rate`, in its columns 1 and 2.
    """
    sums = np.empty((len(leaves), 2))
    leaf_sums(rows, starts, first, last, gradients, curvatures, unit, sums)
    for k in range(first, last):
        node, h = leaves[k], sums[k, 1]
        v = -sums[k, 0] / (h + l2 + 1e-15)
        value[node], weight[node] = rate * min(max(v, bounds[node, 1]), bounds[node, 2]), h


@kernel
def add_values(rows: Any, starts: Any, values: Any, first: int, last: int, scores: Any) -> None:
    """Add to the score of each row the value of its leaf, for the leaves from `first` up to `last`."""
    for leaf in range(first, last):
        v = values[leaf]
        for i in range(starts[leaf], starts[leaf + 1]):
            scores[np.uint64(rows[i])] += v


def warmup() -> None:
    """Compile for the types people use."""
    rows = np.zeros(1, np.uint32)
    g, out = np.zeros(1, np.float32), np.zeros(1)
    leaf_values(rows, np.array([0, 1]), np.array([0]), 0, 1, g, g, 1.0, 0.0, 1.0, np.zeros((1, 3)), out, out)
    for kind in (np.float32, np.float64):
        add_values(rows, np.array([0, 1]), np.zeros(1), 0, 1, np.zeros(1, kind))
