"""Binning: every column as bytes, its values replaced by the numbers of at most 255 bins.

A numeric column with few distinct values v_1 < v_2 < ... has a bin for each, with edges halfway between,

    e_b = (v_b + v_{b+1}) / 2,                                                                                  (1)

one with more has edges at the weighted quantiles b / max_bins of its values; a value x is in the first bin with
x <= e_b. Values may be infinite. Missing values have a separate bin, 255.

A categorical column has a bin for each level; if there are more than `max_bins`, rare ones share a bin. Unknown levels
are treated as missing.

Edges are computed from all rows, or from a sample of 200,000 drawn by row number and seed, so they do not depend on
chunks, files or threads.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.engine.engine import local_engine
from summula.core.model_files import schema
from summula.tree.columns.binning_kernels import EDGES, bin_codes, bin_values

__all__ = ["SAMPLE_ROWS", "BinMap", "column_edges", "counted", "dense_rows", "learn_bins"]

Array = NDArray[Any]

SAMPLE_ROWS = 200_000
_MOST = np.finfo(np.float64).max
_CACHED_ROWS = 2_048  # rows per block
_CODES = 2**16  # integers below this are counted without sorting


def _bins_agree(bins: BinMap, sizes: schema.Sizes) -> str | None:
    """Check a saved model: values fall into existing bins, and the levels of each column are sorted."""
    if bins.starts[0] != 0 or bins.starts[-1] != sizes["n_levels"]:
        return f"starts goes from {bins.starts[0]} to {bins.starts[-1]}, not from 0 to {sizes['n_levels']} levels"
    numeric = bins.categorical == 0
    if ((bins.edges < np.inf).sum(axis=1) != bins.n_bins - 1)[numeric].any():
        return "edges and n_bins disagree on the number of bins"
    owner = np.repeat(np.arange(len(bins.n_bins)), np.diff(bins.starts))
    if (bins.level_bins >= bins.n_bins[owner]).any():
        return "level_bins contains a bin that its column does not have"
    if ((bins.levels[1:] <= bins.levels[:-1]) & (owner[1:] == owner[:-1])).any():
        return "levels is not increasing within a column"
    return None


@schema.saved(
    _bins_agree,
    edges=schema.Array("float64", "n_features", EDGES, finite=False, ascending=True, row_major=True),
    n_bins=schema.Array("int64", "n_features", low=1, high=EDGES - 1),
    categorical=schema.Array("uint8", "n_features", high=1),
    levels=schema.Array("float64", "n_levels", finite=False),
    level_bins=schema.Array("uint8", "n_levels"),
    starts=schema.Array("int64", "n_features + 1", low=0, ascending=True),
)
class BinMap(NamedTuple):
    """Map from values to bins, learned from the training columns.

    Attributes
    ----------
    edges : ndarray of shape (n_features, 256)
        Upper edges of the bins; infinite from the last bin on.
    n_bins : ndarray of shape (n_features,)
        Number of bins in use, without that of missing values.
    categorical : ndarray of shape (n_features,)
        1 for columns of categories.
    levels, level_bins, starts : ndarrays
        The sorted levels of column j are levels[starts[j] : starts[j + 1]]; `level_bins` contains their bins.
    """

    edges: Array
    n_bins: Array
    categorical: Array
    levels: Array
    level_bins: Array
    starts: Array

    def write(self, X: Array, out: Array) -> None:
        """Write the bins of a block of rows to `out`."""
        for start in range(0, len(X), _CACHED_ROWS):  # columns share cache lines of a row
            self._write(X[start : start + _CACHED_ROWS], out[start : start + _CACHED_ROWS])

    def _write(self, X: Array, out: Array) -> None:
        for j in range(X.shape[1]):
            if self.categorical[j]:
                here = slice(self.starts[j], self.starts[j + 1])
                bin_codes(X[:, j], self.levels[here], self.level_bins[here], out[:, j])
            else:
                bin_values(X[:, j], self.edges[j], out[:, j])

    def with_bins(self, X: Array) -> Array:
        """Return a block of rows with categories replaced by their bins, and NaN for missing and unknown ones."""
        if not self.categorical.any():
            return X
        X = np.array(X)
        for j in np.flatnonzero(self.categorical):
            here, out = slice(self.starts[j], self.starts[j + 1]), np.empty((len(X), 1), np.uint8)
            bin_codes(X[:, j], self.levels[here], self.level_bins[here], out[:, 0])
            X[:, j] = np.where(out[:, 0] == 255, np.nan, out[:, 0])
        return X


def dense_rows(chunk: Chunk) -> Array:
    """Return the rows of a chunk as an array."""
    return np.asarray(chunk.X.toarray() if chunk.is_sparse else chunk.X)


def counted(values: Array, counts: Array | None = None) -> tuple[Array, Array]:
    """Return the distinct values and their counts."""
    there = ~np.isnan(values)
    values, weights = values[there], None if counts is None else counts[there]
    with np.errstate(invalid="ignore"):
        codes = values.astype(np.int32)
    if len(values) and codes.min() >= 0 and codes.max() < _CODES and (codes == values).all():  # no need to sort
        found = np.bincount(codes, weights)
        distinct = np.flatnonzero(np.bincount(codes))
        return distinct.astype(np.float64), found[distinct].astype(np.int64)
    distinct, places = np.unique(values, return_inverse=True)
    return distinct.astype(np.float64), np.bincount(places, weights, len(distinct)).astype(np.int64)


def learn_bins(rows: Array, weight: Array | None, categories: dict[int, tuple[Array, Array]], max_bins: int) -> BinMap:
    """Learn the bins of some columns.

    rows, weight : the rows from which edges are computed.
    categories : for each categorical column, its distinct values and their counts.
    """
    d = rows.shape[1]
    if weight is not None and len(weight) and (weight == weight[0]).all():
        weight = None
    edges = np.full((d, EDGES), np.inf)
    n_bins = np.ones(d, np.int64)
    levels, level_bins, starts = [], [], np.zeros(d + 1, np.int64)
    for j, found in sorted(categories.items()):
        values, bins = _pooled(*found, max_bins)
        levels.append(values)
        level_bins.append(bins)
        n_bins[j] = int(bins.max()) + 1 if len(bins) else 1
        starts[j + 1] = len(values)
    numeric = [j for j in range(d) if j not in categories and len(rows)]  # no rows: thresholds are exact
    of_column = functools.partial(_edges_of, rows, weight, max_bins)
    for j, cuts in zip(numeric, local_engine().map_ordered(of_column, numeric), strict=True):
        edges[j, : len(cuts)] = cuts
        n_bins[j] = len(cuts) + 1
    return BinMap(
        edges,
        n_bins,
        np.isin(np.arange(d), list(categories)).astype(np.uint8),
        np.concatenate([np.empty(0), *levels]),
        np.concatenate([np.empty(0, np.uint8), *level_bins]),
        np.cumsum(starts),
    )


def _edges_of(rows: Array, weight: Array | None, max_bins: int, j: int) -> Array:
    return column_edges(rows[:, j], weight, max_bins)


def _pooled(values: Array, counts: Array, max_bins: int) -> tuple[Array, Array]:
    """Return levels and their bins: one each, or the rare ones pooled in the last."""
    if len(values) <= max_bins:
        return values, np.arange(len(values)).astype(np.uint8)
    frequent = np.sort(np.argsort(-counts, kind="stable")[: max_bins - 1])
    bins = np.full(len(values), max_bins - 1, np.uint8)
    bins[frequent] = np.arange(max_bins - 1)
    return values, bins


def column_edges(values: Array, weight: Array | None, max_bins: int) -> Array:
    """Return the edges of a numeric column: (1), or quantiles."""
    there = ~np.isnan(values)
    if weight is not None:
        there &= weight > 0
        values, weight = values[there], weight[there]
        order = np.argsort(values, kind="stable")
        values, weight = values[order], weight[order]
    else:
        values = np.sort(values[there])
    values = values.astype(np.float64)
    if not len(values):
        return np.empty(0)
    distinct = values[np.append(True, values[1:] != values[:-1])]
    if len(distinct) <= max_bins:
        return _between(distinct[:-1], distinct[1:])
    shares = np.arange(1, max_bins) / max_bins
    # If a quantile falls exactly between two values, the edge is halfway between them.
    if weight is None:
        places = shares * len(values)
        below = np.ceil(places - 1e-9).astype(np.int64) - 1
        exact = np.abs(places - np.rint(places)) < 1e-9
    else:
        total = np.cumsum(weight)
        places = shares * total[-1]
        near = 1e-12 * total[-1]
        below = np.searchsorted(total, places - near)
        exact = np.abs(total[below] - places) <= near
    above = np.minimum(below + exact, len(values) - 1)
    found = np.unique(_between(values[below], values[above]))
    return np.asarray(found[found < values[-1]])  # an edge at the largest value would leave the last bin empty


def _between(low: Array, high: Array) -> Array:
    """Return the midpoint of two values, which may be infinite."""
    with np.errstate(invalid="ignore", over="ignore"):
        middle = np.clip(low, -_MOST, _MOST) / 2 + np.clip(high, -_MOST, _MOST) / 2
    # For adjacent floating-point numbers the lower one is the edge.
    return np.asarray(np.where((middle >= high) | (middle < low), np.clip(low, -_MOST, _MOST), middle))
