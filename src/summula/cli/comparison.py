"""How candidates did: their risks fold by fold, and the table of all of them, the best first."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.cli.candidates import Candidate
from summula.core.errors import DataError

__all__ = ["Entry", "Judgement", "Leaderboard", "judgement", "ranked"]

Array = NDArray[Any]


class Judgement(NamedTuple):
    """The mean loss of a model on rows it was not fitted on, and the standard error of that mean."""

    risk: float
    error: float


def judgement(total: float, squares: float, rows: int) -> Judgement:
    """From the sums of losses and of their squares."""
    mean = total / rows
    return Judgement(mean, float(np.sqrt(max(squares / rows - mean**2, 0.0) / rows)))


@dataclass
class Entry:
    """How one candidate did.

    Attributes
    ----------
    candidate : Candidate
    judged : list of Judgement
        One a fold.
    seconds, spent : list of float
        What a fit took, and what it took with judging it, one a fold.
    rows : int or None
        How many rows a fit was given, where time did not suffice for all of them.
    model : estimator or None
        That of the first fold.
    note : str
    failed : bool
    """

    candidate: Candidate
    judged: list[Judgement] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    spent: list[float] = field(default_factory=list)
    rows: int | None = None
    model: Any = None
    note: str = ""
    failed: bool = False

    @property
    def name(self) -> str:
        """What a user calls it."""
        return self.candidate.name

    @property
    def risks(self) -> list[float]:
        """Its risk in each fold."""
        return [one.risk for one in self.judged]

    def finished(self, rounds: int) -> bool:
        """Whether it was fitted in so many rounds."""
        return len(self.judged) >= rounds and not self.failed

    def mean(self, rounds: int) -> float:
        """Its mean risk over the first rounds; NaN when it has none."""
        risks = self.risks[:rounds]
        return float(np.mean(risks)) if risks and not self.failed else float("nan")

    def error(self, rounds: int) -> float:
        """The standard error of that mean."""
        errors = np.array([one.error for one in self.judged[:rounds]])
        return float(np.sqrt((errors**2).sum()) / len(errors))


@dataclass
class Leaderboard:
    """All candidates, the best first, compared over the same rounds."""

    metric: str
    entries: list[Entry]
    rounds: int
    interrupted: bool

    @property
    def best(self) -> Entry:
        """The candidate with the smallest mean risk; of equals the simplest."""
        return self.entries[0]

    def rows(self) -> list[dict[str, Any]]:
        """One row a candidate, for tables and files; who was not in all rounds has no rank."""
        rows = []
        for place, entry in enumerate(self.entries, start=1):
            counted = [] if entry.failed else entry.risks[: self.rounds]
            rows.append(
                {
                    "rank": place if entry.finished(self.rounds) else None,
                    "model": entry.name,
                    self.metric: entry.mean(self.rounds),
                    "lowest fold": min(counted, default=float("nan")),
                    "highest fold": max(counted, default=float("nan")),
                    "folds": len(counted),
                    "seconds a fit": float(np.mean(entry.seconds)) if entry.seconds else float("nan"),
                    "note": entry.note,
                }
            )
        return rows


def ranked(entries: list[Entry], metric: str, whole: int, interrupted: bool) -> Leaderboard:
    """The leaderboard after so many whole rounds; complains when there is nobody on it."""
    # When not even the first round is whole, those that finished it are compared.
    rounds = max(whole, 1)
    finished = [entry for entry in entries if entry.finished(rounds)]
    if not finished:
        if interrupted:
            raise KeyboardInterrupt
        why = "; ".join(f"{entry.name}: {entry.note}" for entry in entries if entry.note)
        raise DataError(f"No candidate could be fitted ({why}); look at the table with `summula inspect`.")
    rest = [entry for entry in entries if entry not in finished]
    for entry in rest:
        entry.note = entry.note or "not finished"
    return Leaderboard(metric, sorted(finished, key=lambda e: e.mean(rounds)) + rest, rounds, interrupted)
