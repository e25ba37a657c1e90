"""A training run: hold out rows, compare candidates on the others, refit the best, certify it on the held-out rows.

1. read the target, and detect its type (target.py)
2. draw the hold-out and the folds (split.py)
3. summarise the columns of the training rows, and plan their encodings (preprocessing)
4. detect target leakage (leaks.py)
5. compare candidates fold by fold within the time (schedule.py), on rows in memory (memory_rows.py) or in scratch files
   (file_rows.py)
6. fit the best to all training rows, and certify it on the held-out rows (metrics.py)
"""

from __future__ import annotations

import os
import platform
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

import summula
from summula.core.compilation.background import expect_later
from summula.core.errors import DataError, TimeLimitError
from summula.preprocessing import TableEncoder, TableModel
from summula.preprocessing.table_encoder import column_sums
from summula.preprocessing.table_encoder_blocks import table_blocks
from summula.training.comparison.candidates import ENSEMBLE, Candidate, candidates_for, kernels_of
from summula.training.comparison.certified import evaluate_on_holdout, risk_of
from summula.training.comparison.ensembles import add_ensemble, out_of_fold
from summula.training.comparison.leaderboard import Leaderboard
from summula.training.comparison.linear_fits import LinearFit, linear_fit
from summula.training.comparison.metrics import Evaluator, LeftOut, metric_for
from summula.training.comparison.rows import Fold, Rows
from summula.training.comparison.schedule import Budget, compare_candidates, last_fit
from summula.training.data.costs import costs_of
from summula.training.data.encoded_holdout import EncodedHoldout
from summula.training.data.file_rows import FileRows
from summula.training.data.keys import key_remark
from summula.training.data.leaks import leak_sentence, leaks_of_training
from summula.training.data.memory_rows import MemoryRows
from summula.training.data.profile import as_read, spelled_remark
from summula.training.data.row_numbers import located_in, number_in_blocks, numbered
from summula.training.data.split import Split, key_values, split_rows
from summula.training.data.tables import TableSource, blocks_of_rows, free_memory, read_table
from summula.training.data.target import (
    Task,
    as_labels,
    constant_prediction,
    inferred_task,
    read_target,
)
from summula.training.data.training_overlap import copies_remark
from summula.training.names import ranks_alike, task_name
from summula.training.near_perfect import near_perfect_remark
from summula.training.request import Request
from summula.training.result import WARNING, Labelled, TrainingResult
from summula.training.table_models import Clipped, Encoders, average_of, baseline_of, encoders_of, table_model

__all__ = ["Listener", "Rows", "run", "versions"]

Array = NDArray[Any]

_LAST, _LONGEST_LAST = 0.15, 10.0  # fraction of the time, and seconds, for the certificate, the report and the files
_LONGEST_BEFORE = 5.0  # seconds
_COPIES = 6  # number of copies of a table in memory: itself, two encodings, and those of fits
_LOOKED_AT = 50_000  # rows of files that are searched for leakage
_SHOWN = 100_000  # held-out rows in the report
_DRAWN = 10_000  # training rows in the report


class Listener(Protocol):
    """Receives progress reports."""

    def remark(self, text: str) -> None:
        """Receive a remark."""

    def progress(self, total: int) -> Any:
        """Return a context manager that yields a function of the fold, the model, and the number of completed steps."""


class Target(NamedTuple):
    """The target of a table: values (arbitrary if missing), a mask of the rows that have one, and its type."""

    y: Array
    known: NDArray[np.bool_]
    task: Task


def run(request: Request, table: TableSource, listener: Listener) -> TrainingResult:
    """Train on a table whose request has been validated by `check_request`."""
    began = time.monotonic()
    with located_in(table.table) if table.is_scan else nullcontext(), ExitStack() as open_folders:
        open_folders.callback(expect_later)  # no kernels are expected after this run
        return _Training(request, table, listener, began).run(open_folders)


