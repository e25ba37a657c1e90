"""Compiled loops of the search for nearest rows.

Rows are ranked by a value that increases with the distance and is summed in double precision, column by column:

    V(x, z) = sum_j (x_j - z_j)^2,  sum_j |x_j - z_j|,  max_j |x_j - z_j|,  sum_j |x_j - z_j|^p,  sum_j [x_j != z_j] (1)

All loops below add in the order of the columns, so V has the same bits in each. Row a is nearer than row b if V_a <
V_b, or V_a = V_b and a < b. The k nearest rows so far are a binary heap with the worst on top.

    blocks   32 rows at a time, stored column by column, so that 32 sums are computed in parallel (SIMD)
    tree     a block per leaf; every node has the bounding box of its rows. Replacing z by the nearest point of the box
             in (1) gives a lower bound. Rounding is monotone, so the bound holds for the computed values, too, and only
             boxes with a bound above the worst value are skipped
             tiles    scores in single precision such that no row with V below the worst value has a score above the
             threshold (`indexes.ProductIndex`); for rows below it (1) is computed

Sparse rows are in `sparse_rows`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from summula.core.compilation.compile import internal_kernel, non_allocating_kernel
from summula.core.compilation.vector_intrinsics import any_of_32_at_most, any_of_64_at_most

__all__ = [
    "BLOCK",
    "CHEBYSHEV",
    "HAMMING",
    "MANHATTAN",
    "POWER",
    "SQUARES",
    "Blocks",
    "Scratch",
    "grow_tree",
    "nearest_leaves",
    "offer",
    "offer_blocks",
    "offer_tile",
    "search_tree",
    "sort_neighbors",
    "warmup",
]

BLOCK = 32  # rows per block
SQUARES, MANHATTAN, CHEBYSHEV, POWER, HAMMING = range(5)
_GROUP = 64  # scores compared with the threshold at once
_SLACK = 1.0 - 2.0**-40  # relative margin, since rounding of powers is not monotone
_DEPTH = 64


class Blocks(NamedTuple):
    """Training rows in blocks, and the bounding boxes of the nodes of a tree, if any."""

    values: Any  # float64 (n_blocks, n_columns, BLOCK); the last block is zero-padded
    members: Any  # int64 (n_rows,): the row numbers, block by block
    boxes: Any  # float64 (n_nodes, 2, n_columns): minima and maxima, nodes in preorder; empty without a tree


class Scratch(NamedTuple):
    """Scratch memory of one search."""

    nodes: Any  # int64 (_DEPTH, 3): node, its first block and number of blocks
    bounds: Any  # float64 (_DEPTH,)
    sums: Any  # float64 (BLOCK,)

    @classmethod
    def empty(cls) -> Scratch:
        """Allocate scratch memory."""
        return cls(np.zeros((_DEPTH, 3), np.int64), np.zeros(_DEPTH), np.zeros(BLOCK))


# -------------------------------------------------------------------------------------------------- heap of the nearest


@internal_kernel
def _sift(V: Any, I: Any, size: int, v: float, row: int) -> None:  # noqa: E741
    """Replace the worst of the first `size` entries by (v, row)."""
    i = 0
    while True:
        c = 2 * i + 1
        if c >= size:
            break
        if c + 1 < size and (V[c + 1] > V[c] or (V[c + 1] == V[c] and I[c + 1] > I[c])):
            c += 1
        if V[c] < v or (V[c] == v and I[c] < row):
            break
        V[i] = V[c]
        I[i] = I[c]
        i = c
    V[i] = v
    I[i] = row


@internal_kernel
def offer(V: Any, I: Any, v: float, row: int) -> None:  # noqa: E741
    """Insert a row if it is nearer than the worst."""
    if v < V[0] or (v == V[0] and row < I[0]):
        _sift(V, I, len(V), v, row)


@non_allocating_kernel
def sort_neighbors(V: Any, I: Any) -> None:  # noqa: E741
    """Sort the heap of each query, nearest first."""
    for q in range(len(V)):
        for m in range(V.shape[1] - 1, 0, -1):
            v, row = V[q, m], I[q, m]
            V[q, m], I[q, m] = V[q, 0], I[q, 0]
            _sift(V[q], I[q], m, v, row)


# --------------------------------------------------------------------------------------------------------------- blocks


@internal_kernel
def _block_squares(block: Any, x: Any, sums: Any) -> None:
    """Write the squared distances of a row and each row of a block, equation (1)."""
    for i in range(BLOCK):
        sums[i] = 0.0
    for j in range(0, len(x) - 1, 2):  # two columns at a time, which halves the loads and stores of sums
        x0, x1 = x[j], x[j + 1]
        for i in range(BLOCK):
            t0, t1 = block[j, i] - x0, block[j + 1, i] - x1
            sums[i] = (sums[i] + t0 * t0) + t1 * t1
    if len(x) % 2 == 1:
        last = x[len(x) - 1]
        for i in range(BLOCK):
            t0 = block[len(x) - 1, i] - last
            sums[i] += t0 * t0


@internal_kernel
def _block_values(block: Any, x: Any, tag: int, p: float, sums: Any) -> None:
    """Write V of a row and each row of a block, for the other metrics."""
    for i in range(BLOCK):
        sums[i] = 0.0
    if tag == MANHATTAN:
        for j in range(len(x)):
            for i in range(BLOCK):
                sums[i] += abs(block[j, i] - x[j])
    elif tag == CHEBYSHEV:
        for j in range(len(x)):
            for i in range(BLOCK):
                t = abs(block[j, i] - x[j])
                sums[i] = t if t > sums[i] else sums[i]
    elif tag == POWER:
        for j in range(len(x)):
            for i in range(BLOCK):
                sums[i] += abs(block[j, i] - x[j]) ** p
    else:
        for j in range(len(x)):
            for i in range(BLOCK):
                sums[i] += 1.0 if block[j, i] != x[j] else 0.0


@internal_kernel
def _offer_block(blocks: Any, b: int, x: Any, metric: Any, sums: Any, V: Any, I: Any) -> None:  # noqa: E741
    if metric is None:
        _block_squares(blocks.values[b], x, sums)
    else:
        _block_values(blocks.values[b], x, metric[0], metric[1], sums)
    if not any_of_32_at_most(sums, 0, V[0]):
        return
    first = b * BLOCK
    left = len(blocks.members) - first
    for i in range(BLOCK if left > BLOCK else left):
        if sums[i] <= V[0]:
            offer(V, I, sums[i], blocks.members[first + i])


@non_allocating_kernel
def offer_blocks(blocks: Any, start: int, stop: int, X: Any, metric: Any, sums: Any, V: Any, I: Any) -> None:  # noqa: E741
    """Offer the rows of some blocks to every query.

    As in `search_tree`, `metric` is None for squares and (tag, p) for others, which are compiled separately, since most
    users need only the former.
    """
    for q in range(len(X)):
        for b in range(start, stop):
            _offer_block(blocks, b, X[q], metric, sums, V[q], I[q])


# ----------------------------------------------------------------------------------------------------------------- tree


@internal_kernel
def _bound(box: Any, x: Any, metric: Any) -> float:
    """Return V of a row and the nearest point of a box."""
    s = 0.0
    for j in range(len(x)):
        below, above = box[0, j] - x[j], x[j] - box[1, j]
        t = below if below > above else above
        t = t if t > 0.0 else 0.0
        if metric is None:
            s += t * t
        elif metric[0] == MANHATTAN:
            s += t
        elif metric[0] == CHEBYSHEV:
            s = t if t > s else s
        else:
            s += t ** metric[1] * _SLACK
    return s


@internal_kernel
def _search(blocks: Any, x: Any, metric: Any, scratch: Any, V: Any, I: Any) -> int:  # noqa: E741
    """Search the leaves near a row, the nearer child of each node first; return the number of leaves visited."""
    nodes, bounds, top, leaves = scratch.nodes, scratch.bounds, 1, 0
    nodes[0, 0], nodes[0, 1], nodes[0, 2], bounds[0] = 0, 0, len(blocks.values), 0.0
    while top > 0:
        top -= 1
        node, first, size, bound = nodes[top, 0], nodes[top, 1], nodes[top, 2], bounds[top]
        while size > 1 and bound <= V[0]:
            left = (size + 1) // 2
            a = _bound(blocks.boxes[node + 1], x, metric)
            b = _bound(blocks.boxes[node + 2 * left], x, metric)
            other = top
            top += 1
            if a <= b:
                nodes[other, 0], nodes[other, 1], nodes[other, 2], bounds[other] = (
                    node + 2 * left,
                    first + left,
                    size - left,
                    b,
                )
                node, size, bound = node + 1, left, a
            else:
                nodes[other, 0], nodes[other, 1], nodes[other, 2], bounds[other] = node + 1, first, left, a
                node, first, size, bound = node + 2 * left, first + left, size - left, b
        if size == 1 and bound <= V[0]:
            _offer_block(blocks, first, x, metric, scratch.sums, V, I)
            leaves += 1
    return leaves


@non_allocating_kernel
def search_tree(blocks: Any, X: Any, order: Any, metric: Any, scratch: Any, V: Any, I: Any) -> int:  # noqa: E741
    """Search for the queries in `order`, in which consecutive ones share cached nodes.

    Returns the number of leaves visited.
    """
    leaves = 0
    for i in range(len(order)):
        q = order[i]
        leaves += _search(blocks, X[q], metric, scratch, V[q], I[q])
    return leaves


@non_allocating_kernel
def nearest_leaves(blocks: Any, X: Any, out: Any) -> None:
    """Write the leaf of each row."""
    for q in range(len(X)):
        node, first, size = 0, 0, len(blocks.values)
        while size > 1:
            left = (size + 1) // 2
            a = _bound(blocks.boxes[node + 1], X[q], None)
            b = _bound(blocks.boxes[node + 2 * left], X[q], None)
            if a <= b:
                node, size = node + 1, left
            else:
                node, first, size = node + 2 * left, first + left, size - left
        out[q] = first


@internal_kernel
def _fit_box(X: Any, members: Any, box: Any) -> int:
    """Write the bounding box of some rows, and return its widest column."""
    for j in range(X.shape[1]):
        box[0, j] = box[1, j] = X[members[0], j]
    for i in range(1, len(members)):
        row = members[i]
        for j in range(X.shape[1]):
            t = X[row, j]
            if t < box[0, j]:
                box[0, j] = t
            if t > box[1, j]:
                box[1, j] = t
    widest = 0
    for j in range(1, X.shape[1]):
        if box[1, j] - box[0, j] > box[1, widest] - box[0, widest]:
            widest = j
    return widest


@internal_kernel
def _select(X: Any, column: int, members: Any, place: int) -> None:
    """Partition rows such that those before `place` are not greater, and those after not smaller (quickselect)."""
    low, high, state = 0, len(members) - 1, np.uint64(88172645463325252)
    while low < high:
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        pivot = X[members[low + np.int64(state % np.uint64(high - low + 1))], column]
        i, j = low, high
        while i <= j:
            while X[members[i], column] < pivot:
                i += 1
            while X[members[j], column] > pivot:
                j -= 1
            if i <= j:
                members[i], members[j] = members[j], members[i]
                i += 1
                j -= 1
        if place <= j:
            high = j
        elif place >= i:
            low = i
        else:
            return


@non_allocating_kernel
def grow_tree(X: Any, members: Any, boxes: Any, nodes: Any, top: int, budget: int) -> int:
    """Split the nodes on a stack at the median of their widest column until about `budget` rows have been processed.

    Returns the number of nodes left on the stack.
    """
    while top > 0 and budget > 0:
        top -= 1
        node, first, size = nodes[top, 0], nodes[top, 1], nodes[top, 2]
        rows = members[first * BLOCK : (first + size) * BLOCK]  # fewer in the last block
        widest = _fit_box(X, rows, boxes[node])
        budget -= len(rows)
        if size > 1:
            left = (size + 1) // 2
            _select(X, widest, rows, left * BLOCK)
            nodes[top, 0], nodes[top, 1], nodes[top, 2] = node + 2 * left, first + left, size - left
            nodes[top + 1, 0], nodes[top + 1, 1], nodes[top + 1, 2] = node + 1, first, left
            top += 2
    return top


# ---------------------------------------------------------------------------------------------------------------- tiles


@internal_kernel
def _threshold(worst: float, square: float, scale: float) -> Any:
    """Return the score above which no row is nearer than the worst (`indexes.ProductIndex`, equation 3)."""
    t = 0.5 * (worst * scale * (1.0 + 2.0**-40) - square * (1.0 - 2.0**-40))
    return np.float32(t + abs(t) * 2.0**-22 + 1e-30)


@non_allocating_kernel
def offer_tile(scores: Any, first: int, rows: Any, X: Any, squares: Any, scale: float, V: Any, I: Any) -> None:  # noqa: E741
    """Offer the rows from `first` on whose score is below the threshold of a query."""
    n = scores.shape[1]
    for q in range(len(X)):
        limit, row = _threshold(V[q, 0], squares[q], scale), scores[q]
        for a in range(0, n, _GROUP):
            b = a + _GROUP if a + _GROUP < n else n
            if b - a == _GROUP and not any_of_64_at_most(row, a, limit):
                continue
            for j in range(a, b):
                if row[j] <= limit:
                    s = 0.0
                    for c in range(X.shape[1]):
                        t = rows[first + j, c] - X[q, c]
                        s += t * t
                    if s <= V[q, 0]:
                        offer(V[q], I[q], s, first + j)
                        limit = _threshold(V[q, 0], squares[q], scale)


def warmup() -> None:
    """Compile the kernels for the common argument types."""
    from summula.neighbors.search import sparse_rows
    from summula.neighbors.search.indexes import BlockIndex, ProductIndex
    from summula.neighbors.search.metrics import Metric

    X = np.arange(80.0).reshape(40, 2)
    metric = Metric(SQUARES, 2.0, 1.0, 0.5)
    for dtype in (np.float64, np.float32):
        ProductIndex.build(X.astype(dtype), metric).search(X, 2)
    for one in (metric, Metric(MANHATTAN, 1.0, 1.0, 1.0)):
        BlockIndex.build(X, one, tree=True).search(np.vstack([X, X]), 2)
        BlockIndex.build(X, one, tree=False).search(X, 2)
    sparse_rows.warmup()
