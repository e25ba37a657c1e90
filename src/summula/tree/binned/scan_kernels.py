"""The best split of one column of a node, from the sums of its bins.

Splits are scored by equations (1) to (4) of `tree.growing.node_sums`. Nonempty bins are scanned in ascending order;
categories in the order of their mean (for two classes, of the proportion of the second), in which some prefix is the
optimal subset (Fisher 1958); with more classes, or several targets, the order by each is tried. Missing values are
tried on either side.

The kernels for numbers in general, for two sums of numbers, and for categories are called by address: only those that a
tree needs are compiled (`bind_kernels`), on two cores.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from summula.core.compilation.compile import inlined, internal_kernel
from summula.core.compilation.late_binding import KernelSignature
from summula.core.engine.random_kernels import random_bits
from summula.tree.binned.records import BINS, MISSING, NODE, BinnedTable, Scratch
from summula.tree.exact.records import ENTROPY, GINI, PARAMETERS, SQUARED
from summula.tree.growing.node_sums import score_sides
from summula.tree.growing.outputs import Outputs

__all__ = ["bind_kernels", "compile_kernels", "find_split", "find_split_of_cells", "needed_kernels"]

_BELOW = 0.5 - 1e-6  # weight of the lower of two edges in their midpoint
_FEW = 256  # number of rows below which only nonempty bins are visited


# ---------------------------------------------------------------------------------------------------------- histograms


@internal_kernel
def _add_classes(column: Any, tree: Any, t: int, start: int, stop: int, width: int, scratch: Any) -> None:
    """Sum the rows of a node by bin and class of target t; the first one counts the rows."""
    cells, rows, y, w, last = scratch.cells, tree.rows, tree.y[t], tree.weight, np.uint64(width - 1)
    one = 1.0 if t == 0 else 0.0
    for i in range(np.uint64(start), np.uint64(stop)):  # (indices that may be negative cost as much as the sums)
        at = np.uint64(column[rows[i]]) * np.uint64(width)
        cells[at + np.uint64(np.int64(y[i]))] += w[i]  # (AVX2 has no conversion to unsigned integers)
        cells[at + last] += one


@internal_kernel
def _add_numbers(column: Any, tree: Any, start: int, stop: int, width: int, scratch: Any) -> None:
    """Sum w y, w and 1 over the rows of a node, by bin."""
    cells, rows, y, w, n_more = scratch.cells, tree.rows, tree.y[0], tree.weight, np.uint64(width - 3)
    for i in range(np.uint64(start), np.uint64(stop)):
        at = np.uint64(column[rows[i]]) * np.uint64(width)
        cells[at] += w[i] * y[i]
        cells[at + n_more + np.uint64(1)] += w[i]
        cells[at + n_more + np.uint64(2)] += 1.0
    for t in range(1, width - 3):
        for i in range(start, stop):
            cells[np.uint64(column[rows[i]]) * np.uint64(width) + np.uint64(t)] += w[i] * tree.y[t, i]


@internal_kernel
def _list_bins(column: Any, tree: Any, start: int, stop: int, width: int, scratch: Any) -> int:
    """Write the nonempty bins, except that of missing values, to `scratch.order`, ascending; return their number."""
    order, cells, found = scratch.order, scratch.cells, 0
    if stop - start >= _FEW:
        for b in range(MISSING):
            if cells[b * width + width - 1] > 0.0:
                order[found] = b
                found += 1
        return found
    occupied, one, rows = scratch.occupied, np.uint64(1), tree.rows
    occupied[:] = np.uint64(0)
    for i in range(np.uint64(start), np.uint64(stop)):
        place = np.uint64(column[rows[i]])
        occupied[place >> np.uint64(6)] |= one << (place & np.uint64(63))
    for part in range(4):
        bits = occupied[part]
        while bits != np.uint64(0):
            lowest = bits & (~bits + one)
            b = 64 * part + _bit_number(lowest)
            if b < MISSING:
                order[found] = b
                found += 1
            bits ^= lowest
    return found


@inlined
def _bit_number(bit: Any) -> int:
    """Return the index of the only bit that is set: the exponent of its value as a float."""
    number = np.float64(bit)
    return np.int64((number.view(np.uint64) >> np.uint64(52)) - np.uint64(1023))  # type: ignore[return-value]


@internal_kernel
def _clear(n_bins: int, width: int, scratch: Any) -> None:
    """Set the sums of the bins listed, and of missing values, to zero."""
    cells, order = scratch.cells, scratch.order
    for k in range(np.uint64(n_bins + 1)):
        at = np.uint64(order[k] if k < np.uint64(n_bins) else MISSING) * np.uint64(width)
        for s in range(np.uint64(width)):
            cells[at + s] = 0.0


# ------------------------------------------------------------------------------------------------------------ scoring


@inlined
def _value(sums: Any, criterion: int) -> float:
    """Return the mean of y, or the proportion of the second class."""
    return (sums[1] if criterion <= ENTROPY else sums[0]) / sums[len(sums) - 1]  # type: ignore[no-any-return]


@internal_kernel
def _keeps_order(left: Any, total: Any, node: Any, sign: int, criterion: int) -> bool:
    """Return whether the values of both sides are within the node's bounds, and in the order of the constraint."""
    last, k = len(total) - 1, 1 if criterion <= ENTROPY else 0
    low = left[k] / left[last]
    high = (total[k] - left[k]) / (total[last] - left[last])
    if min(low, high) < node.lower or max(low, high) > node.upper:
        return False
    return sign == 0 or (high - low) * sign >= 0.0


