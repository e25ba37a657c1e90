"""Conversion of input data (arrays, lists, frames, sparse matrices, column names) to a source, with clear errors."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk, Part
from summula.core.data.factors import Factors, FactorSource, has_numbers_as_text, numbers_for_categories
from summula.core.data.frames import (
    column_numbers,
    frame_columns,
    frame_library,
    is_frame,
    no_such_column,
    opened,
    pop_columns,
)
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
    text_error,
)
from summula.core.data.readers.table import spells_number
from summula.core.data.scan import Scan, ScanSource
from summula.core.data.sources import MemorySource, Source
from summula.core.data.sparse_format import CHECKED_FORMATS, check_sparse
from summula.core.errors import DataError
from summula.core.numerics.sums import Sum, merged_by

__all__ = [
    "as_source",
    "check_fitted",
    "collection_reader",
    "feature_rows",
    "has_bad_values",
    "raise_if_not_finite",
    "raise_if_overflowing",
]

Array = NDArray[Any]

_FLOATS = (np.float64, np.float32)

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
                dtype=_FLOATS,
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
    return rows.tocsr()


def _note_width(estimator: Any, rows: Array, reset: bool) -> None:
    """Note or check the number of columns of an array, which has no names: as `validate_data` does, in no time."""
    if reset:
        vars(estimator).pop("feature_names_in_", None)
        estimator.n_features_in_ = rows.shape[1]
    elif getattr(estimator, "n_features_in_", None) != rows.shape[1]:
        from sklearn.utils.validation import validate_data

        validate_data(estimator, rows, reset=False, skip_check_array=True)  # raises scikit-learn's sentence


def check_fitted(estimator: Any) -> None:
    """Raise scikit-learn's error where an estimator is not fitted."""
    known = getattr(estimator, "__sklearn_is_fitted__", None)
    if not (known() if known is not None else "n_features_in_" in vars(estimator)):
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(estimator)


def _is_plain(X: Any) -> bool:
    """Whether X needs no conversion: the checks would take longer than predicting a single row."""
    return type(X) is np.ndarray and X.dtype in _FLOATS and X.ndim == 2 and X.size > 0


def _check_is_table(X: Any, name: str) -> None:
    if type(X).__name__ == "LazyFrame":
        raise DataError(f"X is a lazy frame without data; {name} needs its rows: pass X.collect().")
    # (SciPy's dok_matrix is a dict with a shape.)
    if X is None or (isinstance(X, str | bytes | dict | set) and not hasattr(X, "shape")):
        raise DataError(
            f"X is of type {type(X).__name__}; {name} needs a table of numbers: an array, a frame or a sparse matrix."
        )


def _locate_uneven_row(X: Any, error: ValueError) -> None:
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


def _targets(y: Any, n_rows: int, name: str) -> Array:
    """Return y as float columns, with the number of dimensions unchanged."""
    if y is None:
        raise DataError(f"{name} requires y to be passed, but the target y is None.")
    if hasattr(y, "indptr"):
        raise DataError("The target y is sparse; pass a dense array: y.toarray().")
    values = array_of(y)
    if values.ndim not in (1, 2):
        raise DataError(f"y should be a 1d array, or 2d for several targets; got shape {values.shape}.")
    if values.ndim == 2 and not values.shape[1]:
        raise DataError(f"The target y has shape {values.shape}, that is no columns; {name} needs at least one.")
    if values.dtype not in _FLOATS:
        values = _float64(values, TARGET, y, name)
    return _checked_length(values, n_rows)


def _checked_length(targets: Array, n_rows: int) -> Array:
    if len(targets) != n_rows:
        raise DataError(
            "Found input variables with inconsistent numbers of samples: "
            f"X has {n_rows} rows and y has {len(targets)}; y must have one value per row."
        )
    return targets


