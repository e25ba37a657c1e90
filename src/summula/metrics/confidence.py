"""Confidence intervals of metrics on held-out rows.

    proportions   k of n rows: exact limits of Clopper and Pearson, each at (1 - confidence) / 2                   (1)
    AUC           DeLong's variance (`delong.py`), on the scale of log(A / (1 - A))                                (2)
    any metric    BCa bootstrap (`resampling.py`)                                                                  (3)

(1) is for metrics that are a share of rows: accuracy and error of all rows, recall (TPR) and FNR of the rows that are
positive, specificity and FPR of those that are negative, precision of those that are predicted positive. The numbers of
rows they divide by are taken as given.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.engine.random import draw_seed
from summula.core.errors import DataError, ParameterError
from summula.metrics.delong import delong_interval
from summula.metrics.resampling import bca_interval
from summula.stats.bounds import check_delta, clopper_pearson_bounds

__all__ = ["MetricInterval", "interval"]

Array = NDArray[Any]

_METHODS = ("auto", "clopper-pearson", "delong", "bca")
_OTHER_NAMES = {
    "tpr": "recall",
    "sensitivity": "recall",
    "tnr": "specificity",
    "roc_auc": "auc",
    "accuracy_score": "accuracy",
    "recall_score": "recall",
    "precision_score": "precision",
    "zero_one_loss": "error",
    "roc_auc_score": "auc",
}


@dataclass(frozen=True)
class MetricInterval:
    """A metric with a two-sided confidence interval.

    Attributes
    ----------
    metric : str
    estimate, lower, upper : float
    confidence : float
        Probability with which the interval contains the true value.
    method : {"clopper-pearson", "delong", "bca"}
    n : int
        Number of rows; of a proportion, those it is a share of.
    """

    metric: str
    estimate: float
    lower: float
    upper: float
    confidence: float
    method: str
    n: int

    def __str__(self) -> str:
        return (
            f"{self.metric} {self.estimate:.4g}, {100 * self.confidence:g} % confidence interval "
            f"[{self.lower:.4g}, {self.upper:.4g}] ({self.method}, n = {self.n:,})"
        )


def interval(
    metric: str | Callable[[Any, Any], float],
    y_true: Any,
    y_pred: Any,
    *,
    confidence: float = 0.95,
    method: str = "auto",
    pos_label: Any = None,
    n_resamples: int = 2000,
    random_state: Any = 0,
) -> MetricInterval:
    """Compute a metric and a confidence interval of its true value.

    Parameters
    ----------
    metric : str or callable
        "accuracy", "error", "recall" ("tpr"), "fnr", "specificity" ("tnr"), "fpr", "precision", "auc", "f1",
        "balanced_accuracy", "matthews", "average_precision", "brier", "log_loss", "rmse", "mse", "mae" or "r2";
        or a function of true values and predictions, such as those of scikit-learn.
    y_true : array-like of shape (n_samples,)
        True labels or numbers of rows that were not used to fit.
    y_pred : array-like of shape (n_samples,)
        Predicted labels or numbers; scores or probabilities of the positive class for "auc", "average_precision",
        "brier" and "log_loss".
    confidence : float, default=0.95
    method : {"auto", "clopper-pearson", "delong", "bca"}, default="auto"
        "auto" is exact for proportions, DeLong's for "auc", and the BCa bootstrap for others.
    pos_label : label, optional
        The positive class; by default the larger of the two labels.
    n_resamples : int, default=2000
        Number of bootstrap samples.
    random_state : int, Generator or None, default=0
        Seed of the bootstrap samples.

    Returns
    -------
    MetricInterval

    References
    ----------
    Clopper and Pearson (1934), Biometrika 26; DeLong, DeLong and Clarke-Pearson (1988), Biometrics 44; Efron (1987),
    "Better bootstrap confidence intervals", JASA 82.

    Examples
    --------
    >>> from summula import metrics
    >>> y_true, y_pred = [0] * 40 + [1] * 10, [0] * 38 + [1] * 2 + [1] * 9 + [0]
    >>> print(metrics.interval("accuracy", y_true, y_pred))
    accuracy 0.94, 95 % confidence interval [0.8345, 0.9875] (clopper-pearson, n = 50)
    >>> print(metrics.interval("recall", y_true, y_pred))
    recall 0.9, 95 % confidence interval [0.555, 0.9975] (clopper-pearson, n = 10)
    """
    confidence = check_delta(confidence, "confidence")
    name, function = _named(metric)
    if method not in _METHODS:
        raise ParameterError(f"method must be one of {', '.join(map(repr, _METHODS))}; got {method!r}.")
    suited = "clopper-pearson" if name in _PROPORTIONS else "delong" if name == "auc" else "bca"
    method = suited if method == "auto" else method
    if method not in (suited, "bca"):
        raise ParameterError(f"method={method!r} does not apply to {name!r}; use method='auto' or method='bca'.")
    y, p = _checked(y_true, y_pred)
    if name in _TWO_CLASSES:
        y, p = _as_positive(y, p, pos_label, name)
    if method == "clopper-pearson":
        k, n = _PROPORTIONS[name](y, p)
        if not n:
            raise DataError(f"{name!r} is a share of no rows here: {_EMPTY.get(name, 'there are none')}.")
        found = clopper_pearson_bounds(k, n, (1 - confidence) / 2)
        return MetricInterval(name, k / n, float(found.lower), float(found.upper), confidence, method, n)
    if method == "delong":
        limits = delong_interval(y, p, confidence)
    else:
        rng = np.random.default_rng(draw_seed(random_state))
        limits = bca_interval(function, y, p, confidence=confidence, n_resamples=n_resamples, rng=rng)
    return MetricInterval(name, *limits, confidence, method, len(y))


# ------------------------------------------------------------------------------------------------- metrics by name


def _share(wanted: Array, among: Array) -> tuple[int, int]:
    return int((wanted & among).sum()), int(among.sum())


def _all(y: Array) -> Array:
    return np.ones(len(y), bool)


_PROPORTIONS: dict[str, Callable[[Array, Array], tuple[int, int]]] = {
    "accuracy": lambda y, p: _share(y == p, _all(y)),
    "error": lambda y, p: _share(y != p, _all(y)),
    "recall": lambda y, p: _share(p == 1, y == 1),
    "fnr": lambda y, p: _share(p == 0, y == 1),
    "specificity": lambda y, p: _share(p == 0, y == 0),
    "fpr": lambda y, p: _share(p == 1, y == 0),
    "precision": lambda y, p: _share(y == 1, p == 1),
}
_EMPTY = {"recall": "no row is positive", "fnr": "no row is positive", "specificity": "no row is negative",
          "fpr": "no row is negative", "precision": "no row is predicted positive"}  # fmt: skip
_LABELS = {"recall", "fnr", "specificity", "fpr", "precision", "f1", "matthews"}  # of predicted labels, two classes
_SCORES = {"auc", "average_precision", "brier", "log_loss"}  # of scores, two classes
_TWO_CLASSES = _LABELS | _SCORES


def _proportion(name: str) -> Callable[[Array, Array], float]:
    def value(y: Array, p: Array) -> float:
        k, n = _PROPORTIONS[name](y, p)
        return k / n if n else math.nan

    return value


def _f1(y: Array, p: Array) -> float:
    hits, all_positive = int((y & p).sum()), int(y.sum()) + int(p.sum())
    return 2 * hits / all_positive if all_positive else math.nan


def _matthews(y: Array, p: Array) -> float:
    spread = float(y.std() * p.std())
    return float((y * p).mean() - y.mean() * p.mean()) / spread if spread else math.nan


def _balanced_accuracy(y: Array, p: Array) -> float:
    _, codes = np.unique(y, return_inverse=True)
    counts = np.bincount(codes)
    return float(np.mean(np.bincount(codes, weights=y == p) / counts))


def _r2(y: Array, p: Array) -> float:
    spread = float(((y - y.mean()) ** 2).sum())
    return 1.0 - float(((y - p) ** 2).sum()) / spread if spread else math.nan


def _of_sklearn(name: str) -> Callable[[Array, Array], float]:
    def value(y: Array, p: Array) -> float:
        import sklearn.metrics

        if y.min() == y.max():
            return math.nan
        return float(getattr(sklearn.metrics, name)(y, p))

    return value


_FUNCTIONS: dict[str, Callable[[Array, Array], float]] = {
    **{name: _proportion(name) for name in _PROPORTIONS},
    "auc": _of_sklearn("roc_auc_score"),
    "average_precision": _of_sklearn("average_precision_score"),
    "log_loss": _of_sklearn("log_loss"),
    "brier": lambda y, p: float(np.mean((y - p) ** 2)),
    "f1": _f1,
    "matthews": _matthews,
    "balanced_accuracy": _balanced_accuracy,
    "mse": lambda y, p: float(np.mean((y - p) ** 2)),
    "rmse": lambda y, p: math.sqrt(float(np.mean((y - p) ** 2))),
    "mae": lambda y, p: float(np.mean(np.abs(y - p))),
    "r2": _r2,
}


def _named(metric: Any) -> tuple[str, Callable[[Array, Array], float]]:
    """Return the name of a metric and its function; functions of scikit-learn with a closed form by that form."""
    if callable(metric):
        name = getattr(metric, "__name__", type(metric).__name__)
        known = _OTHER_NAMES.get(name)
        if known is None or getattr(metric, "__module__", "").split(".")[0] != "sklearn":
            return name, metric
        return known, _FUNCTIONS[known]
    name = _OTHER_NAMES.get(metric, metric)
    if name not in _FUNCTIONS:
        raise ParameterError(
            f"metric must be a function of (y_true, y_pred) or one of {', '.join(sorted(_FUNCTIONS))}; got {metric!r}."
        )
    return name, _FUNCTIONS[name]


# ----------------------------------------------------------------------------------------------------- the rows


def _checked(y_true: Any, y_pred: Any) -> tuple[Array, Array]:
    y, p = np.asarray(y_true), np.asarray(y_pred)
    if y.ndim != 1 or not len(y) or len(p) != len(y):
        raise DataError(
            f"y_true and y_pred need one value per row, of at least one row; they have shapes {y.shape} and {p.shape}."
        )
    for name, values in (("y_true", y), ("y_pred", p)):
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            row = int(np.argmin(np.isfinite(values).reshape(len(values), -1).all(axis=1)))
            raise DataError(f"{name} is missing or infinite at row {row}; metrics need finite values: drop such rows.")
    return y, p


def _as_positive(y: Array, p: Array, pos_label: Any, name: str) -> tuple[Array, Array]:
    """Return 0 and 1 for negative and positive labels."""
    seen = np.unique(np.concatenate([y, p]) if name in _LABELS else y)
    if pos_label is None:
        if len(seen) > 2:
            raise ParameterError(f"{name!r} is for two classes, and there are {len(seen)}: give pos_label.")
        pos_label = seen[-1]
        if len(seen) == 1 and seen[0] in (0, -1):
            pos_label = 1
    elif pos_label not in seen and name not in _LABELS:
        raise ParameterError(f"pos_label={pos_label!r} does not occur in y_true; its labels are {seen.tolist()}.")
    if name in _SCORES:
        if p.ndim != 1 or p.dtype.kind not in "fiub":
            raise DataError(f"{name!r} needs one score per row: the probability of the positive class, as numbers.")
        return (y == pos_label).astype(np.int64), p.astype(np.float64)
    return (y == pos_label).astype(np.int64), (p == pos_label).astype(np.int64)
