"""Gradient boosting: every tree is a Newton step on the loss, in the space of trees.

With raw scores z_i, and g_i, h_i the slopes of the loss at them, an iteration

    1. computes g and h (`boosting_losses`), and rounds them for the search (`quantising`),
    2. grows a tree for them (`tree.growing`), whose leaf with the rows I has the value
           v = -learning_rate sum_I g_i / (sum_I h_i + l2),                                                       (1)
    3. adds to each score the value of its leaf.

Sums of losses are over blocks of a fixed size, in order: they do not depend on threads either.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.engine.random import stream_key
from summula.core.engine.threads import inside_pool, together
from summula.core.engine.worker_group import run_supervised
from summula.ensemble.boosting_losses import Loss, weighted_quantile
from summula.ensemble.boosting_rows import MANY_ROWS
from summula.ensemble.quantising import quantised
from summula.tree.binning import BinMap
from summula.tree.growing import Grower, Grown
from summula.tree.nodes import Bins, Rules, Tree
from summula.tree.predictor import Nodes
from summula.tree.predictor_kernels import add_scores_of_bins
from summula.tree.split_kernels import Columns

__all__ = ["Booster", "Rows", "keep_order"]

Array = NDArray[Any]

_BLOCK = 2**14  # rows whose slopes are computed at once: they stay in the second cache
_ROUNDING, _COLUMNS = 1, 2  # streams of random numbers
_TWO_ORDERS = 2**29  # bytes of bins up to which there is a copy column by column


class Rows(NamedTuple):
    """Binned rows with their targets, weights and raw scores, shape (scores, n)."""

    bins: Array
    y: Array
    weight: Array | None
    z: Array

    @classmethod
    def at(cls, bins: Array, y: Array, weight: Array | None, start: Array) -> Rows:
        """Rows whose scores are the start."""
        kind = np.float32 if len(y) > MANY_ROWS else np.float64
        return cls(bins, y, weight, np.repeat(start.astype(kind)[:, None], len(y), axis=1))

    def add_trees(self, nodes: Nodes, first: int, threads: int) -> None:
        """Add the values of the trees from `first` on to the scores."""
        n = len(self.y)
        cuts = [n * k // threads for k in range(threads + 1)]

        def walk(a: int, b: int) -> None:
            for tree in range(first, nodes.n_trees):
                add_scores_of_bins(self.bins, nodes, tree, a, b, self.z[tree % len(self.z)])

        together([functools.partial(walk, a, b) for a, b in itertools.pairwise(cuts)])

    def loss(self, loss: Loss) -> float:
        """The mean loss."""
        total = 0.0
        for a in range(0, len(self.y), _BLOCK):
            b = slice(a, a + _BLOCK)
            values = loss.block(self.y[b], self.z[:, b]).values
            total += float(values.sum() if self.weight is None else np.dot(values, self.weight[b]))
        return total / (len(self.y) if self.weight is None else float(self.weight.sum()))


class Booster:
    """Adds trees for a loss.

    Parameters
    ----------
    loss : Loss
    rows : Rows
        What is learnt from; its scores are changed.
    bins : BinMap
    monotone : ndarray of shape (n_features,)
        1, -1 or 0.
    rules : Rules
    seed : int
    n_jobs : int, optional
    """

    def __init__(
        self, loss: Loss, rows: Rows, bins: BinMap, monotone: Array, rules: Rules, seed: int, n_jobs: int | None
    ) -> None:
        self.loss, self.rows, self.bins, self.rules, self.seed = loss, rows, bins, rules, seed
        columns = Columns(bins.n_bins, bins.categorical.astype(np.int64), monotone.astype(np.int64))
        both = Bins.of(rows.bins, both=rows.bins.size <= _TWO_ORDERS)
        self.grower = Grower(both, columns, rules, n_jobs)
        self.threads = self.grower.threads
        n, self._flat = len(rows.y), rows.weight is None and loss.block(rows.y[:1], rows.z[:, :1]).curvature is None
        self._g = np.empty((loss.scores, n), np.float32)
        self._h = np.empty((loss.scores, 0 if self._flat else n), np.float32)
        self._packed = np.empty(n, np.int64)
        self._growers = [(self.grower, self._packed)]
        if loss.scores > 1 and self.threads > 1:
            # The trees of an iteration have nothing to do with each other: each thread grows its own.
            self._growers = [
                (Grower(both, columns, rules, 1), self._packed if k == 0 else np.empty(n, np.int64))
                for k in range(min(self.threads, loss.scores))
            ]

    def slopes(self) -> tuple[float, Array]:
        """Gradients and curvatures at the scores; gives the mean loss, and the largest |g| and h of each score."""
        n, scores = len(self.rows.y), self.loss.scores
        blocks = -(-n // _BLOCK)
        sums, tops = np.zeros(blocks), np.zeros((blocks, 2, scores))
        cuts = [blocks * k // self.threads for k in range(self.threads + 1)]
        spans = [(a, b) for a, b in itertools.pairwise(cuts) if b > a]
        together([functools.partial(self._slopes_of, a, b, sums, tops) for a, b in spans])
        weight = n if self.rows.weight is None else float(self.rows.weight.sum())
        return float(sums.sum()) / weight, tops.max(axis=0)

    def _slopes_of(self, first: int, last: int, sums: Array, tops: Array) -> None:
        for k in range(first, last):
            start, stop = k * _BLOCK, min((k + 1) * _BLOCK, len(self.rows.y))
            sums[k], tops[k] = self.loss.slopes(self.rows, self._g, self._h, start, stop)

    def add_trees(self, iteration: int, tops: Array) -> list[Tree]:
        """One tree a score, for the slopes computed last."""
        scores, workers = self.loss.scores, len(self._growers)
        trees: dict[int, Tree] = {}

        def grow(worker: int) -> None:
            for k in range(worker, scores, workers):
                trees[k] = self._tree(iteration * scores + k, k, tops, *self._growers[worker])

        tasks = [functools.partial(grow, worker) for worker in range(workers)]
        if workers > 1 and self.grower.is_long and not inside_pool():
            run_supervised(tasks, self._cancel)
        else:
            together(tasks)
        return [trees[k] for k in range(scores)]

    def _cancel(self) -> None:
        for grower, _ in self._growers:
            grower.cancel()

    def _tree(self, number: int, k: int, tops: Array, grower: Grower, packed: Array) -> Tree:
        """The next tree of score k, which the scores are raised by."""
        rounding, columns = (stream_key(self.seed, (purpose, number)) for purpose in (_ROUNDING, _COLUMNS))
        slopes = quantised(self._g[k], self._h[k], tuple(tops[:, k].tolist()), rounding, packed, grower.threads)
        grown = grower.grow(slopes, columns)
        if self.loss.level is not None:
            self._take_quantiles(grown, self.loss.level)
        grower.add_to(self.rows.z[k], grown)
        return grown.tree

    def _take_quantiles(self, grown: Grown, level: float) -> None:
        """Leaf values for losses without curvature: quantiles of what is left."""
        y, weight, z = self.rows.y, self.rows.weight, self.rows.z[0]

        def take(which: range) -> None:
            for leaf in which:
                rows = grown.rows[grown.starts[leaf] : grown.starts[leaf + 1]]
                w = None if weight is None else weight[rows]
                value = weighted_quantile(y[rows] - z[rows], w, level)
                grown.tree.value[int(grown.leaves[leaf])] = self.rules.rate * value

        n = len(grown.leaves)
        together([functools.partial(take, range(k, n, self.threads)) for k in range(min(self.threads, n))])
        signs = self.grower.columns.monotone
        if signs.any():
            keep_order(grown.tree, signs)


def keep_order(tree: Tree, signs: Array) -> None:
    """Move values of leaves until, at splits on monotone columns, all on one side are at most all on the other.

    From the leaves up, both sides are cut off halfway between their means. What is cut off alike stays in order, so
    that splits below are right already.
    """
    below: dict[int, list[int]] = {}
    value = tree.value
    for node in range(len(tree) - 1, -1, -1):  # children come after their parent
        if tree.column[node] < 0:
            below[node] = [node]
            continue
        left, right = below.pop(tree.child[node]), below.pop(tree.child[node] + 1)
        below[node] = left + right
        sign = int(signs[tree.column[node]])
        if sign == 0:
            continue
        low, high = (left, right) if sign > 0 else (right, left)
        if max(value[k] for k in low) > min(value[k] for k in high):
            middle = (sum(value[k] for k in low) / len(low) + sum(value[k] for k in high) / len(high)) / 2
            for k in low:
                value[k] = min(value[k], middle)
            for k in high:
                value[k] = max(value[k], middle)
