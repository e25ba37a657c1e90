"""Text from untrusted sources (column names, labels, cells, file names) made safe to display.

Control characters (escape sequences, line breaks, bidirectional overrides, invisible characters) could recolour,
erase or forge output on a terminal or a page; they are written as escapes.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

__all__ = ["printable", "shortened", "with_escapes"]


def printable(text: str, *, lines: bool = False) -> str:
    r"""Text that shows as what it is: control, format and unassigned characters as escapes such as \x1b or \u202e.

    With `lines` line feeds are kept.
    """
    return with_escapes(text, lambda character: character.encode("unicode_escape").decode("ascii"), lines)


def shortened(text: str, most: int = 60) -> str:
    """Shorten a value for a message."""
    return text if len(text) <= most else f"{text[:most]}..."


def with_escapes(text: str, escape: Callable[[str], str], lines: bool) -> str:
    """Escape invisible characters by a function."""
    if text.isprintable():
        return text
    escaped = (one for one in set(text) if not _shows(one) and not (lines and one == "\n"))
    return text.translate({ord(one): escape(one) for one in escaped})


def _shows(character: str) -> bool:
    return character.isprintable() or unicodedata.category(character) == "Zs"  # spaces of any width
