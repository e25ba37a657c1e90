"""Act, learn, plan: estimate a process from episodes, and act on the plan for the estimate.

repeat:  act for some episodes, greedily for the current plan (ties at random), or at random
         add the transitions to the counts, estimate P and R                           (`counts.py`)
         plan for the estimated process, starting with the values of the previous plan (warm start)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import DataError, ParameterError
from summula.core.estimator.parameters import Allowed, boolean, integer, none, one_of, random_state, real
from summula.mdp.counts import TransitionCounts
from summula.mdp.environments import as_environment
from summula.mdp.markov import MDP
from summula.mdp.process import BELOW_ONE
from summula.mdp.results import MDPSolution
from summula.mdp.solvers.bounds import Clock
from summula.optimize.problems.objective import check_arguments

__all__ = ["Learned", "learn"]

_FUNCTION = Allowed(callable, "a function")


@dataclass(frozen=True)
class Learned:
    """Result of `learn`: a policy and the estimated process.

    Attributes
    ----------
    policy : ndarray of shape (S,)
        Best action in each state for the estimated process.
    solution : MDPSolution
        The last plan.
    mdp : MDP
        The estimated process.
    counts : TransitionCounts
        Its sums; pass them to `learn` to continue.
    returns : ndarray of shape (n_episodes,)
        Discounted return of each episode.
    lengths : ndarray of shape (n_episodes,)
        Number of steps of each episode.
    plan_steps : tuple of int
        Number of steps of the solver in each plan.
    """

    policy: NDArray[np.int64]
    solution: MDPSolution = field(repr=False)
    mdp: MDP
    counts: TransitionCounts = field(repr=False)
    returns: NDArray[np.float64] = field(repr=False)
    lengths: NDArray[np.int64] = field(repr=False)
    plan_steps: tuple[int, ...] = field(repr=False)

    def plot(self, *, window: int | None = None, ax: Any = None) -> Any:
        """Plot the discounted returns of the episodes, and their moving average.

        Parameters
        ----------
        window : int, optional
            Number of episodes in the moving average; by default a tenth of all.
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes
        """
        from summula.plotting import episode_returns

        return episode_returns(self.returns, window=window, ax=ax)


def learn(
    env: Any,
    discount: float,
    *,
    n_episodes: int = 100,
    max_steps: int = 1_000,
    plan_every: int = 1,
    epsilon: float = 0.1,
    encode: Callable[[Any], int] | None = None,
    counts: TransitionCounts | None = None,
    max_time: float | None = None,
    random_state: Any = None,
    **model: Any,
) -> Learned:
    """Learn to act in an environment: act, estimate its process from counts, plan, repeat.

    Parameters
    ----------
    env : environment, str or MDP
        With Gymnasium's methods `reset(seed=) -> (observation, info)` and `step(action) -> (observation, reward,
        terminated, truncated, info)`; actions and observations are integers, counted from the `start` of their spaces
        if these have one. Any object with these methods is accepted. A name, such as "FrozenLake-v1", is that of an
        environment of Gymnasium (extra `rl`). Episodes of an `MDP` start in state 0.
    discount : float in [0, 1)
    n_episodes : int, default=100
    max_steps : int, default=1_000
        Maximum number of steps of an episode.
    plan_every : int, default=1
        Number of episodes between plans.
    epsilon : float in [0, 1], default=0.1
        Probability of a random action at each step.
    encode : callable, optional
        Function of an observation that returns the number of its state, such as `grid.cell` of a `Grid`.
    counts : TransitionCounts, optional
        Counts of earlier episodes, which are updated, and keep all steps before Ctrl-C. Needed if the environment does
        not state the numbers of its states and actions as `observation_space.n` and `action_space.n`.
    max_time : float, optional
        Time limit in seconds.
    random_state : int, Generator or None
        Seed for exploration and for the environment.
    **model
        Options of `TransitionCounts.mdp`: `unseen`, `unseen_reward`, `state_rewards`.

    Examples
    --------
    A corridor of five rooms; the reward is in the last one.

    >>> from summula.mdp import TransitionCounts, learn
    >>> class Corridor:
    ...     def reset(self, seed=None):
    ...         self.room = 0
    ...         return self.room, {}
    ...
    ...     def step(self, action):
    ...         self.room = max(0, self.room + (1 if action == 1 else -1))
    ...         return self.room, float(self.room == 4), self.room == 4, False, {}
    >>> learned = learn(Corridor(), 0.9, counts=TransitionCounts(5, 2), n_episodes=20, random_state=0)
    >>> learned.policy[:4].tolist(), learned.solution.values[:4].round(3).tolist()
    ([1, 1, 1, 1], [0.729, 0.81, 0.9, 1.0])
    """
    check_arguments("learn", discount=(discount, (BELOW_ONE,)))
    _check(n_episodes, max_steps, plan_every, epsilon, encode, max_time, random_state, model)
    env = as_environment(env)
    counts = _sized(env) if counts is None else counts
    from summula.mdp.markov import random_generator

    rng, clock = random_generator(random_state), Clock(max_time)
    state_of = _Encoder(encode, counts.n_states, _first(env, "observation_space") if encode is None else 0)
    mdp = counts.mdp(discount, **model)
    solution = mdp.solve()
    returns: list[float] = []
    lengths: list[int] = []
    plan_steps = [solution.n_steps]
    for episode in range(1, n_episodes + 1):
        total, steps = _episode(env, state_of, counts, _Greedy(solution), (discount, epsilon, max_steps), rng)
        returns.append(total)
        lengths.append(steps)
        last = episode == n_episodes or clock.is_over
        if episode % plan_every == 0 or last:
            mdp = counts.mdp(discount, **model)
            solution = mdp.solve(start=solution)
            plan_steps.append(solution.n_steps)
        if last:
            break
    return Learned(solution.policy, solution, mdp, counts, np.array(returns), np.array(lengths), tuple(plan_steps))


def _episode(
    env: Any, state_of: Any, counts: TransitionCounts, policy: Any, options: Any, rng: np.random.Generator
) -> tuple[float, int]:
    """Act for an episode and count its transitions, also if it is interrupted; return its return and length."""
    discount, epsilon, max_steps = options
    observation, _ = env.reset(seed=int(rng.integers(2**31 - 1)))
    s, total, weight, first = state_of(observation), 0.0, 1.0, _first(env, "action_space")
    steps: list[tuple[int, int, float, int, bool]] = []
    try:
        for _ in range(max_steps):
            a = int(rng.integers(counts.n_actions)) if rng.random() < epsilon else policy(s, rng)
            observation, reward, terminated, truncated, _ = env.step(a + first)
            after = s if terminated else state_of(observation)  # ignored if the process ends
            steps.append((s, a, float(reward), after, bool(terminated)))
            total, weight, s = total + weight * float(reward), weight * discount, after
            if terminated or truncated:
                break
    finally:
        if steps:
            counts.add(*(np.array(column) for column in zip(*steps, strict=True)))
    return total, len(steps)


class _Greedy:
    """The best action of a plan, chosen at random in case of ties."""

    def __init__(self, solution: MDPSolution) -> None:
        q = solution.q_values
        best = q.max(axis=1, keepdims=True)
        self._equal = q >= best - solution.gap - 1e-12 * np.abs(best)

    def __call__(self, state: int, rng: np.random.Generator) -> int:
        choices = np.flatnonzero(self._equal[state])
        return int(choices[0] if len(choices) == 1 else rng.choice(choices))


class _Encoder:
    """Map from an observation to a validated state number."""

    def __init__(self, encode: Callable[[Any], Any] | None, n_states: int, first: int) -> None:
        self._encode, self._n_states, self._first = encode, n_states, first

    def __call__(self, observation: Any) -> int:
        number = np.asarray(observation if self._encode is None else self._encode(observation))
        if number.size != 1 or number.dtype.kind not in "iu":
            raise DataError(
                f"The environment's observation {observation!r} is not a state number; pass encode=, a function that "
                "returns the number of its state, such as Grid(...).cell."
            )
        s = int(number.reshape(())) - self._first
        if not 0 <= s < self._n_states:
            raise DataError(f"The environment is in state {s}, outside of 0 to {self._n_states - 1}.")
        return s


def _first(env: Any, space: str) -> int:
    """Return the smallest number of a discrete space of Gymnasium, 0 unless it has a `start`."""
    return int(getattr(getattr(env, space, None), "start", 0))


def _sized(env: Any) -> TransitionCounts:
    try:
        return TransitionCounts(int(env.observation_space.n), int(env.action_space.n))
    except AttributeError:
        raise ParameterError(
            "The environment does not state its numbers of states and actions; pass counts=TransitionCounts(n_states, "
            "n_actions)."
        ) from None


def _check(n_episodes: Any, max_steps: Any, plan_every: Any, epsilon: Any, encode: Any, *others: Any) -> None:
    max_time, seed, model = others
    check_arguments(
        "learn",
        n_episodes=(n_episodes, (integer(1),)),
        max_steps=(max_steps, (integer(1),)),
        plan_every=(plan_every, (integer(1),)),
        epsilon=(epsilon, (real(0.0, 1.0),)),
        encode=(encode, (none, _FUNCTION)),
        max_time=(max_time, (none, real(0.0))),
        random_state=(seed, (random_state,)),
        unseen=(model.get("unseen", "uniform"), (one_of("uniform", "stay", "unavailable"),)),
        state_rewards=(model.get("state_rewards", False), (boolean,)),
    )
    unknown = set(model) - {"unseen", "unseen_reward", "state_rewards"}
    if unknown:
        raise ParameterError(f"learn has no parameter {sorted(unknown)[0]!r}.")
