"""Confidence intervals of metrics on held-out rows.

    proportions      exact limits of Clopper and Pearson; with weights those of Korn and Graubard (`shares.py`)     (1)
    AUC              DeLong's variance (`delong.py`), on the scale of log(A / (1 - A))                              (2)
    any metric       BCa bootstrap (`resampling.py`)                                                                (3)

(1) is for metrics that are proportions of rows, or functions of one: accuracy and error of all rows, recall (TPR) and
FNR of positive rows, specificity and FPR of negative rows, precision of rows predicted positive, Jaccard index and F1
of rows that are either. The intervals are conditional on the numbers of rows in the denominators.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.engine.random import draw_seed
from summula.core.errors import DataError, ParameterError
from summula.core.estimator.input.argument_values import is_choice
from summula.metrics.confusion import confusion_limits
from summula.metrics.delong import delong_interval
from summula.metrics.named_metrics import (
    CLASSES,
    LABELS,
    NUMBERS,
    OF_SUMS,
    OTHER_NAMES,
    SCORES,
    SHARES,
    Metric,
    Weights,
    named,
    names,
)
from summula.metrics.resampling import bca_interval
from summula.metrics.shares import faultless_limits, share_limits
from summula.stats.bounds import check_delta

__all__ = ["MetricInterval", "interval"]

Array = NDArray[Any]

_OR_BCA = " or method='bca'"
_METHODS = ("auto", "clopper-pearson", "korn-graubard", "delong", "bca")
_EXACT = {*SHARES, "f1", "confusion_matrix"}
_EMPTY = {
    "recall": "no row is positive", "fnr": "no row is positive", "specificity": "no row is negative",
    "fpr": "no row is negative", "precision": "no row is predicted positive",
    "f1": "no row is positive or predicted positive", "jaccard": "no row is positive or predicted positive",
}  # fmt: skip


@dataclass(frozen=True)
class MetricInterval:
    """A metric with a two-sided confidence interval.

    Attributes
    ----------
    metric : str
    estimate, lower, upper : float, or ndarray of shape (n_classes, n_classes) for a confusion matrix
    confidence : float
        Probability with which the interval contains the true value.
    method : {"clopper-pearson", "korn-graubard", "delong", "bca"}
    n : int
        Number of rows; for a proportion, those in its denominator.
    """

    metric: str
    estimate: Any
    lower: Any
    upper: Any
    confidence: float
    method: str
    n: int

    def __str__(self) -> str:
        if np.ndim(self.estimate) == 2:
            entries = np.stack([self.estimate, self.lower, self.upper], axis=2)
            cells = [[f"{e:.4g} [{a:.4g}, {b:.4g}]" for e, a, b in row] for row in entries.tolist()]
            width = max(len(cell) for row in cells for cell in row)
            how = f"confidence interval of each entry ({self.method}, n = {self.n:,})"
            return "\n".join(
                [
                    f"{self.metric}, {100 * self.confidence:g} % {how}",
                    *("  ".join(f"{cell:<{width}}" for cell in row).rstrip() for row in cells),
                ]
            )
        return (
            f"{self.metric} {self.estimate:.4g}, {100 * self.confidence:g} % confidence interval "
            f"[{self.lower:.4g}, {self.upper:.4g}] ({self.method}, n = {self.n:,})"
        )


def interval(
    metric: str | Callable[..., float],
    y_true: Any,
    y_pred: Any,
    *,
    sample_weight: Any = None,
    confidence: float = 0.95,
    method: str = "auto",
    pos_label: Any = None,
    n_resamples: int = 2000,
    random_state: Any = 0,
    **options: Any,
) -> MetricInterval:
    """Compute a metric and a confidence interval of its true value.

    Parameters
    ----------
    metric : str or callable
        "accuracy", "error", "recall" ("tpr"), "fnr", "specificity" ("tnr"), "fpr", "precision", "jaccard", "f1",
        "fbeta", "matthews", "balanced_accuracy", "auc" ("roc_auc"), "average_precision", "brier", "log_loss", "rmse",
        "mse", "mae", "r2" or "confusion_matrix"; the name of a function or scorer of scikit-learn, such as
        "recall_score" or "f1_macro"; or a function of true values and predictions, scikit-learn's or your own.
    y_true : array-like of shape (n_samples,)
        True labels or numbers of rows that were not used to fit.
    y_pred : array-like of shape (n_samples,)
        Predicted labels or numbers; scores or probabilities of the positive class for "auc", "average_precision",
        "brier" and "log_loss".
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows, such as inverse probabilities of having been sampled. (Numbers of repetitions are not
        weights in this sense: repeat the rows instead.)
    confidence : float, default=0.95
    method : {"auto", "clopper-pearson", "korn-graubard", "delong", "bca"}, default="auto"
        "auto" is "clopper-pearson" for proportions and "f1", which is exact, or with weights "korn-graubard";
        "delong" for "auc" without weights; and the BCa bootstrap for others.
    pos_label : label, optional
        The positive class; by default the larger of the two labels. Functions of scikit-learn have their own default.
    n_resamples : int, default=2000
        Number of bootstrap samples.
    random_state : int, Generator or None, default=0
        Seed of the bootstrap samples.
    **options
        Passed to the metric: `beta` of "fbeta", `labels` and `normalize` of "confusion_matrix", or any parameter of a
        function, such as `average="macro"`.

    Returns
    -------
    MetricInterval

    References
    ----------
    Clopper and Pearson (1934), Biometrika 26; Korn and Graubard (1998), Survey Methodology 24; DeLong, DeLong and
    Clarke-Pearson (1988), Biometrics 44; Efron (1987), "Better bootstrap confidence intervals", JASA 82.

    Examples
    --------
    >>> from summula import metrics
    >>> y_true, y_pred = [0] * 40 + [1] * 10, [0] * 38 + [1] * 2 + [1] * 9 + [0]
    >>> print(metrics.interval("accuracy", y_true, y_pred))
    accuracy 0.94, 95 % confidence interval [0.8345, 0.9875] (clopper-pearson, n = 50)
    >>> print(metrics.interval("recall", y_true, y_pred))
    recall 0.9, 95 % confidence interval [0.555, 0.9975] (clopper-pearson, n = 10)
    >>> print(metrics.interval(metrics.fbeta_score, y_true, y_pred, beta=2))
    fbeta 0.8824, 95 % confidence interval [0.5485, 0.9821] (bca, n = 50)
    """
    confidence = check_delta(confidence, "confidence")
    y, p, w = _checked(y_true, y_pred, sample_weight)
    if "confusion_matrix" in (metric, getattr(metric, "__name__", "")):
        method = _method(method, "confusion_matrix", w)
        limits = confusion_limits(y, p, w, confidence, options)
        return MetricInterval("confusion_matrix", *limits, confidence, method, len(y))
    known, pos_label = _resolved(metric, y, p, pos_label, options)
    method = _method(method, known.name, w)
    if known.name in LABELS | SCORES:
        y, p = _as_positive(y, p, pos_label, known.name)
    elif known.name in NUMBERS:
        y, p = _as_numbers(y, "y_true"), _as_numbers(p, "y_pred")
    if method in ("clopper-pearson", "korn-graubard"):
        limits, n = share_limits(known.name, y, p, w, confidence)
        if not n:
            raise DataError(f"{known.name!r} is undefined for these rows: {_EMPTY.get(known.name, 'there are none')}.")
        return MetricInterval(known.name, *limits, confidence, method, n)
    if method == "delong":
        return MetricInterval(known.name, *delong_interval(y, p, confidence), confidence, method, len(y))
    faultless = faultless_limits(known.name, y, p, known.beta, confidence) if w is None else None
    if faultless is not None:
        return MetricInterval(known.name, *faultless, confidence, "clopper-pearson", len(y))
    limits = bca_interval(
        known.function, y, p, w, confidence=confidence, n_resamples=n_resamples,
        rng=np.random.default_rng(draw_seed(random_state)), labels=known.is_own and known.name in LABELS | CLASSES,
        sums=OF_SUMS.get(known.name) if known.is_own else None,
    )  # fmt: skip
    return MetricInterval(known.name, *limits, confidence, method, len(y))


def _method(method: str, name: str, w: Weights) -> str:
    """Return the method to use."""
    if not is_choice(method, _METHODS):
        raise ParameterError(f"method must be one of {', '.join(map(repr, _METHODS))}; got {method!r}.")
    suited = "bca"
    if name in _EXACT:
        suited = "clopper-pearson" if w is None else "korn-graubard"
    elif name == "auc" and w is None:
        suited = "delong"
    method = suited if method == "auto" else method
    others = () if name == "confusion_matrix" else ("bca",)
    if method not in (suited, *others):
        weighted = "" if w is None else " with weights"
        raise ParameterError(
            f"method={method!r} does not apply to {name!r}{weighted}; use method='auto'{_OR_BCA if others else ''}."
        )
    return method


# ------------------------------------------------------------------------------------------------- the metric


def _resolved(metric: Any, y: Array, p: Array, pos_label: Any, options: dict[str, Any]) -> tuple[Metric, Any]:
    """Return the metric, with its own function if it is known by name, and its positive label."""
    while isinstance(metric, functools.partial) and not metric.args:
        metric, options = metric.func, {**metric.keywords, **options}
        pos_label = options.pop("pos_label", pos_label)
    if isinstance(metric, str):
        metric, options = _of_scorer(metric, options)
        name = OTHER_NAMES.get(metric, metric)
        if name in names() and set(options) <= ({"beta"} if name == "fbeta" else set()):
            return named(name, _beta(name, options)), pos_label
        metric = _function_of_sklearn(metric, name)
    elif not callable(metric):
        raise ParameterError(f"metric must be a name or a function of (y_true, y_pred); got {metric!r}.")
    name = OTHER_NAMES.get(getattr(metric, "__name__", ""), "")
    is_known = name in names() and getattr(metric, "__module__", "").split(".")[0] == "sklearn" and np.ndim(p) == 1
    is_known = is_known and not (name == "matthews" and len(np.unique(np.concatenate([y, p]))) > 2)
    if is_known and set(options) <= ({"beta"} if name == "fbeta" else set()):
        return named(name, _beta(name, options)), _label_of_sklearn(name, y, p, pos_label)
    return _wrapped(metric, pos_label, options), pos_label


def _of_scorer(metric: str, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the name and the options of a metric for a scorer of several classes, such as "f1_macro"."""
    base, _, last = metric.rpartition("_")
    if base in ("f1", "jaccard", "precision", "recall") and last in ("macro", "micro", "weighted", "samples"):
        return base, {"average": last, **options}
    if metric in ("roc_auc_ovr", "roc_auc_ovo"):
        return "roc_auc", {"multi_class": last, **options}
    return metric, options


