"""All trees of a model as one table of nodes, and their scores of rows.

A row x goes from node to node,

    left if x_j <= t, or if x_j is one of the node's categories, or if it is missing and missing values go left,  (1)

and its score is the start plus the sum over the trees of the values of the leaves it reaches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.model_files import schema
from summula.tree.columns.binning import BinMap
from summula.tree.growing.nodes import Tree
from summula.tree.prediction.predictor_kernels import add_scores
from summula.tree.prediction.scoring_kernels import ROWS, Questions, add_scores_by_bits

__all__ = ["Nodes"]

Array = NDArray[Any]

_FEW = 50  # number of rows up to which trees are traversed; evaluating every node needs a table first


def _trees_are_sound(nodes: Nodes, sizes: schema.Sizes) -> str | None:
    """Check a saved model: every tree is a binary tree whose nodes come after their parents.

    Kernels follow `child` unchecked and number leaves by it. In a tree of the nodes from `root` up to `end` the pairs
    of children are root + 1, root + 3, ..., each the children of one preceding node: every node is reached exactly
    once, and every path ends in a leaf.
    """
    roots, n_nodes = nodes.roots, sizes["n_nodes"]
    if roots[0] != 0 or roots[-1] != n_nodes or (np.diff(roots) % 2 == 0).any():
        return f"roots does not divide the {n_nodes} nodes into trees with an odd number of nodes"
    inner = np.flatnonzero(nodes.column >= 0)
    tree = np.searchsorted(roots, inner, side="right") - 1
    child, root, end = nodes.child[inner].astype(np.int64), roots[tree], roots[tree + 1]
    if not ((child > inner) & (child < end - 1) & ((child - root) % 2 == 1)).all():
        return "child contains a node that cannot be the left child of its parent"
    if len(np.unique(child)) != len(child):
        return "child contains a node twice"
    if (np.bincount(tree, minlength=len(roots) - 1) != np.diff(roots) // 2).any():
        return "column and child disagree on which nodes are leaves"
    if (nodes.category[nodes.column < 0] >= 0).any():
        return "category refers to categories of a leaf"
    return None


@schema.saved(
    _trees_are_sound,
    column=schema.Array("int32", "n_nodes", low=-1, below="n_features"),
    threshold=schema.Array("float64", "n_nodes", finite=False),
    bin=schema.Array("uint8", "n_nodes"),
    lefts=schema.Array("uint8", "n_choices", 256, row_major=True),
    category=schema.Array("int32", "n_nodes", low=-1, below="n_choices"),
    missing_left=schema.Array("uint8", "n_nodes", high=1),
    child=schema.Array("int32", "n_nodes", low=0),
    value=schema.Array("float64", "n_nodes"),
    gain=schema.Array("float64", "n_nodes", finite=False),
    rows=schema.Array("int64", "n_nodes", low=1),
    weight=schema.Array("float64", "n_nodes", finite=False),
    roots=schema.Array("int64", "n_trees + 1", low=0, ascending=True),
)
class Nodes(NamedTuple):
    """The nodes of all trees, tree by tree, as columns of one table.

    Attributes
    ----------
    column : column of the split; -1 for a leaf
    threshold, bin : the largest value, and the last bin, on the left
    category : the row of `lefts` with the bins on the left; -1 for numeric splits
    missing_left : 1 if missing values go left
    child : number of the left child; the right one follows
    value : contribution to the score, as a leaf
    gain : decrease of twice the loss by the split
    rows : number of training rows
    weight : sum of their curvatures
    lefts : for nodes with categories, 256 flags
    roots : the root of each tree, and the number of all nodes
    """

    column: Array
    threshold: Array
    bin: Array
    category: Array
    missing_left: Array
    child: Array
    value: Array
    gain: Array
    rows: Array
    weight: Array
    lefts: Array
    roots: Array

    @classmethod
    def none(cls) -> Nodes:
        """Return a table without trees."""
        i32 = np.empty(0, np.int32)
        return cls(
            i32,
            np.empty(0),
            np.empty(0, np.uint8),
            i32,
            np.empty(0, np.uint8),
            i32,
            np.empty(0),
            np.empty(0),
            np.empty(0, np.int64),
            np.empty(0),
            np.empty((0, 256), np.uint8),
            np.zeros(1, np.int64),
        )

    @classmethod
    def of(cls, trees: Sequence[Tree], bins: BinMap) -> Nodes:
        """Return the table of some trees; thresholds are the edges of their bins."""
        if not trees:
            return cls.none()
        sizes = [len(tree) for tree in trees]
        roots = np.cumsum([0, *sizes])
        names = ("feature", "bin", "left_child")
        column, last, child = (np.concatenate([getattr(tree, name) for tree in trees]) for name in names)
        inner = column >= 0
        compared = inner & (last >= 0)
        category, threshold = np.full(len(column), -1, np.int32), np.zeros(len(column))
        lefts = [left for tree in trees for left in tree.goes_left.values()]
        category[inner & (last < 0)] = np.arange(len(lefts))
        threshold[compared] = bins.edges[column[compared], last[compared]]
        return cls(
            column.astype(np.int32),
            threshold,
            np.where(compared, last, 0).astype(np.uint8),
            category,
            np.concatenate([tree.missing_left for tree in trees]).astype(np.uint8),
            np.where(inner, child + np.repeat(roots[:-1], sizes), 0).astype(np.int32),
            np.concatenate([tree.value for tree in trees]),
            np.concatenate([tree.gain for tree in trees]),
            np.concatenate([tree.count for tree in trees]),
            np.concatenate([tree.weight for tree in trees]),
            np.array(lefts, np.uint8).reshape(-1, 256),
            roots,
        )

    @classmethod
    def joined(cls, tables: list[Nodes]) -> Nodes:
        """Concatenate the trees of several tables."""
        tables = [cls.none(), *tables]
        nodes = np.cumsum([0] + [len(table.column) for table in tables[:-1]])
        chosen = np.cumsum([0] + [len(table.lefts) for table in tables[:-1]])
        columns = {name: np.concatenate([getattr(t, name) for t in tables]) for name in cls._fields}
        places = list(zip(tables, nodes, chosen, strict=True))
        columns["child"] = np.concatenate([_moved(t.child, t.column >= 0, at) for t, at, _ in places])
        columns["category"] = np.concatenate([_moved(t.category, t.category >= 0, at) for t, _, at in places])
        columns["roots"] = np.concatenate([t.roots[:-1] + at for t, at, _ in places] + [[len(columns["column"])]])
        return cls(**columns)

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.roots) - 1

    def leading(self, trees: int) -> Nodes:
        """Return the first trees."""
        end = int(self.roots[trees])
        parts = {name: getattr(self, name)[:end] for name in self._fields if name not in ("lefts", "roots")}
        return Nodes(**parts, lefts=self.lefts, roots=self.roots[: trees + 1])

    def single(self, tree: int) -> Nodes:
        """Return one tree as a separate table."""
        here = slice(int(self.roots[tree]), int(self.roots[tree + 1]))
        parts = {name: getattr(self, name)[here] for name in self._fields if name not in ("lefts", "roots")}
        parts["child"] = _moved(parts["child"], parts["column"] >= 0, -here.start)
        return Nodes(**parts, lefts=self.lefts, roots=np.array([0, here.stop - here.start]))

    def add_scores(self, X: Array, out: Array) -> None:
        """Add the values of all trees to the scores of rows, shape (rows, trees per iteration)."""
        inner = Questions.of(self, X.dtype) if len(X) > _FEW else None
        if inner is None:
            add_scores(X, self, 0, self.n_trees, out)
        else:
            rows, bits = np.empty((X.shape[1], ROWS), X.dtype), np.empty(ROWS, inner.keep.dtype)
            add_scores_by_bits(X, inner, rows, bits, out)

    def importances(self, n_features: int, *, by_gain: bool) -> Array:
        """Return the importance of each column: the sum of its gains, or the number of its splits."""
        inner = self.column >= 0
        return np.bincount(self.column[inner], self.gain[inner] if by_gain else None, n_features).astype(np.float64)


def _moved(numbers: Array, which: Array, by: int) -> Array:
    return np.where(which, numbers + by, numbers).astype(np.int32)
