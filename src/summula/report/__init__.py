"""The report of a trained model: one HTML file that needs nothing else."""

from summula.report.content import Content, Figure, Table
from summula.report.page import render

__all__ = ["Content", "Figure", "Table", "render"]
