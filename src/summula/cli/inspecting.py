"""`summula inspect`: types and distributions of the columns of a table, and target leakage."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.cli.console import Console
from summula.core.data.readers.opening import Reading, shown_name
from summula.core.data.scan import Scan
from summula.core.errors import DataError
from summula.preprocessing.table_encoder import column_sums
from summula.preprocessing.table_encoder_blocks import table_blocks
from summula.training.data.leaks import leak_sentence, leaks
from summula.training.data.profile import as_read, profile
from summula.training.data.row_numbers import located_in, numbered
from summula.training.data.tables import open_table, read_table
from summula.training.data.target import check_target, inferred_task, read_target

__all__ = ["inspect_file"]

Array = NDArray[Any]

_LEAK_ROWS = 50_000  # searched for leakage


def inspect_file(paths: list[str], reading: Reading, target: str | None, console: Console) -> None:
    """Print a description of the columns of a table."""
    table = open_table(paths, console.remark, reading)
    path = shown_name(paths)
    if not table.n_rows:
        raise DataError(f"The table {path} has no rows; pass a table with rows.")
    if target is not None:
        check_target(table.columns, target)
    with located_in(table):
        sums = column_sums(table_blocks(table))
    rows = profile(sums)
    found: dict[str, str] = {}
    reason = ""
    if target is not None:
        found, reason = _leaks_of(table, target, sums)
        for row in rows:
            if row["column"] in found:
                row["remark"] = f"looks like target leakage: {found[row['column']]}"
            elif row["column"] == target:
                row["remark"] = f"the target, {reason}"
    names = list(rows[0])
    console.table(f"{path}: {table.n_rows:,} rows", names, [[row[name] for name in names] for row in rows])
    for name, why in found.items():
        console.result(leak_sentence(name, str(target), why))
    console.document({"rows": table.n_rows, "columns": rows, "leaks": found, "target": target})


def _leaks_of(table: Scan, target: str, sums: dict[str, Any]) -> tuple[dict[str, str], str]:
    import pyarrow as pa

    few = read_table(table, last=_LEAK_ROWS)
    values, there, _ = read_target(few[target], None, target)
    with located_in(table), numbered(np.flatnonzero(there).__getitem__):
        task = inferred_task(values[there], None, target)
    features = as_read(few.drop_columns([target]).filter(pa.array(there)), sums)
    return leaks(features, values[there], task.kind == "classes"), f"{task.kind}: {task.reason}"
