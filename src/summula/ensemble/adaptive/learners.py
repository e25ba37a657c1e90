"""The base learners of AdaBoost, fitted to the same rows with different weights in each round.

Trees are grown from columns that are sorted once, since only the row weights change. Other learners are cloned and
fitted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import has_fit_parameter

from summula.core.engine.random import stream_key
from summula.core.errors import ParameterError
from summula.ensemble.stagewise.seeded_clones import seeded_clone
from summula.tree.decision_tree_classifier import DecisionTreeClassifier
from summula.tree.exact.grower import ExactGrower, ExactTree
from summula.tree.exact.pruning import prune
from summula.tree.growing.outputs import Outputs
from summula.tree.prediction.predictor_kernels import find_leaves
from summula.tree.prediction.scoring_kernels import COMPILE_SCORING

__all__ = ["AnyLearner", "TreeLearner", "is_plain_tree"]

Array = NDArray[Any]


def is_plain_tree(estimator: Any) -> bool:
    """Return whether a learner is a tree that depends on the round only through the row weights."""
    return estimator is None or (
        type(estimator) is DecisionTreeClassifier
        and estimator.class_weight is None
        and estimator.max_time is None
        and estimator.monotonic_cst is None
        and isinstance(estimator.categorical_features, str)
    )


class TreeLearner:
    """Trees with exact thresholds.

    Parameters
    ----------
    prototype : DecisionTreeClassifier
    X : ndarray of shape (n, d)
    codes : ndarray of shape (n,)
    n_classes : int
    seed : int
    check : callable
        Called regularly; may raise.
    """

    def __init__(self, prototype: Any, X: Array, codes: Array, n_classes: int, seed: int, check: Any) -> None:
        self.prototype, self.codes, self.n_classes, self.seed = prototype, codes.astype(np.float64), n_classes, seed
        self._X = X
        self._grower = ExactGrower(X, np.zeros(X.shape[1], bool), check, later=COMPILE_SCORING)
        self.trees: list[ExactTree] = []

    def fit(self, weight: Array, number: int) -> Array:
        """Grow a tree."""
        n, d = self._X.shape
        limits = self.prototype._exact_parameters(n, d, float(weight.sum()))
        limits = limits._replace(key=stream_key(self.seed, (number,)))
        tree = self._grower.grow(self.codes, weight, Outputs.one(self.n_classes), limits)
        leaves = np.empty(n, np.int64)
        if self.prototype.ccp_alpha > 0.0:
            tree = prune(tree, float(self.prototype.ccp_alpha))
            find_leaves(self._X, tree.nodes, 0, 1, leaves[:, None])
        else:
            found = self._grower.leaf_rows
            leaves[:] = found.leaves[0]
            leaves[found.rows] = np.repeat(found.leaves, np.diff(found.starts))
        self._last = tree
        return np.asarray(tree.values.argmax(axis=1)[leaves])

    def keep(self) -> None:
        """Add the last tree to the kept ones."""
        self.trees.append(self._last)


class AnyLearner:
    """Any classifier that supports sample weights.

    Parameters
    ----------
    estimator : classifier
    X : {ndarray, sparse matrix} of shape (n, d)
    codes : ndarray of shape (n,)
    classes : ndarray of shape (n_classes,)
    seed : int
    """

    def __init__(self, estimator: Any, X: Any, codes: Array, classes: Array, seed: int) -> None:
        if not has_fit_parameter(estimator, "sample_weight"):
            raise ParameterError(
                f"{type(estimator).__name__} doesn't support sample_weight, which AdaBoost needs to reweight the rows "
                "in each round; use another estimator."
            )
        self.estimator, self._X, self._classes, self._y, self._seed = estimator, X, classes, classes[codes], seed
        self.fitted: list[Any] = []

    def fit(self, weight: Array, number: int) -> Array:
        """Fit a clone with a new seed."""
        model = seeded_clone(self.estimator, stream_key(self._seed, (number,)))
        self._last = model.fit(self._X, self._y, sample_weight=weight)
        return predicted_codes(self._last, self._X, self._classes)

    def keep(self) -> None:
        """Add the last classifier to the kept ones."""
        self.fitted.append(self._last)


def predicted_codes(model: Any, X: Any, classes: Array) -> Array:
    """Return the codes of the classes that a classifier predicts; all of them are among `classes`."""
    return np.searchsorted(classes, np.asarray(model.predict(X)))
