"""Slices through a model: rows that vary in one or two columns with the others fixed.

Numeric columns are fixed at their median, others (text, categories, booleans) at their most frequent value. The rows
have the type of the data, array or frame, so that the model gets the names and types it was fitted on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.frames import is_frame, no_such_column, opened
from summula.core.errors import DataError, ParameterError

__all__ = ["Slices", "evaluated", "target_values"]

Array = NDArray[Any]

_BLOCK = 1 << 22  # number of values evaluated at once, which limits memory for wide data


class Slices:
    """Data to plot, as an array or a frame, and rows of slices through them.

    Parameters
    ----------
    X : array-like or frame
    function : str
        Name of the plotting function, for error messages.
    model : estimator
        Fitted model; from a frame the columns it was fitted on are selected.
    target : str, optional
        Column of the frame that is not a feature.
    """

    def __init__(self, X: Any, function: str, model: Any, target: str | None = None) -> None:
        self.function = function
        self.frame: Any = None
        if is_frame(X):
            self.frame = _features(opened(X), model, target)
            self.names = [str(name) for name in self.frame.columns]
            self.n_rows = len(self.frame)
        else:
            self._rows = _array(X, function)
            self.n_rows = len(self._rows)
            known = getattr(model, "feature_names_in_", ())
            width = self._rows.shape[1]
            self.names = [str(name) for name in known] if len(known) == width else [f"x{j}" for j in range(width)]
        if not self.n_rows:
            raise DataError(f"X has no rows; {function} needs rows to determine the range of the plot.")
        self._still: dict[int, Any] = {}

    def place(self, column: Any) -> int:
        """Return the index of a column given by index or name."""
        d = len(self.names)
        if isinstance(column, str):
            if column not in self.names:
                raise DataError(no_such_column(column, self.names))
            return self.names.index(column)
        if isinstance(column, bool) or not isinstance(column, int | np.integer) or not -d <= column < d:
            raise ParameterError(
                f"A column of {self.function} must be a name or an int from 0 to {d - 1}, not {column!r}."
            )
        return int(column) % d

    def values(self, j: int) -> Array:
        """Return a column as floats."""
        if self.frame is None:
            return np.asarray(self._rows[:, j], np.float64)
        import narwhals as nw

        column = self.frame.get_column(self.frame.columns[j])
        if not column.dtype.is_numeric():
            raise DataError(
                f"Column {self.names[j]!r} has {str(column.dtype).lower()} values; {self.function} needs a numeric "
                "column for an axis: choose another."
            )
        return np.asarray(column.cast(nw.Float64).to_numpy(), np.float64)  # missing values become NaN

    def range(self, j: int, margin: float = 0.0) -> tuple[float, float]:
        """Return the smallest and largest finite value of a column, extended by a relative margin."""
        values = self.values(j)
        values = values[np.isfinite(values)]
        if not len(values):
            raise DataError(f"Column {self.names[j]!r} has no finite values; {self.function} cannot plot it.")
        low, high = float(values.min()), float(values.max())
        wide = (high - low) * margin if high > low else 0.5 * max(abs(high), 1.0)
        return low - wide, high + wide

    def describe_fixed(self, moving: Sequence[int]) -> str:
        """Describe the values of the fixed columns, for the title; empty if there are none."""
        others = [j for j in range(len(self.names)) if j not in moving]
        if not others:
            return ""
        many = "other columns at their" if len(others) > 1 else "the other column at its"
        if self.frame is None or all(self._is_number(j) for j in others):
            return f"{many} median"
        return f"{many} median or most frequent value"

    def rows(self, moving: dict[int, Array]) -> Iterator[Any]:
        """Yield rows with these values in these columns, in blocks, of the type of the data."""
        for j in range(len(self.names)):
            if j not in moving and j not in self._still:
                self._still[j] = self._fixed_value(j)
        length = len(next(iter(moving.values())))
        step = max(_BLOCK // len(self.names), 1)
        for start in range(0, length, step):
            part = {j: values[start : start + step] for j, values in moving.items()}
            yield self._array_rows(part) if self.frame is None else self._frame_rows(part)

    def _array_rows(self, moving: dict[int, Array]) -> Array:
        dtype = self._rows.dtype if self._rows.dtype.kind == "f" else np.dtype(np.float64)
        block = np.empty((len(next(iter(moving.values()))), len(self.names)), dtype)
        for j in range(len(self.names)):
            block[:, j] = moving[j] if j in moving else self._still[j]
        return block

    def _frame_rows(self, moving: dict[int, Array]) -> Any:
        import narwhals as nw

        length, library = len(next(iter(moving.values()))), self.frame.implementation
        columns: dict[Any, Any] = {}
        for j, name in enumerate(self.frame.columns):
            if j in moving:
                columns[name] = nw.new_series(name, moving[j], backend=library)
            elif self._is_number(j):
                columns[name] = nw.new_series(name, np.full(length, self._still[j]), backend=library)
            else:
                # Repeating a row that has the value preserves the type of the column and its categories.
                columns[name] = self.frame.get_column(name)[[self._still[j]] * length]
        return nw.from_dict(columns, backend=library).to_native()

    def _fixed_value(self, j: int) -> float | int:
        """Return the median of a numeric column, or the row of the most frequent value of another."""
        if self.frame is None or self._is_number(j):
            return _median(self.values(j))
        return _most_frequent(self.frame.get_column(self.frame.columns[j]))

    def _is_number(self, j: int) -> bool:
        return bool(self.frame.get_column(self.frame.columns[j]).dtype.is_numeric())


def evaluated(function: Callable[[Any], Any], slices: Slices, moving: dict[int, Array]) -> Array:
    """Evaluate a method of a model on the rows of a slice."""
    return np.concatenate([np.asarray(function(rows)) for rows in slices.rows(moving)])


def target_values(X: Any, y: Any, rows: int, function: str) -> tuple[Array, str | None]:
    """Return the targets as an array with one value per row, and their name or None."""
    if isinstance(y, str):
        if not is_frame(X):
            raise DataError(f"y={y!r} is a column name, but X is not a frame; pass the values of y.")
        frame = opened(X)
        if y not in frame.columns:
            raise DataError(no_such_column(y, frame.columns))
        return frame.get_column(y).to_numpy(), y
    name = getattr(y, "name", None)
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise DataError(f"y has shape {values.shape}; {function} plots one target: pass one column.")
    if len(values) != rows:
        raise DataError(f"X has {rows} rows but y has {len(values)}; y must have one value per row.")
    return values, name if isinstance(name, str) and name else None


def _features(frame: Any, model: Any, target: str | None) -> Any:
    """Return the columns of a frame that a model uses, in its order."""
    known = getattr(model, "feature_names_in_", None)
    if known is None:
        return frame if target is None or target not in frame.columns else frame.drop([target])
    missing = [name for name in known if name not in frame.columns]
    if missing:
        raise DataError(no_such_column(str(missing[0]), frame.columns))
    return frame.select(list(known))


def _array(X: Any, function: str) -> Array:
    if not isinstance(X, np.ndarray | list | tuple):
        raise DataError(
            f"X is of type {type(X).__name__}; {function} needs rows in memory: pass an array or a frame, with a "
            "sample of the rows if there are many."
        )
    try:
        rows = np.asarray(X)
        rows = rows if rows.dtype.kind in "fiub" else rows.astype(np.float64)
    except (TypeError, ValueError):
        raise DataError(f"X is not numeric; {function} needs numbers: pass a frame for mixed data.") from None
    if rows.ndim != 2:
        raise DataError(f"X has {rows.ndim} dimension{'s' * (rows.ndim != 1)}; {function} needs a 2d array.")
    return rows


def _median(values: Array) -> float:
    present = values[~np.isnan(values)]
    return float(np.median(present)) if len(present) else float("nan")


def _most_frequent(column: Any) -> int:
    """Return a row with the most frequent value; ties go to the first."""
    counts: dict[Any, list[int]] = {}
    for row, value in enumerate(column.to_list()):
        counts.setdefault(value, [0, row])[0] += 1
    return max(counts.values(), key=lambda counted: (counted[0], -counted[1]))[1]