def _function_of_sklearn(metric: str, name: str) -> Any:
    """Return scikit-learn's function for a name of its own or of `names`."""
    import sklearn.metrics

    usual = next((long for long, short in OTHER_NAMES.items() if short == name and hasattr(sklearn.metrics, long)), "")
    for one in (metric, usual, f"{metric}_score"):
        if one in sklearn.metrics.__all__ and inspect.isfunction(getattr(sklearn.metrics, one)):
            return getattr(sklearn.metrics, one)
    hint = f" ({metric!r} is a scorer: leave out 'neg_')" if metric.startswith("neg_") else ""
    raise ParameterError(
        "metric must be a function of (y_true, y_pred), the name of one of scikit-learn, or one of "
        f"{', '.join(names())}; got {metric!r}{hint}."
    )


def _beta(name: str, options: dict[str, Any]) -> float:
    if name != "fbeta":
        return 1.0
    beta = options.get("beta")
    if not isinstance(beta, float | int | np.number) or isinstance(beta, bool) or not 0 < float(beta) < np.inf:
        raise ParameterError(f"'fbeta' needs a positive number beta, such as beta=2; got {beta!r}.")
    return float(beta)


def _label_of_sklearn(name: str, y: Array, p: Array, pos_label: Any) -> Any:
    """Return the positive label of a function of scikit-learn: 1 by default, except for areas under the ROC curve."""
    if pos_label is not None or name in ("auc", "matthews") or name not in LABELS | SCORES:
        return pos_label
    labels = np.unique(np.concatenate([y, p]) if name in LABELS else y)
    if len(labels) > 2:
        raise ParameterError(f"{name!r} is for two classes, and there are {len(labels)}: give pos_label, or average=.")
    if 1 not in labels.tolist() and not set(labels.tolist()) <= {0, -1}:
        raise ParameterError(f"The labels are {labels.tolist()}: give pos_label, the one that is the positive class.")
    return 1


