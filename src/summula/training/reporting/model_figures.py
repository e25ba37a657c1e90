"""Figures of the selected model: its dependence on columns, coefficients of the best linear model, and its settings."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.report import Figure, Gallery, Item, Table
from summula.report.axes import SMALL, clipped, date_ticks, level_ticks
from summula.report.charts import Line, Scale, bars, intervals, lines, waterfall
from summula.report.page import cell
from summula.training.comparison.metrics import METRICS, codes_of
from summula.training.reporting.explained import (
    Contribution,
    Dependence,
    EncodedModel,
    Importance,
    contributions,
    dependence,
    importances,
)
from summula.training.result import TrainingResult

__all__ = ["Explanation", "coefficients", "settings"]

Array = NDArray[Any]

_ROWS = 2_000  # held-out rows for permutation importances
_SECONDS, _SHARE = (
    2.0,
    0.1,
)  # time limit of importances, in seconds and as a fraction of the limit of the run; the same for the rest
_SHOWN = 30  # importances and coefficients
_CURVES, _CLASSES = 6, 6  # columns with partial dependence, and classes in it
_PLAYERS = 10  # columns whose contributions are shown individually
_EXPLAINED = 4  # rows
_AVERAGED, _BACKGROUND = 250, 64  # rows for averages in partial dependence and contributions
_LABEL = 21  # maximum number of characters of a column and its value


class Explanation:
    """Importances, partial dependence and contributions of the selected model, computed once for all figures."""

    def __init__(self, result: TrainingResult) -> None:
        self.result, self.model = result, EncodedModel(result.model)
        rows = min(len(result._holdout.y), _ROWS)
        self.table, self.y = result._holdout.X.slice(0, rows), result._holdout.y[:rows]
        encoded = result._encoded_holdout
        encoded = result.model.encoder.transform(self.table) if encoded is None else encoded[:rows]
        self.rows = np.asarray(encoded, np.float64)
        loss, self.loss_name = self._loss()
        seconds = min(_SECONDS, _SHARE * result._request.time)
        self.importances: list[Importance] = importances(self.model, self.rows, loss, seconds, result._request.seed)
        self.leading = [one.name for one in self.importances if one.value > 0.0]
        self._end = time.monotonic() + seconds

    def _loss(self) -> tuple[Callable[[Array], Array], str]:
        """Return the loss per row of the metric of the comparison, or the log loss if it is not a mean over rows."""
        result, model, metric = self.result, self.model, METRICS[self.result.metric]
        if result._task.kind == "numbers":
            assert metric.loss is not None
            loss = metric.loss
            return lambda rows: loss(self.y, result.model._predicted(rows)), f"{metric.name} error"
        codes = codes_of(np.asarray(result.model.classes_), self.y)
        if metric.name == "accuracy":
            return lambda rows: np.asarray(result.model._predicted(rows) != self.y, np.float64), "error rate"
        if metric.name == "expected_cost":
            costs = np.asarray(result.model.costs, np.float64)

            def cost(rows: Array) -> Array:
                return np.asarray(costs[(model.output(rows) @ costs.T).argmin(axis=1), codes])

            return cost, "cost"
        log_loss = METRICS["log_loss"].loss
        assert log_loss is not None
        return lambda rows: log_loss(codes, model.output(rows)), "log loss"

    def predictions(self) -> tuple[Array, Array | None]:
        """Return predictions for all held-out rows in memory, and their probabilities if available."""
        model, X = self.result.model, self.result._holdout.X
        proba = hasattr(model, "predict_proba")
        if len(self.rows) == X.num_rows:  # encoded before
            return np.asarray(model._predicted(self.rows)), self.model.output(self.rows) if proba else None
        return np.asarray(model.predict(X)), np.asarray(model.predict_proba(X)) if proba else None

    def figures(self) -> list[Item]:
        """Return all figures of the dependence on columns."""
        if self.result._board.best.name == "baseline":
            return []
        return [self._importance_figure(), *self._dependence_gallery(), *self._contribution_gallery()]

    def _importance_figure(self) -> Figure:
        shown = self.importances[:_SHOWN]
        drawing = intervals(
            [one.name for one in shown],
            [one.value for one in shown],
            [one.low for one in shown],
            [one.high for one in shown],
            "permutation importance",
        )
        note = (
            f"Increase of the mean {self.loss_name} on {len(self.y):,} held-out rows when the values of a column are "
            "shuffled, with 95 % intervals over the rows."
        )
        tried, there = len(self.importances), len(self.model.places)
        if tried < there:
            note += f" Computed for {tried:,} of {there:,} columns, the most important to the model, to limit time."
        return Figure("Permutation importance", drawing, note)

    # ------------------------------------------------------------------------------------------------------ dependence

    def _dependence_gallery(self) -> list[Item]:
        figures = []
        for name in self.leading[:_CURVES]:
            if time.monotonic() > self._end:
                break
            found = dependence(self.model, self.rows[:_AVERAGED], name, self.result._sample.X[name])
            if found is not None:
                figures.append(Figure(name, self._dependence_chart(found)))
        if not figures:
            return []
        note = f"Mean {self._output_name()} over held-out rows when a column is set to a value, all others unchanged."
        return [Gallery("Partial dependence", figures, note)]

    def _dependence_chart(self, found: Dependence) -> str:
        classes = np.asarray(self.result.model.classes_).tolist() if found.output.shape[1] > 1 else [""]
        shown = [1] if len(classes) == 2 else range(min(len(classes), _CLASSES))
        ticks: list[tuple[float, str]] | None
        if found.kind == "category":
            if len(shown) == 1:
                return bars(
                    [str(one) for one in found.values], found.output[:, shown[0]].tolist(), found.name, box=SMALL
                )
            x, ticks = np.arange(float(len(found.values))), level_ticks([str(one) for one in found.values], SMALL)
            x_range = (-0.5, len(found.values) - 0.5)
        else:
            x, x_range = np.array(found.values), None
            ticks = date_ticks(float(x.min()), float(x.max()), SMALL) if found.kind == "date" else None
        drawn = [Line(str(classes[k]), x, found.output[:, k]) for k in shown]
        return lines(drawn, Scale(found.name, x_range, ticks), Scale(""), box=SMALL, dots=found.kind != "number")

    def _output_name(self) -> str:
        result = self.result
        if result._task.kind == "numbers":
            return f"predicted {result._request.target}"
        labels = np.asarray(result.model.classes_)
        return f"probability of {labels[1]}" if len(labels) == 2 else "probability of each class"

    # --------------------------------------------------------------------------------------------------- contributions

    def _contribution_gallery(self) -> list[Item]:
        if time.monotonic() > self._end or not self.leading:
            return []
        background = np.asarray(self.result.model.encoder.transform(self.result._sample.X.slice(0, _BACKGROUND)))
        figures = []
        for row, why, out in self._chosen_rows():
            if time.monotonic() > self._end:
                break
            found = contributions(self.model, self.rows[row], background, self.leading[:_PLAYERS], out)
            figures.append(self._contribution_figure(found, row, why, out))
        if not figures:
            return []
        note = (
            "How the prediction for a held-out row differs from the mean prediction, column by column (sampled Shapley "
            "values); the dashed line is the mean prediction."
        )
        return [Gallery("Contributions to single predictions", figures, note)]

    def _chosen_rows(self) -> list[tuple[int, str, int]]:
        """Return representative rows (extreme and median predictions, the largest error), and the output to explain."""
        result, output = self.result, self.model.output(self.rows)
        if output.shape[1] == 1:
            order, wrong = np.argsort(output[:, 0], kind="stable"), int(np.abs(output[:, 0] - self.y).argmax())
            chosen = [(order[-1], "highest prediction", 0), (order[len(order) // 2], "median prediction", 0)]
            chosen += [(order[0], "lowest prediction", 0), (wrong, "largest error", 0)]
        else:
            codes = codes_of(np.asarray(result.model.classes_), self.y)
            wrong = int(output[np.arange(len(codes)), codes].argmin())
            shown = [1] if output.shape[1] == 2 else range(min(output.shape[1], _EXPLAINED - 1))
            chosen = [(output[:, k].argmax(), "highest probability", k) for k in shown]
            if len(chosen) == 1:
                order = np.argsort(output[:, 1], kind="stable")
                chosen += [(order[len(order) // 2], "median probability", 1), (order[0], "lowest probability", 1)]
            chosen.append((wrong, "largest error", 1 if output.shape[1] == 2 else int(codes[wrong])))
        unique = {int(row): (int(row), why, int(out)) for row, why, out in reversed(chosen)}
        return list(reversed(unique.values()))

    def _contribution_figure(self, found: Contribution, row: int, why: str, out: int) -> Figure:
        names = []
        for name in found.names:
            if name in self.model.places:
                value = clipped(_value_text(self.table[name][row].as_py()), 10)
                name = f"{clipped(name, _LABEL - 3 - len(value))} = {value}"
            names.append(name)
        if self.result._task.kind == "numbers":
            outcome = f"predicted {cell(float(found.output))}, true {cell(float(self.y[row]))}"
        else:
            label = np.asarray(self.result.model.classes_)[out]
            outcome = f"P({label}) = {found.output:.3f}, true {self.y[row]}"
        drawing = waterfall(names, found.values, found.base, f"contributions, {why}", box=SMALL)
        return Figure(f"{why.capitalize()}: {outcome}", drawing)


def _value_text(value: Any) -> str:
    if value is None or value != value:
        return "missing"
    return cell(value) if isinstance(value, float) else str(value)


# --------------------------------------------------------------------------------------------------------- coefficients


def coefficients(result: TrainingResult) -> list[Item]:
    """Return the coefficients of the best linear candidate, and standard errors of an unpenalised fit."""
    linear = result._linear
    if linear is None:
        return []
    names = [str(name) for name in linear.encoder.get_feature_names_out()]
    coef, intercept = np.atleast_2d(np.asarray(linear.model.coef_)), np.atleast_1d(np.asarray(linear.model.intercept_))
    order = np.argsort(-np.abs(coef).max(axis=0), kind="stable")[:_SHOWN]
    units = "Numbers are in standard deviations about their mean; a level is compared with the most frequent one."
    if len(order) < len(names):
        units += f" The {len(order)} largest of {len(names):,}."
    errors = _standard_errors(linear.unpenalised, len(names)) if len(coef) == 1 else None
    title = f"Coefficients of {linear.name}"
    if errors is None:
        heads = [str(label) for label in result.model.classes_] if len(coef) > 1 else [_meaning(result, linear.model)]
        rows = [["intercept", *intercept.tolist()], *([names[j], *coef[:, j].tolist()] for j in order)]
        reason = "" if linear.is_penalised else "No standard errors: the rows do not determine all coefficients."
        if linear.is_penalised:
            reason = "The penalty shrinks them, so they have no valid standard errors"
            tried = linear.unpenalised is not None
            reason += "; without it, the rows do not determine all coefficients." if tried else "."
        return [Table(title, ["term", *heads], rows, f"{units} {reason}")]
    terms, single = ["intercept", *names], np.concatenate([intercept, coef[0]])
    heads = ["term", _meaning(result, linear.model)]
    if linear.is_penalised:
        heads.append("unpenalised")
    rows = []
    for k in (0, *(int(j) + 1 for j in order)):
        own = [float(single[k])] if linear.is_penalised else []
        rows.append([terms[k], *own, *(float(column[k]) for column in errors)])
    note = f"{units} Standard errors are classical, and assume that the model was specified in advance."
    if linear.is_penalised:
        note += " They, the intervals and p are of the unpenalised fit to the same rows."
    return [Table(title, [*heads, "std error", "2.5 %", "97.5 %", "p"], rows, note)]


def _meaning(result: TrainingResult, fitted: Any) -> str:
    """Return the quantity that the coefficients of a single score change."""
    if result._task.kind == "classes":
        return f"log-odds of {result.model.classes_[1]}"
    return "coefficient" if type(fitted).__name__ != "PoissonRegressor" else "log of the mean"


def _standard_errors(fitted: Any, width: int) -> tuple[Array, ...] | None:
    """Return estimates, standard errors, bounds and p-values of an unpenalised fit, with the intercept first."""
    if fitted is None:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            summary = fitted.summary()
    except ValueError:  # such as more columns than rows
        return None
    if len(summary.terms) != width + 1:
        return None
    found = (summary.estimate, summary.std_error, summary.ci_low, summary.ci_high, summary.p_value)
    return found if np.isfinite(summary.std_error).all() else None


# ------------------------------------------------------------------------------------------------------------- settings


def settings(result: TrainingResult) -> list[Item]:
    """Return the hyperparameters of the selected model, or of the members of an ensemble."""
    best, fitted = result._board.best, result.model.model
    own: list[list[Any]] = []
    if result.model.threshold is not None:
        own.append(["threshold (chosen by cross-validation)", f"{result.model.threshold:.4g}"])
    if not best.members:
        return [_settings_table(best.name, fitted, own)]
    weights = [[f"weight of {one.name}", f"{weight:.4g}"] for one, weight in best.members]
    note = "Weights were fitted to out-of-fold predictions."
    parts = [_settings_table(one.name, m, []) for (one, _), m in zip(best.members, fitted.models, strict=True)]
    return [Table(f"Settings of {best.name}", ["setting", "value"], [*weights, *own], note), *parts]


def _settings_table(name: str, fitted: Any, more: list[list[Any]]) -> Table:
    """Return the parameters of a model, and those chosen by its fit."""
    given = {key: value for key, value in fitted.get_params().items() if str(value) != "deprecated"}
    rows: list[list[Any]] = [[key, _setting_text(value)] for key, value in sorted(given.items())]
    for key in ("alpha_", "C_", "l1_ratio_", "n_iter_"):
        value = getattr(fitted, key, None)
        if value is not None and np.size(value) == 1:
            rows.append([f"{key} (chosen by the fit)", _setting_text(value)])
    return Table(f"Settings of {name}: {type(fitted).__name__}", ["setting", "value"], [*rows, *more])


def _setting_text(value: Any) -> str:
    if isinstance(value, np.ndarray | np.generic):
        value = np.asarray(value).item() if np.size(value) == 1 else np.asarray(value).tolist()
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 200 else f"{text[:199]}…"
