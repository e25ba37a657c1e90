"""Schedule of the fits of a comparison, so that it ends in time and includes the most likely winners.

In each round every candidate is fitted once, with the same validation fold. The first round starts with the baseline,
then boosting, which wins most often on tables, then the others, cheapest first. The remaining time, less that for the
final fit of the best candidate so far, is divided among the candidates. The time of a fit is predicted from a
fit on m rows that took t_m seconds: for n rows

    t_n = t_m (n / m)^1.25                                                                                       (1)

If that exceeds its time budget, it is fitted on fewer rows, which the leaderboard reports; boosting is stopped early
instead. Another round starts only if it can finish. If there is not enough time for all, candidates whose risk is
clearly above the smallest (by three standard errors of the difference) are eliminated. Only complete rounds count, so
that all means are over the same rows.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from summula.core.compilation.compile_times import CompileTimes, compile_times
from summula.core.errors import TimeLimitError
from summula.training.comparison.candidates import Candidate
from summula.training.comparison.leaderboard import Entry, Leaderboard, ranked
from summula.training.comparison.metrics import Evaluation, Metric

__all__ = ["Budget", "Round", "compare_candidates", "last_fit"]

_POWER = 1.25  # see (1)
_PILOT_ROWS = 2_000
_COMPILED = 2.0  # seconds: a longer fit to a few rows may have compiled kernels
_COMPILING = 0.5  # seconds of compilation after which a fit that ran out of time is repeated
_TRIES = 8
_FIRST_ROWS = 200  # enough to call every kernel
_LEAST_ROWS = 500  # a fit on fewer is uninformative
_CLEARLY = 3.0  # standard errors
_SHORT = 1.0  # seconds left for the first round below which cheap candidates are fitted first
_OVERTIME = 2.0  # seconds for the first candidate besides the baseline, when time is short
_SLACK = 1.5  # ratio to the predicted time at which a fit is stopped
_LEAST_LIMIT = 5.0  # seconds: the times of short fits vary
_FIRST_PORTION = 0.6  # fraction of the remaining time for the first fold of boosting
_AFTER_CTRL_C = 2.0  # maximum seconds of the final fit after Ctrl-C


class Round(Protocol):
    """One fold: training rows and validation rows."""

    @property
    def n_rows(self) -> int:
        """Number of training rows."""

    def most_rows(self, candidate: Candidate) -> int:
        """Return the maximum number of rows for a candidate."""

    def prepare(self, candidate: Candidate) -> None:
        """Prepare the rows, once for all folds; this does not count as fit time."""

    def fit(self, candidate: Candidate, max_time: float, rows: int) -> Any:
        """Fit a candidate to this number of rows."""

    def evaluate(self, candidate: Candidate, model: Any) -> Evaluation:
        """Evaluate a model on the validation rows."""


class Budget:
    """Time budget of a run.

    Parameters
    ----------
    end : float
        Deadline of the final fit, on the monotonic clock.
    whole : int
        Number of rows of the final fit.
    """

    def __init__(self, end: float, whole: int) -> None:
        self.end, self.whole, self.compiling = end, whole, 0.0

    @property
    def left(self) -> float:
        """Seconds until the end."""
        return self.end - time.monotonic()

    def add(self, seconds: float) -> None:
        """Extend the budget by the time spent on compilation."""
        self.end += max(seconds, 0.0)
        self.compiling += max(seconds, 0.0)

    def last_fit_of(self, entry: Entry, n_rows: int) -> float:
        """Predict the time of a fit to all rows from the folds of a candidate."""
        if not entry.seconds or entry.failed:
            return 0.0
        return max(entry.seconds) * (1.0 if entry.rows is not None else self.whole / n_rows)


def predicted(seconds: float, rows: int, wanted: int) -> float:
    """Equation (1)."""
    return float(seconds * (wanted / rows) ** _POWER)


def affordable(seconds: float, rows: int, left: float) -> int:
    """Return the number of rows that can be fitted in a given time, by (1)."""
    return int(rows * (max(left, 0.0) / max(seconds, 1e-9)) ** (1 / _POWER))


def compare_candidates(
    candidates: Sequence[Candidate],
    rounds: Sequence[Round],
    metric: Metric,
    budget: Budget,
    report: Callable[[int, str, int], None] = lambda number, name, done: None,
    debug: bool = False,
) -> Leaderboard:
    """Fit every candidate once per round, until all rounds are done, time is over, or Ctrl-C is pressed."""
    entries, whole, interrupted, done = [Entry(one) for one in candidates], 0, False, 0
    try:
        for number, fold in enumerate(rounds):
            running = _first_turns(entries, budget) if not number else _contenders(entries, number, budget, fold)
            if not running:
                break
            for place, entry in enumerate(running):
                report(number, entry.name, done)
                waiting = len(running) - place
                if number:
                    _fit_again(entry, fold, budget, debug)
                else:
                    _first_fit(entry, fold, budget, entries, waiting, debug)
                done += 1
            whole = number + 1
    except _TimeIsOver:
        pass
    except KeyboardInterrupt:
        interrupted = True
    for entry in entries:
        if whole > len(entry.evaluations) > 0 and not entry.failed:
            entry.note = entry.note or "clearly behind: later folds skipped to save time"
    return ranked(entries, metric, whole, interrupted)


class _TimeIsOver(Exception):
    """A fit ran out of time in a later fold, which therefore does not count."""


def _in_turn(entries: list[Entry]) -> list[Entry]:
    return sorted(entries, key=lambda entry: entry.candidate.turn)


def _first_turns(entries: list[Entry], budget: Budget) -> list[Entry]:
    """Return the order of the first round; cheap candidates come first if there is no time left at its start."""
    over = budget.left <= _SHORT
    return sorted(entries, key=lambda entry: (over and entry.candidate.stops_early, entry.candidate.turn))


def _contenders(entries: list[Entry], number: int, budget: Budget, fold: Round) -> list[Entry]:
    """Return the candidates of the next round; none if it cannot end in time."""
    running = [entry for entry in _in_turn(entries) if entry.finished(number)]
    if not running:
        return []
    best = min(running, key=lambda entry: entry.mean(number))
    behind = [one for one in running if _behind(one, best, number) and one.name != "baseline"]
    # The slowest of the clearly worse candidates are eliminated first.
    for slow in [None, *sorted(behind, key=lambda entry: -max(entry.seconds))]:
        running = [entry for entry in running if entry is not slow]
        last = max(budget.last_fit_of(entry, fold.n_rows) for entry in running)
        if sum(max(entry.spent) for entry in running) + last < budget.left:
            return running
    return []


def _behind(entry: Entry, best: Entry, number: int) -> bool:
    apart = (entry.error(number) ** 2 + best.error(number) ** 2) ** 0.5
    return bool(entry.mean(number) - best.mean(number) > _CLEARLY * apart)


def _first_fit(entry: Entry, fold: Round, budget: Budget, entries: list[Entry], waiting: int, debug: bool) -> None:
    """Fit the first fold of a candidate, on as many rows as its time budget allows."""
    candidate, n = entry.candidate, fold.n_rows
    is_first = not any(other.evaluations and other.name != "baseline" for other in entries)
    if budget.left <= 0.0 and not is_first:
        _give_up(entry)
        return
    fold.prepare(candidate)
    reserve = max(budget.last_fit_of(other, n) for other in entries)
    least = max(min(_OVERTIME, _OVERTIME + budget.left), 0.5) if is_first else 0.5
    share = max(max(budget.left - reserve, 0.5) / waiting, 2 * least if is_first else 0.0)
    if budget.left > 0.0 and not _warm(fold, candidate, share, budget):
        _give_up(entry)
        return
    left = max(budget.left - reserve, least)
    if candidate.stops_early:
        # Its final fit takes longer than a fold; the remaining time is left for other candidates.
        _fit(entry, fold, max(left / (1 + budget.whole / n) * _portion(candidate, waiting), least), n, budget, debug)
        return
    share = left / waiting
    rows = _affordable_rows(fold, candidate, share, budget)
    if rows is None:
        _give_up(entry)
        return
    entry.rows = rows if rows < n else None
    _fit(entry, fold, max(min(_SLACK * share, left), least), rows, budget, debug)
    if entry.rows is not None and not entry.failed:
        entry.note = entry.note or f"fitted on {rows:,} of {n:,} rows, because of limited time or memory"


def _give_up(entry: Entry) -> None:
    entry.note, entry.failed = "no model in time", True


def _portion(candidate: Candidate, waiting: int) -> float:
    """Return the fraction of the time for the first fold of a candidate that supports early stopping."""
    if waiting == 1:
        return 1.0
    return _FIRST_PORTION if candidate.turn <= 1 else min(2 / waiting, _FIRST_PORTION)


def _affordable_rows(fold: Round, candidate: Candidate, share: float, budget: Budget) -> int | None:
    """Return the number of rows for a candidate, from the time of a small fit; None if that takes too long already."""
    n = fold.n_rows
    rows, pilot = min(n, fold.most_rows(candidate)), min(_PILOT_ROWS, n // 4)
    if pilot < _LEAST_ROWS or candidate.name == "baseline":
        return rows
    trial = _try(fold, candidate, share / 2, pilot)
    budget.add(trial.compiling)
    if not trial.done:
        return None
    # There must also be time for its final fit, if it is the best.
    took = trial.seconds
    if predicted(took, pilot, n) > share or predicted(took, pilot, n + budget.whole) > budget.left:
        rows = min(max(affordable(took, pilot, min(share - took, budget.left / 3)), _LEAST_ROWS), rows)
    return rows


def _warm(fold: Round, candidate: Candidate, share: float, budget: Budget) -> bool:
    """Fit a few rows, so that kernels are compiled or loaded; return whether this succeeds.

    Compilation, once per machine, is not counted. Fits that end before all kernels are compiled are repeated;
    a further fit measures the time without loading.
    """
    few = min(_FIRST_ROWS, fold.n_rows)
    for _ in range(_TRIES):
        first = _try(fold, candidate, share / 2, few)
        budget.add(first.compiling)
        if first.done or first.compiling < _COMPILING:
            break
    if first.done and first.seconds < _COMPILED:
        return True
    again = _try(fold, candidate, share / 2, few)
    budget.add(again.compiling)
    if again.done:
        budget.add(first.seconds - again.seconds)
    return again.done


class _Trial(NamedTuple):
    """Time of a fit to a few rows without compilation, time of compilation, and whether the fit finished in time."""

    seconds: float
    compiling: float
    done: bool


def _try(fold: Round, candidate: Candidate, max_time: float, rows: int) -> _Trial:
    """Fit a few rows."""
    clock, done = time.monotonic(), True
    with compile_times() as compiled:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fold.fit(candidate, max(max_time, 0.5), rows)
        except TimeLimitError:
            done = False
        except Exception:  # such as too few rows of a class, which the fit of the fold reports
            pass
    compiling = compiled.seconds
    return _Trial(max(time.monotonic() - clock - compiling, 0.0), compiling, done)


def _fit_again(entry: Entry, fold: Round, budget: Budget, debug: bool) -> None:
    limit = max(min(max(3 * max(entry.seconds), _LEAST_LIMIT), budget.left), 0.5)
    _fit(entry, fold, limit, fold.n_rows if entry.rows is None else entry.rows, budget, debug)


def _fit(entry: Entry, fold: Round, max_time: float, rows: int, budget: Budget, debug: bool) -> None:
    """Fit and evaluate a candidate; compilation, such as of kernels for predictions, is not counted."""
    with compile_times() as compiled:
        _fit_and_evaluate(entry, fold, max_time, rows, compiled, debug)
    budget.add(compiled.seconds)


def _fit_and_evaluate(
    entry: Entry, fold: Round, max_time: float, rows: int, compiled: CompileTimes, debug: bool
) -> None:
    clock = time.monotonic()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = fold.fit(entry.candidate, max_time, rows)
            took = time.monotonic() - clock - compiled.seconds
            entry.evaluations.append(fold.evaluate(entry.candidate, model))
            entry.seconds.append(max(took, 0.0))
            entry.spent.append(max(time.monotonic() - clock - compiled.seconds, 0.0))
            entry.model = model if entry.model is None else entry.model
        except TimeLimitError:
            if entry.evaluations:
                raise _TimeIsOver from None
            _give_up(entry)
        except Exception as error:
            if debug:
                raise
            entry.note, entry.failed = f"failed: {' '.join(str(error).split())[:200]}", True
    for warning in caught:
        if "max_time" in str(warning.message):
            entry.note = "cut short by the time budget"
        elif "onverge" in type(warning.message).__name__:
            entry.note = entry.note or "did not converge"


def last_fit(
    board: Leaderboard,
    n_rows: int,
    budget: Budget,
    fit: Callable[[Candidate, float, int], Any],
    average: Callable[[Entry, Sequence[Any]], Any] | None = None,
) -> Any:
    """Fit the best candidate to all rows, or to as many as time allows; else return its model of the first fold.

    `fit` is called with the candidate, seconds and a number of rows; `average` builds an ensemble from the models
    of its members. The outcome is noted on the leaderboard.
    """
    best = board.best
    models = [_fit_to_all(one, board, n_rows, budget, fit) for one, _ in best.members or [(best, 1.0)]]
    if not any(model is None for model in models):
        return models[0] if average is None or not best.members else average(best, models)
    best.note = f"{best.note}; " if best.note else ""
    best.note += "model of the first fold, because of the time limit"
    return best.model


def _fit_to_all(
    entry: Entry, board: Leaderboard, n_rows: int, budget: Budget, fit: Callable[[Candidate, float, int], Any]
) -> Any:
    """Fit a candidate to all rows, or to as many as time allows; return None if there is too little."""
    # After Ctrl-C only short fits are allowed.
    left = min(budget.left, _AFTER_CTRL_C) if board.interrupted else budget.left
    rows, needed = budget.whole, budget.last_fit_of(entry, n_rows)
    if entry.rows is not None:
        rows = min(max(affordable(max(entry.seconds), entry.rows, 0.8 * left), entry.rows), budget.whole)
    if entry.candidate.stops_early and not board.interrupted:
        needed = min(needed, left)
    if needed > max(left, 0.5):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return fit(entry.candidate, max(left, 0.5), rows)
    except TimeLimitError:
        return None
    except KeyboardInterrupt:
        board.interrupted = True
        return None
