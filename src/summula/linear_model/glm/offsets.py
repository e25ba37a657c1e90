"""Offsets of the linear predictor, and exposures t, which with a log link are the offsets log t."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.frames import frame_library, is_frame, opened, pop_columns
from summula.core.data.numbers import Origin, array_of, column_values, real_numbers
from summula.core.data.scan import Scan
from summula.core.errors import DataError
from summula.core.estimator.input.validation import collection_reader

__all__ = ["rows_and_offset"]

Array = NDArray[Any]


def rows_and_offset(X: Any, offset: Any = None, exposure: Any = None) -> tuple[Any, Any]:
    """Return the features and the offset of each row: an array, the name of a column of files or collections, or None.

    Named columns are removed from a frame. For files and collections the offset must be a named column, and an exposure
    must be passed as an offset, its logarithm.
    """
    if offset is None and exposure is None:
        return X, None
    if isinstance(X, Scan) or collection_reader(X) is not None:
        if exposure is not None:
            raise DataError(
                "The rows are in files or on a cluster, where an exposure must be passed as the name of a column with "
                "its logarithm: offset=..."
            )
        if not isinstance(offset, str):
            raise DataError("The rows are in files or on a cluster, so offset must be the name of a column.")
        return X, offset
    n = _length(X)
    total = np.zeros(n)
    if offset is not None:
        total = total + _values(X, offset, "offset", n)
    if exposure is not None:
        t = _values(X, exposure, "exposure", n)
        bad = np.flatnonzero(~(t > 0))
        if len(bad):
            raise DataError(f"The exposure is {t[bad[0]]:g} at row {int(bad[0])}; it must be positive.")
        total = total + np.log(t)
    named = dict.fromkeys(name for name in (offset, exposure) if isinstance(name, str))
    return (pop_columns(X, named)[0] if named else X), total


def _length(X: Any) -> int:
    return len(opened(X)) if is_frame(X) else int(np.shape(X)[0])


def _values(X: Any, given: Any, what: str, n: int) -> Array:
    """Return a column given by its values, one number for all rows, or its name in the frame."""
    if isinstance(given, str):
        if not is_frame(X):
            raise DataError(f"{what}={given!r} is a column name, but X is {type(X).__name__} without named columns.")
        frame = opened(X)
        if given not in frame.columns:
            raise DataError(f"The data have no column {given!r}; {what} must be the name of a column, or values.")
        given = column_values(frame[given])
    values = real_numbers(array_of(given, what), Origin(what, what, frame_library(given)), "the model").astype(
        np.float64
    )
    if values.ndim == 0:
        values = np.full(n, float(values))
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.shape != (n,):
        raise DataError(f"{what} has shape {values.shape} but X has {n} rows; pass one number per row.")
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise DataError(f"{what} is {values[bad[0]]} at row {int(bad[0])}; it must be finite (no NaN, no inf).")
    return values