class _Training:
    """One run, step by step."""

    def __init__(self, request: Request, table: TableSource, listener: Listener, began: float) -> None:
        self.request, self.began, self.remarks = request, began, list[str]()
        self._listener = listener
        self.streamed = request.stream or _too_large(table.n_rows * len(table.columns))
        self.table = table if self.streamed else table.in_memory(request.target)
        self.features = [name for name in table.columns if name != request.target and name not in request.key_columns]

    def remark(self, text: str) -> None:
        self.remarks.append(text)
        self._listener.remark(text)

    def run(self, open_folders: ExitStack) -> TrainingResult:
        request = self.request
        target = self._target()
        metric = metric_for(
            target.task.kind, request.metric, request.costs is not None, text=target.y.dtype.kind in "OU"
        )
        if request.metric is not None and ranks_alike(request.metric):
            self.remark(f"Candidates are compared by {metric.name} errors, which rank them as {request.metric} does.")
        split = self._split(target)
        y = target.y
        sums = self._sums(split)
        encoders = encoders_of(sums, self.features)
        self._announce(target, sums)
        sample = self._training_sample(split, y, sums)
        leaks = self._leaks(sample, target.task, encoders[False].dropped_)
        classes = np.unique(y[split.training]) if target.task.kind == "classes" else None
        costs = None if request.costs is None else costs_of(request.costs, classes)
        evaluator = Evaluator(metric, classes, costs)
        pairs = encoders[False].n_columns_out ** 2 * (1 if classes is None else len(classes))
        candidates = candidates_for(target.task.kind, target.task.counts, request.models, request.class_weight, pairs)
        has_categories = bool(encoders[True].categorical_features_)
        expect_later(*kernels_of(candidates, 0 if classes is None else len(classes), has_categories=has_categories))
        rows = self._rows(encoders, candidates, y, split, open_folders)
        board, fitted = self._compared(candidates, rows, split, evaluator, encoders)
        best = board.best
        left_out = (
            None if request.time_column else out_of_fold(best, board.rounds)
        )  # (later rows may exceed this range)
        predicted = [one.output for one in left_out or ()]
        model = table_model(encoders[best.codes], fitted, request.target, evaluator, y[split.training], predicted)
        model.threshold = best.threshold if evaluator.chooses_threshold else None
        model.training_hashes_ = rows.hashes([str(name) for name in model.feature_names_in_])
        X, answers = rows.sample(_SHOWN)
        if text := copies_remark(
            model.training_hashes_, X.select([str(name) for name in model.feature_names_in_]), answers
        ):
            self.remark(text)
        holdout = EncodedHoldout(encoders, X, answers, int(split.held_out.sum()))
        certificate, beats = self._certificate(board, model, rows, encoders, split, holdout)
        self._evaluate_on_holdout(board, model, holdout, evaluator)
        if not leaks and (text := near_perfect_remark(model, X, answers, request.target)):
            self.remark(WARNING + text)
        guess = constant_prediction(y[split.training], target.task.kind, classes, costs)
        aside = y[split.held_out]
        return TrainingResult(
            model=model,
            certificate=certificate,
            baseline=risk_of(metric.name, aside, np.full(len(aside), guess, dtype=aside.dtype), classes, costs),
            beats_baseline=beats,
            leaks=leaks,
            remarks=self.remarks,
            n_rows=self.table.n_rows,
            n_training=int(split.training.sum()),
            seconds=time.monotonic() - self.began,
            _board=board,
            _request=request,
            _task=target.task,
            _table=self.table.name,
            _sums=sums,
            _holdout=Labelled(X, answers),
            _sample=sample.head(_DRAWN),
            _encoded_holdout=holdout.kept_rows(best.codes),
            _linear=self._linear_fit(board, model, rows, encoders[False], split),
            _finished=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            _versions=versions(),
            _streamed=self.streamed,
        )

    # ------------------------------------------------------------------------------------------------------- the rows

    def _target(self) -> Target:
        request = self.request
        kind = None if request.task is None else task_name(request.task)
        values, known, remark = read_target(self.table.column(request.target), kind, request.target)
        if remark:
            self.remark(remark)
        with numbered(np.flatnonzero(known).__getitem__):
            task = inferred_task(values[known], kind, request.target)
        if task.kind == "numbers":
            y = np.zeros(len(values))
            y[known] = values[known].astype(np.float64)
        else:
            labels = as_labels(values[known])
            if self.streamed and labels.dtype.kind == "b":  # scratch files hold numbers: 1 and 0 equal True and False
                labels = labels.astype(np.int64)
            y = np.full(len(values), labels[0], dtype=labels.dtype)
            y[known] = labels
        return Target(y, known, task)

    def _split(self, target: Target) -> Split:
        request = self.request
        keys = {}
        for kind, name in (("groups", request.groups), ("times", request.time_column)):
            if name is not None:
                keys[kind] = key_values(self.table.column(name), name, times=kind == "times")
        classes = target.y[target.known] if target.task.kind == "classes" else None
        split = split_rows(target.known, classes, request.holdout, request.seed, **keys)
        y = target.y[split.training]
        if not (y != y[0]).any():
            raise DataError(
                f"All training rows have the same {request.target!r}; add rows with other values, or use another seed."
            )
        return split if classes is None else self._with_classes(target.y, split)

    def _with_classes(self, y: Array, split: Split) -> Split:
        """Return the rounds with several classes; remark on classes that cannot be learned or evaluated."""
        labels, counts = np.unique(y[split.training], return_counts=True)
        rarest, name = labels[counts.argmin()], self.request.target
        rounds = [one for one in split.rounds if len(np.unique(y[np.isin(split.folds, one[0])])) > 1]
        key = self.request.groups or self.request.time_column
        if not rounds and key is not None:
            raise DataError(
                f"Split by {key!r}, no part of the training rows to fit on has two classes of {name!r}, so models "
                f"cannot be compared: split without {key!r}, or add rows."
            )
        if len(rounds) < len(split.rounds) and key is None:
            rows = "a single row" if counts.min() == 1 else f"{counts.min()} rows"
            raise DataError(
                f"The class {_label(rarest)} of {name!r} has {rows} among the training rows, too few for fitting and "
                "evaluation: add rows of this class, or choose another target."
            )
        held = y[split.held_out]
        unseen = held[~np.isin(held, labels)]
        if len(unseen) == len(held):
            cure = "add rows" if key is None else f"split without {key!r}, or add rows"
            raise DataError(
                f"All {len(held):,} held-out rows have classes of {name!r} that no training row has, such as "
                f"{_label(unseen[0])}, so nothing can be evaluated: {cure}."
            )
        if len(unseen):
            where = "" if key is None else f" (split by {key!r})"
            have, they = ("has", "it counts as an error") if len(unseen) == 1 else ("have", "they count as errors")
            self.remark(
                f"{WARNING}{len(unseen):,} of {len(held):,} held-out rows{where} {have} a class of {name!r} that no "
                f"training row has, such as {_label(unseen[0])}; {they}."
            )
        if len(labels) > 2 and counts.min() == 1:
            self.remark(
                f"The class {_label(rarest)} of {self.request.target!r} has a single training row, and cannot be "
                "evaluated: add rows of this class, or leave it out."
            )
        return split._replace(rounds=rounds)

    def _sums(self, split: Split) -> dict[str, Any]:
        with numbered(partial(number_in_blocks, split.training)):
            return dict(column_sums(blocks_of_rows(self.table.table, self.features, split.training)))

    def _training_sample(self, split: Split, y: Array, sums: dict[str, Any]) -> Labelled:
        """Return the first training rows in memory, unencoded except for text that is read as numbers."""
        import pyarrow as pa

        if self.table.is_scan:
            few = read_table(self.table.table, self.features, last=_LOOKED_AT)
        else:
            few = self.table.table.select(self.features).slice(0, 2 * _LOOKED_AT)
        chosen = split.training[: few.num_rows]
        return Labelled(as_read(few.filter(pa.array(chosen)), sums), y[: few.num_rows][chosen])

    def _leaks(self, sample: Labelled, task: Task, dropped: dict[str, str]) -> dict[str, str]:
        found = leaks_of_training(sample.X, sample.y, task.kind == "classes", dropped)
        for name, why in dropped.items():
            self.remark(f"Column {name!r} is left out: {why}.")
        for name, why in found.items():
            self.remark(WARNING + leak_sentence(name, self.request.target, why))
        return found

    def _rows(
        self,
        encoders: Encoders,
        candidates: list[Candidate],
        y: Array,
        split: Split,
        open_folders: ExitStack,
    ) -> Rows:
        width = encoders[False].n_columns_out
        request = self.request
        if not self.streamed and not _too_large(int(split.training.sum()) * width // 2):
            return MemoryRows(encoders, self.table.table.select(self.features), y, split, request.seed)
        self.streamed = True
        self.remark("The rows are encoded to scratch files, and models are fitted from these.")
        folder = open_folders.enter_context(tempfile.TemporaryDirectory(dir=os.environ.get("SUMMULA_SCRATCH")))
        rows = FileRows(folder, encoders, {one.codes for one in candidates}, request.target, request.seed)
        rows.write(table_blocks(self.table.table, self.features), y, split)
        return rows

    # ------------------------------------------------------------------------------------------------- the comparison

    def _compared(
        self, candidates: list[Candidate], rows: Rows, split: Split, evaluator: Evaluator, encoders: Encoders
    ) -> tuple[Leaderboard, Any]:
        request = self.request
        folds = [Fold(rows, fit_on, validate_on, evaluator) for fit_on, validate_on in split.rounds]
        everything = list(range(int(split.folds.max()) + 1))
        # The steps after the comparison take about as long as those before it, in wide tables most of the time.
        before = min(time.monotonic() - self.began, _LONGEST_BEFORE)
        end = self.began + request.time - min(_LAST * request.time, _LONGEST_LAST) - before
        budget = Budget(end, rows.count(everything))
        with self._listener.progress(len(folds) * len(candidates)) as report:
            board = compare_candidates(candidates, folds, evaluator.metric, budget, report, request.debug)
        if budget.compiling >= 1.0:
            self.remark(
                f"Kernels were compiled for {budget.compiling:.0f} s, once on this machine, which is not counted as "
                "training time; `summula warmup` does it beforehand."
            )
        if board.interrupted:
            self.remark("Stopped by Ctrl-C: continuing with the finished candidates.")
        average = partial(average_of, encoders)
        if request.models is None or ENSEMBLE in request.models:
            add_ensemble(board, evaluator, average, budget.left)
        return board, last_fit(
            board, folds[0].n_rows, budget, lambda one, left, count: rows.fit(one, left, everything, count), average
        )

    def _linear_fit(
        self, board: Leaderboard, model: TableModel, rows: Rows, encoder: TableEncoder, split: Split
    ) -> LinearFit | None:
        """Fit the best linear candidate to all training rows, for the coefficients in the report."""
        everything = list(range(int(split.folds.max()) + 1))
        n_rows = rows.count(everything)

        def fit(candidate: Candidate, seconds: float) -> Any:
            if time.monotonic() + seconds > self.began + self.request.time:
                raise TimeLimitError("There is no time left for another fit.")
            return rows.fit(candidate, seconds, everything, n_rows)

        return linear_fit(board, model.model, encoder, n_rows, fit)

    def _certificate(
        self,
        board: Leaderboard,
        model: TableModel,
        rows: Rows,
        encoders: Encoders,
        split: Split,
        holdout: EncodedHoldout,
    ) -> tuple[Any, bool]:
        """Return the certificate, and whether held-out rows show that the model is better than the baseline."""
        X, y = rows.holdout()
        places = np.flatnonzero(split.held_out)
        with quietly(), numbered(places.__getitem__):
            found = evaluate_on_holdout(
                model,
                baseline_of(board, model, encoders[False]),
                X,
                y,
                self.request.delta,
                split.groups,
                _with_baseline(board),
                None if self.streamed else holdout.predictor(model, board.best.codes),
            )
        certificate, comparison = found
        if self.request.time_column is not None:
            certificate = replace(certificate, sampling="latest rows")
        if comparison is None:
            return certificate, False
        if comparison.p_value is not None:  # two-sided; only one side is relevant here
            return certificate, bool(comparison.estimate < 0 and comparison.p_value / 2 <= self.request.delta)
        return certificate, bool(comparison.upper < 0)

    def _evaluate_on_holdout(
        self, board: Leaderboard, model: TableModel, holdout: EncodedHoldout, evaluator: Evaluator
    ) -> None:
        """Evaluate every finished candidate on held-out rows."""
        for entry in board.entries:
            if entry.model is None or board.interrupted:
                continue
            final = model.model if entry is board.best else entry.model
            threshold = entry.threshold if evaluator.chooses_threshold and hasattr(final, "predict_proba") else None
            with quietly():
                entry.holdout = evaluator.interval(
                    Clipped(final, model), holdout.rows(entry.codes), holdout.y, threshold
                )

    # -------------------------------------------------------------------------------------------------------- remarks

    def _announce(self, target: Target, sums: dict[str, Any]) -> None:
        request, task, missing = self.request, target.task, int((~target.known).sum())
        self.remark(
            f"{self.table.name}: {self.table.n_rows:,} rows; "
            f"{request.target!r} is taken as {task.kind} ({task.reason})."
        )
        if missing:
            rows = "1 row" if missing == 1 else f"{missing:,} rows"
            self.remark(f"{rows} without a value of {request.target!r} {'is' if missing == 1 else 'are'} left out.")
        for name, one in sums.items():
            if text := spelled_remark(name, one):
                self.remark(text)
        if request.key_columns:
            return
        for name, one in sums.items():
            if text := key_remark(name, one):
                self.remark(text)


def _with_baseline(board: Leaderboard) -> list[tuple[LeftOut, LeftOut]]:
    """Return out-of-fold predictions of the best candidate and of the baseline, fold by fold."""
    baseline = next((one for one in board.entries if one.name == "baseline"), board.best)
    own, other = (out_of_fold(one, board.rounds) for one in (board.best, baseline))
    return [] if own is None or other is None else list(zip(own, other, strict=True))


def _label(value: Any) -> str:
    """Format a class label for messages."""
    return repr(value.item() if hasattr(value, "item") else value)


def _too_large(cells: int) -> bool:
    return _COPIES * 8 * cells > free_memory()


@contextmanager
def quietly() -> Iterator[None]:
    """Suppress warnings, which the leaderboard reports as notes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def versions() -> dict[str, str]:
    """Return the versions of Python and the libraries in use."""
    from importlib.metadata import version

    found = {name: version(name) for name in ("numpy", "scipy", "scikit-learn", "numba", "pyarrow")}
    return {"summula": summula.__version__, "python": platform.python_version(), **found}
