"""Statistics of a column for the table encoder, as mergeable sums over rows.

Numbers, and dates as days since 1970: with n values of mean m and sum of squares about it q, two sets of rows merge to

    n = n_a + n_b,   m = m_a + d n_b / n,   q = q_a + q_b + d^2 n_a n_b / n,   d = m_b - m_a                      (1)

A row of weight w counts w times; rows of weight 0 are ignored. Text: the frequency of each value, as long as there are
at most `MOST_TEXTS` of them. All columns: the K smallest distinct hashes of values (Bar-Yossef et al. 2002). If there
are fewer than K, their number is the number of distinct values, else it is about

    (K - 1) / h_K,     h_K the K-th smallest hash as a fraction of the largest possible one                      (2)
"""

from __future__ import annotations

import functools
import hashlib
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.engine.random import mix64
from summula.core.errors import DataError, RowError
from summula.preprocessing.number_texts import LONGEST_CACHED, TextNumbers, text_numbers
from summula.preprocessing.table_encoder_blocks import texts_with_places

__all__ = ["LARGEST", "MOST_TEXTS", "ColumnSums", "as_dates", "days_of"]

Array = NDArray[Any]
Texts = tuple[list[str], Array] | None

MOST_TEXTS = 10_000
LARGEST = 1e140  # the sum of squares of larger numbers may not be finite
_HASHES = 1_024
_DAY = 86_400_000_000  # microseconds
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?)?")


@dataclass(frozen=True)
class ColumnSums:
    """The sums of one column.

    Attributes
    ----------
    kind : {"number", "text", "date"}
    rows, missing : int, or float with weights
    mean, square : float
        Mean and sum of squares of numbers and days, see (1).
    low, high : float
        Minimum and maximum of numbers and days.
    whole : bool
        Whether all numbers are integers, or all dates have no time of day.
    texts : dict of str to int (float with weights), or None
        Frequency of each text; None if there are too many.
    dates : bool
        Whether all texts are dates.
    hashes : ndarray
        The smallest distinct hashes, sorted.
    spelled : TextNumbers
        The numbers that texts spell.
    """

    kind: str
    rows: float
    missing: float
    mean: float = 0.0
    square: float = 0.0
    low: float = np.inf
    high: float = -np.inf
    whole: bool = True
    texts: dict[str, float] | None = field(default_factory=dict)
    dates: bool = True
    hashes: Array = field(default_factory=lambda: np.empty(0, np.uint64))
    spelled: TextNumbers = field(default_factory=TextNumbers)

    @property
    def count(self) -> float:
        """Number of values that are not missing."""
        return self.rows - self.missing

    @property
    def spread(self) -> float:
        """The standard deviation of numbers and days."""
        return float(np.sqrt(self.square / self.count)) if self.count else 0.0

    @property
    def distinct(self) -> int:
        """Number of distinct values: exact if there are few, else estimated by (2)."""
        if self.kind == "text" and self.texts is not None:
            return len(self.texts)
        if len(self.hashes) < _HASHES:
            return len(self.hashes)
        return int(min(self.count, round((_HASHES - 1) / (float(self.hashes[-1]) / 2.0**64))))

    @classmethod
    def of(cls, values: Any, name: str, start: int, weight: Array | None = None, texts: Texts = None) -> ColumnSums:
        """Compute the sums of one block of a column; `start` is its first row, for error messages.

        `texts` are the distinct texts and the index of each row's text, if they are known.
        """
        if isinstance(values, np.ndarray) and values.dtype.kind == "f" and len(values):
            _check_size(values, name, start)
        if weight is not None:
            used = weight > 0
            values, weight = (values[used] if isinstance(values, np.ndarray) else _taken(values, used)), weight[used]
        if not isinstance(values, np.ndarray):
            words, places = texts_with_places(values) if texts is None else texts
            return cls._of_text(words, places, weight, start)
        if values.dtype.kind == "M":
            return cls._of_numbers("date", days_of(values), _no_time(values), weight)
        return cls._of_numbers("number", values, None, weight)

    @classmethod
    def _of_numbers(cls, kind: str, values: Array, whole: bool | None, weight: Array | None) -> ColumnSums:
        present = ~np.isnan(values)
        known, rows, missing = values[present], _count(values, weight), _count(values, weight, ~present)
        if not len(known):
            return cls(kind, rows, missing)
        if whole is None:
            whole = bool((known == np.floor(known)).all())
        hashes = _smallest(mix64((known + 0.0).view(np.uint64)))
        moments = _moments(known, None if weight is None else weight[present])
        return cls(kind, rows, missing, *moments, whole=whole, hashes=hashes)

    @classmethod
    def _of_text(cls, words: list[str], places: Array, weight: Array | None, start: int) -> ColumnSums:
        present = places >= 0
        counts = np.bincount(places[present], None if weight is None else weight[present], len(words))
        rows, missing = _count(places, weight), _count(places, weight, ~present)
        texts = dict(zip(words, counts.tolist(), strict=True)) if len(words) <= MOST_TEXTS else None
        hashes = np.array(sorted({_hash_of(word) for word in words})[:_HASHES], np.uint64)
        parsed = as_dates(words)
        if parsed is None or not len(words):
            spelled = text_numbers(words, places, weight, start)
            return cls("text", rows, missing, texts=texts, dates=not words, hashes=hashes, spelled=spelled)
        # Computed row by row, so that the result is bit-identical to that of a column of dates.
        moments = _moments(days_of(parsed)[places[present]], None if weight is None else weight[present])
        return cls("text", rows, missing, *moments, _no_time(parsed), texts, True, hashes)

    @classmethod
    def of_wide_numbers(cls, values: Array) -> list[ColumnSums | None]:
        """Compute the sums of many columns of few numbers at once, bit-identical to those of `of`.

        Parameters
        ----------
        values : ndarray of shape (n_columns, n_rows), in C order

        Returns
        -------
        list of ColumnSums or None
            None for columns with missing values, and for those that `of` rejects.
        """
        n_rows = values.shape[1]
        ordered = np.sort(mix64((values + 0.0).view(np.uint64)), axis=1)
        distinct = (ordered[:, 1:] != ordered[:, :-1]).all(axis=1).tolist()
        plain = np.all(np.abs(values) <= LARGEST, axis=1).tolist()
        whole = (values == np.floor(values)).all(axis=1).tolist()
        means = np.add.reduce(values, axis=1) / n_rows
        squares = np.add.reduce((values - means[:, np.newaxis]) ** 2, axis=1).tolist()
        low, high = np.minimum.reduce(values, axis=1).tolist(), np.maximum.reduce(values, axis=1).tolist()
        moments = zip(means.tolist(), squares, low, high, whole, strict=True)
        hashes = (own[:_HASHES] if one else _smallest(own) for one, own in zip(distinct, ordered, strict=True))
        return [
            cls("number", n_rows, 0, *some, hashes=own) if is_plain else None
            for is_plain, some, own in zip(plain, moments, hashes, strict=True)
        ]

    def merge(self, other: ColumnSums) -> ColumnSums:
        """Return the sums of the union of two sets of rows."""
        kind = self.kind if self.count else other.kind  # a column with only missing values has no kind
        if other.count and other.kind != kind:  # files whose later rows have another kind raise an error when read
            raise DataError(f"A column contains both {self.kind}s and {other.kind}s; convert it to one kind.")
        texts = None if self.texts is None or other.texts is None else _added(self.texts, other.texts)
        a, b = self.count, other.count
        dates = (self.dates or not a) and (other.dates or not b)
        share, apart = (b / (a + b) if b else 0.0), other.mean - self.mean if a and b else 0.0
        return ColumnSums(
            kind,
            self.rows + other.rows,
            self.missing + other.missing,
            (self.mean if a else other.mean) + apart * share,
            self.square + other.square + apart**2 * a * share,
            min(self.low, other.low),
            max(self.high, other.high),
            self.whole and other.whole,
            texts,
            dates,
            _smallest(np.concatenate([self.hashes, other.hashes])),
            self.spelled.merge(other.spelled),
        )


