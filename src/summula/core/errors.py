"""What can go wrong, by name. Every message is one sentence: what, where, what to do."""

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
    """The data cannot be used as they are: missing values, text, unequal lengths, unknown columns."""


class RowError(DataError):
    """One row of the data is wrong.

    The message is "`before` at row `row``after`". Whoever hands on only some of the rows translates the number with
    `moved`, and whoever knows the file names the place in it with `located`.

    Attributes
    ----------
    row : int
        Counted from 0 over the rows that were looked at.
    """

    def __init__(self, before: str, row: int, after: str) -> None:
        super().__init__(before, int(row), after)
        self.before, self.row, self.after = before, int(row), after

    def __str__(self) -> str:
        return f"{self.before} at row {self.row}{self.after}"

    def moved(self, row: int) -> RowError:
        """The same error under another number of the row."""
        return RowError(self.before, row, self.after)

    def located(self, place: str) -> DataError:
        """The same error with a place in a file, such as "line 12 of t.csv", instead of the number of the row."""
        return DataError(f"{self.before} at {place}{self.after}")


class ParameterError(ValueError, TypeError):
    """A parameter of an estimator has a value it cannot take."""


class ModelFileError(ValueError):
    """A model file is damaged, foreign or of another version."""


class OutputError(OSError):
    """Results cannot be written where they should go."""


class TimeLimitError(TimeoutError):
    """`max_time` ran out before there was a first model to keep."""


class ClusterError(RuntimeError):
    """A cluster was lost, or gave up on a task, in the middle of a fit."""


class AccuracyWarning(UserWarning):
    """An answer has fewer digits than usual, and there is a way to have more."""


class CollapseWarning(UserWarning):
    """A component of a mixture has shrunk to a point, line or plane, where its likelihood has no maximum."""


class CollinearityWarning(UserWarning):
    """Some columns are combinations of others, so their coefficients are not determined by the data."""


class HoldoutWarning(UserWarning):
    """Held-out rows were looked at before, so that what is said from them about another model may not hold."""


class SeparationWarning(UserWarning):
    """Some columns separate the classes, so that an unpenalised likelihood has no maximum."""


_WRAPPERS = ("summula", "sklearn", "contextlib")


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the line of the user's code that led here, past our own and the wrappers around `fit`."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in _WRAPPERS:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
