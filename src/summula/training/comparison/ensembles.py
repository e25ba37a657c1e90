"""An average of the best candidates, which joins the comparison as one more candidate.

With p_m the predictions of candidate m for rows left out of its fits, the ensemble predicts sum over m of w_m p_m. The
weights are found greedily with replacement (Caruana and others, 2004): in each of 20 steps the candidate is added whose
addition leaves the smallest loss, and the best of these averages is taken. The loss is the log loss of classes, or the
metric of numbers.

In the comparison, the weights for a fold are found on the other folds, so that no row is judged by weights it had a
part in. The ensemble comes first only where it is better than the best candidate by more than the standard error of
the difference over the folds, and where there is time to fit its members once more; otherwise the simpler model does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.training.comparison.candidates import ENSEMBLE, Candidate
from summula.training.comparison.leaderboard import Entry, Leaderboard
from summula.training.comparison.metrics import METRICS, Judge, Judgement, LeftOut

__all__ = ["add_ensemble", "averaged", "greedy_weights", "out_of_fold"]

Array = NDArray[Any]

_STEPS = 20
_ROUNDING = 1e-12
_MEMBERS = 5  # candidates that weights are sought for
_ROWS = 5_000  # per fold, that weights are found on


def add_ensemble(board: Leaderboard, judge: Judge, average: Callable[[Entry, Sequence[Any]], Any], left: float) -> None:
    """Put an ensemble of the best candidates on a leaderboard, where there are enough folds and time.

    Parameters
    ----------
    board : Leaderboard
    judge : Judge
    average : callable
        Makes the model of an ensemble, given its entry and the models of its members.
    left : float
        Seconds left for fitting the members to all rows.
    """
    if board.interrupted or board.rounds < 2:
        return
    able = [one for one in board.entries if one.name != "baseline" and _predictions(one, board.rounds) is not None]
    able = able[:_MEMBERS]
    if len(able) < 2 or able[0] is not board.best:
        return
    folds = [_predictions(one, board.rounds) or [] for one in able]
    loss = METRICS["log_loss"].loss if judge.classes is not None else judge.metric.loss
    assert loss is not None
    weights = greedy_weights(loss, folds)
    members = [(one, float(w)) for one, w in zip(able, weights, strict=True) if w > 0.0]
    if len(members) < 2 or 1.2 * sum(max(one.seconds) for one, _ in members) * _more(board) > left:
        return
    entry = _entry(judge, able, folds, loss, members)
    if any(not np.array_equal(_classes(one), _classes(able[0])) for one, _ in members):
        return
    entry.model = average(entry, [one.model for one, _ in members])
    _place(board, entry)


def _more(board: Leaderboard) -> float:
    """Return the ratio of the times of a fit to all folds and one without a fold."""
    return board.rounds / (board.rounds - 1)


def _classes(entry: Entry) -> Any:
    return getattr(entry.model, "classes_", None)


def _predictions(entry: Entry, rounds: int) -> list[LeftOut] | None:
    """Return the predictions of a candidate in each fold; None if they were not kept."""
    if not entry.finished(rounds):
        return None
    found = [one.left_out for one in entry.judged[:rounds]]
    kept = [one for one in found if one is not None]
    return kept if len(kept) == rounds else None


def out_of_fold(entry: Entry, rounds: int) -> list[LeftOut] | None:
    """Predictions of a candidate or an ensemble in each fold; None where they were not kept."""
    if not entry.members:
        return _predictions(entry, rounds)
    own = [_predictions(one, rounds) for one, _ in entry.members]
    kept = [one for one in own if one is not None]
    weights = np.array([weight for _, weight in entry.members])
    return [averaged(weights, fold) for fold in zip(*kept, strict=True)] if len(kept) == len(own) else None


def greedy_weights(loss: Callable[[Array, Array], Array], folds: Sequence[Sequence[LeftOut]]) -> Array:
    """Weights of candidates by their predictions in some folds.

    Parameters
    ----------
    loss : callable
        (y, predictions) -> one loss per row.
    folds : sequence of sequences of LeftOut
        By candidate and fold; the rows of a fold are the same for all candidates.

    Returns
    -------
    ndarray of shape (n_candidates,)
        Not negative; they add up to 1.
    """
    y = np.concatenate([fold.y[:_ROWS] for fold in folds[0]])
    outputs = [np.concatenate([fold.output[:_ROWS] for fold in own]) for own in folds]
    counts, total = np.zeros(len(outputs)), np.zeros_like(outputs[0])
    smallest, found = np.inf, counts
    for step in range(1, _STEPS + 1):
        losses = [float(np.mean(loss(y, (total + one) / step))) for one in outputs]
        best = int(np.argmin(losses))
        total = total + outputs[best]
        counts[best] += 1
        if losses[best] < smallest * (1.0 - _ROUNDING):  # (the same candidate once more changes nothing)
            smallest, found = losses[best], counts / step
    return np.asarray(found)


def averaged(weights: Array, outputs: Sequence[LeftOut]) -> LeftOut:
    """The weighted average of predictions for the same rows."""
    total: Any = sum(weight * one.output for weight, one in zip(weights, outputs, strict=True) if weight > 0.0)
    return LeftOut(outputs[0].y, total)


def _entry(
    judge: Judge,
    able: list[Entry],
    folds: list[list[LeftOut]],
    loss: Callable[[Array, Array], Array],
    members: list[tuple[Entry, float]],
) -> Entry:
    """The ensemble as a candidate that was judged in every fold, with weights from the other folds."""
    judged: list[Judgement] = []
    for k in range(len(folds[0])):
        others = [[fold for place, fold in enumerate(own) if place != k] for own in folds]
        weights = greedy_weights(loss, others)
        judged.append(judge.judged(averaged(weights, [own[k] for own in folds]))._replace(left_out=None))
    kind = able[0].candidate.kind
    formula = " + ".join(f"{weight:.2f} {one.name}" for one, weight in members)
    entry = Entry(Candidate(ENSEMBLE, "", kind), judged=judged, members=members, note=formula)
    entry.seconds = [sum(one.seconds[k] for one, _ in members) for k in range(len(judged))]
    entry.spent = [sum(one.spent[k] for one, _ in members) for k in range(len(judged))]
    return entry


def _place(board: Leaderboard, entry: Entry) -> None:
    """Put the ensemble first where it is clearly the best, otherwise after the best at the earliest."""
    best, n = board.best, board.rounds
    better = np.subtract(best.risks[:n], entry.risks[:n])
    if better.mean() > better.std(ddof=1) / np.sqrt(n):
        board.entries.insert(0, entry)
        return
    if better.mean() > 0.0:
        entry.note += f"; not clearly better than {best.name}, which is simpler"
    place = next((k for k, one in enumerate(board.entries) if k and not one.mean(n) <= entry.mean(n)), None)
    board.entries.insert(len(board.entries) if place is None else place, entry)