def _weights(weight: Any, n_rows: int, name: str) -> Array | None:
    if weight is None:
        return None
    if hasattr(weight, "indptr"):
        raise DataError("sample_weight is sparse; pass a dense array: sample_weight.toarray().ravel().")
    values = array_of(weight)
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
    if isinstance(X, Scan):
        read = _scan_source(
            estimator, X, y, sample_weight, needs_y=needs_y, reset=reset, labels=labels, factors=factors, offset=offset
        )
        return _with_factors(read, factors)
    if (reader := collection_reader(X)) is not None:
        if labels is not None:
            X, y = _label_reader(X).with_codes(X, y, labels)
        if factors is not None:
            named = [*(y if _is_list_of_names(y) else [y]), sample_weight, offset]
            X = _label_reader(X).with_factors(X, factors, [name for name in named if isinstance(name, str)])
        options = {"needs_y": needs_y, "reset": reset, "accept_sparse": accept_sparse}
        collected: Source = reader.collection_source(
            estimator, X, y, sample_weight, labelled=labels is not None, offset=offset, **options
        )
        return _with_factors(collected, factors)
    name = type(estimator).__name__
    X, y, sample_weight, target_names = _resolve_names(X, y, sample_weight, labels, name)
    rows = feature_rows(estimator, X, reset=reset, accept_sparse=accept_sparse, factors=factors)
    given: dict[str, Any] = {"names": _feature_names(estimator), "target_names": target_names, "offset": offset}
    n_rows, targets = len(rows[0]) if isinstance(rows, tuple) else int(rows.shape[0]), None
    if labels is not None:
        given["codes"] = _checked_length(y, n_rows)
    elif needs_y or y is not None:
        targets = _targets(y, n_rows, name)
        targets, given["one_target"] = targets.reshape(n_rows, -1), targets.ndim == 1
    source = MemorySource(rows, targets, _weights(sample_weight, n_rows, name), _product_dtype(rows), **given)
    return _with_factors(source, factors)


def _resolve_names(
    X: Any, y: Any, sample_weight: Any, labels: Labels | None, name: str
) -> tuple[Any, Any, Any, tuple[str, ...] | None]:
    """Return features, target and weight as values, with named columns taken from the frame, and the target names.

    With `labels` the target is returned as codes.
    """
    columns = [y] if isinstance(y, str) else list(y) if _is_list_of_names(y) and not _is_text(X, y, labels) else []
    weights = [sample_weight] if isinstance(sample_weight, str) else []
    if (columns or weights) and not is_frame(X):
        if columns and not isinstance(y, str):
            raise DataError(
                f"The target y contains text such as {y[0]!r}; {name} needs numbers "
                f"(or column names, if X is a frame): {FOR_LABELS}."
            )
        what = f"y={y!r}" if columns else f"sample_weight={sample_weight!r}"
        raise DataError(
            f"{what} is a column name, but X is {type(X).__name__} without named columns: pass a frame or the values."
        )
    target_names = _names_of(y)
    if labels is not None and not columns:
        y = _codes(y, labels, name)
    if columns or weights:
        X, popped = pop_columns(X, columns + weights)
        if weights:
            sample_weight = column_numbers(popped.pop(), name)
        if columns and labels is not None:
            y = labels.codes(_label_column(popped[0]))
        elif columns:
            values = [column_numbers(column, name, FOR_LABELS) for column in popped]
            y = values[0] if isinstance(y, str) else np.column_stack(values)
        target_names = tuple(columns) or target_names
    return X, y, sample_weight, target_names


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
    """Whether a list of strings is a list of labels, one per row, rather than column names."""
    return labels is not None and (not is_frame(X) or len(y) == len(opened(X)))


def _as_objects(values: Array) -> Array:
    """Return text as objects, as pandas does, whichever library the frame comes from."""
    return values.astype(object) if values.dtype.kind == "U" else values


def _label_column(column: Any) -> Array:
    """Return a column of a frame as labels."""
    return array_of(column.to_native()) if is_wide_integer(column.dtype) else _as_objects(column_values(column))


