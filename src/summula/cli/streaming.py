"""Training from files, for tables beyond memory: encoded rows go to scratch files, and fits are sums over these.

Three passes over the table: its target; the sums of the training rows; and one that encodes them and writes each row to
the files of its fold, or to those of the rows held out. Folds are drawn by hashes of (seed, row). A fit reads the files
of the other folds. The target's column alone is held in memory.
"""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.cli.candidates import Candidate, candidates_for
from summula.cli.comparison import Judgement, judgement
from summula.cli.console import Console
from summula.cli.costs import read_costs
from summula.cli.inspecting import leaks_of_training
from summula.cli.metrics import Judged, certified, metric_for, risk_of
from summula.cli.rows import number_in_blocks, numbered
from summula.cli.schedule import Budget, compare_candidates, last_fit
from summula.cli.scratch import HELD_OUT, LEFT_OUT, Scratch
from summula.cli.tables import (
    as_labels,
    fold_of,
    free_memory,
    held_out,
    inferred_task,
    read_table,
    rows_of,
    target_values,
)
from summula.cli.training import (
    Request,
    Trained,
    announce,
    announce_columns,
    announce_end,
    check_training_target,
    encoders_of,
    guess_of,
    last_fit_by,
    quietly,
    table_model,
    versions,
)
from summula.core.data.scan import Scan
from summula.preprocessing.table_encoder import column_sums
from summula.preprocessing.table_encoder_blocks import table_blocks

__all__ = ["train_on_files"]

Array = NDArray[Any]

_FOLDS = 3
_IN_MEMORY = 6  # how often the rows of a fit in memory are held there: fits make copies
_LOOKED_AT = 50_000  # rows, for columns that give the target away
_SHOWN = 100_000  # held-out rows that a report draws


@dataclass(frozen=True)
class FileFold:
    """A fold in scratch files: rows of the other files to fit on, and its own to judge by."""

    scratch: Scratch
    number: int
    n_rows: int
    judged: Judged
    seed: int

    def most_rows(self, candidate: Candidate) -> int:
        """All of them, unless they have to be in memory."""
        return _most_rows(self.scratch, candidate, self.n_rows)

    def prepare(self, candidate: Candidate) -> None:
        """The files are there."""

    def fit(self, candidate: Candidate, max_time: float, rows: int) -> Any:
        """A model of so many of the rows."""
        others = [k for k in range(_FOLDS) if k != self.number]
        return _fitted(self.scratch, candidate, self.seed, max_time, others, rows, self.n_rows)

    def judge(self, candidate: Candidate, model: Any) -> Judgement:
        """The risk of a model on the rows of this fold."""
        blocks = table_blocks(self.scratch.rows(candidate.codes, [self.number]))
        total = squares = 0.0
        for piece in blocks.pieces():
            columns = piece.columns()
            y = columns.pop("y")
            y = y if isinstance(y, np.ndarray) else y.to_numpy(zero_copy_only=False)
            losses = self.judged.losses(model, np.column_stack(list(columns.values())), y)
            total, squares = total + float(losses.sum()), squares + float((losses**2).sum())
        return judgement(total, squares, blocks.n_rows)


def _most_rows(scratch: Scratch, candidate: Candidate, n_rows: int) -> int:
    if not candidate.many_passes:
        return n_rows
    width = len(scratch.encoders[candidate.codes].get_feature_names_out())
    return min(n_rows, max(int(free_memory() / (_IN_MEMORY * 8 * width)), 1_000))


def _fitted(
    scratch: Scratch, candidate: Candidate, seed: int, max_time: float, folds: list[int], rows: int, n_rows: int
) -> Any:
    """A model of so many of the rows of some folds: from the files where these are all, else from memory."""
    encoder = scratch.encoders[candidate.codes]
    if rows < n_rows or candidate.many_passes:
        rows = min(rows, _most_rows(scratch, candidate, n_rows))
        return candidate.fit(encoder, seed, max_time, *scratch.leading(candidate.codes, folds, rows))
    model = candidate.fit(encoder, seed, max_time, scratch.rows(candidate.codes, folds), "y")
    # It is to take encoded rows as plain arrays.
    for name in ("feature_names_in_", "_not_features"):
        vars(model).pop(name, None)
    return model


