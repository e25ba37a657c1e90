"""How predictions are judged: a loss a row, its mean when candidates are compared, and a range so that it is certified.

    error      [y != f],  or the cost of taking y for f where costs are given
    log_loss   -log p(y), by the model's probabilities (compared only: a certificate counts errors)
    absolute   |y - f|,   squared   (y - f)^2

Losses of numbers have no bound of their own. Predictions are held within the range [a, b] of the training target, and a
loss counts as at most that of b - a; so what is certified is the mean of min(loss, cap).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import ParameterError

__all__ = ["METRICS", "CappedLoss", "certified", "metric_for", "risk_of"]

Array = NDArray[Any]

METRICS = {"classes": ("error", "log_loss"), "numbers": ("absolute", "squared")}
_TINY = 1e-15


def metric_for(kind: str, wanted: str | None) -> str:
    """The metric a user means."""
    wanted = {"accuracy": "error"}.get(wanted, wanted) if wanted else METRICS[kind][0]
    if wanted not in METRICS[kind]:
        raise ParameterError(
            f"--metric {wanted} is not for {kind}; choose {' or '.join(METRICS[kind])}, or say what the target is "
            "with --task."
        )
    return wanted


class Judged(NamedTuple):
    """A metric with costs and classes."""

    metric: str
    classes: Array | None
    costs: Array | None

    def losses(self, model: Any, X: Array, y: Array) -> Array:
        """The loss of a fitted model on each of some encoded rows."""
        if self.metric == "log_loss":
            places = _places(model.classes_, y)
            p = model.predict_proba(X)[np.arange(len(y)), np.maximum(places, 0)]
            return np.asarray(-np.log(np.maximum(np.where(places < 0, 0.0, p), _TINY)))
        if self.costs is not None and self.classes is not None:
            p = np.zeros((len(y), len(self.classes)))
            p[:, _places(self.classes, model.classes_)] = model.predict_proba(X)
            return np.asarray(self.costs[_places(self.classes, y), (p @ self.costs).argmin(axis=1)])
        return losses_of(self.metric, y, np.asarray(model.predict(X)))


def _places(classes: Array, y: Array) -> NDArray[np.intp]:
    known = {label: place for place, label in enumerate(np.asarray(classes).tolist())}
    return np.array([known.get(label, -1) for label in np.asarray(y).tolist()], np.intp)


def losses_of(metric: str, y: Array, predicted: Array) -> Array:
    """The loss of each prediction."""
    if metric in ("error", "log_loss"):
        return np.asarray(predicted != y, np.float64)
    away = predicted - y
    return np.asarray(away**2 if metric == "squared" else np.abs(away))


def risk_of(metric: str, y: Array, predicted: Array) -> float:
    """The mean of a loss of predictions."""
    return float(losses_of(metric, y, predicted).mean())


class CappedLoss:
    """The absolute or squared error, at most `cap`."""

    def __init__(self, metric: str, cap: float) -> None:
        self.metric, self.cap = metric, cap
        self.__qualname__ = f"{metric} error, at most {cap:g}"

    def __call__(self, y: Any, predicted: Any) -> Array:
        away = np.abs(np.asarray(predicted, np.float64) - np.asarray(y, np.float64))
        return np.asarray(np.minimum(away**2 if self.metric == "squared" else away, self.cap))


def certified(model: Any, X: Any, y: Any, delta: float) -> Any:
    """A certificate of the true risk of a table model, by the metric it was chosen by."""
    from summula.certification import certify

    if model.low is None:
        return certify(model, X, y, costs=model.costs, delta=delta)
    width = model.high - model.low
    cap = width**2 if model.metric == "squared" else width
    return certify(model, X, y, loss=CappedLoss(model.metric, cap), range=(0.0, cap), delta=delta)
