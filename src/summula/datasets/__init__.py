"""Small real tables that come with the package."""

from summula.datasets.longley import longley

__all__ = ["longley"]
