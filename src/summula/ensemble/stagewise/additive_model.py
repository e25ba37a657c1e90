"""The model that boosting fits: a start plus learners times steps, and the losses after each stage.

Trees share their nodes and have leaf values that include the step; of other learners each has its own step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.ensemble.stagewise.boosting import History, Rows, Stages
from summula.ensemble.stagewise.losses import StageLoss
from summula.tree.exact.grower import ExactTree
from summula.tree.prediction.predictor import Nodes
from summula.tree.prediction.predictor_kernels import add_scores
from summula.tree.prediction.tables import joined_trees

__all__ = [
    "AdditiveModel",
    "constant_start",
    "fitted_start",
    "learner_scores",
    "predictions_of",
    "tree_scores",
]

Array = NDArray[Any]

_HISTORY = ("train_score_", "oob_scores_", "oob_improvement_")  # fitted attributes that hold a `History`


@dataclass
class AdditiveModel:
    """Learners in the order in which they were added, their steps, and the history of the losses."""

    trees: list[ExactTree] = field(default_factory=list)
    learners: list[Any] = field(default_factory=list)
    steps: list[float] = field(default_factory=list)
    history: History = field(default_factory=lambda: History([], [], []))
    n_stages: int = 0

    @classmethod
    def of(cls, estimator: Any) -> Self:
        """Return the model of a fitted estimator, to be continued."""
        trees, nodes = [], estimator._nodes
        if nodes is not None:
            trees.append(ExactTree(nodes, np.asarray(estimator._impurity), np.asarray(estimator._values)))
        history = History(*(list(getattr(estimator, name, ())) for name in _HISTORY))
        return cls(trees, list(estimator._learners), estimator._steps.tolist(), history, estimator.n_estimators_)

    def add_stage(self, stages: Stages, held: Rows | None) -> None:
        """Fit the next stage and add its learners, also to the scores of held-out rows."""
        for k, found in enumerate(stages.add(self.n_stages, self.history)):
            if isinstance(found, ExactTree):
                found.nodes.value[:] = stages.learning_rate * found.values[:, 0]
                self.trees.append(found)
                self.steps.append(stages.learning_rate)
                if held is not None:
                    add_scores(held.X, found.nodes, 0, 1, held.f[k][:, None])
            else:
                learner, factor = found
                self.learners.append(learner)
                self.steps.append(stages.learning_rate * factor)
                if held is not None:
                    held.f[k] += self.steps[-1] * learner.predict(held.X)
        self.n_stages += 1

    def pad_history(self, subsampled: bool) -> None:
        """Give stages that used all rows zeros where others have losses of the rows not used."""
        if subsampled or self.history.improvement:
            for values in (self.history.out_of_bag, self.history.improvement):
                values.extend([0.0] * (self.n_stages - len(values)))

    def assign_to(self, estimator: Any) -> None:
        """Set the fitted attributes of an estimator."""
        estimator.n_estimators_ = self.n_stages
        tables = joined_trees(self.trees) if self.trees else (None, None, None)
        estimator._nodes, estimator._impurity, estimator._values = tables
        estimator._learners, estimator._steps = list(self.learners), np.array(self.steps)
        for name in _HISTORY:
            estimator.__dict__.pop(name, None)
        for name, values in zip(_HISTORY, self.history, strict=True):
            if name == "train_score_" or self.history.improvement:
                setattr(estimator, name, np.array(values))


def tree_scores(nodes: Nodes, start: Callable[[Chunk], Array], chunk: Chunk) -> Array:
    """Return the scores of the rows of a chunk by trees, shape (rows, scores)."""
    out = start(chunk)
    nodes.add_scores(chunk.dense(chunk.dtype), out)
    return out


def learner_scores(learners: list[Any], steps: Array, start: Callable[[Chunk], Array], chunk: Chunk) -> Array:
    """Return the scores of the rows of a chunk by any regressors."""
    out, X = start(chunk), chunk.X
    for t, (learner, step) in enumerate(zip(learners, steps, strict=True)):
        out[:, t % out.shape[1]] += step * learner.predict(X)
    return out


def constant_start(start: Array, chunk: Chunk) -> Array:
    """Return the same scores for all rows."""
    return np.tile(start, (len(chunk), 1))


def fitted_start(init: Any, loss: StageLoss, chunk: Chunk) -> Array:
    """Return the scores that an estimator starts from."""
    return np.ascontiguousarray(loss.scores(predictions_of(init, chunk.X)).T)


def predictions_of(init: Any, X: Any) -> Any:
    """Return probabilities of classes, or predictions of a regressor."""
    return init.predict_proba(X) if hasattr(init, "classes_") else init.predict(X)
