"""Shapley values of a tree, leaf by leaf.

For each column j split on the path to a leaf, let z_j be the fraction of training rows that its nodes pass on along the
path, and o_j = 1 if the row follows the path at all of them, else 0. If the columns S are known, the row reaches the
leaf with probability prod_{S} o_j prod_{others} z_j. The contribution of a leaf of value v to the Shapley value of j is

    phi_j = v (o_j - z_j) sum_S |S|! (D - 1 - |S|)! / D!  prod_{S} o_k prod_{not S} z_k,                        (1)

summed over the subsets S of the D columns of the path without j. The weighted sums over subsets of each size follow
from one pass that adds columns one by one, and from removing j again (Lundberg, Erion and Lee 2018).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from summula.core.compilation.compile import internal_kernel, kernel, row_dtypes

__all__ = ["add_shapley", "warmup"]


@internal_kernel
def _goes_left(x: float, node: int, nodes: Any) -> bool:
    chosen = nodes.category[node]
    if chosen >= 0 and x == x:
        return nodes.lefts[chosen, np.int64(x)] != 0  # type: ignore[no-any-return]
    return x <= nodes.threshold[node] or (x != x and nodes.missing_left[node] != 0)


@internal_kernel
def _extend(weights: Any, size: int, z: float, o: float) -> None:
    """Add a column to the weighted sums over subsets of each size."""
    weights[size] = 1.0 if size == 0 else 0.0
    for i in range(size - 1, -1, -1):
        weights[i + 1] += o * weights[i] * (i + 1) / (size + 1)
        weights[i] = z * weights[i] * (size - i) / (size + 1)


@internal_kernel
def _without(weights: Any, last: int, z: float, o: float) -> float:
    """Return the sum in (1): the weights with one column removed."""
    total, next_one = 0.0, weights[last]
    for i in range(last - 1, -1, -1):
        if o != 0.0:
            part = next_one * (last + 1) / ((i + 1) * o)
            total += part
            next_one = weights[i] - part * z * (last - i) / (last + 1)
        elif z != 0.0:
            total += weights[i] * (last + 1) / (z * (last - i))
    return total


@kernel
def add_shapley(X: Any, nodes: Any, leaves: Any, starts: Any, steps: Any, first: int, last: int, out: Any) -> None:
    """Add (1) for all leaves of the trees from `first` up to `last` to `out`, shape (rows, columns, scores).

    leaves : the leaves of all trees, in order.
    starts : the steps of leaf k are steps[starts[k] : starts[k + 1]], from the root on: node, and 1 for left.
    """
    deep = 2
    for k in range(len(leaves)):
        deep = max(deep, starts[k + 1] - starts[k] + 2)
    weights, columns = np.empty(deep), np.empty(deep, np.int64)
    zs, os = np.empty(deep), np.empty(deep)
    for k in range(first, last):
        value, score = nodes.value[leaves[k, 0]], leaves[k, 1]
        for i in range(X.shape[0]):
            used = 0
            for s in range(starts[k], starts[k + 1]):
                node, left = steps[s, 0], steps[s, 1]
                j, child = nodes.column[node], nodes.child[node] + (1 - left)
                share = nodes.rows[child] / nodes.rows[node]
                follows = 1.0 if _goes_left(X[i, j], node, nodes) == (left == 1) else 0.0
                at = 0
                while at < used and columns[at] != j:
                    at += 1
                if at == used:
                    columns[at], zs[at], os[at] = j, 1.0, 1.0
                    used += 1
                zs[at] *= share
                os[at] *= follows
            _extend(weights, 0, 1.0, 1.0)
            for at in range(used):
                _extend(weights, at + 1, zs[at], os[at])
            for at in range(used):
                total = _without(weights, used, zs[at], os[at])
                out[i, columns[at], score] += value * (os[at] - zs[at]) * total


def warmup() -> None:
    """Compile for the usual types."""
    from summula.tree.prediction.predictor import Nodes

    pairs = np.empty((0, 2), np.int64)
    for kind in row_dtypes():
        add_shapley(
            np.zeros((1, 1), kind), Nodes.none(), pairs, np.zeros(1, np.int64), pairs, 0, 0, np.zeros((1, 1, 1))
        )
