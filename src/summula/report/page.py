"""The HTML page of a report: one template, escaped throughout, with inline style and script."""

from __future__ import annotations

import math
import re
from importlib.resources import files
from typing import Any

from summula.report.content import Content, Figure, Gallery, Item, Table

__all__ = ["render"]

_COLUMNS, _CHARACTERS = 5, 60  # limits of a table that fits into a column of the page
_HASH = re.compile(r"[0-9a-f]{32,}")


def render(content: Content) -> str:
    """Render a report as self-contained HTML text.

    Parameters
    ----------
    content : Content

    Returns
    -------
    str

    Examples
    --------
    >>> from summula.report import Content, render
    >>> page = render(Content("Report", "All is well.", [], [], [], "summula train", {}))
    >>> "<h1>Report</h1>" in page, "http" in page
    (True, False)
    """
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["cell"] = cell
    environment.tests["figure"] = lambda item: isinstance(item, Figure)
    environment.tests["gallery"] = lambda item: isinstance(item, Gallery)
    environment.tests["numeric"] = _is_number
    environment.tests["wide"] = _is_wide
    environment.tests["hash"] = lambda value: isinstance(value, str) and _HASH.fullmatch(value) is not None
    # Drawings are created by charts.py, which escapes names.
    environment.filters["drawing"] = Markup
    template = environment.from_string(files("summula.report").joinpath("page.html").read_text(encoding="utf-8"))
    sections = [(heading, [_without_empty_columns(item) for item in items]) for heading, items in content.sections]
    return str(template.render(content._replace(sections=sections)._asdict()))


def _without_empty_columns(item: Item) -> Item:
    """Remove columns without any value from a table; other items are unchanged."""
    if not isinstance(item, Table):
        return item
    kept = [j for j in range(len(item.columns)) if not item.rows or any(cell(row[j]) for row in item.rows)]
    rows = [[row[j] for j in kept] for row in item.rows]
    return item._replace(columns=[item.columns[j] for j in kept], rows=rows)


def _is_wide(table: Table) -> bool:
    """Return whether a table needs the width of the page: many columns, or long words."""
    longest = [max(map(_longest_word, one)) for one in zip(table.columns, *table.rows, strict=True)]
    return len(longest) > _COLUMNS or sum(longest) + 3 * len(longest) > _CHARACTERS


def _longest_word(value: Any) -> int:
    text = cell(value)
    return 0 if _HASH.fullmatch(text) else max(map(len, text.split()), default=0)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value


def cell(value: Any) -> str:
    """Format a table cell."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.4g}"
    return f"{value:,}" if _is_number(value) else str(value)
