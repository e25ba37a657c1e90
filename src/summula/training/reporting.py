"""The result of a training run as the content of a report.

All figures are of rows held out. The importance of a column is by how much the mean loss there grows when its values
are shuffled among the rows, so that it tells nothing.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.report import Content, Figure, Table
from summula.report.charts import Line, bars, histogram, intervals, lines, points
from summula.training.leaks import leak_sentence
from summula.training.metrics import risk_of
from summula.training.profile import profile
from summula.training.result import TrainingResult

__all__ = ["content_of"]

Array = NDArray[Any]
Items = list[Figure | Table]

_CURVES = 6  # classes that get a curve
_CURVE_POINTS = 200
_SHUFFLED_ROWS, _SHUFFLED_COLUMNS, _SHUFFLING_TIME = 2_000, 100, 3.0
_SHOWN = 30  # coefficients and importances


def content_of(result: TrainingResult) -> Content:
    """The content of the report."""
    certificate, best = result.certificate, result._board.best.name
    predicted = np.asarray(result.model.predict(result._holdout.X))
    classes = result._task.kind == "classes"
    sections: list[tuple[str, Items]] = [
        ("Candidates", _leaderboard(result)),
        ("On the rows held out", _of_classes(result, predicted) if classes else _of_numbers(result, predicted)),
        ("What the model looks at", _importances(result, predicted) + _coefficients(result)),
        ("The data", _data(result)),
    ]
    return Content(
        title=f"{result._request.target}: {best}",
        verdict=result.verdict,
        warnings=[leak_sentence(name, result._request.target, why) for name, why in result.leaks.items()],
        promises=[_range_note(result), *(f"Assumed: {one}" for one in certificate.assumptions)],
        facts=[
            ("table", result._table),
            ("rows", f"{result.n_rows:,}"),
            ("learned from", f"{result.n_training:,}"),
            ("held out", f"{certificate.n:,}"),
            ("target", f"{result._request.target} ({result._task.kind})"),
            ("compared by", result.metric),
            ("held out by", _held_out_by(result)),
            ("seconds", f"{result.seconds:.1f}"),
        ],
        sections=[(heading, items) for heading, items in sections if items],
        command=result._request.command,
        versions=result._versions,
    )


def _held_out_by(result: TrainingResult) -> str:
    request = result._request
    if request.groups is not None:
        return f"groups of {request.groups!r}"
    return f"time: the latest rows by {request.time_column!r}" if request.time_column is not None else "random rows"


def _range_note(result: TrainingResult) -> str:
    certificate = result.certificate
    bounds = f"Mean loss: observed {certificate.estimate:.4g}, true value from {certificate.lower:.4g} to"
    said = f"{bounds} {certificate.upper:.4g} ({certificate.loss}; {certificate.method})."
    if result.model.low is None:
        return said
    span = f"{result.model.low:.4g} to {result.model.high:.4g}"
    return f"{said} Predictions are held within the range of the training target, {span}."


def _leaderboard(result: TrainingResult) -> Items:
    rows = result._board.rows()
    ranked = [row for row in rows if row["rank"] is not None]
    metric, better = result.metric, "larger" if result._metric.greater_is_better else "smaller"
    drawing = intervals(
        [row["model"] for row in ranked],
        [row[metric] for row in ranked],
        [row["lowest fold"] for row in ranked],
        [row["highest fold"] for row in ranked],
        f"{metric} of each candidate",
    )
    folds = f"Mean over {result._board.rounds} of the same folds, and the lowest and the highest of them."
    figure = Figure(f"Compared by {metric}, {better} is better", drawing, folds)
    stopped = " Stopped by Ctrl-C before the end." if result._board.interrupted else ""
    files = " Rows were read from files, their folds drawn by hashes of row numbers." if result._streamed else ""
    note = f"Compared on training rows only; these numbers choose, and promise nothing.{files}{stopped}"
    return [figure, Table("", list(rows[0]), [list(row.values()) for row in rows], note)]


# ------------------------------------------------------------------------------------------------- rows held out


def _of_classes(result: TrainingResult, predicted: Array) -> Items:
    labels, answers = np.asarray(result.model.classes_), result._holdout.y
    items: Items = []
    if hasattr(result.model, "predict_proba"):
        p = np.asarray(result.model.predict_proba(result._holdout.X))
        curves = _curves(labels, answers, p)
        if curves:
            note = "The share of a class that is found, against the share of the others taken for it, by threshold."
            items.append(
                Figure("ROC", lines(curves, "false positives", "true positives", (0.0, 1.0), diagonal=True), note)
            )
        items.append(_calibration(labels, answers, p))
    said = sorted({*map(str, answers.tolist()), *map(str, predicted.tolist())})
    place = {name: k for k, name in enumerate(said)}
    counts = np.zeros((len(said), len(said)), int)
    np.add.at(counts, ([place[str(a)] for a in answers.tolist()], [place[str(b)] for b in predicted.tolist()]), 1)
    rows = [[name, *counts[k].tolist()] for k, name in enumerate(said)]
    items.append(Table("Which class is taken for which", ["true, by predicted", *said], rows))
    return items


def _curves(labels: Array, answers: Array, p: Array) -> list[Line]:
    from sklearn.metrics import auc, roc_curve

    shown = range(1, 2) if len(labels) == 2 else range(min(len(labels), _CURVES))
    found = []
    for k in shown:
        of_class = answers == labels[k]
        if not of_class.any() or of_class.all():
            continue
        x, y, _ = roc_curve(of_class, p[:, k])
        few = np.unique(np.linspace(0, len(x) - 1, _CURVE_POINTS).astype(int))
        found.append(Line(f"{labels[k]} {auc(x, y):.3f}", x[few], y[few]))
    return found


def _calibration(labels: Array, answers: Array, p: Array) -> Figure:
    """Predicted probabilities against what happened, in groups of equal size."""
    if len(labels) == 2:
        said, true, name = p[:, 1], answers == labels[1], f"probability of {labels[1]}"
    else:
        said, true, name = p.max(axis=1), labels[p.argmax(axis=1)] == answers, "probability of the likeliest class"
    groups = np.array_split(np.argsort(said, kind="stable"), min(10, max(1, len(said) // 10)))
    x = np.array([said[group].mean() for group in groups])
    y = np.array([true[group].mean() for group in groups])
    drawing = lines([Line("groups", x, y)], name, "share that came true", (0.0, 1.0), diagonal=True, dots=True)
    return Figure("Calibration", drawing, "Groups of equal size; on the broken line probabilities are what they say.")


def _of_numbers(result: TrainingResult, predicted: Array) -> Items:
    target, y = result._request.target, result._holdout.y
    return [
        Figure("True against predicted", points(predicted, y, "predicted", f"true {target}", diagonal=True)),
        Figure("Residuals", points(predicted, y - predicted, "predicted", "true less predicted", level=0.0)),
        Figure("How far off", histogram(y - predicted, "true less predicted")),
    ]


# ----------------------------------------------------------------------------------------------------------- model


def _importances(result: TrainingResult, predicted: Array) -> Items:
    import pyarrow as pa

    rows = min(len(result._holdout.y), _SHUFFLED_ROWS)
    few, y = result._holdout.X.slice(0, rows), result._holdout.y[:rows]
    names = [str(name) for name in result.model.feature_names_in_][:_SHUFFLED_COLUMNS]
    order = np.random.default_rng(result._request.seed).permutation(rows)
    risk = risk_of(result.metric, y, predicted[:rows])
    found = []
    end = time.monotonic() + _SHUFFLING_TIME
    for name in names:
        if time.monotonic() > end:
            break
        place = few.column_names.index(name)
        shuffled = few.set_column(place, name, few[name].take(pa.array(order)))
        found.append((risk_of(result.metric, y, np.asarray(result.model.predict(shuffled))) - risk, name))
    found = sorted(found, key=lambda one: -one[0])
    metric = (
        "errors"
        if result._task.kind == "classes"
        else f"{'squared' if result.metric == 'squared' else 'absolute'} error"
    )
    looked = len(found)
    found = found[:_SHOWN]
    drawing = bars([name for _, name in found], [value for value, _ in found], "importance of columns")
    note = f"Increase of the mean loss ({metric}) on held-out rows when the values of a column are shuffled."
    if looked < len(result.model.feature_names_in_):
        note += f" Of {looked} of {len(result.model.feature_names_in_)} columns, for time."
    return [Figure("Importance of columns", drawing, note)]


def _coefficients(result: TrainingResult) -> Items:
    fitted, encoder = result.model.model, result.model.encoder
    if not hasattr(fitted, "coef_"):
        return []
    names = [str(name) for name in encoder.get_feature_names_out()]
    units = "Numbers are in standard deviations about their mean; a level is compared with the most frequent one."
    table = _with_errors(fitted, names)
    if table is not None:
        note = f"{units} Standard errors are classical, and take the model as chosen beforehand."
        return [table._replace(note=note)]
    coef = np.atleast_2d(np.asarray(fitted.coef_))
    order = np.argsort(-np.abs(coef).max(axis=0), kind="stable")[:_SHOWN]
    several = len(coef) > 1
    heads = [str(label) for label in result.model.classes_] if several else [_meant(result)]
    rows = [[names[j], *coef[:, j].tolist()] for j in order]
    intercept = np.atleast_1d(np.asarray(fitted.intercept_)).tolist()
    note = f"{units} The penalty shrinks them, so they have no valid standard errors."
    return [Table("Largest coefficients", ["term", *heads], [["intercept", *intercept], *rows], note)]


def _meant(result: TrainingResult) -> str:
    """What the coefficients of a single score move."""
    if result._task.kind == "classes":
        return f"log-odds of {result.model.classes_[1]}"
    return "coefficient" if type(result.model.model).__name__ != "PoissonRegressor" else "log of the mean"


def _with_errors(fitted: Any, names: list[str]) -> Table | None:
    """Coefficients with standard errors, where the model was not penalised."""
    if type(fitted).__name__ != "LinearRegression":
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            summary = fitted.summary()
    except ValueError:  # more columns than rows, say
        return None
    terms = ["intercept", *names]
    if len(summary.terms) != len(terms):
        return None
    columns = (summary.estimate, summary.std_error, summary.ci_low, summary.ci_high, summary.p_value)
    rows = [[term, *(float(column[k]) for column in columns)] for k, term in enumerate(terms)]
    return Table("Coefficients", ["term", "estimate", "std error", "2.5 %", "97.5 %", "p"], rows)


def _data(result: TrainingResult) -> Items:
    rows = profile(result._sums, result.model.encoder.max_levels)
    for row in rows:
        if row["column"] in result.leaks:
            row["remark"] = f"looks like target leakage: {result.leaks[row['column']]}"
    table = Table("", list(rows[0]), [list(row.values()) for row in rows], "Of the rows learned from.")
    return [table]
