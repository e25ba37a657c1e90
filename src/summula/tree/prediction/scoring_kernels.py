"""Scores of many rows by evaluating every node for all rows, without branches that depend on the row.

The L leaves of a tree, left to right, are the bits of an integer, initially all 1. A node at which a row goes right
clears the bits of the leaves below its left child,

    v <- v & keep,      if x_j > t,                                                                             (1)

and after all nodes have been evaluated, in any order, the lowest remaining bit is the leaf that the row reaches
(Lucchese and others, QuickScorer, 2015). This needs five times as many comparisons as traversal, but eight rows are
processed at once. The leaf is looked up by its bit b: b c >> 58 is distinct for every power of two, with c a de Bruijn
sequence.

Trees with more than 64 leaves are traversed (`predictor_kernels`).
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.compilation.compile import internal_kernel, kernel, non_allocating_kernel, row_dtypes

__all__ = ["COMPILE_SCORING", "MOST_LEAVES", "ROWS", "Questions", "add_scores_by_bits", "compile_scoring", "warmup"]

COMPILE_SCORING = "summula.tree.prediction.scoring_kernels:compile_scoring"
MOST_LEAVES = 64
ROWS = 256  # rows per block: their values stay in the second-level cache
_SEQUENCE = np.uint64(0x03F79D71B4CB0A89)
_SHIFT = np.uint64(58)

Array = NDArray[Any]


class Questions(NamedTuple):
    """The inner nodes of trees, tree by tree.

    Attributes
    ----------
    column, threshold, category, missing_left : as in `predictor.Nodes`
    keep : mask of the leaves that remain possible for a row that goes right
    starts : where the nodes of each tree start, and their number
    value : value of the leaf with each bit, shape (trees, 64), indexed by the product with the sequence
    lefts : for nodes with categories, 256 flags
    """

    column: Array
    threshold: Array
    category: Array
    missing_left: Array
    keep: Array
    starts: Array
    value: Array
    lefts: Array

    @classmethod
    def of(cls, nodes: Any, kind: Any) -> Questions | None:
        """Return the inner nodes of the trees for rows of this dtype; None if a tree has too many leaves."""
        sizes = (np.diff(nodes.roots) + 1) // 2
        largest = int(sizes.max(initial=1))
        if largest > MOST_LEAVES:
            return None
        trees, inner = len(sizes), np.flatnonzero(nodes.column >= 0)
        keep, leaf = np.empty(len(inner), np.uint64), np.zeros((trees, MOST_LEAVES))
        _number_leaves(nodes, keep, leaf, np.empty((2, 2 * largest), np.int64))
        places = (np.uint64(1) << np.arange(MOST_LEAVES, dtype=np.uint64)) * _SEQUENCE >> _SHIFT
        value = np.empty_like(leaf)
        value[:, places] = leaf
        threshold = nodes.threshold[inner]
        if kind == np.float32:
            rounded = threshold.astype(np.float32)  # rounded down: single-precision x > t iff x > rounded
            threshold = np.where(rounded > threshold, np.nextafter(rounded, np.float32(-np.inf)), rounded)
        small = kind == np.float32 and largest <= 32
        return cls(
            nodes.column[inner],
            threshold,
            nodes.category[inner],
            nodes.missing_left[inner],
            keep.astype(np.uint32) if small else keep,
            np.append(0, np.cumsum(sizes - 1)),
            value,
            nodes.lefts,
        )


@non_allocating_kernel
def _number_leaves(nodes: Any, keep: Any, leaf: Any, scratch: Any) -> None:
    """Compute `keep` of (1) for each inner node, and the values of leaves from left to right.

    Children come after their parents.
    scratch : array of shape (2, at least the largest number of nodes of a tree).
    """
    at, one, below, before = 0, np.uint64(1), scratch[0], scratch[1]
    for tree in range(len(leaf)):
        root, end = nodes.roots[tree], nodes.roots[tree + 1]
        below[:] = 1
        before[:] = 0
        for node in range(end - 1, root - 1, -1):
            if nodes.column[node] >= 0:
                left = nodes.child[node] - root
                below[node - root] = below[left] + below[left + 1]
        for node in range(root, end):
            here = before[node - root]
            if nodes.column[node] < 0:
                leaf[tree, here] = nodes.value[node]
                continue
            left = nodes.child[node] - root
            before[left], before[left + 1] = here, here + below[left]
            keep[at] = ~(((one << np.uint64(below[left])) - one) << np.uint64(here))
            at += 1


@internal_kernel
def _apply_threshold(x: Any, m: int, threshold: Any, missing_left: int, keep: Any, full: Any, bits: Any) -> None:
    """Apply (1) to m rows; a comparison with a missing value is false."""
    if missing_left:
        for i in range(m):
            bits[i] &= keep if x[i] > threshold else full
    else:
        for i in range(m):
            bits[i] &= full if x[i] <= threshold else keep


@internal_kernel
def _apply_categories(x: Any, m: int, lefts: Any, missing_left: int, keep: Any, bits: Any) -> None:
    for i in range(m):
        left = missing_left if x[i] != x[i] else lefts[np.int64(x[i])]
        if left == 0:
            bits[i] &= keep


@kernel
def add_scores_by_bits(X: Any, inner: Any, rows: Any, bits: Any, out: Any) -> None:
    """Add the values of all trees to the scores, shape (rows, trees per iteration).

    rows, bits : scratch, for 256 rows column by column, and for as many integers like `keep`.
    """
    n, d, width = X.shape[0], X.shape[1], out.shape[1]
    full = bits.dtype.type(0)
    full = ~full
    for start in range(0, n, ROWS):
        m = min(ROWS, n - start)
        for i in range(m):
            for j in range(d):
                rows[j, i] = X[start + i, j]
        for tree in range(len(inner.value)):
            bits[:m] = full
            for q in range(inner.starts[tree], inner.starts[tree + 1]):
                x, keep, lost = rows[inner.column[q]], inner.keep[q], inner.missing_left[q]
                if inner.category[q] >= 0:
                    _apply_categories(x, m, inner.lefts[inner.category[q]], lost, keep, bits)
                else:
                    _apply_threshold(x, m, inner.threshold[q], lost, keep, full, bits)
            k, value = tree % width, inner.value[tree]
            for i in range(m):
                v = np.uint64(bits[i])
                lowest = v & (np.uint64(0) - v)
                out[start + i, k] += value[(lowest * _SEQUENCE) >> _SHIFT]


def compile_scoring(kind: str, whole: str = "uint64", order: Literal["C", "F"] = "C") -> None:
    """Compile for rows of a dtype, the dtype of `Questions.keep`, and a memory order."""
    from summula.tree.prediction.predictor import Nodes

    inner = Questions.of(Nodes.none(), np.dtype(kind))
    assert inner is not None
    inner = inner._replace(keep=inner.keep.astype(whole))
    X, rows = np.zeros((2, 2), kind, order=order), np.zeros((2, ROWS), kind)
    add_scores_by_bits(X, inner, rows, np.zeros(ROWS, whole), np.zeros((2, 1)))


def warmup() -> None:
    """Compile for the usual types."""
    words = {"float64": ("uint64",), "float32": ("uint32", "uint64")}
    for kind in row_dtypes():
        for whole in words[kind]:
            compile_scoring(kind, whole, "C")
            compile_scoring(kind, whole, "F")