def train_on_files(request: Request, table: Scan, console: Console, began: float) -> Trained:
    """The same as in memory, from scratch files."""
    import pyarrow as pa

    values, there = target_values(read_table(table, [request.target])[request.target])
    with numbered(np.flatnonzero(there).__getitem__):
        task = inferred_task(values[there], request.task, request.target)
    metric = metric_for(task.kind, request.metric)
    announce(console, request, table.n_rows, task, int((~there).sum()))
    candidates = candidates_for(task.kind, task.counts, request.models)
    console.remark(f"Trained from files: rows are encoded to scratch files, and compared on {_FOLDS} folds of them.")
    y = np.zeros(len(values), dtype=np.int64 if task.kind == "classes" and values.dtype.kind != "O" else values.dtype)
    y[there] = as_labels(values[there]) if task.kind == "classes" else values[there]
    del values
    folds = _folds(there, request)
    training, aside = folds >= 0, folds == HELD_OUT
    check_training_target(y[training], request)
    features = [name for name in table.columns if name != request.target]
    blocks = table_blocks(table, features)
    with numbered(partial(number_in_blocks, training)):
        sums = column_sums(rows_of(blocks, training))
    encoders = encoders_of(sums, features)
    few = read_table(table, features, last=_LOOKED_AT)
    few = few.filter(pa.array(training[: few.num_rows]))
    known = y[:_LOOKED_AT][training[:_LOOKED_AT]]
    found = leaks_of_training(few, known, task.kind == "classes", encoders[False].dropped_)
    announce_columns(console, request, encoders[False].dropped_, found)
    classes = np.unique(y[training]) if task.kind == "classes" else None
    costs = None if request.costs is None else read_costs(request.costs, classes)
    judged, n_training = Judged(metric, classes, costs), int(training.sum())
    with tempfile.TemporaryDirectory(dir=os.environ.get("SUMMULA_SCRATCH")) as folder:
        scratch = Scratch(folder, encoders, {one.codes for one in candidates}, request.target)
        scratch.check_room(table.n_rows)
        scratch.write(blocks, y, folds)
        sizes = [n_training - int((folds == k).sum()) for k in range(_FOLDS)]
        rounds = [FileFold(scratch, k, sizes[k], judged, request.seed) for k in range(_FOLDS)]
        budget = Budget(last_fit_by(request, began), n_training)
        with console.progress(len(rounds) * len(candidates)) as report:
            board = compare_candidates(candidates, rounds, metric, budget, report, request.debug)
        announce_end(console, board, budget)

        def fit(one: Candidate, left: float, rows: int) -> Any:
            return _fitted(scratch, one, request.seed, left, list(range(_FOLDS)), rows, n_training)

        fitted = last_fit(board, sizes[0], budget, fit)
        encoder = encoders[board.best.candidate.codes]
        model = table_model(encoder, fitted, request.target, metric, costs, y[training])
        model.training_hashes_ = scratch.hashes
        with quietly():
            certificate = certified(model, scratch.held_out(), request.target, request.delta)
        shown = read_table(scratch.held_out(), last=_SHOWN).drop_columns([request.target])
    answers = y[aside]
    guess = guess_of(y[training], task)
    return Trained(
        request,
        task,
        metric,
        table.n_rows,
        board,
        model,
        certificate,
        risk_of(metric, answers, np.full(len(answers), guess, dtype=answers.dtype)),
        sums,
        shown,
        answers[:_SHOWN],
        n_training,
        time.monotonic() - began,
        versions(),
        found,
        streamed=True,
    )


def _folds(there: NDArray[np.bool_], request: Request) -> NDArray[np.int8]:
    """The fold of each row; HELD_OUT for those set aside, LEFT_OUT for those without a target."""
    folds = np.full(len(there), LEFT_OUT, np.int8)
    aside = held_out(int(there.sum()), request.share, request.seed)
    of_rows = np.full(len(aside), HELD_OUT, np.int8)
    of_rows[~aside] = fold_of(int((~aside).sum()), _FOLDS, request.seed + 1)
    folds[there] = of_rows
    return folds
