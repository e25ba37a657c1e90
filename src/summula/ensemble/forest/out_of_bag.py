"""Out-of-bag predictions and importances.

A row is out of bag in about 37 % of the trees. The mean of their values estimates the prediction for a new row by a
forest of as many trees (Breiman 2001, section 3.1). The importance of a column is the increase of the loss of a tree
when the column is shuffled among its out-of-bag rows (section 10): unlike the decrease of impurity it does not favour
columns with many values, and it is 0 on average for an uninformative column.
"""

from __future__ import annotations

import functools
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Part
from summula.core.engine.engine import local_engine
from summula.core.engine.random import permutation, stream_key
from summula.core.estimator.run import Run
from summula.ensemble.forest.bootstrap import Bootstrap, Sample
from summula.ensemble.forest.growing import ForestRows
from summula.ensemble.forest.walking import find_leaf_numbers, prepared_rows
from summula.tree.binned.packed import PackedTrees
from summula.tree.binned.walk_kernels import add_leaf_values
from summula.tree.columns.binning import BinMap, dense_rows

__all__ = ["OutOfBagImportances", "oob_means", "permutation_importances"]

Array = NDArray[Any]

_SHUFFLES = 3  # stream of random numbers


class OutOfBagImportances(NamedTuple):
    """Permutation importances on out-of-bag rows.

    Attributes
    ----------
    importances_mean : ndarray of shape (n_features,)
        Mean increase of the loss over the trees (and targets): error rate of classifiers, squared error of regressors.
    importances_std : ndarray of shape (n_features,)
        Standard error of that mean.
    importances : ndarray of shape (n_features, n_trees)
        The increase in every tree; NaN if it has no out-of-bag rows.
    """

    importances_mean: Array
    importances_std: Array
    importances: Array


def oob_means(trees: PackedTrees, bins: BinMap, bootstrap: Bootstrap, run: Run) -> tuple[Array, Array]:
    """Return the mean value of each row over the trees for which it is out of bag, and the number of these trees."""
    means, counts, at = np.zeros((bootstrap.n, trees.values.shape[1])), np.zeros(bootstrap.n, np.int64), 0
    samples = [bootstrap.sample(tree) for tree in range(trees.n_trees)]
    for mean, count in run.each(functools.partial(_means_of_part, trees, bins, samples), "rows out of bag"):
        means[at : at + len(mean)], counts[at : at + len(mean)] = mean, count
        at += len(mean)
    return means, counts


def _means_of_part(trees: PackedTrees, bins: BinMap, samples: list[Sample], part: Part) -> tuple[Array, Array]:
    sums, counts = np.zeros((len(part), trees.values.shape[1])), np.zeros(len(part), np.int64)
    for chunk in part.chunks():
        leaves = find_leaf_numbers(trees, bins, prepared_rows(trees, bins, dense_rows(chunk)))
        for tree, sample in enumerate(samples):
            leaves[sample.counts(chunk.start, chunk.stop) > 0, tree] = -1
        here = slice(chunk.start - part.start, chunk.stop - part.start)
        add_leaf_values(leaves, trees.leaf_values, sums[here])
        counts[here] = (leaves >= 0).sum(axis=1)
    return sums / np.maximum(counts, 1)[:, None], counts


def permutation_importances(
    trees: PackedTrees, bins: BinMap, data: ForestRows, n_jobs: int | None
) -> OutOfBagImportances:
    """Return the importances of all columns."""
    of_tree = functools.partial(_increases_of_tree, trees, bins, data)
    with closing(local_engine().map_ordered(of_tree, range(trees.n_trees), n_jobs=n_jobs)) as found:
        rises = np.array(list(found)).T
    there = ~np.isnan(rises[0])
    n, kept = int(there.sum()), rises[:, there]
    mean = kept.mean(axis=1) if n else np.full(len(rises), np.nan)
    error = kept.std(axis=1, ddof=1) / np.sqrt(n) if n > 1 else np.full(len(rises), np.nan)
    return OutOfBagImportances(mean, error, rises)


def _increases_of_tree(trees: PackedTrees, bins: BinMap, data: ForestRows, tree: int) -> Array:
    """Return the increase of the loss of one tree by shuffling each column; 0 for columns it does not split."""
    one, which = trees.only(tree), data.bootstrap.out_of_bag(tree)
    assert data.values is not None
    d = data.values.shape[1]
    if not len(which):
        return np.full(d, np.nan)
    rows, y, rises = np.ascontiguousarray(data.values[which]), data.y[:, which], np.zeros(d)

    def loss() -> float:
        values = data.outputs.split(one.leaf_values[find_leaf_numbers(one, bins, rows)[:, 0]])
        if data.outputs.has_classes:
            return float(np.mean([part.argmax(axis=1) != target for part, target in zip(values, y, strict=True)]))
        return float(np.mean([(part[:, 0] - target) ** 2 for part, target in zip(values, y, strict=True)]))

    before = loss()
    for j in np.unique(one.column).tolist():
        kept = rows[:, j].copy()
        rows[:, j] = kept[permutation(stream_key(data.bootstrap.seed, (tree, _SHUFFLES, j)), len(kept))]
        rises[j] = loss() - before
        rows[:, j] = kept
    return rises
