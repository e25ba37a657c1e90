"""A target with what shifts its linear predictor: (y, offset) travel together as two columns of y.

An exposure t multiplies the mean under a log link, so it is the offset log t.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.frames import frame_library, is_frame, opened, pop_columns
from summula.core.data.numbers import Origin, array_of, column_values, real_numbers
from summula.core.data.scan import Scan
from summula.core.errors import DataError
from summula.core.estimator.validation import collection_reader

__all__ = ["features_beside", "joined_targets"]

Array = NDArray[Any]


def joined_targets(X: Any, y: Any, offset: Any = None, exposure: Any = None) -> Any:
    """y alone when nothing shifts it; else y and the offset side by side, or their names where X has columns.

    Columns of files and collections are named; an exposure there has to be given as an offset, its logarithm.
    """
    if offset is None and exposure is None:
        return y
    if isinstance(X, Scan) or collection_reader(X) is not None:
        return _named(y, offset, exposure)
    n = _length(X)
    total = np.zeros(n)
    if offset is not None:
        total = total + _values(X, offset, "offset", n)
    if exposure is not None:
        t = _values(X, exposure, "exposure", n)
        bad = np.flatnonzero(~(t > 0))
        if len(bad):
            raise DataError(f"The exposure is {t[bad[0]]:g} at row {int(bad[0])}; it must be above 0 everywhere.")
        total = total + np.log(t)
    values = _values(X, y, "y", n)
    return np.column_stack([values, total])


def features_beside(X: Any, *given: Any) -> Any:
    """A frame without those of its columns that were given by name as something else."""
    names = [name for name in given if isinstance(name, str)]
    return pop_columns(X, dict.fromkeys(names))[0] if names and is_frame(X) else X


def _named(y: Any, offset: Any, exposure: Any) -> Any:
    if exposure is not None:
        raise DataError(
            "The rows come from files or a cluster, where an exposure has to be a column of its logarithm: offset=..."
        )
    for what, name in (("y", y), ("offset", offset)):
        if not isinstance(name, str):
            raise DataError(f"The rows come from files or a cluster, so {what} has to be the name of a column.")
    return [y, offset]


def _length(X: Any) -> int:
    return len(opened(X)) if is_frame(X) else int(np.shape(X)[0])


def _values(X: Any, given: Any, what: str, n: int) -> Array:
    """A column given by its values, one number for all rows, or its name in the frame."""
    if isinstance(given, str):
        if not is_frame(X):
            raise DataError(f"{what}={given!r} names a column, but X is {type(X).__name__}, which has none.")
        frame = opened(X)
        if given not in frame.columns:
            raise DataError(f"The data have no column {given!r}; {what} has to be one of them, or values.")
        given = column_values(frame[given])
    if given is None:
        raise DataError(f"The target {what} is None; give one number a row.")
    values = real_numbers(array_of(given), Origin(what, what, frame_library(given)), "the model").astype(np.float64)
    if values.ndim == 0:
        values = np.full(n, float(values))
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.shape != (n,):
        raise DataError(f"{what} has shape {values.shape} and X has {n} rows; give one number a row.")
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise DataError(f"{what} is {values[bad[0]]} at row {int(bad[0])}; it must be finite (no NaN, no inf).")
    return values
