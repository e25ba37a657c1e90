"""A decision tree with the attribute names of scikit-learn's `tree_`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from summula.core.data.sparse_format import as_dense
from summula.tree.growing.outputs import Outputs
from summula.tree.prediction.predictor import Nodes
from summula.tree.prediction.predictor_kernels import find_leaves

__all__ = ["TreeArrays", "paths_to", "stacked_values"]

Array = NDArray[Any]

_LEAF, _UNDEFINED = -1, -2  # scikit-learn's markers


def paths_to(leaves: Array, nodes: Nodes) -> Any:
    """Return the nodes on the paths to these leaves: a sparse matrix of ones, shape (len(leaves), number of nodes)."""
    parent = np.full(len(nodes.column), -1)
    inner = np.flatnonzero(nodes.column >= 0)
    for side in range(2):
        parent[nodes.child[inner] + side] = inner
    rows, columns, at, which = [], [], leaves, np.arange(len(leaves))
    while len(at):
        rows.append(which)
        columns.append(at)
        at, which = parent[at], which[parent[at] >= 0]
        at = at[at >= 0]
    row, column = np.concatenate([which, *rows]), np.concatenate([at, *columns])
    return sparse.csr_matrix((np.ones(len(row), np.int64), (row, column)), (len(leaves), len(parent)))


def stacked_values(values: Array, outputs: Outputs) -> Array:
    """Return values of leaves, or rows, as (n, n_outputs, largest number of classes), padded with 0."""
    if outputs.n_outputs == 1:
        return values[:, None, :]
    parts = outputs.split(values)
    stacked = np.zeros((len(values), outputs.n_outputs, max(part.shape[1] for part in parts)))
    for t, part in enumerate(parts):
        stacked[:, t, : part.shape[1]] = part
    return stacked


@dataclass(frozen=True)
class TreeArrays:
    """The nodes of a tree; a child has a larger number than its parent, and a right child follows its left sibling.

    Attributes
    ----------
    children_left, children_right : ndarray of shape (node_count,)
        Numbers of the children; -1 for a leaf.
    feature, threshold : ndarray of shape (node_count,)
        Rows with x[feature] <= threshold go left; -2 for a leaf. A split on categories has the threshold NaN.
    missing_go_to_left : ndarray of shape (node_count,), uint8
    value : ndarray of shape (node_count, n_outputs, max_n_classes), or (node_count, n_outputs, 1) for regression
        Class proportions, padded with 0, or the predicted value.
    impurity, weighted_n_node_samples : ndarray of shape (node_count,)
    n_node_samples : ndarray of shape (node_count,)
    n_features : int
    """

    children_left: Array
    children_right: Array
    feature: Array
    threshold: Array
    missing_go_to_left: Array
    value: Array
    impurity: Array
    n_node_samples: Array
    weighted_n_node_samples: Array
    n_features: int
    outputs: Outputs
    nodes: Nodes

    @classmethod
    def of(cls, nodes: Nodes, impurity: Array, values: Array, n_features: int, outputs: Outputs) -> TreeArrays:
        """Return a tree under scikit-learn's names."""
        inner = nodes.column >= 0
        left = np.where(inner, nodes.child, _LEAF).astype(np.int64)
        threshold = np.where(nodes.category >= 0, np.nan, nodes.threshold)
        return cls(
            left,
            np.where(inner, left + 1, _LEAF),
            np.where(inner, nodes.column, _UNDEFINED).astype(np.int64),
            np.where(inner, threshold, float(_UNDEFINED)),
            nodes.missing_left,
            stacked_values(values, outputs),
            impurity,
            nodes.rows,
            nodes.weight,
            n_features,
            outputs,
            nodes,
        )

    @property
    def node_count(self) -> int:
        """Number of nodes."""
        return len(self.feature)

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return int((self.feature < 0).sum())

    @property
    def n_outputs(self) -> int:
        """Number of targets."""
        return self.outputs.n_outputs

    @property
    def n_classes(self) -> Array:
        """Number of classes of each target; 1 for regression."""
        return np.diff(self.outputs.starts)

    @property
    def max_n_classes(self) -> int:
        """Largest number of classes of a target; 1 for regression."""
        return int(self.value.shape[2])

    @property
    def max_depth(self) -> int:
        """Length of the longest path from the root to a leaf."""
        depth = np.zeros(self.node_count, np.int64)
        for node in np.flatnonzero(self.children_left >= 0):  # parents come before their children
            depth[self.children_left[node] : self.children_left[node] + 2] = depth[node] + 1
        return int(depth.max())

    def compute_feature_importances(self, normalize: bool = True) -> Array:
        """Return the decrease of impurity by the splits on each column."""
        gains = self.nodes.importances(self.n_features, by_gain=True)
        return gains / gains.sum() if normalize and gains.sum() > 0 else gains

    def apply(self, X: Any) -> Array:
        """Return the number of the leaf that each row reaches; categories are given by bin numbers."""
        X = np.ascontiguousarray(as_dense(X))
        leaves = np.empty((len(X), 1), np.int64)
        find_leaves(X if X.dtype == np.float32 else X.astype(np.float64), self.nodes, 0, 1, leaves)
        return leaves[:, 0]

    def decision_path(self, X: Any) -> Any:
        """Return which nodes each row passes through: a sparse matrix of shape (n, node_count) of ones."""
        return paths_to(self.apply(X), self.nodes)

    def predict(self, X: Any) -> Array:
        """Return the values of the leaves that rows reach, shape (n, n_outputs, max_n_classes) or (n, n_outputs)."""
        values = self.value[self.apply(X)]
        return values if self.max_n_classes > 1 else values[:, :, 0]
