"""The best split of a node, from its histogram.

A node with gradient sum G and curvature sum H has, under the second-order model of the loss and a penalty l2/2 v^2,

    the best value  v = -G / (H + l2),      kept within the bounds that monotone ancestors set,                (1)
    the loss        v G + v^2 (H + l2) / 2,     which at the value (1) is  v G / 2.                            (2)

The gain of a split is the loss of the node less those of its two sides, doubled. Sides are taken bin by bin, missing
values once with each side. Categories are first put in the order of G / (H + smoothing), in which the best of all
subsets is a prefix (Fisher 1958); rare ones go right with the unknown. One side has at most 32 of them: that order is
found on the rows it is judged by, and what of it is chance grows with the number of categories it sorts. For the same
reason the gain is taken with ten more of l2 where a node has more than 32.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from summula.core.engine.worker_group import LINE
from summula.core.numerics.compile import kernel
from summula.tree.histogram_kernels import Packing, accumulate, block_width, subtract, unpacked

__all__ = ["BINS", "MISSING", "Columns", "Limits", "best_split", "sides", "split_children", "warmup", "whole"]

BINS = 256
MISSING = 255  # the bin of missing values, of every column
_BIG = 1.5 * 2.0**52
_MIDDLE = np.int64(0x4338000000000000)  # its bits
_POWER, _POWER_BITS = 2.0**52, np.int64(0x4330000000000000)
_SIGN = np.int64(-(2**63))
_NEARLY = 1e-9  # more than what rounding does to a gain, relatively
_TINY, _HUGE = 1e-100, 1e200
_STRETCH = 64  # bins judged at once
_ROUNDING = 1e-12  # of a node's loss: gains below are none
_SUPPORT = 10.0  # rows a category needs to be sorted, and the smoothing of its place
_MOST = 32  # categories one side of a split may have


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
def sides(total: Any, found: Any, node: Any, limits: Any, sign: int, totals: Any, nodes: Any) -> None:
    """Sums, values and bounds of the two children of a node; `sign` is what the split's column is monotone in."""
    for k in range(3):
        totals[0, k], totals[1, k] = found[3 + k], total[k] - found[3 + k]
    for side in range(2):
        g, h = limits.gradient_unit * totals[side, 0], limits.curvature_unit * totals[side, 1]
        nodes[side, 0] = _value(g, h, limits.l2, node[1], node[2])
        nodes[side, 1], nodes[side, 2] = node[1], node[2]
    if sign != 0:
        below = 0 if sign > 0 else 1
        nodes[below, 2] = nodes[1 - below, 1] = (nodes[0, 0] + nodes[1, 0]) / 2


@kernel
def _bounded_gain(left: float, right: float, a: float, b: float, node: Any, l2: float, monotone: int) -> float:
    """The gain of a split with these gradients and curvatures; -1 where the sides are in the wrong order."""
    vl, vr = _value(left, a, l2, node[1], node[2]), _value(right, b, l2, node[1], node[2])
    if monotone * (vr - vl) < 0:
        return -1.0
    return node[0] * (left + right) - vl * left - vr * right  # type: ignore[no-any-return]


@kernel
def _note(found: Any, f: int, b: int, away: int, g: int, h: int, c: int) -> None:
    found[0], found[1], found[2] = f, b, away
    found[3], found[4], found[5] = g, h, c


@kernel
def _cell(sums: Any, f: int, b: int, packing: Any) -> Any:
    """Gradient, curvature and rows of one bin, packed or wide."""
    if sums.shape[1] == BINS:
        return unpacked(sums[f, b], packing)
    return sums[f, 3 * b], sums[f, 3 * b + 1], sums[f, 3 * b + 2]


