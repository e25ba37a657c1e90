"""Conversion of input data (arrays, lists, frames, sparse matrices, column names) to a source, with clear errors."""

from __future__ import annotations

import functools
import importlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.factors import Factors, FactorSource, numbers_for_categories
from summula.core.data.frames import column_numbers, frame_columns, frame_library, is_frame, opened, pop_columns
from summula.core.data.labels import Labels
from summula.core.data.numbers import (
    FOR_LABELS,
    TARGET,
    WEIGHT,
    Origin,
    array_of,
    column_values,
    is_wide_integer,
    real_numbers,
    refuse_silent_conversions,
)
from summula.core.data.scan import Scan
from summula.core.data.sources import MappedSource, MemorySource, Source
from summula.core.data.sparse_format import CHECKED_FORMATS, canonical_csr, check_sparse
from summula.core.errors import DataError
from summula.core.estimator.input.given import Given
from summula.core.estimator.input.scan_columns import is_list_of_names, scan_source
from summula.core.estimator.input.transformed_scan import TransformedScan, lifted

__all__ = [
    "FLOATS",
    "are_few_integers",
    "as_source",
    "as_targets",
    "as_weights",
    "check_fitted",
    "collection_reader",
    "dtype_of",
    "feature_names",
    "feature_rows",
    "names_of",
]

Array = NDArray[Any]

FLOATS = (np.float64, np.float32)

# Collections of cluster libraries are recognised by their package; the module that reads them is imported by name.
_COLLECTIONS = {"dask": "summula.engines.dask_collections"}
_LABELS = {"dask": "summula.engines.dask_labels"}


def collection_reader(X: Any) -> Any:
    """Return the module that reads X if X is a collection of a cluster library, else None."""
    module = _COLLECTIONS.get(type(X).__module__.partition(".")[0])
    return None if module is None else importlib.import_module(module)


def _label_reader(X: Any) -> Any:
    return importlib.import_module(_LABELS[type(X).__module__.partition(".")[0]])


def feature_rows(estimator: Any, X: Any, *, reset: bool, accept_sparse: bool, factors: Factors | None = None) -> Any:
    """Return the features as an array, a tuple of columns or CSR; set or check the names and number of columns."""
    if _is_plain(X) and (reset or "feature_names_in_" not in vars(estimator)):
        _note_width(estimator, X, reset)
        return X
    from sklearn.utils.validation import check_array, validate_data

    name = type(estimator).__name__
    if is_frame(X):
        opened(X)
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        rows = frame_columns(X, name, factors)
        if isinstance(rows, tuple):
            if not rows:
                raise DataError(f"The frame has no feature columns; {name} needs at least one.")
            if not len(rows[0]):
                raise DataError(f"The frame has no rows; {name} needs at least one.")
            return rows
    else:
        _check_is_table(X, name)
        check_sparse(X)
        rows = X
    try:
        if not _is_plain(rows):
            values = rows if hasattr(rows, "tocsr") else np.asarray(rows)
            refuse_silent_conversions(values, Origin.features(X), name)
            rows = check_array(
                rows if hasattr(rows, "dtype") else values,
                accept_sparse=["csr", "csc"] if accept_sparse else False,
                dtype=np.float32 if values.dtype.newbyteorder("=") == np.float32 else FLOATS,
                ensure_all_finite=False,
                ensure_min_samples=1,
                accept_large_sparse=True,
                estimator=estimator,
                input_name="X",
            )
    except ValueError as error:
        _locate_text(X, name, error)
        _locate_uneven_row(X, error)
        raise
    if type(X) is np.ndarray and (reset or "feature_names_in_" not in vars(estimator)):
        _note_width(estimator, rows, reset)
    elif not is_frame(X):
        validate_data(estimator, rows, reset=reset, skip_check_array=True)
    if not hasattr(rows, "indptr"):
        return rows
    if getattr(X, "format", None) not in CHECKED_FORMATS:
        check_sparse(rows)
    return canonical_csr(rows)


def _note_width(estimator: Any, rows: Array, reset: bool) -> None:
    """Set or check the number of columns of an array without names, like `validate_data` but faster."""
    if reset:
        vars(estimator).pop("feature_names_in_", None)
        estimator.n_features_in_ = rows.shape[1]
    elif getattr(estimator, "n_features_in_", None) != rows.shape[1]:
        from sklearn.utils.validation import validate_data

        validate_data(estimator, rows, reset=False, skip_check_array=True)  # raises scikit-learn's error


