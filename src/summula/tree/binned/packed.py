"""Compact storage of all trees of a forest.

The nodes of a tree are numbered level by level, from left to right. The children of its k-th inner node are then the
nodes 2k + 1 and 2k + 2, which need not be stored: a byte per node marks inner nodes. Inner nodes have a column and a
bin, leaves have values; all other attributes of inner nodes are sums over their leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from summula.core.model_files import schema
from summula.tree.binned.grower import GrownTree
from summula.tree.binned.walk_kernels import (
    IS_LEAF,
    IS_SET,
    LEFT_IS_LEAF,
    RIGHT_IS_LEAF,
    add_up,
    packed_nodes,
)
from summula.tree.columns.binning import BinMap
from summula.tree.prediction.predictor import Nodes

__all__ = ["PackedTrees", "Walk"]

Array = NDArray[Any]


def _in_single(values: Array) -> Array:
    """Return non-negative values in single precision, to halve their memory, unless they are out of its range."""
    largest = float(values.max(initial=0.0))
    return values.astype(np.float32 if largest == 0.0 or 1e-20 <= largest <= 1e37 else np.float64)


def _trees_are_sound(trees: PackedTrees, sizes: schema.Sizes) -> str | None:
    """Check a saved model: every tree is a binary tree numbered level by level.

    Node j > 0 is a child of inner node (j - 1) // 2 of its tree, which must come before it.
    """
    roots, n_nodes = trees.roots, sizes["n_nodes"]
    if roots[0] != 0 or roots[-1] != n_nodes or (np.diff(roots) % 2 == 0).any():
        return f"roots does not divide the {n_nodes} nodes into trees with an odd number of nodes"
    before = np.concatenate([[0], np.cumsum(trees.is_inner, dtype=np.int64)])  # inner nodes before each, and in total
    if before[-1] != sizes["n_inner"] or n_nodes - before[-1] != sizes["n_leaves"]:
        return "is_inner does not match the numbers of inner nodes and leaves"
    tree = np.repeat(np.arange(len(roots) - 1), np.diff(roots))
    place, above = np.arange(n_nodes) - roots[tree], before[:-1] - before[roots[tree]]
    if ((place > 0) & (above <= (place - 1) // 2)).any():
        return "is_inner has a node without a parent"
    if (2 * np.diff(before[roots]) + 1 != np.diff(roots)).any():
        return "is_inner has an inner node without children"
    if int((trees.flags & IS_SET > 0).sum()) != sizes["n_sets"]:
        return "flags does not match the number of sets of categories"
    if len(trees.threshold) not in (0, sizes["n_inner"]) or len(trees.weight) not in (0, sizes["n_leaves"]):
        return "threshold and weight must be given for all nodes or for none"
    return None


@schema.saved(
    _trees_are_sound,
    roots=schema.Array("int64", "n_trees + 1", low=0, ascending=True),
    is_inner=schema.Array("uint8", "n_nodes", high=1),
    column=schema.Array("uint16", "n_inner", below="n_features"),
    bin=schema.Array("uint8", "n_inner"),
    flags=schema.Array("uint8", "n_inner", high=3),
    threshold=schema.Array("float64", "n_thresholds", finite=False),
    gain=schema.Array("float", "n_inner", low=0.0),
    sets=schema.Array("uint8", "n_sets", 32, row_major=True),
    values=schema.Array("float", "n_leaves", "n_values", row_major=True),
    rows=schema.Array("uint32", "n_leaves", low=1),
    weight=schema.Array("float", "n_weights", low=0.0),
    impurity=schema.Array("float", "n_weights", low=0.0),
)
@dataclass(frozen=True, eq=False)
class PackedTrees:
    """The trees of a forest.

    Attributes
    ----------
    roots : the root of each tree, and the number of all nodes
    is_inner : whether each node is an inner node
    column, bin : column of the split, and the last bin on the left, of inner nodes
    flags : MISSING_LEFT, and IS_SET for splits by category, of inner nodes
    threshold : the largest value on the left, of inner nodes; empty if it is the edge of the bin
    gain : decrease of the weighted impurity, of inner nodes
    sets : the bins on the left as bits, of categorical nodes
    values : class weights, or the predicted value, of leaves; class proportions for several targets
    rows : number of rows of leaves
    weight, impurity : of leaves; empty for one target with classes, where they follow from the class weights
    """

    roots: Array
    is_inner: Array
    column: Array
    bin: Array
    flags: Array
    threshold: Array
    gain: Array
    sets: Array
    values: Array
    rows: Array
    weight: Array
    impurity: Array

    @classmethod
    def of(cls, tree: GrownTree, *, is_exact: bool, has_classes: bool) -> PackedTrees:
        """Return one tree, numbered level by level."""
        order = _by_level(tree.child)
        is_inner = tree.child[order] > 0
        inner, leaves = order[is_inner], order[~is_inner]
        is_set = tree.is_set[inner]
        numbers = np.cumsum(tree.is_set) - 1  # for categorical nodes
        values = _in_single(tree.values[leaves]) if has_classes else tree.values[leaves].astype(np.float64)
        sums_at = leaves[:0] if has_classes else leaves
        return cls(
            roots=np.array([0, len(order)]),
            is_inner=is_inner.astype(np.uint8),
            column=tree.column[inner].astype(np.uint16),
            bin=tree.bin[inner].astype(np.uint8),
            flags=(tree.missing_left[inner] + IS_SET * is_set).astype(np.uint8),
            threshold=tree.threshold[inner] if is_exact else np.empty(0),
            gain=_in_single(tree.gain[inner]),
            sets=np.packbits(tree.goes_left[numbers[inner[is_set]]], axis=1),
            values=np.ascontiguousarray(values),
            rows=tree.rows[leaves].astype(np.uint32),
            weight=_in_single(tree.weight[sums_at]),
            impurity=_in_single(tree.impurity[sums_at]),
        )

    @classmethod
    def joined(cls, parts: Sequence[PackedTrees]) -> PackedTrees:
        """Concatenate the trees of several tables."""
        ends = np.cumsum([0] + [len(part.is_inner) for part in parts])
        columns = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in (field.name for field in fields(cls))
        }
        roots = [part.roots[:-1] + end for part, end in zip(parts, ends[:-1], strict=True)]
        columns["roots"] = np.concatenate([*roots, ends[-1:]])
        return cls(**columns)

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.roots) - 1

    @property
    def is_exact(self) -> bool:
        """Whether thresholds are stored, because they are not edges of bins."""
        return len(self.threshold) > 0 or not len(self.column)

    def only(self, tree: int) -> PackedTrees:
        """Return one of the trees."""
        a, b = int(self.roots[tree]), int(self.roots[tree + 1])
        before, inside = int(self.is_inner[:a].sum(dtype=np.int64)), int(self.is_inner[a:b].sum(dtype=np.int64))
        inner, leaves = slice(before, before + inside), slice(a - before, b - before - inside)
        n_before = int((self.flags[:before] & IS_SET > 0).sum())
        sets = slice(n_before, n_before + int((self.flags[inner] & IS_SET > 0).sum()))
        parts: dict[str, Any] = {name: getattr(self, name)[inner] for name in ("column", "bin", "flags", "gain")}
        parts |= {name: getattr(self, name)[leaves] for name in ("values", "rows", "weight", "impurity")}
        return PackedTrees(
            **parts,
            roots=np.array([0, b - a]),
            is_inner=self.is_inner[a:b],
            threshold=self.threshold[inner],
            sets=self.sets[sets],
        )

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    # ------------------------------------------------------------------------------------------ derived quantities

    @cached_property
    def walk(self) -> Walk:
        """Return the trees in the form used for traversal."""
        return Walk.of(self)

    @cached_property
    def leaf_values(self) -> Array:
        """Predictions of leaves: class proportions, or a number."""
        values = self.values.astype(np.float64)
        return values if len(self.weight) else values / values.sum(axis=1, keepdims=True)

    def children(self) -> Array:
        """Return the left child of each node, 0 for leaves."""
        child = np.zeros(len(self.is_inner), np.int64)
        inner = np.flatnonzero(self.is_inner)
        tree = np.searchsorted(self.roots, inner, side="right") - 1
        first = np.concatenate([[0], np.cumsum(self.is_inner, dtype=np.int64)])[self.roots[tree]]
        child[inner] = self.roots[tree] + 2 * (np.arange(len(inner)) - first) + 1
        return child

    def table(self, bins: BinMap) -> Nodes:
        """Return the trees as a table of nodes with thresholds."""
        return self._table if self.is_exact else self.nodes(bins)[0]

    @cached_property
    def _table(self) -> Nodes:
        """Return the table of nodes of trees with stored thresholds."""
        return self.nodes(None)[0]

    def importances(self, n_features: int) -> Array:
        """Return the normalised decrease of impurity by each column in every tree, shape (trees, features)."""
        tree = np.searchsorted(self.roots, np.flatnonzero(self.is_inner), side="right") - 1
        places = tree * n_features + self.column
        gains = np.bincount(places, self.gain, self.n_trees * n_features).astype(np.float64)
        gains = gains.reshape(self.n_trees, n_features)
        total = gains.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(gains, total, out=np.zeros_like(gains), where=total > 0))

    def nodes(self, bins: BinMap | None, criterion: str = "") -> tuple[Nodes, Array, Array]:
        """Return the trees as a table of nodes, and the values and impurities of these (0 without a criterion)."""
        child, is_inner, has_classes = self.children(), self.is_inner > 0, not len(self.weight)
        n, inner, is_set = len(child), np.flatnonzero(is_inner), self.flags & IS_SET > 0
        weight = self.values.sum(axis=1, dtype=np.float64) if has_classes else self.weight.astype(np.float64)
        sums = np.zeros((n, self.values.shape[1] + 2))  # values times weight, weight, rows
        sums[~is_inner, :-2] = self.values if has_classes else self.values * weight[:, None]
        sums[~is_inner, -2], sums[~is_inner, -1] = weight, self.rows
        add_up(child, sums)
        values = sums[:, :-2] / sums[:, -2:-1]
        threshold = self.threshold if bins is None or self.is_exact else bins.edges[self.column, self.bin]
        table = Nodes(
            column=_at(n, inner, self.column, np.int32, -1),
            threshold=_at(n, inner, np.where(is_set, 0.0, threshold), np.float64, 0.0),
            bin=_at(n, inner, self.bin, np.uint8, 0),
            category=_at(n, inner[is_set], np.arange(is_set.sum()), np.int32, -1),
            missing_left=_at(n, inner, self.flags & 1, np.uint8, 0),
            child=child.astype(np.int32),
            value=np.zeros(n) if has_classes else np.ascontiguousarray(values[:, 0]),
            gain=_at(n, inner, self.gain, np.float64, 0.0),
            rows=sums[:, -1].astype(np.int64),
            weight=np.ascontiguousarray(sums[:, -2]),
            lefts=np.unpackbits(self.sets, axis=1),
            roots=self.roots,
        )
        return table, values, self._impurities(table, values, criterion)

    def _impurities(self, table: Nodes, values: Array, criterion: str) -> Array:
        """Return the impurity of every node: for inner nodes, that of their leaves plus the gains of their splits."""
        has_classes = not len(self.weight)
        if has_classes and criterion == "gini":
            return np.asarray(1.0 - (values**2).sum(axis=1))
        if has_classes and criterion in ("entropy", "log_loss"):
            return np.asarray(special.entr(values).sum(axis=1) / np.log(2.0))
        found = np.zeros((len(values), 1))
        if criterion:
            tree = np.repeat(np.arange(self.n_trees), np.diff(self.roots))
            found[self.is_inner == 0, 0] = self.impurity * table.weight[self.is_inner == 0]
            found[:, 0] += table.gain * table.weight[self.roots[tree]]
            add_up(table.child.astype(np.int64), found)
        return found[:, 0] / table.weight


def _at(n: int, places: Array, values: Array, dtype: Any, other: Any) -> Array:
    out = np.full(n, other, dtype)
    out[places] = values
    return out


def _by_level(child: Array) -> Array:
    """Return the nodes of a tree level by level."""
    levels = [np.zeros(1, np.int64)]
    while True:
        inner = levels[-1][child[levels[-1]] > 0]
        if not len(inner):
            return np.concatenate(levels)
        levels.append((child[inner][:, None] + np.arange(2)).reshape(-1))


class Walk(NamedTuple):
    """Trees in the form used for traversal (see `walk_kernels`)."""

    nodes: Array
    sets: Array
    set_number: Array

    @classmethod
    def of(cls, trees: PackedTrees) -> Walk:
        """Return the trees in this form."""
        is_inner = trees.is_inner > 0
        n, inner, child = len(is_inner), np.flatnonzero(is_inner), trees.children()
        below, is_set = child[inner], trees.flags & IS_SET > 0
        flags = trees.flags + LEFT_IS_LEAF * ~is_inner[below] + RIGHT_IS_LEAF * ~is_inner[below + 1]
        child[~is_inner] = np.arange(n - len(inner))
        nodes = packed_nodes(
            child,
            _at(n, inner, trees.column, np.uint16, 0),
            _at(n, inner, trees.bin, np.uint8, 0),
            _at(n, inner, flags, np.uint8, IS_LEAF),
        )
        numbers = (
            _at(n, below[is_set], np.arange(is_set.sum()), np.int32, -1) if is_set.any() else np.empty(0, np.int32)
        )
        return cls(nodes, np.unpackbits(trees.sets, axis=1), numbers)
