"""Profile of the columns of a table, one row per column."""

from __future__ import annotations

from typing import Any

import numpy as np

from summula.preprocessing.table_encoder_blocks import table_blocks
from summula.preprocessing.table_encoder_plans import plan_column
from summula.preprocessing.table_encoder_sums import ColumnSums

__all__ = ["as_read", "profile", "spelled_remark"]


def profile(sums: dict[str, ColumnSums], max_levels: int = 100) -> list[dict[str, Any]]:
    """Return one row per column: kind, fraction missing, distinct values, and their distribution."""
    rows = []
    for name, one in sums.items():
        plan = plan_column(name, one, max_levels, True)
        numbers = plan.kind in ("number", "boolean")
        shown: Any = one if one.kind == "number" or not plan.decimal else _spelled(one)
        frequent = max(one.texts, key=lambda word: one.texts[word]) if one.texts else None  # type: ignore[index]
        rows.append(
            {
                "column": name,
                "kind": plan.kind if plan.kind != "dropped" else one.kind,
                "missing": (one.missing + (_others(one) if plan.decimal else 0)) / one.rows,
                "different": one.distinct,
                "mean": shown.mean if numbers else None,
                "sd": shown.spread if numbers else None,
                "lowest": shown.low if numbers else _day(one.low, plan.kind),
                "highest": shown.high if numbers else _day(one.high, plan.kind),
                "most frequent": frequent,
                "remark": f"left out: {plan.why}" if plan.why else _spelled_words(one) if plan.decimal else "",
            }
        )
    return rows


def as_read(table: Any, sums: dict[str, ColumnSums]) -> Any:
    """Return the table with text columns that represent numbers converted to numbers, as for models."""
    import pyarrow as pa

    for place, name in enumerate(table.column_names):
        if name not in sums or not _spells_numbers(sums[name]):
            continue
        read = plan_column(name, sums[name], 0, False).numbers_in(
            table_blocks(table.select([name])).read(0, table.num_rows)[name]
        )
        table = table.set_column(place, name, pa.array(read, from_pandas=True))
    return table


def _spells_numbers(sums: ColumnSums) -> bool:
    return sums.kind == "text" and not sums.dates and sums.spelled.chosen() is not None


def spelled_remark(name: str, sums: ColumnSums) -> str:
    """Return a remark on a text column that is read as numbers; empty for other columns."""
    return f"{name!r} is {_spelled_words(sums)}." if _spells_numbers(sums) else ""


def _spelled(sums: ColumnSums) -> Any:
    found = sums.spelled.chosen()
    assert found is not None, "the plan states that there are numbers"
    return found.numbers


def _others(sums: ColumnSums) -> float:
    """Count the values that are not numbers in a text column read as numbers."""
    found = sums.spelled.chosen()
    return 0.0 if found is None else found.others


def _spelled_words(sums: ColumnSums) -> str:
    found = sums.spelled.chosen()
    assert found is not None, "the plan states that there are numbers"
    description = f"text such as {found.numbers.first[1]!r}, read as numbers"
    if not found.others:
        return description
    if found.others == 1:
        return f"{description}; 1 other value, {found.odd!r}, is treated as missing"
    return f"{description}; {found.others:,.0f} other values, {found.odd!r} first, are treated as missing"


def _day(days: float, kind: str) -> str | None:
    return str(np.datetime64(int(days // 1), "D")) if kind == "date" and np.isfinite(days) else None
