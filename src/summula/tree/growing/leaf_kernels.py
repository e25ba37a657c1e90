"""Leaf values from the rows of each leaf, and adding them to raw predictions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from summula.core.compilation.compile import kernel
from summula.tree.growing.records import NEWTON_SUMS, node_dtype

__all__ = ["LeafParameters", "LeafRows", "add_leaf_values", "set_newton_values", "warmup"]


class LeafRows(NamedTuple):
    """The leaves of a tree and their rows: those of node `leaves[k]` are rows[starts[k] : starts[k + 1]]."""

    leaves: Any
    starts: Any
    rows: Any


class LeafParameters(NamedTuple):
    """Parameters of leaf values."""

    scale: float  # sums are computed in multiples of 1 / scale
    l2: float
    learning_rate: float


@kernel
def set_newton_values(
    leaf_rows: Any, first: int, last: int, gradients: Any, hessians: Any, parameters: Any, nodes: Any, out: Any
) -> None:
    """Set out[0] = -learning_rate g / (h + l2) and out[2] = h for the leaves from `first` up to `last`.

    g and h are sums over the rows of the leaf, in fixed point, so they do not depend on the order. An empty array of
    hessians means that all are 1.
    """
    leaves, starts, rows = leaf_rows
    is_constant, scale = len(hessians) == 0, parameters.scale
    for k in range(first, last):
        g, h = np.int64(0), np.int64(0)
        for i in range(starts[k], starts[k + 1]):
            row = np.uint64(rows[i])
            g += np.int64(np.rint(np.float64(gradients[row]) * scale))
            if not is_constant:
                h += np.int64(np.rint(np.float64(hessians[row]) * scale))
        weight = np.float64(starts[k + 1] - starts[k]) if is_constant else h / scale
        node = nodes[leaves[k]]
        value = min(max(-(g / scale) / (weight + parameters.l2 + 1e-15), node.lower), node.upper)
        out[0, leaves[k]], out[2, leaves[k]] = parameters.learning_rate * value, weight


@kernel
def add_leaf_values(leaf_rows: Any, first: int, last: int, values: Any, scores: Any) -> None:
    """Add to the score of each row the value of its leaf, for the leaves from `first` up to `last`."""
    leaves, starts, rows = leaf_rows
    for k in range(first, last):
        value = values[leaves[k]]
        for i in range(starts[k], starts[k + 1]):
            scores[np.uint64(rows[i])] += value


def warmup() -> None:
    """Compile for the usual types."""
    leaf_rows = LeafRows(np.array([0]), np.array([0, 1]), np.zeros(1, np.uint32))
    gradients, nodes = np.zeros(1, np.float32), np.zeros(1, node_dtype(NEWTON_SUMS))
    set_newton_values(leaf_rows, 0, 1, gradients, gradients, LeafParameters(1.0, 0.0, 1.0), nodes, np.zeros((3, 1)))
    for dtype in (np.float32, np.float64):
        add_leaf_values(leaf_rows, 0, 1, np.zeros(1), np.zeros(1, dtype))
