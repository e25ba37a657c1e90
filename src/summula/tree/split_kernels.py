"""The best split of a node, from its histogram.

A node with gradient sum G and curvature sum H has, under the second-order model of the loss and a penalty l2/2 v^2,

    the best value  v = -G / (H + l2),      kept within the bounds that monotone ancestors set,                (1)
    the loss        v G + v^2 (H + l2) / 2,     which at the value (1) is  v G / 2.                            (2)

The gain of a split is the loss of the node less those of its two sides, doubled. Sides are taken bin by bin, missing
values once with each side. Categories are first put in the order of G / (H + smoothing), in which the best of all
subsets is a prefix (Fisher 1958); rare ones go right with the unknown.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from summula.core.compile import kernel
from summula.tree.histogram_kernels import accumulate

__all__ = ["BINS", "MISSING", "Columns", "Limits", "best_split", "split_children", "warmup"]

BINS = 256
MISSING = 255  # the bin of missing values, of every column
_SUPPORT = 10.0  # rows a category needs to be sorted, and the smoothing of its place


class Columns(NamedTuple):
    """What the columns are, as arrays with an entry each."""

    n_bins: Any  # bins in use, without that of missing values
    categorical: Any  # 1 or 0
    monotone: Any  # 1: up, -1: down, 0: free


class Limits(NamedTuple):
    """What splits must obey, and what an integer of the sums is worth."""

    gradient_unit: float
    curvature_unit: float
    l2: float
    min_rows: int
    min_curvature: float


@kernel
def _value(g: float, h: float, l2: float, low: float, high: float) -> float:
    """Equation (1)."""
    v = -g / (h + l2 + 1e-15)
    return min(max(v, low), high)


@kernel
def _bounded_gain(left: float, right: float, a: float, b: float, node: Any, l2: float, monotone: int) -> float:
    """The gain of a split with these gradients and curvatures; -1 where the sides are in the wrong order."""
    vl, vr = _value(left, a, l2, node[1], node[2]), _value(right, b, l2, node[1], node[2])
    if monotone * (vr - vl) < 0:
        return -1.0
    return node[0] * (left + right) - vl * left - vr * right  # type: ignore[no-any-return]


@kernel
def _note(out: Any, found: Any, gain: float, f: int, b: int, away: int, g: int, h: int, c: int) -> None:
    out[0] = gain
    found[0], found[1], found[2] = f, b, away
    found[3], found[4], found[5] = g, h, c


@kernel
def best_split(
    sums: Any,
    first: int,
    last: int,
    columns: Any,
    allowed: Any,
    total: Any,
    node: Any,
    limits: Any,
    out: Any,
    found: Any,
    left: Any,
) -> None:
    """The best split of a node on the columns from `first` up to `last`.

    total : the node's sums of gradient, curvature and rows.
    node : its value, and its lower and upper bound.
    out : gain goes to out[0], -1 where there is no split.
    found : column, last bin on the left (-1 for categories), whether missing values go left; the sums of the left.
    left : 256 flags, which bins go left.
    """
    out[0] = -1.0
    keys, order = np.empty(BINS), np.empty(BINS, np.int64)
    for f in range(first, last):
        if allowed[f] == 0:
            continue
        n, cells = columns.n_bins[f], sums[f]
        lost = cells[MISSING, 2]
        if columns.categorical[f]:
            _best_categories(cells, f, n, total, node, limits, keys, order, out, found, left)
            continue
        # Missing values on the right (the last bin ends a split only if there are some), then on the left.
        for away in range(2 if lost > 0 else 1):
            end = n if lost > 0 and not away else n - 1
            _best_threshold(cells, f, end, away, total, node, limits, columns.monotone[f], out, found)
    if out[0] > 0:
        f = found[0]
        if found[1] >= 0:
            for b in range(BINS):
                left[b] = b <= found[1]
            left[MISSING] = found[2]
        if sums[f, MISSING, 2] == 0:  # none here: with the larger side
            left[MISSING] = found[5] > total[2] - found[5]


@kernel
def _best_threshold(
    cells: Any, f: int, end: int, away: int, total: Any, node: Any, limits: Any, monotone: int, out: Any, found: Any
) -> None:
    """The best of the splits after the bins 0 to end - 1 of a column, missing values on the left if `away`."""
    G, H, C, flat = total[0], total[1], total[2], cells.reshape(-1)
    gu, hu, l2, least, light = (
        limits.gradient_unit,
        limits.curvature_unit,
        limits.l2,
        limits.min_rows,
        limits.min_curvature,
    )
    free = monotone == 0 and node[1] == -np.inf and node[2] == np.inf
    parent, best = node[0] * (gu * G), out[0]
    g, h, c = np.int64(0), np.int64(0), np.int64(0)
    if away:
        g, h, c = cells[MISSING, 0], cells[MISSING, 1], cells[MISSING, 2]
    for b in range(end):
        at = np.uint64(3 * b)
        here = flat[at + np.uint64(2)]
        g, h, c = g + flat[at], h + flat[at + np.uint64(1)], c + here
        if c < least or (here == 0 and b < end - 1):
            continue  # too few, or the same split as one bin before
        if C - c < least:
            break
        a, z = hu * h, hu * (H - h)
        if a < light or z < light:
            continue
        left, right = gu * g, gu * (G - g)
        if free:
            # Equation (2) of both sides over one denominator, and no division where the comparison can do without.
            a, z = a + l2 + 1e-15, z + l2 + 1e-15
            above = left * left * z + right * right * a
            if above <= (best - parent) * (a * z):
                continue
            gain = above / (a * z) + parent
        else:
            gain = _bounded_gain(left, right, a, z, node, l2, monotone)
        if gain > best:
            best = gain
            _note(out, found, gain, f, b, away, g, h, c)


@kernel
def _best_categories(
    cells: Any,
    f: int,
    n: int,
    total: Any,
    node: Any,
    limits: Any,
    keys: Any,
    order: Any,
    out: Any,
    found: Any,
    left: Any,
) -> None:
    """The best subset of the categories of one column, missing values as one of them."""
    used = 0
    rows_per_curvature = total[2] / max(limits.curvature_unit * total[1], 1e-300)
    for k in range(n + 1):
        b = k if k < n else MISSING
        h = limits.curvature_unit * cells[b, 1]
        if cells[b, 2] > 0 and h * rows_per_curvature >= _SUPPORT:
            key = limits.gradient_unit * cells[b, 0] / (h + _SUPPORT)
            at = used
            while at > 0 and keys[at - 1] > key:
                keys[at], order[at] = keys[at - 1], order[at - 1]
                at -= 1
            keys[at], order[at] = key, b
            used += 1
    if used < 2:
        return
    for backwards in range(2):
        g, h, c = np.int64(0), np.int64(0), np.int64(0)
        for k in range((used + 1) // 2):
            b = order[used - 1 - k] if backwards else order[k]
            g, h, c = g + cells[b, 0], h + cells[b, 1], c + cells[b, 2]
            a, z = limits.curvature_unit * h, limits.curvature_unit * (total[1] - h)
            if min(c, total[2] - c) < limits.min_rows or min(a, z) < limits.min_curvature:
                continue
            left_sum, right_sum = limits.gradient_unit * g, limits.gradient_unit * (total[0] - g)
            gain = _bounded_gain(left_sum, right_sum, a, z, node, limits.l2, 0)
            if gain > out[0]:
                _note(out, found, gain, f, -1, 0, g, h, c)
                left[:] = 0
                for i in range(k + 1):
                    left[order[used - 1 - i] if backwards else order[i]] = 1
                found[2] = left[MISSING]


@kernel
def split_children(
    bins: Any,
    rows: Any,
    gradients: Any,
    first: int,
    last: int,
    count_bits: int,
    bits: int,
    packed: Any,
    small: Any,
    large: Any,
    columns: Any,
    allowed: Any,
    totals: Any,
    nodes: Any,
    limits: Any,
    outs: Any,
    founds: Any,
    lefts: Any,
) -> None:
    """Histograms and best splits of two siblings on the columns from `first` up to `last`.

    `rows` are those of the smaller one; none when its histogram is in `small` already. `large` is the histogram of
    their parent, and becomes that of the larger sibling. Of each pair the smaller sibling comes first.
    """
    if len(rows):
        small[first:last] = 0
        accumulate(bins, rows, gradients, first, last, count_bits, bits, packed, small)
    for f in range(first, last):
        for b in range(BINS):
            for k in range(3):
                large[f, b, k] -= small[f, b, k]
    best_split(small, first, last, columns, allowed[0], totals[0], nodes[0], limits, outs[0], founds[0], lefts[0])
    best_split(large, first, last, columns, allowed[1], totals[1], nodes[1], limits, outs[1], founds[1], lefts[1])


def warmup() -> None:
    """Compile for the types people use."""
    columns = Columns(np.ones(1, np.int64), np.zeros(1, np.int64), np.zeros(1, np.int64))
    limits = Limits(1.0, 1.0, 0.0, 1, 1e-3)
    sums = np.zeros((2, 1, BINS, 3), np.int64)
    split_children(
        np.zeros((1, 1), np.uint8),
        np.zeros(1, np.uint32),
        np.ones(1, np.int64),
        0,
        1,
        14,
        0,
        np.zeros((1, BINS), np.int64),
        sums[0],
        sums[1],
        columns,
        np.ones((2, 1), np.uint8),
        np.zeros((2, 3), np.int64),
        np.zeros((2, 3)),
        limits,
        np.zeros((2, 1)),
        np.zeros((2, 6), np.int64),
        np.zeros((2, BINS), np.uint8),
    )