def check_fitted(estimator: Any) -> None:
    """Raise scikit-learn's error if an estimator is not fitted."""
    known = getattr(estimator, "__sklearn_is_fitted__", None)
    if not (known() if known is not None else "n_features_in_" in vars(estimator)):
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(estimator)


def _is_plain(X: Any) -> bool:
    """Return whether X needs no conversion: the checks would take longer than predicting a single row."""
    return type(X) is np.ndarray and X.dtype in FLOATS and X.ndim == 2 and X.size > 0


def _check_is_table(X: Any, name: str) -> None:
    if type(X).__name__ == "LazyFrame":
        raise DataError(f"X is a lazy frame without data; {name} needs its rows: pass X.collect().")
    # (SciPy's dok_matrix is a dict with a shape.)
    if X is None or (isinstance(X, str | bytes | dict | set) and not hasattr(X, "shape")):
        raise DataError(
            f"X is of type {type(X).__name__}; {name} needs a table of numbers: an array, a frame or a sparse matrix."
        )


def _locate_uneven_row(X: Any, error: Exception) -> None:
    """Replace NumPy's "inhomogeneous shape" by an error that names the first row of a different length."""
    if "inhomogeneous" not in str(error) or not all(hasattr(row, "__len__") for row in X):
        return
    for row, values in enumerate(X):
        if len(values) != len(X[0]):
            raise DataError(
                f"Row {row} of X has {len(values)} values but row 0 has {len(X[0])}; all rows must have equal length."
            ) from error


def _locate_text(X: Any, name: str, error: Exception) -> None:
    """Replace "could not convert string to float" by an error that gives the position of the text or list."""
    message = str(error)
    if ("could not convert" in message or "setting an array element" in message) and "inhomogeneous" not in message:
        real_numbers(np.asarray(X, dtype=object), Origin.features(X), name)


def _float64(values: Array, origin: Origin, given: Any, name: str) -> Array:
    """Convert targets or weights to float64; `given` is the user's argument."""
    code = f"np.asarray({origin.code})" if isinstance(given, list | tuple) else origin.code
    return real_numbers(values, origin._replace(library=frame_library(given), code=code), name).astype(np.float64)


def as_targets(y: Any, n_rows: int, name: str) -> Array:
    """Return y as float columns, with the number of dimensions unchanged."""
    if y is None:
        raise DataError(f"{name} requires y to be passed, but the target y is None.")
    if hasattr(y, "indptr"):
        raise DataError("The target y is sparse; pass a dense array: y.toarray().")
    values = array_of(y, TARGET.label)
    if values.ndim not in (1, 2):
        raise DataError(f"y should be a 1d array, or 2d for several targets; got shape {values.shape}.")
    if values.ndim == 2 and not values.shape[1]:
        raise DataError(f"The target y has shape {values.shape}, that is no columns; {name} needs at least one.")
    if values.dtype not in FLOATS:
        values = _float64(values, TARGET, y, name)
    return _checked_length(values, n_rows)


def _checked_length(targets: Array, n_rows: int) -> Array:
    if len(targets) != n_rows:
        raise DataError(
            "Found input variables with inconsistent numbers of samples: "
            f"X has {n_rows} rows and y has {len(targets)}; y must have one value per row."
        )
    return targets


_WEIGHT_TOTALS = 1e-305, 1e305  # range of sums of weights in which products do not overflow or underflow


