"""Rows of a comparison: fits on some folds, and evaluation on another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from summula.training.comparison.candidates import Candidate
from summula.training.comparison.metrics import Evaluation, Evaluator

__all__ = ["Fold", "Rows"]

Array = NDArray[Any]


class Rows(Protocol):
    """Encoded training rows in folds, and the held-out rows."""

    def count(self, folds: list[int]) -> int:
        """Return the number of rows in some folds."""

    def max_rows(self, candidate: Candidate, available: int) -> int:
        """Return the number of rows that a candidate can be fitted on."""

    def prepare(self, candidate: Candidate) -> None:
        """Prepare the rows for a candidate; this does not count as fit time."""

    def fit(self, candidate: Candidate, max_time: float, folds: list[int], rows: int) -> Any:
        """Fit a candidate to `rows` rows of some folds."""

    def evaluate(self, candidate: Candidate, model: Any, fold: int, evaluator: Evaluator) -> Evaluation:
        """Evaluate a model on the rows of a fold."""

    def holdout(self) -> tuple[Any, Any]:
        """Return the held-out rows and their targets, as arguments of `certify`."""

    def sample(self, rows: int) -> tuple[Any, Array]:
        """Return the first held-out rows and their targets in memory."""

    def hashes(self, names: list[str]) -> NDArray[np.uint64]:
        """Return the smallest hashes of the training rows, computed from the columns in use."""


@dataclass(frozen=True)
class Fold:
    """One round of a comparison: training folds and a validation fold."""

    rows: Rows
    fit_on: list[int]
    validate_on: int
    evaluator: Evaluator

    @property
    def n_rows(self) -> int:
        """Number of training rows."""
        return self.rows.count(self.fit_on)

    def most_rows(self, candidate: Candidate) -> int:
        """Return the maximum number of training rows for a candidate."""
        return self.rows.max_rows(candidate, self.n_rows)

    def prepare(self, candidate: Candidate) -> None:
        """Prepare the rows."""
        self.rows.prepare(candidate)

    def fit(self, candidate: Candidate, max_time: float, rows: int) -> Any:
        """Fit a candidate to some of the rows."""
        return self.rows.fit(candidate, max_time, self.fit_on, rows)

    def evaluate(self, candidate: Candidate, model: Any) -> Evaluation:
        """Evaluate a model on the validation rows."""
        return self.rows.evaluate(candidate, model, self.validate_on, self.evaluator)
