"""`summula plan`: how many rows to label."""

from __future__ import annotations

from summula.certification.records import confidence
from summula.cli.console import Console
from summula.core.errors import ParameterError
from summula.theory.planning import plan_holdout, plan_recall

__all__ = ["plan_rows"]


def plan_rows(
    error: float,
    limit: float | None,
    width: float | None,
    recall: float | None,
    delta: float,
    models: int,
    console: Console,
) -> None:
    """Print the number of rows."""
    if [limit, width, recall].count(None) != 2:
        raise ParameterError("Pass exactly one of --limit, --width and --recall, such as --limit 0.1.")
    if recall is not None:
        rows = plan_recall(1 - recall, delta)
        requirement = f"a threshold that keeps a recall of {recall:g} needs {rows:,} rows of the class"
    else:
        rows = plan_holdout(error, limit, width, delta, models)
        aim = f"at most {limit:g}" if limit is not None else f"within {width:g}"
        requirement = f"an error of {error:g} is certified {aim} from {rows:,} held-out rows on"
    console.result(f"With confidence {confidence(delta)}, {requirement}.")
    console.document({"rows": rows, "delta": delta})
