"""Rows of bins go down the trees of a forest.

A node is eight bytes, so that a tree of thousands of leaves stays in the second cache. Rows go down side by side, a
level at a time: a processor fetches for one what another waits for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from summula.core.compilation.compile import internal_kernel, kernel

__all__ = [
    "IS_LEAF",
    "IS_SET",
    "MISSING_LEFT",
    "WALK_NODE",
    "add_leaf_values",
    "add_up",
    "add_values_of_bins",
    "find_leaves_of_bins",
    "warmup",
]

MISSING_LEFT, IS_SET, IS_LEAF = 1, 2, 4  # flags of a node

WALK_NODE = np.dtype([("child", np.int32), ("column", np.uint16), ("bin", np.uint8), ("flags", np.uint8)])

_TOGETHER = 128  # rows that go down a tree side by side


@internal_kernel
def _descend(bins: Any, start: int, stop: int, walk: Any, root: int, at: Any, going: Any) -> None:
    """Write the nodes that some rows end in to `at`; `going` is memory for the rows that are on their way."""
    nodes, sets, set_number = walk
    n_going = np.uint64(0 if nodes[root].flags & IS_LEAF else stop - start)
    for i in range(stop - start):
        at[i], going[i] = root, i
    while n_going > 0:
        left = np.uint64(0)
        for k in range(n_going):
            i = going[k]
            node = nodes[at[i]]
            b = bins[np.uint64(start + i), np.uint64(node.column)]
            if node.flags & IS_SET:
                right = sets[set_number[at[i]], b] == 0
            else:
                right = (b > node.bin) & ((b != 255) | (node.flags & MISSING_LEFT == 0))
            to = node.child + np.int32(right)
            at[i] = to
            going[left] = i  # overwritten by the next one if this one has arrived
            left += np.uint64(nodes[to].flags & IS_LEAF == 0)
        n_going = left


@kernel
def find_leaves_of_bins(bins: Any, walk: Any, roots: Any, first: int, last: int, out: Any) -> None:
    """Write the number, among all leaves, of the leaf that each row ends in; shape (rows, trees).

    walk : nodes of dtype WALK_NODE, whose `child` is the number of the leaf where they are one; for nodes that ask for
        a category, flags of the bins that go left; and which row of those flags a node has.
    """
    n, nodes = len(bins), walk[0]
    at, going = np.empty(_TOGETHER, np.int32), np.empty(_TOGETHER, np.int32)
    for tree in range(first, last):
        for start in range(0, n, _TOGETHER):
            stop = min(start + _TOGETHER, n)
            _descend(bins, start, stop, walk, roots[tree], at, going)
            for i in range(stop - start):
                out[start + i, tree - first] = nodes[at[i]].child


@kernel
def add_values_of_bins(bins: Any, walk: Any, roots: Any, values: Any, out: Any) -> None:
    """Add the values of the leaves that rows end in, of all trees, to `out`, shape (rows, values per leaf)."""
    n, nodes, width = len(bins), walk[0], out.shape[1]
    at, going = np.empty(_TOGETHER, np.int32), np.empty(_TOGETHER, np.int32)
    for tree in range(len(roots) - 1):
        for start in range(0, n, _TOGETHER):
            stop = min(start + _TOGETHER, n)
            _descend(bins, start, stop, walk, roots[tree], at, going)
            for i in range(stop - start):
                leaf = nodes[at[i]].child
                for k in range(width):
                    out[start + i, k] += values[leaf, k]


@kernel
def add_leaf_values(leaves: Any, values: Any, out: Any) -> None:
    """Add the values of leaves to those of their rows, tree after tree; -1 stands for none."""
    n, trees, width = leaves.shape[0], leaves.shape[1], values.shape[1]
    for i in range(n):
        for tree in range(trees):
            leaf = leaves[i, tree]
            if leaf >= 0:
                for k in range(width):
                    out[i, k] += values[leaf, k]


@kernel
def add_up(child: Any, sums: Any) -> None:
    """Add the sums of their children to those of inner nodes; parents come before these, and leaves have child 0."""
    for node in range(len(child) - 1, -1, -1):
        if child[node] > 0:
            for k in range(sums.shape[1]):
                sums[node, k] += sums[child[node], k] + sums[child[node] + 1, k]


def warmup() -> None:
    """Compile for the types people use."""
    nodes = np.zeros(1, WALK_NODE)
    nodes["flags"] = IS_LEAF
    leaves, walk = np.zeros((1, 1), np.int32), (nodes, np.zeros((0, 256), np.uint8), np.zeros(0, np.int32))
    find_leaves_of_bins(np.zeros((1, 1), np.uint8), walk, np.zeros(2, np.int64), 0, 1, leaves)
    add_values_of_bins(np.zeros((1, 1), np.uint8), walk, np.zeros(2, np.int64), np.zeros((1, 1)), np.zeros((1, 1)))
    add_leaf_values(leaves, np.zeros((1, 1)), np.zeros((1, 1)))
    add_up(np.zeros(1, np.int64), np.zeros((1, 1)))
