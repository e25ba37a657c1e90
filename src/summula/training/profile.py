"""What the columns of a table hold, one row per column."""

from __future__ import annotations

from typing import Any

import numpy as np

from summula.preprocessing.table_encoder_plans import plan_column
from summula.preprocessing.table_encoder_sums import ColumnSums

__all__ = ["profile"]


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
