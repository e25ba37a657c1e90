"""Candidates compared by cross-validation within a time budget, fold by fold.

In each round every candidate is fitted once, without the same rows. Only whole rounds count, so that all means are over
the same rows. When time is over, or after Ctrl-C, what is finished decides.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.cli.candidates import Candidate
from summula.core.errors import DataError, TimeLimitError

__all__ = ["Entry", "Leaderboard", "compare_candidates"]

Array = NDArray[Any]


@dataclass
class Entry:
    """How one candidate did."""

    candidate: Candidate
    risks: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    note: str = ""
    failed: bool = False

    @property
    def name(self) -> str:
        """What a user calls it."""
        return self.candidate.name

    def finished(self, rounds: int) -> bool:
        """Whether it was fitted in so many rounds."""
        return len(self.risks) >= rounds and not self.failed

    def mean(self, rounds: int) -> float:
        """Its mean risk over the first rounds; NaN when it has fewer."""
        return float(np.mean(self.risks[:rounds])) if self.finished(rounds) else float("nan")


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
        """One row a candidate, for tables and files."""
        rows = []
        for place, entry in enumerate(self.entries, start=1):
            finished = entry.finished(self.rounds)
            counted = entry.risks[: self.rounds] if finished else []
            rows.append(
                {
                    "rank": place if finished else None,
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


def compare_candidates(
    candidates: Iterable[Candidate],
    rounds: Iterable[Callable[[Candidate, float], float]],
    metric: str,
    deadline: float,
    report: Callable[[str, int], None] = lambda what, done: None,
    debug: bool = False,
) -> Leaderboard:
    """Fit every candidate once a round until rounds or time are over.

    `rounds` are functions that fit a candidate within some seconds and give its risk.
    """
    entries, interrupted, done, whole = [Entry(one) for one in candidates], False, 0, 0
    try:
        for number, fit_and_judge in enumerate(rounds):
            for place, entry in enumerate(entries):
                left = deadline - time.monotonic()
                if entry.failed:
                    continue
                if number + done and max(entry.seconds, default=0.0) > left:
                    _out_of_time(entry, number)
                    raise _TimeIsOver
                report(f"fold {number + 1}: {entry.name}", done)
                # In the first round nobody knows how long the others will take: each gets its share of what is left.
                share = left / (len(entries) - place) if not number else left
                _one_fit(entry, fit_and_judge, max(share, 0.5), debug)
                done += 1
            whole = number + 1
    except _TimeIsOver:
        pass
    except KeyboardInterrupt:
        interrupted = True
    return _ranked(entries, metric, whole, interrupted)


class _TimeIsOver(Exception):
    """The next fit would not end in time."""


def _out_of_time(entry: Entry, number: int) -> None:
    if not number:
        entry.note = "no time"


def _one_fit(entry: Entry, fit_and_judge: Callable[[Candidate, float], float], left: float, debug: bool) -> None:
    clock = time.monotonic()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            entry.risks.append(fit_and_judge(entry.candidate, left))
        except TimeLimitError:
            entry.note, entry.failed = "no model in time", True
        except Exception as error:
            if debug:
                raise
            entry.note, entry.failed = f"failed: {' '.join(str(error).split())[:200]}", True
    entry.seconds.append(time.monotonic() - clock)
    for warning in caught:
        if "max_time" in str(warning.message):
            entry.note = "cut short by the time budget"
        elif "onverge" in type(warning.message).__name__:
            entry.note = entry.note or "did not converge"


def _ranked(entries: list[Entry], metric: str, whole: int, interrupted: bool) -> Leaderboard:
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
