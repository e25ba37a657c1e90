"""Environments for `learn`: processes of this module, and those of Gymnasium by name."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from summula.core.errors import ParameterError
from summula.mdp.markov import MDP

__all__ = ["as_environment"]


def as_environment(env: Any) -> Any:
    """Return an object with methods `reset` and `step` for a process, the name of an environment, or such an object."""
    if isinstance(env, MDP):
        return _Simulated(env)
    env = _made(env) if isinstance(env, str) else env
    if not (callable(getattr(env, "reset", None)) and callable(getattr(env, "step", None))):
        raise ParameterError(
            "env must be an object with Gymnasium's methods `reset` and `step`, the name of one of its environments, "
            f"or an MDP; got {env!r}."
        )
    return env


class _Simulated:
    """Environment whose states are drawn from a process, starting in state 0."""

    def __init__(self, mdp: MDP) -> None:
        self.observation_space, self.action_space = SimpleNamespace(n=mdp.n_states), SimpleNamespace(n=mdp.n_actions)
        self._process = mdp._process
        if not (self._process.table > -np.inf).all():
            raise ParameterError(
                "learn needs a process with every action available in every state: give the others a low reward."
            )

    def reset(self, seed: int) -> tuple[int, dict[str, Any]]:
        self._rng, self._state = np.random.default_rng(seed), 0
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        process = self._process
        row = self._state * process.n_actions + action
        here = slice(process.P.indptr[row], process.P.indptr[row + 1])
        u = self._rng.random() - process.ending[row]
        if u < 0 or here.start == here.stop:
            return self._state, float(process.r[row]) if process.rewards is None else 0.0, True, False, {}
        k = int(np.searchsorted(np.cumsum(process.P.data[here]), u, side="right"))
        place = min(here.start + k, here.stop - 1)
        self._state = int(process.P.indices[place])
        return (
            self._state,
            float(process.r[row] if process.rewards is None else process.rewards[place]),
            False,
            False,
            {},
        )


def _made(name: str) -> Any:
    """Return an environment of Gymnasium."""
    try:
        import gymnasium
    except ImportError:
        raise ParameterError(
            f"The environment {name!r} needs Gymnasium: install it with `pip install gymnasium`, or pass an object "
            "with methods `reset` and `step`."
        ) from None
    try:
        return gymnasium.make(name)
    except gymnasium.error.Error as error:
        raise ParameterError(f"Gymnasium has no environment {name!r}: {' '.join(str(error).split())}") from None
