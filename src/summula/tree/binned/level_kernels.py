"""Trees on bins from a stream of blocks of rows: each pass over the rows processes many nodes at once.

`add_rows` passes the rows of a block down the current tree and adds them to the nodes processed in the pass: to the
sums per bin of the columns drawn, or, if a node is to be finished in memory, to a copy of its rows. `decide_splits`
finds the best splits of nodes from these sums. Rows are added in ascending order, as in `grow_kernels`, and random
numbers of a node are functions of its path, so the tree has the same bits as one grown from all rows in memory.

`replay` numbers the nodes in the order in which `grow_kernels` would have created them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from summula.core.compilation.compile import internal_kernel, non_allocating_kernel
from summula.tree.binned.grow_kernels import (
    EPSILON,
    draw_column,
    improves_enough,
    is_large_enough,
    measure,
    send_missing,
    set_children,
)
from summula.tree.binned.records import BINS, MISSING
from summula.tree.binned.scan_kernels import find_split_of_cells
from summula.tree.exact.records import ENTROPY
from summula.tree.growing.node_sums import add_row
from summula.tree.growing.open_nodes import next_open

__all__ = ["LEAF", "SPLITTABLE", "UNDECIDED", "add_rows", "decide_splits", "divide", "draw_columns", "replay"]

UNDECIDED, LEAF, SPLITTABLE = 0, 1, 2  # state of a node without children


@non_allocating_kernel
def draw_columns(key: int, state: Any, features: Any) -> None:
    """Write the columns in the order in which a node searches them."""
    for f in range(len(features)):
        features[f] = f
    for visited in range(len(features)):
        draw_column(features, visited, key, state[0])


@internal_kernel
def _find_node(bins: Any, i: int, nodes: Any, flags: Any) -> int:
    """Return the node without children that a row reaches."""
    at = 0
    while nodes[at].left_child > 0:
        node = nodes[at]
        b = np.int64(bins[i, node.feature])
        if node.is_categorical:
            goes = np.int64(flags[at, b])
        else:
            goes = np.int64((b <= node.bin) | ((b == MISSING) & (node.missing_left == 1)))
        at = node.left_child + 1 - goes
    return at


@internal_kernel
def _add_to_cells(bins: Any, i: int, y: Any, w: float, columns: Any, cells: Any, criterion: int) -> None:
    """Add a row to the sums of its bins in some columns, as `scan_kernels` does."""
    width = cells.shape[1] // BINS
    for k in range(len(columns)):
        at = np.int64(bins[i, columns[k]]) * width
        for t in range(len(y)):
            if criterion <= ENTROPY:
                cells[k, at + np.int64(y[t, i])] += w
            else:
                cells[k, at + t] += w * y[t, i]
        if criterion > ENTROPY:
            cells[k, at + width - 2] += w
        cells[k, at + width - 1] += 1.0


@non_allocating_kernel
def add_rows(bins: Any, y: Any, weight: Any, nodes: Any, flags: Any, state: Any, work: Any) -> None:
    """Add the rows of a block, shape (rows, features), to the nodes in `work`; y is (targets, rows)."""
    criterion = state[0].criterion
    for i in range(len(bins)):
        if weight[i] <= 0.0:
            continue
        s = work.slots[_find_node(bins, i, nodes, flags)]
        if s < 0:
            continue
        slot = work.records[s]
        for t in range(len(y)):
            if slot.n_rows == 0:
                work.firsts[s, t] = y[t, i]
            slot.differs |= y[t, i] != work.firsts[s, t]
        if slot.is_gathered:
            to = slot.first_row + slot.n_rows
            for f in range(bins.shape[1]):
                work.bins[f, to] = bins[i, f]
            for t in range(len(y)):
                work.y[t, to] = y[t, i]
            work.weight[to] = weight[i]
        else:
            add_row(work.totals[s], y, i, weight[i], criterion)
            a, b = slot.first_column, slot.first_column + slot.n_columns
            _add_to_cells(bins, i, y, weight[i], work.columns[a:b], work.cells[a:b], criterion)
        slot.n_rows += 1


@internal_kernel
def _search_cells(table: Any, node: Any, total: Any, slot: Any, parameters: Any, goes_left: Any, work: Any) -> None:
    """Find the best split of a node from the sums of its columns; `slot.visited` counts the columns searched."""
    if slot.visited == 0:
        node.score, node.feature, slot.useful = -np.inf, -1, 0
    for k in range(slot.first_column, slot.first_column + slot.n_columns):
        if slot.visited >= parameters.max_features and slot.useful > 0:
            break
        f, counter, before = work.columns[k], 2 * slot.visited + 1, node.score
        slot.useful += find_split_of_cells(
            table, f, work.cells[k], counter, node, total, parameters, goes_left, work.scratch
        )
        if node.score > before:
            slot.n_left = _rows_on_the_left(work.cells[k], node, goes_left)
        slot.visited += 1


@internal_kernel
def _rows_on_the_left(cells: Any, node: Any, goes_left: Any) -> int:
    width, found = len(cells) // BINS, 0.0
    for b in range(BINS):
        if node.is_categorical:
            goes = goes_left[b] == 1
        else:
            goes = b <= node.bin or (b == MISSING and node.missing_left == 1)
        if goes:
            found += cells[b * width + width - 1]
    return np.int64(found)  # type: ignore[return-value]


@internal_kernel
def _is_pure(node: Any, differs: int, criterion: int) -> bool:
    if criterion <= ENTROPY:
        return node.impurity <= EPSILON  # type: ignore[no-any-return]
    if not differs:
        node.impurity = 0.0
    return not differs


@non_allocating_kernel
def decide_splits(
    table: Any, nodes: Any, sums: Any, flags: Any, kinds: Any, left_rows: Any, state: Any, work: Any
) -> None:
    """Decide after a pass how to split the processed nodes; `left_rows` receives the numbers of rows on the left.

    A node whose columns so far are all constant remains undecided, and more columns are searched in another pass.
    """
    parameters = state[0]
    for s in range(len(work.records)):
        slot = work.records[s]
        if slot.is_gathered:
            continue
        number, total = slot.node, sums[slot.node]
        node, goes_left = nodes[number], flags[number if len(flags) > 1 else 0]
        for k in range(len(total)):
            total[k] = work.totals[s, k]
        measure(node, total, parameters)
        if parameters.weight == 0.0:
            parameters.weight = node.weight
        kinds[number] = LEAF
        if not is_large_enough(node, parameters) or _is_pure(node, slot.differs, parameters.criterion):
            continue
        _search_cells(table, node, total, slot, parameters, goes_left, work)
        if slot.useful == 0 and slot.visited < len(table.is_categorical):
            kinds[number] = UNDECIDED
        elif improves_enough(node, total, parameters):
            kinds[number], left_rows[number] = SPLITTABLE, slot.n_left
            send_missing(node, slot.n_left, goes_left)


@non_allocating_kernel
def divide(table: Any, nodes: Any, numbers: Any, child: int, left_rows: Any) -> None:
    """Create the children of some nodes, from number `child` on, with row counts only."""
    for number in numbers:
        set_children(nodes, number, child, left_rows[number], table.monotone[nodes[number].feature])
        for side in range(2):
            to = nodes[child + side]
            to.start, to.stop = 0, to.stop - to.start
        child += 2


@internal_kernel
def _copy_node(nodes: Any, source: int, target: Any, to: int) -> None:
    target[to] = nodes[source]
    target[to].left_child = 0


@non_allocating_kernel
def replay(nodes: Any, kinds: Any, target: Any, origin: Any, open_nodes: Any, state: Any) -> int:
    """Copy nodes to `target` in the order of `grow_kernels`; `origin` receives their previous numbers.

    Returns -1, or the number of a node that must be split before the order is known.
    """
    parameters = state[0]
    parameters.n_nodes, parameters.n_leaves, parameters.n_open, origin[0] = 1, 1, 0, 0
    _copy_node(nodes, 0, target, 0)
    if kinds[0] == SPLITTABLE:
        open_nodes[0], parameters.n_open = 0, 1
    while parameters.n_open > 0 and parameters.n_leaves < parameters.max_leaves:
        number, child = next_open(target, open_nodes, parameters), parameters.n_nodes
        first = nodes[origin[number]].left_child
        if first == 0 or kinds[first] == UNDECIDED or kinds[first + 1] == UNDECIDED:
            return origin[number]  # type: ignore[no-any-return]
        target[number].left_child = child
        parameters.n_nodes += 2
        parameters.n_leaves += 1
        for side in range(2):
            origin[child + side] = first + side
            _copy_node(nodes, first + side, target, child + side)
        for side in range(1, -1, -1):
            if kinds[first + side] == SPLITTABLE:
                open_nodes[parameters.n_open] = child + side
                parameters.n_open += 1
    return -1
