"""Predictions of the trees of a forest."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.tree.binned.packed import PackedTrees
from summula.tree.binned.walk_kernels import add_leaf_values, add_values_of_bins, find_leaves_of_bins
from summula.tree.columns.binning import BinMap, dense_rows
from summula.tree.prediction.predictor_kernels import find_leaves

__all__ = ["find_leaf_numbers", "leaves_of_chunk", "mean_values", "prepared_rows", "tree_values"]

Array = NDArray[Any]


def prepared_rows(trees: PackedTrees, bins: BinMap, X: Array) -> Array:
    """Return rows in the form that the trees need: bins, or values if thresholds are exact."""
    if trees.is_exact:
        return bins.with_bins(X)
    out = np.empty(X.shape, np.uint8)
    bins.write(X, out)
    return out


def find_leaf_numbers(trees: PackedTrees, bins: BinMap, rows: Array) -> Array:
    """Return the number, among the leaves of all trees, of the leaf that each prepared row reaches: (rows, trees)."""
    out = np.empty((len(rows), trees.n_trees), np.int32)
    if not trees.is_exact:
        find_leaves_of_bins(rows, trees.walk, trees.roots, 0, trees.n_trees, out)
        return out
    places = np.empty((len(rows), trees.n_trees), np.int64)
    find_leaves(rows, trees.table(bins), 0, trees.n_trees, places)
    number = np.cumsum(trees.is_inner == 0) - 1
    return np.asarray(number[places + trees.roots[:-1]], np.int32)


def mean_values(trees: PackedTrees, bins: BinMap, chunk: Chunk) -> Array:
    """Return the mean over the trees of the values of the rows of a chunk, shape (rows, values per leaf)."""
    rows = prepared_rows(trees, bins, dense_rows(chunk))
    out = np.zeros((len(rows), trees.values.shape[1]))
    if trees.is_exact:
        add_leaf_values(find_leaf_numbers(trees, bins, rows), trees.leaf_values, out)
    else:
        add_values_of_bins(rows, trees.walk, trees.roots, trees.leaf_values, out)
    return out / trees.n_trees


def tree_values(trees: PackedTrees, bins: BinMap, chunk: Chunk) -> Array:
    """Return the values of the rows of a chunk in every tree, shape (rows, trees, values per leaf)."""
    rows = prepared_rows(trees, bins, dense_rows(chunk))
    return np.asarray(trees.leaf_values[find_leaf_numbers(trees, bins, rows)])


def leaves_of_chunk(trees: PackedTrees, bins: BinMap, chunk: Chunk) -> Array:
    """Return the number, within its tree, of the leaf that each row of a chunk reaches, shape (rows, trees)."""
    rows = prepared_rows(trees, bins, dense_rows(chunk))
    places = np.flatnonzero(trees.is_inner == 0)
    return np.asarray(places[find_leaf_numbers(trees, bins, rows)] - trees.roots[:-1])
