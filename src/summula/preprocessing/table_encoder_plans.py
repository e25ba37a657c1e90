"""Encoding plans: the encoding of each column of a table, determined from its sums.

A number x is encoded as x, or (x - mean) / sd. A category with levels l_0, l_1, ... (the most frequent first) is
encoded by the indicators [x = l_1], [x = l_2], ...; l_0 is the reference. Rare levels are grouped as "other". A date is
encoded by the days since 1970, month, weekday and, if there are times, hour. If the training rows had missing values,
these are replaced by the mean (all zeros for categories) and marked in a column [missing].
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.readers.table import spells_number
from summula.core.errors import RowError
from summula.core.model_files import schema
from summula.preprocessing.number_texts import NumberFormat, parsed_numbers
from summula.preprocessing.table_encoder_blocks import texts_with_places, wide_texts
from summula.preprocessing.table_encoder_sums import ColumnSums, as_dates, days_of

__all__ = ["ColumnPlan", "plan_column"]

Array = NDArray[Any]

_ENOUGH = 20  # minimum number of rows for detecting identifiers
_ALL_DIFFERENT = 0.9  # fraction of distinct values of an identifier; estimated by hashes, to about 3 %
_IDENTIFIER = "nearly every text is distinct: an identifier"
_DENSE = 3.0  # maximum ratio of range to count of row numbers, of which some may be held out
_ID_NAME = re.compile(r"(^|[^a-z])(id|uuid|guid|key|index|row|rowid|rownames|nr|no|num|number|nummer)$", re.IGNORECASE)
_SAMPLE = "datetime64[us]"
_MOST_DAYS = 106_000_000  # since 1970, representable as 64-bit microseconds
# Means and standard deviations of the parts of uniformly distributed dates.
_PARTS = {"month": (6.5, 3.45), "weekday": (3.0, 2.0), "hour": (11.5, 6.92)}


def _mean_is_a_date(plan: ColumnPlan, sizes: schema.Sizes) -> str | None:
    if plan.kind == "date" and abs(plan.mean) > _MOST_DAYS:
        return f"mean is {plan.mean:g} days, outside the range of dates"
    return None


@schema.saved(
    _mean_is_a_date,
    name=schema.Text(),
    kind=schema.Text("number", "boolean", "category", "date", "dropped"),
    why=schema.Text(),
    mean=schema.Real(),
    scale=schema.Real(),
    levels=schema.Items(schema.Text()),
    other=schema.Flag(),
    missing=schema.Flag(),
    timed=schema.Flag(),
    low=schema.Real() | None,
    high=schema.Real() | None,
    decimal=schema.Text("", ".", ","),
    unit=schema.Text(),
)
@dataclass(frozen=True)
class ColumnPlan:
    """Encoding of one column.

    Attributes
    ----------
    name : str
    kind : {"number", "boolean", "category", "date", "dropped"}
    why : str
        Reason for dropping the column; empty otherwise.
    mean, scale : float
        Mean of numbers (days, for dates), which replaces missing values, and standard deviation.
    levels : tuple of str
        Levels of a category, the most frequent first.
    other, missing, timed : bool
        Whether there are rare levels, missing values, times of day.
    low, high : float or None
        The range of numbers (days, for dates) in training.
    decimal, unit : str
        Number format of text columns, see `number_texts`; the decimal mark is empty for other columns.
    """

    name: str
    kind: str
    why: str = ""
    mean: float = 0.0
    scale: float = 1.0
    levels: tuple[str, ...] = ()
    other: bool = False
    missing: bool = False
    timed: bool = False
    low: float | None = None
    high: float | None = None
    decimal: str = ""
    unit: str = ""

    def names(self, codes: bool) -> list[str]:
        """Return the names of the encoded columns."""
        if self.kind == "dropped":
            return []
        if self.kind == "category":
            if codes:
                return [self.name]
            parts = [*self.levels[1:], *(["other"] if self.other else [])]
        elif self.kind == "date":
            parts = ["day", "month", "weekday", *(["hour"] if self.timed else [])]
        else:
            parts = []
        own = [f"{self.name}[{part}]" for part in parts] if parts or self.kind == "category" else [self.name]
        return [*own, *([f"{self.name}[missing]"] if self.missing and not codes else [])]

    def width(self, codes: bool) -> int:
        """Return the number of encoded columns, that of `names`."""
        if self.kind == "dropped":
            return 0
        marked = 1 if self.missing and not codes else 0
        if self.kind == "category":
            return 1 if codes else max(len(self.levels) - 1, 0) + self.other + marked
        return (3 + self.timed if self.kind == "date" else 1) + marked

    def encode(self, values: Any, start: int, options: dict[str, Any], out: Array) -> None:
        """Write the encoded columns of one block into `out`; `start` is the first row, for error messages."""
        codes = options["categories"] == "codes"
        if self.kind == "category":
            self._encode_category(values, start, codes, options["unknown"], out)
        elif self.kind == "date":
            _write(self._encode_date(values, start, codes, options["standardize"]), out)
        else:
            _write(self._encode_number(values, start, codes, options["standardize"]), out)

    def _encode_number(self, values: Any, start: int, codes: bool, standardize: bool) -> list[Array]:
        values = self._numbers(values, start)
        if np.isinf(values).any():
            row = start + int(np.flatnonzero(np.isinf(values))[0])
            raise RowError(f"Column {self.name!r} is infinite", row, "; pass a finite number or a missing value.")
        if codes:
            return [values]
        missing = np.isnan(values)
        filled = np.where(missing, self.mean, values)
        if standardize and self.kind == "number":
            filled = (filled - self.mean) / self.scale
        return [filled, *([missing.astype(np.float64)] if self.missing else [])]

    def _numbers(self, values: Any, start: int) -> Array:
        """Return the column as float64; text is parsed if it was in training."""
        if isinstance(values, np.ndarray) and values.dtype.kind != "M":
            return values
        if isinstance(values, np.ndarray) or not self.decimal:
            raise self._of_another_kind("numbers", values, start)
        words, places = texts_with_places(values)
        return np.append(parsed_numbers(words, NumberFormat(self.decimal, self.unit)), np.nan)[places]

    def numbers_in(self, values: Any) -> Array | None:
        """Return numbers, or days of dates, of a valid column; None for categories and other kinds."""
        text = not isinstance(values, np.ndarray)
        if self.kind == "category" or (text and self.kind != "date" and not self.decimal):
            return None
        if self.kind == "date":
            return None if text or values.dtype.kind != "M" else days_of(values)
        return None if not text and values.dtype.kind == "M" else self._numbers(values, 0)

    def shown_value(self, value: float) -> str:
        """Return a number, or a day, formatted for a message."""
        return str(np.datetime64(int(value // 1), "D")) if self.kind == "date" else f"{value:g}"

    def shown_range(self) -> tuple[str, str]:
        """Return the training range, formatted for a message."""
        return self.shown_value(self.low or 0.0), self.shown_value(self.high or 0.0)

    def _encode_category(self, values: Any, start: int, codes: bool, unknown: str, out: Array) -> None:
        if isinstance(values, np.ndarray):
            if values.dtype.kind == "M" or not np.isnan(values).all():
                raise self._of_another_kind("text", values, start)
            # All values are missing, in a column of any type.
            words: list[str] = []
            places = np.full(len(values), -1)
        else:
            words, places = texts_with_places(values)
        found = np.array(self.codes_of(words), np.intp)[places]
        if unknown == "error" and (found == -2).any():
            row = int(np.flatnonzero(found == -2)[0])
            raise RowError(
                f"Column {self.name!r} is {words[places[row]]!r}",
                start + row,
                f", which is not among its {len(self.levels)} levels in the training data; drop such rows, or set "
                "unknown='ignore'.",
            )
        if codes:
            out[:, 0] = np.where(found < 0, np.nan, found)
            return
        out[...] = 0.0
        marked = np.flatnonzero(found > 0)
        out[marked, found[marked] - 1] = 1.0
        if self.missing:
            out[:, -1] = found == -1

    def codes_of(self, words: list[str]) -> list[int]:
        """Return the codes of texts (-2 for unknown ones), followed by -1 for missing values."""
        known = {level: k for k, level in enumerate(self.levels)}
        unseen = len(self.levels) if self.other else -2
        return [*(known.get(word, unseen) for word in words), -1]

    def _encode_date(self, values: Any, start: int, codes: bool, standardize: bool) -> list[Array]:
        if not isinstance(values, np.ndarray):
            words, places = texts_with_places(values)
            parsed = as_dates(words)
            if parsed is None:
                raise self._of_another_kind("dates", values, start)
            values = np.concatenate([parsed, np.array(["NaT"], _SAMPLE)])[places]
        elif values.dtype.kind != "M":
            if not np.isnan(values).all():
                raise self._of_another_kind("dates", values, start)
            values = np.full(len(values), "NaT", _SAMPLE)
        missing = np.isnat(values)
        filled = values if codes else np.where(missing, _moment_of(self.mean), values)
        parts = {"day": days_of(filled), **_parts_of(filled, self.timed)}
        if codes:
            return list(parts.values())
        if standardize:
            scales = {"day": (self.mean, self.scale), **_PARTS}
            parts = {part: (column - scales[part][0]) / scales[part][1] for part, column in parts.items()}
        return [*parts.values(), *([missing.astype(np.float64)] if self.missing else [])]

    def _of_another_kind(self, expected: str, values: Any, start: int) -> RowError:
        place, value = _first_mismatch(values, expected)
        example = " such as 2024-12-31" if expected == "dates" else ""
        return RowError(
            f"Column {self.name!r} had {expected} in the training data but is {value!r}",
            start + place,
            f"; pass {expected}{example}, or a missing value.",
        )


def _write(columns: list[Array], out: Array) -> None:
    for j, column in enumerate(columns):
        out[:, j] = column


def encode_together(
    plans: list[ColumnPlan], places: list[slice], columns: dict[str, Any], options: dict[str, Any], out: Array
) -> set[str]:
    """Encode the numbers and the categories of a block with more columns than rows, each at once.

    Returns
    -------
    set of str
        The columns that are encoded.
    """
    of_numbers = _encode_numbers(plans, places, columns, options, out)
    return of_numbers | _encode_categories(plans, places, columns, options, out)


def _encode_categories(
    plans: list[ColumnPlan], places: list[slice], columns: dict[str, Any], options: dict[str, Any], out: Array
) -> set[str]:
    if (wide := wide_texts(columns)) is None:
        return set()
    names, texts = wide
    row_of = {name: j for j, name in enumerate(names)}
    chosen = [(plan, place) for plan, place in zip(plans, places, strict=True) if plan.kind == "category"]
    chosen = [(plan, place) for plan, place in chosen if plan.name in row_of]
    if not chosen:
        return set()
    rows = np.array([row_of[plan.name] for plan, _ in chosen])
    tables = [
        plan.codes_of(texts.words[texts.bounds[j] : texts.bounds[j + 1]])
        for (plan, _), j in zip(chosen, rows, strict=True)
    ]
    lengths = np.array([len(table) for table in tables])
    ends = np.cumsum(lengths)
    inside = texts.places[rows]
    # The last entry of a table is for missing values.
    cells = np.where(inside < 0, ends[:, np.newaxis] - 1, inside + (ends - lengths)[:, np.newaxis])
    found = np.fromiter(itertools.chain.from_iterable(tables), np.intp, int(ends[-1]))[cells].T
    if options["unknown"] == "error" and (found == -2).any():
        return set()  # encoding column by column reports the position
    starts = np.array([place.start for _, place in chosen])
    if options["categories"] == "codes":
        out[:, starts] = np.where(found < 0, np.nan, found)
    else:
        for _, place in chosen:
            out[:, place] = 0.0
        i, j = np.nonzero(found > 0)
        out[i, starts[j] + found[i, j] - 1] = 1.0
        marked = np.array([plan.missing for plan, _ in chosen])
        last = np.array([place.stop - 1 for _, place in chosen])
        out[:, last[marked]] = found[:, marked] == -1
    return {plan.name for plan, _ in chosen}


def _encode_numbers(
    plans: list[ColumnPlan], places: list[slice], columns: dict[str, Any], options: dict[str, Any], out: Array
) -> set[str]:
    chosen = [
        (plan, place.start)
        for plan, place in zip(plans, places, strict=True)
        if plan.kind == "number" and isinstance(columns[plan.name], np.ndarray) and columns[plan.name].dtype.kind == "f"
    ]
    if not chosen:
        return set()
    values = np.column_stack([columns[plan.name] for plan, _ in chosen])
    if np.isinf(values).any():
        return set()  # encoding column by column reports the position
    starts = np.array([start for _, start in chosen])
    if options["categories"] != "codes":
        missing = np.isnan(values)
        mean, scale = (np.array([getattr(plan, name) for plan, _ in chosen]) for name in ("mean", "scale"))
        values = np.where(missing, mean, values)
        if options["standardize"]:
            values = (values - mean) / scale
        marked = np.array([plan.missing for plan, _ in chosen])
        out[:, starts[marked] + 1] = missing[:, marked]
    out[:, starts] = values
    return {plan.name for plan, _ in chosen}


def _first_mismatch(values: Any, expected: str) -> tuple[int, Any]:
    """Return the first value of the wrong kind."""
    if isinstance(values, np.ndarray):
        kept = ~(np.isnat(values) if values.dtype.kind == "M" else np.isnan(values))
        place = int(np.flatnonzero(kept)[0]) if kept.any() else 0
        return place, str(values[place]) if values.dtype.kind == "M" else float(values[place])
    present = [(place, value) for place, value in enumerate(values.to_pylist()) if value is not None]
    spelled = spells_number if expected == "numbers" else _spells_date
    # Prefer a text that cannot be parsed as the expected kind.
    return next((one for one in present if not spelled(one[1])), present[0] if present else (0, None))


def _spells_date(word: str) -> bool:
    return as_dates([word]) is not None


def _moment_of(day: float) -> Any:
    return np.datetime64(round(day * 86_400_000_000), "us")


def _parts_of(moments: Array, timed: bool) -> dict[str, Array]:
    missing = np.isnat(moments)
    days = moments.astype("datetime64[D]").astype(np.int64)
    months = moments.astype("datetime64[M]").astype(np.int64)
    # 1 January 1970 was a Thursday; Monday is 0.
    parts = {"month": months % 12 + 1.0, "weekday": (days + 3) % 7 + 0.0}
    if timed:
        parts["hour"] = moments.astype("datetime64[h]").astype(np.int64) % 24 + 0.0
    return {part: np.where(missing, np.nan, column) for part, column in parts.items()}


def plan_column(name: str, sums: ColumnSums, max_levels: int, drop: bool) -> ColumnPlan:
    """Return the plan of a column with these sums; with `drop`, identifiers and constants are dropped."""
    if not sums.count:
        return ColumnPlan(name, "dropped", "all values are missing")
    missing = sums.missing > 0
    if drop and sums.distinct == 1 and not missing:
        return ColumnPlan(name, "dropped", "all values are the same")
    if sums.kind == "date" or (sums.kind == "text" and sums.dates):
        mean, scale, timed = sums.mean, sums.spread or 1.0, not sums.whole
        low, high = sums.low, sums.high
        return ColumnPlan(name, "date", mean=mean, scale=scale, missing=missing, timed=timed, low=low, high=high)
    if sums.kind == "number":
        if drop and _numbers_rows(name, sums):
            return ColumnPlan(name, "dropped", "it numbers the rows: an identifier")
        return _plan_of_numbers(name, sums, missing)
    if (found := sums.spelled.chosen()) is not None:
        if drop and _numbers_rows(name, replace(sums, **_extent(found.numbers))):
            return ColumnPlan(name, "dropped", "it numbers the rows: an identifier")
        plan = _plan_of_numbers(name, found.numbers, missing or found.others > 0)
        return replace(plan, decimal=found.form.decimal, unit=found.form.unit)
    if sums.texts is None:
        return ColumnPlan(name, "dropped", f"it has about {sums.distinct:,} distinct texts, too many for categories")
    if drop and sums.count >= _ENOUGH and sums.distinct >= _ALL_DIFFERENT * sums.count:
        codes = sums.spelled.padded  # such as 01000
        return ColumnPlan(name, "dropped", (None if codes else _among_numbers(sums.texts)) or _IDENTIFIER)
    by_count = sorted(sums.texts, key=lambda word: (-sums.texts[word], word))  # type: ignore[index]
    kept = tuple(by_count[:max_levels])
    return ColumnPlan(name, "category", levels=kept, other=len(by_count) > max_levels, missing=missing)


def _extent(numbers: Any) -> dict[str, Any]:
    return {"low": numbers.low, "high": numbers.high, "whole": numbers.whole}


def _plan_of_numbers(name: str, numbers: Any, missing: bool) -> ColumnPlan:
    boolean = numbers.whole and numbers.low >= 0 and numbers.high <= 1
    kind, scale = "boolean" if boolean else "number", numbers.spread or 1.0
    mean, low, high = numbers.mean, numbers.low, numbers.high
    return ColumnPlan(name, kind, mean=mean, scale=scale, missing=missing, low=low, high=high)


def _among_numbers(texts: Iterable[str]) -> str | None:
    """Return the reason for dropping a numeric column that is text because of a few cells, or None."""
    texts = sorted(texts)
    others = [word for word in texts if not spells_number(word)]
    if 2 * len(others) > len(texts):
        return None
    if not others:
        return "it contains numbers stored as text, which should be stored as numbers"
    return f"it contains numbers and text such as {others[0]!r}, which should be a number or empty"


def _numbers_rows(name: str, sums: ColumnSums) -> bool:
    """Return whether an integer column looks like a row identifier."""
    different = sums.count >= _ENOUGH and sums.distinct >= _ALL_DIFFERENT * sums.count
    if not (sums.whole and different and not sums.missing):
        return False
    return sums.high - sums.low + 1 <= _DENSE * sums.count or _ID_NAME.search(name) is not None
