"""Differences between rows to be predicted and training rows, column by column.

Counts texts that are unknown levels of a category, and numbers and dates outside the training range by more than half
its width. The counts of blocks of rows are merged by addition.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.preprocessing.table_encoder_blocks import Columns, texts_with_places
from summula.preprocessing.table_encoder_plans import ColumnPlan

__all__ = ["Drift", "DriftFinding"]

Array = NDArray[Any]


@dataclass(frozen=True)
class DriftFinding:
    """Values of one column that did not occur in the training rows.

    Attributes
    ----------
    kind : {"unseen", "range", "unread"}
        Unknown categories; values far outside the range; texts that are not numbers in a numeric column.
    count : int
        Number of such rows.
    row : int
        Number of the first such row, from 0.
    value : str
        Its value.
    """

    kind: str
    count: int
    row: int
    value: str

    def merge(self, other: DriftFinding) -> DriftFinding:
        """Return the findings of the union of two sets of rows."""
        first = min(self, other, key=lambda one: one.row)
        return replace(first, count=self.count + other.count)


class Drift:
    """Findings of all blocks; `observe` may be called by several threads.

    Parameters
    ----------
    plans : list of ColumnPlan
        How the columns are encoded.
    """

    def __init__(self, plans: Sequence[ColumnPlan]) -> None:
        self._plans = {plan.name: plan for plan in plans if plan.kind != "dropped"}
        self._lock = threading.Lock()
        self.findings: dict[str, DriftFinding] = {}
        self.n_rows = 0

    def observe(self, columns: Columns, start: int) -> None:
        """Check one block of rows."""
        found = {name: one for name, plan in self._plans.items() if (one := _found(plan, columns[name], start))}
        with self._lock:
            self.n_rows += len(next(iter(columns.values())))
            for name, one in found.items():
                self.findings[name] = self.findings[name].merge(one) if name in self.findings else one

    def sentences(self) -> list[str]:
        """Return one sentence per column, in the order of the columns."""
        return [self._sentence(name, self.findings[name]) for name in self._plans if name in self.findings]

    def _sentence(self, name: str, found: DriftFinding) -> str:
        rows, first = f"{found.count:,} of {self.n_rows:,} rows", f"the first is {found.value!r}"
        if found.kind == "unseen":
            return f"{rows} have a category of {name!r} that was not in the training data ({first})."
        if found.kind == "unread":
            return f"{rows} have a text in {name!r} that is not a number and is treated as missing ({first})."
        low, high = self._plans[name].shown_range()
        first = f"the first is {found.value}"
        return f"{rows} have a value of {name!r} far outside the training range {low} to {high} ({first})."


def _found(plan: ColumnPlan, values: Any, start: int) -> DriftFinding | None:
    if plan.kind == "category":
        return _unseen(plan, values, start)
    moments = plan.numbers_in(values)
    if moments is None:
        return None
    unread = np.isnan(moments) & ~_missing(values)
    if unread.any():
        row = int(unread.argmax())
        return DriftFinding("unread", int(unread.sum()), start + row, str(values[row].as_py()))
    if plan.low is None or plan.high is None:
        return None
    margin = (plan.high - plan.low) / 2
    far = (moments < plan.low - margin) | (moments > plan.high + margin)
    if not far.any():
        return None
    row = int(far.argmax())
    return DriftFinding("range", int(far.sum()), start + row, plan.shown_value(float(moments[row])))


def _missing(values: Any) -> NDArray[np.bool_]:
    if isinstance(values, np.ndarray):
        return np.asarray(np.isnat(values) if values.dtype.kind == "M" else np.isnan(values))
    return np.asarray(values.is_null().to_numpy(zero_copy_only=False), bool)


def _unseen(plan: ColumnPlan, values: Any, start: int) -> DriftFinding | None:
    """Return unknown levels; none if rare levels are grouped, since a text may be one of them."""
    if isinstance(values, np.ndarray) or plan.other:
        return None
    words, places = texts_with_places(values)
    levels = set(plan.levels)
    strange = np.array([*(word not in levels for word in words), False])[places]
    if not strange.any():
        return None
    row = int(strange.argmax())
    return DriftFinding("unseen", int(strange.sum()), start + row, words[places[row]])
