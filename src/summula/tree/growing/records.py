"""Record dtypes used to grow trees, with named fields in Python and in kernels."""

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

NEWTON_SUMS = np.dtype([("gradient", _INT), ("hessian", _INT), ("count", _INT)])  # integers; see `Packing`

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
        ),  # 1 if every leaf that can be split will be: the last one first, which needs the least memory
        ("feature_fraction", _FLOAT),  # fraction of the allowed features drawn for each node
        ("key", _INT),  # key of the random numbers that draw features
        # Index of bin (row, feature) in the flat array of bins by column: row * row_stride + feature * feature_stride.
        ("row_stride", _INT),
        ("feature_stride", _INT),
    ]
)

GROW_STATE = np.dtype(
    [
        ("n_nodes", _INT),
        ("n_leaves", _INT),
        ("n_open", _INT),  # number of leaves that may be split
        ("n_free_packed", _INT),  # number of free histograms
        ("n_free_wide", _INT),
        ("next_leaf", _INT),  # leaf to split; negative when growing ends
        ("searches", _INT),  # 1 if splits of its children are searched
        ("small_histogram", _INT),  # number of rows of the smaller child
        ("large_histogram", _INT),
        ("parent_histogram", _INT),
    ]
)


def split_dtype(sums: Any) -> Any:
    """Return the dtype of a split for a criterion with these sums."""
    return np.dtype(
        [
            ("gain", _FLOAT),  # -1 if there is no split
            ("feature", _INT),
            ("bin", _INT),  # last bin on the left; -1 for categories
            ("missing_left", _INT),
            ("left", sums),
        ]
    )


def node_dtype(sums: Any) -> Any:
    """Return the dtype of a node of a tree that is being grown."""
    return np.dtype(
        [
            ("start", _INT),  # range of its rows in the row index
            ("stop", _INT),
            ("depth", _INT),
            ("left_child", _INT),  # left child; the right one follows; 0 for a leaf
            ("histogram", _INT),  # number of its histogram in the pool
            ("value", _FLOAT),
            ("weight", _FLOAT),  # sum of hessians
            ("lower", _FLOAT),  # bounds on the value from monotonic constraints
            ("upper", _FLOAT),
            ("sums", sums),
            ("split", split_dtype(sums)),  # best split
        ]
    )


def feature_table(n_bins: Any, is_categorical: Any, monotone: Any) -> Array:
    """Return the record array of features."""
    table = np.zeros(len(n_bins), FEATURE)
    table["n_bins"], table["is_categorical"], table["monotone"] = n_bins, is_categorical, monotone
    return table
