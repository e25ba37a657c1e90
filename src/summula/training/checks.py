"""Validation of the options against the table, before anything is read."""

from __future__ import annotations

from summula.core.data.frames import no_such_column
from summula.core.errors import DataError, ParameterError
from summula.stats.bounds import check_delta
from summula.training.data.split import MIN_ROWS
from summula.training.data.tables import TableSource
from summula.training.data.target import check_target
from summula.training.names import metric_name, task_name
from summula.training.request import Request

__all__ = ["check_request"]


def check_request(request: Request, table: TableSource) -> TableSource:
    """Validate the options; return the table without the dropped columns."""
    check_delta(request.delta)
    if not 0.0 < request.holdout < 1.0:
        raise ParameterError(f"holdout must be a fraction of the rows in (0, 1), such as 0.2; got {request.holdout}.")
    if request.models is not None and not request.models:
        raise ParameterError("The list of models is empty; pass at least one, or omit it for all.")
    if request.metric is not None:
        metric_name(request.metric)
    if request.task is not None:
        task_name(request.task)
    check_target(table.columns, request.target)
    for name in (*request.drop, request.groups, request.time_column):
        if name is not None and name not in table.columns:
            raise DataError(no_such_column(name, table.columns))
        if name == request.target:
            raise ParameterError(f"{name!r} is the target, and cannot also be excluded or used as a key.")
    if request.groups is not None and request.time_column is not None:
        raise ParameterError("Give a group column or a time column, not both: rows are held out in one way.")
    kept = [name for name in table.columns if name not in request.drop or name in request.key_columns]
    if not set(kept) - {request.target, *request.key_columns}:
        raise ParameterError("No column is left to predict from; exclude fewer.")
    if table.n_rows < MIN_ROWS:
        rows = f"{table.n_rows} row{'' if table.n_rows == 1 else 's'}"
        raise DataError(f"The table has {rows}, too few for training and evaluation; pass at least {MIN_ROWS}.")
    return table.select(kept) if len(kept) < len(table.columns) else table
