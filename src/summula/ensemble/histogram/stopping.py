"""Early stopping: losses and scores of the trees so far, on training and validation rows.

Boosting stops when none of the last `n_iter_no_change` scores exceeds the one before them by more than `tol`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from summula.core.errors import DataError
from summula.core.estimator.early_stopping import validation_mask
from summula.ensemble.histogram.boosting import Rows
from summula.ensemble.histogram.boosting_losses import Loss
from summula.tree.prediction.predictor import Nodes

__all__ = ["Watcher", "held_out_rows", "should_stop"]

Array = NDArray[Any]

_LISTED_ROWS = 5_000_000  # above this rows are held out independently, not a fixed number of them
_SCORED_ROWS = 10_000  # maximum number of training rows that are scored


def held_out_rows(estimator: Any, y: Array, weight: Array | None, seed: int) -> Array:
    """Return a mask of the rows held out for early stopping, chosen as in scikit-learn unless there are very many."""
    mask = _drawn(estimator, y, seed)
    if weight is not None:
        for side, name in ((mask, "held out for early stopping"), (~mask, "left for training")):
            if not weight[side].any():
                raise DataError(
                    f"All {side.sum():,} rows {name} have a sample_weight of 0; drop rows of weight 0, change "
                    "validation_fraction or random_state, or set early_stopping=False."
                )
    return mask


def _drawn(estimator: Any, y: Array, seed: int) -> Array:
    n, share = len(y), estimator.validation_fraction
    if n > _LISTED_ROWS:
        return np.asarray(np.random.default_rng([seed, 3]).random(n) < (share if share < 1 else share / n))
    return validation_mask(n, share, seed, y if estimator._labelled else None)


def should_stop(scores: list[float], patience: int, tol: float) -> bool:
    """Return whether none of the last scores is better than the one before them."""
    if len(scores) < patience + 1:
        return False
    return not any(score > scores[-patience - 1] + tol for score in scores[-patience:])


class _Present(BaseEstimator):
    """The model so far, as an estimator of binned rows that scorers can use."""

    def __init__(self, watcher: Any = None, X: Any = None, z: Any = None) -> None:
        self.watcher = watcher
        self.X = X
        self.z = z

    def _scores(self, X: Array) -> Array:
        """Return the stored scores of these rows; those of other rows (a subset, permuted ones) are computed."""
        return np.asarray(self.z if X is self.X else self.watcher.scores_of(X)).T

    def fit(self, X: Any, y: Any = None) -> Any:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Array) -> Array:
        return np.asarray(self.watcher.owner._from_scores(self._scores(X)))


class _PresentRegressor(RegressorMixin, _Present):
    pass


class _PresentClassifier(ClassifierMixin, _Present):
    @property
    def classes_(self) -> Array:
        return np.asarray(self.watcher.owner.classes_)

    def predict_proba(self, X: Array) -> Array:
        return np.asarray(self.watcher.owner._probabilities(self._scores(X)))

    def decision_function(self, X: Array) -> Array:
        return np.asarray(self.watcher.owner._decided(self._scores(X)))


class Watcher:
    """Records losses and scores after each iteration.

    Parameters
    ----------
    owner : estimator
    loss : Loss
    learnt, watched : Rows
        Training rows, and validation rows (or None).
    stops : bool
        Whether early stopping is used.
    warm : bool
        Whether to continue the records of the previous fit.

    Attributes
    ----------
    nodes, start : callable, ndarray
        Function that returns the trees so far; the initial scores.
    """

    def __init__(self, owner: Any, loss: Loss, learnt: Rows, watched: Rows | None, *, stops: bool, warm: bool) -> None:
        self.owner, self.loss, self.stops = owner, loss, stops
        self.nodes: Callable[[], Nodes] = Nodes.none
        self.start: Array = np.zeros(loss.scores)
        self.learnt, self.watched = learnt, watched
        curve = owner.learning_curve_ if warm else {"train": np.empty(0), "validation": np.empty(0)}
        self._train, self._validation = list(curve["train"]), list(curve["validation"])
        self._scores = list(owner.train_score_) if warm else []
        self._watched_scores = list(owner.validation_score_) if warm else []
        self._scorer: Any = None
        if stops and owner.scoring != "loss":
            from sklearn.metrics import check_scoring

            with config_context(skip_parameter_validation=True):  # whose error message would list all scorer names
                self._scorer = check_scoring(owner, owner.scoring)
        n = len(learnt.y)
        self._few = np.arange(min(n, _SCORED_ROWS))
        if self._scorer is not None and n > _SCORED_ROWS:
            self._few = np.sort(np.random.default_rng([4, n]).choice(n, _SCORED_ROWS, replace=False))

    def note(self, mean: float) -> None:
        """Record the scores of the trees so far; `mean` is their mean loss on the training rows."""
        self._train.append(mean)
        if self.watched is not None:
            self._validation.append(self.watched.loss(self.loss))
        if not self.stops:
            return
        if self._scorer is None:
            self._scores.append(-mean)
            if self.watched is not None:
                self._watched_scores.append(-self._validation[-1])
            return
        self._scores.append(self._scored(self.learnt, self._few))
        if self.watched is not None:
            self._watched_scores.append(self._scored(self.watched, np.arange(len(self.watched.y))))

    def _scored(self, rows: Rows, which: Array) -> float:
        labelled, X = self.owner._labelled, rows.bins[which]
        model = (_PresentClassifier if labelled else _PresentRegressor)(self, X, rows.z[:, which])
        y = self.owner.classes_[rows.y[which].astype(np.intp)] if labelled else rows.y[which]
        weight = {} if rows.weight is None else {"sample_weight": rows.weight[which]}
        return float(self._scorer(model, X, y, **weight))

    def scores_of(self, X: Array) -> Array:
        """Return the scores of any binned rows."""
        rows = Rows.at(np.ascontiguousarray(X, np.uint8), np.empty(len(X)), None, self.start)
        rows.add_trees(self.nodes(), 0, 1)
        return rows.z

    def is_enough(self) -> bool:
        """Return whether the score no longer improves."""
        scores = self._scores if self.watched is None else self._watched_scores
        return self.stops and should_stop(scores, self.owner.n_iter_no_change, self.owner.tol)

    def name(self, model: Any) -> None:
        """Set the recorded scores as attributes of the estimator."""
        model.train_score_ = np.array(self._scores)
        model.validation_score_ = np.array(self._watched_scores)
        model.learning_curve_ = {"train": np.array(self._train), "validation": np.array(self._validation)}
