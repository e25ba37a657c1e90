"""Estimation of a Markov decision process from episodes: sums of counts.

    P(s' | s, a) = #(s, a, s') / #(s, a),      R(s, a) = (sum of rewards after (s, a)) / #(s, a)                  (1)

and P = 1 / S where #(s, a) = 0. Counts and sums of rewards are additive: episodes may be added one by one, counts
of different episodes merged, and old episodes subtracted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from summula.core.docstrings import inherit_docs
from summula.core.errors import DataError, ParameterError
from summula.core.estimator.parameters import boolean, integer, one_of, real
from summula.mdp.markov import MDP
from summula.mdp.process import as_numbers
from summula.optimize.problems.objective import check_arguments

__all__ = ["TransitionCounts"]

Array = NDArray[np.float64]

_MOST_ENTRIES = 200_000_000  # maximum number of entries of uniform rows


class TransitionCounts:
    """Counts of transitions and sums of rewards.

    Parameters
    ----------
    n_states, n_actions : int

    Attributes
    ----------
    counts : csr_matrix of shape (S A, S)
        Number of times each state followed action a in state s (row s A + a).
    ended : ndarray of shape (S, A)
        Number of times the process ended instead.
    reward_sums : ndarray of shape (S, A)

    Examples
    --------
    >>> from summula.mdp import TransitionCounts
    >>> monday = TransitionCounts(2, 1).add([0, 0, 1], [0, 0, 0], [1.0, 1.0, 0.0], [0, 1, 1])
    >>> tuesday = TransitionCounts(2, 1).add([0, 0], [0, 0], [1.0, 1.0], [1, 1])
    >>> monday.merge(tuesday).mdp(discount=0.9).transitions.toarray()
    array([[0.25, 0.75],
           [0.  , 1.  ]])
    """

    def __init__(self, n_states: int, n_actions: int) -> None:
        check_arguments("TransitionCounts", n_states=(n_states, (integer(1),)), n_actions=(n_actions, (integer(1),)))
        self.n_states, self.n_actions = int(n_states), int(n_actions)
        self.counts = sparse.csr_matrix((n_states * n_actions, n_states))
        self.ended = np.zeros((n_states, n_actions))
        self.reward_sums = np.zeros((n_states, n_actions))

    @classmethod
    def of(cls, trajectories: Any, n_states: int | None = None, n_actions: int | None = None) -> TransitionCounts:
        """Return the counts of trajectories, in the forms of `MDP.from_trajectories`."""
        steps = [_steps(one, number) for number, one in enumerate(_episodes(trajectories))]
        if not steps:
            raise DataError("There are no trajectories; pass at least one episode.")
        s, a, r, after, ends = (np.concatenate(column) for column in zip(*steps, strict=True))
        if not len(s):
            raise DataError("The trajectories have no steps; pass at least one with an action.")
        if n_states is None:
            n_states = int(max(s.max(), after[~ends].max(initial=0))) + 1
        return cls(n_states, int(a.max()) + 1 if n_actions is None else n_actions).add(s, a, r, after, ends)

    def add(
        self, states: Any, actions: Any, rewards: Any, next_states: Any, terminated: Any = False
    ) -> TransitionCounts:
        """Add transitions, one per entry of the arrays; next states of `terminated` ones are ignored."""
        S, A = self.n_states, self.n_actions
        r = as_numbers(rewards, "rewards")
        n = r.shape
        if r.ndim != 1 or np.shape(states) != n or np.shape(actions) != n or np.shape(next_states) != n:
            raise DataError("states, actions, rewards and next_states must be arrays of equal length.")
        if not np.isfinite(r).all():
            raise DataError(f"The reward of transition {int(np.argmin(np.isfinite(r)))} is missing or infinite.")
        ends = np.broadcast_to(np.asarray(terminated, bool), n)
        s, a = _numbers(states, S, "state"), _numbers(actions, A, "action")
        after = _numbers(np.where(ends, 0, next_states), S, "next state")
        rows = s * A + a
        self.counts = self.counts + sparse.csr_matrix((1.0 - ends, (rows, after)), self.counts.shape)
        self.counts.eliminate_zeros()
        self.ended += np.bincount(rows, ends, S * A).reshape(S, A)
        self.reward_sums += np.bincount(rows, r, S * A).reshape(S, A)
        return self

    def merge(self, other: TransitionCounts) -> TransitionCounts:
        """Add the counts of other episodes."""
        return self._combine(other, 1.0)

    def forget(self, other: TransitionCounts) -> TransitionCounts:
        """Subtract the counts of episodes that were added before."""
        if (self.counts - other.counts).min() < 0 or (self.ended - other.ended).min() < 0:
            raise DataError("These episodes were not all added before, so they cannot be subtracted.")
        return self._combine(other, -1.0)

    def _combine(self, other: TransitionCounts, sign: float) -> TransitionCounts:
        if other.counts.shape != self.counts.shape:
            raise DataError(
                f"The counts are of {self.n_states} and {other.n_states} states, {self.n_actions} and "
                f"{other.n_actions} actions; create both with the same n_states and n_actions."
            )
        self.counts = self.counts + sign * other.counts
        self.counts.eliminate_zeros()
        self.ended = self.ended + sign * other.ended
        self.reward_sums = self.reward_sums + sign * other.reward_sums
        return self

    @property
    def visits(self) -> Array:
        """Number of times each action was taken in each state, of shape (S, A)."""
        taken = np.asarray(self.counts.sum(axis=1)).reshape(self.n_states, self.n_actions)
        return np.asarray(taken + self.ended)

    @inherit_docs(MDP.from_trajectories)
    def mdp(
        self,
        discount: float,
        *,
        unseen: str = "uniform",
        unseen_reward: float = 0.0,
        state_rewards: bool = False,
    ) -> MDP:
        """Return the estimated process (1)."""
        check_arguments(
            "mdp",
            unseen=(unseen, (one_of("uniform", "stay", "unavailable"),)),
            unseen_reward=(unseen_reward, (real(),)),
            state_rewards=(state_rewards, (boolean,)),
        )
        visits = self.visits
        tried = visits > 0
        sums, numbers = self.reward_sums, visits
        if state_rewards:
            sums, numbers = (np.broadcast_to(x.sum(axis=1, keepdims=True), x.shape) for x in (sums, numbers))
        r = np.where(numbers > 0, sums / np.maximum(numbers, 1.0), unseen_reward)
        share = sparse.diags(np.where(tried, 1.0 / np.maximum(visits, 1.0), 0.0).ravel())
        P = share @ self.counts + self._unseen_rows(~tried.ravel(), unseen)
        available = None
        if unseen == "unavailable":
            available = tried | ~tried.any(axis=1, keepdims=True)  # a state that was never left keeps all actions
        return MDP(P, r, discount, available=available, termination=self.ended / np.maximum(visits, 1.0))

    def _unseen_rows(self, untried: NDArray[np.bool_], unseen: str) -> Any:
        S, A = self.n_states, self.n_actions
        rows = np.flatnonzero(untried)
        if unseen != "uniform":
            return sparse.csr_matrix((np.ones(len(rows)), (rows, rows // A)), (S * A, S))
        if len(rows) * S > _MOST_ENTRIES:
            raise ParameterError(
                f"{len(rows)} untried actions with {S} possible next states each need too much memory: use "
                "unseen='stay' or unseen='unavailable'."
            )
        lengths = np.where(untried, S, 0)
        after = np.tile(np.arange(S), len(rows))
        return sparse.csr_matrix(
            (np.full(len(after), 1.0 / S), after, np.concatenate([[0], np.cumsum(lengths)])), (S * A, S)
        )


def _episodes(trajectories: Any) -> list[Any]:
    if not isinstance(trajectories, Iterable):
        raise DataError("trajectories must be an iterable of episodes (states, actions, rewards).")
    return list(trajectories)


def _steps(episode: Any, number: int) -> tuple[Any, ...]:
    """Return an episode as arrays: states, actions, rewards, next states, and whether it ended there."""
    try:
        states, actions, rewards, *rest = episode
    except (TypeError, ValueError):
        raise DataError(f"Episode {number} is not a tuple (states, actions, rewards).") from None
    s, a, r = np.asarray(states), np.asarray(actions), as_numbers(rewards, f"rewards of episode {number}")
    if not s.ndim == a.ndim == r.ndim == 1:
        raise DataError(
            f"Episode {number} is not a tuple of three arrays (states, actions, rewards); pass a list of episodes, "
            "also if there is only one."
        )
    ended, n = bool(rest[0]) if rest else False, len(a)
    if len(r) != n or not (len(s) == n + 1 or (ended and len(s) == n)):
        raise DataError(
            f"Episode {number} has {len(s)} states, {n} actions and {len(r)} rewards; it needs n + 1 states for "
            "n actions."
        )
    after = np.concatenate([s[1 : n + 1], np.zeros(n - len(s[1 : n + 1]), s.dtype)])
    ends = np.zeros(n, bool)
    ends[n - 1 :] = ended
    return s[:n], a, r, after, ends


def _numbers(values: Any, size: int, what: str) -> NDArray[np.int64]:
    given = np.asarray(values)
    if given.size and given.dtype.kind not in "iu":
        raise DataError(f"The {what} of a transition must be an integer; got an array of type {given.dtype}.")
    outside = np.flatnonzero((given < 0) | (given >= size))
    if len(outside):
        raise DataError(f"The {what} of transition {outside[0]} is {given[outside[0]]}; it must be in 0 to {size - 1}.")
    return given.astype(np.int64)