def _are_few_integers(y: Array) -> bool:
    """Whether labels are integers, and so few of them that scikit-learn has nothing to say."""
    return y.dtype.kind == "b" or (y.dtype.kind in "iu" and len(y) > 0 and int(y.max()) - int(y.min()) < len(y) // 2)


def _codes(y: Any, labels: Labels, name: str) -> Array:
    """Encode labels that were passed as values."""
    if type(y) is np.ndarray and y.ndim == 1 and _are_few_integers(y):
        return labels.codes(y)
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import column_or_1d

    if y is None:
        raise DataError(f"{name} requires y to be passed, but the target y is None.")
    if hasattr(y, "indptr"):
        raise DataError("The target y is sparse; pass a dense array: y.toarray().")
    values = array_of(y)
    if values.dtype.kind in "cmMV":
        return labels.codes(values)  # raises for these dtypes
    values = column_or_1d(values, warn=True)
    if not isinstance(y, np.ndarray | list | tuple):
        values = _as_objects(values)
    if len(values) and values.dtype.kind not in "Of":  # these are checked by Labels itself
        check_classification_targets(values)
    return labels.codes(values)


def _scan_source(
    estimator: Any,
    X: Scan,
    y: Any,
    sample_weight: Any,
    *,
    needs_y: bool,
    reset: bool,
    labels: Labels | None = None,
    factors: Factors | None = None,
    offset: Any = None,
) -> ScanSource:
    """Return a source of features, targets and weight read from columns of files, all given by name."""
    from sklearn.utils.validation import validate_data

    name = type(estimator).__name__
    targets = [y] if isinstance(y, str) else list(y) if _is_list_of_names(y) else []
    if needs_y and y is None:
        raise DataError(f"{name} requires y to be passed, but the target y is None: name a column of the files.")
    for what, value in (("y", None if targets else y), ("sample_weight", sample_weight), ("offset", offset)):
        if value is not None and not isinstance(value, str):
            raise DataError(
                f"The rows are read from files, so {what} must be the name of a column, not {type(value).__name__}."
            )
    weight = [column for column in (sample_weight, offset) if column is not None]
    for column in targets + weight:
        if column not in X.kinds:
            raise DataError(no_such_column(column, X.columns))
    known = None if reset else getattr(estimator, "feature_names_in_", None)
    features = [c for c in X.columns if c not in targets + weight] if known is None else [str(c) for c in known]
    for column in features:
        if column not in X.kinds:
            raise DataError(no_such_column(column, X.columns))
    if not features:
        raise DataError(f"The files have no feature columns; {name} needs at least one.")
    if not X.n_rows:
        raise DataError(f"The files have no rows; {name} needs at least one.")
    validate_data(estimator, _header(features), reset=reset, skip_check_array=True)
    coded = [c for c in features if factors is not None and X.kinds[c] == "text"]
    for column in coded:
        if factors is not None and factors.learning:
            levels = X.vocabulary(column)
            if has_numbers_as_text(levels) and any(table.text_numbers for table in X.tables):
                raise _text_in_files(X, column, name)  # a column of numbers with a wrong cell
            factors.learn(column, levels)
    for column in [c for c in features if c not in coded] + targets[labels is not None :] + weight:
        if X.kinds[column] not in ("float64", "float32", "number"):
            raise _text_in_files(X, column, name)
    if labels is not None and labels.classes is None:
        labels.learn(X.distinct(targets[0], name))
    return ScanSource(
        X,
        features,
        targets,
        sample_weight,
        one_target=isinstance(y, str) or y is None,
        labels=labels,
        factors=factors if coded else None,
        offset=offset,
    )


def _header(names: list[str]) -> Any:
    """Return an empty table with these columns, for scikit-learn's check of feature names."""
    import pyarrow as pa

    return pa.table({name: pa.array([], pa.float64()) for name in names})


def _text_in_files(X: Scan, column: str, name: str) -> DataError:
    if X.kinds[column] != "text":
        return DataError(
            f"Column {column!r} has {X.kinds[column]} values; {name} needs numbers: convert it in the files, or "
            "exclude it with columns=[...]."
        )
    values = (value for batch in X.read(0, X.n_rows, [column]) for value in batch[0])
    texts = ((row, value) for row, value in enumerate(values) if value is not None)
    first = next(texts, None)
    if first is not None:
        # A numeric column of a CSV file is read as text if one of its values is not a number: report that value.
        row, value = next((text for text in chain([first], texts) if not spells_number(text[1])), first)
        return text_error(f"Column {column!r}", value, row, name).located(X.place(row))
    return DataError(f"Column {column!r} contains text; {name} needs numbers: exclude it with columns=[...].")


def _is_list_of_names(y: Any) -> bool:
    return isinstance(y, list | tuple) and bool(y) and all(isinstance(item, str) for item in y)


def _names_of(y: Any) -> tuple[str, ...] | None:
    """Return the names attached to y: the name of a series or the columns of a frame."""
    if isinstance(name := getattr(y, "name", None), str) and name:
        return (name,)
    if y is not None and not isinstance(y, str) and is_frame(y):
        import narwhals as nw

        return tuple(str(column) for column in nw.from_native(y).columns)
    return None


def _feature_names(estimator: Any) -> tuple[str, ...] | None:
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else tuple(str(n) for n in names)


def _product_dtype(rows: Any) -> np.dtype[Any]:
    """Return float32 if all columns are float32, else float64."""
    dtypes = {column.dtype for column in rows} if isinstance(rows, tuple) else {rows.dtype}
    return np.dtype(np.float32) if dtypes == {np.dtype(np.float32)} else np.dtype(np.float64)


# ------------------------------------------------------------- missing and infinite values, located after a failed sum


_NO_ROW = np.iinfo(np.int64).max


def _not_finite(block: Array) -> Array:
    return ~np.isfinite(block)


@dataclass(frozen=True)
class _InvalidCounts(Sum):
    """Number of NaN and infinities per column, and the first row that has one."""

    counts: Array
    first: Array = field(metadata=merged_by(np.minimum))

    @classmethod
    def of(cls, is_bad: Callable[[Array], Array], part: Part) -> _InvalidCounts:
        total: _InvalidCounts | None = None
        for chunk in part.chunks():
            one = cls._of_stored(is_bad, chunk) if chunk.is_sparse else cls._of_block(is_bad(chunk.X), chunk.start)
            for column in _targets_and_offset(chunk):
                other = cls._of_block(is_bad(column), chunk.start)
                one = cls(np.append(one.counts, other.counts), np.append(one.first, other.first))
            total = one if total is None else total.merge(one)
        assert total is not None
        return total

    @classmethod
    def _of_block(cls, bad: Array, start: int) -> _InvalidCounts:
        return cls(bad.sum(axis=0), np.where(bad.any(axis=0), bad.argmax(axis=0) + start, _NO_ROW))

    @classmethod
    def _of_stored(cls, is_bad: Callable[[Array], Array], chunk: Chunk) -> _InvalidCounts:
        X = chunk.X
        bad = np.flatnonzero(is_bad(X.data))
        columns, first = X.indices[bad], np.full(X.shape[1], _NO_ROW)
        np.minimum.at(first, columns, chunk.start + np.searchsorted(X.indptr, bad, side="right") - 1)
        return cls(np.bincount(columns, minlength=X.shape[1]), first)


def has_bad_values(chunk: Chunk, *, allow_nan: bool = False) -> bool:
    """Whether the features or targets of a chunk contain NaN or infinities (only infinities with `allow_nan`)."""
    is_bad = np.isinf if allow_nan else _not_finite
    X = chunk.X.data if chunk.is_sparse else chunk.X
    return bool(is_bad(X).any() or any(is_bad(column).any() for column in _targets_and_offset(chunk)))


def _targets_and_offset(chunk: Chunk) -> list[Array]:
    """Return the targets and the offset of a chunk, if any, as column blocks."""
    offset = None if chunk.offset is None else chunk.offset[:, None]
    return [column for column in (chunk.y, offset) if column is not None]


def raise_if_overflowing(source: Source, square: Array) -> None:
    """Raise DataError for the first column whose sum of squares overflows."""
    for j in np.flatnonzero(~np.isfinite(square)):
        raise DataError(
            f"{source.column(int(j))} contains values so large that their squares overflow float64; rescale it first."
        )


def raise_if_not_finite(source: Source, estimator: str, *, allow_nan: bool = False) -> None:
    """Raise DataError for the first column with NaN or infinities, if there is one."""
    engine = source.engine()
    count_invalid = functools.partial(_InvalidCounts.of, np.isinf if allow_nan else _not_finite)
    bad = engine.map_reduce(count_invalid, source.plan(engine.chunk_rows), _InvalidCounts.merge)
    columns = np.flatnonzero(bad.counts)
    if not len(columns):
        return
    j, row = int(columns[0]), int(bad.first[columns[0]])
    chunk = source.chunk(row, row + 1)
    k = j - source.n_features
    value = chunk.dense()[0, j] if k < 0 else np.hstack(_targets_and_offset(chunk))[0, k]
    label = source.column(j) if k < 0 else "The offset" if k == source.n_targets else _target_label(source, k)
    count, more = int(bad.counts[j]), len(columns) - 1
    kind = "missing value" if np.isnan(value) else "infinite value"
    others = f", as {'does' if more == 1 else 'do'} {more} other column{'' if more == 1 else 's'}" if more else ""
    raise DataError(
        f"{label} has {count} {kind}{'s' if count > 1 else ''} ({'NaN' if np.isnan(value) else 'inf'}; "
        f"first at row {row}){others}; {estimator} needs {'finite' if allow_nan else 'complete'} data: "
        "impute or drop them."
    )


def _target_label(source: Source, k: int) -> str:
    if source.target_names is not None:
        return f"The target {source.target_names[k]!r}"
    return "The target y" if source.n_targets == 1 else f"Column {k} of the target y"
