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
from summula.tree.exact.category_kernels import call_categories
from summula.tree.exact.records import ABSOLUTE, ENTROPY, NODE, example_inputs
from summula.tree.exact.scan_kernels import find_threshold
from summula.tree.growing.node_sums import add_row, impurity
from summula.tree.growing.open_nodes import next_open

__all__ = ["find_split", "grow", "keep_rows", "open_node"]

_EPSILON = 2.0**-52
_ABSOLUTE_COST = 16  # time per row and column of the search for the absolute error, in units of other criteria


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


# ------------------------------------------------------------------------------------------------------------- search


def _example_search() -> tuple[Any, ...]:
    rows, sums, parameters, _, scratch = example_inputs()
    return rows, 0, np.zeros(1, NODE), sums, parameters, scratch


_SEARCH = KernelSignature(_example_search)
_call_search = _SEARCH.call


@internal_kernel
def _begin_search(data: Any, node: Any, parameters: Any, scratch: Any) -> None:
    """Initialise the split of a node, the columns to draw from, and for the absolute error the ranks of the targets."""
    d = len(data.values)
    node.split.score, node.split.feature = -np.inf, -1
    if parameters.criterion == ABSOLUTE:
        for t in range(len(data.y)):
            for i in range(node.start, node.stop):
                row = data.orders[d + t, i]
                scratch.ranks[t, row] = i - node.start
                scratch.targets[t, i - node.start] = data.y[t, row]
    for f in range(d):
        scratch.features[f] = f


@_SEARCH.kernel
def find_split(data: Any, number: int, nodes: Any, total: Any, parameters: Any, scratch: Any) -> None:
    """Find the best split of a node, on columns drawn if not all are tried; at least one that is not constant.

    The search stays unfinished (`is_searching`) if the budget is used up between two columns.
    """
    node, features, d = nodes[number], scratch.features, len(data.values)
    split, n = node.split, node.stop - node.start
    if parameters.visited == 0:
        _begin_search(data, node, parameters, scratch)
    while parameters.visited < d and (parameters.visited < parameters.max_features or parameters.useful == 0):
        if parameters.budget <= 0:
            return
        visited = parameters.visited
        counter = 2 * (number * d + visited)
        if parameters.max_features < d or parameters.random_threshold:
            random = random_bits(parameters.key, counter) >> np.uint64(11)
            other = visited + np.int64(np.float64(random) * 2.0**-53 * (d - visited))
            features[visited], features[other] = features[other], features[visited]
        f, before = features[visited], split.score
        place = (node.start, node.stop, counter + 1, data.monotone[f], node.lower, node.upper)
        if data.is_categorical[f]:
            arguments = (data, f, place, total, parameters, split, scratch)
            call_categories(parameters.find_categories, arguments)
            varies = parameters.varies > 0
        else:
            varies = find_threshold((data.orders[f], data.values[f]), place, data, total, parameters, split, scratch)
            if split.score > before:
                split.feature, split.is_categorical = f, 0
                if data.values[f][data.orders[f][node.stop - 1]] == data.values[f][data.orders[f][node.stop - 1]]:
                    split.missing_left = -1  # no missing values here
        parameters.visited += 1
        parameters.useful += varies
        parameters.budget -= n * _ABSOLUTE_COST if parameters.criterion == ABSOLUTE else n
    parameters.is_searching = 0


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
    """Set whether a new node may be split, after searching for its best split; `flags` receives its categories.

    If the search stays unfinished, a further call continues it.
    """
    node, total = nodes[number], sums[number]
    parameters.may_split = 0
    n = node.stop - node.start
    if not parameters.is_searching:
        if (
            node.depth >= parameters.max_depth
            or n < parameters.min_samples_split
            or n < 2 * parameters.min_samples_leaf
            or node.weight < 2 * parameters.min_weight_leaf
            or _is_pure(data, node, parameters.criterion)
        ):
            return
        scratch.goes_left[:] = 0
        parameters.is_searching, parameters.visited, parameters.useful = 1, 0, 0
    _call_search(parameters.find_split, (data, number, nodes, total, parameters, scratch))
    if parameters.is_searching or node.split.feature < 0:
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
def _divide_rows(data: Any, node: Any, parameters: Any, scratch: Any) -> bool:
    """Partition the rows of a node in all orders, or only in those of the targets if its children will be leaves.

    Return whether all are done, not if the budget is used up before.
    """
    n_columns, has_inner_children = len(data.values), node.depth + 1 < parameters.max_depth
    while parameters.n_divided < len(data.orders):
        if parameters.budget <= 0:
            return False
        k = parameters.n_divided
        if k >= n_columns or (has_inner_children and not data.is_categorical[k]):
            _partition(data.orders[k], node.start, node.stop, scratch.flags, scratch.order)
            parameters.budget -= node.stop - node.start
        parameters.n_divided += 1
    return True


