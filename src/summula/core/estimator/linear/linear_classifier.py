"""Base classes of linear classifiers, with scores s(x) = V x + b (see `core/estimator/classifier.py`).

A model that predicts classes from other scores overrides `_score_function` and the functions of scores.
"""

from __future__ import annotations

from typing import Any

from summula.core.estimator.classifier import ProbabilisticClassifier, ScoreClassifier
from summula.core.estimator.linear.factor_columns import counts_terms
from summula.core.estimator.linear.linear_predictor import LinearScores
from summula.core.model_files import schema

__all__ = ["LinearClassifier", "ProbabilityClassifier"]


def _counts_scores(model: Any, sizes: schema.Sizes) -> str | None:
    scores = 1 if sizes["n_classes"] == 2 else sizes["n_classes"]
    if sizes["n_scores"] != scores:
        return f"coef_ has {sizes['n_scores']} rows, but {sizes['n_classes']} classes need {scores}"
    return counts_terms(model, sizes)


@schema.state(
    _counts_scores,
    classes_=schema.Labels("n_classes", low=2),
    coef_=schema.Array("float", "n_scores", "n_terms") | schema.Sparse("n_scores", "n_terms"),
    intercept_=schema.Array("float", "n_scores"),
)
class LinearClassifier(LinearScores, ScoreClassifier):
    """Base class of classifiers with linear scores."""


class ProbabilityClassifier(ProbabilisticClassifier, LinearClassifier):
    """Base class of classifiers with linear scores and class probabilities."""
