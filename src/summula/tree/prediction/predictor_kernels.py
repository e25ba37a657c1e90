"""Tree traversal: rows of numbers with thresholds, or of bins with bin numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from summula.core.compilation.compile import compile_for, internal_kernel, kernel, non_allocating_kernel, row_dtypes

__all__ = ["COMPILE_FIND_LEAVES", "add_scores", "add_scores_of_bins", "compile_find_leaves", "find_leaves", "warmup"]

COMPILE_FIND_LEAVES = "summula.tree.prediction.predictor_kernels:compile_find_leaves"
_TOGETHER = 64  # number of rows that traverse a tree simultaneously


@internal_kernel
def _traverse(X: Any, start: int, stop: int, nodes: Any, tree: int, at: Any) -> None:
    """Write the leaves of some rows in one tree to `at`.

    The rows traverse the tree simultaneously, level by level, which hides the latency of memory accesses. Whether a row
    goes right is added to the number of the left child, which avoids branch mispredictions.
    """
    column, threshold, category = nodes.column, nodes.threshold, nodes.category
    missing_left, child, lefts = nodes.missing_left, nodes.child, nodes.lefts
    at[: stop - start] = nodes.roots[tree]
    going = True
    while going:
        going = False
        for i in range(stop - start):
            node = np.uint64(at[i])
            j = column[node]
            if j >= 0:
                going = True
                x = X[np.uint64(start + i), np.uint64(j)]
                chosen = category[node]
                if chosen >= 0 and x == x:
                    right = lefts[chosen, np.int64(x)] == 0
                else:
                    right = (x > threshold[node]) | ((x != x) & (missing_left[node] == 0))
                at[i] = child[node] + np.int32(right)


def add_scores(X: Any, nodes: Any, first: int, last: int, out: Any) -> None:
    """Add the values of the trees from `first` up to `last` to the scores, shape (rows, trees per iteration).

    Tree by tree over all rows of a block, so that the nodes of a tree stay in the first-level cache.
    """
    _add_scores(X, nodes, first, last, np.empty(_TOGETHER, np.int32), out)


@non_allocating_kernel
def _add_scores(X: Any, nodes: Any, first: int, last: int, at: Any, out: Any) -> None:
    n, width, value = X.shape[0], out.shape[1], nodes.value
    for tree in range(first, last):
        k = tree % width
        for start in range(0, n, _TOGETHER):
            stop = min(start + _TOGETHER, n)
            _traverse(X, start, stop, nodes, tree, at)
            for i in range(stop - start):
                out[start + i, k] += value[at[i]]


def find_leaves(X: Any, nodes: Any, first: int, last: int, out: Any) -> None:
    """Write the number, within its tree, of the leaf that each row reaches; shape (rows, trees)."""
    _find_leaves(X, nodes, first, last, np.empty(_TOGETHER, np.int32), out)


@non_allocating_kernel
def _find_leaves(X: Any, nodes: Any, first: int, last: int, at: Any, out: Any) -> None:
    n = X.shape[0]
    for tree in range(first, last):
        for start in range(0, n, _TOGETHER):
            stop = min(start + _TOGETHER, n)
            _traverse(X, start, stop, nodes, tree, at)
            for i in range(stop - start):
                out[start + i, tree - first] = at[i] - nodes.roots[tree]


@kernel
def add_scores_of_bins(bins: Any, nodes: Any, tree: int, start: int, stop: int, out: Any) -> None:
    """Add the values of one tree to the scores of binned rows, shape (rows,)."""
    column, last, category = nodes.column, nodes.bin, nodes.category
    missing_left, child, lefts, value = nodes.missing_left, nodes.child, nodes.lefts, nodes.value
    root = nodes.roots[tree]
    for i in range(start, stop):
        node = root
        while column[node] >= 0:
            b = bins[i, column[node]]
            chosen = category[node]
            if chosen >= 0:
                right = lefts[chosen, b] == 0
            else:
                right = ((b > last[node]) & (b != 255)) | ((b == 255) & (missing_left[node] == 0))
            node = child[node] + np.int32(right)
        out[i] += value[node]


def compile_find_leaves(kind: str) -> None:
    """Compile the kernels of predictions of one tree for rows of a dtype."""
    from summula.tree.prediction.predictor import Nodes

    at, out = np.zeros(1, np.int32), np.zeros((1, 1), np.int64)
    compile_for(_find_leaves, np.zeros((1, 1), kind), Nodes.none(), 0, 1, at, out)


def warmup() -> None:
    """Compile for the usual types."""
    from summula.tree.prediction.predictor import Nodes

    nodes = Nodes.none()
    for kind in row_dtypes():
        for X in (np.zeros((2, 2), kind), np.zeros((2, 2), kind, order="F")):
            add_scores(X, nodes, 0, 0, np.zeros((2, 1)))
            find_leaves(X, nodes, 0, 0, np.zeros((2, 1), np.int64))
    for scores in (np.zeros(1), np.zeros(1, np.float32)):
        add_scores_of_bins(np.zeros((1, 1), np.uint8), nodes, 0, 0, 0, scores)