def as_weights(weight: Any, n_rows: int, name: str) -> Array | None:
    """Return sample weights as one float64 per row, finite, non-negative and not all 0; None if there are none."""
    if weight is None:
        return None
    if hasattr(weight, "indptr"):
        raise DataError("sample_weight is sparse; pass a dense array: sample_weight.toarray().ravel().")
    values = array_of(weight, WEIGHT.label)
    if values.dtype != np.float64:
        values = _float64(values, WEIGHT, weight, name)
    if values.ndim == 0:
        values = np.full(n_rows, values)
    if values.ndim != 1:
        raise DataError(f"Sample weights must be 1D array or scalar; sample_weight has shape {values.shape}.")
    if len(values) != n_rows:
        raise DataError(f"sample_weight.shape == {values.shape}, expected {(n_rows,)}: one weight per row of X.")
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise DataError(f"sample_weight is {values[row]} at row {row}; weights must be finite (no NaN, no inf).")
    if (values < 0).any():
        row = int(np.flatnonzero(values < 0)[0])
        raise DataError(
            f"Negative values in data passed to `sample_weight`: {values[row]:g} at row {row}; "
            "weights must be non-negative."
        )
    if not values.any():
        raise DataError("All sample weights are zero: at least one row needs a positive weight.")
    with np.errstate(over="ignore"):
        total = float(values.sum())
    if not _WEIGHT_TOTALS[0] < total < _WEIGHT_TOTALS[1]:
        raise DataError(
            f"The sample weights sum to {total:.3g}, where products with them {'under' if total < 1 else 'over'}flow; "
            "divide them by their mean."
        )
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
    labels: Labels | None = None,
    factors: Factors | None = None,
    offset: Any = None,
) -> Source:
    """Validate the arguments of `fit` and return them as a source.

    `y` and `sample_weight` may be names of columns of X if X is a frame; those columns are then not features.
    With `labels` the target consists of class labels, which are encoded; with `factors` categorical columns are encoded
    as indicators. `offset` is an array, or the name of a column of files or of a collection.
    """
    alone = not needs_y and all(one is None for one in (y, sample_weight, labels, factors, offset))
    if alone and type(X) is np.ndarray:
        rows = feature_rows(estimator, X, reset=reset, accept_sparse=accept_sparse)
        return MemorySource(rows, None, None, dtype_of(rows), feature_names(estimator))
    given = Given(estimator, X, y, sample_weight, offset, needs_y, reset, accept_sparse, labels, factors)
    if isinstance(X, TransformedScan):
        return _transformed_source(given)
    if isinstance(X, Scan):
        source: Source = scan_source(given)
    elif (reader := collection_reader(X)) is not None:
        source = reader.collection_source(_with_codes(given))
    else:
        source = _memory_source(given)
    return _with_factors(source, factors)


def _transformed_source(given: Given) -> Source:
    """Return a source of the rows of files after a transformer."""
    from sklearn.utils.validation import validate_data

    scan, n_outputs = given.X, given.X.transformer._n_outputs()
    validate_data(given.estimator, np.empty((1, n_outputs)), reset=given.reset, skip_check_array=True)
    before: dict[str, Any] = {"needs_y": given.needs_y, "reset": False, "labels": given.labels, "offset": given.offset}
    rows_before = as_source(scan.transformer, scan.scan, given.y, given.sample_weight, **before)
    return MappedSource(rows_before, functools.partial(lifted, scan.transformer), n_outputs)


def _with_codes(given: Given) -> Given:
    """Return a collection whose labels and categories are replaced by codes."""
    X, y = given.X, given.y
    if given.labels is not None:
        X, y = _label_reader(X).with_codes(X, y, given.labels)
    if given.factors is not None:
        named = [*(y if is_list_of_names(y) else [y]), given.sample_weight, given.offset]
        X = _label_reader(X).with_factors(X, given.factors, [name for name in named if isinstance(name, str)])
    return given._replace(X=X, y=y)


def _memory_source(given: Given) -> MemorySource:
    """Return a source of rows in memory."""
    estimator, labels, name = given.estimator, given.labels, type(given.estimator).__name__
    X, y, sample_weight, target_names = _resolve_names(given.X, given.y, given.sample_weight, labels, name)
    rows = feature_rows(estimator, X, reset=given.reset, accept_sparse=given.accept_sparse, factors=given.factors)
    n_rows, targets = len(rows[0]) if isinstance(rows, tuple) else int(rows.shape[0]), None
    more: dict[str, Any] = {"names": feature_names(estimator), "target_names": target_names, "offset": given.offset}
    if labels is not None:
        more["codes"] = _checked_length(y, n_rows)
    elif given.needs_y or y is not None:
        targets = as_targets(y, n_rows, name)
        targets, more["one_target"] = targets.reshape(n_rows, -1), targets.ndim == 1
    return MemorySource(rows, targets, as_weights(sample_weight, n_rows, name), dtype_of(rows), **more)


