"""Objectives of fits, from public attributes only: functions of (case, model, X, y, weight)."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from tests.contract.case import Case


def squares(case: Case, model: Any, X: Any, y: Any, weight: Any) -> float:
    """The weighted sum of squared residuals, and alpha times the squared length of the coefficients."""
    alpha = np.asarray(getattr(model, "alpha_", getattr(model, "alpha", 0.0)))
    penalty = (alpha * (np.atleast_2d(model.coef_) ** 2).sum(axis=1)).sum()
    return float(case.loss(y, case.output(model, X), weight) + penalty)


def half_mean_square(case: Case, model: Any, X: Any, y: Any, weight: Any) -> float:
    """Half the mean of the squared residuals, and the penalty of the elastic net."""
    alpha, v = getattr(model, "alpha_", getattr(model, "alpha", 0.0)), model.coef_
    ratio = getattr(model, "l1_ratio_", getattr(model, "l1_ratio", 1.0))
    penalty = float(alpha * (ratio * np.abs(v).sum() + (1 - ratio) / 2 * (v**2).sum()))
    return case.loss(y, case.output(model, X), weight) / (2 * weight.sum()) + penalty


def half_deviance(case: Case, model: Any, X: Any, y: Any, weight: Any) -> float:
    """Half the deviance of the targets, or minus the logarithm of the likelihood of the classes, and the penalty."""
    if hasattr(model, "predictive"):  # what is minimised is the loss of the mode, not of an average
        model = copy.copy(model).set_params(predictive="map")
    if case.classifier:
        totals = dict(zip(model.classes_, (weight[y == c].sum() for c in model.classes_), strict=True))
        balanced = np.array([weight.sum() / (len(totals) * totals[label]) for label in y])
        weight = weight * balanced if getattr(model, "class_weight", None) == "balanced" else weight
        strength = 1.0 / getattr(model, "C_", getattr(model, "C", getattr(model, "prior_scale_", 1.0) ** 2))
    else:
        strength = model.alpha * weight.sum()
    ratio, v = getattr(model, "l1_ratio_", getattr(model, "l1_ratio", 0.0)), model.coef_
    penalty = strength * (ratio * np.abs(v).sum() + (1 - ratio) / 2 * (v**2).sum())
    return float(case.loss(y, case.output(model, X), weight) + penalty)


def joint_likelihood(case: Case, model: Any, X: Any, y: Any, weight: Any) -> float:
    """Negative log joint likelihood of rows and classes; given priors are excluded."""
    own = np.searchsorted(model.classes_, y)
    joint = model.predict_joint_log_proba(X)[np.arange(len(y)), own]
    given = getattr(model, "class_prior", getattr(model, "priors", None))
    return float(weight @ ((0.0 if given is None else np.log(given)[own]) - joint))


def widened_likelihood(case: Case, model: Any, X: Any, y: Any, weight: Any) -> float:
    """The same, with variances increased by epsilon."""
    widened = (model.epsilon_ / model.var_[np.searchsorted(model.classes_, y)]).sum(axis=1) / 2
    return joint_likelihood(case, model, X, y, weight) + float(weight @ widened)


def smoothed_likelihood(case: Case, model: Any, X: Any, y: Any, weight: Any) -> float:
    """The same, with the pseudo-counts of events; those of flags are of set and of unset ones."""
    tables = [*model.feature_log_prob_] if isinstance(model.feature_log_prob_, list) else [model.feature_log_prob_]
    if hasattr(model, "binarize"):
        tables.append(np.log1p(-np.exp(tables[0])))
    return joint_likelihood(case, model, X, y, weight) - model.alpha * float(sum(table.sum() for table in tables))


def mixed_likelihood(case: Case, model: Any, X: Any, y: Any, weight: Any) -> float:
    """The same for columns of all kinds."""
    return widened_likelihood(case, model, X, y, weight) - model.alpha * float(
        sum(table.sum() for table in model.category_log_prob_)
    )


def squares_within(case: Case, model: Any, X: Any, y: Any, weight: Any) -> float:
    """The sum of the squared distances of rows from the centroids of their classes."""
    away = X - model.centroids_[np.searchsorted(model.classes_, y)]
    return float(weight @ (away**2).sum(axis=1))


def machine_objective(case: Case, model: Any, X: Any, y: Any, weight: Any) -> float:
    """Half the squared length of the weights (and of the intercept), or the L1 norm, and C times all losses."""
    f = np.asarray(X @ np.atleast_2d(model.coef_).T + model.intercept_)
    if case.classifier:
        codes = np.searchsorted(model.classes_, y)
        first = 1 if f.shape[1] == 1 else 0
        signs = np.where(codes[:, None] == np.arange(first, first + f.shape[1]), 1.0, -1.0)
        over = np.maximum(1.0 - signs * f, 0.0)
    else:
        over = np.maximum(np.abs(y[:, None] - f) - model.epsilon, 0.0)
    over = over**2 if model.loss.startswith("squared") else over
    v = np.append(model.coef_, model.intercept_)
    penalty = np.abs(v).sum() if getattr(model, "penalty", "l2") == "l1" else 0.5 * v @ v
    return float(penalty + model.C * (weight @ over).sum())
