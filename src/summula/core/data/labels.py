"""Class labels of any type as codes 0, 1, ..., the indices of the sorted classes.

Sources contain codes, so sums over rows do not depend on the type of labels. The classes of data in memory are
determined at once, those of files and collections in a first pass.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import DataError

__all__ = ["Labels", "distinct", "group_codes", "group_numbers", "merged", "union_of_labels"]

Array = NDArray[Any]

_LABELS = (str, bytes, bool, int, float, np.bool_, np.integer, np.floating)  # supported types of objects
_CLOSE = 2**12  # maximum range of integers for a lookup table
_MOST_CLASSES = 10_000  # for files: a target with more distinct values is not a class label


class Labels:
    """The classes of a target: learned from it, or those of an earlier fit."""

    def __init__(
        self, estimator: str, classes: Array | None = None, unknown: int | None = None, *, fewest: int = 2
    ) -> None:
        self.estimator, self.fewest = estimator, fewest
        self.classes = classes
        self.unknown = unknown  # the code of unknown labels; None raises an error for them

    def codes(self, values: Any, start: int = 0) -> NDArray[np.int32]:
        """Return the code of each label; the classes are learned from `values` if there are none yet.

        `start` is the row of the first value, for errors.
        """
        values = np.asarray(values)
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if values.ndim != 1:
            raise DataError(f"y should be a 1d array of labels; it has shape {values.shape}.")
        if not len(values):
            return np.empty(0, np.int32)
        if self.classes is None:
            if (found := _close_integers(values)) is not None:
                self.learn(found[0])
                return found[1]
            self.learn(distinct(values, start, self.estimator))
        assert self.classes is not None
        if values.dtype.kind in "mMcV":
            distinct(values, start, self.estimator)  # raises: these are no labels
        if (places := _table_codes(self.classes, values)) is not None:
            return places
        objects = "O" in (values.dtype.kind, self.classes.dtype.kind)
        if objects or (values.dtype.kind in "US") != (self.classes.dtype.kind in "US"):
            by_label = {label: place for place, label in enumerate(self.classes.tolist())}
            try:
                at = np.array([by_label.get(value, -1) for value in values.tolist()], np.intp)
            except TypeError:
                row = next(row for row, value in enumerate(values) if not isinstance(value, Hashable))
                raise _no_label(values[row], start + row, self.estimator) from None
            wrong = np.flatnonzero(at < 0)
        else:
            at = np.minimum(np.searchsorted(self.classes, values), len(self.classes) - 1)
            wrong = np.flatnonzero(self.classes[at] != values)
        if len(wrong) and self.unknown is None:
            row = int(wrong[0])
            raise DataError(
                f"The target y contains {_shown(values[row])} at row {start + row}, which is not one of the "
                f"{len(self.classes)} classes {self.estimator} was fitted on; drop such rows, or fit with them."
            )
        codes = at.astype(np.int32)
        if len(wrong) and self.unknown is not None:
            codes[wrong] = self.unknown
        return codes

    def learn(self, values: Array) -> None:
        """Set the classes from their sorted, distinct values."""
        if len(values) < self.fewest:
            only = f", {_shown(values[0])}" if len(values) else ""
            raise DataError(
                f"This solver needs samples of at least 2 classes in the data, but the data contains only one class"
                f"{only}; {self.estimator} needs rows of at least two classes."
            )
        self.classes = values


def _close_integers(values: Array) -> tuple[Array, NDArray[np.int32]] | None:
    """Return the distinct values of integers in a small range, and their codes; None for other values.

    A table of all integers between the smallest and the largest is faster than sorting or hashing.
    """
    if values.dtype.kind not in "iu":
        return None
    low, high = int(values.min()), int(values.max())
    if high - low >= _CLOSE:
        return None
    places = np.subtract(values, low, dtype=np.int64, casting="unsafe")
    there = np.zeros(high - low + 1, bool)
    there[places] = True
    code = np.cumsum(there, dtype=np.int32) - np.int32(1)
    return (np.flatnonzero(there) + low).astype(values.dtype), code[places]


def _table_codes(classes: Array, values: Array) -> NDArray[np.int32] | None:
    """Return the codes of integers by a lookup table; None for other values, or if some are unknown."""
    if classes.dtype.kind not in "iu" or values.dtype.kind not in "iu":
        return None
    low, high = int(classes[0]), int(classes[-1])
    if high - low >= _CLOSE or int(values.min()) < low or int(values.max()) > high:
        return None
    code = np.full(high - low + 1, -1, np.int32)
    code[np.subtract(classes, low, dtype=np.int64, casting="unsafe")] = np.arange(len(classes))
    codes = code[np.subtract(values, low, dtype=np.int64, casting="unsafe")]
    return codes if len(classes) == len(code) or codes.min() >= 0 else None


def distinct(values: Array, start: int, estimator: str) -> Array:
    """Return the sorted, distinct labels of some rows; raise an error for values that are not labels."""
    if values.dtype.kind == "O" and any(isinstance(value, str) for value in values):
        for row, value in enumerate(values):
            if not isinstance(value, str):
                raise DataError(
                    f"The target y contains {_shown(value)} at row {start + row} among text; "
                    f"{estimator} needs labels of one kind, none missing."
                )
        return np.array(sorted(set(values.tolist())), dtype=object)
    if values.dtype.kind == "O":
        for row, value in enumerate(values):
            if not isinstance(value, _LABELS):
                raise _no_label(value, start + row, estimator)
        values = np.asarray(values.tolist())
    if values.dtype.kind == "c":
        raise DataError(
            "Complex data not supported: the target y contains complex numbers, which are not class labels; pass text "
            "or integers."
        )
    if values.dtype.kind not in "biufUS":
        raise _no_label(values.flat[0], start, estimator)
    if values.dtype.kind == "f":
        _raise_if_continuous(values, start, estimator)
    found = _close_integers(values) if len(values) else None
    return np.unique(values) if found is None else found[0]


def _no_label(value: Any, row: int, estimator: str) -> DataError:
    """Return the error message for an object that cannot be a label."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return DataError(
            f"The target y is {value} at row {row}; {estimator} needs a label in every row: drop rows without one."
        )
    text = " ".join(str(value).split())[:60]
    return DataError(
        f"Unknown label type: the target y contains {text} ({type(value).__name__}) at row {row}; {estimator} needs "
        "text, integers or booleans: convert it, for example with np.asarray(y).astype(str)."
    )


