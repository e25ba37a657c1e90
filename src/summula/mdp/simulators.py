"""Simulators: callables (states, actions, rng) -> (next_states, rewards, terminated) on batches, checked."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import DataError, ParameterError
from summula.core.estimator.input.argument_values import takes_arguments

__all__ = ["Outcome", "check_actions", "check_simulator", "run"]

Array = NDArray[np.float64]


class Outcome(NamedTuple):
    """Next states (n, d), rewards (n,) and whether the process ended (n,)."""

    states: Array
    rewards: Array
    terminated: NDArray[np.bool_]


def check_simulator(simulator: Any, function: str) -> None:
    """Raise unless the simulator can be called with three arguments."""
    if not takes_arguments(simulator, 3):
        raise ParameterError(
            f"The 'simulator' parameter of {function} must be a function (states, actions, rng) -> (next_states, "
            f"rewards, terminated), not {simulator!r}."
        )


def check_actions(actions: Any) -> Any:
    """Return the possible actions as an array, one per row or entry."""
    given = np.asarray(actions)
    if given.ndim not in (1, 2) or not len(given):
        raise ParameterError("The actions must be an array of at least one action, one per entry or row.")
    return given


def run(simulator: Any, states: Array, actions: Any, rng: np.random.Generator) -> Outcome:
    """Call the simulator and check what it returns."""
    returned = simulator(states, actions, rng)
    try:
        after, rewards, terminated = returned
    except (TypeError, ValueError):
        raise DataError("The simulator must return a tuple (next_states, rewards, terminated).") from None
    n, d = states.shape
    after = np.asarray(after, np.float64)
    after = after[:, None] if after.ndim == 1 and d == 1 else after
    if after.shape != (n, d):
        raise DataError(f"The simulator returned next states of shape {after.shape} for states of shape {(n, d)}.")
    try:
        rewards = np.broadcast_to(np.asarray(rewards, np.float64), (n,))
        ends = np.broadcast_to(np.asarray(terminated, bool), (n,))
    except ValueError:
        raise DataError(f"The simulator must return one reward and one bool for each of the {n} states.") from None
    bad = ~np.isfinite(rewards) | ~(np.isfinite(after).all(axis=1) | ends)
    if bad.any():
        i = int(np.argmax(bad))
        raise DataError(
            f"The simulator returned a next state or reward that is not finite, for state {states[i].tolist()} and "
            f"action {np.asarray(actions)[i].tolist()}; return terminated=True where there is no next state."
        )
    return Outcome(np.where(ends[:, None], states, after), rewards, ends)
