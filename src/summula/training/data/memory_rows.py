"""Training rows in memory, encoded on first use."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.training.comparison.candidates import Candidate
from summula.training.comparison.metrics import Evaluation, Evaluator
from summula.training.data.split import Split
from summula.training.data.training_overlap import training_hashes

__all__ = ["MemoryRows"]

Array = NDArray[Any]


class MemoryRows:
    """Rows of a table in memory, encoded for the candidates.

    Parameters
    ----------
    encoders : dict of bool to encoder
        Encoders of trees (True: codes) and of linear models (False: indicators).
    table : pyarrow.Table
        All rows, without the target.
    y : ndarray
        The target of all rows.
    split : Split
    seed : int
    """

    def __init__(self, encoders: dict[bool | None, Any], table: Any, y: Array, split: Split, seed: int) -> None:
        import pyarrow as pa

        self.encoders, self.seed = encoders, seed
        self._training = table.filter(pa.array(split.training))
        self.y, self._folds = y[split.training], split.folds[split.training]
        self._holdout = table.filter(pa.array(split.held_out))
        self._answers = y[split.held_out]
        self._encoded: dict[bool, Array] = {}

    def count(self, folds: list[int]) -> int:
        """Return the number of rows in some folds."""
        return int(np.isin(self._folds, folds).sum())

    def max_rows(self, candidate: Candidate, available: int) -> int:
        """Return the number of rows that a candidate can be fitted on."""
        return available

    def prepare(self, candidate: Candidate) -> None:
        """Encode the rows, unless this has been done."""
        self._of(candidate.codes)

    def fit(self, candidate: Candidate, max_time: float, folds: list[int], rows: int) -> Any:
        """Fit a candidate to `rows` rows of some folds, drawn at random if these are not all."""
        chosen = np.flatnonzero(np.isin(self._folds, folds))
        if rows < len(chosen):
            chosen = np.sort(np.random.default_rng([self.seed, rows]).permutation(chosen)[:rows])
        X, y = self._of(candidate.codes), self.y
        if len(chosen) < len(y):
            X, y = X[chosen], y[chosen]
        return candidate.fit(self.encoders[candidate.codes], self.seed, max_time, X, y)

    def evaluate(self, candidate: Candidate, model: Any, fold: int, evaluator: Evaluator) -> Evaluation:
        """Evaluate a model on the rows of a fold."""
        rows = self._folds == fold
        return evaluator.evaluate(model, [(self._of(candidate.codes)[rows], self.y[rows])])

    def holdout(self) -> tuple[Any, Any]:
        """Return the held-out rows and their targets, as arguments of `certify`."""
        return self._holdout, self._answers

    def sample(self, rows: int) -> tuple[Any, Array]:
        """Return the first held-out rows and their targets in memory."""
        return self._holdout.slice(0, rows), self._answers[:rows]

    def hashes(self, names: list[str]) -> NDArray[np.uint64]:
        """Return the smallest hashes of the training rows, computed from some columns."""
        return training_hashes(self._training.select(names), self.y)

    def _of(self, codes: bool) -> Array:
        if codes not in self._encoded:
            self._encoded[codes] = self.encoders[codes].transform(self._training)
        return self._encoded[codes]
