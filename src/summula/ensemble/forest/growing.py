"""Growing the trees of a forest: one tree per thread, the same trees for any number of threads."""

from __future__ import annotations

import functools
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.engine.engine import check_watch, local_engine
from summula.ensemble.forest.bootstrap import Bootstrap, Sample
from summula.tree.binned.grower import GrownTree, grow_binned
from summula.tree.binned.packed import PackedTrees
from summula.tree.binned.records import BINS, BinnedTable, TreeRows
from summula.tree.columns.binning import BinMap
from summula.tree.exact.grower import ExactGrower, ExactParameters
from summula.tree.growing.limits import tree_limits
from summula.tree.growing.outputs import Outputs

__all__ = ["ForestRows", "TreeSample", "bin_centres", "grow_trees", "packed_tree"]

Array = NDArray[Any]

_SLAB = 2**20  # rows per block of weights
_NO_LIMITS = ExactParameters("")


class _Cancelled(Exception):
    """Raised if the thread that called `fit` no longer waits for trees."""


@dataclass(frozen=True)
class ForestRows:
    """Inputs of the trees.

    Attributes
    ----------
    values : ndarray of shape (n, d), or None
        The rows, with categories replaced by their bins, for exact thresholds.
    table : BinnedTable or None
        The bins by column, without rows if they are streamed; None for exact thresholds.
    y : ndarray of shape (n_outputs, n)
        Targets, or codes of classes.
    outputs : Outputs
        Types of the targets.
    is_categorical : ndarray of shape (d,), bool
    bootstrap : Bootstrap
    shift : ndarray of shape (n_outputs,)
        Values subtracted from the targets while trees are grown.
    """

    values: Array | None
    table: BinnedTable | None
    y: Array
    outputs: Outputs
    is_categorical: Array
    bootstrap: Bootstrap
    shift: Array = field(default_factory=lambda: np.zeros(1))
    is_cancelled: list[bool] = field(default_factory=lambda: [False])

    def check(self) -> None:
        """Raise if the time limit is exceeded or the fit was cancelled."""
        if self.is_cancelled[0]:
            raise _Cancelled
        check_watch()

    def targets(self, rows: Any) -> Array:
        """Return the targets of some rows for the kernels: shifted, or indices of classes; (n_outputs, rows)."""
        y = self.outputs.places(self.y[:, rows].astype(np.float64))
        return np.ascontiguousarray(y - self.shift[:, None], np.float64)


@dataclass(frozen=True)
class TreeSample:
    """The sample of a tree, and its limits.

    Attributes
    ----------
    data : ForestRows
    sample : Sample
    of_class : list of ndarray of shape (n_classes,), one per target, or None
        Factors of the row weights, by class.
    limits : ExactParameters
    """

    data: ForestRows
    sample: Sample
    of_class: list[Array] | None
    limits: ExactParameters

    @classmethod
    def of(cls, model: Any, data: ForestRows, tree: int) -> TreeSample:
        """Draw the rows of a tree of a forest."""
        bootstrap, n, d = data.bootstrap, data.bootstrap.n, len(data.is_categorical)
        sample, of_class = bootstrap.sample(tree), None
        total = float(n if bootstrap.weight is None else bootstrap.weight.sum())
        total = total if bootstrap.size is None else float(bootstrap.size)
        if getattr(model, "class_weight", None) == "balanced_subsample" and bootstrap.size is not None:
            by_class = [np.zeros(k) for k in data.outputs.n_classes]
            for start, part in cls(data, sample, None, _NO_LIMITS)._slabs():
                for weights, y in zip(by_class, data.y, strict=True):
                    weights += np.bincount(y[start : start + _SLAB].astype(np.intp), part, len(weights))
            of_class = [total / (np.count_nonzero(w) * np.maximum(w, 1.0)) for w in by_class]
        key = bootstrap.split_key(tree)
        limits = tree_limits(model, n, d, total, key, random_threshold=model._random_threshold)
        return cls(data, sample, of_class, limits)

    def _slabs(self) -> Iterator[tuple[int, Array]]:
        """Yield the weights of consecutive blocks of rows, and the number of the first row of each."""
        n = self.data.bootstrap.n
        for start in range(0, n, _SLAB):
            yield start, self.weights(start, min(start + _SLAB, n))

    def n_rows(self) -> int:
        """Return the number of distinct rows."""
        return sum(int(np.count_nonzero(part)) for _, part in self._slabs())

    def weights(self, start: int, stop: int) -> Array:
        """Return the weights of the rows from `start` up to `stop`; 0 for out-of-bag rows."""
        if self.sample.first is None:
            weight = self.data.bootstrap.weight
            return np.ones(stop - start) if weight is None else weight[start:stop]
        counts = self.sample.counts(start, stop).astype(np.float64)
        for weights, y in zip(self.of_class or (), self.data.y, strict=self.of_class is not None):
            counts *= weights[y[start:stop].astype(np.intp)]
        return counts


def grow_trees(model: Any, data: ForestRows, first: int, last: int) -> Generator[PackedTrees, None, None]:
    """Yield the trees with the numbers from `first` up to `last`, grown from rows in memory."""
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
    sample = TreeSample.of(model, data, tree)
    weight = sample.weights(0, data.bootstrap.n)
    which = np.flatnonzero(weight)
    if data.table is None:
        assert data.values is not None
        grower = ExactGrower(data.values[which], data.is_categorical, data.check)
        found = grower.grow(data.y[:, which].astype(np.float64), weight[which], data.outputs, sample.limits)
        grown = GrownTree.of_exact(found)
        if data.outputs.has_classes and data.outputs.n_outputs == 1:
            grown = grown._replace(values=grown.values * grown.weight[:, None])
    else:
        rows = TreeRows(which.astype(np.uint32), data.targets(which), weight[which].astype(np.float64))
        grown = grow_binned(data.table, rows, data.outputs, data.shift, sample.limits, data.check)
    return packed_tree(model, data, grown)


def packed_tree(model: Any, data: ForestRows, grown: GrownTree) -> PackedTrees:
    """Return a tree in the form stored by the forest."""
    if model.ccp_alpha > 0.0:
        grown = grown.pruned(float(model.ccp_alpha))
    has_classes = data.outputs.has_classes and data.outputs.n_outputs == 1
    return PackedTrees.of(grown, is_exact=data.table is None, has_classes=has_classes)


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
