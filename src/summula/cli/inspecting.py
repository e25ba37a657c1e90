"""`summula inspect`: what the columns of a table are, how they are spread, and which of them give the target away.

A column determines the target when rows that are equal in it have the same target, and rows are often enough equal for
that to mean something; a number also when its order alone sorts the classes apart, or when it is a straight line of the
target.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.cli.console import Console
from summula.cli.rows import located_in, numbered
from summula.cli.tables import check_target, inferred_task, open_table, read_table, target_values
from summula.core.data.scan import Scan
from summula.core.errors import DataError
from summula.preprocessing.table_encoder import column_sums
from summula.preprocessing.table_encoder_blocks import table_blocks, texts_with_places
from summula.preprocessing.table_encoder_plans import plan_column
from summula.preprocessing.table_encoder_sums import ColumnSums

__all__ = ["inspect_file", "leak_sentence", "leaks", "leaks_of_training", "profile"]

Array = NDArray[Any]

_LEAK_ROWS = 50_000  # looked at for leaks
_STRAIGHT = 0.9999  # a correlation beyond which one number is the other in disguise


def profile(sums: dict[str, ColumnSums], max_levels: int = 100) -> list[dict[str, Any]]:
    """One row a column: kind, missing share, different values, and how they are spread."""
    rows = []
    for name, one in sums.items():
        plan = plan_column(name, one, max_levels, True)
        numbers = one.kind == "number" and one.count > 0
        frequent = max(one.texts, key=lambda word: one.texts[word]) if one.texts else None  # type: ignore[index]
        rows.append(
            {
                "column": name,
                "kind": plan.kind if plan.kind != "dropped" else one.kind,
                "missing": one.missing / one.rows,
                "different": one.distinct,
                "mean": one.mean if numbers else None,
                "sd": one.spread if numbers else None,
                "lowest": one.low if numbers else _day(one.low, plan.kind),
                "highest": one.high if numbers else _day(one.high, plan.kind),
                "most frequent": frequent,
                "remark": f"left out: {plan.why}" if plan.why else "",
            }
        )
    return rows


def _day(days: float, kind: str) -> str | None:
    return str(np.datetime64(int(days // 1), "D")) if kind == "date" and np.isfinite(days) else None


def leaks(table: Any, values: Array, classes: bool) -> dict[str, str]:
    """The columns that give the target away, and how; `values` is the target, without missing ones."""
    found = {}
    codes = np.unique(values.astype(str) if values.dtype.kind == "O" else values, return_inverse=True)[1]
    blocks = table_blocks(table)
    for name, column in blocks.read(0, blocks.n_rows).items():
        if not isinstance(column, np.ndarray):
            places = texts_with_places(column)[1]
            if _decides(places, codes, classes):
                found[name] = "each of its values has one value of the target"
            continue
        x = column.astype(np.float64) if column.dtype.kind != "M" else column.astype(np.int64).astype(np.float64)
        there = ~np.isnan(x)
        if there.sum() < 10 or np.ptp(x[there]) == 0:
            continue
        if _decides(np.unique(x, return_inverse=True)[1], codes, classes):
            found[name] = "each of its values has one value of the target"
        elif classes and _sorts(x[there], codes[there]):
            found[name] = "its order alone tells the classes apart"
        elif not classes and abs(np.corrcoef(x[there], values[there].astype(float))[0, 1]) > _STRAIGHT:
            found[name] = "it is a straight line of the target"
    return found


def _decides(places: Array, codes: Array, classes: bool) -> bool:
    """Whether equal values always come with equal targets, over groups that are large enough to tell."""
    groups = np.unique(places)
    if len(groups) < 2 or 5 * len(groups) > len(places):
        return False
    pairs = np.unique((places + 1) * (int(codes.max()) + 1) + codes)
    # With five rows a group and more, all of them do not agree by chance.
    return len(pairs) == len(groups) and (classes or len(np.unique(codes)) > 1)


def _sorts(x: Array, codes: Array) -> bool:
    order = np.argsort(x, kind="stable")
    if np.bincount(codes).min() < 5:
        return False
    sorted_codes, sorted_x = codes[order], x[order]
    change = np.flatnonzero(sorted_codes[1:] != sorted_codes[:-1])
    apart = bool((sorted_x[change + 1] > sorted_x[change]).all())
    return len(change) == len(np.unique(codes)) - 1 and len(change) > 0 and apart


def leaks_of_training(table: Any, y: Array, classes: bool, dropped: Iterable[str]) -> dict[str, str]:
    """The columns that give the target away, by the first training rows, of those that are not left out anyway."""
    return leaks(table.drop_columns(list(dropped)).slice(0, _LEAK_ROWS), y[:_LEAK_ROWS], classes)


def leak_sentence(name: str, target: str, why: str) -> str:
    """What to say of a column that gives the target away."""
    return (
        f"{name!r} gives {target!r} away ({why}): if it is not known when predictions are made, the model is worth "
        f"nothing; train again with --drop {name!r}."
    )


def inspect_file(path: str, target: str | None, console: Console) -> None:
    """Print what is known of the columns of a table."""
    table = open_table(path, console.remark)
    if not table.n_rows:
        raise DataError(f"The table {path} has no rows; give one that has.")
    if target is not None:
        check_target(table, target)
    with located_in(table):
        sums = column_sums(table_blocks(table))
    rows = profile(sums)
    found: dict[str, str] = {}
    said = ""
    if target is not None:
        found, said = _leaks_of(table, target)
        for row in rows:
            if row["column"] in found:
                row["remark"] = f"gives the target away: {found[row['column']]}"
            elif row["column"] == target:
                row["remark"] = f"the target, {said}"
    names = list(rows[0])
    console.table(f"{path}: {table.n_rows:,} rows", names, [[row[name] for name in names] for row in rows])
    for name, why in found.items():
        console.result(leak_sentence(name, str(target), why))
    console.document({"rows": table.n_rows, "columns": rows, "leaks": found, "target": target})


def _leaks_of(table: Scan, target: str) -> tuple[dict[str, str], str]:
    import pyarrow as pa

    few = read_table(table, last=_LEAK_ROWS)
    values, there = target_values(few[target])
    with located_in(table), numbered(np.flatnonzero(there).__getitem__):
        task = inferred_task(values[there], None, target)
    features = few.drop_columns([target]).filter(pa.array(there))
    return leaks(features, values[there], task.kind == "classes"), f"{task.kind}: {task.said}"
