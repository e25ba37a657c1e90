"""Gradient boosting: gradient descent in function space.

    From an initial f_0, stage m (Friedman 2001; Hastie, Tibshirani and Friedman 2009, algorithm 10.3)
    1. draws rows, if only a fraction of them is used,
    2. computes the negative gradients g_i = -dL(y_i, f)/df at f = f_{m-1}(x_i),
    3. fits a base learner to g,
    4. performs a line search: a value for every leaf of a tree, or a factor for any other learner (`learners`),
    5. adds it, times the learning rate, to f.

Several classes have one score and one learner each. Rows that were not drawn estimate the decrease of the loss on new
rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.engine.random import choice, stream_key
from summula.ensemble.stagewise.learners import Stage
from summula.ensemble.stagewise.losses import StageLoss

__all__ = ["History", "Patience", "Rows", "Stages"]

Array = NDArray[Any]

_ROWS = 1  # stream of random numbers


class Rows(NamedTuple):
    """Rows with targets, weights and scores, shape (n_scores, n), which are updated."""

    X: Any
    y: Array
    weight: Array | None
    f: Array


class History(NamedTuple):
    """Mean losses after each stage: on the rows used, on the others, and the decrease of the latter."""

    train: list[float]
    out_of_bag: list[float]
    improvement: list[float]

    def last_out_of_bag(self) -> float | None:
        """Return the mean loss of the rows that the last stage did not use; None if it used all."""
        return (self.out_of_bag[-1] or None) if self.out_of_bag else None


class Stages:
    """Adds stages.

    Parameters
    ----------
    loss : StageLoss
    learner : TreeLearner or AnyLearner
    rows : Rows
    learning_rate : float
    subsample : float
        Fraction of rows used in a stage.
    seed : int
    """

    def __init__(
        self, loss: StageLoss, learner: Any, rows: Rows, learning_rate: float, subsample: float, seed: int
    ) -> None:
        self.loss, self.rows, self.seed, self.learning_rate = loss, rows, seed, learning_rate
        self._learner = learner
        n = len(rows.y)
        self._n_used = n if subsample >= 1.0 else max(1, int(subsample * n))
        self._weight = np.ones(n) if rows.weight is None else rows.weight
        self._all_used = rows.weight is None
        self.out_of_bag: float | None = None  # mean loss on rows not used by the last stage

    def add(self, number: int, history: History) -> list[Any]:
        """Add a stage; return its learners, one per score."""
        y, f, n = self.rows.y, self.rows.f, len(self.rows.y)
        mask = np.ones(n, bool)
        if self._n_used < n:
            mask[:] = False
            mask[choice(stream_key(self.seed, (_ROWS, number)), n, self._n_used)] = True
        loss = self.loss.at(y, f, self._weight)
        if self._n_used < n and self.out_of_bag is None:
            self.out_of_bag = self._mean(loss, ~mask)
        gradients = loss.negative_gradient(y, f)
        stage = Stage(loss, y, f, self._weight * mask, self._all_used and self._n_used == n)
        learners = []
        for k, g in enumerate(gradients):
            learner, update = self._learner.fit(stage, k, g, number * len(gradients) + k)
            learners.append(learner)
            f[k] += self.learning_rate * update
        history.train.append(self._mean(loss, mask))
        if self._n_used < n:
            before, self.out_of_bag = self.out_of_bag, self._mean(loss, ~mask)
            history.out_of_bag.append(self.out_of_bag)
            history.improvement.append(float(before or 0.0) - self.out_of_bag)
        return learners

    def _mean(self, loss: StageLoss, mask: Array) -> float:
        rows = slice(None) if mask.all() else mask
        w = None if self.rows.weight is None else self._weight[rows]
        if w is not None and not w.any():
            return 0.0
        return loss.mean(self.rows.y[rows], self.rows.f[:, rows], w)


class Patience:
    """Early stopping: whether a loss is below at least one of the last few, by more than `tol`."""

    def __init__(self, patience: int, tol: float, loss: Callable[[], float]) -> None:
        self._recent, self._tol, self._loss, self._stage = np.full(patience, np.inf), tol, loss, 0

    def is_over(self) -> bool:
        """Record the loss after a stage; return whether to stop."""
        value = self._loss()
        if not (value + self._tol < self._recent).any():
            return True
        self._recent[self._stage % len(self._recent)] = value
        self._stage += 1
        return False
