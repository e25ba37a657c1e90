"""Exceptions and warnings. Each message states what is wrong, where, and how to fix it."""

from __future__ import annotations

import sys
import warnings

__all__ = [
    "AccuracyWarning",
    "ClusterError",
    "CollapseWarning",
    "CollinearityWarning",
    "DataError",
    "HoldoutWarning",
    "ModelFileError",
    "OutputError",
    "ParameterError",
    "RowError",
    "SeparationWarning",
    "TimeLimitError",
    "warn",
]


class DataError(ValueError):
    """The data are invalid: missing values, text, inconsistent lengths, unknown columns."""


class RowError(DataError):
    """A row of the data is invalid.

    The message is "`before` at row `row``after`". Code that passes on a subset of the rows translates the row number
    with `moved`; code that reads files replaces it by the position in the file with `located`.

    Attributes
    ----------
    row : int
        Index of the row, counted from 0 over the rows that were read.
    """

    def __init__(self, before: str, row: int, after: str) -> None:
        super().__init__(before, int(row), after)
        self.before, self.row, self.after = before, int(row), after

    def __str__(self) -> str:
        return f"{self.before} at row {self.row}{self.after}"

    def moved(self, row: int) -> RowError:
        """Return the same error with another row number."""
        return RowError(self.before, row, self.after)

    def located(self, place: str) -> DataError:
        """Return the same error with a position in a file, such as "line 12 of t.csv", instead of the row number."""
        return DataError(f"{self.before} at {place}{self.after}")


class ParameterError(ValueError, TypeError):
    """A parameter of an estimator has an invalid value."""


class ModelFileError(ValueError):
    """A model file is damaged, was not written by Summula, or was written by an incompatible version."""


class OutputError(OSError):
    """Results cannot be written to the given path."""


class TimeLimitError(TimeoutError):
    """`max_time` was exceeded before a first model was available."""


class ClusterError(RuntimeError):
    """A cluster was lost, or a task on it failed, during a fit."""


class AccuracyWarning(UserWarning):
    """A result is less accurate than usual; the message states how to improve it."""


class CollapseWarning(UserWarning):
    """A mixture component has collapsed to a point, line or plane, where the likelihood is unbounded."""


class CollinearityWarning(UserWarning):
    """Some columns are linear combinations of others, so the data do not determine their coefficients."""


class HoldoutWarning(UserWarning):
    """Held-out rows were used before, so statements about another model based on them may not hold."""


class SeparationWarning(UserWarning):
    """Some columns separate the classes, so the unpenalised likelihood has no maximum."""


_WRAPPERS = ("summula", "sklearn", "contextlib")


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning attributed to the user's code, skipping the frames of this library and wrappers of `fit`."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in _WRAPPERS:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
