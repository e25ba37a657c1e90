"""The report of a trained model: one HTML file that needs nothing else."""

from summula.report.content import Content, Figure, Gallery, Item, Table
from summula.report.page import render

__all__ = ["Content", "Figure", "Gallery", "Item", "Table", "render"]
