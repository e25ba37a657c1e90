"""A whole exact tree in one kernel.

The rows of every node are consecutive in the order of each column; a split partitions all orders stably, so that
columns are sorted only once. Each level of the tree costs one pass over the table.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from summula.core.compilation.compile import internal_kernel, kernel, non_allocating_kernel
from summula.core.compilation.late_binding import KernelSignature
from summula.core.engine.random_kernels import random_bits
from summula.tree.exact.records import ABSOLUTE, ENTROPY, EXAMPLE_PLACE, NODE, SQUARED, example_inputs
from summula.tree.exact.scan_kernels import find_threshold
from summula.tree.growing.node_sums import add_row, impurity
from summula.tree.growing.open_nodes import next_open

__all__ = ["find_categories", "find_split", "grow", "keep_rows", "open_node"]

_MISSING = 255  # the category of missing values
_EPSILON = 2.0**-52


# ---------------------------------------------------------------------------------------------------- absolute error


@internal_kernel
def _median_impurity(data: Any, t: int, start: int, stop: int, weight: float, sums: Any) -> float:
    """Return the mean of |y - median| over rows in the order of target t; sums[t] is set to the median."""
    y, w, at, below = data.y[t], data.weight, start, 0.0
    order = data.orders[len(data.values) + t]
    while at < stop - 1 and 2 * (below + w[order[at]]) < weight:
        below += w[order[at]]
        at += 1
    median = y[order[at]]
    if at + 1 < stop and 2 * (below + w[order[at]]) == weight:
        median = (median + y[order[at + 1]]) / 2
    total = 0.0
    for i in range(start, stop):
        total += w[order[i]] * abs(y[order[i]] - median)
    sums[t] = median
    return total / weight


# --------------------------------------------------------------------------------------------------------- categories


def _example_categories() -> tuple[Any, ...]:
    rows, *rest = example_inputs()
    return rows, 0, EXAMPLE_PLACE, *rest


_CATEGORIES = KernelSignature(_example_categories)
_call_categories = _CATEGORIES.call


@internal_kernel
def _rank_categories(
    data: Any, f: int, order: Any, start: int, stop: int, target: int, is_class: bool, scratch: Any
) -> None:
    """Rank categories by the mean of a target, or the proportion of a class, in `scratch.category_rank`."""
    x, y, w, sums, rank = data.values[f], data.y, data.weight, scratch.categories, scratch.category_rank
    sums[:] = 0.0
    for i in range(start, stop):
        row = order[i]
        b = _MISSING if x[row] != x[row] else np.int64(x[row])
        sums[0, b] += w[row]
        if is_class:
            for t in range(len(y)):
                sums[1, b] += w[row] * np.float64(y[t, row] == target)
        else:
            sums[1, b] += w[row] * y[target, row]
    used = 0
    for b in range(256):
        if sums[0, b] > 0.0:
            key, at = sums[1, b] / sums[0, b], used
            while at > 0 and sums[2, at - 1] > key:  # insertion sort: sums[2] keys, sums[3] categories
                sums[2, at], sums[3, at] = sums[2, at - 1], sums[3, at - 1]
                at -= 1
            sums[2, at], sums[3, at] = key, b
            used += 1
    rank[:] = -1
    for at in range(used):
        rank[np.int64(sums[3, at])] = at


@internal_kernel
def _order_by_category(data: Any, f: int, order: Any, start: int, stop: int, scratch: Any) -> None:
    """Write the ranks of the rows' categories, and the rows in that order, to `scratch`."""
    x, rank, counts = data.values[f], scratch.category_rank, scratch.categories
    counts[0] = 0.0
    for i in range(start, stop):
        row = order[i]
        scratch.rank_column[row] = rank[_MISSING if x[row] != x[row] else np.int64(x[row])]
        counts[0, np.int64(scratch.rank_column[row])] += 1
    place = np.float64(start)
    for b in range(256):
        here = counts[0, b]
        counts[0, b] = place
        place += here
    for i in range(start, stop):
        row = order[i]
        rank_of_row = np.int64(scratch.rank_column[row])
        scratch.order[np.int64(counts[0, rank_of_row])] = row
        counts[0, rank_of_row] += 1


