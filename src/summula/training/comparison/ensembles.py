"""A weighted average of the best candidates, as another candidate.

With p_m the out-of-fold predictions of candidate m, the ensemble predicts sum over m of w_m p_m. The weights are found
by greedy selection with replacement (Caruana et al., 2004): each of 20 steps adds the candidate that minimises the
loss, and the best of these averages is used. The loss is the log loss for classes, or the metric for numbers.

In the comparison, the weights for a fold are fitted on the other folds, so that no row is evaluated with weights that
depend on it. The ensemble ranks first only if it is better than the best candidate by more than the standard error of
the difference over the folds, and if there is time to refit its members; otherwise the simpler model is preferred.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.training.comparison.candidates import ENSEMBLE, Candidate
from summula.training.comparison.leaderboard import Entry, Leaderboard
from summula.training.comparison.metrics import METRICS, Evaluation, Evaluator, LeftOut

__all__ = ["add_ensemble", "averaged", "greedy_weights", "out_of_fold"]

Array = NDArray[Any]

_STEPS = 20
_ROUNDING = 1e-12
_MEMBERS = 5  # maximum number of members
_ROWS = 5_000  # per fold, for fitting the weights


def add_ensemble(
    board: Leaderboard, evaluator: Evaluator, average: Callable[[Entry, Sequence[Any]], Any], left: float
) -> None:
    """Add an ensemble of the best candidates to a leaderboard, if there are enough folds and time.

    Parameters
    ----------
    board : Leaderboard
    evaluator : Evaluator
    average : callable
        Returns the model of an ensemble, given its entry and the models of its members.
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
    loss = METRICS["log_loss"].loss if evaluator.classes is not None else evaluator.metric.loss
    assert loss is not None
    weights = greedy_weights(loss, folds)
    members = [(one, float(w)) for one, w in zip(able, weights, strict=True) if w > 0.0]
    if len(members) < 2 or 1.2 * sum(max(one.seconds) for one, _ in members) * _more(board) > left:
        return
    entry = _entry(evaluator, able, folds, loss, members)
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
    """Return the predictions of a candidate in each fold; None if they were not stored."""
    if not entry.finished(rounds):
        return None
    found = [one.left_out for one in entry.evaluations[:rounds]]
    kept = [one for one in found if one is not None]
    return kept if len(kept) == rounds else None


def out_of_fold(entry: Entry, rounds: int) -> list[LeftOut] | None:
    """Return the predictions of a candidate or an ensemble in each fold; None if they were not stored."""
    if not entry.members:
        return _predictions(entry, rounds)
    own = [_predictions(one, rounds) for one, _ in entry.members]
    kept = [one for one in own if one is not None]
    weights = np.array([weight for _, weight in entry.members])
    return [averaged(weights, fold) for fold in zip(*kept, strict=True)] if len(kept) == len(own) else None


def greedy_weights(loss: Callable[[Array, Array], Array], folds: Sequence[Sequence[LeftOut]]) -> Array:
    """Fit weights of candidates to their predictions in some folds.

    Parameters
    ----------
    loss : callable
        (y, predictions) -> one loss per row.
    folds : sequence of sequences of LeftOut
        By candidate and fold; the rows of a fold are the same for all candidates.

    Returns
    -------
    ndarray of shape (n_candidates,)
        Nonnegative, with sum 1.
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
        if losses[best] < smallest * (1.0 - _ROUNDING):  # (adding the same candidate again has no effect)
            smallest, found = losses[best], counts / step
    return np.asarray(found)


def averaged(weights: Array, outputs: Sequence[LeftOut]) -> LeftOut:
    """Return the weighted average of predictions for the same rows."""
    total: Any = sum(weight * one.output for weight, one in zip(weights, outputs, strict=True) if weight > 0.0)
    return LeftOut(outputs[0].y, total)


def _entry(
    evaluator: Evaluator,
    able: list[Entry],
    folds: list[list[LeftOut]],
    loss: Callable[[Array, Array], Array],
    members: list[tuple[Entry, float]],
) -> Entry:
    """Return the ensemble as a candidate evaluated in every fold, with weights fitted on the other folds."""
    evaluations: list[Evaluation] = []
    for k in range(len(folds[0])):
        others = [[fold for place, fold in enumerate(own) if place != k] for own in folds]
        weights = greedy_weights(loss, others)
        evaluations.append(
            evaluator.evaluate_predictions(averaged(weights, [own[k] for own in folds]))._replace(left_out=None)
        )
    kind = able[0].candidate.kind
    formula = " + ".join(f"{weight:.2f} {one.name}" for one, weight in members)
    entry = Entry(Candidate(ENSEMBLE, "", kind), evaluations=evaluations, members=members, note=formula)
    entry.seconds = [sum(one.seconds[k] for one, _ in members) for k in range(len(evaluations))]
    entry.spent = [sum(one.spent[k] for one, _ in members) for k in range(len(evaluations))]
    return entry


def _place(board: Leaderboard, entry: Entry) -> None:
    """Place the ensemble first if it is clearly the best, otherwise below the best candidate."""
    best, n = board.best, board.rounds
    better = np.subtract(best.risks[:n], entry.risks[:n])
    if better.mean() > better.std(ddof=1) / np.sqrt(n):
        board.entries.insert(0, entry)
        return
    if better.mean() > 0.0:
        entry.note += f"; not clearly better than {best.name}, which is simpler"
    place = next((k for k, one in enumerate(board.entries) if k and not one.mean(n) <= entry.mean(n)), None)
    board.entries.insert(len(board.entries) if place is None else place, entry)
