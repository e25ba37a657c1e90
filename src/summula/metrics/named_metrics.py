"""Metrics that `interval` knows by name, as functions of true values, predictions and weights of rows (or None).

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

__all__ = ["CLASSES", "LABELS", "NUMBERS", "OTHER_NAMES", "SCORES", "SHARES", "Metric", "f_beta", "named", "names"]

Array = NDArray[Any]
Weights = NDArray[np.float64] | None
Function = Callable[[Array, Array, Weights], float]


class Metric(NamedTuple):
    """A metric: its name, its function, and the beta of an F score."""

    name: str
    function: Function
    beta: float = 1.0


# Names of scikit-learn's functions and scorers, and other usual ones.
OTHER_NAMES = {
    "accuracy_score": "accuracy", "average_precision_score": "average_precision",
    "balanced_accuracy_score": "balanced_accuracy", "brier_score_loss": "brier", "f1_score": "f1",
    "fbeta_score": "fbeta", "jaccard_score": "jaccard", "matthews_corrcoef": "matthews", "mean_absolute_error": "mae",
    "mean_squared_error": "mse", "precision_score": "precision", "r2_score": "r2", "recall_score": "recall",
    "roc_auc": "auc", "roc_auc_score": "auc", "root_mean_squared_error": "rmse", "sensitivity": "recall",
    "tnr": "specificity", "tpr": "recall", "zero_one_loss": "error",
}  # fmt: skip

# Shares of rows: which rows are counted, and among which.
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
CLASSES = {"accuracy", "error", "balanced_accuracy"}  # of predicted labels, any number of classes
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


def _r2(y: Array, p: Array, w: Weights) -> float:
    spread = _mean((y - _mean(y, w)) ** 2, w)
    return 1.0 - _mean((y - p) ** 2, w) / spread if spread else math.nan


def _log_loss(y: Array, p: Array, w: Weights) -> float:
    least = np.finfo(np.float64).eps
    p = np.clip(p, least, 1 - least)
    return -_mean(np.where(y == 1, np.log(p), np.log1p(-p)), w)


def _of_sklearn(name: str) -> Function:
    def value(y: Array, p: Array, w: Weights) -> float:
        import sklearn.metrics

        if y.min() == y.max():
            return math.nan
        return float(getattr(sklearn.metrics, name)(y, p, sample_weight=w))

    return value


_FUNCTIONS: dict[str, Function] = {
    "auc": _of_sklearn("roc_auc_score"),
    "average_precision": _of_sklearn("average_precision_score"),
    "balanced_accuracy": _balanced_accuracy,
    "brier": lambda y, p, w: _mean((y - p) ** 2, w),
    "log_loss": _log_loss,
    "mae": lambda y, p, w: _mean(np.abs(y - p), w),
    "matthews": _matthews,
    "mse": lambda y, p, w: _mean((y - p) ** 2, w),
    "r2": _r2,
    "rmse": lambda y, p, w: math.sqrt(_mean((y - p) ** 2, w)),
}
