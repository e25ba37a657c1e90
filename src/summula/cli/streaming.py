"""Training from files, for tables beyond memory: encoded rows go to scratch files, and fits are sums over these.

Three passes over the table: its target; the sums of the training rows; and one that encodes them and writes the rows to
fit, the rows to compare candidates on (one split instead of folds), and the rows held out. The target's column alone is
held in memory. Scratch files are in the folder SUMMULA_SCRATCH, or the system's.
"""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.certification_hashes import row_hashes
from summula.cli.candidates import Candidate, candidates_for
from summula.cli.comparison import compare_candidates
from summula.cli.console import Console
from summula.cli.costs import read_costs
from summula.cli.metrics import Judged, certified, metric_for, risk_of
from summula.cli.seen import smallest
from summula.cli.tables import as_labels, held_out, inferred_task, read_table, rows_of, target_values
from summula.cli.training import (
    COMPARING,
    Request,
    Trained,
    announce,
    check_training_target,
    encoders_of,
    guess_of,
    quietly,
    table_model,
    versions,
)
from summula.core.scan import Scan, scan
from summula.preprocessing.table_encoder import column_sums
from summula.preprocessing.table_encoder_blocks import Blocks, table_blocks

__all__ = ["train_on_files"]

Array = NDArray[Any]

_CHECKED = 0.2  # share of the training rows that candidates are compared on
_SHOWN = 100_000  # held-out rows that a report draws


def train_on_files(request: Request, table: Scan, console: Console, began: float) -> Trained:
    """The same as in memory, from scratch files."""
    values, there = target_values(read_table(table, [request.target])[request.target])
    task = inferred_task(values[there], request.task, request.target)
    metric = metric_for(task.kind, request.metric)
    announce(console, request, table.n_rows, task, int((~there).sum()))
    candidates = candidates_for(task.kind, task.counts, request.models, streams=True)
    names = ", ".join(one.name for one in candidates)
    console.remark(f"Trained from files, with the candidates that stream: {names}; compared on one split.")
    y = np.zeros(len(values), dtype=np.int64 if task.kind == "classes" and values.dtype.kind != "O" else values.dtype)
    y[there] = as_labels(values[there]) if task.kind == "classes" else values[there]
    aside, checked = _parts(there, request)
    check_training_target(y[there & ~aside], request)
    features = [name for name in table.columns if name != request.target]
    blocks = table_blocks(table, features)
    sums = column_sums(rows_of(blocks, there & ~aside))
    encoders = encoders_of(sums, features)
    for name, why in encoders[False].dropped_.items():
        console.remark(f"Column {name!r} is left out: {why}.")
    classes = np.unique(y[there & ~aside]) if task.kind == "classes" else None
    costs = None if request.costs is None else read_costs(request.costs, classes)
    with tempfile.TemporaryDirectory(dir=os.environ.get("SUMMULA_SCRATCH")) as folder:
        scratch = _Scratch(folder, encoders, {one.codes for one in candidates}, request.target)
        scratch.write(blocks, y, there & ~aside & ~checked, checked, aside)
        judged = Judged(metric, classes, costs)

        def fit_and_judge(candidate: Candidate, left: float) -> float:
            rows = scratch.rows(candidate.codes, "fit")
            model = candidate.fit(encoders[candidate.codes], request.seed, left, rows, "y")
            return _risk(judged, _nameless(model), scratch.rows(candidate.codes, "check"))

        deadline = began + COMPARING * request.seconds
        with console.progress(len(candidates)) as report:
            board = compare_candidates(candidates, [fit_and_judge], metric, deadline, report, request.debug)
        if board.interrupted:
            console.remark("Stopped by Ctrl-C: going on with what is finished.")
        best = board.best.candidate
        left = max(request.seconds - (time.monotonic() - began), 1.0)
        with quietly():
            rows = scratch.rows(best.codes, "fit", "check")
            fitted = best.fit(encoders[best.codes], request.seed, left, rows, "y")
            model = table_model(
                encoders[best.codes], _nameless(fitted), request.target, metric, costs, y[there & ~aside]
            )
            model.training_hashes_ = scratch.hashes
            certificate = certified(model, scratch.held_out(), request.target, request.delta)
        shown = read_table(scratch.held_out()).slice(0, _SHOWN).drop_columns([request.target])
    answers = y[aside]
    guess = guess_of(y[there & ~aside], task)
    return Trained(
        request,
        task,
        metric,
        table.n_rows,
        int((~there).sum()),
        board,
        model,
        certificate,
        risk_of(metric, answers, np.full(len(answers), guess, dtype=answers.dtype)),
        sums,
        shown,
        answers[:_SHOWN],
        int((there & ~aside).sum()),
        time.monotonic() - began,
        versions(),
        streamed=True,
    )


