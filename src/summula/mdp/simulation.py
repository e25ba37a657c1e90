"""Simulated episodes of a Markov decision process, and their returns.

    return of an episode  =  R_0 + gamma R_1 + gamma^2 R_2 + ...                                                     (1)

All episodes are drawn at once, step by step. The next state inverts the distribution function of its row: with C the
cumulative sum of all stored probabilities, it is the first entry of the row where C exceeds C_before + u, u uniform.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import DataError
from summula.core.estimator.parameters import real
from summula.mdp.process import Process, as_numbers
from summula.optimize.problems.objective import check_arguments

__all__ = ["Trajectories", "discounted_return", "simulate"]

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]


def discounted_return(rewards: Any, discount: float) -> Any:
    """Compute the discounted return of rewards: the sum of discount^t R_t.

    Parameters
    ----------
    rewards : array-like of shape (n_steps,) or (n_episodes, n_steps)
        Rewards in the order of time.
    discount : float in [0, 1]

    Returns
    -------
    float, or ndarray of shape (n_episodes,)

    Examples
    --------
    >>> from summula.mdp import discounted_return
    >>> discounted_return([1.0, 2.0, 4.0], 0.5)
    3.0
    """
    given = as_numbers(rewards, "rewards")
    if given.ndim not in (1, 2):
        raise DataError(f"rewards has shape {given.shape}; discounted_return needs one row of rewards per episode.")
    check_arguments("discounted_return", discount=(discount, (real(0.0, 1.0),)))
    totals = given @ float(discount) ** np.arange(given.shape[-1])
    return float(totals) if given.ndim == 1 else totals


@dataclass(frozen=True)
class Trajectories:
    """Episodes of a Markov decision process. Iterating yields (states, actions, rewards, terminated) of each.

    Attributes
    ----------
    states : ndarray of shape (n_episodes, n_steps + 1)
    actions : ndarray of shape (n_episodes, n_steps)
    rewards : ndarray of shape (n_episodes, n_steps)
        Zero after the end of an episode.
    lengths : ndarray of shape (n_episodes,)
        Number of steps of each episode; what comes later is padding (-1 for states and actions).
    terminated : ndarray of shape (n_episodes,)
        Whether the process ended, rather than reaching the maximum number of steps.
    discount : float
    """

    states: Numbers = field(repr=False)
    actions: Numbers = field(repr=False)
    rewards: Array = field(repr=False)
    lengths: Numbers
    terminated: NDArray[np.bool_]
    discount: float

    @property
    def returns(self) -> Array:
        """Discounted return of each episode."""
        return np.asarray(discounted_return(self.rewards, self.discount))

    def __len__(self) -> int:
        return len(self.lengths)

    def __iter__(self) -> Iterator[tuple[Numbers, Numbers, Array, bool]]:
        for e, n in enumerate(self.lengths.tolist()):
            yield self.states[e, : n + 1], self.actions[e, :n], self.rewards[e, :n], bool(self.terminated[e])


def simulate(process: Process, policy: Any, states: Numbers, n_steps: int, rng: np.random.Generator) -> Trajectories:
    """Draw one episode from each initial state with a checked policy."""
    E, A = len(states), process.n_actions
    visited = np.full((E, n_steps + 1), -1, np.int64)
    acted = np.full((E, n_steps), -1, np.int64)
    received, lengths = np.zeros((E, n_steps)), np.full(E, n_steps)
    ended = np.zeros(E, bool)
    cumulated = np.cumsum(process.P.data)
    before = np.concatenate([[0.0], cumulated])[process.P.indptr]
    cumulated_policy = None if policy.ndim == 1 else np.cumsum(policy, axis=1)
    visited[:, 0], live = states, np.arange(E)
    for t in range(n_steps):
        s = visited[live, t]
        if cumulated_policy is None:
            a = policy[s]
        else:
            a = _drawn_actions(cumulated_policy[s], policy[s], rng.random(len(s)))
        row, u = s * A + a, rng.random(len(s))
        ends = u < process.ending[row]
        goes = ~ends
        place = _drawn_entries(process, row[goes], u[goes], cumulated, before)
        acted[live, t] = a
        received[live[goes], t] = process.r[row[goes]] if process.rewards is None else process.rewards[place]
        # Rewards that depend on the next state are 0 if there is none.
        received[live[ends], t] = process.r[row[ends]] if process.rewards is None else 0.0
        visited[live[goes], t + 1] = process.P.indices[place]
        ended[live[ends]], lengths[live[ends]] = True, t + 1
        live = live[~ends]
        if not len(live):
            break
    longest = int(lengths.max(initial=0))
    return Trajectories(
        visited[:, : longest + 1], acted[:, :longest], received[:, :longest], lengths, ended, process.gamma
    )


def _drawn_actions(cumulated: Array, table: Array, u: Array) -> Numbers:
    """The first action whose cumulative probability exceeds u; never one of probability 0."""
    a = (cumulated <= u[:, None]).sum(axis=1)
    last = table.shape[1] - 1 - np.argmax(table[:, ::-1] > 0, axis=1)
    return np.asarray(np.minimum(a, last), np.int64)


def _drawn_entries(process: Process, row: Numbers, u: Array, cumulated: Array, before: Array) -> Numbers:
    """The stored entry of each row where the cumulative sum of probabilities exceeds u - e(s, a)."""
    place = np.searchsorted(cumulated, before[row] + (u - process.ending[row]), side="right")
    return np.asarray(np.clip(place, process.P.indptr[row], process.P.indptr[row + 1] - 1), np.int64)
