"""What each confusion of classes costs, from a small file.

    true,no,yes
    no,0,1
    yes,10,0

The first column is the true class, the header names the predicted ones; classes may come in any order.
"""

from __future__ import annotations

import csv
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import DataError

__all__ = ["read_costs"]


def read_costs(path: str, classes: NDArray[Any] | None) -> NDArray[np.float64]:
    """The table of costs in the order of the classes."""
    if classes is None:
        raise DataError("--costs is for classes, and the target holds numbers: leave it out, or use --task classes.")
    try:
        with open(path, newline="", encoding="utf-8") as file:
            lines = [[cell.strip() for cell in line] for line in csv.reader(file) if line]
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"The file of costs {path} cannot be read ({error}); give a CSV file.") from None
    names = [str(label) for label in classes.tolist()]
    header, rows = (lines[0][1:], {line[0]: line[1:] for line in lines[1:]}) if lines else ([], {})
    if sorted(header) != sorted(names) or sorted(rows) != sorted(names):
        raise DataError(
            f"The file of costs {path} has to have one row and one column for each of {', '.join(names)}; "
            "its header begins with any word, then names the predicted classes."
        )
    try:
        return np.array([[float(rows[true][header.index(said)]) for said in names] for true in names])
    except (IndexError, ValueError):
        raise DataError(f"The file of costs {path} holds what is no number, or a short line; mend it.") from None
