"""Growing a tree on bins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.tree.binned.grow_kernels import grow
from summula.tree.binned.records import BINS, NODE, BinnedTable, Scratch, TreeRows
from summula.tree.exact.grower import ExactParameters, ExactTree, parameter_record
from summula.tree.exact.pruning import prune
from summula.tree.exact.records import CRITERIA, SQUARED
from summula.tree.prediction.predictor import Nodes

__all__ = ["GrownTree", "grow_binned", "warmup"]

Array = NDArray[Any]

_BUDGET = 20_000_000  # bins read between two looks at the clock: about 0.05 s


class GrownTree(NamedTuple):
    """A tree as it was grown; parents come before their children, and a right child follows the left one.

    Attributes
    ----------
    column, bin, threshold : what a node asks for, -1 for a leaf; the last bin and the largest value that go left
    is_set : whether the node asks for a category
    missing_left : whether missing values go left
    child : the left child, 0 for a leaf
    gain : decrease of the weighted impurity
    rows, weight, impurity : of the node
    values : (nodes, classes) weights of the classes, or (nodes, 1) the value predicted
    goes_left : (nodes that ask for a category, 256)
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
        """Return the smallest subtree that is best for a penalty per leaf."""
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


def grow_binned(
    table: BinnedTable,
    which: Array,
    y: Array,
    weight: Array,
    n_classes: int,
    parameters: ExactParameters,
    check: Callable[[], None],
) -> GrownTree:
    """Grow a tree from some rows of a table.

    Parameters
    ----------
    table : BinnedTable
    which : ndarray of int
        The rows, ascending.
    y, weight : ndarray
        Their targets, or codes of classes, and positive weights.
    n_classes : int
        0 for regression.
    parameters : ExactParameters
        Criterion and limits of the tree.
    check : callable
        Called about every 0.1 s; may raise.
    """
    n, d = len(which), len(table.bins)
    # Sums of squares about the mean lose no digits.
    shift = float(np.average(y, weights=weight)) if CRITERIA[parameters.criterion] == SQUARED else 0.0
    rows = TreeRows(which.astype(np.uint32), y.astype(np.float64) - shift, weight.astype(np.float64))
    most = 2 * min(parameters.max_leaf_nodes or n, max(n // parameters.min_samples_leaf, 1)) - 1
    nodes, sums = np.empty(most, NODE), np.empty((most, n_classes + 1 if n_classes else 3))
    flags = np.zeros((most if table.is_categorical.any() else 1, BINS), np.uint8)
    open_nodes, scratch = np.empty(most, np.int64), Scratch.of(n, d, n_classes)
    state = parameter_record(parameters, d)
    while not grow(table, rows, nodes, sums, open_nodes, flags, state, scratch, _BUDGET):
        check()
    found = int(state[0]["n_nodes"])
    return _read(table, nodes[:found], _values(nodes[:found], sums[:found], n_classes, shift), flags)


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


def _values(nodes: Array, sums: Array, n_classes: int, shift: float) -> Array:
    """Return weights of classes, or means; within the bounds of monotonic constraints."""
    weight, lower, upper = nodes["weight"], nodes["lower"], nodes["upper"]
    if n_classes == 0:
        return np.asarray(np.clip(sums[:, 0] / weight, lower, upper) + shift)[:, None]
    values = sums[:, :n_classes]
    bounded = (lower > -np.inf) | (upper < np.inf)
    if bounded.any():  # of two classes
        second = np.clip(values[:, 1] / weight, lower, upper) * weight
        values = np.where(bounded[:, None], np.column_stack([weight - second, second]), values)
    return np.asarray(values)


def warmup() -> None:
    """Compile for the types people use; the criterion is a number to the kernels."""
    table = BinnedTable(
        np.zeros((1, 2), np.uint8),
        np.full((1, BINS), np.inf),
        np.zeros((1, BINS)),
        np.zeros(1, np.uint8),
        np.zeros(1, np.int64),
    )
    grow_binned(table, np.arange(2), np.zeros(2), np.ones(2), 0, ExactParameters("squared_error"), lambda: None)