def _wrapped(metric: Callable[..., Any], pos_label: Any, options: dict[str, Any]) -> Metric:
    """Return any function as a metric."""
    name = getattr(metric, "__name__", type(metric).__name__)
    options = options if pos_label is None else {"pos_label": pos_label, **options}

    def value(y: Array, p: Array, w: Weights) -> float:
        weights = {} if w is None else {"sample_weight": w}
        found = metric(y, p, **weights, **options)
        if np.ndim(found) != 0 or not isinstance(found, Real | np.ndarray):
            raise ParameterError(
                f"{name} does not return one number: choose a class or an average, such as pos_label=1 or "
                "average='macro', or pass a function that returns a number."
            )
        return float(found)

    return Metric(name, value, is_own=False)


# ----------------------------------------------------------------------------------------------------- the rows


def _checked(y_true: Any, y_pred: Any, sample_weight: Any) -> tuple[Array, Array, Weights]:
    y, p = np.asarray(y_true), np.asarray(y_pred)
    if y.ndim != 1 or not len(y) or p.ndim < 1 or len(p) != len(y):
        raise DataError(
            f"y_true and y_pred need one value per row, of at least one row; they have shapes {y.shape} and {p.shape}."
        )
    for name, values in (("y_true", y), ("y_pred", p)):
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            row = int(np.argmin(np.isfinite(values).reshape(len(values), -1).all(axis=1)))
            raise DataError(f"{name} is missing or infinite at row {row}; metrics need finite values: drop such rows.")
    if sample_weight is None:
        return y, p, None
    w = _as_numbers(np.asarray(sample_weight), "sample_weight")
    if w.shape != y.shape or not np.isfinite(w).all() or (w < 0).any() or not w.any():
        raise DataError(
            f"sample_weight needs one finite weight per row, {len(y)} in total, non-negative and not all 0; it has "
            f"shape {w.shape}."
        )
    return y, p, w


