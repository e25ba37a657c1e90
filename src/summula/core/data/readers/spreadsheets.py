"""Sheets of Excel and OpenDocument files, by python-calamine; a sheet is read into memory at once.

`book.xlsx` is its first sheet, `book.xlsx#prices` the one named prices.
"""

from __future__ import annotations

import datetime
import os
from typing import Any

from summula.core.errors import DataError

__all__ = ["ENDINGS", "rows_of_sheet", "sheet_path"]

ENDINGS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")


def sheet_path(path: str) -> tuple[str, str | None] | None:
    """Return file and sheet of a path such as "book.xlsx#prices"; None for other paths."""
    if path.lower().endswith(ENDINGS):
        return path, None
    file, mark, sheet = path.rpartition("#")
    return (file, sheet) if mark and file.lower().endswith(ENDINGS) and not os.path.exists(path) else None


def rows_of_sheet(path: str, sheet: str | None) -> tuple[Any, tuple[str, ...]]:
    """Return the rows of a sheet as an Arrow table, and remarks."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        raise DataError(
            f"Reading {path} needs python-calamine: pip install python-calamine, or save the sheet as CSV."
        ) from None

    try:
        book = CalamineWorkbook.from_path(path)
    except (CalamineError, OSError, ValueError) as error:
        raise DataError(f"The file {path} cannot be read as a spreadsheet ({error}); save it again.") from None
    names = book.sheet_names
    if sheet is not None and sheet not in names:
        raise DataError(f"{path} has no sheet {sheet!r}; it has {', '.join(map(repr, names))}.")
    remarks: tuple[str, ...] = ()
    if sheet is None and len(names) > 1:
        remarks = (f"{path} has {len(names)} sheets, and {names[0]!r} is read; {path}#{names[1]} is another.",)
    rows = book.get_sheet_by_name(sheet or names[0]).to_python()
    if not rows:
        raise DataError(f"The sheet {sheet or names[0]!r} of {path} is empty; a table begins with a row of names.")
    return _table(rows, path), remarks


def _table(rows: list[list[Any]], path: str) -> Any:
    import pyarrow as pa

    columns: dict[str, Any] = {}
    for j, head in enumerate(rows[0]):
        values = [row[j] for row in rows[1:]]
        name = _spelled(head)
        if name == "" and all(value == "" for value in values):
            continue
        if name == "":
            raise DataError(f"Column {j + 1} of {path} has no name in its first row; give it one.")
        if name in columns:
            raise DataError(f"{path} has more than one column named {name!r}; rename one of them.")
        columns[name] = _column(values)
    return pa.table(columns)


def _column(values: list[Any]) -> Any:
    """Return a column as an Arrow array: numbers, booleans or dates if all cells are, else text."""
    import pyarrow as pa

    there = [None if value == "" else value for value in values]
    kinds = {type(value) for value in there if value is not None}
    if kinds <= {int, float}:
        return pa.array([None if value is None else float(value) for value in there], pa.float64())
    if kinds == {bool}:
        return pa.array(there, pa.bool_())
    if kinds <= {datetime.date, datetime.datetime}:
        return pa.array([_moment(value) for value in there], pa.timestamp("us"))
    return pa.array([None if value is None else _spelled(value) for value in there], pa.string())


def _moment(value: Any) -> Any:
    if value is None or isinstance(value, datetime.datetime):
        return value
    return datetime.datetime(value.year, value.month, value.day)


def _spelled(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
