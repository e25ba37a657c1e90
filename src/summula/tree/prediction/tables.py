"""Exact trees of an ensemble as one table, and as separate estimators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from summula.core.errors import DataError
from summula.tree.columns.binning import learn_bins
from summula.tree.columns.binning_kernels import EDGES
from summula.tree.exact.grower import ExactTree
from summula.tree.prediction.predictor import Nodes

__all__ = ["importances_by_tree", "joined_trees", "tree_estimators"]

Array = NDArray[Any]

_MOST = 2**30  # numbers in a table of trees and columns


def joined_trees(trees: Sequence[ExactTree]) -> ExactTree:
    """Return several trees as one table."""
    return ExactTree(
        Nodes.joined([tree.nodes for tree in trees]),
        np.concatenate([tree.impurity for tree in trees]),
        np.concatenate([tree.values for tree in trees]),
    )


def tree_estimators(prototype: Any, table: ExactTree, n_features: int, **attributes: Any) -> list[Any]:
    """Return every tree of a table as a fitted estimator.

    Parameters
    ----------
    prototype : DecisionTreeClassifier or DecisionTreeRegressor
        Estimator whose parameters are copied.
    table : ExactTree
        Trees on numeric columns.
    n_features : int
    **attributes
        Further attributes of each estimator.
    """
    if n_features * EDGES > _MOST:
        raise AttributeError(f"Trees of {n_features} columns are too large as single estimators.")
    bins, models = learn_bins(np.empty((0, n_features)), None, {}, 255), []
    for tree in range(table.nodes.n_trees):
        here = slice(int(table.nodes.roots[tree]), int(table.nodes.roots[tree + 1]))
        model = clone(prototype)
        model._exact_parameters(1, n_features, 1.0)  # sets max_features_
        model.n_features_in_, model.category_levels_, model.is_categorical_ = n_features, {}, None
        model._bins, model._nodes = bins, table.nodes.single(tree)
        model._impurity, model._values = table.impurity[here], np.ascontiguousarray(table.values[here])
        vars(model).update(attributes)
        models.append(model)
    return models


def importances_by_tree(nodes: Nodes, n_features: int, *, shares: bool = True) -> Array:
    """Return the decrease of impurity by the splits on each column, shape (n_trees, n_features).

    shares : whether to normalise each tree to sum 1 (or all 0).
    """
    if nodes.n_trees * n_features > _MOST:
        raise DataError(
            f"The importances of {n_features} columns in each of {nodes.n_trees} trees are too many to keep."
        )
    inner = np.flatnonzero(nodes.column >= 0)
    tree = np.searchsorted(nodes.roots, inner, side="right") - 1
    place = tree * n_features + nodes.column[inner]
    found = np.bincount(place, nodes.gain[inner], nodes.n_trees * n_features)  # integers if there are no splits
    gains = found.astype(np.float64, copy=False).reshape(nodes.n_trees, n_features)
    if shares:
        totals = gains.sum(axis=1, keepdims=True)
        gains = np.divide(gains, totals, out=np.zeros_like(gains), where=totals > 0)
    return gains
