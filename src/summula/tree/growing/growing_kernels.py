"""A whole tree in one kernel, grown by one thread or by a worker group.

Every member of the worker group executes the same steps (those of `grower`) on its share of the work: rows when a node
is partitioned or summed, features when splits are searched. Member 0 does the bookkeeping. Steps are separated by
barriers: data read after a barrier were written before it, and no data are written by two members.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from summula.core.compilation.compile import inlined, internal_kernel, non_allocating_kernel
from summula.core.engine.random_kernels import random_bits
from summula.core.engine.worker_group import barrier_wait, is_cancelled, wait_for_round
from summula.tree.growing.criterion import Criterion
from summula.tree.growing.histogram_kernels import ACCUMULATE, BINS, block_width
from summula.tree.growing.partition_kernels import gather, scatter
from summula.tree.growing.split_kernels import MISSING, SEARCH, Search

__all__ = ["DONE", "make_grow", "read_tree"]

_call_accumulate, _call_search = ACCUMULATE.call, SEARCH.call

DONE, _OUT_OF_SPACE = -1, -2  # values of `next_leaf` if there is none to split
_SHARED_ROWS = 2_000  # minimum number of rows of a node for parallel partitioning
_SHARED_ROWS_PER_FEATURE = 32  # minimum number of rows per feature for parallel summation


# ------------------------------------------------------------------------------------------------------------- helpers


@inlined
def _is_packed(n_rows: int, packing: Any) -> bool:
    return n_rows <= packing.count_mask  # type: ignore[no-any-return]


@inlined
def _share(length: int, members: int, member: int) -> Any:
    """Return the start and stop of the share of a member."""
    return length * member // members, length * (member + 1) // members


@inlined
def _get_histogram(pool: Any, is_packed: bool, number: int) -> Any:
    return pool.packed[number] if is_packed else pool.wide[number]


@inlined
def _search(scratch: Any, member: int, side: int) -> Any:
    split, goes_left = scratch.split[member, side], scratch.goes_left[member, side]
    return Search(split, goes_left, scratch.allowed[member, side], scratch.bits[member], scratch.sums[member])


@internal_kernel
def _take_histogram(free_packed: Any, free_wide: Any, state: Any, is_packed: bool) -> int:
    """Return the number of a free histogram."""
    if is_packed:
        state.n_free_packed -= 1
        return free_packed[state.n_free_packed]  # type: ignore[no-any-return]
    state.n_free_wide -= 1
    return free_wide[state.n_free_wide]  # type: ignore[no-any-return]


@internal_kernel
def _release_histogram(free_packed: Any, free_wide: Any, state: Any, is_packed: bool, number: int) -> None:
    if is_packed:
        free_packed[state.n_free_packed] = number
        state.n_free_packed += 1
    else:
        free_wide[state.n_free_wide] = number
        state.n_free_wide += 1


@internal_kernel
def _allow_features(node: int, parameters: Any, groups: Any, node_groups: Any, allowed: Any) -> None:
    """Set which features a node may be split on; a fraction of them is drawn by counters of node and feature."""
    fraction, n_groups, d = parameters.feature_fraction, len(groups), len(allowed)
    if n_groups == 0 and fraction >= 1.0:
        return
    candidates = 0
    for f in range(d):
        allowed[f] = n_groups == 0
        for k in range(n_groups):
            if node_groups[node, k] and groups[k, f]:
                allowed[f] = 1
        candidates += allowed[f]
    if fraction >= 1.0:
        return
    wanted = int(np.ceil(fraction * candidates))
    wanted = wanted if wanted > 1 else 1
    for f in range(d):
        if allowed[f]:
            random = random_bits(parameters.key, node * d + f)
            if np.float64(random >> np.uint64(11)) * candidates >= 2.0**53 * wanted:
                allowed[f] = 0
            else:
                wanted -= 1
            candidates -= 1


@internal_kernel
def _choose_split(scratch: Any, side: int, node: Any, goes_left: Any) -> None:
    """Set the best split of a node among those found by the members; ties go to the first."""
    best = 0
    for k in range(1, len(scratch.split)):
        if scratch.split[k, side].gain > scratch.split[best, side].gain:
            best = k
    node.split = scratch.split[best, side]
    for b in range(BINS):
        goes_left[b] = scratch.goes_left[best, side, b]


@internal_kernel
def _next_leaf(nodes: Any, open_leaves: Any, state: Any, parameters: Any) -> int:
    """Return the leaf to split, that of largest gain; ties go to the first."""
    if state.n_open == 0 or state.n_leaves >= parameters.max_leaves:
        return DONE
    if state.n_nodes + 2 > len(nodes) or state.n_free_packed < 2 or state.n_free_wide < 1:
        return _OUT_OF_SPACE
    at = state.n_open - 1
    if not parameters.splits_all:
        best = open_leaves[at]
        for k in range(state.n_open - 1):
            node = open_leaves[k]
            if nodes[node].split.gain > nodes[best].split.gain or (
                nodes[node].split.gain == nodes[best].split.gain and node < best
            ):
                at, best = k, node
    leaf = open_leaves[at]
    state.n_open -= 1
    open_leaves[at] = open_leaves[state.n_open]
    return leaf  # type: ignore[no-any-return]


@internal_kernel
def _partition_rows(
    node: Any,
    goes_left: Any,
    parameters: Any,
    columns: Any,
    rows: Any,
    rows_scratch: Any,
    table: Any,
    n_left: Any,
    member: int,
) -> int:
    """Partition the rows of a leaf, left ones first; return the number of these, at least to member 0."""
    start, stop = node.start, node.stop
    members = len(table) - 1 if stop - start >= _SHARED_ROWS else 1
    if member >= members:
        return 0
    a, b = _share(stop - start, members, member)
    bins = columns[node.split.feature * parameters.feature_stride :]
    own = scatter(rows, bins, parameters.row_stride, goes_left, start + a, start + b, rows_scratch)
    n_left[member, 0] = own
    if members > 1:
        barrier_wait(table, member)
    total = before = 0
    for k in range(members):
        total += n_left[k, 0]
        before += n_left[k, 0] if k < member else 0
    gather(rows, rows_scratch, start + a, start + b, own, start + before, start + total + a - before)
    return total


# ------------------------------------------------------------------------------------------------------------ the tree


@internal_kernel
def _sum_histogram(
    address: int,
    inputs: Any,
    rows: Any,
    table: Any,
    member: int,
    histogram: Any,
    others: Any,
    block: Any,
    features: Any,
) -> None:
    """Sum a histogram in parallel: each member sums some rows, then reduces the sums of its features.

    address : address of the kernel that sums rows.
    others : histograms of all members but the first.
    """
    members, d = len(table) - 1, inputs.binned.shape[1]
    a, b = _share(len(rows), members, member)
    own = histogram if member == 0 else others[member - 1]
    _call_accumulate(address, (inputs, rows[a:b], 0, d, block, own, table))
    barrier_wait(table, member)
    for k in range(members - 1):
        for f in range(features[member], features[member + 1]):
            for c in range(histogram.shape[1]):
                histogram[f, c] += others[k, f, c]


@internal_kernel
def _make_root(root: Any, n: int, packing: Any, free_packed: Any, free_wide: Any, groups: Any, state: Any) -> None:
    """Initialise a tree with one node with all n rows; all histograms but one are free."""
    state.n_open, state.n_nodes, state.n_leaves = 0, 1, 1
    state.n_free_packed, state.n_free_wide = len(free_packed), len(free_wide)
    for k in range(len(free_packed)):
        free_packed[k] = k
    for k in range(len(free_wide)):
        free_wide[k] = k
    root.histogram = _take_histogram(free_packed, free_wide, state, _is_packed(n, packing))
    root.start, root.stop, root.depth, root.left_child = 0, n, 0, 0
    for group in range(len(groups)):
        groups[group] = 1


@internal_kernel
def _reserve_histograms(
    node: Any, n_left: int, packing: Any, parameters: Any, free_packed: Any, free_wide: Any, state: Any
) -> None:
    """Reserve the histograms of two new children, or release that of their parent if they cannot be split.

    The larger child reuses that of the parent if possible.
    """
    n_rows = node.stop - node.start
    few = n_left if 2 * n_left < n_rows else n_rows - n_left
    many = n_rows - few
    is_packed, number = _is_packed(n_rows, packing), node.histogram
    is_deep, is_full = node.depth + 1 >= parameters.max_depth, state.n_leaves >= parameters.max_leaves
    state.searches = many >= 2 * parameters.min_rows and not is_deep and not is_full
    if not state.searches:
        _release_histogram(free_packed, free_wide, state, is_packed, number)
        return
    small = _take_histogram(free_packed, free_wide, state, _is_packed(few, packing))
    state.small_histogram, state.large_histogram, state.parent_histogram = small, number, number
    if not is_packed and _is_packed(many, packing):
        state.large_histogram = _take_histogram(free_packed, free_wide, state, True)
        # It is not reused before the children are summed.
        _release_histogram(free_packed, free_wide, state, False, number)


@internal_kernel
def _add_children(nodes: Any, leaf: int, n_left: int, groups: Any, node_groups: Any, state: Any) -> None:
    """Add the two children of a leaf."""
    node, child = nodes[leaf], state.n_nodes
    left, right, feature = nodes[child], nodes[child + 1], node.split.feature
    node.left_child = child
    left.start, right.stop = node.start, node.stop
    left.stop = right.start = node.start + n_left
    for k in range(child, child + 2):
        nodes[k].depth, nodes[k].left_child, nodes[k].split.gain = node.depth + 1, 0, -1.0
        for group in range(len(groups)):
            node_groups[k, group] = node_groups[leaf, group] and groups[group, feature]
    state.n_nodes += 2
    state.n_leaves += 1


@internal_kernel
def _open_node(
    nodes: Any,
    number: int,
    is_packed: bool,
    min_gain: float,
    open_leaves: Any,
    free_packed: Any,
    free_wide: Any,
    state: Any,
) -> None:
    """Open a node if its split has enough gain, else release its histogram."""
    node = nodes[number]
    if node.split.gain > min_gain:
        open_leaves[state.n_open] = number
        state.n_open += 1
    else:
        _release_histogram(free_packed, free_wide, state, is_packed, node.histogram)


def _make_start(set_root: Any) -> Any:
    @internal_kernel
    def start_tree(context: Any, table: Any, member: int) -> None:
        """Initialise the root, and find its best split."""
        state, scratch, rows, root = context.state[0], context.scratch, context.rows, context.nodes[0]
        split_inputs, parameters, n = context.split_inputs, context.split_inputs.parameters[0], len(rows)
        first, last = _share(n, len(table) - 1, member)
        for i in range(first, last):
            rows[i] = i
        if member == 0:
            pool, packing, groups = context.pool, context.inputs.packing, context.node_groups[0]
            _make_root(root, n, packing, pool.free_packed, pool.free_wide, groups, state)
        barrier_wait(table, member)
        histogram = _get_histogram(context.pool, _is_packed(n, context.inputs.packing), root.histogram)
        others = scratch.packed if _is_packed(n, context.inputs.packing) else scratch.wide
        address, block = context.kernels.accumulate, scratch.block[member]
        _sum_histogram(address, context.inputs, rows, table, member, histogram, others, block, scratch.first_feature)
        barrier_wait(table, member)
        if member == 0:
            set_root(histogram, split_inputs, root)
        barrier_wait(table, member)
        search = _search(scratch, member, 0)
        search.split.gain = -1.0
        if n >= 2 * parameters.min_rows and parameters.max_depth > 0:
            _allow_features(0, parameters, context.groups, context.node_groups, search.allowed)
            first, last = scratch.first_feature[member], scratch.first_feature[member + 1]
            _call_search(context.kernels.find_best_split, (histogram, first, last, split_inputs, root, search))
        barrier_wait(table, member)
        if member == 0:
            _choose_split(scratch, 0, root, context.goes_left[0])
            if root.split.gain > parameters.min_gain:
                context.open_leaves[0] = 0
                state.n_open = 1

    return start_tree


def _make_search(subtract: Any) -> Any:
    @internal_kernel
    def search_children(context: Any, leaf: int, table: Any, member: int) -> None:
        """Compute the histograms of the children of a leaf, and find their best splits."""
        nodes, state, pool, scratch = context.nodes, context.state[0], context.pool, context.scratch
        rows, packing, split_inputs = context.rows, context.inputs.packing, context.split_inputs
        parameters, child = split_inputs.parameters[0], nodes[leaf].left_child
        start, middle, stop = nodes[child].start, nodes[child].stop, nodes[child + 1].stop
        smaller = 0 if middle - start <= stop - middle else 1
        few = rows[start:middle] if smaller == 0 else rows[middle:stop]
        many = stop - start - len(few)
        small = _get_histogram(pool, _is_packed(len(few), packing), state.small_histogram)
        large = _get_histogram(pool, _is_packed(many, packing), state.large_histogram)
        parent = _get_histogram(pool, _is_packed(stop - start, packing), state.parent_histogram)
        if len(table) > 2 and len(few) >= _SHARED_ROWS_PER_FEATURE * context.inputs.binned.shape[1]:
            others = scratch.packed if _is_packed(len(few), packing) else scratch.wide
            address, block = context.kernels.accumulate, scratch.block[member]
            _sum_histogram(address, context.inputs, few, table, member, small, others, block, scratch.first_feature)
            few = few[:0]
        for side in range(2):
            allowed = scratch.allowed[member, side]
            _allow_features(child + side, parameters, context.groups, context.node_groups, allowed)
            scratch.split[member, side].gain = -1.0
        first, last = scratch.first_feature[member], scratch.first_feature[member + 1]
        width = block_width(last - first)
        for low in range(first, last, width):  # in blocks whose histograms stay in the cache
            high = low + width if low + width < last else last
            if len(few):
                arguments = context.inputs, few, low, high, scratch.block[member], small, table
                _call_accumulate(context.kernels.accumulate, arguments)
            subtract(parent, small, large, low, high, packing)
            for side in range(2):
                node = nodes[child + side]
                if node.stop - node.start < 2 * parameters.min_rows:
                    continue
                histogram = small if side == smaller else large
                found = _search(scratch, member, side)
                _call_search(context.kernels.find_best_split, (histogram, low, high, split_inputs, node, found))
        barrier_wait(table, member)
        if member == 0:
            for side in range(2):
                node, is_small = nodes[child + side], side == smaller
                _choose_split(scratch, side, node, context.goes_left[child + side])
                node.histogram = state.small_histogram if is_small else state.large_histogram
                is_packed, gain = _is_packed(node.stop - node.start, packing), parameters.min_gain
                leaves, packed, wide = context.open_leaves, pool.free_packed, pool.free_wide
                _open_node(nodes, child + side, is_packed, gain, leaves, packed, wide, state)

    return search_children


@functools.cache
def make_grow(criterion: Criterion) -> Any:
    """Return the kernel that grows trees by a criterion."""
    set_children = criterion.set_children
    start_tree, search_children = _make_start(criterion.set_root), _make_search(criterion.subtract)

    @non_allocating_kernel
    def grow(context: Any, table: Any, member: int) -> None:
        """Split leaves as often as allowed; ends with the next leaf DONE, or when memory is exhausted."""
        state, parameters = context.state[0], context.split_inputs.parameters[0]
        while wait_for_round(table, member):
            is_new = state.n_nodes == 0
            barrier_wait(table, member)
            if is_new:
                start_tree(context, table, member)
            while True:
                if member == 0:
                    state.next_leaf = _next_leaf(context.nodes, context.open_leaves, state, parameters)
                barrier_wait(table, member)
                leaf = state.next_leaf
                if is_cancelled(table):
                    raise RuntimeError("the tree was cancelled")
                if leaf < 0:
                    break
                node, goes_left, counts = context.nodes[leaf], context.goes_left[leaf], context.scratch.n_left
                columns, rows, rows_scratch = context.binned_by_column, context.rows, context.rows_scratch
                n_left = _partition_rows(
                    node, goes_left, parameters, columns, rows, rows_scratch, table, counts, member
                )
                if member == 0:
                    child = state.n_nodes
                    set_children(node, context.split_inputs, context.nodes[child], context.nodes[child + 1])
                    _add_children(context.nodes, leaf, n_left, context.groups, context.node_groups, state)
                    packing, pool = context.inputs.packing, context.pool
                    _reserve_histograms(node, n_left, packing, parameters, pool.free_packed, pool.free_wide, state)
                barrier_wait(table, member)
                if state.searches:
                    search_children(context, leaf, table, member)
            barrier_wait(table, member)
            if member == 0:
                return

    return grow


@non_allocating_kernel
def read_tree(nodes: Any, goes_left: Any, integers: Any, floats: Any, leaves: Any, starts: Any) -> None:
    """Copy nodes to the columns of a `nodes.Tree`, the rows of `integers` and `floats`; leaves are ordered by rows.

    The last row of `integers` is scratch, all zero.
    """
    for k in range(integers.shape[1]):
        node = nodes[k]
        is_split = node.left_child > 0
        integers[0, k] = node.split.feature if is_split else -1
        integers[1, k] = node.split.bin if is_split else -1
        integers[2, k] = goes_left[k, MISSING] if is_split else 0
        integers[3, k] = node.left_child
        integers[4, k] = node.stop - node.start
        integers[5, k] = node.depth
        floats[0, k] = node.value
        floats[1, k] = node.split.gain if is_split else 0.0
        floats[2, k] = node.weight
    stack = integers[6]  # the root first
    depth, found = 1, 0
    while depth > 0:
        node = nodes[stack[depth - 1]]
        if node.left_child > 0:
            stack[depth - 1], stack[depth] = node.left_child + 1, node.left_child
            depth += 1
        else:
            leaves[found], starts[found] = stack[depth - 1], node.start
            found, depth = found + 1, depth - 1
    starts[found] = nodes[0].stop
