"""Traversal of the trees of a forest by rows of bins.

A node is one eight-byte integer, so that a tree with thousands of leaves fits the second-level cache. Several rows
traverse a tree simultaneously, level by level, which hides the latency of memory accesses.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from summula.core.compilation.compile import internal_kernel, kernel

__all__ = [
    "IS_LEAF",
    "IS_SET",
    "LEFT_IS_LEAF",
    "MISSING_LEFT",
    "RIGHT_IS_LEAF",
    "add_leaf_values",
    "add_up",
    "add_values_of_bins",
    "find_leaves_of_bins",
    "packed_nodes",
    "warmup",
]

MISSING_LEFT, IS_SET, IS_LEAF, LEFT_IS_LEAF, RIGHT_IS_LEAF = 1, 2, 4, 8, 16  # flags of a node

_TOGETHER = 256  # number of rows that traverse a tree simultaneously

# Bits of a node: the left child (of a leaf: its number), the column, the last bin that goes left, and flags.
_COLUMN, _BIN, _FLAGS = np.uint64(32), np.uint64(48), np.uint64(56)
_CHILD_BITS, _COLUMN_BITS, _BYTE = np.uint64(2**32 - 1), np.uint64(2**16 - 1), np.uint64(255)
_PLACE = np.uint64(48)  # bits of a row during traversal: the offset of its bins, and its index
_ROW_BITS = np.uint64(2**48 - 1)
_ONE, _LEAF, _SET, _LEFT = np.uint64(1), np.uint64(IS_LEAF), np.uint64(IS_SET), np.uint64(3)  # LEFT_IS_LEAF is bit 3


def packed_nodes(child: Any, column: Any, last_bin: Any, flags: Any) -> Any:
    """Return nodes as packed integers."""
    parts = (child, np.uint64(0)), (column, _COLUMN), (last_bin, _BIN), (flags, _FLAGS)
    return np.bitwise_or.reduce([np.asarray(part).astype(np.uint64) << by for part, by in parts])


@internal_kernel
def _descend(bins: Any, width: int, start: int, stop: int, walk: Any, root: int, at: Any, going: Any) -> None:
    """Write the leaves that some rows reach to `at`; `going` is scratch memory for rows that have not reached one.

    bins : bins of all rows, `width` per row, concatenated.
    """
    nodes, sets, set_number = walk
    first = nodes[root]
    n_going = np.uint64(0 if (first >> _FLAGS) & _LEAF else stop - start)
    for i in range(stop - start):
        at[i], going[i] = first, np.uint64((start + i) * width) | (np.uint64(i) << _PLACE)
    while n_going > 0:
        left = np.uint64(0)
        for k in range(n_going):
            row = going[k]
            i = row >> _PLACE
            node = at[i]
            child, flags = node & _CHILD_BITS, node >> _FLAGS
            b = np.uint64(bins[(row & _ROW_BITS) + ((node >> _COLUMN) & _COLUMN_BITS)])
            if flags & _SET:
                right = np.uint64(sets[set_number[child], b] == 0)
            else:  # adding 1 maps the bin of missing values to 0
                more = flags & _ONE
                right = np.uint64(((b + more) & _BYTE) > ((node >> _BIN) & _BYTE) + more)
            at[i] = nodes[child + right]
            going[left] = row  # overwritten by the next row if this one has reached a leaf
            left += ((flags >> (_LEFT + right)) & _ONE) ^ _ONE
        n_going = left


@kernel
def find_leaves_of_bins(bins: Any, walk: Any, roots: Any, first: int, last: int, out: Any) -> None:
    """Write the number, among all leaves, of the leaf that each row reaches; shape (rows, trees).

    walk : nodes from `packed_nodes`; for categorical nodes, flags of the bins on the left, and the row of
    those flags for the parent of each left child.
    """
    n, flat = len(bins), bins.reshape(-1)
    at, going = np.empty(_TOGETHER, np.uint64), np.empty(_TOGETHER, np.uint64)
    for tree in range(first, last):
        for start in range(0, n, _TOGETHER):
            stop = min(start + _TOGETHER, n)
            _descend(flat, bins.shape[1], start, stop, walk, roots[tree], at, going)
            for i in range(stop - start):
                out[start + i, tree - first] = at[i] & _CHILD_BITS


@kernel
def add_values_of_bins(bins: Any, walk: Any, roots: Any, values: Any, out: Any) -> None:
    """Add the values of the leaves that rows reach, over all trees, to `out`, shape (rows, values per leaf)."""
    n, width, flat = len(bins), out.shape[1], bins.reshape(-1)
    at, going = np.empty(_TOGETHER, np.uint64), np.empty(_TOGETHER, np.uint64)
    for tree in range(len(roots) - 1):
        for start in range(0, n, _TOGETHER):
            stop = min(start + _TOGETHER, n)
            _descend(flat, bins.shape[1], start, stop, walk, roots[tree], at, going)
            for i in range(stop - start):
                leaf = at[i] & _CHILD_BITS
                for k in range(width):
                    out[start + i, k] += values[leaf, k]


@kernel
def add_leaf_values(leaves: Any, values: Any, out: Any) -> None:
    """Add the values of leaves to those of their rows, tree by tree; -1 means no leaf."""
    n, trees, width = leaves.shape[0], leaves.shape[1], values.shape[1]
    for i in range(n):
        for tree in range(trees):
            leaf = leaves[i, tree]
            if leaf >= 0:
                for k in range(width):
                    out[i, k] += values[leaf, k]


@kernel
def add_up(child: Any, sums: Any) -> None:
    """Add the sums of children to those of their parents, which come before them; leaves have child 0."""
    for node in range(len(child) - 1, -1, -1):
        if child[node] > 0:
            for k in range(sums.shape[1]):
                sums[node, k] += sums[child[node], k] + sums[child[node] + 1, k]


def warmup() -> None:
    """Compile for the usual types."""
    nodes = packed_nodes([0], [0], [0], [IS_LEAF])
    leaves, walk = np.zeros((1, 1), np.int32), (nodes, np.zeros((0, 256), np.uint8), np.zeros(0, np.int32))
    find_leaves_of_bins(np.zeros((1, 1), np.uint8), walk, np.zeros(2, np.int64), 0, 1, leaves)
    add_values_of_bins(np.zeros((1, 1), np.uint8), walk, np.zeros(2, np.int64), np.zeros((1, 1)), np.zeros((1, 1)))
    add_leaf_values(leaves, np.zeros((1, 1)), np.zeros((1, 1)))
    add_up(np.zeros(1, np.int64), np.zeros((1, 1)))
