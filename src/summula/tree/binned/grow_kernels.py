"""A whole tree on bins in one kernel.

The rows of every node are consecutive. A node searches up to `max_features` columns, each in one pass over its rows,
and its rows are partitioned stably. Random numbers of a node are a function of its path from the root, so the tree does
not depend on the order in which nodes are split.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from summula.core.compilation.compile import inlined, internal_kernel, non_allocating_kernel
from summula.core.engine.random_kernels import random_bits
from summula.tree.binned.records import MISSING
from summula.tree.binned.scan_kernels import find_split
from summula.tree.exact.records import ENTROPY
from summula.tree.growing.node_sums import add_rows, impurity, score_sides
from summula.tree.growing.open_nodes import next_open

__all__ = [
    "EPSILON",
    "draw_column",
    "grow",
    "improves_enough",
    "is_large_enough",
    "measure",
    "send_missing",
    "set_children",
]

EPSILON = 2.0**-52
_CHILD = 1 << 40  # counters for the keys of children


@internal_kernel
def _is_pure(tree: Any, node: Any, criterion: int) -> bool:
    """Return whether a node is pure: its impurity is 0, or its targets are equal."""
    if criterion <= ENTROPY:
        return node.impurity <= EPSILON  # type: ignore[no-any-return]
    for t in range(len(tree.y)):
        for i in range(node.start + 1, node.stop):
            if tree.y[t, i] != tree.y[t, node.start]:
                return False
    node.impurity = 0.0
    return True


@internal_kernel
def draw_column(features: Any, visited: int, key: int, parameters: Any) -> int:
    """Return the next column to search: drawn from those not visited yet, if not all are tried."""
    d = len(features)
    if parameters.max_features < d or parameters.random_threshold:
        random = random_bits(key, 2 * visited) >> np.uint64(11)
        other = visited + np.int64(np.float64(random) * 2.0**-53 * (d - visited))
        features[visited], features[other] = features[other], features[visited]
    return features[visited]  # type: ignore[no-any-return]


@internal_kernel
def _search(table: Any, tree: Any, node: Any, total: Any, parameters: Any, goes_left: Any, scratch: Any) -> None:
    """Find the best split of a node, on columns drawn if not all are tried; at least one that is not constant.

    The search stays unfinished (`is_searching`) if the budget is used up between two columns.
    """
    features, d = scratch.features, len(table.bins)
    if parameters.visited == 0:
        for f in range(d):
            features[f] = f
        node.score, node.feature = -np.inf, -1
    while parameters.visited < d and (parameters.visited < parameters.max_features or parameters.useful == 0):
        if parameters.budget <= 0:
            return
        visited = parameters.visited
        f = draw_column(features, visited, node.key, parameters)
        parameters.useful += find_split(table, f, tree, 2 * visited + 1, node, total, parameters, goes_left, scratch)
        parameters.visited += 1
        parameters.budget -= node.stop - node.start
    parameters.is_searching = 0


@internal_kernel
def is_large_enough(node: Any, parameters: Any) -> bool:
    """Return whether a node has enough rows and weight for a split, and is not at the maximum depth."""
    n = node.stop - node.start
    return bool(
        node.depth < parameters.max_depth
        and n >= parameters.min_samples_split
        and n >= 2 * parameters.min_samples_leaf
        and node.weight >= 2 * parameters.min_weight_leaf
    )


@internal_kernel
def improves_enough(node: Any, total: Any, parameters: Any) -> bool:
    """Set the improvement of the split found, if any; return whether it is allowed."""
    if node.feature < 0:
        return False
    gained = node.score - score_sides(total, total, parameters.criterion, parameters.n_outputs)
    if parameters.criterion == ENTROPY:
        gained /= np.log(2.0)
    node.improvement = max(gained, 0.0) / parameters.weight / parameters.n_outputs
    return bool(node.improvement + EPSILON >= parameters.min_improvement)


@internal_kernel
def _open_node(
    table: Any, tree: Any, number: int, nodes: Any, sums: Any, parameters: Any, flags: Any, scratch: Any
) -> bool:
    """Return whether a new node may be split, after searching for its best split.

    If the search stays unfinished, a further call continues it.
    """
    node, total = nodes[number], sums[number]
    if not parameters.is_searching:
        if not is_large_enough(node, parameters) or _is_pure(tree, node, parameters.criterion):
            return False
        parameters.is_searching, parameters.visited, parameters.useful = 1, 0, 0
    goes_left = flags[number if len(flags) > 1 else 0]
    _search(table, tree, node, total, parameters, goes_left, scratch)
    return not parameters.is_searching and bool(improves_enough(node, total, parameters))


@internal_kernel
def _open_newest(
    table: Any, tree: Any, nodes: Any, sums: Any, open_nodes: Any, flags: Any, parameters: Any, scratch: Any
) -> bool:
    """Open the nodes that are new, the left one last, as it is split first; return whether that is complete."""
    first = parameters.n_nodes - (1 if parameters.n_nodes == 1 else 2)
    while parameters.n_unopened > 0:
        number = first + parameters.n_unopened - 1
        may_split = _open_node(table, tree, number, nodes, sums, parameters, flags, scratch)
        if parameters.is_searching:
            return False
        parameters.n_unopened -= 1
        if may_split:
            open_nodes[parameters.n_open] = number
            parameters.n_open += 1
    return True


@internal_kernel
def measure(node: Any, total: Any, parameters: Any) -> None:
    """Set weight and impurity of a new node from its sums."""
    node.weight, node.left_child, node.improvement = total[len(total) - 1], 0, 0.0
    node.impurity = impurity(total, parameters.criterion, parameters.n_outputs)


@internal_kernel
def _start_node(tree: Any, number: int, nodes: Any, sums: Any, parameters: Any) -> None:
    """Compute sums and impurity of a node from its rows."""
    node, total = nodes[number], sums[number]
    add_rows(total, tree.y, tree.weight, node.start, node.stop, parameters.criterion)
    measure(node, total, parameters)


@inlined
def _goes_left(b: int, node: Any, goes_left: Any) -> Any:
    """Return 1 if a row whose column has bin b goes left, else 0."""
    if node.is_categorical:
        return np.int64(goes_left[b])
    return np.int64((b <= node.bin) | ((b == MISSING) & (node.missing_left == 1)))


@internal_kernel
def _partition_target(column: Any, tree: Any, t: int, node: Any, goes_left: Any, scratch: Any) -> None:
    """Partition the values of a target between the two sides of a node, before its rows."""
    y, left, right = tree.y[t], np.int64(node.start), np.int64(0)
    for i in range(node.start, node.stop):
        target = y[i]
        goes = _goes_left(np.int64(column[tree.rows[i]]), node, goes_left)
        y[left], scratch.y[t, right] = target, target
        left += goes
        right += 1 - goes
    for i in range(right):
        y[left + i] = scratch.y[t, i]


@internal_kernel
def _partition(column: Any, tree: Any, node: Any, goes_left: Any, scratch: Any) -> int:
    """Partition the rows of a node stably; return where the right side starts."""
    for t in range(1, len(tree.y)):
        _partition_target(column, tree, t, node, goes_left, scratch)
    rows, y, weight, y_scratch = tree.rows, tree.y[0], tree.weight, scratch.y[0]
    left, right = np.int64(node.start), np.int64(0)
    for i in range(node.start, node.stop):
        row, target, w = rows[i], y[i], weight[i]
        goes = _goes_left(np.int64(column[row]), node, goes_left)
        rows[left], y[left], weight[left] = row, target, w  # overwritten by the next row if this one goes right
        scratch.rows[right], y_scratch[right], scratch.weight[right] = row, target, w
        left += goes
        right += 1 - goes
    for i in range(right):
        rows[left + i], y[left + i], weight[left + i] = scratch.rows[i], y_scratch[i], scratch.weight[i]
    return left  # type: ignore[return-value]


@internal_kernel
def send_missing(node: Any, n_left: int, goes_left: Any) -> None:
    """If a node has no missing values, send those of later rows to the side with more rows."""
    if node.missing_left < 0:
        node.missing_left = 2 * n_left > node.stop - node.start
        if node.is_categorical:
            goes_left[MISSING] = node.missing_left


@internal_kernel
def set_children(nodes: Any, number: int, child: int, middle: int, sign: int) -> None:
    """Set the row ranges, depth, keys and bounds of the children of a node."""
    node = nodes[number]
    node.left_child = child
    for side in range(2):
        to = nodes[child + side]
        to.start, to.stop = (node.start, middle) if side == 0 else (middle, node.stop)
        to.depth, to.left_child = node.depth + 1, 0
        to.key = np.int64(random_bits(node.key, _CHILD + side) >> np.uint64(1))
        to.lower, to.upper = node.lower, node.upper
        if sign != 0:
            if (sign > 0) == (side == 0):
                to.upper = node.middle
            else:
                to.lower = node.middle


@internal_kernel
def _divide(table: Any, tree: Any, number: int, child: int, nodes: Any, flags: Any, scratch: Any) -> None:
    """Split a node."""
    node, goes_left = nodes[number], flags[number if len(flags) > 1 else 0]
    middle = _partition(table.bins[node.feature], tree, node, goes_left, scratch)
    send_missing(node, middle - node.start, goes_left)
    set_children(nodes, number, child, middle, table.monotone[node.feature])


@internal_kernel
def _plant(tree: Any, nodes: Any, sums: Any, parameters: Any) -> None:
    """Initialise the root, whose depth, key and bounds are set; an unknown weight of the tree is set to its weight."""
    root = nodes[0]
    root.start, root.stop = 0, len(tree.rows)
    _start_node(tree, 0, nodes, sums, parameters)
    parameters.n_nodes, parameters.n_leaves, parameters.n_open, parameters.n_unopened = 1, 1, 0, 1
    if parameters.weight == 0.0:
        parameters.weight = root.weight


@non_allocating_kernel
def grow(
    table: Any, tree: Any, nodes: Any, sums: Any, open_nodes: Any, flags: Any, state: Any, scratch: Any, budget: int
) -> bool:
    """Split nodes until none can be split, or about `budget` bins have been read; return whether the tree is complete.

    A further call continues between the same two columns of the same node.

    flags : (nodes, 256): bins of categories that go left at a node; one row if there are no categories.
    state : one record of `exact.records.PARAMETERS`; without nodes, the root is created first.
    """
    parameters = state[0]
    parameters.budget = budget
    if parameters.n_nodes == 0:
        _plant(tree, nodes, sums, parameters)
    while _open_newest(table, tree, nodes, sums, open_nodes, flags, parameters, scratch):
        if parameters.n_open == 0 or parameters.n_leaves >= parameters.max_leaves:
            return True
        if parameters.budget <= 0:
            return False
        number, child = next_open(nodes, open_nodes, parameters), parameters.n_nodes
        parameters.budget -= nodes[number].stop - nodes[number].start
        _divide(table, tree, number, child, nodes, flags, scratch)
        parameters.n_nodes += 2
        parameters.n_leaves += 1
        parameters.n_unopened = 2
        for side in range(2):
            _start_node(tree, child + side, nodes, sums, parameters)
    return False
