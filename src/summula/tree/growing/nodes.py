"""Inputs, limits and nodes of trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.tree.growing.histogram_kernels import Packing

__all__ = ["BinnedRows", "Gradients", "Tree", "TreeParameters"]

Array = NDArray[Any]


@dataclass(frozen=True)
class BinnedRows:
    """Bins of rows as bytes, row by row for histograms and column by column for partitioning."""

    by_row: Array
    by_column: Array  # (features, rows); a transposed view of `by_row` if memory is short

    @classmethod
    def of(cls, by_row: Array, *, copies: bool = True) -> BinnedRows:
        """Return bins with or without a copy in the other order."""
        return cls(by_row, np.ascontiguousarray(by_row.T) if copies else by_row.T)

    @property
    def flat_by_column(self) -> tuple[Array, int, int]:
        """Return the bins by column as one flat array, with the strides between rows and between features."""
        feature_stride, row_stride = self.by_column.strides
        order = self.by_column if self.by_column.flags.c_contiguous else self.by_column.T
        return order.reshape(-1), row_stride, feature_stride


@dataclass(frozen=True)
class TreeParameters:
    """Limits of the size of a tree and its leaf values."""

    max_leaves: int | None = 31
    max_depth: int | None = None
    min_rows: int = 20  # of a leaf
    min_hessian: float = 1e-3  # of a leaf
    min_gain: float = 0.0
    l2: float = 0.0
    learning_rate: float = 1.0
    interaction_groups: tuple[frozenset[int], ...] | None = None  # features allowed together on a path; None: all
    feature_fraction: float = 1.0  # fraction of features drawn for each node


class Gradients(NamedTuple):
    """Targets of a tree: gradients and hessians of the rows, and the same as packed integers.

    Attributes
    ----------
    gradients, hessians : ndarray of shape (n,), float32
        Unrounded, for leaf values; empty hessians mean that all are 1.
    largest : float
        The largest absolute value of either.
    packed : ndarray of shape (n,), int64
        Rounded, for the search of splits (see `histogram_kernels`).
    packing : Packing
        Bit layout of those integers.
    gradient_unit, hessian_unit : float
        The value of the integer 1.
    """

    gradients: Array
    hessians: Array
    largest: float
    packed: Array
    packing: Packing
    gradient_unit: float
    hessian_unit: float


@dataclass
class Tree:
    """A grown tree, as arrays with one entry per node; node 0 is the root, and the right child follows the left one."""

    feature: Array  # -1 for a leaf
    bin: Array  # last bin on the left; -1 for categories
    missing_left: Array
    left_child: Array  # 0 for a leaf
    count: Array
    depth: Array
    floats: Array  # of shape (3, n_nodes): value, gain, weight
    goes_left: dict[int, Array]  # for categorical splits: bins on the left

    @classmethod
    def of(cls, integers: Array, floats: Array, goes_left: Array) -> Tree:
        """Return a tree from its columns (`growing_kernels.read_tree`), and the bins that go left at each node."""
        feature, last_bin, missing_left, left_child, count, depth = integers
        categorical = np.flatnonzero((feature >= 0) & (last_bin < 0)).tolist()
        flags = {node: goes_left[node].copy() for node in categorical}
        return cls(feature, last_bin, missing_left, left_child, count, depth, floats, flags)

    @property
    def value(self) -> Array:
        """Values of the nodes; those of the leaves are added to raw predictions."""
        return np.asarray(self.floats[0])

    @property
    def gain(self) -> Array:
        """Gains of the splits; 0 for a leaf."""
        return np.asarray(self.floats[1])

    @property
    def weight(self) -> Array:
        """Sums of hessians."""
        return np.asarray(self.floats[2])

    def __len__(self) -> int:
        return len(self.feature)
