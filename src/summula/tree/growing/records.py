"""The records that trees are grown with: arrays of these dtypes have named fields, in Python and in kernels alike."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["FEATURE", "GROW_STATE", "NEWTON_SUMS", "PARAMETERS", "feature_table", "node_dtype", "split_dtype"]

Array = NDArray[Any]

_INT, _FLOAT = np.int64, np.float64

FEATURE = np.dtype(
    [
        ("n_bins", _INT),  # in use, without the bin of missing values
        ("is_categorical", _INT),
        ("monotone", _INT),  # 1: increasing, -1: decreasing, 0: no constraint
    ]
)

NEWTON_SUMS = np.dtype([("gradient", _INT), ("hessian", _INT), ("count", _INT)])  # over rows; integers, see `Packing`

PARAMETERS = np.dtype(
    [
        # The split criterion and the leaf values.
        ("gradient_unit", _FLOAT),  # value of the integer 1 in sums of gradients
        ("hessian_unit", _FLOAT),
        ("l2", _FLOAT),
        ("min_rows", _INT),  # of a leaf
        ("min_hessian", _FLOAT),  # of a leaf
        # The tree.
        ("max_leaves", _INT),
        ("max_depth", _INT),
        ("min_gain", _FLOAT),
        (
            "splits_all",
            _INT,
        ),  # 1 where every leaf that can be split will be: the last one first, which needs least memory
        ("feature_fraction", _FLOAT),  # of the features allowed in a node, drawn for each
        ("key", _INT),  # of the random numbers that draw features
        # Where bin (row, feature) is in the flat array of bins by column: row * row_stride + feature * feature_stride.
        ("row_stride", _INT),
        ("feature_stride", _INT),
    ]
)

GROW_STATE = np.dtype(
    [
        ("n_nodes", _INT),
        ("n_leaves", _INT),
        ("n_open", _INT),  # leaves that may be split
        ("n_free_packed", _INT),  # histograms not in use
        ("n_free_wide", _INT),
        ("next_leaf", _INT),  # to split; negative where growing ends
        ("searches", _INT),  # 1 where splits of its children are searched
        ("small_histogram", _INT),  # of the child with fewer rows
        ("large_histogram", _INT),
        ("parent_histogram", _INT),
    ]
)


def split_dtype(sums: Any) -> Any:
    """Return the dtype of a split of a node whose criterion has these sums."""
    return np.dtype(
        [
            ("gain", _FLOAT),  # -1 where there is no split
            ("feature", _INT),
            ("bin", _INT),  # the last one on the left; -1 for categories
            ("missing_left", _INT),
            ("left", sums),
        ]
    )


def node_dtype(sums: Any) -> Any:
    """Return the dtype of a node of a tree that is being grown."""
    return np.dtype(
        [
            ("start", _INT),  # its rows are those of the row index from start up to stop
            ("stop", _INT),
            ("depth", _INT),
            ("left_child", _INT),  # the right one comes next; 0 for a leaf
            ("histogram", _INT),  # its number in the pool
            ("value", _FLOAT),
            ("weight", _FLOAT),  # sum of hessians
            ("lower", _FLOAT),  # bounds of the value, set by monotonic constraints
            ("upper", _FLOAT),
            ("sums", sums),
            ("split", split_dtype(sums)),  # the best one
        ]
    )


def feature_table(n_bins: Any, is_categorical: Any, monotone: Any) -> Array:
    """Return the record array of some features."""
    table = np.zeros(len(n_bins), FEATURE)
    table["n_bins"], table["is_categorical"], table["monotone"] = n_bins, is_categorical, monotone
    return table