def _raise_if_continuous(values: Array, start: int, estimator: str) -> None:
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise DataError(
            f"The target y is {values[bad[0]]} at row {start + int(bad[0])} (NaN or infinity); "
            f"{estimator} needs a label in every row: drop rows without one."
        )
    fractions = np.flatnonzero(values != np.floor(values))
    if len(fractions):
        row = int(fractions[0])
        raise DataError(
            f"Unknown label type: continuous, since the target y is {values[row]:g} at row {start + row}, which is "
            "not a class label; use "
            "a regressor, or bin the target into classes."
        )


def group_codes(groups: Array) -> NDArray[np.int64]:
    """Return labels of groups in memory as the numbers 0, 1, ..."""
    if groups.dtype.kind != "O":
        _raise_if_group_is_missing(groups != groups, 0)
        return np.unique(groups, return_inverse=True)[1].astype(np.int64)
    labels = groups.tolist()
    kinds = ("NAType", "NaTType")
    _raise_if_group_is_missing(
        np.array([one is None or type(one).__name__ in kinds or bool(one != one) for one in labels]), 0
    )
    if strange := [one for one in labels if not isinstance(one, Hashable)]:
        raise DataError(f"The groups contain {_shown(strange[0])}, which is not a label; pass strings or numbers.")
    number: dict[Any, int] = {}
    return np.array([number.setdefault(label, len(number)) for label in labels], np.int64)


def group_numbers(groups: Array, start: int) -> NDArray[np.int64]:
    """Return labels of groups in files as numbers without a table of labels: the bits of numbers, or of a digest."""
    if groups.dtype.kind in "biuf":
        values = groups.astype(np.float64)
        _raise_if_group_is_missing(np.isnan(values), start)
        return np.asarray((values + 0.0).view(np.int64))
    texts = groups.tolist()
    _raise_if_group_is_missing(np.array([text is None for text in texts]), start)
    number = {text: _digest(text) for text in set(texts)}
    return np.array([number[text] for text in texts], np.int64)


def union_of_labels(a: Array, b: Array) -> Array:
    """Return the union of the classes of two models, sorted."""
    kinds = ["text" if one.dtype.kind in "OUS" else "numbers" for one in (a, b)]
    if kinds[0] != kinds[1]:
        raise DataError(
            f"The labels of one model are {kinds[0]} and those of the other {kinds[1]}; fit both on labels of one kind."
        )
    return merged(a, b)


def _digest(text: Any) -> int:
    return int.from_bytes(hashlib.blake2b(str(text).encode(), digest_size=8).digest(), "big") >> 1


def _raise_if_group_is_missing(missing: Any, start: int) -> None:
    rows = np.flatnonzero(missing)
    if len(rows):
        raise DataError(f"The group of row {start + int(rows[0])} is missing; give every row one, or drop the row.")


def merged(a: Array, b: Array) -> Array:
    """Return the distinct labels of two sets of rows."""
    joined = np.concatenate([a, b])
    if joined.dtype.kind == "O":
        joined = np.array(sorted(set(joined.tolist())), dtype=object)
    else:
        joined = np.unique(joined)
    if len(joined) > _MOST_CLASSES:
        raise DataError(f"The target has more than {_MOST_CLASSES:,} different values, too many for class labels.")
    return joined


def _shown(value: Any) -> str:
    return repr(value.item() if isinstance(value, np.generic) else value)
