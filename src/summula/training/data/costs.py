"""What each confusion of classes costs: from a small CSV file, a nested mapping, or an array.

    true,no,yes                 {"no": {"no": 0, "yes": 1},             [[0, 1],
    no,0,1                       "yes": {"no": 10, "yes": 0}}            [10, 0]]
    yes,10,0

In a file the first column is the true class, and the header names the predicted ones; classes may come in any order. An
array has the classes in sorted order.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import DataError

__all__ = ["costs_of"]

Costs = NDArray[np.float64]


def costs_of(costs: Any, classes: NDArray[Any] | None) -> Costs:
    """The costs[true, predicted] in the order of the classes."""
    if classes is None:
        raise DataError("Costs are for classes, and the target holds numbers: leave them out, or set the task.")
    if isinstance(costs, str | os.PathLike):
        found = _from_file(os.fspath(costs), classes)
    elif isinstance(costs, Mapping):
        found = _from_mapping(costs, classes)
    else:
        found = np.asarray(costs, np.float64)
    wanted = (len(classes), len(classes))
    if found.shape != wanted:
        raise DataError(f"The costs have the shape {found.shape}; give {wanted}: true classes by predicted classes.")
    if not np.isfinite(found).all():
        raise DataError("The costs are not all finite numbers; give a finite cost for every pair of classes.")
    return found


def _from_mapping(costs: Mapping[Any, Any], classes: NDArray[Any]) -> Costs:
    given = {str(true): {str(said): cost for said, cost in row.items()} for true, row in costs.items()}
    names = [str(label) for label in classes.tolist()]
    if sorted(given) != sorted(names) or any(sorted(row) != sorted(names) for row in given.values()):
        raise DataError(f"costs needs an entry for each of {', '.join(names)}, with a cost for each of them in turn.")
    return np.array([[float(given[true][said]) for said in names] for true in names])


def _from_file(path: str, classes: NDArray[Any]) -> Costs:
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
        raise DataError(
            f"The file of costs {path} has a short line or an entry that is not a number; fix it."
        ) from None