def _parts(there: NDArray[np.bool_], request: Request) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which rows are held out, and which of the others candidates are compared on."""
    aside, checked = np.zeros(len(there), bool), np.zeros(len(there), bool)
    aside[there] = held_out(int(there.sum()), request.share, request.seed)
    training = there & ~aside
    checked[training] = held_out(int(training.sum()), _CHECKED, request.seed + 1)
    return aside, checked


class _Scratch:
    """Files of encoded rows to fit and to check, and of raw rows held out."""

    def __init__(self, folder: str, encoders: dict[bool, Any], kinds: set[bool], target: str) -> None:
        self.folder, self.encoders, self.kinds, self.target = folder, encoders, sorted(kinds), target
        self.hashes: NDArray[np.uint64] = np.empty(0, np.uint64)
        self.used = [column.name for column in encoders[False].columns_ if column.kind != "dropped"]

    def _path(self, codes: bool, part: str) -> str:
        return os.path.join(self.folder, f"{part}-{'codes' if codes else 'indicators'}.arrow")

    def rows(self, codes: bool, *parts: str) -> Scan:
        return scan([self._path(codes, part) for part in parts])

    def held_out(self) -> Scan:
        return scan(os.path.join(self.folder, "aside.arrow"))

    def write(self, blocks: Blocks, y: Array, fit: Array, check: Array, aside: Array) -> None:
        """One pass over the table."""
        with ExitStack() as open_files:
            writers: dict[str, Any] = {}

            def put(path: str, columns: dict[str, Any]) -> None:
                import pyarrow as pa

                batch = pa.record_batch(columns)
                if path not in writers:
                    writers[path] = open_files.enter_context(pa.ipc.new_file(path, batch.schema))
                writers[path].write_batch(batch)

            for start, stop in blocks.parts():
                columns, target = blocks.read(start, stop), y[start:stop]
                here = blocks._replace(n_rows=stop - start, read=lambda a, b, c=columns: c)  # type: ignore[misc]
                learned = fit[start:stop] | check[start:stop]
                self._remember(columns, target, learned)
                for codes in self.kinds:
                    rows = np.concatenate(list(self.encoders[codes].encoded(here)))
                    for part, chosen in (("fit", fit[start:stop]), ("check", check[start:stop])):
                        kept = rows[chosen]
                        named = {f"x{j}": np.ascontiguousarray(kept[:, j]) for j in range(rows.shape[1])}
                        put(self._path(codes, part), {**named, "y": target[chosen]})
                raw = {name: _chosen(columns[name], aside[start:stop]) for name in self.used}
                put(os.path.join(self.folder, "aside.arrow"), {**raw, self.target: target[aside[start:stop]]})

    def _remember(self, columns: dict[str, Any], target: Array, learned: Array) -> None:
        import pyarrow as pa

        if learned.any():
            table = pa.table({name: _chosen(columns[name], learned) for name in self.used})
            self.hashes = smallest(np.concatenate([self.hashes, row_hashes(table, target[learned])]))


def _chosen(values: Any, chosen: Array) -> Any:
    import pyarrow as pa

    if isinstance(values, np.ndarray):
        return pa.array(values[chosen], from_pandas=True)
    return values.filter(pa.array(chosen))


def _nameless(model: Any) -> Any:
    """A model that takes encoded rows as plain arrays."""
    for name in ("feature_names_in_", "_not_features"):
        vars(model).pop(name, None)
    return model


def _risk(judged: Judged, model: Any, rows: Scan) -> float:
    blocks = table_blocks(rows)
    total = 0.0
    for part in blocks.parts():
        columns = blocks.read(*part)
        y = columns.pop("y")
        y = y if isinstance(y, np.ndarray) else y.to_numpy(zero_copy_only=False)
        total += judged.of(model, np.column_stack(list(columns.values())), y) * len(y)
    return total / blocks.n_rows