@internal_kernel
def _plant(data: Any, nodes: Any, sums: Any, parameters: Any) -> None:
    """Create the root."""
    root = nodes[0]
    root.start, root.stop, root.depth = 0, data.orders.shape[1], 0
    root.lower, root.upper = -np.inf, np.inf
    _start_node(data, 0, nodes, sums, parameters)
    parameters.weight = root.weight
    parameters.n_nodes, parameters.n_leaves, parameters.n_open, parameters.n_unopened = 1, 1, 0, 1


@internal_kernel
def _split_next(data: Any, nodes: Any, sums: Any, open_nodes: Any, flags: Any, parameters: Any, scratch: Any) -> bool:
    """Split the next node, or the one whose rows are being divided; return whether that is complete."""
    if parameters.splitting == 0:
        number = next_open(nodes, open_nodes, parameters)
        goes_left = flags[number if nodes[number].split.is_categorical else 0]
        parameters.n_left = _mark_rows(data, nodes[number], goes_left, scratch)
        parameters.splitting, parameters.n_divided = number + 1, 0
    node, child = nodes[parameters.splitting - 1], parameters.n_nodes
    if not _divide_rows(data, node, parameters, scratch):
        return False
    middle = node.start + parameters.n_left
    node.left_child = child
    for side in range(2):
        nodes[child + side].start = node.start if side == 0 else middle
        nodes[child + side].stop = middle if side == 0 else node.stop
        nodes[child + side].depth = node.depth + 1
        _start_node(data, child + side, nodes, sums, parameters)
    _bound_children(data, node, nodes[child], nodes[child + 1], sums, parameters)
    parameters.splitting, parameters.n_unopened = 0, 2
    parameters.n_nodes += 2
    parameters.n_leaves += 1
    return True


@internal_kernel
def _open_newest(data: Any, nodes: Any, sums: Any, open_nodes: Any, flags: Any, parameters: Any, scratch: Any) -> bool:
    """Open the nodes that are new, the left one last, as it is split first; return whether that is complete."""
    first = parameters.n_nodes - (1 if parameters.n_nodes == 1 else 2)
    while parameters.n_unopened > 0:
        number = first + parameters.n_unopened - 1
        _call_open(parameters.open_node, (data, number, nodes, sums, parameters, flags, scratch))
        if parameters.is_searching:
            return False
        parameters.n_unopened -= 1
        if parameters.may_split:
            open_nodes[parameters.n_open] = number
            parameters.n_open += 1
    return True


@non_allocating_kernel
def grow(data: Any, nodes: Any, sums: Any, open_nodes: Any, flags: Any, state: Any, scratch: Any, budget: int) -> bool:
    """Split nodes until none can be split, or about `budget` values have been read; return whether it is complete.

    A further call continues between the same two columns of the same node.

    flags : (nodes, 256): categories on the left of a node; one row if there are none.
    state : one record of PARAMETERS; without nodes, the root is created first.
    """
    parameters = state[0]
    parameters.budget = budget
    if parameters.n_nodes == 0:
        _plant(data, nodes, sums, parameters)
    while _open_newest(data, nodes, sums, open_nodes, flags, parameters, scratch):
        if (parameters.n_open == 0 and parameters.splitting == 0) or parameters.n_leaves >= parameters.max_leaves:
            return True
        if parameters.budget <= 0 or not _split_next(data, nodes, sums, open_nodes, flags, parameters, scratch):
            return False
    return False


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
