"""Features, targets, weight and offset of a scan, all given as names of columns of the files."""

from __future__ import annotations

from itertools import chain
from typing import Any

from summula.core.data.factors import Factors, has_numbers_as_text
from summula.core.data.frames import no_such_column
from summula.core.data.numbers import text_error
from summula.core.data.readers.table import spells_number
from summula.core.data.scan import Scan, ScanSource
from summula.core.errors import DataError
from summula.core.estimator.input.given import Given

__all__ = ["is_list_of_names", "scan_source"]


def is_list_of_names(y: Any) -> bool:
    """Return whether a target is given by the names of several columns."""
    return isinstance(y, list | tuple) and bool(y) and all(isinstance(item, str) for item in y)


def scan_source(given: Given) -> ScanSource:
    """Return a source of features, targets and weight read from columns of files, all given by name."""
    from sklearn.utils.validation import validate_data

    estimator, X, y, sample_weight, offset = given[:5]
    labels, factors, name = given.labels, given.factors, type(estimator).__name__
    targets = [y] if isinstance(y, str) else list(y) if is_list_of_names(y) else []
    if given.needs_y and y is None:
        raise DataError(f"{name} requires y to be passed, but the target y is None: name a column of the files.")
    _check_are_names({"y": None if targets else y, "sample_weight": sample_weight, "offset": offset})
    others = [column for column in (sample_weight, offset) if column is not None]
    features = _features(estimator, X, targets + others, given.reset)
    validate_data(estimator, _header(features), reset=given.reset, skip_check_array=True)
    coded = [] if factors is None else _learn_factors(X, features, factors, name)
    for column in [c for c in features if c not in coded] + targets[labels is not None :] + others:
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


def _check_are_names(arguments: dict[str, Any]) -> None:
    """Raise for values in place of the name of a column."""
    for what, value in arguments.items():
        if value is not None and not isinstance(value, str):
            raise DataError(
                f"The rows are read from files, so {what} must be the name of a column, not {type(value).__name__}."
            )


def _features(estimator: Any, X: Scan, others: list[str], reset: bool) -> list[str]:
    """Return the feature columns: those the estimator was fitted on, or all that have no other role."""
    known = None if reset else getattr(estimator, "feature_names_in_", None)
    features = [c for c in X.columns if c not in others] if known is None else [str(c) for c in known]
    for column in others + features:
        if column not in X.kinds:
            raise DataError(no_such_column(column, X.columns))
    name = type(estimator).__name__
    if not features:
        raise DataError(f"The files have no feature columns; {name} needs at least one.")
    if not X.n_rows:
        raise DataError(f"The files have no rows; {name} needs at least one.")
    return features


def _learn_factors(X: Scan, features: list[str], factors: Factors, name: str) -> list[str]:
    """Return the factors of text columns, whose levels are read unless they are known."""
    coded = [column for column in features if X.kinds[column] == "text"]
    for column in coded if factors.learning else ():
        levels = X.vocabulary(column)
        if has_numbers_as_text(levels) and any(table.text_numbers for table in X.tables):
            raise _text_in_files(X, column, name)  # a numeric column with an invalid cell
        factors.learn(column, levels)
    return coded


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
