"""The report of a trained model: one self-contained HTML file."""

from summula.report.content import Content, Figure, Gallery, Item, Table
from summula.report.page import render

__all__ = ["Content", "Figure", "Gallery", "Item", "Table", "render"]
