"""Trees while they grow: their nodes, what limits them, and what they are grown for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.tree.histogram_kernels import Packing

__all__ = ["Bins", "Growth", "Rules", "Slopes", "Tree"]

Array = NDArray[Any]


@dataclass(frozen=True)
class Bins:
    """Binned rows: bytes row by row, and column by column for sorting rows at splits."""

    rows: Array
    columns: Array  # (columns, rows); the transposed view of `rows` where memory is short

    @classmethod
    def of(cls, rows: Array, *, both: bool = True) -> Bins:
        """With a copy in the other order, or without."""
        return cls(rows, np.ascontiguousarray(rows.T) if both else rows.T)

    @property
    def by_column(self) -> tuple[Array, int, int]:
        """The columns as one array of bytes, and how far it is from one row, and from one column, to the next."""
        by_feature, by_row = self.columns.strides
        order = self.columns if self.columns.flags.c_contiguous else self.columns.T
        return order.reshape(-1), by_row, by_feature


@dataclass(frozen=True)
class Rules:
    """What limits a tree."""

    max_leaves: int | None = 31
    max_depth: int | None = None
    min_rows: int = 20
    min_curvature: float = 1e-3
    min_gain: float = 0.0
    l2: float = 0.0
    rate: float = 1.0  # what leaf values are multiplied by
    groups: tuple[frozenset[int], ...] | None = None  # columns that may meet on a path; None: all
    share: float = 1.0  # of the columns, drawn for each node


class Slopes(NamedTuple):
    """What a tree is grown for: gradients and curvatures of the rows, and the same as packed integers.

    Attributes
    ----------
    gradients, curvatures : ndarray of shape (n,), float32
        Unrounded, for the values of the leaves; no curvatures mean that all are 1.
    top : float
        The largest of either in size.
    packed : ndarray of shape (n,), int64
        Rounded, for the search of splits (see `histogram_kernels`).
    packing : Packing
        Where the parts of those integers are.
    gradient_unit, curvature_unit : float
        What an integer is worth.
    """

    gradients: Array
    curvatures: Array
    top: float
    packed: Array
    packing: Packing
    gradient_unit: float
    curvature_unit: float


class Growth(NamedTuple):
    """The nodes of a tree while it grows, as arrays with an entry each; the right child comes next to the left.

    Attributes
    ----------
    span : where its rows start and stop, and its depth
    total : sums of gradient, curvature, rows
    node : its value, and the bounds of it
    gain : of its best split; -1 where there is none
    found : that split (see `split_kernels.best_split`)
    left : for that split, which bins go left
    child : the left child; 0 for a leaf
    """

    span: Array
    total: Array
    node: Array
    gain: Array
    found: Array
    left: Array
    child: Array

    @classmethod
    def of(cls, nodes: int) -> Growth:
        """Room for so many nodes."""
        return cls(
            np.zeros((nodes, 3), np.int64),
            np.zeros((nodes, 3), np.int64),
            np.zeros((nodes, 3)),
            np.full(nodes, -1.0),
            np.zeros((nodes, 6), np.int64),
            np.zeros((nodes, 256), np.uint8),
            np.zeros(nodes, np.int64),
        )

    def larger(self) -> Growth:
        """The same with room for twice as many."""
        return Growth(*(np.concatenate([part, np.zeros_like(part)]) for part in self))


@dataclass
class Tree:
    """Nodes as arrays; node 0 is the root, `child` the left child of each (0 for a leaf), the right one next to it."""

    column: Array  # -1 for a leaf
    bin: Array  # the last on the left; -1 for categories
    missing_left: Array
    child: Array
    value: Array
    gain: Array
    count: Array
    weight: Array  # sum of curvatures
    depth: Array
    lefts: dict[int, Array]  # of nodes that split categories: which bins go left

    @classmethod
    def of(cls, whole: Array, real: Array, left: Array) -> Tree:
        """From its columns (`growing_kernels.read`), and which bins go left at each node."""
        column, last, missing_left, child, count, depth = whole
        value, gain, weight = real
        lefts = {node: left[node].copy() for node in np.flatnonzero((column >= 0) & (last < 0)).tolist()}
        return cls(column, last, missing_left, child, value, gain, count, weight, depth, lefts)

    def __len__(self) -> int:
        return len(self.value)
