"""Metrics for the comparison of candidates.

    accuracy, balanced_accuracy, f1      of predicted classes
    auc, average_precision, log_loss     of predicted probabilities
    expected_cost                        the mean of costs[predicted class, true class]
    absolute, squared, poisson           |y - f|, (y - f)^2, Poisson deviance

Candidates are compared by risks, where smaller is better: the metric itself, or 1 - metric if larger values are better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import ParameterError
from summula.metrics.intervals import Interval
from summula.training.data.costs import NO_COSTS
from summula.training.names import metric_name

__all__ = [
    "METRICS",
    "Evaluation",
    "Evaluator",
    "LeftOut",
    "Metric",
    "ThresholdCounts",
    "auc_of",
    "average_precision_of",
    "codes_of",
    "metric_for",
    "roc_points",
    "threshold_counts",
]

Array = NDArray[Any]

_TINY = 1e-15
_TITLES = {
    "absolute": "mean absolute error",
    "squared": "mean squared error",
    "poisson": "mean Poisson deviance",
    "auc": "AUC",
    "f1": "F1",
}
_RESAMPLES = 200
_MANY_ROWS = 20_000  # above which fewer resamples are drawn
_THRESHOLDS = 199
_KEPT = 2_000_000  # maximum number of stored predictions of a fold


@dataclass(frozen=True)
class Metric:
    """A metric for the comparison of candidates.

    Attributes
    ----------
    name : str
    kind : {"classes", "numbers"}
        Type of target.
    needs : {"labels", "probabilities", "numbers"}
        Type of predictions it is computed from.
    loss : callable or None
        (y, output) -> one loss per row, for metrics that are means over rows.
    value : callable or None
        (y, output) -> float, for other metrics; larger values are better, and 1 is optimal.
    greater_is_better : bool
    threshold : bool
        Whether it is used with a chosen threshold on the probability of the second of two classes.
    """

    name: str
    kind: str
    needs: str
    loss: Callable[[Array, Array], Array] | None = None
    value: Callable[[Array, Array], float] | None = None
    greater_is_better: bool = False
    threshold: bool = False

    @property
    def title(self) -> str:
        """Name for headings."""
        return _TITLES.get(self.name, self.name.replace("_", " "))

    def shown(self, risk: float) -> float:
        """Convert a risk to the metric."""
        return 1.0 - risk if self.greater_is_better else risk

    def risk(self, y: Array, output: Array) -> float:
        """Return the risk of predictions, where smaller is better."""
        if self.loss is not None:
            return float(np.mean(self.loss(y, output)))
        assert self.value is not None
        return 1.0 - self.value(y, output)


# ------------------------------------------------------------------------------------------------- losses and values
# y contains class codes or numbers; outputs are codes, probabilities of shape (n, K), or numbers.


def _errors(y: Array, output: Array) -> Array:
    return np.asarray(y != output, np.float64)


def _log_losses(y: Array, p: Array) -> Array:
    likelihood = np.where(y < 0, 0.0, p[np.arange(len(y)), np.maximum(y, 0)])
    return np.asarray(-np.log(np.maximum(likelihood, _TINY)))


def _absolute(y: Array, output: Array) -> Array:
    return np.asarray(np.abs(output - y))


def _squared(y: Array, output: Array) -> Array:
    return np.asarray((output - y) ** 2)


def _poisson(y: Array, output: Array) -> Array:
    from summula.stats.families import Poisson

    return Poisson().unit_deviance(y, np.maximum(output, _TINY))


def _balanced_accuracy(y: Array, output: Array) -> float:
    return float(np.mean([np.mean(output[y == k] == k) for k in np.unique(y)]))


def _f1(y: Array, output: Array) -> float:
    """Return 2 tp / (2 tp + fp + fn) of the second of two classes, or the mean over all classes that occur."""
    top = max(int(y.max()), int(output.max()), 1)
    # Indices start at code -1, for labels that are not among the classes.
    hits, true, predicted = (np.bincount(codes + 1, minlength=top + 2) for codes in (y[y == output], y, output))
    scores = 2.0 * hits / np.maximum(true + predicted, 1)
    return float(scores[2] if top == 1 else scores[true + predicted > 0].mean())


def _one_against_rest(score: Callable[[Array, Array], float], y: Array, p: Array) -> float:
    """Return the score of the second of two classes, or the mean over all classes that occur."""
    shown = [1] if p.shape[1] == 2 else range(p.shape[1])
    found = [score(y == k, p[:, k]) for k in shown if 0 < np.sum(y == k) < len(y)]
    return float(np.mean(found)) if found else float("nan")


# scikit-learn's functions spend milliseconds on validation, hundreds of times per model.


class ThresholdCounts(NamedTuple):
    """Numbers of rows of a class, and of all rows, with at least each of the distinct scores, in descending order."""

    true_positives: Array
    positives: Array


def threshold_counts(is_class: Array, score: Array) -> ThresholdCounts:
    """Count true and predicted positives of a class for every threshold of its score."""
    order = np.argsort(-score, kind="stable")
    last = np.flatnonzero(np.append(np.diff(score[order]), 1.0))  # rows with equal scores are counted together
    return ThresholdCounts(np.cumsum(is_class[order])[last], last + 1)


def roc_points(counts: ThresholdCounts) -> tuple[Array, Array]:
    """Return false and true positive rates by threshold, from (0, 0) to (1, 1)."""
    true = np.append(0, counts.true_positives)
    false = np.append(0, counts.positives) - true
    return false / false[-1], true / true[-1]


def auc_of(is_class: Array, score: Array) -> float:
    """Return the area under the ROC curve: the fraction of pairs in the right order, where ties count half."""
    return float(np.trapezoid(*roc_points(threshold_counts(is_class, score))[::-1]))


def average_precision_of(is_class: Array, score: Array) -> float:
    """Return the mean precision at the score of each row of the class."""
    hits, positives = threshold_counts(is_class, score)
    return float(np.sum(np.diff(hits, prepend=0) * hits / positives) / hits[-1])


def _auc(y: Array, p: Array) -> float:
    return _one_against_rest(auc_of, y, p)


def _average_precision(y: Array, p: Array) -> float:
    return _one_against_rest(average_precision_of, y, p)


METRICS = {
    one.name: one
    for one in (
        Metric("accuracy", "classes", "labels", loss=_errors, greater_is_better=True),
        Metric(
            "balanced_accuracy", "classes", "labels", value=_balanced_accuracy, greater_is_better=True, threshold=True
        ),
        Metric("f1", "classes", "labels", value=_f1, greater_is_better=True, threshold=True),
        Metric("auc", "classes", "probabilities", value=_auc, greater_is_better=True),
        Metric("average_precision", "classes", "probabilities", value=_average_precision, greater_is_better=True),
        Metric("log_loss", "classes", "probabilities", loss=_log_losses),
        Metric("expected_cost", "classes", "labels"),
        Metric("absolute", "numbers", "numbers", loss=_absolute),
        Metric("squared", "numbers", "numbers", loss=_squared),
        Metric("poisson", "numbers", "numbers", loss=_poisson),
    )
}


def metric_for(kind: str, wanted: str | None, costs: bool = False, *, text: bool = False) -> Metric:
    """Return the metric with a given name for a type of target; `text` says whether it cannot be numeric."""
    if costs and kind == "numbers":
        raise ParameterError(NO_COSTS)
    if wanted is None:
        wanted = "expected_cost" if costs else "accuracy" if kind == "classes" else "absolute"
    given, wanted = wanted, metric_name(wanted)
    fitting = [one.name for one in METRICS.values() if one.kind == kind and (costs or one.name != "expected_cost")]
    if wanted == "expected_cost" and kind == "classes" and not costs:
        raise ParameterError(
            "The metric 'expected_cost' needs costs of each prediction for each true class: give --costs FILE "
            "(costs= in Python)."
        )
    if wanted not in fitting:
        other = METRICS[wanted].kind
        cure = "" if text else f", or declare the type of the target with task={other!r} (--task {other})"
        raise ParameterError(
            f"The metric {given!r} is not for a target of {kind}; choose from {', '.join(fitting)}{cure}."
        )
    return METRICS[wanted]


# ---------------------------------------------------------------------------------------------------------- evaluation


class LeftOut(NamedTuple):
    """Targets of validation rows, and predictions for them: class probabilities or numbers."""

    y: Array
    output: Array


class Evaluation(NamedTuple):
    """Risk of a model on validation rows, its standard error, the threshold chosen on them, and the predictions."""

    risk: float
    error: float
    threshold: float | None = None
    left_out: LeftOut | None = None


class Evaluator:
    """Applies a metric to fitted models.

    Parameters
    ----------
    metric : Metric
    classes : ndarray or None
        All classes of the target, sorted.
    costs : ndarray of shape (n_classes, n_classes), optional
        costs[predicted class, true class].
    """

    def __init__(self, metric: Metric, classes: Array | None, costs: Array | None = None) -> None:
        self.classes, self.costs = classes, costs
        if metric.name == "expected_cost":
            assert costs is not None
            metric = Metric(metric.name, metric.kind, metric.needs, loss=lambda y, output: np.asarray(costs[output, y]))
        self.metric = metric

    @property
    def chooses_threshold(self) -> bool:
        """Whether a threshold is chosen: for two classes and asymmetric metrics of labels, without costs."""
        return self.metric.threshold and self.costs is None and self.classes is not None and len(self.classes) == 2

    def encoded(self, y: Array) -> Array:
        """Return the target as class codes (-1 for unknown labels), or as numbers."""
        return y if self.classes is None else codes_of(self.classes, y)

    def output(self, model: Any, X: Any) -> Array:
        """Return probabilities of all classes (0 for those unknown to the model), or numbers."""
        if self.classes is None:
            return np.asarray(model.predict(X), np.float64)
        p = np.asarray(model.predict_proba(X), np.float64)
        out = np.zeros((len(p), len(self.classes)))
        out[:, codes_of(self.classes, model.classes_)] = p
        return out

    def decided(self, output: Array, threshold: float | None = None) -> Array:
        """Return the input of the metric: probabilities or numbers unchanged, or codes of predicted classes."""
        if self.metric.needs != "labels":
            return output
        if threshold is not None:
            return np.asarray(output[:, 1] >= threshold, np.intp)
        return np.asarray(output.argmax(axis=1) if self.costs is None else (output @ self.costs.T).argmin(axis=1))

    def evaluate(self, model: Any, blocks: Iterable[tuple[Any, Array]]) -> Evaluation:
        """Evaluate a model on blocks of rows and their targets."""
        pairs = ((self.encoded(y), self.output(model, X)) for X, y in blocks)
        if self.metric.loss is None:
            return self.evaluate_predictions(LeftOut(*_joined(pairs)))
        found = _Losses(self.metric.loss)
        for y, output in pairs:
            found.add(y, output, self.decided(output))
        return found.evaluation()

    def evaluate_predictions(self, rows: LeftOut) -> Evaluation:
        """Evaluate predictions."""
        y, output = rows
        if self.metric.loss is not None:
            found = _Losses(self.metric.loss)
            found.add(y, output, self.decided(output))
            return found.evaluation()
        threshold = self._threshold(y, output[:, 1]) if self.chooses_threshold else None
        decided = self.decided(output, threshold)
        risk, error = self.metric.risk(y, decided), float(_bootstrap(self.metric.risk, y, decided).std())
        return Evaluation(risk, error, threshold, rows if output.size <= _KEPT else None)

    def _threshold(self, y: Array, p: Array) -> float:
        """Return the best threshold among quantiles of the probabilities; ties go to the one nearest to 0.5."""
        tried = np.unique(np.append(np.quantile(p, np.linspace(0, 1, _THRESHOLDS)), 0.5))
        risks = np.array([self.metric.risk(y, np.asarray(p >= one, np.intp)) for one in tried])
        best = tried[np.flatnonzero(risks == risks.min())]
        return float(best[np.abs(best - 0.5).argmin()])

    def interval(self, model: Any, X: Any, y: Array, threshold: float | None = None) -> Interval:
        """Return the metric of a model on held-out rows, with its 95 % bootstrap interval."""
        codes, output = self.encoded(y), self.decided(self.output(model, X), threshold)
        shown, risks = self.metric.shown, _bootstrap(self.metric.risk, codes, output)
        low, high = sorted(shown(float(one)) for one in np.nanquantile(risks, (0.025, 0.975)))
        return Interval(shown(self.metric.risk(codes, output)), low, high)


def codes_of(classes: Array, y: Array) -> NDArray[np.intp]:
    """Return the indices of labels among sorted classes; -1 for unknown ones."""
    known = {label: place for place, label in enumerate(np.asarray(classes).tolist())}
    return np.array([known.get(label, -1) for label in np.asarray(y).tolist()], np.intp)


def _joined(pairs: Iterable[tuple[Array, Array]]) -> tuple[Array, Array]:
    listed = list(pairs)
    return np.concatenate([y for y, _ in listed]), np.concatenate([output for _, output in listed])


class _Losses:
    """Accumulates the mean of a loss over blocks of rows, and stores the predictions unless there are very many."""

    def __init__(self, loss: Callable[[Array, Array], Array]) -> None:
        self._loss, self._rows, self._sum, self._squares = loss, 0, 0.0, 0.0
        self._kept: list[LeftOut] = []
        self._cells = 0

    def add(self, y: Array, output: Array, decided: Array) -> None:
        """Add a block."""
        losses = self._loss(y, decided)
        self._rows += len(losses)
        self._sum, self._squares = self._sum + float(losses.sum()), self._squares + float((losses**2).sum())
        self._cells += output.size
        self._kept = [*self._kept, LeftOut(y, output)] if self._cells <= _KEPT else []

    def evaluation(self) -> Evaluation:
        """Return the mean, its standard error, and the predictions."""
        mean = self._sum / self._rows
        error = float(np.sqrt(max(self._squares / self._rows - mean**2, 0.0) / self._rows))
        return Evaluation(mean, error, None, LeftOut(*_joined(self._kept)) if self._kept else None)


def _bootstrap(risk: Callable[[Array, Array], float], y: Array, output: Array) -> Array:
    """Return the risk on bootstrap samples of the rows."""
    rng, n = np.random.default_rng(0), len(y)
    count = _RESAMPLES if n <= _MANY_ROWS else _RESAMPLES // 5
    drawn = (rng.integers(0, n, n) for _ in range(count))
    return np.array([risk(y[rows], output[rows]) for rows in drawn])
