"""`summula predict` and `summula certify`, which use a saved model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import summula
from summula.cli.console import Console
from summula.cli.exit_codes import MODEL, CommandError
from summula.cli.labelled_rows import LabelledRows, count_labelled_rows, labelled_row
from summula.cli.starting import uncollected
from summula.core.data.frames import no_such_column
from summula.core.data.output import check_folder
from summula.core.data.readers.opening import Reading, shown_name
from summula.core.data.scan import Scan, scan
from summula.core.errors import DataError, OutputError, ParameterError
from summula.preprocessing import TableModel
from summula.preprocessing.table_drift import Drift
from summula.stats.bounds import check_delta
from summula.training.comparison.certified import certified_loss
from summula.training.data.row_numbers import located_in, numbered
from summula.training.data.tables import open_table, read_table
from summula.training.data.target import spelled_target, target_values
from summula.training.results_folder import committed_path, write_whole
from summula.training.verdicts import certified_sentence

__all__ = [
    "PredictRequest",
    "certify_file",
    "check_no_input",
    "check_output",
    "files_of",
    "load_model",
    "predict_file",
]

Array = NDArray[Any]

_TABLES = (".csv", ".tsv", ".txt", ".parquet", ".xlsx", ".jsonl", ".arrow", ".feather")
_SHOWN = 8  # maximum number of columns named that differ from the training data


@uncollected()
def load_model(path: str) -> TableModel:
    """Load the table model in a file; raise an error for any other."""
    if os.path.isdir(path):
        path = _model_file(path)
    elif path.lower().endswith(_TABLES) and os.path.exists(path):
        raise CommandError(f"{path} is a table; give the model first, and then the table.", MODEL)
    try:
        model = summula.load(committed_path(path))
    except FileNotFoundError:
        raise CommandError(f"There is no model file {path}; `summula train` writes one.", MODEL) from None
    except IsADirectoryError:
        raise CommandError(f"{path} is a folder without model.summula; give a model file.", MODEL) from None
    if not isinstance(model, TableModel):
        raise CommandError(
            f"{path} contains a {type(model).__name__}, not a table model; pass a file written by `summula train`.",
            MODEL,
        )
    return model


def _model_file(path: str) -> str:
    """Return the path of the model in a folder, else the path itself."""
    inside = os.path.join(path, "model.summula")
    return inside if os.path.exists(committed_path(inside)) else path


def _used_columns(model: TableModel, table: Scan) -> list[str]:
    """Return the columns used by a model; raise an error if one is missing."""
    wanted = [str(name) for name in model.feature_names_in_]
    lacking = [name for name in wanted if name not in table.columns]
    if lacking:
        more = f" and {len(lacking) - 1} more that are missing" if len(lacking) > 1 else ""
        problem = no_such_column(lacking[0], table.columns).rstrip(".")
        raise DataError(f"{problem} (the model was trained on {lacking[0]!r}{more}).")
    return wanted


def check_output(out: str, inputs: Sequence[str], force: bool, option: str = "--out") -> None:
    """Raise if writing would overwrite an input, or an existing file without --force."""
    check_folder(out)
    if not os.path.exists(out):
        return
    if os.path.isdir(out):
        raise OutputError(f"{out} is a folder; give the name of a file in it.")
    check_no_input(out, inputs, "give another name")
    if not force:
        raise OutputError(f"{out} exists already; give another name with {option}, or overwrite it with --force.")


def check_no_input(out: str, inputs: Sequence[str], cure: str) -> None:
    """Raise if an output file is one of the inputs, which are not overwritten even with --force."""
    for path in inputs:
        if os.path.exists(out) and os.path.exists(path) and os.path.samefile(path, out):
            raise OutputError(f"{out} is an input of this command and would be overwritten; {cure}.")


def files_of(table: Scan) -> list[str]:
    """Return the files of a table."""
    found = [getattr(one, "rewritten_from", None) or getattr(one, "path", None) for one in table.tables]
    return [os.fspath(path) for path in found if path is not None]


class PredictRequest(NamedTuple):
    """Options of the command line."""

    model: str
    tables: list[str]
    reading: Reading
    out: str
    proba: bool
    keep: tuple[str, ...]
    raw_text: bool
    force: bool


def predict_file(request: PredictRequest, console: Console) -> None:
    """Predict every row of a table, batch by batch, to a file that appears when it is complete."""
    model, table = load_model(request.model), open_table(request.tables, console.remark, request.reading)
    out, proba = request.out, request.proba
    check_output(out, [_model_file(request.model), *files_of(table)], request.force)
    if not table.n_rows:
        raise DataError(f"The table {shown_name(request.tables)} has no rows; there is nothing to predict.")
    _used_columns(model, table)
    known = [column.name for column in model.encoder.columns_]
    extra = [name for name in table.columns if name not in (*known, *request.keep, model.target)]
    if extra:
        console.remark(f"Columns ignored because the model was not trained on them: {', '.join(map(repr, extra[:8]))}.")
    if proba and not hasattr(model, "predict_proba"):
        raise ParameterError(f"--proba applies to classes, and {model.target!r} is numeric: omit it.")
    drift = Drift(model.encoder.columns_)
    with located_in(table):
        rows = model.predict_to(table, out, proba=proba, keep=request.keep, raw_text=request.raw_text, drift=drift)
    differences = drift.sentences()
    for text in differences[:_SHOWN]:
        console.remark(text)
    if differences:
        console.remark(
            "Rows differ from the training data; summula.RiskMonitor watches whether errors grow, `summula certify` "
            "measures them on labelled rows."
        )
    names = [*request.keep, *model._written_names(proba, request.keep)]
    console.result(f"{rows:,} predictions of {model.target!r} are in {out}.")
    console.document({"rows": rows, "target": model.target, "columns": names, "file": out, "drift": differences})


def _with_numbers(table: Scan, target: str, console: Console) -> Scan:
    """Return the rows with a text target that represents numbers converted, as in training."""
    import pyarrow as pa

    values, known = target_values(read_table(table, [target])[target])
    spelled = spelled_target(values, known, "numbers")
    if spelled is None:
        return table
    console.remark(spelled.remark(target))
    rows = read_table(table)
    place = rows.column_names.index(target)
    return scan(rows.set_column(place, target, pa.array(spelled.values, from_pandas=True)))


def certify_file(
    model_path: str, paths: list[str], reading: Reading, delta: float, out: str | None, console: Console, *, force: bool
) -> None:
    """Bound the true risk of a saved model from new rows, block by block, storing a few bytes per row."""
    check_delta(delta)
    model, table = load_model(model_path), open_table(paths, console.remark, reading)
    if out is not None:
        check_output(out, [_model_file(model_path), *files_of(table)], force)
    names = _used_columns(model, table)
    if model.target not in table.columns:
        raise DataError(
            f"{no_such_column(model.target, table.columns).rstrip('.')} (it contains the true labels; "
            "`summula predict` does not need them)."
        )
    answers = count_labelled_rows(table, model.target) if table.n_rows else 0
    if not answers:
        raise DataError(f"No row has a value of {model.target!r}; pass labelled rows.")
    if answers < table.n_rows:
        console.remark(f"{table.n_rows - answers:,} rows without a value of {model.target!r} are left out.")
    text = table.kinds[model.target] == "text"
    if text and model.low is not None:
        table = _with_numbers(table, model.target, console)
        text = table.kinds[model.target] == "text"
    if text != (model.low is None and np.asarray(model.classes_).dtype.kind in "OU"):
        kind = "text" if text else "numbers"
        raise DataError(
            f"The target {model.target!r} contains {kind} here, but not in training; convert it to that type."
        )
    with located_in(table), numbered(partial(labelled_row, table, model.target)):
        certificate = summula.certify(
            model, LabelledRows(table, names, model.target), model.target, delta=delta, **certified_loss(model)
        )
    if certificate.n_dropped:
        console.remark(f"{certificate.n_dropped:,} rows that were in the training data of the model are not counted.")
    if out is not None:
        write_whole(out, certificate.to_json() + "\n")
    console.result(certified_sentence(f"The model {type(model.model).__name__}", model.target, model, certificate))
    console.document(
        {
            "estimate": certificate.estimate,
            "lower": certificate.lower,
            "upper": certificate.upper,
            "delta": certificate.delta,
            "rows": certificate.n,
            "rows of the training data dropped": certificate.n_dropped,
            "loss": certificate.loss,
            "vacuous": certificate.vacuous,
            "model hash": certificate.model_hash,
        }
    )
