"""`summula train`: set rows aside, compare candidates on the rest, refit the best, certify it on the rows set aside."""

from __future__ import annotations

import platform
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import summula
from summula.cli.candidates import candidates_for
from summula.cli.commit import exclusive, write_together
from summula.cli.comparison import Leaderboard
from summula.cli.console import Console, printable
from summula.cli.costs import read_costs
from summula.cli.files import output_folder, write_whole
from summula.cli.folds import Encoded, folds_of
from summula.cli.inspecting import leak_sentence, leaks_of_training
from summula.cli.metrics import Judged, certified, metric_for, risk_of
from summula.cli.rows import located_in, numbered
from summula.cli.schedule import Budget, compare_candidates, last_fit
from summula.cli.tables import (
    LEAST_ROWS,
    Task,
    as_labels,
    check_target,
    free_memory,
    held_out,
    inferred_task,
    open_table,
    read_table,
    target_values,
)
from summula.cli.training_overlap import training_hashes
from summula.cli.verdicts import verdict
from summula.core.data.frames import no_such_column
from summula.core.data.output import spreadsheet_safe
from summula.core.errors import DataError, ParameterError
from summula.preprocessing import TableEncoder, TableModel
from summula.preprocessing.table_encoder import column_sums
from summula.preprocessing.table_encoder_blocks import table_blocks
from summula.stats.bounds import check_delta

__all__ = [
    "Request",
    "Trained",
    "announce",
    "announce_columns",
    "announce_end",
    "check_training_target",
    "encoders_of",
    "guess_of",
    "last_fit_by",
    "quietly",
    "table_model",
    "train",
    "versions",
]

Array = NDArray[Any]

_LAST, _LONGEST_LAST = 0.1, 10.0  # share of the time, and seconds, for the certificate and the files
_TREE_LEVELS = 250
_COPIES = 6  # how often a table is held in memory: itself, two encodings, and what fits need


@dataclass(frozen=True)
class Request:
    """What the user asked for."""

    table: str
    target: str
    out: str
    seconds: float = 60.0
    models: list[str] | None = None
    metric: str | None = None
    costs: str | None = None
    delta: float = 0.05
    seed: int = 0
    task: str | None = None
    share: float = 0.2
    stream: bool = False
    drop: tuple[str, ...] = ()
    debug: bool = False
    command: str = ""


@dataclass
class Trained:
    """All that a report tells."""

    request: Request
    task: Task
    metric: str
    rows: int
    leaderboard: Leaderboard
    model: TableModel
    certificate: Any
    baseline: float
    sums: dict[str, Any]
    holdout: Any
    answers: Array
    n_training: int
    seconds: float
    versions: dict[str, str]
    leaks: dict[str, str]
    streamed: bool = False

    @property
    def verdict(self) -> str:
        """One sentence."""
        return verdict(self)


def train(request: Request, console: Console) -> Trained:
    """Train on a table, write what came out, and say it."""
    began = time.monotonic()
    check_delta(request.delta)
    table = open_table(request.table, console.remark)
    check_target(table, request.target)
    table = _without(table, request)
    folder = output_folder(request.out)
    with exclusive(folder):
        trained = _trained(request, table, console, began)
        _write(trained, folder)
    _say(trained, console, folder)
    return trained


def _trained(request: Request, table: Any, console: Console, began: float) -> Trained:
    if table.n_rows < LEAST_ROWS:
        rows = f"{table.n_rows} row{'' if table.n_rows == 1 else 's'}"
        raise DataError(f"The table has {rows}, too few to learn from and to judge by; give at least {LEAST_ROWS}.")
    streamed = request.stream or _too_large(table.n_rows * len(table.columns))
    with located_in(table):
        trained = None if streamed else _train_in_memory(request, table, console, began)
        if trained is None:
            from summula.cli.streaming import train_on_files

            trained = train_on_files(request, table, console, began)
    return trained


def _too_large(cells: int) -> bool:
    return _COPIES * 8 * cells > free_memory()


def _without(table: Any, request: Request) -> Any:
    """The table without the columns the user leaves out."""
    for name in request.drop:
        if name not in table.columns:
            raise DataError(no_such_column(name, table.columns))
        if name == request.target:
            raise ParameterError(f"--drop {name} would leave out the target; name other columns.")
    kept = [name for name in table.columns if name not in request.drop]
    if len(kept) < 2:
        raise ParameterError("--drop leaves no column to predict from; leave out fewer.")
    return table.select(kept) if request.drop else table


