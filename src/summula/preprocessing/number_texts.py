"""Parsing of numbers in text: "3,750", "$3800.00", "9 %", "1.234,56".

    sign, currency sign, digits (in groups of three with a separator, or not), decimal mark and digits, exponent, unit

A unit is a currency sign, before or after the digits, or a percent sign. With a decimal point the group separator is a
comma, with a decimal comma a point; spaces and apostrophes are group separators with either. A single text may be
ambiguous ("3,750"); the format in which more texts of the column can be parsed is used. Texts with and without a
currency sign are compatible; "9" and "9 %" are not. A column with codes such as "01000" is text.

The statistics of a column are sums over rows, so the format is determined in one pass, and stored with the model.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "LONGEST_CACHED",
    "Chosen",
    "NumberFormat",
    "SpelledNumbers",
    "TextNumbers",
    "parsed_numbers",
    "text_numbers",
]

Array = NDArray[Any]

LONGEST_CACHED = 64  # maximum length of texts whose parsed value is cached
_FEW = 0.05  # maximum fraction of values that are not numbers
_ENOUGH = 10  # minimum number of numbers for a numeric column
_LOOKED_AT, _HOPELESS = (
    200,
    0.1,
)  # distinct texts per block, and the fraction of numbers below which the rest is skipped
_CURRENCY = "[$\u00a2-\u00a5\u20a0-\u20cf]"
_SPACES = "' \u00a0\u2009\u202f"


def _pattern(group: str, mark: str) -> re.Pattern[str]:
    digits = rf"(?:\d{{1,3}}(?:[{group}{_SPACES}]\d{{3}})+|\d+)"
    number = rf"(?:{digits}(?:{mark}\d*)?|{mark}\d+)(?:[eE][-+]?\d+)?"
    return re.compile(
        rf"\s*(?P<sign>[-+\u2212]?)\s*(?P<before>{_CURRENCY}?)\s*(?P<inner>[-+\u2212]?)(?P<number>{number})"
        rf"\s*(?P<after>%|{_CURRENCY})?\s*",
        re.ASCII,
    )


_PATTERNS = {".": _pattern(",", r"\."), ",": _pattern(r"\.", ",")}
_PADDED = re.compile(r"\s*[-+]?0\d+(\.\d*)?\s*", re.ASCII)


class NumberFormat(NamedTuple):
    """Format of the numbers of a column: its decimal mark and unit ("" for none)."""

    decimal: str
    unit: str


@dataclass(frozen=True)
class SpelledNumbers:
    """Statistics of the numbers in some texts; `first` is the first row and its text."""

    count: float
    mean: float
    square: float
    low: float
    high: float
    whole: bool
    first: tuple[int, str]

    def merge(self, other: SpelledNumbers) -> SpelledNumbers:
        """Return the statistics of both."""
        count = self.count + other.count
        share, apart = other.count / count, other.mean - self.mean
        return SpelledNumbers(
            count,
            self.mean + apart * share,
            self.square + other.square + apart**2 * self.count * share,
            min(self.low, other.low),
            max(self.high, other.high),
            self.whole and other.whole,
            min(self.first, other.first),
        )

    @property
    def spread(self) -> float:
        """Return the standard deviation."""
        return float(np.sqrt(self.square / self.count))


class Chosen(NamedTuple):
    """A text column parsed as numbers: format, statistics, number of other texts, and the first of them."""

    form: NumberFormat
    numbers: SpelledNumbers
    others: float
    odd: str


class TextNumbers(NamedTuple):
    """Numbers spelled by the texts of a column, by format: the number of other texts and the first by decimal mark."""

    numbers: Mapping[NumberFormat, SpelledNumbers] = {}
    others: Mapping[str, tuple[float, tuple[int, str]]] = {}
    padded: bool = False

    def merge(self, other: TextNumbers) -> TextNumbers:
        """Return the statistics of the union of two sets of rows."""
        numbers = dict(self.numbers)
        for form, found in other.numbers.items():
            numbers[form] = numbers[form].merge(found) if form in numbers else found
        others = dict(self.others)
        for mark, (count, first) in other.others.items():
            before, earlier = others.get(mark, (0, first))
            others[mark] = before + count, min(earlier, first)
        return TextNumbers(numbers, others, self.padded or other.padded)

    def chosen(self) -> Chosen | None:
        """Return the format in which the column is parsed as numbers.

        None if more than a few texts are not numbers, or the column has codes with leading zeros.
        """
        if self.padded or not self.numbers:
            return None
        decimal = max(
            ".,", key=lambda mark: sum(one.count for form, one in self.numbers.items() if form.decimal == mark)
        )
        here = {form: one for form, one in self.numbers.items() if form.decimal == decimal}
        best = max(here, key=lambda form: here[form].count)
        agreeing = [best]
        if best.unit != "%":
            signs = [form for form in here if form.unit not in ("", "%")]
            sign = max(signs, key=lambda form: here[form].count, default=best)
            agreeing, best = [form for form in here if form.unit in ("", sign.unit)], sign
        found = here[agreeing[0]]
        for form in agreeing[1:]:
            found = found.merge(here[form])
        odd = [(one.count, one.first) for form, one in here.items() if form not in agreeing]
        odd += [self.others[decimal]] if decimal in self.others else []
        count = sum(one for one, _ in odd)
        if found.count < _ENOUGH or count > max(1, _FEW * (found.count + count)):
            return None
        return Chosen(best, found, count, min((first for _, first in odd), default=(0, ""))[1])


def text_numbers(words: Sequence[str], places: NDArray[np.intp], weight: Array | None, start: int) -> TextNumbers:
    """Return the numbers spelled by the texts of a block; `places` are positions of rows in `words`, -1 if missing."""
    there = np.flatnonzero(places >= 0)
    if not len(there):
        return TextNumbers()
    codes = places[there]
    few = words[:_LOOKED_AT]
    hopeless = sum(_value(word, ".") is not None or _value(word, ",") is not None for word in few) < _HOPELESS * len(
        few
    )
    if hopeless:
        first = (start + int(there[0]), words[codes[0]])
        total = float(len(there)) if weight is None else float(weight[there].sum())
        return TextNumbers({}, dict.fromkeys(".,", (total, first)))
    counts = np.ones(len(there)) if weight is None else weight[there]
    numbers, others = {}, {}
    for mark in ".,":
        read = [_value(word, mark) for word in words]
        units = np.array(["odd" if one is None else one[1] for one in read], object)
        values = np.array([np.nan if one is None else one[0] for one in read])
        for unit in sorted(set(units.tolist())):
            rows = np.flatnonzero((units == unit)[codes])
            first = (start + int(there[rows[0]]), words[codes[rows[0]]])
            if unit == "odd":
                others[mark] = (float(counts[rows].sum()), first)
            else:
                numbers[NumberFormat(mark, unit)] = _summed(values[codes[rows]], counts[rows], first)
    return TextNumbers(numbers, others, any(_PADDED.fullmatch(word) for word in words))


def _summed(x: Array, w: Array, first: tuple[int, str]) -> SpelledNumbers:
    mean = float((w * x).sum() / w.sum())
    square = float((w * (x - mean) ** 2).sum())
    whole = bool((x == np.floor(x)).all())
    return SpelledNumbers(float(w.sum()), mean, square, float(x.min()), float(x.max()), whole, first)


def _value(word: str, decimal: str) -> tuple[float, str] | None:
    """Return the number in a text, and its unit; None for other texts."""
    return _cached_value(word, decimal) if len(word) <= LONGEST_CACHED else _read_value(word, decimal)


def _read_value(word: str, decimal: str) -> tuple[float, str] | None:
    found = _PATTERNS[decimal].fullmatch(word)
    if found is None:
        return None
    sign, before, inner, number, after = found.group("sign", "before", "inner", "number", "after")
    if (sign and inner) or (before and after):
        return None
    plain = re.sub(rf"[{_SPACES}{',' if decimal == '.' else '.'}]", "", number).replace(",", ".")
    value = float(plain)
    negative = (sign or inner) in ("-", "\u2212")
    return (-value if negative else value, before or after or "") if np.isfinite(value) else None


_cached_value = functools.lru_cache(maxsize=4_096)(_read_value)  # the columns of a wide table often share their texts


def parsed_numbers(words: Sequence[str], form: NumberFormat) -> NDArray[np.float64]:
    """Return the numbers in texts of a format; NaN for other texts, and other units."""
    units = {form.unit} if form.unit == "%" else {"", form.unit}
    found = [_value(word, form.decimal) for word in words]
    return np.array([one[0] if one is not None and one[1] in units else np.nan for one in found], np.float64)
