"""The target of a table: its values, and whether they are classes or numbers."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.data.frames import no_such_column
from summula.core.data.readers.table import spells_number
from summula.core.errors import DataError, RowError
from summula.preprocessing.number_texts import parsed_numbers, text_numbers
from summula.preprocessing.table_encoder_sums import LARGEST, as_dates

__all__ = [
    "SpelledTarget",
    "Task",
    "as_labels",
    "check_target",
    "constant_prediction",
    "inferred_task",
    "read_target",
    "spelled_target",
    "target_values",
]

Array = NDArray[Any]

_MOST_DIFFERENT = 0.5  # fraction of the rows; more classes cannot be learned
_SEPARATED = re.compile(r"\s*[^\d\s]{0,3}\s*-?\d{1,3}([,.' ]\d{3})+([,.]\d+)?\s*[^\d\s]{0,3}\s*")
_MOST_CODES = 10  # integers from 0 or 1 up to this are treated as classes


class Task(NamedTuple):
    """Classification or regression, and how it was detected."""

    kind: str  # "classes" or "numbers"
    counts: bool
    reason: str


def check_target(columns: list[str], target: str) -> None:
    """Raise if the target is not a column, naming the most similar one, or is the only column."""
    if target not in columns:
        raise DataError(no_such_column(target, columns))
    if len(columns) < 2:
        raise DataError(f"The table has no column but the target {target!r}; give some to predict it from.")


def target_values(column: Any) -> tuple[Array, Array]:
    """Return the target as an array of numbers or text, and a mask of the rows that have one."""
    if hasattr(column, "combine_chunks"):
        column = column.combine_chunks()
    there = ~np.asarray(column.is_null().to_numpy(zero_copy_only=False), bool)
    if str(column.type).endswith("string"):
        coded = column.dictionary_encode()  # equal strings become one object
        texts = coded.dictionary.to_pylist()
        words = np.array([*(word if word.strip() else None for word in texts), None], object)
        values = words[coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)]
        return values, np.array([value is not None for value in values], bool)  # (spaces alone are a missing value)
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind == "M":
        raise DataError("The target contains dates; turn it into a number of days first.")
    return values, there


class SpelledTarget(NamedTuple):
    """A text target that represents numbers: their values, a mask, an example, and the first value that is not one."""

    values: NDArray[np.float64]
    known: NDArray[np.bool_]
    example: str
    n_odd: int
    odd: str

    def remark(self, target: str) -> str:
        """Remark for the user."""
        description = f"The target {target!r} is text such as {self.example!r}, read as numbers"
        if not self.n_odd:
            return f"{description}."
        if self.n_odd == 1:
            return f"{description}; 1 other value, {self.odd!r}, is treated as missing."
        return f"{description}; {self.n_odd:,} other values, {self.odd!r} first, are treated as missing."


def distinct_texts(values: Array) -> tuple[list[str], NDArray[np.intp]]:
    """Return the distinct strings of an object array, sorted, and the index of each value among them.

    (A fixed-width array would need memory for the longest string in every row.)
    """
    codes_by_word: dict[str, int] = {}
    codes = np.array([codes_by_word.setdefault(str(value), len(codes_by_word)) for value in values.tolist()], np.intp)
    words = sorted(codes_by_word)
    rank = np.empty(len(words), np.intp)
    rank[[codes_by_word[word] for word in words]] = np.arange(len(words))
    return words, rank[codes]


def spelled_target(values: Array, known: Array, wanted: str | None) -> SpelledTarget | None:
    """Convert a text target such as "$3,800.00" or "9 %" to numbers, like features; return None for others.

    Text with few distinct values is treated as classes, unless `wanted` is "numbers".
    """
    if values.dtype.kind != "O" or wanted == "classes" or not known.any():
        return None
    words, places = distinct_texts(values[known])
    if wanted is None and len(words) <= _MOST_CODES:
        return None
    chosen = text_numbers(words, places, None, 0).chosen()
    if chosen is None:
        return None
    numbers = np.full(len(values), np.nan)
    numbers[known] = parsed_numbers(words, chosen.form)[places]
    there = np.isfinite(numbers)
    n_odd = int(known.sum() - there.sum())
    odd = str(values[int(np.flatnonzero(known & ~there)[0])]) if n_odd else ""
    return SpelledTarget(numbers, there, str(values[int(np.flatnonzero(there)[0])]), n_odd, odd)


def read_target(column: Any, wanted: str | None, target: str) -> tuple[Array, Array, str]:
    """Return the target as an array of numbers or text, a mask of the rows that have one, and a remark if needed."""
    values, known = target_values(column)
    spelled = spelled_target(values, known, wanted)
    if spelled is None:
        return values, known, _variants_remark(values[known], target)
    return spelled.values, spelled.known, spelled.remark(target)


def _variants_remark(values: Array, target: str) -> str:
    """Return a remark on classes that differ only in case or spaces; empty if there are none."""
    if values.dtype.kind != "O":
        return ""
    spellings: dict[str, str] = {}
    for word in distinct_texts(values)[0]:
        other = spellings.setdefault(" ".join(word.casefold().split()), word)
        if other != word:
            return (
                f"{target!r} has the classes {other!r} and {word!r}, which differ only in case or spaces and are taken "
                "as different: spell them alike if they mean the same."
            )
    return ""


def as_labels(values: Array) -> Array:
    """Return class labels: text, or integers."""
    if values.dtype.kind == "f" and (values == np.floor(values)).all() and np.abs(values).max(initial=0) < 2**53:
        return values.astype(np.int64)
    return values


def inferred_task(values: Array, wanted: str | None, target: str) -> Task:
    """Detect whether a target consists of classes or numbers; `values` are those that are not missing."""
    if not len(values):
        raise DataError(f"Every value of the target {target!r} is missing; there is nothing to learn from.")
    texts = values.dtype.kind == "O"
    different = np.array(distinct_texts(values)[0], object) if texts else np.unique(values)
    if len(different) == 1:
        only = different.tolist()[0]
        raise DataError(f"The target {target!r} is {only!r} in every row; there is nothing to predict: choose another.")
    if texts:
        _check_text(values, different, wanted, target)
        return Task("classes", False, f"{len(different)} classes of text")
    if values.dtype.kind == "b" and wanted != "numbers":
        return Task("classes", False, "true and false")
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        raise RowError(f"The target {target!r} is infinite", row, "; give a number, or nothing to leave the row out.")
    if np.abs(different[[0, -1]].astype(np.float64)).max() > LARGEST:
        row = int(np.argmax(np.abs(values)))
        raise RowError(f"The target {target!r} contains {values[row]:g}", row, ", too large a number; scale it.")
    whole = bool((different == np.floor(different)).all())
    counts = whole and bool(different[0] in (0, 1))  # counts may be 0
    if wanted is not None:
        if wanted == "classes" and not whole:
            raise DataError(f"The target {target!r} contains fractions such as {different[0]:g}; use --task numbers.")
        return Task(wanted, counts and wanted == "numbers", "as --task says")
    codes = whole and len(different) <= _MOST_CODES and different[0] in (0, 1)
    if len(different) == 2 or (codes and different[-1] - different[0] == len(different) - 1):
        return Task("classes", False, f"{len(different)} different whole numbers; --task numbers takes them as numbers")
    return Task("numbers", counts, "counts" if counts else f"{len(different):,} different values")


def _check_text(values: Array, different: Array, wanted: str | None, target: str) -> None:
    """Raise an error for text with too many distinct values for classes, or that should be numeric."""
    many = len(different) > max(_MOST_DIFFERENT * len(values), _MOST_CODES)
    if not many and wanted != "numbers":
        return
    others = {word for word in different.tolist() if not spells_number(word)}
    if not many and len(others) == len(different):
        raise DataError(
            f"The target {target!r} contains text such as {different[0]!r}, and no numbers: omit the task to predict "
            "its classes, or choose another target."
        )
    if others and (wanted == "numbers" or 2 * len(others) < len(different)):
        row = next(row for row, value in enumerate(values) if value in others)
        raise RowError(
            f"The target {target!r} contains {values[row]!r}",
            row,
            ", which is not a number; write it as a number such as 1000.5, or leave it empty.",
        )
    if not others:
        raise DataError(f"The target {target!r} contains numbers as text, which cannot be read as numbers: convert it.")
    if as_dates(different.tolist()) is not None:
        raise DataError(
            f"The target {target!r} contains dates such as {str(values[0])!r}; turn it into a number of days first."
        )
    spelled = _SEPARATED.fullmatch(str(values[0])) is not None
    cure = "write numbers without thousands separators" if spelled else "choose another column"
    raise DataError(
        f"The target {target!r} contains {len(different):,} different texts in {len(values):,} rows, such as "
        f"{str(values[0])!r}, too many for classification; {cure}."
    )


def constant_prediction(y: Array, kind: str, classes: Array | None = None, costs: Array | None = None) -> Any:
    """Return the best constant prediction: the mean, the most frequent class, or with costs the cheapest class.

    Parameters
    ----------
    y : ndarray
        The target of the training rows.
    kind : {"classes", "numbers"}
    classes, costs : ndarray, optional
        The sorted classes of y, and costs[predicted class, true class].
    """
    if kind == "numbers":
        return y.mean()
    values, counts = np.unique(y, return_counts=True)
    if costs is None or classes is None:
        return values[counts.argmax()]
    return classes[(costs @ counts).argmin()]
