"""The commands and their options; they are implemented in other files of this folder, imported when a command runs."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any

import typer

from summula.cli.console import Console
from summula.cli.exit_codes import BUG, code_of, sentence_of
from summula.cli.starting import rarely_collected, uncollected
from summula.core.data.printable import printable

__all__ = ["app", "main"]

_CODES = (
    "Exit codes: 0 done, 1 a bug, 2 wrong command line, 3 unusable data or option, 4 unusable model file, "
    "5 output cannot be written, 6 out of time, 130 stopped by Ctrl-C."
)

app = typer.Typer(
    name="summula",
    help="Train a model on a table and certify its error on held-out rows.",
    epilog=_CODES,
    no_args_is_help=True,
    rich_markup_mode=None,  # help in plain text, which takes a third of the time
    pretty_exceptions_enable=False,
)

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Suppress tables and remarks.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
TableArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="TABLE",
        help="CSV, JSON lines, Excel, Parquet or Arrow: files, a folder, - for standard input, duckdb:FILE or a "
        "postgresql: URL.",
    ),
]
Encoding = Annotated[str | None, typer.Option(help="Encoding of text files; UTF-8, UTF-16 and Latin-1 are detected.")]
Header = Annotated[
    bool | None,
    typer.Option("--header/--no-header", help="Whether text files have a header line; detected by default."),
]
Query = Annotated[str | None, typer.Option(help="SQL query or table name, for databases.")]
ModelArgument = Annotated[str, typer.Argument(metavar="MODEL", help="model.summula, or the folder it is in.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing files.")]
Delta = Annotated[float, typer.Option(help="Probability that a bound is wrong (1 - confidence level).")]


class ClassWeight(StrEnum):
    """Class weights."""

    balanced = "balanced"


def _known_name(kind: str, given: str | None) -> str | None:
    """Return a metric or task unchanged, if it is a known name."""
    if given is None:
        return None
    with uncollected():
        from summula.core.errors import ParameterError
        from summula.training.names import metric_name, task_name

    try:
        (task_name if kind == "task" else metric_name)(given)
    except ParameterError as error:
        raise typer.BadParameter(str(error)) from None
    return given


def _metric(given: str | None) -> str | None:
    return _known_name("metric", given)


def _task(given: str | None) -> str | None:
    return _known_name("task", given)


def _run(work: Callable[[Console], None], as_json: bool, quiet: bool, debug: bool) -> None:
    """Run a command; errors become one sentence and an exit code."""
    console = Console(as_json=as_json, quiet=quiet)
    console.report_compilation()
    try:
        work(console)
    except BaseException as error:
        if isinstance(error, typer.Exit | SystemExit) or debug:
            raise
        console.error(sentence_of(error))
        raise typer.Exit(code_of(error)) from None


def _command() -> str:
    """Return the command line for the report, without passwords of databases."""
    from summula.core.data.readers.databases import without_password

    return " ".join(["summula", *map(without_password, sys.argv[1:])])


def _names(text: str) -> list[str]:
    """Return the distinct names of a comma-separated list."""
    return list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


@app.command()
def train(
    table: TableArgument,
    target: Annotated[str, typer.Option("--target", "-t", help="Target column.")],
    out: Annotated[str, typer.Option("--out", "-o", help="Output folder.")] = "summula-out",
    time: Annotated[float, typer.Option(min=1.0, help="Time limit in seconds.")] = 60.0,
    models: Annotated[
        str | None, typer.Option(help="Candidate models, separated by commas; by default all that apply to the target.")
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            callback=_metric,
            help="Metric to compare by. Classes: accuracy (default), balanced_accuracy, f1, auc, average_precision, "
            "log_loss, expected_cost (default with --costs). Numbers: absolute (default), squared, poisson. Names "
            "such as rmse, mae or roc_auc are accepted.",
        ),
    ] = None,
    costs: Annotated[
        str | None,
        typer.Option(help="CSV file of costs: header `predicted` and the true classes, a row per predicted class."),
    ] = None,
    delta: Delta = 0.05,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Random seed of the hold-out and the folds.")] = 0,
    task: Annotated[
        str | None,
        typer.Option(
            metavar="classes|numbers",
            callback=_task,
            help="Type of the target, if not as detected: classes (classification) or numbers (regression).",
        ),
    ] = None,
    holdout: Annotated[float, typer.Option(min=0.01, max=0.9, help="Fraction of the rows held out.")] = 0.2,
    drop: Annotated[str | None, typer.Option(help="Columns to leave out, separated by commas.")] = None,
    group: Annotated[
        str | None,
        typer.Option(help="Group column: whole groups are held out, and the column is not used as a feature."),
    ] = None,
    time_column: Annotated[
        str | None,
        typer.Option(help="Time column: the latest rows are held out, and the column is not used as a feature."),
    ] = None,
    class_weight: Annotated[
        ClassWeight | None, typer.Option(help="Weight rows so that all classes have the same total weight.")
    ] = None,
    stream: Annotated[
        bool, typer.Option("--stream", help="Train from files, as for tables larger than memory.")
    ] = False,
    encoding: Encoding = None,
    header: Header = None,
    query: Query = None,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Compare models on a table, and certify the best on held-out rows.

    Writes model.summula, report.html, leaderboard.csv and certificate.json.
    """

    def work(console: Console) -> None:
        with uncollected():
            from summula.cli.exit_codes import INTERRUPTED
            from summula.cli.training import train_table
            from summula.core.data.readers.opening import Reading
            from summula.training.request import Request

        request = Request(
            target=target,
            time=time,
            models=None if models is None else _names(models),
            metric=metric,
            costs=costs,
            delta=delta,
            seed=seed,
            task=task,
            holdout=holdout,
            groups=group,
            time_column=time_column,
            class_weight=None if class_weight is None else class_weight.value,
            drop=() if drop is None else tuple(_names(drop)),
            stream=stream,
            debug=debug,
            command=_command(),
        )
        with rarely_collected():
            result = train_table(table, Reading(encoding, header, query), request, out, console)
        if result.interrupted:
            raise typer.Exit(INTERRUPTED)

    _run(work, as_json, quiet, debug)


