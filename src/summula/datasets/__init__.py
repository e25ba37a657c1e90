"""Small real data sets included in the package."""

from summula.datasets.longley_table import longley
from summula.datasets.tables import TABLES, load

__all__ = ["TABLES", "load", "longley"]