@_CATEGORIES.kernel
def find_categories(data: Any, f: int, place: Any, total: Any, parameters: Any, split: Any, scratch: Any) -> None:
    """Find the best set of categories of a column, a prefix in some order, if it improves on `split`.

    Ordered by the mean of y, or the proportion of the second of two classes, some prefix is the optimal subset (Fisher
    1958) for every criterion except the absolute error; with more classes, or several targets, the order by each is
    tried.
    """
    start, stop = place[0], place[1]
    order, has_classes = data.orders[len(data.orders) - 1], parameters.criterion < SQUARED
    n_orders = len(total) - 1 if has_classes else parameters.n_outputs
    parameters.varies = 0
    for k in range(1 if has_classes and n_orders == 2 else 0, n_orders):
        _rank_categories(data, f, order, start, stop, k, has_classes, scratch)
        _order_by_category(data, f, order, start, stop, scratch)
        before = split.score
        if find_threshold((scratch.order, scratch.rank_column), place, data, total, parameters, split, scratch):
            parameters.varies = 1
        if split.score > before:
            split.feature, split.is_categorical = f, 1
            for b in range(256):
                rank = scratch.category_rank[b]
                scratch.goes_left[b] = rank >= 0 and rank <= split.threshold
            split.missing_left = scratch.goes_left[_MISSING] if scratch.category_rank[_MISSING] >= 0 else -1


# ------------------------------------------------------------------------------------------------------------- search


def _example_search() -> tuple[Any, ...]:
    rows, sums, parameters, _, scratch = example_inputs()
    return rows, 0, np.zeros(1, NODE), sums, parameters, scratch


_SEARCH = KernelSignature(_example_search)
_call_search = _SEARCH.call


@_SEARCH.kernel
def find_split(data: Any, number: int, nodes: Any, total: Any, parameters: Any, scratch: Any) -> None:
    """Find the best split of a node, on columns drawn if not all are tried; at least one that is not constant."""
    node, features, d = nodes[number], scratch.features, len(data.values)
    split = node.split
    split.score, split.feature = -np.inf, -1
    if parameters.criterion == ABSOLUTE:
        for t in range(len(data.y)):
            for i in range(node.start, node.stop):
                row = data.orders[d + t, i]
                scratch.ranks[t, row] = i - node.start
                scratch.targets[t, i - node.start] = data.y[t, row]
    visited, useful = 0, 0
    for f in range(d):
        features[f] = f
    while visited < d and (visited < parameters.max_features or useful == 0):
        counter = 2 * (number * d + visited)
        if parameters.max_features < d or parameters.random_threshold:
            random = random_bits(parameters.key, counter) >> np.uint64(11)
            other = visited + np.int64(np.float64(random) * 2.0**-53 * (d - visited))
            features[visited], features[other] = features[other], features[visited]
        f, before = features[visited], split.score
        place = (node.start, node.stop, counter + 1, data.monotone[f], node.lower, node.upper)
        if data.is_categorical[f]:
            arguments = (data, f, place, total, parameters, split, scratch)
            _call_categories(parameters.find_categories, arguments)
            varies = parameters.varies > 0
        else:
            varies = find_threshold((data.orders[f], data.values[f]), place, data, total, parameters, split, scratch)
            if split.score > before:
                split.feature, split.is_categorical = f, 0
                if data.values[f][data.orders[f][node.stop - 1]] == data.values[f][data.orders[f][node.stop - 1]]:
                    split.missing_left = -1  # no missing values here
        visited += 1
        useful += varies


@internal_kernel
def _mark_rows(data: Any, node: Any, goes_left: Any, scratch: Any) -> int:
    """Set which rows of a node go left, and the default side of missing values; return the number of left rows."""
    split, n_left = node.split, 0
    x, order = data.values[split.feature], data.orders[len(data.orders) - 1]
    for i in range(node.start, node.stop):
        row = order[i]
        if x[row] != x[row]:
            left = split.missing_left == 1
        elif split.is_categorical:
            left = goes_left[np.int64(x[row])] == 1
        else:
            left = x[row] <= split.threshold
        scratch.flags[row] = left
        n_left += left
    if split.missing_left < 0:
        split.missing_left = 2 * n_left > node.stop - node.start
    return n_left


