"""Columns that look like keys of groups, or like times."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["key_remark"]

_GROUP_NAME = re.compile(
    r"(^|[_\s.])(id|ids|key|group|patient|subject|user|customer|client|household|family|site|school|clinic)($|[_\s.])|Id$|ID$",
    re.IGNORECASE,
)


def key_remark(name: str, sums: Any) -> str:
    """Return a remark on a column that looks like a group key or a time."""
    if sums.kind in ("date", "time") or (sums.kind == "text" and sums.dates):
        return (
            f"{name!r} contains times: if the model is to predict the future, hold out the latest rows with "
            f"--time-column {name!r} (time_column={name!r} in Python)."
        )
    rows, distinct = sums.rows - sums.missing, sums.distinct
    if distinct and _GROUP_NAME.search(name) and 2 * distinct <= rows and distinct >= 20:
        return (
            f"{name!r} looks like a group key ({distinct:,} values, {rows / distinct:.1f} rows each): if new rows come "
            f"from new groups, hold out whole groups with --group {name!r} (groups={name!r} in Python)."
        )
    return ""
