"""Detection of target leakage: columns whose values are hardly known before the target is.

A column is suspicious when, over the first rows,

    missingness    it is missing exactly where the target has one value (or nearly so)
    purity         rows with equal values have the same target, in sufficiently large groups
    order          its order separates two classes (AUC), or it is a monotone function of a numeric target (rank
                   correlation)

"Nearly" means 99.9 % of what could be explained.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.preprocessing.table_encoder_blocks import table_blocks, texts_with_places, wide_texts
from summula.training.data.target import distinct_texts

__all__ = ["leak_sentence", "leaks", "leaks_of_training"]

Array = NDArray[Any]

_ROWS = 50_000  # rows examined
_NEARLY = 0.999
_CLEARLY = 0.99  # fraction of the largest sum of products of ranks below which an order is not suspicious
_MIN_ROWS = 10
_MIN_OF_CLASS = 5  # rows of a class, missing values, and rows per value of a pure column


def leaks(table: Any, y: Array, classes: bool) -> dict[str, str]:
    """Find suspicious columns.

    Parameters
    ----------
    table : frame
        The features.
    y : ndarray
        The target, without missing values.
    classes : bool
        Whether the target consists of classes.

    Returns
    -------
    dict of str to str
        The evidence by column.
    """
    found = {}
    codes = distinct_texts(y)[1] if y.dtype.kind == "O" else np.unique(y, return_inverse=True)[1]
    blocks = table_blocks(table)
    columns = blocks.read(0, blocks.n_rows)
    clear = _clear_numbers(columns, codes) | _clear_texts(columns, codes) if len(columns) > blocks.n_rows else set()
    for name, column in columns.items():
        evidence = "" if name in clear else _of_column(column, y, codes, classes)
        if evidence:
            found[name] = evidence
    return found


def _clear_texts(columns: dict[str, Any], codes: Array) -> set[str]:
    """Return text columns of a wide table that are not suspicious: no missing values, and no purity."""
    if (wide := wide_texts(columns)) is None:
        return set()
    names, texts = wide
    groups = texts.cells()
    n_codes = int(codes.max()) + 1
    pairs, counts = np.unique(groups * n_codes + codes, return_counts=True)
    most = np.zeros(len(texts.words) + 1, np.int64)  # rows with the most frequent target of each text
    np.maximum.at(most, pairs // n_codes, counts)
    explained = np.diff(np.cumsum(np.append(0, most))[texts.bounds])
    constant = np.bincount(codes).max()
    clear = (texts.places >= 0).all(axis=1) & (explained - constant < _NEARLY * (len(codes) - constant))
    return {name for name, one in zip(names, clear.tolist(), strict=True) if one}


def _clear_numbers(columns: dict[str, Any], codes: Array) -> set[str]:
    """Return numeric columns of a table wider than long that are not suspicious, from one pass over all of them.

    They have no missing values, too many distinct values for purity, and an order unlike that of the target:
    the sum of products of ranks, of which AUC and rank correlation are monotone functions, is not extreme.
    """
    names = [name for name, one in columns.items() if isinstance(one, np.ndarray) and one.dtype.kind == "f"]
    if not names:
        return set()
    X = np.column_stack([columns[name] for name in names])
    order = np.argsort(X, axis=0, kind="stable")
    ordered = np.take_along_axis(X, order, axis=0)
    distinct = 1 + (ordered[1:] > ordered[:-1]).sum(axis=0)
    target = _ranks(codes)[order] - (len(codes) + 1) / 2
    steps = np.arange(len(codes)) - (len(codes) - 1) / 2
    best = float(np.sort(target[:, 0]) @ steps)
    clear = (distinct == len(codes)) & (np.abs(steps @ target) < _CLEARLY * best) & ~np.isnan(X).any(axis=0)
    return {name for name, one in zip(names, clear.tolist(), strict=True) if one}


def _of_column(column: Any, y: Array, codes: Array, classes: bool) -> str:
    if isinstance(column, np.ndarray):
        x = column.astype(np.float64) if column.dtype.kind != "M" else _moments(column)
        known = ~np.isnan(x)
        places = np.unique(x, return_inverse=True)[1]
    else:
        known = np.asarray(column.is_valid().to_numpy(zero_copy_only=False), bool)
        x, places = None, texts_with_places(column)[1]
    if found := _by_missing(known, y, codes):
        return found
    if known.sum() < _MIN_ROWS:
        return ""
    if _is_pure(places[known], codes[known]):
        return "rows with equal values have equal targets"
    if x is None or np.ptp(x[known]) == 0:
        return ""
    if classes:
        auc = _auc(places[known], codes[known])
        return f"its order separates the classes, with AUC {auc:.4g}" if auc >= _NEARLY else ""
    rho = _rank_correlation(places[known], np.unique(y[known], return_inverse=True)[1])
    return (
        f"it is nearly a monotone function of the target, with rank correlation {rho:.4f}"
        if abs(rho) >= _NEARLY
        else ""
    )


def _moments(column: Array) -> Array:
    return np.asarray(np.where(np.isnat(column), np.nan, column.astype(np.int64).astype(np.float64)))


def _by_missing(known: Array, y: Array, codes: Array) -> str:
    """Return evidence that values are missing exactly where the target has one value."""
    missing = ~known
    n_missing = int(missing.sum())
    if n_missing < _MIN_OF_CLASS or n_missing == len(known):
        return ""
    counts = np.bincount(codes[missing], minlength=int(codes.max()) + 1)
    code = int(counts.argmax())
    of_code = codes == code
    # Nearly all rows with a missing value or that target must have both.
    both, either = int((missing & of_code).sum()), int((missing | of_code).sum())
    if both < _MIN_OF_CLASS or both < _NEARLY * either:
        return ""
    value = y[int(np.argmax(of_code))]
    return f"it is missing where the target is {value if isinstance(value, str) else f'{value:g}'}, and nowhere else"


def _is_pure(places: Array, codes: Array) -> bool:
    """Return whether nearly all rows have the most frequent target of their value, in sufficiently large groups."""
    groups, places = np.unique(places, return_inverse=True)
    n_codes = int(codes.max()) + 1
    if len(groups) < 2 or _MIN_OF_CLASS * len(groups) > len(places) or len(np.unique(codes)) < 2:
        return False
    pairs, counts = np.unique(places.astype(np.int64) * n_codes + codes, return_counts=True)
    most = np.zeros(len(groups), np.int64)
    np.maximum.at(most, pairs // n_codes, counts)
    # Explained fraction of the errors of always predicting the most frequent target.
    constant = np.bincount(codes).max()
    return bool(most.sum() - constant >= _NEARLY * (len(codes) - constant))


def _ranks(places: Array) -> Array:
    """Return ranks starting at 1, with mean ranks for ties; `places` are indices among the sorted distinct values."""
    counts = np.bincount(places)
    return np.asarray((np.cumsum(counts) - 0.5 * (counts - 1))[places])


def _auc(places: Array, codes: Array) -> float:
    """Return the AUC of a ranking of two classes, in either direction; 0.5 for other numbers of classes."""
    counts = np.bincount(codes)
    present = np.flatnonzero(counts)
    if len(present) != 2 or counts[present].min() < _MIN_OF_CLASS:
        return 0.5
    first, second = counts[present]
    total = float(_ranks(places)[codes == present[1]].sum())
    auc = (total - second * (second + 1) / 2) / (first * second)
    return float(max(auc, 1.0 - auc))


def _rank_correlation(places: Array, others: Array) -> float:
    x, y = (ranks - ranks.mean() for ranks in (_ranks(places), _ranks(others)))
    size = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / size if size > 0.0 else 0.0


def leaks_of_training(table: Any, y: Array, classes: bool, dropped: Iterable[str]) -> dict[str, str]:
    """Return the suspicious columns in use, based on the first training rows."""
    return leaks(table.drop_columns(list(dropped)).slice(0, _ROWS), y[:_ROWS], classes)


def leak_sentence(name: str, target: str, why: str) -> str:
    """Return a warning about a suspicious column."""
    return (
        f"{name!r} looks like target leakage ({why}): unless its value is known before {target!r} is, leave it out "
        f"(--drop {name!r}, or drop=[{name!r}] in Python)."
    )
