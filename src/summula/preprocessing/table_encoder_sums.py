"""What a table encoder learns of a column, as sums over rows that can be added up.

Numbers, and dates as days since 1970: with n values of mean m and sum of squares about it q, two sets of rows add to

    n = n_a + n_b,   m = m_a + d n_b / n,   q = q_a + q_b + d^2 n_a n_b / n,   d = m_b - m_a                      (1)

A row of weight w counts w times, and one of weight 0 is not there. Text: how often each value occurs, as long as there
are at most `MOST_TEXTS` of them. All columns: the K smallest different hashes of values (Bar-Yossef et al. 2002). With
fewer than K there are so many different values, else about

    (K - 1) / h_K,     h_K the K-th smallest hash as a fraction of the largest there can be                      (2)
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.engine.random import mix64
from summula.core.errors import DataError, RowError
from summula.preprocessing.table_encoder_blocks import texts_with_places

__all__ = ["MOST_TEXTS", "ColumnSums", "as_dates", "days_of"]

Array = NDArray[Any]

MOST_TEXTS = 10_000
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
        Of numbers and days, see (1).
    low, high : float
        The extremes of numbers and days.
    whole : bool
        Whether every number is a whole one, or every date midnight.
    texts : dict of str to int (float with weights), or None
        How often each text occurs; None when there are too many.
    dates : bool
        Whether every text spells a date.
    hashes : ndarray
        The smallest different hashes, sorted.
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

    @property
    def count(self) -> float:
        """How many values are there."""
        return self.rows - self.missing

    @property
    def spread(self) -> float:
        """The standard deviation of numbers and days."""
        return float(np.sqrt(self.square / self.count)) if self.count else 0.0

    @property
    def distinct(self) -> int:
        """How many different values there are: exact for a few, else (2)."""
        if self.kind == "text" and self.texts is not None:
            return len(self.texts)
        if len(self.hashes) < _HASHES:
            return len(self.hashes)
        return int(min(self.count, round((_HASHES - 1) / (float(self.hashes[-1]) / 2.0**64))))

    @classmethod
    def of(cls, values: Any, name: str, start: int, weight: Array | None = None) -> ColumnSums:
        """The sums of one block of a column; `start` is its first row, for errors."""
        if isinstance(values, np.ndarray) and values.dtype.kind != "M" and np.isinf(values).any():
            row = start + int(np.flatnonzero(np.isinf(values))[0])
            raise RowError(
                f"Column {name!r} holds infinity",
                row,
                "; give a finite number, or leave the value out so that it counts as missing.",
            )
        if weight is not None:
            there = weight > 0
            values, weight = (values[there] if isinstance(values, np.ndarray) else _taken(values, there)), weight[there]
        if not isinstance(values, np.ndarray):
            return cls._of_text(values, weight)
        if values.dtype.kind == "M":
            return cls._of_numbers("date", days_of(values), _no_time(values), weight)
        return cls._of_numbers("number", values, None, weight)

    @classmethod
    def _of_numbers(cls, kind: str, values: Array, whole: bool | None, weight: Array | None) -> ColumnSums:
        there = ~np.isnan(values)
        seen, rows, missing = values[there], _count(values, weight), _count(values, weight, ~there)
        if not len(seen):
            return cls(kind, rows, missing)
        if whole is None:
            whole = bool((seen == np.floor(seen)).all())
        hashes = _smallest(mix64((seen + 0.0).view(np.uint64)))
        moments = _moments(seen, None if weight is None else weight[there])
        return cls(kind, rows, missing, *moments, whole=whole, hashes=hashes)

    @classmethod
    def _of_text(cls, values: Any, weight: Array | None) -> ColumnSums:
        words, places = texts_with_places(values)
        there = places >= 0
        counts = np.bincount(places[there], None if weight is None else weight[there], len(words))
        rows, missing = _count(places, weight), _count(places, weight, ~there)
        texts = dict(zip(words, counts.tolist(), strict=True)) if len(words) <= MOST_TEXTS else None
        hashes = _smallest(np.array([_hash_of(word) for word in words], np.uint64))
        parsed = as_dates(words)
        if parsed is None or not len(words):
            return cls("text", rows, missing, texts=texts, dates=not words, hashes=hashes)
        # Row by row, so that the bits are those of a column of dates.
        moments = _moments(days_of(parsed)[places[there]], None if weight is None else weight[there])
        return cls("text", rows, missing, *moments, _no_time(parsed), texts, True, hashes)

    def merge(self, other: ColumnSums) -> ColumnSums:
        """The sums of both sets of rows."""
        kind = self.kind if self.count else other.kind  # nothing at all may be of any kind
        if other.count and other.kind != kind:  # a file whose later rows are of another kind is refused when it is read
            raise DataError(f"A column holds {self.kind}s and {other.kind}s; make it one kind.")
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
        )


def _count(values: Array, weight: Array | None, which: Array | None = None) -> float:
    """How many rows there are, or how many of some."""
    if weight is None:
        return len(values) if which is None else int(which.sum())
    return float(weight.sum() if which is None else weight[which].sum())


def _taken(values: Any, there: Array) -> Any:
    import pyarrow as pa

    return values.filter(pa.array(there))


def _moments(values: Array, weight: Array | None) -> tuple[float, float, float, float]:
    """Mean, sum of squares about it, and extremes."""
    with np.errstate(over="ignore", invalid="ignore"):
        if weight is None:
            mean = float(values.mean())
            square = float(((values - mean) ** 2).sum())
        else:
            mean = float((weight * values).sum() / weight.sum())
            square = float((weight * (values - mean) ** 2).sum())
        return mean, square, float(values.min()), float(values.max())


def _added(a: dict[str, float], b: dict[str, float]) -> dict[str, float] | None:
    total = dict(a)
    for word, count in b.items():
        total[word] = total.get(word, 0) + count
    return total if len(total) <= MOST_TEXTS else None


def as_dates(words: list[str]) -> Array | None:
    """Texts as moments in time where every one is a date, with or without a time, in the form of ISO 8601."""
    if not all(_ISO.fullmatch(word) for word in words):
        return None
    try:
        return np.array(words, "datetime64[us]")
    except ValueError:  # the 31st of February
        return None


def days_of(moments: Array) -> Array:
    """Days since 1970, as numbers; NaN for what is missing."""
    days = moments.astype(np.int64) / _DAY
    return np.where(np.isnat(moments), np.nan, days)


def _no_time(moments: Array) -> bool:
    there = moments[~np.isnat(moments)].astype(np.int64)
    return bool((there % _DAY == 0).all())


def _hash_of(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little")


def _smallest(hashes: Array) -> Array:
    return np.unique(hashes)[:_HASHES]