@app.command()
def predict(
    model: ModelArgument,
    table: TableArgument,
    out: Annotated[str, typer.Option("--out", "-o", help="File for the predictions, .parquet or .csv.")],
    proba: Annotated[bool, typer.Option("--proba", help="Also write the probability of each class.")] = False,
    keep: Annotated[str | None, typer.Option(help="Columns to copy to the file, separated by commas.")] = None,
    raw_text: Annotated[
        bool,
        typer.Option(
            "--raw-text", help="Write text to CSV unchanged, even if a spreadsheet would interpret it as a formula."
        ),
    ] = False,
    force: Force = False,
    encoding: Encoding = None,
    header: Header = None,
    query: Query = None,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Predict the target of every row of a table, of any size."""

    def work(console: Console) -> None:
        with uncollected():
            from summula.cli.predicting import PredictRequest, predict_file
            from summula.core.data.readers.opening import Reading

        reading, kept = Reading(encoding, header, query), () if keep is None else tuple(_names(keep))
        predict_file(PredictRequest(model, table, reading, out, proba, kept, raw_text, force), console)

    _run(work, as_json, quiet, debug)


@app.command()
def certify(
    model: ModelArgument,
    table: TableArgument,
    delta: Delta = 0.05,
    out: Annotated[str | None, typer.Option("--out", "-o", help="JSON file for the certificate.")] = None,
    force: Force = False,
    encoding: Encoding = None,
    header: Header = None,
    query: Query = None,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Bound the true error of a model from labelled rows that were not used for training."""

    def work(console: Console) -> None:
        from summula.cli.predicting import certify_file
        from summula.core.data.readers.opening import Reading

        reading = Reading(encoding, header, query)
        certify_file(model, table, reading, delta, out, console, force=force)

    _run(work, as_json, quiet, debug)


@app.command()
def inspect(
    table: TableArgument,
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="Target column, to check the other columns for leakage.")
    ] = None,
    encoding: Encoding = None,
    header: Header = None,
    query: Query = None,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Describe the columns of a table: types, missing values, distributions, leakage."""

    def work(console: Console) -> None:
        from summula.cli.inspecting import inspect_file
        from summula.core.data.readers.opening import Reading

        inspect_file(table, Reading(encoding, header, query), target, console)

    _run(work, as_json, quiet, debug)


@app.command()
def cluster(
    table: TableArgument,
    k: Annotated[int | None, typer.Option("--k", "-k", min=1, help="Number of clusters.")] = None,
    select: Annotated[
        bool, typer.Option("--select", help="Try 2 to 10 clusters, and select the number with the best silhouette.")
    ] = False,
    out: Annotated[str, typer.Option("--out", "-o", help="File for the labels, .parquet or .csv.")] = "clusters.csv",
    report: Annotated[
        str | None, typer.Option(help="HTML file for the report; by default named after the file of labels.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Random seed of the initial centres.")] = 0,
    drop: Annotated[str | None, typer.Option(help="Columns to leave out, separated by commas.")] = None,
    force: Force = False,
    encoding: Encoding = None,
    header: Header = None,
    query: Query = None,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Cluster the rows of a table by k-means.

    Columns are encoded as numbers and scaled to variance 1 first. Writes the label of each row, and a report.
    """

    def work(console: Console) -> None:
        from summula.cli.clustering import ClusterRequest, cluster_file
        from summula.core.data.readers.opening import Reading

        names = () if drop is None else tuple(_names(drop))
        reading = Reading(encoding, header, query)
        cluster_file(ClusterRequest(table, reading, k, select, out, report, seed, names, force, _command()), console)

    _run(work, as_json, quiet, debug)


