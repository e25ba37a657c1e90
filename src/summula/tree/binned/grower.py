"""Growing a tree on bins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.compilation.compile import compile_for
from summula.tree.binned.grow_kernels import grow
from summula.tree.binned.records import BINS, NODE, BinnedTable, Scratch, TreeRows
from summula.tree.binned.scan_kernels import bind_kernels, compile_kernels
from summula.tree.exact.grower import ExactParameters, ExactTree, parameter_record
from summula.tree.exact.pruning import prune
from summula.tree.growing.outputs import Outputs
from summula.tree.prediction.predictor import Nodes

__all__ = ["GrownNodes", "GrownTree", "as_tree", "grow_binned", "grow_nodes", "new_root", "warmup"]

Array = NDArray[Any]

_BUDGET = 20_000_000  # bins read between calls of `check`: about 0.05 s


class GrownTree(NamedTuple):
    """A grown tree; parents come before their children, and a right child follows its left sibling.

    Attributes
    ----------
    column, bin, threshold : column of the split, -1 for a leaf; the last bin and the largest value on the left
    is_set : whether the node splits by category
    missing_left : whether missing values go left
    child : the left child, 0 for a leaf
    gain : decrease of the weighted impurity
    rows, weight, impurity : number of rows, their weight, and impurity of the node
    values : (nodes, values) weights of the classes, or the predicted value; class proportions for several targets
    goes_left : (categorical nodes, 256)
    """

    column: Array
    bin: Array
    threshold: Array
    is_set: Array
    missing_left: Array
    child: Array
    gain: Array
    rows: Array
    weight: Array
    impurity: Array
    values: Array
    goes_left: Array

    @classmethod
    def of_exact(cls, tree: ExactTree) -> GrownTree:
        """Return a tree with exact thresholds in this form."""
        nodes, values = tree.nodes, tree.values
        return cls(
            column=nodes.column,
            bin=nodes.bin,
            threshold=nodes.threshold,
            is_set=nodes.category >= 0,
            missing_left=nodes.missing_left,
            child=nodes.child.astype(np.int64),
            gain=nodes.gain,
            rows=nodes.rows,
            weight=nodes.weight,
            impurity=tree.impurity,
            values=values,
            goes_left=nodes.lefts,
        )

    def pruned(self, ccp_alpha: float) -> GrownTree:
        """Return the smallest subtree that is optimal for a penalty per leaf."""
        n = len(self.column)
        category = np.where(self.is_set, np.cumsum(self.is_set) - 1, -1)
        nodes = Nodes(
            column=self.column.astype(np.int32),
            threshold=self.threshold,
            bin=self.bin,
            category=category.astype(np.int32),
            missing_left=self.missing_left,
            child=self.child.astype(np.int32),
            value=np.zeros(n),
            gain=self.gain,
            rows=self.rows,
            weight=self.weight,
            lefts=self.goes_left,
            roots=np.array([0, n]),
        )
        return GrownTree.of_exact(prune(ExactTree(nodes, self.impurity, self.values), ccp_alpha))


class GrownNodes(NamedTuple):
    """Nodes as kernels grow them, and their sums; `flags` as in `grow_kernels.grow`."""

    nodes: Array
    sums: Array
    flags: Array


def new_root(parameters: ExactParameters) -> Array:
    """Return the record of the root of a tree."""
    root = np.zeros((), NODE)
    root["key"], root["lower"], root["upper"] = parameters.key, -np.inf, np.inf
    return root


def grow_nodes(
    table: BinnedTable, rows: TreeRows, outputs: Outputs, state: Array, root: Array, check: Callable[[], None]
) -> GrownNodes:
    """Grow the tree below a node from its rows.

    Parameters
    ----------
    table : BinnedTable
    rows : TreeRows
        The rows of the node.
    outputs : Outputs
        Types of the targets.
    state : ndarray
        Limits, from `parameter_record`; its `weight` is the weight of the whole tree, or 0 if the node is the root.
    root : ndarray
        Record of the node; its depth, key and bounds are used.
    check : callable
        Called about every 0.1 s; may raise.
    """
    n, d = len(rows.rows), len(table.bins)
    most = 2 * min(int(state["max_leaves"][0]), max(n // int(state["min_samples_leaf"][0]), 1)) - 1
    nodes, sums = np.empty(most, NODE), np.empty((most, outputs.n_sums))
    nodes[0] = root
    flags = np.zeros((most if table.is_categorical.any() else 1, BINS), np.uint8)
    open_nodes, scratch = np.empty(most, np.int64), Scratch.of(n, d, outputs)
    arguments = (table, rows, nodes, sums, open_nodes, flags, state, scratch, _BUDGET)
    if not grow.signatures:  # while another process compiles the kernels it calls by address
        compile_for(grow, *arguments)
    bind_kernels(state, table, outputs)
    while not grow(*arguments):
        check()
    found = int(state["n_nodes"][0])
    return GrownNodes(nodes[:found], sums[:found], flags[:found])


def grow_binned(
    table: BinnedTable,
    rows: TreeRows,
    outputs: Outputs,
    shift: Array,
    parameters: ExactParameters,
    check: Callable[[], None],
) -> GrownTree:
    """Grow a tree from some rows of a table.

    Parameters
    ----------
    table : BinnedTable
    rows : TreeRows
        The rows, ascending, their targets or codes of classes, and positive weights.
    outputs : Outputs
        What the targets are.
    shift : ndarray of shape (n_outputs,)
        Values subtracted from the targets.
    parameters : ExactParameters
        Criterion and limits of the tree.
    check : callable
        Called about every 0.1 s; may raise.
    """
    state = parameter_record(parameters, len(table.bins), outputs)
    return as_tree(table, grow_nodes(table, rows, outputs, state, new_root(parameters), check), outputs, shift)


def as_tree(table: BinnedTable, grown: GrownNodes, outputs: Outputs, shift: Array) -> GrownTree:
    """Return a tree from its nodes."""
    return _read(table, grown.nodes, _values(grown.nodes, grown.sums, outputs, shift), grown.flags)


def _read(table: BinnedTable, nodes: Array, values: Array, flags: Array) -> GrownTree:
    child = nodes["left_child"]
    is_inner = child > 0
    is_set = is_inner & (nodes["is_categorical"] > 0)
    column, last = np.where(is_inner, nodes["feature"], -1), np.where(is_inner & ~is_set, nodes["bin"], 0)
    return GrownTree(
        column=column,
        bin=last,
        threshold=np.where(is_inner & ~is_set, table.edges[column, last], 0.0),
        is_set=is_set,
        missing_left=is_inner & (nodes["missing_left"] == 1),
        child=child,
        gain=np.where(is_inner, nodes["improvement"], 0.0),
        rows=nodes["stop"] - nodes["start"],
        weight=nodes["weight"],
        impurity=nodes["impurity"],
        values=values,
        goes_left=flags[np.flatnonzero(is_set)] if is_set.any() else np.empty((0, BINS), np.uint8),
    )


def _values(nodes: Array, sums: Array, outputs: Outputs, shift: Array) -> Array:
    """Return class weights (class proportions for several targets), or means, within monotonic constraints."""
    weight, lower, upper = nodes["weight"], nodes["lower"], nodes["upper"]
    values = sums[:, : outputs.n_values]
    if not outputs.has_classes:
        return np.asarray(np.clip(values / weight[:, None], lower[:, None], upper[:, None]) + shift)
    if outputs.n_outputs > 1:
        return np.asarray(values / weight[:, None])
    bounded = (lower > -np.inf) | (upper < np.inf)
    if bounded.any():  # for two classes
        second = np.clip(values[:, 1] / weight, lower, upper) * weight
        values = np.where(bounded[:, None], np.column_stack([weight - second, second]), values)
    return np.asarray(values)


def warmup() -> None:
    """Compile for the usual types; the criterion is an integer argument of the kernels."""
    table = BinnedTable.of_one_feature(np.zeros((1, 2), np.uint8))
    rows = TreeRows(np.arange(2, dtype=np.uint32), np.zeros((1, 2)), np.ones(2))
    grow_binned(table, rows, Outputs(), np.zeros(1), ExactParameters("squared_error"), lambda: None)
    compile_kernels("find_split,find_categories")
