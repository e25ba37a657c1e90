"""Base learners of gradient boosting, fitted to the negative gradients of a stage.

For a tree there is a line search in every leaf. For any other regressor h there is one for all rows,

    gamma = argmin over gamma of  sum_i w_i L(y_i, f(x_i) + gamma h(x_i)),                                          (1)

by which it is multiplied.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import has_fit_parameter

from summula.core.engine.random import stream_key
from summula.core.errors import ParameterError
from summula.ensemble.stagewise.losses import StageLoss
from summula.ensemble.stagewise.seeded_clones import seeded_clone
from summula.optimize.line_searches import line_search
from summula.tree.exact.grower import ExactGrower, ExactParameters, ExactTree
from summula.tree.exact.pruning import prune
from summula.tree.growing.outputs import Outputs
from summula.tree.prediction.predictor_kernels import find_leaves
from summula.tree.prediction.scoring_kernels import COMPILE_SCORING

__all__ = ["AnyLearner", "Stage", "TreeLearner"]

Array = NDArray[Any]

_FEATURES = 2  # stream of random numbers


class Stage(NamedTuple):
    """The rows at the beginning of a stage.

    Attributes
    ----------
    loss : StageLoss
    y : ndarray of shape (n,)
    f : ndarray of shape (n_scores, n)
    weight : ndarray of shape (n,)
        0 for rows that are not used.
    is_whole : bool
        Whether all rows are used.
    """

    loss: StageLoss
    y: Array
    f: Array
    weight: Array
    is_whole: bool


class TreeLearner:
    """Regression trees with exact thresholds, on columns that are sorted once.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    limits : ExactParameters
    ccp_alpha : float
    seed : int
    check : callable
        Called regularly; may raise.
    """

    def __init__(
        self, X: Array, limits: ExactParameters, ccp_alpha: float, seed: int, check: Callable[[], None]
    ) -> None:
        self._X, self._limits, self._ccp_alpha, self._seed = X, limits, ccp_alpha, seed
        self._grower = ExactGrower(X, np.zeros(X.shape[1], bool), check, later=COMPILE_SCORING)

    def fit(self, stage: Stage, k: int, g: Array, number: int) -> tuple[ExactTree, Array]:
        """Fit a tree to the negative gradients g of score k.

        Returns
        -------
        tree : ExactTree
            Tree with the values of the line search in its leaves.
        update : ndarray of shape (n,)
            These values for each row.
        """
        limits = self._limits._replace(key=stream_key(self._seed, (_FEATURES, number)))
        tree = self._grower.grow(g, None if stage.is_whole else stage.weight, Outputs(), limits)
        if self._ccp_alpha > 0.0:
            tree = prune(tree, self._ccp_alpha)
        leaves = np.flatnonzero(tree.nodes.column < 0)
        number_of = np.full(len(tree.impurity), -1)
        number_of[leaves] = np.arange(len(leaves))
        leaf = number_of[self._leaves_of_rows(tree, stage)]
        used = slice(None) if stage.is_whole else stage.weight > 0
        values = stage.loss.leaf_values(stage.y[used], stage.f[:, used], k, g[used], stage.weight[used], leaf[used])
        tree.values[leaves, 0] = values
        return tree, values[leaf]

    def _leaves_of_rows(self, tree: ExactTree, stage: Stage) -> Array:
        leaves = np.empty(len(self._X), np.int64)
        found = self._grower.leaf_rows
        if stage.is_whole and self._ccp_alpha == 0.0 and len(found.rows) == len(leaves):
            leaves[found.rows] = np.repeat(found.leaves, np.diff(found.starts))
        else:
            find_leaves(self._X, tree.nodes, 0, 1, leaves[:, None])
        return leaves


class AnyLearner:
    """Any regressor.

    Parameters
    ----------
    estimator : regressor
    X : {ndarray, sparse matrix} of shape (n, d)
    has_weights : bool
        Whether rows have weights.
    seed : int
    """

    def __init__(self, estimator: Any, X: Any, has_weights: bool, seed: int) -> None:
        self._takes_weights = has_fit_parameter(estimator, "sample_weight")
        if has_weights and not self._takes_weights:
            raise ParameterError(
                f"{type(estimator).__name__} does not support sample weights: omit them, or use another estimator."
            )
        self._estimator, self._X, self._has_weights, self._seed = estimator, X, has_weights, seed

    def fit(self, stage: Stage, k: int, g: Array, number: int) -> tuple[tuple[Any, float], Array]:
        """Fit a clone to the negative gradients g of score k.

        Returns
        -------
        learner : tuple of regressor and float
            The regressor and its factor (1).
        update : ndarray of shape (n,)
        """
        model = seeded_clone(self._estimator, stream_key(self._seed, (_FEATURES, number)))
        used = np.flatnonzero(stage.weight > 0)
        rows = self._X if stage.is_whole else self._X[used]
        weights = {"sample_weight": stage.weight[used]} if self._has_weights else {}
        model.fit(rows, g if stage.is_whole else g[used], **weights)
        h = np.asarray(model.predict(self._X), np.float64)
        gamma = _best_factor(stage, k, h, used)
        return (model, gamma), gamma * h


def _best_factor(stage: Stage, k: int, h: Array, used: Array) -> float:
    """Return (1); 0 if no positive factor decreases the loss."""
    loss, y, f, w = stage.loss, stage.y[used], stage.f[:, used], stage.weight[used]
    direction = h[used]
    if not direction.any():
        return 0.0

    def moved(gamma: Array) -> Array:
        scores = f.copy()
        scores[k] += float(gamma[0]) * direction
        return scores

    def value(gamma: Array) -> float:
        with np.errstate(over="ignore"):
            return float((w * loss.values(y, moved(gamma))).sum())

    def slope(gamma: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.array([-(w * loss.negative_gradient(y, moved(gamma))[k] * direction).sum()])

    start, ahead = np.zeros(1), np.ones(1)
    if not slope(start)[0] < 0.0:
        return 0.0
    if loss.is_smooth:
        found = line_search(value, start, ahead, method="secant", gradient=slope)
    else:
        found = line_search(value, start, ahead, method="golden")
    return float(found.x)