def _as_numbers(values: Array, what: str) -> Array:
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        raise DataError(
            f"{what} must contain numbers; it contains {values.dtype} such as {values.flat[0]!r}."
        ) from None


def _as_positive(y: Array, p: Array, pos_label: Any, name: str) -> tuple[Array, Array]:
    """Return 0 and 1 for negative and positive labels."""
    if name in SCORES and (p.ndim != 1 or p.dtype.kind not in "fiub"):
        raise DataError(f"{name!r} needs one score per row: the probability of the positive class, as numbers.")
    if name in LABELS and p.ndim != 1:
        raise DataError(f"{name!r} needs one predicted label per row; y_pred has shape {p.shape}.")
    if name in ("brier", "log_loss") and not ((p >= 0) & (p <= 1)).all():
        raise DataError(f"{name!r} needs probabilities, between 0 and 1; the largest score is {p.max():g}.")
    labels = np.unique(np.concatenate([y, p]) if name in LABELS else y)
    if pos_label is None:
        if len(labels) > 2:
            raise ParameterError(f"{name!r} is for two classes, and there are {len(labels)}: give pos_label.")
        pos_label = labels[-1]
        if len(labels) == 1 and labels[0] in (0, -1):
            pos_label = 1
    elif pos_label not in labels and name not in LABELS:
        raise ParameterError(f"pos_label={pos_label!r} does not occur in y_true; its labels are {labels.tolist()}.")
    if name in SCORES:
        return (y == pos_label).astype(np.int64), p.astype(np.float64)
    return (y == pos_label).astype(np.int64), (p == pos_label).astype(np.int64)