@app.command()
def plan(
    error: Annotated[float, typer.Option(help="Expected error rate.")] = 0.0,
    limit: Annotated[float | None, typer.Option(help="Upper bound to certify.")] = None,
    width: Annotated[float | None, typer.Option(help="Instead: width of the interval between the bounds.")] = None,
    recall: Annotated[
        float | None, typer.Option(help="Instead: recall to guarantee; counts rows of that class.")
    ] = None,
    delta: Delta = 0.05,
    models: Annotated[int, typer.Option(min=1, help="Number of models to choose from on these rows.")] = 1,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Compute the number of rows to label for a certificate."""

    def work(console: Console) -> None:
        from summula.cli.planning import plan_rows

        plan_rows(error, limit, width, recall, delta, models, console)

    _run(work, as_json, quiet, debug)


@app.command()
def warmup(
    float32: Annotated[bool, typer.Option("--float32", help="Also for data in single precision.")] = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Compile all kernels now instead of in the first fits."""

    def work(console: Console) -> None:
        import time

        from summula.core.compilation.warmup import warmup

        clock = time.monotonic()
        warmup(float32=float32)
        console.remark(f"Compiled in {time.monotonic() - clock:.1f} s.")

    _run(work, False, quiet, debug)


@app.command()
def doctor(as_json: Json = False, quiet: Quiet = False, debug: Debug = False) -> None:
    """Print the installed versions, threads, BLAS and caches."""

    def work(console: Console) -> None:
        from summula.cli.doctor import doctor

        doctor(console)

    _run(work, as_json, quiet, debug)


def _version(wanted: bool) -> None:
    if wanted:
        from summula._version import __version__

        sys.stdout.write(f"summula {__version__}\n")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Train a model on a table and certify its error on held-out rows."""


def _show_warning(message: Warning | str, *where: Any, **more: Any) -> None:
    sys.stderr.write(f"Warning: {printable(str(message))}\n")


def main() -> None:
    """Run the command line."""
    warnings.showwarning = _show_warning
    try:
        app()
    except BrokenPipeError:  # the reader of the pipe has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception:  # of --debug
        sys.stderr.write(printable(traceback.format_exc(), lines=True))
        sys.exit(BUG)
