"""Records used to grow exact trees."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from summula.tree.growing.outputs import Outputs

__all__ = [
    "ABSOLUTE",
    "CRITERIA",
    "ENTROPY",
    "EXAMPLE_PLACE",
    "GINI",
    "NODE",
    "PARAMETERS",
    "POISSON",
    "SPLIT",
    "SQUARED",
    "ExactRows",
    "Scratch",
    "example_inputs",
]

_INT, _FLOAT = np.int64, np.float64

GINI, ENTROPY, SQUARED, POISSON, ABSOLUTE = range(5)
CRITERIA = {
    "gini": GINI,
    "entropy": ENTROPY,
    "log_loss": ENTROPY,
    "squared_error": SQUARED,
    "poisson": POISSON,
    "absolute_error": ABSOLUTE,
}

SPLIT = np.dtype(
    [
        ("score", _FLOAT),  # score of the best split so far, larger is better; -inf if there is none
        ("feature", _INT),
        ("threshold", _FLOAT),
        ("is_categorical", _INT),
        ("missing_left", _INT),
    ]
)

NODE = np.dtype(
    [
        ("start", _INT),  # range of its rows in the row orders
        ("stop", _INT),
        ("depth", _INT),
        ("left_child", _INT),  # left child; the right one follows; 0 for a leaf
        ("impurity", _FLOAT),
        ("weight", _FLOAT),
        ("improvement", _FLOAT),  # of its split, which is allowed if not negative
        ("lower", _FLOAT),  # bounds on the values below it, from splits on monotone columns
        ("upper", _FLOAT),
        ("split", SPLIT),
    ]
)

PARAMETERS = np.dtype(
    [
        ("criterion", _INT),
        ("max_depth", _INT),
        ("max_leaves", _INT),
        ("best_first", _INT),  # 1: split the leaf of largest improvement next; 0: the last one
        ("min_samples_split", _INT),
        ("min_samples_leaf", _INT),
        ("min_weight_leaf", _FLOAT),
        ("min_improvement", _FLOAT),
        ("max_features", _INT),
        ("random_threshold", _INT),  # 1: one random threshold per column; 0: the best one
        ("key", _INT),  # of random numbers
        ("n_outputs", _INT),  # targets
        ("n_first", _INT),  # classes of the first target; 0 for regression
        ("scan", _INT),  # addresses of kernels; see `scan_kernels`
        ("open_node", _INT),
        ("find_split", _INT),
        ("find_categories", _INT),
        ("weight", _FLOAT),  # total over all rows
        ("n_nodes", _INT),  # state: numbers of nodes, of leaves that may be split, of leaves
        ("n_open", _INT),
        ("n_leaves", _INT),
        ("varies", _INT),  # whether the last categorical column searched is not constant
        ("may_split", _INT),  # whether the last node opened may be split
        ("budget", _INT),  # values to read before the kernel returns, after which it continues where it was:
        ("n_unopened", _INT),  # number of the newest nodes that are not opened yet
        ("is_searching", _INT),  # whether the search for the split of the last of these has begun
        ("visited", _INT),  # numbers of columns searched for it, and of those that vary
        ("useful", _INT),
        ("splitting", _INT),  # 1 + the node whose rows are being divided; 0 if there is none
        ("n_divided", _INT),  # number of orders of its rows that are divided
        ("n_left", _INT),  # number of its rows that go left
    ]
)


class ExactRows(NamedTuple):
    """Inputs of a tree; arrays with one row per feature are contiguous in rows of the table."""

    values: Any  # (features, rows) of float64: the columns
    orders: (
        Any  # (features + 1 or more, rows used) of uint32: rows sorted by each column, then by each target, per node
    )
    is_categorical: Any  # (features,) of uint8
    monotone: Any  # (features,) of int64: 1 increasing, -1 decreasing, 0 no constraint
    y: Any  # (targets, rows): numbers, or indices of classes among the sums of a node, as float64
    weight: Any  # (rows,)


class Scratch(NamedTuple):
    """Scratch memory of the kernels."""

    left: Any  # sums over the two sides of a split
    right: Any
    categories: Any  # (4, 256): sums per category, and categories sorted
    category_rank: Any  # (256,)
    goes_left: Any  # (256,): categories of the best split of the node
    flags: Any  # (rows,): whether a row goes left
    order: Any  # (rows,)
    rank_column: Any  # (rows,): ranks of the categories of a column
    features: Any  # (features,): columns to draw from
    tree: Any  # (2, rows + 1): Fenwick trees of weights and weighted targets
    losses: Any  # (rows,): loss of the rows on both sides of a split
    medians: Any  # (2, rows + 1): loss of the rows on each side; last that of the rows inserted
    ranks: Any  # (targets, rows): rank of a row in the order of a target, within its node
    targets: Any  # (targets, rows): the target in that order

    @classmethod
    def of(cls, n: int, d: int, outputs: Outputs, *, has_categories: bool, has_medians: bool) -> Scratch:
        """Allocate for n rows of d columns."""
        n_sums = outputs.n_sums
        by_category, by_target = n if has_categories else 0, n if has_medians else 0
        return cls(
            np.zeros(n_sums),
            np.zeros(n_sums),
            np.zeros((4, 256)),
            np.zeros(256, np.int64),
            np.zeros(256, np.uint8),
            np.zeros(n, np.uint8),
            np.empty(n, np.uint32),
            np.empty(by_category),
            np.zeros(d, np.int64),
            np.zeros((2, by_target + 1)),
            np.zeros(by_target),
            np.zeros((2, by_target + 1)),
            np.zeros((outputs.n_outputs, by_target), np.int64),
            np.zeros((outputs.n_outputs, by_target)),
        )


# Start and stop of the rows of a node, a counter of random numbers, the sign of a monotone column, bounds on values.
EXAMPLE_PLACE = (0, 0, 0, 0, 0.0, 0.0)


def example_inputs() -> tuple[Any, ...]:
    """Return example arguments of kernels: rows, sums, parameters, a split and scratch."""
    column, scratch = np.zeros(1), Scratch.of(1, 1, Outputs(), has_categories=False, has_medians=False)
    orders, flags, signs = np.zeros((1, 1), np.uint32), np.zeros(1, np.uint8), np.zeros(1, np.int64)
    rows = ExactRows(np.zeros((1, 1)), orders, flags, signs, column[None, :].copy(), column)
    return rows, column, np.zeros(1, PARAMETERS)[0], np.zeros(1, SPLIT)[0], scratch
