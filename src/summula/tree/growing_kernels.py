"""A whole tree at once, on one thread: for tables so small that what is done between two splits would cost more.

The steps, and the tree, are those of `growing`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from summula.core.compile import kernel
from summula.tree.histogram_kernels import Packing, accumulate
from summula.tree.nodes import Growth
from summula.tree.partition_kernels import partition
from summula.tree.split_kernels import BINS, Columns, Limits, best_split, sides, split_children, whole

__all__ = ["grow_alone", "warmup"]


@kernel
def _best_leaf(growth: Any, count: int, least: float) -> int:
    """The leaf with the largest gain above `least`, of equal ones the first; -1 for none."""
    best, top = -1, least
    for k in range(count):
        if growth.child[k] == 0 and growth.gain[k] > top:
            best, top = k, growth.gain[k]
    return best


@kernel
def grow_alone(
    bins: Any,
    by_column: Any,
    gradients: Any,
    rows: Any,
    spare: Any,
    columns: Any,
    limits: Any,
    packing: Any,
    max_leaves: int,
    max_depth: int,
    min_gain: float,
    space: Any,
    narrow: Any,
    wide: Any,
    growth: Any,
) -> int:
    """Split the root as often as allowed; gives the number of nodes.

    narrow, wide : space for a histogram of each leaf, packed, and of each with too many rows for that.
    """
    n, d, most = len(rows), bins.shape[1], packing.mask
    allowed = np.ones((2, d), np.uint8)
    place = np.zeros(len(growth.child), np.int64)  # of a leaf's histogram
    free, narrows = np.arange(len(narrow)), len(narrow)
    free_wide, wides = np.arange(len(wide)), len(wide)
    total, node = growth.total[0], growth.node[0]
    search = n >= 2 * limits.min_rows and max_depth > 0
    given = columns, allowed[0], total, node, limits, packing, -1.0, growth.found[0], growth.left[0]
    growth.gain[0] = -1.0
    if n > most:
        wides -= 1
        place[0] = free_wide[wides]
    else:
        narrows -= 1
        place[0] = free[narrows]
    sums = wide[place[0]] if n > most else narrow[place[0]]
    accumulate(bins, rows, gradients, 0, d, packing, space, sums)
    whole(sums, packing, limits, total, node)
    if search:
        growth.gain[0] = best_split(sums, 0, d, *given)
    growth.span[0, 0], growth.span[0, 1], growth.span[0, 2] = 0, n, 0
    growth.child[0] = 0
    count, leaves = 1, 1
    while leaves < max_leaves:
        leaf = _best_leaf(growth, count, min_gain)
        if leaf < 0:
            break
        start, stop, depth = growth.span[leaf, 0], growth.span[leaf, 1], growth.span[leaf, 2]
        f, child = growth.found[leaf, 0], count
        some, others = rows[start:stop], spare[start:stop]
        lefts = partition(some, by_column[f], growth.left[leaf], others)
        for i in range(stop - start - lefts):
            some[lefts + i] = others[i]
        growth.child[leaf] = child
        pair = slice(child, child + 2)
        totals, nodes, gains = growth.total[pair], growth.node[pair], growth.gain[pair]
        sides(growth.total[leaf], growth.found[leaf], growth.node[leaf], limits, columns.monotone[f], totals, nodes)
        growth.span[child, 0], growth.span[child + 1, 1] = start, stop
        growth.span[child, 1] = growth.span[child + 1, 0] = start + lefts
        growth.span[child, 2] = growth.span[child + 1, 2] = depth + 1
        growth.child[child] = growth.child[child + 1] = 0
        gains[0] = gains[1] = -1.0
        count, leaves = count + 2, leaves + 1
        right = stop - start - lefts
        splittable = max(lefts, right) >= 2 * limits.min_rows and depth + 1 < max_depth and leaves < max_leaves
        if not splittable:
            if stop - start > most:
                free_wide[wides] = place[leaf]
                wides += 1
            else:
                free[narrows] = place[leaf]
                narrows += 1
            continue
        which = 0 if lefts <= right else 1
        few = some[:lefts] if which == 0 else some[lefts:]
        parent = wide[place[leaf]] if stop - start > most else narrow[place[leaf]]
        if len(few) > most:
            wides -= 1
            small = free_wide[wides]
        else:
            narrows -= 1
            small = free[narrows]
        large = place[leaf]
        if stop - start > most and max(lefts, right) <= most:  # the larger one is packed, unlike its parent
            narrows -= 1
            large = free[narrows]
            free_wide[wides] = place[leaf]
            wides += 1
        split_children(
            bins,
            few,
            gradients,
            0,
            d,
            space,
            wide[small] if len(few) > most else narrow[small],
            parent,
            wide[large] if max(lefts, right) > most else narrow[large],
            which,
            columns,
            allowed,
            totals,
            nodes,
            limits,
            packing,
            gains,
            growth.found[pair],
            growth.left[pair],
        )
        place[child + which], place[child + 1 - which] = small, large
    return count


def warmup() -> None:
    """Compile for the types people use."""
    columns = Columns(np.ones(1, np.int64), np.zeros(1, np.int64), np.zeros(1, np.int64))
    grow_alone(
        np.zeros((1, 1), np.uint8),
        np.zeros((1, 1), np.uint8),
        np.ones(1, np.int64),
        np.zeros(1, np.uint32),
        np.zeros(1, np.uint32),
        columns,
        Limits(1.0, 1.0, 0.0, 1, 1e-3),
        Packing.of(14, 9),
        2,
        2,
        0.0,
        np.zeros((1, BINS), np.int64),
        np.zeros((3, 1, BINS), np.int64),
        np.zeros((0, 1, 3 * BINS), np.int64),
        Growth.of(3),
    )
