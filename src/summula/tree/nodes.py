"""Trees while they grow: their nodes, what limits them, and what they are grown for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bins", "Leaf", "Rules", "Slopes", "Tree"]

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
    count_bits, bits : int
        K and c of that packing.
    gradient_unit, curvature_unit : float
        What an integer is worth.
    """

    gradients: Array
    curvatures: Array
    top: float
    packed: Array
    count_bits: int
    bits: int
    gradient_unit: float
    curvature_unit: float


@dataclass
class Leaf:
    """A node that may still be split."""

    number: int
    start: int
    stop: int
    depth: int
    total: Array  # sums of gradient, curvature, rows
    bounds: tuple[float, float]
    value: float
    sums: Array | None = None  # its histogram
    gain: float = -1.0
    found: Array | None = None
    left: Array | None = None
    groups: tuple[frozenset[int], ...] | None = None  # that its path is still within


@dataclass
class Tree:
    """Nodes as lists; node 0 is the root, `child` the left child of each (0 for a leaf), the right one next to it."""

    column: list[int] = field(default_factory=list)
    bin: list[int] = field(default_factory=list)  # the last on the left; -1 for categories
    missing_left: list[bool] = field(default_factory=list)
    child: list[int] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    gain: list[float] = field(default_factory=list)
    count: list[int] = field(default_factory=list)
    weight: list[float] = field(default_factory=list)  # sum of curvatures
    depth: list[int] = field(default_factory=list)
    lefts: dict[int, Array] = field(default_factory=dict)  # of nodes that split categories: which bins go left

    def add(self, leaf: Leaf, weight: float) -> None:
        """One more node, a leaf so far."""
        self.column.append(-1)
        self.bin.append(-1)
        self.missing_left.append(False)
        self.child.append(0)
        self.value.append(leaf.value)
        self.gain.append(0.0)
        self.count.append(int(leaf.total[2]))
        self.weight.append(weight)
        self.depth.append(leaf.depth)

    def split(self, leaf: Leaf) -> int:
        """Turn a leaf into a node with two children, which come next; gives the number of the first."""
        assert leaf.found is not None
        assert leaf.left is not None
        node, child = leaf.number, len(self)
        self.column[node], self.bin[node] = int(leaf.found[0]), int(leaf.found[1])
        self.missing_left[node], self.child[node], self.gain[node] = bool(leaf.left[-1]), child, leaf.gain
        if leaf.found[1] < 0:
            self.lefts[node] = leaf.left
        return child

    def __len__(self) -> int:
        return len(self.value)
