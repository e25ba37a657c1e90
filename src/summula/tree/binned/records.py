"""Inputs and scratch arrays of trees on bins."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from summula.tree.growing.outputs import Outputs

__all__ = ["BINS", "MISSING", "NODE", "SLOT", "BinnedTable", "LevelWork", "Scratch", "TreeRows", "cell_width"]

Array = NDArray[Any]

BINS = 256
MISSING = 255  # the bin of missing values

_INT, _FLOAT = np.int64, np.float64

NODE = np.dtype(
    [
        ("start", _INT),  # range of its rows in `TreeRows`
        ("stop", _INT),
        ("depth", _INT),
        ("key", _INT),  # key of its random numbers: a function of the path from the root
        ("left_child", _INT),  # left child; the right one follows; 0 for a leaf
        ("weight", _FLOAT),
        ("impurity", _FLOAT),
        ("lower", _FLOAT),  # bounds on its value from monotonic constraints
        ("upper", _FLOAT),
        ("improvement", _FLOAT),  # fields of its split
        ("score", _FLOAT),  # score of the best split so far, larger is better; -inf if there is none
        ("feature", _INT),
        ("bin", _INT),  # last bin on the left
        ("is_categorical", _INT),
        ("missing_left", _INT),  # -1 if the node has no missing values
        ("middle", _FLOAT),  # midpoint of the values of both sides, for monotonic constraints
    ]
)


class BinnedTable(NamedTuple):
    """The columns, shared by all trees."""

    bins: Any  # (features, rows) of uint8
    edges: Any  # (features, 256): upper edges of the bins
    centres: Any  # (features, 256): representative values of the bins, between which random thresholds are drawn
    is_categorical: Any  # (features,) of uint8
    monotone: Any  # (features,) of int64: 1 increasing, -1 decreasing, 0 no constraint

    @classmethod
    def of_one_feature(cls, bins: Any) -> Self:
        """Return a table of one numeric feature without edges, to compile kernels with."""
        edges, zeros = np.full((1, BINS), np.inf), np.zeros((1, BINS))
        return cls(bins, edges, zeros, np.zeros(1, np.uint8), np.zeros(1, np.int64))


class TreeRows(NamedTuple):
    """The rows of a tree; those of a node are consecutive, in ascending order."""

    rows: Any  # uint32: row of the table
    y: Any  # (targets, rows): numbers, or indices of classes among the sums of a node, as float64
    weight: Any


def cell_width(outputs: Outputs) -> int:
    """Return the number of sums per bin: weights of classes and rows; or w y of the targets, 0, w and rows."""
    return outputs.n_values + (1 if outputs.has_classes else 3)


class Scratch(NamedTuple):
    """Scratch memory of the kernels."""

    left: Any  # sums over the left side of a split
    cells: Any  # (256 * width,): per bin the weights of classes, or w y of targets, 0 and w; rows; zero between uses
    occupied: Any  # (4,) of uint64: one bit per bin
    order: Any  # (256,): occupied bins in the order in which they are scanned
    keys: Any  # (256,): sort keys of categories
    features: Any  # (features,): columns to draw from
    candidate: Any  # (256,): bins on the left in the current split by category
    rows: Any  # (rows,), as in `TreeRows`
    y: Any
    weight: Any

    @classmethod
    def of(cls, n: int, d: int, outputs: Outputs) -> Scratch:
        """Allocate for n rows of d columns."""
        return cls(
            np.zeros(outputs.n_sums),
            np.zeros(BINS * cell_width(outputs)),
            np.zeros(4, np.uint64),
            np.zeros(BINS, np.int64),
            np.zeros(BINS),
            np.zeros(d, np.int64),
            np.zeros(BINS, np.uint8),
            np.empty(n, np.uint32),
            np.empty((outputs.n_outputs, n)),
            np.empty(n),
        )


SLOT = np.dtype(
    [
        ("node", _INT),
        ("is_gathered", _INT),  # 1: its rows are copied; 0: its columns are summed
        ("first_column", _INT),  # index of its first column in `LevelWork`
        ("n_columns", _INT),
        ("first_row", _INT),  # index of its first row in `LevelWork`
        ("n_rows", _INT),  # number of rows added so far
        ("differs", _INT),  # whether the targets differ from the first
        ("visited", _INT),  # numbers of columns searched, and of those that vary
        ("useful", _INT),
        ("n_left", _INT),  # number of rows on the left of the best split
    ]
)


class LevelWork(NamedTuple):
    """Nodes of a tree that a pass over the rows updates."""

    slots: Any  # (nodes,): index of a node in `records`, or -1
    records: Any  # of SLOT
    totals: Any  # (slots, sums): sums over all rows of a node
    firsts: Any  # (slots, targets): targets of the first row of a node
    columns: Any  # (columns,): columns that are summed
    cells: Any  # (columns, 256 * width): sums per bin, as in `Scratch`
    bins: Any  # (features, rows): copied rows
    y: Any  # (targets, rows)
    weight: Any
    scratch: Any