@inlined
def _add_bin(left: Any, cells: Any, b: int, width: int, parameters: Any) -> None:
    at = b * width
    if parameters.criterion <= ENTROPY:
        for k in range(parameters.n_first):  # the class weights of one target sum to the total weight
            left[k] += cells[at + k]
            left[width - 1] += cells[at + k]
        for k in range(parameters.n_first, width - 1):
            left[k] += cells[at + k]
    else:
        for t in range(parameters.n_outputs):
            left[t] += cells[at + t]
        left[width - 2] += cells[at + width - 2]


@internal_kernel
def _scan(n_bins: int, drawn: int, sign: int, node: Any, total: Any, parameters: Any, scratch: Any) -> int:
    """Scan the listed bins; set score and missing_left of the node if a split improves on its best one.

    drawn : index of the only split to evaluate, or -1.

    Returns the index in the list of that split, or -1.
    """
    cells, left, order, criterion = scratch.cells, scratch.left, scratch.order, parameters.criterion
    width = len(cells) // BINS
    last, n, best = len(total) - 1, node.stop - node.start, -1
    missing = cells[MISSING * width + width - 1]
    bounded = sign != 0 or node.lower > -np.inf or node.upper < np.inf
    least, light = parameters.min_samples_leaf, parameters.min_weight_leaf
    for missing_left in range(2 if missing > 0.0 else 1):
        left[:] = 0.0
        n_left = 0.0
        if missing_left:
            _add_bin(left, cells, MISSING, width, parameters)
            n_left = missing
        stop = n_bins if missing > 0.0 and not missing_left else n_bins - 1  # if so, only missing values go right
        for k in range(stop if drawn < 0 else min(drawn + 1, stop)):
            _add_bin(left, cells, order[k], width, parameters)
            n_left += cells[order[k] * width + width - 1]
            if n - n_left < least or total[last] - left[last] < light:
                break
            if n_left < least or left[last] < light or (drawn >= 0 and k != drawn):
                continue
            score = score_sides(left, total, criterion, parameters.n_outputs)
            if score > node.score and (not bounded or _keeps_order(left, total, node, sign, criterion)):
                node.score, best = score, k
                node.missing_left = missing_left if missing > 0.0 else -1
                node.middle = (_value(left, criterion) + _other_value(left, total, criterion)) / 2
    return best


