"""Gradient boosting: each tree approximates a Newton step on the loss.

With raw scores z_i, and g_i, h_i the gradients and hessians of the loss at them, an iteration

    1. computes g and h (`boosting_losses`), and quantises them for the split search (`quantising`),
    2. grows a tree for them (`tree.growing`),
    3. computes leaf values: for the leaf with the rows I a Newton step (`tree.leaf_values`)
           v = -learning_rate sum_I g_i / (sum_I h_i + l2),                                                       (1)
       or a quantile of the residuals, for losses that are not smooth,
    4. adds to each score the value of its leaf.

Losses are summed over blocks of a fixed size, in order, so that the result does not depend on the number of threads.
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
from summula.core.errors import ParameterError
from summula.ensemble.histogram.boosting_losses import Loss, weighted_quantile
from summula.ensemble.histogram.quantising import quantise
from summula.tree.columns.binning import BinMap
from summula.tree.columns.rows import MANY_ROWS
from summula.tree.growing.grower import Grower, Grown
from summula.tree.growing.leaf_values import NewtonLeaves, add_to_scores
from summula.tree.growing.nodes import BinnedRows, Gradients, Tree, TreeParameters
from summula.tree.growing.records import feature_table
from summula.tree.prediction.predictor import Nodes
from summula.tree.prediction.predictor_kernels import add_scores_of_bins

__all__ = ["Booster", "QuantileLeaves", "Rows", "restore_order"]

Array = NDArray[Any]

_BLOCK = 2**14  # rows whose gradients are computed at once, which fit in the L2 cache
_ROUNDING, _FEATURES = 1, 2  # streams of random numbers
_COPIED_BYTES = 2**29  # maximum size of the bins for which a column-major copy is made


class Rows(NamedTuple):
    """Binned rows with their targets, weights and raw scores, shape (scores, n)."""

    bins: Array
    y: Array
    weight: Array | None
    z: Array

    @classmethod
    def at(cls, bins: Array, y: Array, weight: Array | None, start: Array) -> Rows:
        """Return rows whose scores are those of the start."""
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
        """Return the mean loss."""
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
        Training rows; their scores are updated with every tree.
    bins : BinMap
    monotone : ndarray of shape (n_features,)
        1, -1 or 0.
    parameters : TreeParameters
    seed : int
    n_jobs : int, optional
    """

    def __init__(
        self,
        loss: Loss,
        rows: Rows,
        bins: BinMap,
        monotone: Array,
        parameters: TreeParameters,
        seed: int,
        n_jobs: int | None,
    ) -> None:
        self.loss, self.rows, self.bins, self.seed = loss, rows, bins, seed
        features = feature_table(bins.n_bins, bins.categorical, monotone)
        binned = BinnedRows.of(rows.bins, copies=rows.bins.size <= _COPIED_BYTES)
        self.grower = Grower(binned, features, parameters, n_jobs)
        self.threads = self.grower.threads
        self._leaves: NewtonLeaves | QuantileLeaves = NewtonLeaves(parameters.l2, parameters.learning_rate)
        if loss.level is not None:
            self._leaves = QuantileLeaves(self._leaves, loss.level, rows, monotone)
        n = len(rows.y)
        is_constant = rows.weight is None and loss.block(rows.y[:1], rows.z[:, :1]).curvature is None
        self._gradients = np.empty((loss.scores, n), np.float32)
        self._hessians = np.empty((loss.scores, 0 if is_constant else n), np.float32)
        self._growers = [(self.grower, np.empty(n, np.int64))]
        if loss.scores > 1 and self.threads > 1:
            # The trees of an iteration are independent, so each thread grows its own.
            workers = range(min(self.threads, loss.scores))
            self._growers = [(Grower(binned, features, parameters, 1), np.empty(n, np.int64)) for _ in workers]

    def compute_gradients(self) -> tuple[float, Array]:
        """Compute gradients and hessians at the scores; return the mean loss, and the largest |g| and h per score."""
        n, scores = len(self.rows.y), self.loss.scores
        blocks = -(-n // _BLOCK)
        sums, largest = np.zeros(blocks), np.zeros((blocks, 2, scores))
        cuts = [blocks * k // self.threads for k in range(self.threads + 1)]
        spans = [(a, b) for a, b in itertools.pairwise(cuts) if b > a]
        together([functools.partial(self._compute_blocks, a, b, sums, largest) for a, b in spans])
        weight = n if self.rows.weight is None else float(self.rows.weight.sum())
        return float(sums.sum()) / weight, largest.max(axis=0)

    def _compute_blocks(self, first: int, last: int, sums: Array, largest: Array) -> None:
        for k in range(first, last):
            start, stop = k * _BLOCK, min((k + 1) * _BLOCK, len(self.rows.y))
            sums[k], largest[k] = self.loss.slopes(self.rows, self._gradients, self._hessians, start, stop)

    def add_trees(self, iteration: int, largest: Array) -> list[Tree]:
        """Add one tree per score, for the gradients computed last."""
        if not np.isfinite(largest).all():
            raise ParameterError(
                f"Gradients overflow single precision after {iteration} iterations: the steps diverge; use a smaller "
                "learning_rate, such as 0.1."
            )
        scores, workers = self.loss.scores, len(self._growers)
        trees: dict[int, Tree] = {}

        def grow(worker: int) -> None:
            for k in range(worker, scores, workers):
                trees[k] = self._add_tree(iteration * scores + k, k, largest, *self._growers[worker])

        tasks = [functools.partial(grow, worker) for worker in range(workers)]
        if workers > 1 and self.grower.is_long and not inside_pool():
            run_supervised(tasks, self._cancel)
        else:
            together(tasks)
        return [trees[k] for k in range(scores)]

    def _cancel(self) -> None:
        for grower, _ in self._growers:
            grower.cancel()

    def _add_tree(self, number: int, k: int, largest: Array, grower: Grower, packed: Array) -> Tree:
        """Grow the next tree of score k, and add it to the scores."""
        rounding, features = (stream_key(self.seed, (purpose, number)) for purpose in (_ROUNDING, _FEATURES))
        tops = tuple(largest[:, k].tolist())
        gradients = quantise(self._gradients[k], self._hessians[k], tops, rounding, packed, grower.threads)
        grown = grower.grow(gradients, features)
        self._leaves.set_values(grown, gradients)
        add_to_scores(grown, self.rows.z[k])
        return grown.tree


class QuantileLeaves(NamedTuple):
    """Leaf values of losses without curvature: quantiles of the residuals of the rows in the leaf."""

    newton: NewtonLeaves
    level: float
    rows: Rows
    monotone: Array

    def set_values(self, grown: Grown, gradients: Gradients) -> None:
        """Set the values of the leaves of a tree."""
        self.newton.set_values(grown, gradients)  # the weights of the leaves
        y, weight, z = self.rows.y, self.rows.weight, self.rows.z[0]
        leaves, starts, order = grown.leaf_rows

        def set_some(which: range) -> None:
            for k in which:
                rows = order[starts[k] : starts[k + 1]]
                w = None if weight is None else weight[rows]
                value = weighted_quantile(y[rows] - z[rows], w, self.level)
                grown.tree.value[int(leaves[k])] = self.newton.learning_rate * value

        n, threads = len(leaves), grown.threads
        together([functools.partial(set_some, range(k, n, threads)) for k in range(min(threads, n))])
        if self.monotone.any():
            restore_order(grown.tree, self.monotone)


def restore_order(tree: Tree, monotone: Array) -> None:
    """Change leaf values to satisfy the monotonicity constraints at all splits.

    From the leaves up, both sides of a split are clipped at the midpoint of their means. Clipping a whole side at one
    value preserves the order within it, so that the splits below remain valid.
    """
    below: dict[int, list[int]] = {}
    value = tree.value
    for node in range(len(tree) - 1, -1, -1):  # children come after their parent
        if tree.feature[node] < 0:
            below[node] = [node]
            continue
        left, right = below.pop(tree.left_child[node]), below.pop(tree.left_child[node] + 1)
        below[node] = left + right
        sign = int(monotone[tree.feature[node]])
        if sign == 0:
            continue
        low, high = (left, right) if sign > 0 else (right, left)
        if max(value[k] for k in low) > min(value[k] for k in high):
            middle = (sum(value[k] for k in low) / len(low) + sum(value[k] for k in high) / len(high)) / 2
            for k in low:
                value[k] = min(value[k], middle)
            for k in high:
                value[k] = max(value[k], middle)
