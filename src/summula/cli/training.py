"""`summula train`: options of the command line as a request, and the results as files, tables and messages."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from summula.cli.console import Console
from summula.cli.exit_codes import INTERRUPTED, CommandError
from summula.cli.predicting import check_no_input, files_of
from summula.core.data.readers.opening import Reading
from summula.stats.bounds import check_delta
from summula.training.checks import check_request
from summula.training.data.tables import open_data
from summula.training.pipeline import run
from summula.training.request import Request
from summula.training.result import RESULT_NAMES, TrainingResult
from summula.training.results_folder import committed_path, exclusive, output_folder

__all__ = ["train_table"]


def train_table(paths: list[str], reading: Reading, request: Request, out: str, console: Console) -> TrainingResult:
    """Train on the table of a file, write the results to a folder, and print them."""
    check_delta(request.delta)
    table = check_request(request, open_data(paths, console.remark, reading))
    for name in RESULT_NAMES:
        inputs = [*files_of(table.table), *([] if request.costs is None else [request.costs])]
        check_no_input(os.path.join(out, name), inputs, "choose another folder")
    with _folder(out) as folder, exclusive(folder):
        result = run(request, table, console)
        _check_worth_keeping(result, folder)
        result._write(folder)
    _print(result, console, out)
    return result


@contextmanager
def _folder(path: str) -> Iterator[str]:
    """Yield a folder to write to; folders created for it that are still empty after an error are removed."""
    made, above = [], os.path.abspath(path)
    while not os.path.lexists(above):
        made.append(above)
        above = os.path.dirname(above)
    folder = output_folder(path)
    try:
        yield folder
    except BaseException:
        with suppress(OSError):
            for one in made:
                os.rmdir(one)
        raise


def _check_worth_keeping(result: TrainingResult, folder: str) -> None:
    """Raise if an interrupted run has only the baseline, and would replace the results of an earlier run."""
    earlier = os.path.exists(committed_path(os.path.join(folder, "model.summula")))
    if result.interrupted and earlier and result._board.best.name == "baseline":
        raise CommandError(
            f"Stopped by Ctrl-C before a candidate was fitted; the results of an earlier run in {folder} are kept.",
            INTERRUPTED,
        )


def _print(result: TrainingResult, console: Console, folder: str) -> None:
    rows = result._board.rows()
    names = [name for name in rows[0] if name != "rank"]
    better = "larger" if result._metric.greater_is_better else "smaller"
    title = f"Compared on {result.n_training:,} rows by {result._metric.title}, {better} is better"
    console.table(title, names, [[row[name] for name in names] for row in rows])
    console.result(result.verdict)
    console.result(f"Written to {folder}: {', '.join(RESULT_NAMES)}.")
    certificate = result.certificate
    console.document(
        {
            "verdict": result.verdict,
            "task": result._task.kind,
            "metric": result.metric,
            "model": result._board.best.name,
            "estimate": certificate.estimate,
            "lower": certificate.lower,
            "upper": certificate.upper,
            "delta": certificate.delta,
            "rows held out": certificate.n,
            "baseline": result.baseline,
            "beats baseline": result.beats_baseline,
            "leaderboard": rows,
            "folder": folder,
            "interrupted": result.interrupted,
            "streamed": result._streamed,
            "leakage": result.leaks,
        }
    )
