"""The content of a report, without its layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

__all__ = ["Content", "Figure", "Gallery", "Item", "Table"]


class Table(NamedTuple):
    """A table with a caption; cells are text, numbers or None.

    Attributes
    ----------
    title, note : str
    columns : sequence of str
    rows : sequence of sequences
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    note: str = ""


class Figure(NamedTuple):
    """A drawing (SVG) with a caption."""

    title: str
    svg: str
    note: str = ""


class Gallery(NamedTuple):
    """Small figures side by side, with a title and a caption for all of them."""

    title: str
    figures: Sequence[Figure]
    note: str = ""


Item = Figure | Gallery | Table


class Content(NamedTuple):
    """A whole report.

    Attributes
    ----------
    title : str
    verdict : str
        One sentence with its guarantee.
    promises : sequence of str
        Assumptions of the guarantee.
    facts : sequence of pairs of str
        Shown next to the verdict.
    sections : sequence of pairs
        A heading, and its figures, galleries and tables.
    command : str
        The command line or call.
    versions : mapping
    warnings : sequence of str
        Warnings that qualify the verdict.
    """

    title: str
    verdict: str
    promises: Sequence[str]
    facts: Sequence[tuple[str, str]]
    sections: Sequence[tuple[str, Sequence[Item]]]
    command: str
    versions: dict[str, str]
    warnings: Sequence[str] = ()