@kernel
def whole(sums: Any, packing: Any, limits: Any, total: Any, node: Any) -> None:
    """Sums, value and bounds of the root."""
    total[:] = 0
    for b in range(BINS):
        here = _cell(sums, 0, b, packing)
        for k in range(3):
            total[k] += here[k]
    node[1], node[2] = -np.inf, np.inf
    node[0] = _value(limits.gradient_unit * total[0], limits.curvature_unit * total[1], limits.l2, node[1], node[2])


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
    packing: Any,
    best: float,
    found: Any,
    left: Any,
) -> float:
    """The gain of the best split of a node on the columns from `first` up to `last`, or `best` where none is better.

    total : the node's sums of gradient, curvature and rows.
    node : its value, and its lower and upper bound.
    found : column, last bin on the left (-1 for categories), whether missing values go left; the sums of the left.
    left : 256 flags, which bins go left.
    """
    before, bits, running = best, np.empty(BINS, np.int64), np.empty((4, BINS))
    floor = max(best, _ROUNDING * abs(node[0] * limits.gradient_unit * total[0]))
    best = floor
    for f in range(first, last):
        if allowed[f] == 0:
            continue
        n, lost = columns.n_bins[f], _cell(sums, f, MISSING, packing)[2] > 0
        if columns.categorical[f]:
            best = _best_categories(sums, f, n, total, node, limits, packing, best, found, left)
            continue
        # Missing values on the right (the last bin ends a split only if there are some), then on the left.
        end, sign = n if lost else n - 1, columns.monotone[f]
        best = _best_threshold(sums, f, end, 0, total, node, limits, packing, sign, best, found, bits, running)
        if lost:
            best = _best_threshold(sums, f, n - 1, 1, total, node, limits, packing, sign, best, found, bits, running)
    if best > floor:
        f = found[0]
        if found[1] >= 0:
            for b in range(BINS):
                left[b] = b <= found[1]
            left[MISSING] = found[2]
        if _cell(sums, f, MISSING, packing)[2] == 0:  # none here: with the larger side
            left[MISSING] = found[5] > total[2] - found[5]
        return best
    return before


@kernel
def _may_beat(
    sums: Any, f: int, end: int, away: int, total: Any, limits: Any, packing: Any, bound: float, bits: Any
) -> Any:
    """Which stretch of bins has the splits that may take off more than `bound` of twice the loss, of packed sums.

    bits : gets their running sums.

    Most columns are no better than the best one so far, which is seen without a division:

        L^2 / a + R^2 / z > bound    if and only if    L^2 z + R^2 a > bound a z,

    here up to rounding, which is allowed for. The loop takes several bins at once: the sign of a double is the first
    bit of its integer, and one of them is enough.
    """
    running = away * sums[f, MISSING]
    for b in range(end):
        running += sums[f, b]
        bits[b] = running
    mask, least, most = packing.mask, limits.min_rows, total[2] - limits.min_rows
    first, last = 0, end
    while first + 8 < end and bits[first + 7] & mask < least:
        first += 8
    while first < end and bits[first] & mask < least:
        first += 1
    while last - 8 > first and bits[last - 8] & mask > most:
        last -= 8
    while last > first and bits[last - 1] & mask > most:
        last -= 1
    gu, hu = limits.gradient_unit, limits.curvature_unit
    if not (bound > 0 and min(gu, hu) > _TINY and packing.top >= 12):  # gradients above bit 12 are exact as doubles
        return first, last
    l2, G, H = (limits.l2 + 1e-15) / hu, np.float64(total[0]), np.float64(total[1])
    bound = min((1.0 - _NEARLY) * bound / gu * (hu / gu), _HUGE)
    top, shift, base = np.uint64(packing.top), np.uint64(packing.shift), _POWER + (np.int64(1) << (63 - packing.top))
    wide, low, high = packing.wide, end, 0
    for start in range(first, last, _STRETCH):
        stop, signs = min(start + _STRETCH, last), np.int64(0)
        for b in range(start, stop):
            left = np.int64(np.int64(np.uint64(bits[b] ^ _SIGN) >> top) | _POWER_BITS).view(np.float64) - base
            h = np.int64((np.int64(np.uint64(bits[b]) >> shift) & wide) | _POWER_BITS).view(np.float64) - _POWER
            a, z, right = h + l2, (H - h) + l2, G - left
            signs |= np.float64(bound * (a * z) - (left * left * z + right * right * a)).view(np.int64)
        if signs < 0:
            low, high = min(low, start), stop
    return low, high


