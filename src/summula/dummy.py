"""What a model has to beat: the mean of the target, or its most frequent class; both follow from one sum.

    mean = o + s / W,     share of class k = W_k / W                                                            (1)

with the sum of weights W, of one class W_k, and of the target about an origin s.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.callback import with_callbacks

from summula.core.data.chunks import Chunk
from summula.core.estimator.classifier import ProbabilisticClassifier
from summula.core.estimator.regressor import Regressor
from summula.core.estimator.rows import RowFunction
from summula.core.model_files import schema
from summula.core.numerics.sums import Sum

__all__ = ["BaselineClassifier", "BaselineRegressor"]

Array = NDArray[Any]


@dataclass(frozen=True)
class TargetSums(Sum):
    """Sum of weights, and of the target about an origin or by class; `params` says which, with origin or number."""

    weight: float
    total: Array

    @classmethod
    def map(cls, chunk: Chunk, params: tuple[str, float]) -> Self:
        """The sums of one chunk."""
        w = np.ones(len(chunk)) if chunk.weight is None else chunk.weight
        what, value = params
        if what == "classes":
            return cls(float(w.sum()), np.bincount(np.asarray(chunk.codes), w, int(value)))
        return cls(float(w.sum()), np.array([w @ (chunk.target.astype(np.float64) - value)]))


def _repeated(value: Array, chunk: Chunk) -> Array:
    return np.repeat(value, len(chunk), axis=0)


@schema.saved(n_features_in_=schema.Integer(1, size="n_features"), mean_=schema.Real())
class BaselineRegressor(Regressor):
    """The mean of the target, whatever the row.

    Attributes
    ----------
    mean_ : float

    Examples
    --------
    >>> from summula.dummy import BaselineRegressor
    >>> BaselineRegressor().fit([[0.0], [1.0]], [1.0, 3.0]).predict([[5.0]])
    array([2.])
    """

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BaselineRegressor:
        """Compute the mean of y."""
        with self._fitting(X, y, sample_weight) as run:
            origin = float(run.origin()[-1])
            sums = run.sum(TargetSums, ("mean", origin))
            self.mean_ = origin + float(sums.total[0]) / sums.weight
        return self

    def _row_function(self) -> RowFunction:
        return partial(_repeated, np.array([self.mean_]))


@schema.saved(
    n_features_in_=schema.Integer(1, size="n_features"),
    classes_=schema.Labels("n_classes"),
    shares_=schema.Array("float64", "n_classes", low=0.0, high=1.0),
)
class BaselineClassifier(ProbabilisticClassifier):
    """The most frequent class, whatever the row.

    Attributes
    ----------
    classes_ : ndarray
    shares_ : ndarray
        How frequent each class is.

    Examples
    --------
    >>> from summula.dummy import BaselineClassifier
    >>> BaselineClassifier().fit([[0.0], [1.0], [2.0]], ["a", "b", "b"]).predict([[5.0]]).tolist()
    ['b']
    """

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BaselineClassifier:
        """Count the classes."""
        with self._fitting(X, y, sample_weight) as run:
            sums = run.sum(TargetSums, ("classes", len(self.classes_)))
            self.shares_ = sums.total / sums.weight
        return self

    def _score_function(self) -> RowFunction:
        return partial(_repeated, self.shares_[None, :])

    @staticmethod
    def _probabilities(scores: Array) -> Array:
        return scores

    @staticmethod
    def _log_probabilities(scores: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(scores))
