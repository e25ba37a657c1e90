"""Leaderboard: risks of candidates by fold, and the table of all candidates, best first."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import DataError
from summula.metrics.intervals import Interval
from summula.training.comparison.candidates import Candidate
from summula.training.comparison.metrics import Evaluation, Metric

__all__ = ["Entry", "Leaderboard", "ranked"]

Array = NDArray[Any]


@dataclass
class Entry:
    """Results of one candidate.

    Attributes
    ----------
    candidate : Candidate
    evaluations : list of Evaluation
        One per fold.
    seconds, spent : list of float
        Time of a fit, and of a fit with its evaluation, one per fold.
    rows : int or None
        Number of rows used for fits, if time did not suffice for all of them.
    model : estimator or None
        Model of the first fold.
    holdout : Interval or None
        The metric on the held-out rows: of the final model for the best candidate, of the first fold's for the others.
    note : str
    failed : bool
    members : list of (Entry, float)
        Members of an ensemble, and their weights.
    """

    candidate: Candidate
    evaluations: list[Evaluation] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    spent: list[float] = field(default_factory=list)
    rows: int | None = None
    model: Any = None
    holdout: Interval | None = None
    note: str = ""
    failed: bool = False
    members: list[tuple[Entry, float]] = field(default_factory=list)

    @property
    def codes(self) -> bool | None:
        """Whether it uses categories as codes (True), as indicators (False), or both (None)."""
        kinds = {one.candidate.codes for one, _ in self.members} or {self.candidate.codes}
        return kinds.pop() if len(kinds) == 1 else None

    @property
    def name(self) -> str:
        """Name of the candidate."""
        return self.candidate.name

    @property
    def risks(self) -> list[float]:
        """Risk in each fold."""
        return [one.risk for one in self.evaluations]

    def finished(self, rounds: int) -> bool:
        """Return whether it was fitted in this number of rounds."""
        return len(self.evaluations) >= rounds and not self.failed

    def mean(self, rounds: int) -> float:
        """Return the mean risk over the first rounds; NaN if there is none."""
        risks = self.risks[:rounds]
        return float(np.mean(risks)) if risks and not self.failed else float("nan")

    @property
    def threshold(self) -> float | None:
        """Median of the thresholds chosen in the folds."""
        chosen = [one.threshold for one in self.evaluations if one.threshold is not None]
        return float(np.median(chosen)) if chosen else None

    def error(self, rounds: int) -> float:
        """Return the standard error of the mean risk."""
        errors = np.array([one.error for one in self.evaluations[:rounds]])
        return float(np.sqrt((errors**2).sum()) / len(errors))


@dataclass
class Leaderboard:
    """All candidates, best first, compared over the same rounds."""

    metric: Metric
    entries: list[Entry]
    rounds: int
    interrupted: bool

    @property
    def best(self) -> Entry:
        """The candidate with the smallest mean risk; ties go to the simplest."""
        return self.entries[0]

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per candidate, for tables and files; candidates that were not in all rounds have no rank."""
        return [self._row(place, entry) for place, entry in enumerate(self.entries, start=1)]

    def _row(self, place: int, entry: Entry) -> dict[str, Any]:
        shown, name = self.metric.shown, self.metric.name
        counted = [] if entry.failed else [shown(risk) for risk in entry.risks[: self.rounds]]
        held = entry.holdout or Interval(float("nan"), float("nan"), float("nan"))
        return {
            "rank": place if entry.finished(self.rounds) else None,
            "model": entry.name,
            name: shown(entry.mean(self.rounds)),
            "lowest fold": min(counted, default=float("nan")),
            "highest fold": max(counted, default=float("nan")),
            "folds": len(counted),
            f"held-out {name}": held.value,
            "2.5 %": held.low,
            "97.5 %": held.high,
            "seconds per fit": float(np.mean(entry.seconds)) if entry.seconds else float("nan"),
            "note": entry.note,
        }


def ranked(entries: list[Entry], metric: Metric, whole: int, interrupted: bool) -> Leaderboard:
    """Return the leaderboard after some complete rounds; raise if no candidate finished one."""
    # If even the first round is incomplete, the candidates that finished it are compared.
    rounds = max(whole, 1)
    finished = [entry for entry in entries if entry.finished(rounds)]
    if not finished:
        if interrupted:
            raise KeyboardInterrupt
        why = "; ".join(f"{entry.name}: {entry.note}" for entry in entries if entry.note)
        raise DataError(f"No candidate could be fitted ({why}); check the table with `summula inspect`.")
    rest = [entry for entry in entries if entry not in finished]
    for entry in rest:
        entry.note = entry.note or "not finished"
    return Leaderboard(metric, sorted(finished, key=lambda e: e.mean(rounds)) + rest, rounds, interrupted)
