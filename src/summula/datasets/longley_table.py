"""The Longley table: United States employment 1947 to 1962 and six economic series.

Public domain, from the Statistical Reference Datasets of NIST; Longley (1967), An appraisal of least squares programs
for the electronic computer from the point of view of the user, JASA 62. A classic test of least squares: the columns
are nearly collinear.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any

__all__ = ["longley"]


def longley() -> tuple[Any, Any]:
    """Return six yearly series as a pyarrow Table, and employment (thousands) as an array.

    Examples
    --------
    >>> from summula.datasets import longley
    >>> X, y = longley()
    >>> X.num_rows, X.column_names[:2]
    (16, ['gnp_deflator', 'gnp'])
    """
    import io

    from pyarrow import csv

    table = csv.read_csv(io.BytesIO(files("summula.datasets").joinpath("longley.csv").read_bytes()))
    return table.drop_columns(["employed"]), table["employed"].to_numpy().astype(float)