@kernel
def _running(sums: Any, f: int, first: int, last: int, away: int, packing: Any, bits: Any, out: Any) -> None:
    """Sums of gradient, curvature and rows over the bins 0 to b of a column, as doubles, for b = first, ..., last - 1.

    away : 1 where missing values are among them.
    bits : the same, packed, where the histogram is.

    They are whole numbers below 2^51 in size, hence exact. The first loop takes several at once: such a number i is the
    last bits of the double 1.5 * 2^52 + i.
    """
    if sums.shape[1] == BINS:
        for b in range(first, last):
            g, h, c = unpacked(bits[b], packing)
            out[0, b] = np.int64(g + _MIDDLE).view(np.float64) - _BIG
            out[1, b] = np.int64(h + _MIDDLE).view(np.float64) - _BIG
            out[2, b] = np.int64(c + _MIDDLE).view(np.float64) - _BIG
    else:
        g, h, c = np.int64(0), np.int64(0), np.int64(0)
        if away:
            g, h, c = sums[f, 3 * MISSING], sums[f, 3 * MISSING + 1], sums[f, 3 * MISSING + 2]
        for b in range(last):
            g, h, c = g + sums[f, 3 * b], h + sums[f, 3 * b + 1], c + sums[f, 3 * b + 2]
            out[0, b], out[1, b], out[2, b] = g, h, c


@kernel
def _score(running: Any, first: int, last: int, gu: float, hu: float, G: float, H: float, l2: float) -> float:
    """Twice the loss that equation (2) takes off with each of these left sides, and the largest; several at once."""
    for b in range(first, last):
        a, z = hu * running[1, b] + l2 + 1e-15, hu * (H - running[1, b]) + l2 + 1e-15
        left = gu * running[0, b]
        right = G - left
        running[3, b] = (left * left * z + right * right * a) * np.reciprocal(a * z)  # a plain / would test for 0
    high = np.int64(0)
    for b in range(first, last):
        high = max(
            high, np.float64(running[3, b]).view(np.int64)
        )  # of positive doubles the order is that of their bits
    return np.int64(high).view(np.float64)


@kernel
def _best_threshold(
    sums: Any,
    f: int,
    end: int,
    away: int,
    total: Any,
    node: Any,
    limits: Any,
    packing: Any,
    monotone: int,
    best: float,
    found: Any,
    bits: Any,
    running: Any,
) -> float:
    """The best of the splits after the bins 0 to end - 1 of a column; `away` is 1 where missing values go left."""
    G, H, gu, hu = limits.gradient_unit * total[0], total[1], limits.gradient_unit, limits.curvature_unit
    l2, light, least, most = limits.l2, limits.min_curvature, limits.min_rows, total[2] - limits.min_rows
    parent, place, first, last = node[0] * G, -1, 0, end
    free = monotone == 0 and node[1] == -np.inf and node[2] == np.inf
    if sums.shape[1] == BINS:
        bound = best - parent if free else -1.0  # a value at its bound may be too large, and with it what it takes off
        first, last = _may_beat(sums, f, end, away, total, limits, packing, bound, bits)
        if first >= last:
            return best
    _running(sums, f, first, last, away, packing, bits, running)
    # What grows from bin to bin is large enough from one bin on, and too large from another.
    while first < last and (running[2, first] < least or hu * running[1, first] < light):
        first += 1
    while last > first and (running[2, last - 1] > most or hu * (H - running[1, last - 1]) < light):
        last -= 1
    if first >= last:
        return best
    if free:
        high = _score(running, first, last, gu, hu, G, H, l2)
        if high + parent > best:
            best, place = high + parent, first
            while running[3, place] != high:
                place += 1
    else:
        for b in range(first, last):
            a, z, left = hu * running[1, b], hu * (H - running[1, b]), gu * running[0, b]
            gain = _bounded_gain(left, G - left, a, z, node, l2, monotone)
            if gain > best:
                best, place = gain, b
    if place >= 0:
        g, h, c = np.int64(running[0, place]), np.int64(running[1, place]), np.int64(running[2, place])
        _note(found, f, place, away, g, h, c)
    return best


@kernel
def _sort(keys: Any, order: Any, n: int) -> None:
    """Sort keys, and their places with them (Shell's way: no more than 256 of them)."""
    for gap in (57, 23, 10, 4, 1):
        for i in range(gap, n):
            key, place, at = keys[i], order[i], i
            while at >= gap and keys[at - gap] > key:
                keys[at], order[at] = keys[at - gap], order[at - gap]
                at -= gap
            keys[at], order[at] = key, place


