"""The Newton criterion: the best split of a node, from its histogram of gradients and hessians.

A node with gradient sum G and hessian sum H has, under the second-order model of the loss and a penalty l2/2 v^2,

    the best value  v = -G / (H + l2),      clipped to the bounds set by monotone ancestors,                   (1)
    the loss        v G + v^2 (H + l2) / 2,     which at the value (1) is  v G / 2.                            (2)

The gain of a split is twice the loss of the node minus those of its two sides. Splits are evaluated bin by bin, with
missing values on either side. Categories are first sorted by G / (H + smoothing), an order in which the optimal subset
is a prefix (Fisher 1958); rare ones go right with the unknown. One side has at most 32 of them: the order is estimated
from the same rows that evaluate the split, so overfitting grows with the number of categories sorted. For the same
reason l2 is increased by ten if a node has more than 32 categories.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from summula.core.compilation.compile import inlined, internal_kernel
from summula.core.compilation.late_binding import KernelSignature
from summula.tree.growing.histogram_kernels import BINS, Packing, unpack
from summula.tree.growing.records import FEATURE, NEWTON_SUMS, PARAMETERS, node_dtype, split_dtype

__all__ = [
    "MISSING",
    "SEARCH",
    "Search",
    "SplitInputs",
    "find_best_split",
    "set_children",
    "set_root",
]

MISSING = 255  # the bin of missing values, of every feature
_NEARLY = 1e-9  # bound on the relative rounding error of a gain
_ROUNDING = 1e-12  # relative to a node's loss: smaller gains count as zero
_TINY, _HUGE = 1e-100, 1e200
_STRETCH = 64  # number of bins compared with the best gain at once
_SUPPORT = 10.0  # minimum number of rows for a category to be sorted, and smoothing of its sort key
_MAX_CATEGORIES = 32  # maximum number of categories on one side of a split

# Vectorised conversion of integers to doubles: i < 2^52 is the low bits of the double 2^52 + i, and |i| < 2^51 those of
# 1.5 2^52 + i.
_POWER, _POWER_BITS = 2.0**52, np.int64(0x4330000000000000)
_MIDDLE, _MIDDLE_BITS = 1.5 * 2.0**52, np.int64(0x4338000000000000)
_SIGN = np.int64(-(2**63))


class SplitInputs(NamedTuple):
    """Inputs of the split search other than histograms."""

    features: Any  # of dtype FEATURE
    parameters: Any  # one record of dtype PARAMETERS
    packing: Packing
    find_best_threshold: int  # addresses of kernels
    find_best_categories: int

    @classmethod
    def of(cls, features: Any, parameters: Any, packing: Packing) -> SplitInputs:
        """Return the inputs with the addresses of the kernels, compiled if necessary; 0 without categories."""
        categories = find_best_categories.address() if features["is_categorical"].any() else 0
        return cls(features, parameters, packing, find_best_threshold.address(), categories)


class Search(NamedTuple):
    """Scratch arrays of the search for the best split of one node."""

    split: Any  # best split so far, of dtype `split_dtype`
    goes_left: Any  # flags of the 256 bins: whether they go left
    allowed: Any  # flags of the features: whether they may be used
    bits: Any  # scratch: 256 of int64
    sums: Any  # scratch: (4, 256) of float64


@inlined
def _newton_value(gradient: float, hessian: float, l2: float, node: Any) -> float:
    """Return the value (1)."""
    v = -gradient / (hessian + l2 + 1e-15)
    return min(max(v, node.lower), node.upper)  # type: ignore[no-any-return]


@inlined
def _bin_sums(histogram: Any, f: int, b: int, packing: Any) -> Any:
    """Return gradient, hessian and rows of one bin, packed or wide."""
    if histogram.shape[1] == BINS:
        g, h, c = unpack(histogram[f, b], packing)
    else:
        g, h, c = histogram[f, 3 * b], histogram[f, 3 * b + 1], histogram[f, 3 * b + 2]
    return g, h, c


@internal_kernel
def set_root(histogram: Any, inputs: Any, node: Any) -> None:
    """Set sums, value and bounds of the root."""
    parameters, sums = inputs.parameters[0], node.sums
    sums.gradient = sums.hessian = sums.count = 0
    for b in range(BINS):
        g, h, c = _bin_sums(histogram, 0, b, inputs.packing)
        sums.gradient += g
        sums.hessian += h
        sums.count += c
    node.lower, node.upper = -np.inf, np.inf
    node.weight = parameters.hessian_unit * sums.hessian
    node.value = _newton_value(parameters.gradient_unit * sums.gradient, node.weight, parameters.l2, node)


@internal_kernel
def set_children(node: Any, inputs: Any, left: Any, right: Any) -> None:
    """Set sums, values and bounds of the two children of a node, from its split."""
    parameters = inputs.parameters[0]
    left.sums = node.split.left
    right.sums.gradient = node.sums.gradient - left.sums.gradient
    right.sums.hessian = node.sums.hessian - left.sums.hessian
    right.sums.count = node.sums.count - left.sums.count
    for child in (left, right):
        child.lower, child.upper = node.lower, node.upper
        child.weight = parameters.hessian_unit * child.sums.hessian
        child.value = _newton_value(parameters.gradient_unit * child.sums.gradient, child.weight, parameters.l2, child)
    monotone, middle = inputs.features[node.split.feature].monotone, (left.value + right.value) / 2
    if monotone > 0:
        left.upper = right.lower = middle
    elif monotone < 0:
        right.upper = left.lower = middle


@inlined
def _bounded_gain(left: float, right: float, a: float, z: float, l2: float, monotone: int, node: Any) -> float:
    """Return the gain of a split with these gradients and hessians; -1 if it violates a monotonicity constraint."""
    vl, vr = _newton_value(left, a, l2, node), _newton_value(right, z, l2, node)
    gain = node.value * (left + right) - vl * left - vr * right
    return -1.0 if monotone * (vr - vl) < 0 else gain


def _example_inputs() -> tuple[SplitInputs, Any, Search]:
    """Return example inputs, a node, and search arrays, to compile kernels with."""
    inputs = SplitInputs(np.zeros(1, FEATURE), np.zeros(1, PARAMETERS), Packing(0, 0, 0, 0), 0, 0)
    node, split = np.zeros(1, node_dtype(NEWTON_SUMS))[0], np.zeros(1, split_dtype(NEWTON_SUMS))[0]
    flags, bits = np.zeros(BINS, np.uint8), np.zeros(BINS, np.int64)
    return inputs, node, Search(split, flags, flags, bits, np.zeros((4, BINS)))


SEARCH = KernelSignature(lambda: (np.zeros((1, BINS), np.int64), 0, 0, *_example_inputs()))
_THRESHOLD = KernelSignature(lambda: (np.zeros((1, BINS), np.int64), 0, 0, 0, *_example_inputs()))
_CATEGORIES = KernelSignature(lambda: (np.zeros((1, BINS), np.int64), 0, *_example_inputs()))
_call_threshold, _call_categories = _THRESHOLD.call, _CATEGORIES.call


@SEARCH.kernel
def find_best_split(histogram: Any, first: int, last: int, inputs: Any, node: Any, search: Any) -> None:
    """Find the best split of a node on the features from `first` up to `last`, if it improves on the one so far."""
    features, parameters, packing = inputs.features, inputs.parameters[0], inputs.packing
    split, goes_left, allowed = search.split, search.goes_left, search.allowed
    before = split.gain
    floor = max(before, _ROUNDING * abs(node.value * parameters.gradient_unit * node.sums.gradient))
    split.gain = floor
    for f in range(first, last):
        if allowed[f] == 0:
            continue
        if features[f].is_categorical:
            _call_categories(inputs.find_best_categories, (histogram, f, inputs, node, search))
            continue
        # Missing values on the right (the last bin ends a split only if there are some), then on the left.
        n_bins = features[f].n_bins
        has_missing = _bin_sums(histogram, f, MISSING, packing)[2] > 0
        for missing_left in range(2 if has_missing else 1):
            end = n_bins if has_missing and missing_left == 0 else n_bins - 1
            _call_threshold(inputs.find_best_threshold, (histogram, f, end, missing_left, inputs, node, search))
    if not split.gain > floor:
        split.gain = before
        return
    if split.bin >= 0:
        for b in range(BINS):
            goes_left[b] = b <= split.bin
        goes_left[MISSING] = split.missing_left
    if _bin_sums(histogram, split.feature, MISSING, packing)[2] == 0:  # no missing values: default to the larger side
        goes_left[MISSING] = split.left.count > node.sums.count - split.left.count


@inlined
def _promising_range(
    histogram: Any, f: int, end: int, missing_left: int, inputs: Any, node: Any, bound: float, bits: Any
) -> Any:
    """Return the range of bins whose splits may decrease twice the loss by more than `bound`, from packed sums.

    bits : receives their running sums.

    Most features do not improve on the best one so far, which is detected without a division:

        L^2 / a + R^2 / z > bound    if and only if    L^2 z + R^2 a > bound a z,

    with an allowance for rounding. The loop is vectorised over bins: the sign of a double is the first bit of its
    integer, and one negative difference is enough.
    """
    parameters, packing = inputs.parameters[0], inputs.packing
    running = missing_left * histogram[f, MISSING]
    for b in range(end):
        running += histogram[f, b]
        bits[b] = running
    mask, least = packing.count_mask, parameters.min_rows
    most = node.sums.count - least
    low, high = 0, end
    while low + 8 < end and bits[low + 7] & mask < least:
        low += 8
    while low < end and bits[low] & mask < least:
        low += 1
    while high - 8 > low and bits[high - 8] & mask > most:
        high -= 8
    while high > low and bits[high - 1] & mask > most:
        high -= 1
    gu, hu = parameters.gradient_unit, parameters.hessian_unit
    if bound > 0 and min(gu, hu) > _TINY and packing.top >= 12:  # gradients above bit 12 are exact as doubles
        l2, G, H = (parameters.l2 + 1e-15) / hu, np.float64(node.sums.gradient), np.float64(node.sums.hessian)
        bound = min((1.0 - _NEARLY) * bound / gu * (hu / gu), _HUGE)
        top, shift, hessian_mask = np.uint64(packing.top), np.uint64(packing.shift), packing.hessian_mask
        base = _POWER + (np.int64(1) << (63 - packing.top))
        begin, limit, low, high = low, high, end, 0
        for start in range(begin, limit, _STRETCH):
            stop, signs = min(start + _STRETCH, limit), np.int64(0)
            for b in range(start, stop):
                left = np.int64(np.int64(np.uint64(bits[b] ^ _SIGN) >> top) | _POWER_BITS).view(np.float64) - base
                h = np.int64((np.int64(np.uint64(bits[b]) >> shift) & hessian_mask) | _POWER_BITS).view(np.float64)
                a = (h - _POWER) + l2
                z, right = (H - (h - _POWER)) + l2, G - left
                signs |= np.float64(bound * (a * z) - (left * left * z + right * right * a)).view(np.int64)
            if signs < 0:
                low, high = min(low, start), stop
    return low, high


@inlined
def _running_sums(
    histogram: Any, f: int, first: int, last: int, missing_left: int, packing: Any, bits: Any, out: Any
) -> None:
    """Write sums of gradient, hessian and rows over the bins 0 to b as doubles, for b = first, ..., last - 1.

    They are integers below 2^51 in absolute value, hence exact.
    """
    if histogram.shape[1] == BINS:
        for b in range(first, last):
            g, h, c = unpack(bits[b], packing)
            out[0, b] = np.int64(g + _MIDDLE_BITS).view(np.float64) - _MIDDLE
            out[1, b] = np.int64(h + _MIDDLE_BITS).view(np.float64) - _MIDDLE
            out[2, b] = np.int64(c + _MIDDLE_BITS).view(np.float64) - _MIDDLE
    else:
        g, h, c = np.int64(0), np.int64(0), np.int64(0)
        if missing_left:
            g, h, c = histogram[f, 3 * MISSING], histogram[f, 3 * MISSING + 1], histogram[f, 3 * MISSING + 2]
        for b in range(last):
            g, h, c = g + histogram[f, 3 * b], h + histogram[f, 3 * b + 1], c + histogram[f, 3 * b + 2]
            out[0, b], out[1, b], out[2, b] = g, h, c


@_THRESHOLD.kernel
def find_best_threshold(
    histogram: Any, f: int, end: int, missing_left: int, inputs: Any, node: Any, search: Any
) -> None:
    """Find the best of the splits after the bins 0 to end - 1 of a feature, if it improves on the one so far."""
    parameters, split, bits, running = inputs.parameters[0], search.split, search.bits, search.sums
    gu, hu, l2, monotone = parameters.gradient_unit, parameters.hessian_unit, parameters.l2, inputs.features[f].monotone
    G, H, best, place = gu * node.sums.gradient, np.float64(node.sums.hessian), split.gain, -1
    parent, first, last = node.value * G, 0, end
    is_free = monotone == 0 and node.lower == -np.inf and node.upper == np.inf
    if histogram.shape[1] == BINS:
        bound = best - parent if is_free else -1.0  # a clipped value may decrease the loss less than estimated
        first, last = _promising_range(histogram, f, end, missing_left, inputs, node, bound, bits)
    if first >= last:
        return
    _running_sums(histogram, f, first, last, missing_left, inputs.packing, bits, running)
    # Running sums increase from bin to bin: they are large enough from one bin on, and too large from another.
    light, least, most = parameters.min_hessian, parameters.min_rows, node.sums.count - parameters.min_rows
    while first < last and (running[2, first] < least or hu * running[1, first] < light):
        first += 1
    while last > first and (running[2, last - 1] > most or hu * (H - running[1, last - 1]) < light):
        last -= 1
    if first >= last:
        return
    if is_free:
        high = np.int64(0)  # positive doubles are ordered like their bits
        for b in range(first, last):
            a, z = hu * running[1, b] + l2 + 1e-15, hu * (H - running[1, b]) + l2 + 1e-15
            left = gu * running[0, b]
            right = G - left
            running[3, b] = (left * left * z + right * right * a) * np.reciprocal(a * z)
        for b in range(first, last):
            high = max(high, np.float64(running[3, b]).view(np.int64))
        highest = np.int64(high).view(np.float64)
        if highest + parent > best:
            best, place = highest + parent, first
            while running[3, place] != highest:
                place += 1
    else:
        for b in range(first, last):
            a, z, left = hu * running[1, b], hu * (H - running[1, b]), gu * running[0, b]
            gain = _bounded_gain(left, G - left, a, z, l2, monotone, node)
            if gain > best:
                best, place = gain, b
    if place >= 0:
        split.gain, split.feature, split.bin, split.missing_left = best, f, place, missing_left
        split.left.gradient = np.int64(running[0, place])
        split.left.hessian = np.int64(running[1, place])
        split.left.count = np.int64(running[2, place])


@inlined
def _sort(keys: Any, order: Any, n: int) -> None:
    """Sort keys together with their indices by Shell sort (there are at most 256)."""
    for gap in (57, 23, 10, 4, 1):
        for i in range(gap, n):
            key, place, at = keys[i], order[i], i
            while at >= gap and keys[at - gap] > key:
                keys[at], order[at] = keys[at - gap], order[at - gap]
                at -= gap
            keys[at], order[at] = key, place


@_CATEGORIES.kernel
def find_best_categories(histogram: Any, f: int, inputs: Any, node: Any, search: Any) -> None:
    """Find the best subset of the categories of a feature, including missing values, if it improves on the best."""
    parameters, packing, n_bins = inputs.parameters[0], inputs.packing, inputs.features[f].n_bins
    gu, hu, total = parameters.gradient_unit, parameters.hessian_unit, node.sums
    split, goes_left, order, keys, used = search.split, search.goes_left, search.bits, search.sums[0], 0
    rows_per_hessian = total.count / max(hu * total.hessian, 1e-300)
    for k in range(n_bins + 1):
        b = k if k < n_bins else MISSING
        g, h, c = _bin_sums(histogram, f, b, packing)
        if c > 0 and hu * h * rows_per_hessian >= _SUPPORT:
            keys[used], order[used] = gu * g / (hu * h + _SUPPORT), b
            used += 1
    if used < 2:
        return
    _sort(keys, order, used)
    l2 = parameters.l2 + (_SUPPORT if used > _MAX_CATEGORIES else 0.0)
    for backwards in range(2):
        g, h, c = np.int64(0), np.int64(0), np.int64(0)
        for k in range(min((used + 1) // 2, _MAX_CATEGORIES)):
            here = _bin_sums(histogram, f, order[used - 1 - k] if backwards else order[k], packing)
            g, h, c = g + here[0], h + here[1], c + here[2]
            a, z = hu * h, hu * (total.hessian - h)
            if min(c, total.count - c) < parameters.min_rows or min(a, z) < parameters.min_hessian:
                continue
            gain = _bounded_gain(gu * g, gu * (total.gradient - g), a, z, l2, 0, node)
            if gain > split.gain:
                goes_left[:] = 0
                for i in range(k + 1):
                    goes_left[order[used - 1 - i] if backwards else order[i]] = 1
                split.gain, split.feature, split.bin, split.missing_left = gain, f, -1, goes_left[MISSING]
                split.left.gradient, split.left.hessian, split.left.count = g, h, c
