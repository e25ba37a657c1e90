"""Metrics available by name in `interval`, as functions of true values, predictions and weights of rows (or None).

Two classes are 0 and 1 (positive). With TP, FP, FN, TN the weights of rows by true and predicted class,

    recall = TP / (TP + FN),   fpr = FP / (FP + TN),   precision = TP / (TP + FP),   jaccard = TP / (TP + FP + FN)
    f_beta = (1 + beta^2) TP / ((1 + beta^2) TP + FP + beta^2 FN)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "CLASSES", "LABELS", "NUMBERS", "OF_SUMS", "OTHER_NAMES", "SCORES", "SHARES", "Metric", "Sums", "f_beta", "named",
    "names",
]  # fmt: skip

Array = NDArray[Any]
Weights = NDArray[np.float64] | None
Function = Callable[[Array, Array, Weights], float]


class Metric(NamedTuple):
    """A metric: its name, its function, the beta of an F score, and whether the function is one of this file."""

    name: str
    function: Function
    beta: float = 1.0
    is_own: bool = True


# Names of scikit-learn's functions and scorers, and other common ones.
OTHER_NAMES = {
    "accuracy_score": "accuracy", "average_precision_score": "average_precision",
    "balanced_accuracy_score": "balanced_accuracy", "brier_score_loss": "brier", "f1_score": "f1",
    "fbeta_score": "fbeta", "jaccard_score": "jaccard", "matthews_corrcoef": "matthews", "mean_absolute_error": "mae",
    "mean_squared_error": "mse", "precision_score": "precision", "r2_score": "r2", "recall_score": "recall",
    "roc_auc": "auc", "roc_auc_score": "auc", "root_mean_squared_error": "rmse", "sensitivity": "recall",
    "tnr": "specificity", "tpr": "recall", "zero_one_loss": "error",
}  # fmt: skip

# Proportions: rows of the numerator and of the denominator.
SHARES: dict[str, Callable[[Array, Array], tuple[Array, Array]]] = {
    "accuracy": lambda y, p: (y == p, np.ones(len(y), bool)),
    "error": lambda y, p: (y != p, np.ones(len(y), bool)),
    "recall": lambda y, p: (p == 1, y == 1),
    "fnr": lambda y, p: (p == 0, y == 1),
    "specificity": lambda y, p: (p == 0, y == 0),
    "fpr": lambda y, p: (p == 1, y == 0),
    "precision": lambda y, p: (y == 1, p == 1),
    "jaccard": lambda y, p: ((y == 1) & (p == 1), (y == 1) | (p == 1)),
}
CLASSES = {"accuracy", "error", "balanced_accuracy"}  # metrics of predicted labels, any number of classes
LABELS = {"recall", "fnr", "specificity", "fpr", "precision", "jaccard", "f1", "fbeta", "matthews"}  # two classes
SCORES = {"auc", "average_precision", "brier", "log_loss"}  # of scores, two classes
NUMBERS = {"rmse", "mse", "mae", "r2"}


def names() -> list[str]:
    """Return the names of all metrics."""
    return sorted(CLASSES | LABELS | SCORES | NUMBERS)


def named(name: str, beta: float) -> Metric:
    """Return a metric by one of `names`."""
    if name in ("f1", "fbeta"):
        value = 1.0 if name == "f1" else beta
        return Metric(name, lambda y, p, w: f_beta(y, p, w, value), value)
    if name in OF_SUMS:
        return Metric(name, _of_sums(OF_SUMS[name]))
    return Metric(name, _share_of(name) if name in SHARES else _FUNCTIONS[name])


def _share_of(name: str) -> Function:
    def value(y: Array, p: Array, w: Weights) -> float:
        wanted, among = SHARES[name](y, p)
        total = _total(among, w)
        return _total(wanted & among, w) / total if total else math.nan

    return value


def f_beta(y: Array, p: Array, w: Weights, beta: float = 1.0) -> float:
    """Return F_beta; NaN without positive rows and without positive predictions."""
    hits, false, missed = (_total(rows, w) for rows in ((y & p) == 1, (y < p), (y > p)))
    all_of = (1 + beta**2) * hits + false + beta**2 * missed
    return (1 + beta**2) * hits / all_of if all_of else math.nan


def _total(rows: Array, w: Weights) -> float:
    return float(np.count_nonzero(rows)) if w is None else float(w[rows].sum())


def _mean(values: Array, w: Weights) -> float:
    return float(values.mean()) if w is None else float(w @ values / w.sum())


def _matthews(y: Array, p: Array, w: Weights) -> float:
    a, b = _mean(y, w), _mean(p, w)
    spread = math.sqrt(a * (1 - a) * b * (1 - b))
    return (_mean(y * p, w) - a * b) / spread if spread else math.nan


def _balanced_accuracy(y: Array, p: Array, w: Weights) -> float:
    _, codes = np.unique(y, return_inverse=True)
    weight = np.bincount(codes, weights=w)
    hits = np.bincount(codes, weights=(y == p) if w is None else w * (y == p))
    return float(np.mean(hits[weight > 0] / weight[weight > 0]))


def _by_threshold(y: Array, p: Array, w: Weights) -> tuple[Array, Array]:
    """Return the weights of the positive and of the negative rows with each score, in descending order."""
    order = np.argsort(-p, kind="stable")
    weight = np.ones(len(y)) if w is None else w[order]
    last = np.flatnonzero(np.append(np.diff(p[order]) != 0, True))
    totals = (np.cumsum(weight * (y[order] == label))[last] for label in (1, 0))
    positive, negative = (np.diff(total, prepend=0.0) for total in totals)
    return positive, negative


def _auc(y: Array, p: Array, w: Weights) -> float:
    positive, negative = _by_threshold(y, p, w)
    pairs = positive.sum() * negative.sum()
    above = np.cumsum(positive) - positive / 2  # ties count half
    return float(above @ negative / pairs) if pairs else math.nan


def _average_precision(y: Array, p: Array, w: Weights) -> float:
    positive, negative = _by_threshold(y, p, w)
    hits = np.cumsum(positive)
    chosen = hits + np.cumsum(negative)
    precision = np.divide(hits, chosen, out=np.zeros(len(hits)), where=chosen > 0)
    return float(positive @ precision / hits[-1]) if hits[-1] else math.nan


def _log_losses(y: Array, p: Array) -> Array:
    least = np.finfo(np.float64).eps
    p = np.clip(p, least, 1 - least)
    return -np.where(y == 1, np.log(p), np.log1p(-p))


_FUNCTIONS: dict[str, Function] = {
    "auc": _auc,
    "average_precision": _average_precision,
    "balanced_accuracy": _balanced_accuracy,
    "matthews": _matthews,
}


# ------------------------------------------------------------------------------- metrics that are functions of sums


class Sums(NamedTuple):
    """A metric that is a function of sums over rows: the terms of each row, and the function of the sums (last axis).

    `rows` returns columns whose first is 1; all are multiplied by the weights.
    """

    rows: Callable[[Array, Array], Array]
    value: Callable[[Array], Array]


def _mean_of(losses: Callable[[Array, Array], Array]) -> Sums:
    return Sums(lambda y, p: np.column_stack([np.ones(len(y)), losses(y, p)]), lambda s: s[..., 1] / s[..., 0])


def _r2_rows(y: Array, p: Array) -> Array:
    centred = y - y.mean()
    return np.column_stack([np.ones(len(y)), (y - p) ** 2, centred, centred**2])


def _r2_of(s: Array) -> Array:
    spread = s[..., 3] - s[..., 2] ** 2 / s[..., 0]
    noise = 1e-14 * s[..., 3]  # for a constant target
    return np.asarray(1.0 - s[..., 1] / np.where(spread > noise, spread, math.nan))


_SQUARES = _mean_of(lambda y, p: (y - p) ** 2)
OF_SUMS: dict[str, Sums] = {
    "brier": _SQUARES,
    "log_loss": _mean_of(_log_losses),
    "mae": _mean_of(lambda y, p: np.abs(y - p)),
    "mse": _SQUARES,
    "r2": Sums(_r2_rows, _r2_of),
    "rmse": Sums(_SQUARES.rows, lambda s: np.sqrt(_SQUARES.value(s))),
}


def _of_sums(sums: Sums) -> Function:
    def value(y: Array, p: Array, w: Weights) -> float:
        rows = sums.rows(y, p)
        return float(sums.value(rows.sum(axis=0) if w is None else w @ rows))

    return value
