"""Folds of rows in memory, and their encodings: made when the first candidate asks for them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.cli.candidates import Candidate
from summula.cli.comparison import Judgement, judgement
from summula.cli.metrics import Judged

__all__ = ["Encoded", "Fold", "folds_of"]

Array = NDArray[Any]

_MANY_ROWS = 50_000  # from which on three folds tell as much as five


class Encoded:
    """The training rows as candidates want them: codes (True) or indicators (False)."""

    def __init__(self, encoders: dict[bool, Any], training: Any, y: Array, seed: int) -> None:
        self.encoders, self.training, self.y, self.seed = encoders, training, y, seed
        self._made: dict[bool, Array] = {}

    def of(self, codes: bool) -> Array:
        """The encoded rows."""
        if codes not in self._made:
            self._made[codes] = self.encoders[codes].transform(self.training)
        return self._made[codes]

    def fit(self, candidate: Candidate, max_time: float, chosen: Array | None, rows: int) -> Any:
        """A model of some of the rows (None: all), of which so many are drawn."""
        X, y = self.of(candidate.codes), self.y
        if rows < (len(y) if chosen is None else len(chosen)):
            drawn = np.random.default_rng([self.seed, rows]).permutation(len(y) if chosen is None else chosen)
            chosen = np.sort(drawn[:rows])
        if chosen is not None:
            X, y = X[chosen], y[chosen]
        return candidate.fit(self.encoders[candidate.codes], self.seed, max_time, X, y)


@dataclass(frozen=True)
class Fold:
    """Rows to fit on and rows to judge by, by their places."""

    data: Encoded
    training: Array
    rest: Array
    judged: Judged

    @property
    def n_rows(self) -> int:
        """How many rows there are to fit on."""
        return len(self.training)

    def most_rows(self, candidate: Candidate) -> int:
        """All of them."""
        return self.n_rows

    def prepare(self, candidate: Candidate) -> None:
        """Encode the rows, if nobody has asked for them so far."""
        self.data.of(candidate.codes)

    def fit(self, candidate: Candidate, max_time: float, rows: int) -> Any:
        """A model of so many of the rows."""
        return self.data.fit(candidate, max_time, self.training, rows)

    def judge(self, candidate: Candidate, model: Any) -> Judgement:
        """The risk of a model on the rows left out."""
        losses = self.judged.losses(model, self.data.of(candidate.codes)[self.rest], self.data.y[self.rest])
        return judgement(float(losses.sum()), float((losses**2).sum()), len(losses))


def folds_of(data: Encoded, judged: Judged) -> list[Fold]:
    """Five folds, or three of many rows; classes have the same shares in each, where there are enough of them."""
    from sklearn.model_selection import KFold, StratifiedKFold

    y = data.y
    count, kind = 5 if len(y) <= _MANY_ROWS else 3, KFold
    if judged.classes is not None:
        frequent = int(np.unique(y, return_counts=True)[1].max())
        kind = StratifiedKFold if frequent >= count else KFold
    splitter = kind(min(count, len(y)), shuffle=True, random_state=data.seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class of a few rows is in a few folds
        return [Fold(data, learned, rest, judged) for learned, rest in splitter.split(np.empty((len(y), 0)), y)]
