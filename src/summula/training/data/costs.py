"""Costs of predictions by the true class: from a small CSV file, a nested mapping, or an array.

    predicted,no,yes            {"no": {"no": 0, "yes": 10},            [[0, 10],
    no,0,10                      "yes": {"no": 1, "yes": 0}}             [1, 0]]
    yes,1,0

All three represent costs[predicted class, true class], as everywhere in this library: a missed "yes" costs 10. The
classes of a file or a mapping may be in any order; those of an array are sorted. The first cell of a file states what
its rows are, "predicted" or "true", so that the two orientations cannot be confused.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import DataError

__all__ = ["NO_COSTS", "costs_of"]

Costs = NDArray[np.float64]

NO_COSTS = (
    "Costs apply to classes, and the target is numeric: omit them, or declare the target as classes with "
    "task='classes' (--task classes)."
)
_ROWS = ("predicted", "true")  # first cell of a file


def costs_of(costs: Any, classes: NDArray[Any] | None) -> Costs:
    """Return costs[predicted, true] in the order of the classes."""
    if classes is None:
        raise DataError(NO_COSTS)
    names = [str(label) for label in classes.tolist()]
    if isinstance(costs, str | os.PathLike):
        found = _from_file(os.fspath(costs), names)
    elif isinstance(costs, Mapping):
        found = _from_mapping(costs, names)
    else:
        found = _from_array(costs, names)
    if not np.isfinite(found).all():
        raise DataError("The costs are not all finite numbers; give a finite cost for every pair of classes.")
    return found


def _from_array(costs: Any, names: list[str]) -> Costs:
    try:
        found = np.asarray(costs, np.float64)
    except (TypeError, ValueError):
        found = np.empty(0)
    wanted = (len(names), len(names))
    if found.shape != wanted:
        raise DataError(
            f"The costs have the shape {found.shape}; give {wanted}: costs[predicted class, true class], classes in "
            f"the order {', '.join(names)}."
        )
    return found


def _from_mapping(costs: Mapping[Any, Any], names: list[str]) -> Costs:
    given = {
        str(predicted): {str(true): cost for true, cost in row.items()} if isinstance(row, Mapping) else {}
        for predicted, row in costs.items()
    }
    if sorted(given) != sorted(names) or any(sorted(row) != sorted(names) for row in given.values()):
        raise DataError(
            f"The costs need an entry for each predicted class ({', '.join(names)}), with a cost for each true class "
            "in turn: {predicted: {true: cost}}."
        )
    return np.array([[float(given[predicted][true]) for true in names] for predicted in names])


def _from_file(path: str, names: list[str]) -> Costs:
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            lines = [[cell.strip() for cell in line] for line in csv.reader(file) if line]
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text in UTF-8"
        raise DataError(f"The file of costs {path} cannot be read ({why}); give a CSV file.") from None
    corner, header = (lines[0][0].lower(), lines[0][1:]) if lines else ("", [])
    rows = {line[0]: line[1:] for line in lines[1:]}
    if sorted(header) != sorted(names) or sorted(rows) != sorted(names):
        raise DataError(
            f"The file of costs {path} has to have one row and one column for each of {', '.join(names)}; its header "
            "is 'predicted' and the true classes."
        )
    if corner not in _ROWS:
        raise DataError(
            f"The file of costs {path} begins with {lines[0][0]!r}; begin it with 'predicted' where its rows are "
            "predicted classes and its columns true ones, or with 'true' where it is the other way round."
        )
    found = np.array([[_cost(path, row, column, rows[row], header.index(column)) for column in names] for row in names])
    return found if corner == "predicted" else found.T


def _cost(path: str, row: str, column: str, cells: list[str], place: int) -> float:
    """Return an entry of a file; raise if it is missing or not a number."""
    if place >= len(cells) or not cells[place]:
        raise DataError(f"The file of costs {path} has no entry in row {row!r}, column {column!r}; add it.")
    try:
        return float(cells[place])
    except ValueError:
        raise DataError(
            f"The file of costs {path} has {cells[place]!r} in row {row!r}, column {column!r}; give a number."
        ) from None