def _resolve_names(
    X: Any, y: Any, sample_weight: Any, labels: Labels | None, name: str
) -> tuple[Any, Any, Any, tuple[str, ...] | None]:
    """Return features, target and weight as values, with named columns taken from the frame, and the target names.

    With `labels` the target is returned as codes.
    """
    columns = [y] if isinstance(y, str) else list(y) if is_list_of_names(y) and not _is_text(X, y, labels) else []
    weights = [sample_weight] if isinstance(sample_weight, str) else []
    target_names = tuple(columns) or names_of(y)
    popped: list[Any] = []
    if columns or weights:
        _check_has_columns(X, y, sample_weight, columns, name)
        X, popped = pop_columns(X, columns + weights)
    if weights:
        sample_weight = column_numbers(popped.pop(), name)
    if labels is not None:
        y = labels.codes(_label_column(popped[0])) if columns else _codes(y, labels, name)
    elif columns:
        values = [column_numbers(column, name, FOR_LABELS) for column in popped]
        y = values[0] if isinstance(y, str) else np.column_stack(values)
    return X, y, sample_weight, target_names


def _check_has_columns(X: Any, y: Any, sample_weight: Any, columns: list[str], name: str) -> None:
    """Raise for column names if X has none."""
    if is_frame(X):
        return
    if columns and not isinstance(y, str):
        raise DataError(
            f"The target y contains text such as {y[0]!r}; {name} needs numbers "
            f"(or column names, if X is a frame): {FOR_LABELS}."
        )
    what = f"y={y!r}" if columns else f"sample_weight={sample_weight!r}"
    raise DataError(
        f"{what} is a column name, but X is {type(X).__name__} without named columns: pass a frame or the values."
    )


def _with_factors(source: Source, factors: Factors | None) -> Source:
    """Return the source with its factors, if any, encoded as indicators."""
    if factors is None:
        return source
    factors.learning = False
    here = {name: levels for name, levels in factors.levels.items() if name in (source.names or ())}
    for name, levels in here.items():
        if len(levels) < 2:
            raise DataError(f"Column {name!r} is constant, with the single value {levels[0]!r}; drop it.")
        if isinstance(source, MemorySource) and name not in factors.coded:
            raise numbers_for_categories(name, here)
    return FactorSource(source, here) if here else source


def _is_text(X: Any, y: Any, labels: Labels | None) -> bool:
    """Return whether a list of strings is a list of labels, one per row, rather than column names."""
    return labels is not None and (not is_frame(X) or len(y) == len(opened(X)))


def _as_objects(values: Array) -> Array:
    """Return text as objects, as pandas does, whichever library the frame comes from."""
    return values.astype(object) if values.dtype.kind == "U" else values


def _label_column(column: Any) -> Array:
    """Return a column of a frame as labels."""
    return array_of(column.to_native()) if is_wide_integer(column.dtype) else _as_objects(column_values(column))


def are_few_integers(y: Array) -> bool:
    """Return whether labels are integers with few distinct values, about which scikit-learn does not warn."""
    return y.dtype.kind == "b" or (y.dtype.kind in "iu" and len(y) > 0 and int(y.max()) - int(y.min()) < len(y) // 2)


def _codes(y: Any, labels: Labels, name: str) -> Array:
    """Encode labels that were passed as values."""
    if type(y) is np.ndarray and y.ndim == 1 and are_few_integers(y):
        return labels.codes(y)
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import column_or_1d

    if y is None:
        raise DataError(f"{name} requires y to be passed, but the target y is None.")
    if hasattr(y, "indptr"):
        raise DataError("The target y is sparse; pass a dense array: y.toarray().")
    values = array_of(y, TARGET.label)
    if values.dtype.kind in "cmMV":
        return labels.codes(values)  # raises for these dtypes
    values = column_or_1d(values, warn=True)
    if not isinstance(y, np.ndarray | list | tuple):
        values = _as_objects(values)
    if len(values) and values.dtype.kind not in "Of":  # these are checked by Labels itself
        check_classification_targets(values)
    return labels.codes(values)


def names_of(y: Any) -> tuple[str, ...] | None:
    """Return the names attached to y: the name of a series or the columns of a frame."""
    if isinstance(name := getattr(y, "name", None), str) and name:
        return (name,)
    if y is not None and not isinstance(y, str) and is_frame(y):
        import narwhals as nw

        return tuple(str(column) for column in nw.from_native(y).columns)
    return None


def feature_names(estimator: Any) -> tuple[str, ...] | None:
    """Return the feature names seen in fit, as text."""
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else tuple(str(n) for n in names)


def dtype_of(rows: Any) -> np.dtype[Any]:
    """Return float32 if all columns are float32, else float64."""
    dtypes = {column.dtype for column in rows} if isinstance(rows, tuple) else {rows.dtype}
    return np.dtype(np.float32) if dtypes == {np.dtype(np.float32)} else np.dtype(np.float64)
