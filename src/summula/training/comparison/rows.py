"""Rows of a comparison: fits on some folds, and evaluation on another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from summula.training.comparison.candidates import Candidate
from summula.training.comparison.metrics import Judge, Judgement

__all__ = ["Fold", "Rows"]

Array = NDArray[Any]


class Rows(Protocol):
    """Encoded training rows in folds, and the rows held out."""

    def count(self, folds: list[int]) -> int:
        """Number of rows in some folds."""

    def max_rows(self, candidate: Candidate, available: int) -> int:
        """Number of rows that a candidate can be fitted on."""

    def prepare(self, candidate: Candidate) -> None:
        """Make the rows ready for a candidate; that is not part of a fit's time."""

    def fit(self, candidate: Candidate, max_time: float, folds: list[int], rows: int) -> Any:
        """A model of `rows` of the rows of some folds."""

    def judge(self, candidate: Candidate, model: Any, fold: int, judge: Judge) -> Judgement:
        """The risk of a model on the rows of a fold."""

    def holdout(self) -> tuple[Any, Any]:
        """The held-out rows and their targets, as `certify` takes them."""

    def sample(self, rows: int) -> tuple[Any, Array]:
        """The first held-out rows and their targets in memory."""

    def hashes(self, names: list[str]) -> NDArray[np.uint64]:
        """The smallest hashes of the training rows, by the columns that are used."""


@dataclass(frozen=True)
class Fold:
    """One round of a comparison: folds to fit on, and another to judge by."""

    rows: Rows
    fit_on: list[int]
    judge_on: int
    judge_by: Judge

    @property
    def n_rows(self) -> int:
        """Number of rows to fit on."""
        return self.rows.count(self.fit_on)

    def most_rows(self, candidate: Candidate) -> int:
        """Number of them that a candidate can be given."""
        return self.rows.max_rows(candidate, self.n_rows)

    def prepare(self, candidate: Candidate) -> None:
        """Make the rows ready."""
        self.rows.prepare(candidate)

    def fit(self, candidate: Candidate, max_time: float, rows: int) -> Any:
        """A model of some of the rows."""
        return self.rows.fit(candidate, max_time, self.fit_on, rows)

    def judge(self, candidate: Candidate, model: Any) -> Judgement:
        """The risk of a model on the rows left out."""
        return self.rows.judge(candidate, model, self.judge_on, self.judge_by)
