"""The whole report: verdict, candidates, performance, explanations, data, provenance."""

from __future__ import annotations

import hashlib

import numpy as np

from summula.report import Content, Figure, Item, Table
from summula.report.charts import intervals
from summula.report.page import cell
from summula.training.reporting.data_figures import data_figures
from summula.training.reporting.held_out import of_classes, of_numbers
from summula.training.reporting.model_figures import Explanation, coefficients, settings
from summula.training.result import WARNING, TrainingResult

__all__ = ["content_of"]


def content_of(result: TrainingResult) -> Content:
    """Return the content of the report of a training run."""
    explanation = Explanation(result)
    predicted, p = explanation.predictions()
    held_out = of_classes(result, predicted, p) if result._task.kind == "classes" else of_numbers(result, predicted)
    sections: list[tuple[str, list[Item]]] = [
        ("Candidates", _leaderboard(result)),
        ("On the rows held out", held_out),
        ("What the model depends on", explanation.figures() + coefficients(result)),
        ("The data", data_figures(result, explanation.leading)),
        ("Settings and provenance", [*settings(result), _provenance(result)]),
    ]
    return Content(
        title=f"{result._request.target}: {result._board.best.name}",
        verdict=result.verdict,
        warnings=[text.removeprefix(WARNING) for text in result.remarks if text.startswith(WARNING)],
        promises=[_range_note(result), *(f"Assumed: {one}" for one in result.certificate.assumptions)],
        facts=_facts(result),
        sections=[(heading, items) for heading, items in sections if items],
        command=result._request.command,
        versions=result._versions,
    )


def _facts(result: TrainingResult) -> list[tuple[str, str]]:
    return [
        ("table", result._table),
        ("rows", f"{result.n_rows:,}"),
        ("training rows", f"{result.n_training:,}"),
        ("held-out rows", f"{result.certificate.n:,}"),
        ("target", f"{result._request.target} ({result._task.kind})"),
        ("compared by", result._metric.title),
        ("held out by", _held_out_by(result)),
        ("seconds", f"{result.seconds:.1f}"),
    ]


def _held_out_by(result: TrainingResult) -> str:
    request = result._request
    if request.groups is not None:
        return f"groups of {request.groups!r}"
    return f"time: the latest rows by {request.time_column!r}" if request.time_column is not None else "random rows"


def _range_note(result: TrainingResult) -> str:
    certificate = result.certificate
    bounds = f"Mean loss: observed {cell(certificate.estimate)}, true value from {cell(certificate.lower)} to"
    loss = "share of errors" if certificate.loss == "zero_one" else certificate.loss
    sentence = f"{bounds} {cell(certificate.upper)} ({loss}; {certificate.method})."
    if result.model.prediction_range is None:
        return sentence
    low, high = result.model.prediction_range
    return f"{sentence} Predictions are clipped to the range {cell(low)} to {cell(high)}."


def _leaderboard(result: TrainingResult) -> list[Item]:
    rows = result._board.rows()
    ranked = [row for row in rows if row["rank"] is not None]
    metric, title = result.metric, result._metric.title
    better = "larger" if result._metric.greater_is_better else "smaller"
    drawing = intervals(
        [row["model"] for row in ranked],
        [row[metric] for row in ranked],
        [row["lowest fold"] for row in ranked],
        [row["highest fold"] for row in ranked],
        f"{title} of each candidate",
    )
    rounds = result._board.rounds
    folds = f"Mean over the same {rounds} cross-validation folds, with the lowest and the highest fold."
    folds = folds if rounds > 1 else "Score of one cross-validation fold, because of the time limit."
    items: list[Item] = [Figure(f"Compared by {title} ({better} is better)", drawing, folds)]
    held = [row for row in rows if row["2.5 %"] == row["2.5 %"]]
    if held:
        drawing = intervals(
            [row["model"] for row in held],
            [row[f"held-out {metric}"] for row in held],
            [row["2.5 %"] for row in held],
            [row["97.5 %"] for row in held],
            f"held-out {title} of each candidate",
        )
        items.append(Figure(f"Held-out {title}", drawing, "With 95 % bootstrap intervals; not used to choose."))
    stopped = " Stopped by Ctrl-C before the end." if result._board.interrupted else ""
    files = " Rows were read from files, their folds drawn by hashes of row numbers." if result._streamed else ""
    note = "Compared on training rows only; cross-validation scores select a model, and are not a guarantee."
    note += files + stopped
    return [*items, Table("", list(rows[0]), [list(row.values()) for row in rows], note)]


def _provenance(result: TrainingResult) -> Table:
    hashes = getattr(result.model, "training_hashes_", None)
    training = "" if hashes is None else hashlib.sha256(np.sort(hashes).tobytes()).hexdigest()
    rows = [
        ["date", result._finished],
        ["table", result._table],
        ["training data (SHA-256 of row hashes)", training],
        ["held-out data (SHA-256)", result.certificate.data_hash],
        ["model (SHA-256)", result.certificate.model_hash],
        ["random state", str(result._request.seed)],
        ["share held out", f"{result._request.holdout:g}"],
        ["confidence", f"{1 - result._request.delta:g}"],
        ["time limit", f"{result._request.time:g} s"],
    ]
    return Table("Provenance", ["", ""], rows)
