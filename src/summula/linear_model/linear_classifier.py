"""Classes told apart by linear scores s(x) = V x + b, as `core/estimator/classifier.py` does it.

A model that tells classes by something else than linear scores says so in `_score_function`, and in what it makes of
these.
"""

from __future__ import annotations

from summula.core.estimator.classifier import ProbabilisticClassifier, ScoreClassifier
from summula.linear_model.linear_predictor import LinearScores

__all__ = ["LinearClassifier", "ProbabilityClassifier"]


class LinearClassifier(LinearScores, ScoreClassifier):
    """Classes by `coef_` and `intercept_`."""


class ProbabilityClassifier(ProbabilisticClassifier, LinearClassifier):
    """Classes, and their probabilities, by `coef_` and `intercept_`."""