class Split(NamedTuple):
    """The rows to learn from and those set aside, and their numbers in the table."""

    training: Any
    y: Array
    rows: Array
    holdout: Any
    answers: Array
    holdout_rows: Array


def _train_in_memory(request: Request, table: Any, console: Console, began: float) -> Trained | None:
    """All of it, or None when the encoded rows would not fit in memory."""
    whole = read_table(table)
    values, there = target_values(whole[request.target])
    with numbered(np.flatnonzero(there).__getitem__):
        task = inferred_task(values[there], request.task, request.target)
    metric = metric_for(task.kind, request.metric)
    split = _split(whole, values, there, task, request)
    with numbered(split.rows.__getitem__):
        sums = column_sums(table_blocks(split.training))
    encoders = encoders_of(sums, split.training.column_names)
    if _too_large(len(split.y) * len(encoders[False].get_feature_names_out()) // 2):
        return None
    announce(console, request, table.n_rows, task, int((~there).sum()))
    found = leaks_of_training(split.training, split.y, task.kind == "classes", encoders[False].dropped_)
    announce_columns(console, request, encoders[False].dropped_, found)
    classes = np.unique(split.y) if task.kind == "classes" else None
    costs = None if request.costs is None else read_costs(request.costs, classes)
    judged = Judged(metric, classes, costs)
    data = Encoded(encoders, split.training, split.y, request.seed)
    folds = folds_of(data, judged)
    candidates = candidates_for(task.kind, task.counts, request.models)
    budget = Budget(last_fit_by(request, began), len(split.y))
    with console.progress(len(folds) * len(candidates)) as report:
        board = compare_candidates(candidates, folds, metric, budget, report, request.debug)
    announce_end(console, board, budget)
    best = board.best.candidate
    fitted = last_fit(board, folds[0].n_rows, budget, lambda one, left, rows: data.fit(one, left, None, rows))
    model = table_model(encoders[best.codes], fitted, request.target, metric, costs, split.y)
    model.training_hashes_ = training_hashes(split.training.select(list(model.feature_names_in_)), split.y)
    with quietly(), numbered(split.holdout_rows.__getitem__):
        certificate = certified(model, split.holdout, split.answers, request.delta)
    guess = guess_of(split.y, task)
    return Trained(
        request,
        task,
        metric,
        table.n_rows,
        board,
        model,
        certificate,
        risk_of(metric, split.answers, np.full(len(split.answers), guess, dtype=split.answers.dtype)),
        sums,
        split.holdout,
        split.answers,
        len(split.y),
        time.monotonic() - began,
        versions(),
        found,
    )


def announce_columns(console: Console, request: Request, dropped: dict[str, str], found: dict[str, str]) -> None:
    """Say which columns are left out, and which should perhaps be."""
    for name, why in dropped.items():
        console.remark(f"Column {name!r} is left out: {why}.")
    for name, why in found.items():
        console.remark(f"Warning: {leak_sentence(name, request.target, why)}")


def last_fit_by(request: Request, began: float) -> float:
    """When the last fit has to be over."""
    return began + request.seconds - min(_LAST * request.seconds, _LONGEST_LAST)


def announce_end(console: Console, board: Leaderboard, budget: Budget) -> None:
    """Say that the user ended the comparison, and what is not counted as time."""
    if budget.compiling >= 1.0:
        console.remark(
            f"Kernels were compiled for {budget.compiling:.0f} s, once on this machine, which is not counted in "
            "--time; `summula warmup` does it beforehand."
        )
    if board.interrupted:
        console.remark("Stopped by Ctrl-C: going on with what is finished.")


def announce(console: Console, request: Request, rows: int, task: Task, missing: int) -> None:
    """Say what the target is taken for."""
    console.remark(f"{request.table}: {rows:,} rows; {request.target!r} is taken as {task.kind} ({task.said}).")
    if missing:
        console.remark(f"{missing:,} rows without a value of {request.target!r} are left out.")


def _split(whole: Any, values: Array, there: Array, task: Task, request: Request) -> Split:
    import pyarrow as pa

    features = whole.drop_columns([request.target])
    y = as_labels(values[there]) if task.kind == "classes" else values[there].astype(np.float64)
    features = features.filter(pa.array(there))
    if len(y) < LEAST_ROWS:
        raise DataError(f"Only {len(y)} rows have a value of {request.target!r}; give at least {LEAST_ROWS}.")
    aside = held_out(len(y), request.share, request.seed)
    check_training_target(y[~aside], request)
    rows = np.flatnonzero(there)
    training, holdout = features.filter(pa.array(~aside)), features.filter(pa.array(aside))
    return Split(training, y[~aside], rows[~aside], holdout, y[aside], rows[aside])


def check_training_target(y: Array, request: Request) -> None:
    """Complain when there is nothing to tell apart."""
    if not (y != y[0]).any():
        raise DataError(
            f"All rows to learn from have the same {request.target!r}; give more of other values, or another --seed."
        )


def encoders_of(sums: Any, names: list[str]) -> dict[bool, TableEncoder]:
    """What trees get (True) and what linear models get (False)."""
    # (A tree has room for 255 bins, and takes a category for one column whatever its levels.)
    linear, trees = TableEncoder(standardize=True), TableEncoder(categories="codes", max_levels=_TREE_LEVELS)
    return {False: linear.use_sums(sums, names), True: trees.use_sums(sums, names)}


def table_model(encoder: Any, fitted: Any, target: str, metric: str, costs: Any, y: Array) -> TableModel:
    """Encoder and fitted model in one; numbers are held within the range of the training target."""
    numbers = metric in ("absolute", "squared")
    return TableModel(
        encoder,
        fitted,
        target,
        low=float(y.min()) if numbers else None,
        high=float(y.max()) if numbers else None,
        costs=None if costs is None else costs.tolist(),
        metric=metric,
    )


def guess_of(y: Array, task: Task) -> Any:
    """What would be said of every row without any column."""
    if task.kind == "numbers":
        return y.mean()
    values, counts = np.unique(y, return_counts=True)
    return values[counts.argmax()]


@contextmanager
def quietly() -> Iterator[None]:
    """Without warnings: what they would say stands in the leaderboard."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def versions() -> dict[str, str]:
    """What computed this."""
    from importlib.metadata import version

    found = {name: version(name) for name in ("numpy", "scipy", "scikit-learn", "numba", "pyarrow")}
    return {"summula": summula.__version__, "python": platform.python_version(), **found}


def _write(trained: Trained, folder: str) -> None:
    from summula.cli.reporting import content_of
    from summula.report import render

    # Everything is made before anything is written.
    page = printable(render(content_of(trained)), lines=True)
    board, certificate = _as_csv(trained.leaderboard.rows()), trained.certificate.to_json() + "\n"
    write_together(
        folder,
        {
            "model.summula": lambda path: summula.save(trained.model, path),
            "leaderboard.csv": lambda path: write_whole(path, board),
            "certificate.json": lambda path: write_whole(path, certificate),
            "report.html": lambda path: write_whole(path, page),
        },
    )


def _as_csv(rows: list[dict[str, Any]]) -> str:
    import csv
    import io

    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: _csv_cell(value) for key, value in row.items()})
    return text.getvalue()


def _csv_cell(value: Any) -> Any:
    if isinstance(value, str):
        return spreadsheet_safe(value)
    return "" if value is None or value != value else value


def _say(trained: Trained, console: Console, folder: str) -> None:
    rows = trained.leaderboard.rows()
    names = [name for name in rows[0] if name != "rank"]
    title = f"Compared on {trained.n_training:,} rows, smaller is better"
    console.table(title, names, [[row[name] for name in names] for row in rows])
    console.result(trained.verdict)
    console.result(f"Written to {folder}: model.summula, report.html, leaderboard.csv, certificate.json.")
    console.document(
        {
            "verdict": trained.verdict,
            "task": trained.task.kind,
            "metric": trained.metric,
            "model": trained.leaderboard.best.name,
            "estimate": trained.certificate.estimate,
            "lower": trained.certificate.lower,
            "upper": trained.certificate.upper,
            "delta": trained.certificate.delta,
            "rows held out": trained.certificate.n,
            "baseline": trained.baseline,
            "leaderboard": rows,
            "folder": folder,
            "interrupted": trained.leaderboard.interrupted,
            "streamed": trained.streamed,
            "gives the target away": trained.leaks,
        }
    )
