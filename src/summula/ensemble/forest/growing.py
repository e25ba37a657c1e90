"""Growing the trees of a forest: one tree per thread, the same trees for any number of threads."""

from __future__ import annotations

import functools
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.engine.engine import check_watch, local_engine
from summula.ensemble.forest.bootstrap import Bootstrap
from summula.tree.binned.grower import GrownTree, grow_binned
from summula.tree.binned.packed import PackedTrees
from summula.tree.binned.records import BINS, BinnedTable
from summula.tree.columns.binning import BinMap
from summula.tree.exact.grower import ExactGrower
from summula.tree.growing.limits import tree_limits

__all__ = ["ForestRows", "bin_centres", "grow_trees"]

Array = NDArray[Any]


class _Cancelled(Exception):
    """The thread that called `fit` no longer waits for trees."""


@dataclass(frozen=True)
class ForestRows:
    """What trees are grown from.

    Attributes
    ----------
    rows : ndarray of shape (n, d)
        Bins as bytes; where thresholds are exact, values, categories replaced by their bins.
    table : BinnedTable or None
        The bins by column; None where thresholds are exact.
    y : ndarray of shape (n,)
        Targets, or codes of classes.
    n_classes : int
        0 for regression.
    is_categorical : ndarray of shape (d,), bool
    bootstrap : Bootstrap
    """

    rows: Array
    table: BinnedTable | None
    y: Array
    n_classes: int
    is_categorical: Array
    bootstrap: Bootstrap
    is_cancelled: list[bool] = field(default_factory=lambda: [False])

    def check(self) -> None:
        """Raise when the time of the fit is over, or nobody waits for the tree."""
        if self.is_cancelled[0]:
            raise _Cancelled
        check_watch()

    def weights(self, tree: int, *, balanced: bool) -> Array:
        """Return the weights of the rows of a tree; `balanced` makes the classes of its sample equally heavy."""
        bootstrap = self.bootstrap
        if bootstrap.size is None:
            return np.ones(bootstrap.n) if bootstrap.weight is None else bootstrap.weight
        counts = bootstrap.counts(tree).astype(np.float64)
        if not balanced:
            return counts
        codes = self.y.astype(np.intp)
        by_class = np.bincount(codes, counts, self.n_classes)
        share = counts.sum() / (np.count_nonzero(by_class) * np.maximum(by_class, 1.0))
        return np.asarray(counts * share[codes])


def grow_trees(model: Any, data: ForestRows, first: int, last: int) -> Generator[PackedTrees, None, None]:
    """Yield the trees with the numbers from `first` up to `last`."""
    grow = functools.partial(_grow_tree, model, data)
    engine = local_engine()
    with closing(engine.map_ordered(grow, range(first, last), n_jobs=model.n_jobs)) as trees:
        try:
            for tree in trees:  # noqa: UP028  (`yield from` would wait for the trees under way before it is left)
                yield tree
        finally:
            data.is_cancelled[0] = True


def _grow_tree(model: Any, data: ForestRows, tree: int) -> PackedTrees:
    data.check()
    weight = data.weights(tree, balanced=getattr(model, "class_weight", None) == "balanced_subsample")
    which, (n, d) = np.flatnonzero(weight), data.rows.shape
    key = data.bootstrap.split_key(tree)
    limits = tree_limits(model, n, d, float(weight.sum()), key, random_threshold=model._random_threshold)
    y = data.y[which].astype(np.float64)
    if data.table is None:
        grower = ExactGrower(data.rows[which], data.is_categorical, data.check)
        found = grower.grow(y, weight[which], data.n_classes, limits)
        grown = GrownTree.of_exact(found)
        if data.n_classes:
            grown = grown._replace(values=grown.values * grown.weight[:, None])
    else:
        grown = grow_binned(data.table, which, y, weight[which], data.n_classes, limits, data.check)
    if model.ccp_alpha > 0.0:
        grown = grown.pruned(float(model.ccp_alpha))
    return PackedTrees.of(grown, is_exact=data.table is None, has_classes=data.n_classes > 0)


def bin_centres(rows: Array, weight: Array | None, bins: BinMap) -> Array:
    """Return a value for each bin, the mean of those of some rows that fall into it; shape (features, 256)."""
    w = np.ones(len(rows)) if weight is None else weight
    centres = np.where(np.isfinite(bins.edges), bins.edges, 0.0)
    binned = np.empty(rows.shape, np.uint8)
    bins.write(rows, binned)
    for j in range(rows.shape[1]):
        there = np.isfinite(rows[:, j])
        total = np.bincount(binned[there, j], w[there], BINS)
        sums = np.bincount(binned[there, j], w[there] * rows[there, j], BINS)
        centres[j] = np.divide(sums, total, out=centres[j], where=total > 0)
    return centres