def _check_size(values: Array, name: str, start: int) -> None:
    """Raise for infinite values, and for those whose squares would be infinite."""
    if max(np.fmax.reduce(values), -np.fmin.reduce(values)) <= LARGEST or np.isnan(values).all():
        return
    row = int(np.flatnonzero(np.abs(values) > LARGEST)[0])
    if np.isinf(values[row]):
        raise RowError(f"Column {name!r} is infinite", start + row, "; pass a finite number or a missing value.")
    raise RowError(
        f"Column {name!r} contains {values[row]:g}",
        start + row,
        ", which is too large; scale the column, or drop it.",
    )


def _count(values: Array, weight: Array | None, which: Array | None = None) -> float:
    """Return the (weighted) number of rows, or of those selected by `which`."""
    if weight is None:
        return len(values) if which is None else int(which.sum())
    return float(weight.sum() if which is None else weight[which].sum())


def _taken(values: Any, used: Array) -> Any:
    import pyarrow as pa

    return values.filter(pa.array(used))


def _moments(values: Array, weight: Array | None) -> tuple[float, float, float, float]:
    """Return mean, sum of squares about it, minimum and maximum."""
    add, least, most = np.add.reduce, np.minimum.reduce, np.maximum.reduce  # (the methods take twice as long for few)
    if weight is None:
        mean = float(add(values) / len(values))
        square = float(add((values - mean) ** 2))
    else:
        mean = float(add(weight * values) / add(weight))
        square = float(add(weight * (values - mean) ** 2))
    return mean, square, float(least(values)), float(most(values))


def _added(a: dict[str, float], b: dict[str, float]) -> dict[str, float] | None:
    total = dict(a)
    for word, count in b.items():
        total[word] = total.get(word, 0) + count
    return total if len(total) <= MOST_TEXTS else None


def as_dates(words: list[str]) -> Array | None:
    """Return texts as timestamps if all are dates in ISO 8601 format, with or without a time, else None."""
    if not all(_ISO.fullmatch(word) for word in words):
        return None
    try:
        return np.array(words, "datetime64[us]")
    except ValueError:  # such as 31 February
        return None


def days_of(moments: Array) -> Array:
    """Return days since 1970 as floats; NaN if missing."""
    days = moments.astype(np.int64) / _DAY
    return np.where(np.isnat(moments), np.nan, days)


def _no_time(moments: Array) -> bool:
    present = moments[~np.isnat(moments)].astype(np.int64)
    return bool((present % _DAY == 0).all())


def _hash_of(word: str) -> int:
    return _cached_hash(word) if len(word) <= LONGEST_CACHED else _compute_hash(word)


def _compute_hash(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little")


_cached_hash = functools.lru_cache(maxsize=4_096)(_compute_hash)


def _smallest(hashes: Array) -> Array:
    ordered = np.sort(hashes)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])][:_HASHES] if len(ordered) else ordered
