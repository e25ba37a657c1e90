"""Performance on the held-out rows: curves, confusion matrix and calibration for classes, residuals for numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.report import Figure, Item, Table
from summula.report.charts import Line, Scale, histogram, lines, points
from summula.report.matrix_charts import matrix
from summula.training.comparison.metrics import auc_of, average_precision_of, roc_points, threshold_counts
from summula.training.result import TrainingResult

__all__ = ["of_classes", "of_numbers"]

Array = NDArray[Any]

_CURVES = 6  # maximum number of classes with a curve
_CURVE_POINTS = 200
_MATRIX_CLASSES = 12  # maximum number of classes of a confusion matrix
_THRESHOLDS = 101
_RESAMPLES, _RESAMPLED_ROWS = 200, 20_000


# -------------------------------------------------------------------------------------------------------------- classes


def of_classes(result: TrainingResult, predicted: Array, p: Array | None) -> list[Item]:
    """Return ROC and precision-recall curves, calibration, the confusion matrix, and metrics by class."""
    labels, answers = np.asarray(result.model.classes_), result._holdout.y
    items: list[Item] = []
    if p is not None:
        items += _curves(labels, answers, p)
        if len(labels) == 2:
            items += _by_threshold(result, answers == labels[1], p[:, 1])
        items.append(_calibration(labels, answers, p))
    return items + _confusions(answers, predicted)


def _curves(labels: Array, answers: Array, p: Array) -> list[Item]:
    """Return ROC and precision-recall curves, of the second of two classes or of each against the rest."""
    roc, pr, several = [], [], len(labels) > 2
    for k in range(min(len(labels), _CURVES)) if several else (1,):
        of_class = answers == labels[k]
        if not of_class.any() or of_class.all():
            continue
        counts = threshold_counts(of_class, p[:, k])
        roc.append(_thinned(f"{labels[k]}: AUC {auc_of(of_class, p[:, k]):.3f}", *roc_points(counts)))
        recall = np.append(0.0, counts.true_positives / counts.true_positives[-1])
        precision = np.append(1.0, counts.true_positives / counts.positives)
        pr.append(_thinned(f"{labels[k]}: AP {average_precision_of(of_class, p[:, k]):.3f}", recall, precision))
    if not roc:
        return []
    each = " Each class against the rest." if several else f" The positive class is {labels[1]}."
    single = "" if several else f" ({roc[0].name.partition(': ')[2]})"
    single_pr = "" if several else f" ({pr[0].name.partition(': ')[2]})"
    return [
        Figure(
            "ROC",
            lines(roc, _share("false positive rate"), _share("true positive rate"), diagonal=True),
            f"ROC curve{single} by threshold; the diagonal is guessing.{each}",
        ),
        Figure(
            "Precision and recall",
            lines(pr, _share("recall"), _share("precision")),
            f"Precision-recall curve{single_pr} by threshold.{each}",
        ),
    ]


def _share(name: str) -> Scale:
    """Return an axis of shares or probabilities."""
    return Scale(name, (0.0, 1.0))


def _thinned(name: str, x: Array, y: Array) -> Line:
    few = np.unique(np.linspace(0, len(x) - 1, _CURVE_POINTS).astype(int))
    return Line(name, x[few], y[few])


def _by_threshold(result: TrainingResult, positive: Array, p: Array) -> list[Item]:
    """Return precision, recall and F1 of the second class as functions of the threshold on its probability."""
    if not positive.any():
        return []
    thresholds = np.linspace(0.0, 1.0, _THRESHOLDS)
    order = np.sort(p), np.sort(p[positive])
    above, found = (len(one) - np.searchsorted(one, thresholds, side="left") for one in order)
    precision = np.where(above > 0, found / np.maximum(above, 1), 1.0)
    recall = found / positive.sum()
    f1 = 2.0 * found / (above + positive.sum())
    used = result.model.threshold
    drawn = [Line("precision", thresholds, precision), Line("recall", thresholds, recall), Line("F1", thresholds, f1)]
    mark = 0.5 if used is None else used
    by_costs = result.model.costs is not None
    caption = (
        "Costs decide instead of a threshold." if by_costs else f"The dashed line is the threshold in use, {mark:.3g}."
    )
    label = np.asarray(result.model.classes_)[1]
    drawing = lines(drawn, _share(f"probability of {label}"), _share(""), mark=None if by_costs else mark)
    return [Figure("By threshold", drawing, f"Precision, recall and F1 of {label}. {caption}")]


def _calibration(labels: Array, answers: Array, p: Array) -> Figure:
    """Return predicted probabilities against observed frequencies, in groups of equal size."""
    if len(labels) == 2:
        score, true, name = p[:, 1], answers == labels[1], f"probability of {labels[1]}"
    else:
        score, true, name = p.max(axis=1), labels[p.argmax(axis=1)] == answers, "probability of the most probable class"
    groups = np.array_split(np.argsort(score, kind="stable"), min(10, max(1, len(score) // 10)))
    x = np.array([score[group].mean() for group in groups])
    y = np.array([true[group].mean() for group in groups])
    drawing = lines([Line("groups", x, y)], _share(name), _share("observed frequency"), diagonal=True, dots=True)
    return Figure("Calibration", drawing, "Groups of equal size; on the diagonal, probabilities match frequencies.")


def _confusions(answers: Array, predicted: Array) -> list[Item]:
    names = sorted({*map(str, answers.tolist()), *map(str, predicted.tolist())})
    places = {name: place for place, name in enumerate(names)}
    true, taken = ([places[str(one)] for one in labels.tolist()] for labels in (answers, predicted))
    counts = np.zeros((len(names), len(names)), int)
    np.add.at(counts, (true, taken), 1)
    items: list[Item] = []
    if len(names) <= _MATRIX_CLASSES:
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        drawing = matrix(
            shares, names, names, "confusion matrix",
            texts=[[f"{count:,}" for count in row] for row in counts.tolist()], titles=("true", "predicted"),
        )  # fmt: skip
        items.append(
            Figure("Confusion matrix", drawing, "Numbers of rows; the shade is the fraction of the true class.")
        )
    else:
        rows = [[name, *counts[k].tolist()] for k, name in enumerate(names)]
        items.append(Table("Confusion matrix", ["true, by predicted", *names], rows))
    hits, of_class, as_class = counts.diagonal(), counts.sum(axis=1), counts.sum(axis=0)
    rows = []
    for k, name in enumerate(names):
        precision = hits[k] / as_class[k] if as_class[k] else float("nan")
        recall = hits[k] / of_class[k] if of_class[k] else float("nan")
        f1 = 2.0 * hits[k] / (of_class[k] + as_class[k])
        rows.append([name, float(precision), float(recall), float(f1), int(of_class[k])])
    items.append(Table("By class", ["class", "precision", "recall", "F1", "rows"], rows))
    return items


# -------------------------------------------------------------------------------------------------------------- numbers


def of_numbers(result: TrainingResult, predicted: Array) -> list[Item]:
    """Return R2, RMSE and MAE with intervals, and residuals."""
    target, y = result._request.target, np.asarray(result._holdout.y, np.float64)
    residuals = y - predicted
    rows = [[name, *_with_interval(score, y, predicted)] for name, score in _SCORES.items()]
    return [
        Figure("True against predicted", points(predicted, y, "predicted", f"true {target}", diagonal=True)),
        Figure("Residuals", points(predicted, residuals, "predicted", "residual", level=0.0), "True minus predicted."),
        Figure("Distribution of residuals", histogram(residuals, "residual")),
        Table("Accuracy", ["", "value", "2.5 %", "97.5 %"], rows, "With 95 % bootstrap intervals."),
    ]


def _r2(y: Array, predicted: Array) -> float:
    total = float(((y - y.mean()) ** 2).sum())
    return 1.0 - float(((y - predicted) ** 2).sum()) / total if total > 0.0 else float("nan")


_SCORES: dict[str, Callable[[Array, Array], float]] = {
    "R2": _r2,
    "RMSE": lambda y, predicted: float(np.sqrt(np.mean((y - predicted) ** 2))),
    "MAE": lambda y, predicted: float(np.mean(np.abs(y - predicted))),
}


def _with_interval(score: Callable[[Array, Array], float], y: Array, predicted: Array) -> list[float]:
    rng, n = np.random.default_rng(0), len(y)
    drawn = (rng.integers(0, n, n) for _ in range(_RESAMPLES if n <= _RESAMPLED_ROWS else _RESAMPLES // 5))
    found = np.array([score(y[rows], predicted[rows]) for rows in drawn])
    found = found[np.isfinite(found)]
    low, high = np.quantile(found, (0.025, 0.975)) if len(found) else (float("nan"), float("nan"))
    return [score(y, predicted), float(low), float(high)]
