"""The bounded loss of the certificate of a table model, the certificate itself, and the comparison with the baseline.

The certificate bounds the mean of a bounded loss per row: errors, or costs if given, for classes; for
numbers the absolute error (or the squared one, where that is the metric). Predictions of numbers are clipped to the
range [a, b] of the training target or a narrower one, and a loss counts as at most that of b - a.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.certification.fingerprints import model_hash
from summula.certification.holdout import KnownDifferences, certificate_of, comparison_of
from summula.certification.rows import loss_named, mean_by_group, measure
from summula.stats.bounds import check_delta
from summula.training.comparison.metrics import METRICS, LeftOut, codes_of

__all__ = ["CappedLoss", "HoldoutEvaluation", "certified_loss", "evaluate_on_holdout", "known_differences", "risk_of"]

Array = NDArray[Any]


def risk_of(metric: str, y: Array, predicted: Array, classes: Array | None = None, costs: Array | None = None) -> float:
    """Return the mean of the certified loss: errors or costs for classes, absolute or squared errors for numbers.

    Parameters
    ----------
    metric : str
    y, predicted : ndarray
    classes, costs : ndarray, optional
        Sorted classes, and costs[predicted class, true class].
    """
    if costs is not None and classes is not None:
        return float(np.mean(costs[codes_of(classes, predicted), codes_of(classes, y)]))
    if METRICS[metric].kind == "classes":
        return float(np.mean(predicted != y))
    away = np.abs(np.asarray(predicted, np.float64) - y)
    return float(np.mean(away**2 if metric == "squared" else away))


class CappedLoss:
    """The absolute or squared error, at most `cap`."""

    def __init__(self, metric: str, cap: float) -> None:
        self.metric, self.cap = metric, cap
        self.__qualname__ = f"{metric} error, at most {cap:g}"

    def __call__(self, y: Any, predicted: Any) -> Array:
        away = np.abs(np.asarray(predicted, np.float64) - np.asarray(y, np.float64))
        return np.asarray(np.minimum(away**2 if self.metric == "squared" else away, self.cap))


def certified_loss(model: Any) -> dict[str, Any]:
    """Return the loss certified for a table model, as arguments of `certify`."""
    if model.low is None:
        return {"loss": "zero_one", "range": None, "costs": model.costs}
    width = model.high - model.low
    squared = model.metric == "squared"
    cap = width**2 if squared else width
    return {"loss": CappedLoss("squared" if squared else "absolute", cap), "range": (0.0, cap), "costs": None}


class HoldoutEvaluation(NamedTuple):
    """A certificate from held-out rows, and a comparison with the baseline, or None."""

    certificate: Any
    comparison: Any


def known_differences(model: Any, constant: Any, folds: Iterable[tuple[LeftOut, LeftOut]]) -> KnownDifferences | None:
    """Return limits of the loss of a table model minus that of a constant c, and its differences in cross-validation.

    Let f be the prediction, clipped to a known range, so that |f - c| <= D with D known, and w >= D the width of the
    range of the training target. Losses are at most w (absolute) or w^2 (squared). As | |y - f| - |y - c| | <= |f - c|,
    differences of absolute errors are at most D. Differences of squared errors (y - f)^2 - (y - c)^2 grow with the
    distance of y from both, until the larger error is capped at w^2 and the other is (w - |f - c|)^2; so they are at
    most w^2 - (w - D)^2 = D (2 w - D). Costs are looked up.

    Parameters
    ----------
    model : TableModel
    constant : float or label
        The prediction of the baseline.
    folds : iterable of (LeftOut, LeftOut)
        Out-of-fold predictions of the model and of the baseline.

    Returns
    -------
    KnownDifferences or None
        None for errors of classes, which are counted.
    """
    if model.low is None and model.costs is None:
        return None
    if model.low is None:
        costs: Array = np.asarray(model.costs, np.float64)
        change = costs - costs[codes_of(model.classes_, np.array([constant], object))]
        found = [costs[_cheapest(a.output, costs), a.y] - costs[_cheapest(b.output, costs), b.y] for a, b in folds]
        return KnownDifferences(float(change.min()), float(change.max()), _together(found))
    loss, width = certified_loss(model)["loss"], model.high - model.low
    low, high = model.prediction_range
    reach = max(high - constant, constant - low)
    most = reach * (2 * width - reach) if loss.metric == "squared" else reach

    def losses(rows: LeftOut) -> Array:
        return np.asarray(loss(rows.y, np.clip(rows.output, low, high)))

    return KnownDifferences(-most, most, _together([losses(a) - losses(b) for a, b in folds]))


def _cheapest(output: Array, costs: Array) -> NDArray[np.intp]:
    return np.asarray((output @ costs.T).argmin(axis=1))


def _together(pieces: list[Array]) -> Array | None:
    return np.concatenate(pieces) if pieces else None


def evaluate_on_holdout(
    model: Any,
    baseline: Any,
    X: Any,
    y: Any,
    delta: float,
    groups: Array | None = None,
    folds: Iterable[tuple[LeftOut, LeftOut]] = (),
    predictor: Any = None,
) -> HoldoutEvaluation:
    """Certify a table model on rows that are known to be held out, and compare it with a baseline.

    Parameters
    ----------
    model : TableModel
    baseline : object with `predict` and the fitted `model`, or None
    X, y
        The held-out rows, as `certify` takes them.
    delta : float
    groups : ndarray, optional
        The groups of the rows.
    folds : iterable of (LeftOut, LeftOut)
        Out-of-fold predictions of the model and of the baseline.
    predictor : object with `predict`, optional
        Gives the predictions of the model for X, from encoded rows.
    """
    loss, delta = loss_named(**certified_loss(model)), check_delta(delta)
    measured = model if predictor is None else predictor
    rows = measure([measured] if baseline is None else [measured, baseline], X, y, loss)
    own = rows._replace(losses=rows.losses[:, :1])
    certificate = certificate_of(model, own, loss, delta, groups)
    if baseline is None:
        return HoldoutEvaluation(certificate, None)
    hashes = certificate.model_hash, model_hash(baseline.model)
    if groups is not None:  # rows of a group are dependent, group means are not
        rows, loss, folds = mean_by_group(rows, groups), replace(loss, binary=False), ()
    known = known_differences(model, baseline.value, folds)
    return HoldoutEvaluation(certificate, comparison_of(model, baseline, rows, loss, delta, hashes, known))
