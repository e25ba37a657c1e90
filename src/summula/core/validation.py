"""What the user gives (arrays, lists, frames, sparse, column names) becomes a source, or one clear sentence."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.chunks import Part
from summula.core.errors import DataError
from summula.core.frames import frame_columns, is_frame, pop_columns, text_error
from summula.core.sources import MemorySource, Source

__all__ = ["as_source", "complain_of_infinite", "complain_of_missing", "feature_rows"]

Array = NDArray[Any]

_FLOATS = (np.float64, np.float32)


def feature_rows(estimator: Any, X: Any, *, reset: bool, accept_sparse: bool) -> Any:
    """The features as an array, a tuple of columns or CSR; names and number of columns noted or checked."""
    from sklearn.utils.validation import check_array, validate_data

    name = type(estimator).__name__
    if is_frame(X):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        rows = frame_columns(X, name)
        if isinstance(rows, tuple):
            if not rows:
                raise DataError(f"The frame has no columns left for features; {name} needs at least one.")
            if not len(rows[0]):
                raise DataError(f"The frame has no rows; {name} needs at least one.")
            return rows
    else:
        rows = X
    try:
        rows = check_array(
            rows,
            accept_sparse=["csr", "csc"] if accept_sparse else False,
            dtype=_FLOATS,
            ensure_all_finite=False,
            ensure_min_samples=1,
            accept_large_sparse=True,
            estimator=estimator,
            input_name="X",
        )
    except ValueError as error:
        _locate_text(X, name, error)
        raise
    if not is_frame(X):
        validate_data(estimator, rows, reset=reset, skip_check_array=True)
    return rows.tocsr() if hasattr(rows, "indptr") else rows


def _locate_text(X: Any, name: str, error: ValueError) -> None:
    """Replace "could not convert string to float" by where the text is."""
    if "could not convert" not in str(error):
        return
    cells = np.asarray(X, dtype=object)
    for row, values in enumerate(cells if cells.ndim == 2 else ()):
        for j, value in enumerate(values):
            try:
                float(value)
            except (TypeError, ValueError):
                raise text_error(f"Column {j}", value, row, name) from error


def _targets(y: Any, n_rows: int, name: str) -> Array:
    """y as float columns; its number of dimensions is kept."""
    if y is None:
        raise DataError(f"{name} requires y to be passed, but the target y is None.")
    if hasattr(y, "indptr"):
        raise DataError("The target y is sparse; give it as a dense array: y.toarray().")
    values = np.asarray(y)
    if values.ndim not in (1, 2):
        raise DataError(f"y should be a 1d array, or 2d for several targets; it has shape {values.shape}.")
    if values.dtype.kind == "c":
        raise DataError("Complex data not supported: y holds complex numbers.")
    if values.dtype not in _FLOATS:
        if values.dtype.kind not in "fiubO":
            raise DataError(
                f"The target y holds {values.dtype} values such as {values.flat[0]!r}; {name} needs numbers."
            )
        try:
            values = values.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(f"The target y holds something that is not a number ({error}).") from None
    if len(values) != n_rows:
        raise DataError(
            f"X has {n_rows} rows and y has {len(values)}: inconsistent numbers of samples; give one target a row."
        )
    return values


def _weights(weight: Any, n_rows: int) -> Array | None:
    if weight is None:
        return None
    values = np.asarray(weight, dtype=np.float64)
    if values.ndim == 0:
        values = np.full(n_rows, values)
    if values.ndim != 1:
        raise DataError(f"Sample weights must be 1D array or scalar; sample_weight has shape {values.shape}.")
    if len(values) != n_rows:
        raise DataError(f"sample_weight.shape == {values.shape}, expected {(n_rows,)}: one weight a row of X.")
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise DataError(f"sample_weight is {values[row]} at row {row}; weights must be finite (no NaN, no inf).")
    if (values < 0).any():
        row = int(np.flatnonzero(values < 0)[0])
        raise DataError(f"Negative values in data passed to `sample_weight`: {values[row]:g} at row {row}.")
    if not values.any():
        raise DataError("Every sample_weight is zero; there is nothing to fit: give some row a positive weight.")
    return values


def as_source(
    estimator: Any,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    needs_y: bool,
    reset: bool = True,
    accept_sparse: bool = True,
) -> MemorySource:
    """Check what a fit was given and put it behind one face.

    `y` and `sample_weight` may be names of columns of X when X is a frame; those columns are then not features.
    """
    name = type(estimator).__name__
    target_names = _names_of(y)
    columns = [y] if isinstance(y, str) else list(y) if _is_list_of_names(y) else []
    weighted_by_name = isinstance(sample_weight, str)
    if (columns or weighted_by_name) and not is_frame(X):
        what = f"y={y!r}" if columns else f"sample_weight={sample_weight!r}"
        raise DataError(
            f"{what} names a column, but X is {type(X).__name__}, which has none: give a frame or the values."
        )
    if columns or weighted_by_name:
        X, popped = pop_columns(X, columns + ([sample_weight] if weighted_by_name else []))
        if weighted_by_name:
            sample_weight = _column_numbers(popped.pop(), name)
        if columns:
            values = [_column_numbers(column, name) for column in popped]
            target_names = tuple(columns)
            y = values[0] if isinstance(y, str) else np.column_stack(values)
    rows = feature_rows(estimator, X, reset=reset, accept_sparse=accept_sparse)
    source = MemorySource(rows, None, None, _product_dtype(rows), _feature_names(estimator))
    targets = _targets(y, source.n_rows, name) if needs_y or y is not None else None
    return MemorySource(
        rows,
        targets if targets is None or targets.ndim == 2 else targets[:, None],
        _weights(sample_weight, source.n_rows),
        source.dtype,
        source.names,
        target_names,
        one_target=targets is None or targets.ndim == 1,
    )


def _is_list_of_names(y: Any) -> bool:
    return isinstance(y, list | tuple) and bool(y) and all(isinstance(item, str) for item in y)


def _names_of(y: Any) -> tuple[str, ...] | None:
    """The names y itself carries: of a series, or of the columns of a frame."""
    if isinstance(getattr(y, "name", None), str):
        return (y.name,)
    if y is not None and not isinstance(y, str) and is_frame(y):
        import narwhals as nw

        return tuple(str(column) for column in nw.from_native(y).columns)
    return None


def _column_numbers(column: Any, name: str) -> Array:
    from summula.core.frames import _numbers

    return _numbers(column, name)


def _feature_names(estimator: Any) -> tuple[str, ...] | None:
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else tuple(str(n) for n in names)


def _product_dtype(rows: Any) -> np.dtype[Any]:
    """float32 when every column is, else float64."""
    dtypes = {column.dtype for column in rows} if isinstance(rows, tuple) else {rows.dtype}
    return np.dtype(np.float32) if dtypes == {np.dtype(np.float32)} else np.dtype(np.float64)


# ---------------------------------------------------------------- missing and infinite values, found after the fact


def _not_finite(block: Array) -> Array:
    return ~np.isfinite(block)


class _Bad:
    """Counts of NaN and infinities a column, and the first row of each: a statistic like any other."""

    def __init__(self, counts: Array, first: Array) -> None:
        self.counts, self.first = counts, first

    @classmethod
    def of(cls, is_bad: Callable[[Array], Array], part: Part) -> _Bad:
        total: _Bad | None = None
        for chunk in part.chunks():
            blocks = [chunk.dense(chunk.dtype)] + ([] if chunk.y is None else [chunk.y])
            bad = np.hstack([is_bad(block) for block in blocks])
            first = np.where(bad.any(axis=0), bad.argmax(axis=0) + chunk.start, np.iinfo(np.int64).max)
            one = cls(bad.sum(axis=0), first)
            total = one if total is None else total.merge(one)
        assert total is not None
        return total

    def merge(self, other: _Bad) -> _Bad:
        return _Bad(self.counts + other.counts, np.minimum(self.first, other.first))


def complain_of_infinite(source: Source, estimator: str) -> None:
    """Raise a sentence that names the first column with infinities, where NaN is allowed."""
    complain_of_missing(source, estimator, allow_nan=True)


def complain_of_missing(source: Source, estimator: str, *, allow_nan: bool = False) -> None:
    """Raise a sentence that names the first column with NaN or infinities; return when there is none."""
    from summula.core.engine import current_engine

    engine = current_engine()
    look = functools.partial(_Bad.of, np.isinf if allow_nan else _not_finite)
    bad = engine.map_reduce(look, source.plan(engine.chunk_rows), _Bad.merge)
    columns = np.flatnonzero(bad.counts)
    if not len(columns):
        return
    j, row = int(columns[0]), int(bad.first[columns[0]])
    chunk = source.chunk(row, row + 1)
    is_target = j >= source.n_features
    value = chunk.y[0, j - source.n_features] if is_target and chunk.y is not None else chunk.dense()[0, j]
    label = "The target y" if is_target else source.column(j)
    count = int(bad.counts[j])
    kind = "missing value" if np.isnan(value) else "infinite value"
    others = f" ({len(columns) - 1} other columns have some too)" if len(columns) > 1 else ""
    raise DataError(
        f"{label} has {count} {kind}{'s' if count > 1 else ''} ({'NaN' if np.isnan(value) else 'inf'}; "
        f"first at row {row}){others}; {estimator} needs complete data: impute or drop them."
    )