@internal_kernel
def _scan_two_sums(n_bins: int, drawn: int, node: Any, total: Any, parameters: Any, scratch: Any) -> int:
    """Do the same for the Gini criterion with two classes, or the squared error of one target, in local variables.

    Bounds are not supported. The sums of the left side are a and b, the class weights, or a, the sum of w y.
    """
    cells, order, is_gini = scratch.cells, scratch.order, parameters.criterion == GINI
    width = np.uint64(len(cells) // BINS)
    last, n, best, best_score = width - np.uint64(1), node.stop - node.start, -1, node.score
    missing = cells[np.uint64(MISSING) * width + last]
    least, light = parameters.min_samples_leaf, parameters.min_weight_leaf
    for missing_left in range(2 if missing > 0.0 else 1):
        a, b, weight, n_left = 0.0, 0.0, 0.0, 0.0
        stop = n_bins if missing > 0.0 and not missing_left else n_bins - 1
        for k in range(-1 if missing_left else 0, stop if drawn < 0 else min(drawn + 1, stop)):
            at = (np.uint64(MISSING) if k < 0 else np.uint64(order[k])) * width
            a += cells[at]
            if is_gini:
                b += cells[at + np.uint64(1)]
                weight += cells[at]
            weight += cells[at + last - np.uint64(1)]
            n_left += cells[at + last]
            if n - n_left < least or total[2] - weight < light:
                break
            if k < 0 or n_left < least or weight < light or (drawn >= 0 and k != drawn):
                continue
            rest_a, rest_b, rest = total[0] - a, total[1] - b, total[2] - weight
            if is_gini:
                score = (a * a + b * b) / weight + ((rest_a * rest_a + rest_b * rest_b) / rest if rest > 0.0 else 0.0)
            else:
                score = a * a / weight + (rest_a * rest_a / rest if rest > 0.0 else 0.0)
            if score > best_score:
                best_score, best = score, k
                node.missing_left = missing_left if missing > 0.0 else -1
    node.score = best_score
    return best


@inlined
def _other_value(left: Any, total: Any, criterion: int) -> float:
    k, last = 1 if criterion <= ENTROPY else 0, len(total) - 1
    return (total[k] - left[k]) / (total[last] - left[last])  # type: ignore[no-any-return]


# ------------------------------------------------------------------------------------------------------------ columns


@inlined
def _uniform(key: int, counter: int) -> float:
    return np.float64(random_bits(key, counter) >> np.uint64(11)) * 2.0**-53


def _example_numbers() -> tuple[Any, ...]:
    table = BinnedTable.of_one_feature(np.zeros((1, 1), np.uint8))
    node, parameters = np.zeros(1, NODE)[0], np.zeros(1, PARAMETERS)[0]
    return table, 0, 0, 0.0, node, np.zeros(1), parameters, Scratch.of(1, 1, Outputs())


def _example_categories() -> tuple[Any, ...]:
    _, *numbers, node, total, parameters, scratch = _example_numbers()
    return *numbers, node, total, parameters, np.zeros(BINS, np.uint8), scratch


_NUMBERS, _CATEGORIES = KernelSignature(_example_numbers), KernelSignature(_example_categories)
_call_numbers, _call_categories = _NUMBERS.call, _CATEGORIES.call


@internal_kernel
def _draw_place(table: Any, f: int, n_bins: int, u: float, order: Any) -> Any:
    """Return the only bin to split after and the threshold, drawn by the random number u; -1 and NaN if u < 0."""
    if u < 0.0 or n_bins <= 1:
        return -1, np.nan
    low, high = table.centres[f, order[0]], table.centres[f, order[n_bins - 1]]
    threshold, drawn = low + u * (high - low), 0
    while drawn < n_bins - 2 and table.centres[f, order[drawn + 1]] <= threshold:
        drawn += 1
    return drawn, threshold


@internal_kernel
def _set_bin(table: Any, f: int, n_bins: int, at: int, drawn: int, threshold: float, node: Any, order: Any) -> None:
    """Set the split of a node after the bin that was found, if any."""
    if at < 0:
        return
    node.feature, node.is_categorical = f, 0
    if at + 1 == n_bins:
        node.bin = MISSING - 1
        return
    edges, low_bin, high_bin = table.edges[f], order[at], order[at + 1]
    if drawn < 0:  # edges that are midpoints up to rounding are treated as such
        threshold = edges[low_bin] * _BELOW + edges[high_bin - 1] * (1.0 - _BELOW)
    while low_bin + 1 < high_bin and edges[low_bin + 1] <= threshold:  # between edges that separate the same rows
        low_bin += 1
    node.bin = low_bin


@_NUMBERS.kernel
def _split_numbers(table: Any, f: int, n_bins: int, u: float, node: Any, total: Any, parameters: Any, s: Any) -> None:
    """Find the best bin of a column of numbers; u is a random number for one threshold, or negative."""
    drawn, threshold = _draw_place(table, f, n_bins, u, s.order)
    at = _scan(n_bins, drawn, table.monotone[f], node, total, parameters, s)
    _set_bin(table, f, n_bins, at, drawn, threshold, node, s.order)


@_NUMBERS.kernel
def _split_two_sums(table: Any, f: int, n_bins: int, u: float, node: Any, total: Any, parameters: Any, s: Any) -> None:
    """Do the same if two sums suffice, and there are no bounds."""
    drawn, threshold = _draw_place(table, f, n_bins, u, s.order)
    at = _scan_two_sums(n_bins, drawn, node, total, parameters, s)
    _set_bin(table, f, n_bins, at, drawn, threshold, node, s.order)


@internal_kernel
def _sort_categories(n_bins: int, target: int, width: int, parameters: Any, scratch: Any) -> None:
    """Sort the listed bins by the mean of a target, or by the proportion of a class."""
    order, keys, cells = scratch.order, scratch.keys, scratch.cells
    for i in range(n_bins):
        b, weight = order[i], 0.0
        if parameters.criterion <= ENTROPY:
            for k in range(parameters.n_first):
                weight += cells[b * width + k]
        else:
            weight = cells[b * width + width - 2]
        key, at = cells[b * width + target] / weight, i
        while at > 0 and (keys[at - 1] > key or (keys[at - 1] == key and order[at - 1] > b)):
            keys[at], order[at] = keys[at - 1], order[at - 1]
            at -= 1
        keys[at], order[at] = key, b


@_CATEGORIES.kernel
def _split_categories(
    f: int, n_bins: int, u: float, node: Any, total: Any, parameters: Any, goes_left: Any, s: Any
) -> None:
    """Find the best set of categories of a column; its bins are flagged in `goes_left`."""
    width, has_classes = len(s.cells) // BINS, parameters.criterion <= ENTROPY
    n_orders = width - 1 if has_classes else parameters.n_outputs
    drawn = np.int64(u * (n_bins - 1)) if u >= 0.0 and n_bins > 1 else -1
    for k in range(1 if has_classes and n_orders == 2 else 0, n_orders):
        _sort_categories(n_bins, k, width, parameters, s)
        at = _scan(n_bins, drawn, 0, node, total, parameters, s)
        if at >= 0:
            node.feature, node.is_categorical, node.bin = f, 1, 0
            goes_left[:] = 0
            for i in range(at + 1):
                goes_left[s.order[i]] = 1
            goes_left[MISSING] = node.missing_left == 1


@internal_kernel
def _split_column(
    table: Any, f: int, n_bins: int, counter: int, node: Any, total: Any, parameters: Any, goes_left: Any, scratch: Any
) -> bool:
    """Find the best split of a column from the sums of the listed bins, which are then cleared.

    Returns whether the column varies.
    """
    width = len(scratch.cells) // BINS
    varies = n_bins > 1 or (n_bins == 1 and scratch.cells[MISSING * width + width - 1] > 0.0)
    if varies:
        u = _uniform(node.key, counter) if parameters.random_threshold else -1.0
        bounded = table.monotone[f] != 0 or node.lower > -np.inf or node.upper < np.inf
        if table.is_categorical[f]:
            _call_categories(parameters.find_categories, (f, n_bins, u, node, total, parameters, goes_left, scratch))
        else:
            address = parameters.find_split if bounded or parameters.scan == 0 else parameters.scan
            _call_numbers(address, (table, f, n_bins, u, node, total, parameters, scratch))
    _clear(n_bins, width, scratch)
    return bool(varies)


@internal_kernel
def find_split(
    table: Any, f: int, tree: Any, counter: int, node: Any, total: Any, parameters: Any, goes_left: Any, scratch: Any
) -> bool:
    """Find the best split of a column if it improves on the node's best; return whether the column varies."""
    start, stop, column = node.start, node.stop, table.bins[f]
    width = len(scratch.cells) // BINS
    if parameters.criterion <= ENTROPY:
        for t in range(parameters.n_outputs):
            _add_classes(column, tree, t, start, stop, width, scratch)
    else:
        _add_numbers(column, tree, start, stop, width, scratch)
    n_bins = _list_bins(column, tree, start, stop, width, scratch)
    return _split_column(table, f, n_bins, counter, node, total, parameters, goes_left, scratch)  # type: ignore[no-any-return]


@internal_kernel
def find_split_of_cells(
    table: Any, f: int, cells: Any, counter: int, node: Any, total: Any, parameters: Any, goes_left: Any, scratch: Any
) -> bool:
    """Do the same from the sums of all bins of the column."""
    width, n_bins = len(scratch.cells) // BINS, 0
    for b in range(BINS):
        if cells[b * width + width - 1] > 0.0:
            for k in range(width):
                scratch.cells[b * width + k] = cells[b * width + k]
            if b < MISSING:
                scratch.order[n_bins] = b
                n_bins += 1
    return _split_column(table, f, n_bins, counter, node, total, parameters, goes_left, scratch)  # type: ignore[no-any-return]


# ----------------------------------------------------------------------------------------------------- kernels needed


_KERNELS = {"scan": _split_two_sums, "find_split": _split_numbers, "find_categories": _split_categories}


def needed_kernels(criterion: int, outputs: Outputs, is_categorical: Any, monotone: Any) -> list[str]:
    """Return the names of the kernels that columns and a criterion need, which are fields of `PARAMETERS`."""
    has_two_sums = outputs.n_sums == 3 and outputs.n_outputs == 1 and criterion in (GINI, SQUARED)
    is_needed = {
        "scan": has_two_sums,
        "find_split": not has_two_sums or monotone.any(),
        "find_categories": is_categorical.any(),
    }
    return [name for name in _KERNELS if is_needed[name]]


def bind_kernels(state: Any, table: BinnedTable, outputs: Outputs) -> None:
    """Set the addresses of these kernels in this process."""
    for name in needed_kernels(int(state["criterion"][0]), outputs, table.is_categorical, table.monotone):
        state[name] = _KERNELS[name].address()


def compile_kernels(names: str) -> None:
    """Compile some of these kernels."""
    for name in names.split(","):
        _KERNELS[name].address()