@kernel
def _best_categories(
    sums: Any,
    f: int,
    n: int,
    total: Any,
    node: Any,
    limits: Any,
    packing: Any,
    best: float,
    found: Any,
    left: Any,
) -> float:
    """The best subset of the categories of one column, missing values as one of them."""
    keys, order = np.empty(BINS), np.empty(BINS, np.int64)
    used = 0
    rows_per_curvature = total[2] / max(limits.curvature_unit * total[1], 1e-300)
    for k in range(n + 1):
        b = k if k < n else MISSING
        here = _cell(sums, f, b, packing)
        h = limits.curvature_unit * here[1]
        if here[2] > 0 and h * rows_per_curvature >= _SUPPORT:
            keys[used], order[used] = limits.gradient_unit * here[0] / (h + _SUPPORT), b
            used += 1
    if used < 2:
        return best
    _sort(keys, order, used)
    l2 = limits.l2 + (_SUPPORT if used > _MOST else 0.0)
    for backwards in range(2):
        g, h, c = np.int64(0), np.int64(0), np.int64(0)
        for k in range(min((used + 1) // 2, _MOST)):
            here = _cell(sums, f, order[used - 1 - k] if backwards else order[k], packing)
            g, h, c = g + here[0], h + here[1], c + here[2]
            a, z = limits.curvature_unit * h, limits.curvature_unit * (total[1] - h)
            if min(c, total[2] - c) < limits.min_rows or min(a, z) < limits.min_curvature:
                continue
            left_sum, right_sum = limits.gradient_unit * g, limits.gradient_unit * (total[0] - g)
            gain = _bounded_gain(left_sum, right_sum, a, z, node, l2, 0)
            if gain > best:
                best = gain
                left[:] = 0
                for i in range(k + 1):
                    left[order[used - 1 - i] if backwards else order[i]] = 1
                _note(found, f, -1, np.int64(left[MISSING]), g, h, c)
    return best


@kernel
def split_children(
    bins: Any,
    rows: Any,
    gradients: Any,
    first: int,
    last: int,
    space: Any,
    small: Any,
    parent: Any,
    large: Any,
    which: int,
    columns: Any,
    allowed: Any,
    totals: Any,
    nodes: Any,
    limits: Any,
    packing: Any,
    gains: Any,
    founds: Any,
    lefts: Any,
    table: Any,
) -> None:
    """Histograms and best splits of two siblings on the columns from `first` up to `last`.

    rows : those of the smaller one; none when its histogram is in `small` already.
    parent : the histogram of their parent; `large`, where that of the larger one goes, may be the same.
    which : the smaller sibling, 0 or 1, in all arrays with an entry for each.
    gains : -1 where there is no split, as in one with too few rows for two.
    """
    enough = 2 * limits.min_rows
    gains[0] = gains[1] = -1.0
    width = block_width(last - first)
    for low in range(first, last, width):
        high = min(low + width, last)
        if len(rows):
            accumulate(bins, rows, gradients, low, high, packing, space, small, table)
        subtract(parent, small, large, low, high, packing)
        for side in range(2):
            if totals[side, 2] < enough:
                continue
            gains[side] = best_split(
                small if side == which else large,
                low,
                high,
                columns,
                allowed[side],
                totals[side],
                nodes[side],
                limits,
                packing,
                gains[side],
                founds[side],
                lefts[side],
            )


def warmup() -> None:
    """Compile for the types people use."""
    columns = Columns(np.ones(1, np.int64), np.zeros(1, np.int64), np.zeros(1, np.int64))
    limits, packing = Limits(1.0, 1.0, 0.0, 1, 1e-3), Packing.of(14, 9)
    sums = np.zeros((1, BINS), np.int64)
    allowed, totals, nodes = np.ones((2, 1), np.uint8), np.zeros((2, 3), np.int64), np.zeros((2, 3))
    founds, lefts = np.zeros((2, 6), np.int64), np.zeros((2, BINS), np.uint8)
    whole(sums, packing, limits, totals[0], nodes[0])
    best_split(sums, 0, 1, columns, allowed[0], totals[0], nodes[0], limits, packing, -1.0, founds[0], lefts[0])
    sides(totals[0], founds[0], nodes[0], limits, 0, totals, nodes)
    split_children(
        np.zeros((1, 1), np.uint8),
        np.zeros(1, np.uint32),
        np.ones(1, np.int64),
        0,
        1,
        np.zeros((1, BINS), np.int64),
        sums,
        sums,
        sums,
        0,
        columns,
        allowed,
        totals,
        nodes,
        limits,
        packing,
        np.zeros(2),
        founds,
        lefts,
        np.zeros((2, LINE), np.int64),
    )