@internal_kernel
def _partition(order: Any, start: int, stop: int, flags: Any, scratch: Any) -> None:
    """Partition the rows of a node stably."""
    left, right = np.int64(start), np.int64(0)
    for i in range(start, stop):
        row = order[i]
        goes = np.int64(flags[row])
        order[left] = row  # without a branch: the entry is overwritten if the row goes to the other side
        scratch[right] = row
        left += goes
        right += 1 - goes
    for i in range(right):
        order[left + i] = scratch[i]


# -------------------------------------------------------------------------------------------------------------- nodes


@internal_kernel
def _is_pure(data: Any, node: Any, criterion: int) -> bool:
    """Return whether a node is pure: its impurity is 0, or its targets are equal."""
    if criterion <= ENTROPY:
        return node.impurity <= _EPSILON  # type: ignore[no-any-return]
    order = data.orders[len(data.orders) - 1]
    for t in range(len(data.y)):
        for i in range(node.start + 1, node.stop):
            if data.y[t, order[i]] != data.y[t, order[node.start]]:
                return False
    node.impurity = 0.0  # (equal up to rounding)
    return True


def _example_open() -> tuple[Any, ...]:
    rows, sums, parameters, _, scratch = example_inputs()
    return rows, 0, np.zeros(1, NODE), sums[None, :].copy(), parameters, np.zeros((1, 256), np.uint8), scratch


_OPEN = KernelSignature(_example_open)
_call_open = _OPEN.call


@_OPEN.kernel
def open_node(data: Any, number: int, nodes: Any, sums: Any, parameters: Any, flags: Any, scratch: Any) -> None:
    """Set whether a new node may be split, after searching for its best split; `flags` receives its categories."""
    node, total = nodes[number], sums[number]
    parameters.may_split = 0
    n = node.stop - node.start
    if (
        node.depth >= parameters.max_depth
        or n < parameters.min_samples_split
        or n < 2 * parameters.min_samples_leaf
        or node.weight < 2 * parameters.min_weight_leaf
        or _is_pure(data, node, parameters.criterion)
    ):
        return
    scratch.goes_left[:] = 0
    _call_search(parameters.find_split, (data, number, nodes, total, parameters, scratch))
    if node.split.feature < 0:
        return
    if node.split.is_categorical:
        for b in range(256):
            flags[number, b] = scratch.goes_left[b]
    # The improvement of a split needs the impurities of both sides.
    left, right, criterion, order = scratch.left, scratch.right, parameters.criterion, data.orders[len(data.orders) - 1]
    n_left = _mark_rows(data, node, flags[number if node.split.is_categorical else 0], scratch)
    left[:], right[:] = 0.0, 0.0
    for i in range(node.start, node.stop):
        row = order[i]
        add_row(left if scratch.flags[row] else right, data.y, row, data.weight[row], criterion)
    if criterion == ABSOLUTE:
        inside = node.impurity * node.weight + node.split.score / parameters.n_outputs  # minus the loss of both sides
    else:
        last, n_outputs = len(left) - 1, parameters.n_outputs
        inside = node.impurity * node.weight
        inside -= (
            impurity(left, criterion, n_outputs) * left[last] + impurity(right, criterion, n_outputs) * right[last]
        )
    node.improvement = inside / parameters.weight
    parameters.may_split = 0 < n_left < n and node.improvement + _EPSILON >= parameters.min_improvement


@internal_kernel
def _start_node(data: Any, number: int, nodes: Any, sums: Any, parameters: Any) -> None:
    """Compute sums and impurity of a node from its rows."""
    node, total, order, criterion = nodes[number], sums[number], data.orders[len(data.orders) - 1], parameters.criterion
    total[:] = 0.0
    for i in range(node.start, node.stop):
        add_row(total, data.y, order[i], data.weight[order[i]], criterion)
    node.weight, node.left_child, node.improvement = total[len(total) - 1], 0, 0.0
    if criterion == ABSOLUTE:
        node.impurity = 0.0
        for t in range(len(data.y)):
            node.impurity += _median_impurity(data, t, node.start, node.stop, node.weight, total) / len(data.y)
    else:
        node.impurity = impurity(total, criterion, parameters.n_outputs)


