"""Predictions of boosted models after each stage; subclasses implement `_staged_scores`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from summula.core.docstrings import inherit_docs
from summula.core.estimator.classifier import ProbabilisticClassifier, ScoreClassifier

__all__ = ["FIT_DOCS", "StagedClassifier", "StagedPredictions"]

Array = NDArray[Any]

FIT_DOCS = """
Parameters
----------
X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)
    Training data. Trees treat NaN as missing and infinities as the extreme values of their column, and store sparse
    rows as dense columns.
y : array-like of shape (n_samples,), or name of a column of X
    Class labels of any type, or targets.
sample_weight : array-like of shape (n_samples,), float, or name of a column of X, optional
    Sample weights; rows of weight 0 are ignored.
"""


class StagedPredictions:
    """Mixin of models whose scores are sums over stages."""

    def _staged_scores(self, X: Any) -> Iterator[Array]:
        """Yield the scores after each stage, shape (n_samples, n_scores)."""
        raise NotImplementedError

    def _from_scores(self, scores: Array) -> Array:
        """Return the predictions for scores of shape (n_samples, n_scores)."""
        raise NotImplementedError

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """Predict after each stage.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)

        Yields
        ------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return (self._from_scores(scores) for scores in self._staged_scores(X))


class StagedClassifier(StagedPredictions, ProbabilisticClassifier, ScoreClassifier):
    """Base class of boosted classifiers."""

    def _from_scores(self, scores: Array) -> Array:
        return np.asarray(self.classes_[self._winners(scores)])

    @inherit_docs(StagedPredictions.staged_predict)
    def staged_predict_proba(self, X: Any) -> Iterator[Array]:
        """Predict class probabilities after each stage.

        Yields
        ------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        return (self._probabilities(scores) for scores in self._staged_scores(X))

    @inherit_docs(StagedPredictions.staged_predict)
    def staged_decision_function(self, X: Any) -> Iterator[Array]:
        """Compute scores after each stage.

        Yields
        ------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        check_is_fitted(self)
        return (self._decided(scores) for scores in self._staged_scores(X))
