"""Minimal cost-complexity pruning (Breiman, Friedman, Olshen and Stone 1984, chapter 3).

With R(t) the impurity of node t times its fraction of the weight, and R(T_t) the sum of R over the leaves below it, a
subtree is optimal for penalties per leaf up to

    alpha(t) = (R(t) - R(T_t)) / (leaves of T_t - 1).                                                              (1)

The subtree of smallest alpha is replaced by a leaf repeatedly, which gives the optimal subtree for every penalty.
"""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.tree.exact.grower import ExactTree

__all__ = ["PruningPath", "prune", "pruning_path"]

Array = NDArray[Any]


class PruningPath(NamedTuple):
    """Penalties at which the optimal subtree changes, and the impurity of its leaves for each."""

    ccp_alphas: Array
    impurities: Array


def pruning_path(tree: ExactTree) -> PruningPath:
    """Return the pruning path from the whole tree to its root."""
    steps = list(_steps(tree))
    return PruningPath(np.array([alpha for alpha, _, _ in steps]), np.array([impurity for _, impurity, _ in steps]))


def prune(tree: ExactTree, ccp_alpha: float) -> ExactTree:
    """Return the smallest subtree that is optimal for a penalty per leaf."""
    becomes_leaf = np.zeros(len(tree.impurity), bool)
    for alpha, _, node in _steps(tree):
        if alpha > ccp_alpha:
            break
        if node >= 0:
            becomes_leaf[node] = True
    nodes = tree.nodes
    is_kept = np.zeros(len(tree.impurity), bool)
    is_kept[0] = True
    for node in range(len(is_kept)):  # parents come before their children
        if is_kept[node] and nodes.column[node] >= 0 and not becomes_leaf[node]:
            is_kept[nodes.child[node] : nodes.child[node] + 2] = True
    return _subtree(tree, is_kept, becomes_leaf)


def _subtree(tree: ExactTree, is_kept: Array, becomes_leaf: Array) -> ExactTree:
    """Return the tree of some nodes; children are removed in pairs, which preserves their order."""
    nodes, number = tree.nodes, np.cumsum(is_kept) - 1
    is_inner = (nodes.column >= 0) & ~becomes_leaf
    columns = {name: getattr(nodes, name)[is_kept] for name in nodes._fields if name not in ("lefts", "roots")}
    inner = is_inner[is_kept]
    columns["column"] = np.where(inner, columns["column"], -1).astype(np.int32)
    columns["child"] = np.where(inner, number[columns["child"]], 0).astype(np.int32)
    for name in ("threshold", "gain"):
        columns[name] = np.where(inner, columns[name], 0.0)
    columns["missing_left"] = np.where(inner, columns["missing_left"], 0).astype(np.uint8)
    asks = inner & (columns["category"] >= 0)
    lefts = nodes.lefts[columns["category"][asks]]
    columns["category"] = np.full(len(inner), -1, np.int32)
    columns["category"][asks] = np.arange(asks.sum())
    table = type(nodes)(**columns, lefts=lefts, roots=np.array([0, len(inner)]))
    return ExactTree(table, tree.impurity[is_kept], tree.values[is_kept])


def _steps(tree: ExactTree) -> Any:
    """Yield (alpha, impurity of the leaves, node replaced by a leaf) for every step; first the whole tree."""
    nodes, n = tree.nodes, len(tree.impurity)
    child, is_inner = nodes.child.astype(np.int64), nodes.column >= 0
    risk = tree.impurity * nodes.weight / nodes.weight[0]
    below, leaves, parent = risk.copy(), np.ones(n, np.int64), np.full(n, -1)
    for node in range(n - 1, -1, -1):
        if is_inner[node]:
            a = child[node]
            below[node], leaves[node] = below[a] + below[a + 1], leaves[a] + leaves[a + 1]
            parent[a] = parent[a + 1] = node

    def alpha(node: int) -> float:
        return float((risk[node] - below[node]) / (leaves[node] - 1))

    queue = [(alpha(node), node) for node in np.flatnonzero(is_inner).tolist()]
    heapq.heapify(queue)
    gone = ~is_inner
    yield 0.0, float(below[0]), -1
    while queue:
        found, node = heapq.heappop(queue)
        if gone[node] or found != alpha(node):  # already replaced, or changed since
            continue
        stack = [node]
        while stack:
            inner = stack.pop()
            if not gone[inner]:
                gone[inner] = True
                stack += [int(child[inner]), int(child[inner]) + 1]
        fewer, more = leaves[node] - 1, risk[node] - below[node]
        at = node
        while at >= 0:
            leaves[at], below[at] = leaves[at] - fewer, below[at] + more
            if at != node:
                heapq.heappush(queue, (alpha(at), at))
            at = int(parent[at])
        yield max(found, 0.0), float(below[0]), node