@internal_kernel
def _bound_children(data: Any, node: Any, left: Any, right: Any, sums: Any, parameters: Any) -> None:
    """Set the bounds of two new nodes: for a monotone column they are separated by the midpoint of their values."""
    left.lower, left.upper, right.lower, right.upper = node.lower, node.upper, node.lower, node.upper
    sign, k = data.monotone[node.split.feature], 1 if parameters.criterion <= ENTROPY else 0
    if sign != 0:
        middle = (sums[node.left_child, k] / left.weight + sums[node.left_child + 1, k] / right.weight) / 2
        if sign > 0:
            left.upper, right.lower = middle, middle
        else:
            left.lower, right.upper = middle, middle


@internal_kernel
def _divide_rows(data: Any, node: Any, parameters: Any, scratch: Any) -> None:
    """Partition the rows of a node in all orders, or only in those of the targets if its children will be leaves."""
    n_columns = len(data.values)
    if node.depth + 1 < parameters.max_depth:
        for f in range(n_columns):
            if not data.is_categorical[f]:
                _partition(data.orders[f], node.start, node.stop, scratch.flags, scratch.order)
    for k in range(n_columns, len(data.orders)):
        _partition(data.orders[k], node.start, node.stop, scratch.flags, scratch.order)


@non_allocating_kernel
def grow(data: Any, nodes: Any, sums: Any, open_nodes: Any, flags: Any, state: Any, scratch: Any, budget: int) -> bool:
    """Split nodes until none can be split, or about `budget` values have been read; return whether it is complete.

    flags : (nodes, 256): categories on the left of a node; one row if there are none.
    state : one record of PARAMETERS; without nodes, the root is created first.
    """
    parameters = state[0]
    while parameters.n_nodes == 0 or (parameters.n_open > 0 and parameters.n_leaves < parameters.max_leaves):
        if budget <= 0:
            return False
        number, child, n_new = 0, parameters.n_nodes, 1
        node = nodes[0]
        if child == 0:
            node.start, node.stop, node.depth = 0, data.orders.shape[1], 0
            node.lower, node.upper = -np.inf, np.inf
            parameters.n_leaves, parameters.n_open = 0, 0
        else:
            number, n_new = next_open(nodes, open_nodes, parameters), 2
            node = nodes[number]
            budget -= (node.stop - node.start) * len(data.orders)
            n_left = _mark_rows(data, node, flags[number if node.split.is_categorical else 0], scratch)
            _divide_rows(data, node, parameters, scratch)
            node.left_child = child
            for side in range(2):
                nodes[child + side].start = node.start if side == 0 else node.start + n_left
                nodes[child + side].stop = node.start + n_left if side == 0 else node.stop
                nodes[child + side].depth = node.depth + 1
        for side in range(n_new):
            _start_node(data, child + side, nodes, sums, parameters)
        if child == 0:
            parameters.weight = node.weight
        else:
            _bound_children(data, node, nodes[child], nodes[child + 1], sums, parameters)
        parameters.n_nodes += n_new
        parameters.n_leaves += 1
        for side in range(n_new - 1, -1, -1):  # the left one is split first
            _call_open(parameters.open_node, (data, child + side, nodes, sums, parameters, flags, scratch))
            if parameters.may_split:
                open_nodes[parameters.n_open] = child + side
                parameters.n_open += 1
    return True


@kernel
def keep_rows(orders: Any, keep: Any, out: Any) -> None:
    """Copy the rows in the mask `keep`, column by column, in their order; `out` may have more columns."""
    for f in range(len(orders)):
        order, kept, at = orders[f], out[f], np.int64(0)
        for i in range(len(order)):
            row = order[i]
            if at < len(kept):
                kept[at] = row  # without a branch: overwritten by the next row if this one is not kept
                at += np.int64(keep[row])
