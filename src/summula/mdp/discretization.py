"""Continuous states on a grid.

Each point of the grid becomes a state. The next state of a sample, x', is replaced by the nearest point, or by the
corners around it with the weights of multilinear interpolation: P(j | s, a) is the average weight of point j, which is
the backup of a value function that is interpolated between the points.                                            (1)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from summula.core.errors import DataError
from summula.core.estimator.parameters import integer, one_of, random_state
from summula.mdp.grids import Grid
from summula.mdp.markov import MDP, random_generator
from summula.mdp.simulators import check_actions, check_simulator, run
from summula.optimize.problems.objective import check_arguments

__all__ = ["Discretization", "discretize"]

Array = NDArray[np.float64]

_BATCH = 1 << 16  # rows per call of the simulator


@dataclass(frozen=True)
class Discretization:
    """A process with continuous states, on a grid.

    Attributes
    ----------
    mdp : MDP
        Its states are the points of the grid.
    grid : Grid
    actions : ndarray of shape (A,) or (A, k)
    interpolation : {"nearest", "multilinear"}
    """

    mdp: MDP
    grid: Grid
    actions: Any = field(repr=False)
    interpolation: str

    def values(self, solution: Any, states: Any) -> Array:
        """Return the values of a solution of `mdp` at any states."""
        if self.interpolation == "nearest":
            return np.asarray(solution.values[np.atleast_1d(self.grid.cell(states))])
        return self.grid.interpolate(solution.values, states)

    def act(self, solution: Any, states: Any) -> Any:
        """Return the action at any states: that of the nearest point, or that of the largest interpolated q-value."""
        if self.interpolation == "nearest":
            return self.actions[solution.policy[np.atleast_1d(self.grid.cell(states))]]
        # Minus infinity times a weight of 0 would be NaN.
        q = np.where(np.isfinite(solution.q_values), solution.q_values, -np.finfo(np.float64).max / 4)
        return self.actions[self.grid.interpolate(q, states).argmax(axis=1)]

    def plot(self, solution: Any = None, *, names: Any = None, ax: Any = None) -> Any:
        """Plot values and actions of states with one or two coordinates.

        Parameters
        ----------
        solution : MDPSolution, optional
            By default the last solution of `mdp`.
        names : sequence of str, optional
            Names of the coordinates.
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes
        """
        from summula.plotting import value_function

        found = getattr(self.mdp, "solution_", None) if solution is None else solution
        if found is None:
            raise DataError("There is no solution to plot yet: solve the process, discretization.mdp.solve().")
        labels = [str(np.asarray(a).tolist()) for a in self.actions]
        values, policy = found.values.reshape(self.grid.shape), found.policy.reshape(self.grid.shape)
        return value_function(self.grid.axes, values, policy, labels=labels, names=names, ax=ax)


def discretize(
    simulator: Any,
    grid: Any,
    actions: Any,
    discount: float,
    *,
    interpolation: str = "multilinear",
    n_samples: int = 1,
    random_state: Any = None,
) -> Discretization:
    """Approximate a process with continuous states by one whose states are the points of a grid.

    Parameters
    ----------
    simulator : callable
        (states, actions, rng) -> (next_states, rewards, terminated) on batches: states of shape (n, d), n actions.
    grid : Grid, or sequence of d arrays
        Points of the grid, by their coordinates along each axis. Next states outside of it are clipped.
    actions : array-like of shape (A,) or (A, k)
        Possible actions.
    discount : float in [0, 1]
    interpolation : {"multilinear", "nearest"}, default="multilinear"
        Replace a next state by the corners of its cell, or by the nearest point.
    n_samples : int, default=1
        Number of samples per point and action; 1 suffices if the simulator is deterministic.
    random_state : int, Generator or None

    Examples
    --------
    Move a point on a line to 0 by steps of at most 0.2; the cost is the square of its distance.

    >>> import numpy as np
    >>> from summula.mdp import discretize
    >>> def step(x, a, rng):
    ...     return x + a[:, None], -(x[:, 0] ** 2), np.zeros(len(x), bool)
    >>> found = discretize(step, [np.linspace(-1, 1, 41)], [-0.2, 0.0, 0.2], discount=0.9)
    >>> solution = found.mdp.solve()
    >>> found.act(solution, [[0.63], [0.0], [-0.31]]).tolist()
    [-0.2, 0.0, 0.2]
    """
    check_simulator(simulator, "discretize")
    check_arguments(
        "discretize",
        interpolation=(interpolation, (one_of("multilinear", "nearest"),)),
        n_samples=(n_samples, (integer(1),)),
        random_state=(random_state, _RANDOM),
    )
    grid = grid if isinstance(grid, Grid) else Grid(*_axes(grid))
    choices = check_actions(actions)
    S, A = len(grid), len(choices)
    points, rng = grid.points, random_generator(random_state)
    counts = sparse.csr_matrix((S * A, S))
    received, ended = np.zeros(S * A), np.zeros(S * A)
    total = S * A * n_samples
    for start in range(0, total, _BATCH):
        rows = np.arange(start, min(start + _BATCH, total)) // n_samples
        outcome = run(simulator, points[rows // A], choices[rows % A], rng)
        if interpolation == "nearest":
            after, weights = grid.cell(outcome.states).reshape(-1, 1), np.ones((len(rows), 1))
        else:
            after, weights = grid.weights(outcome.states)
        weights = weights * ~outcome.terminated[:, None]
        places = (np.repeat(rows, after.shape[1]), after.ravel())
        counts = counts + sparse.csr_matrix((weights.ravel(), places), counts.shape)  # (1)
        received += np.bincount(rows, outcome.rewards, S * A)
        ended += np.bincount(rows, outcome.terminated, S * A)
    rewards = (received / n_samples).reshape(S, A)
    mdp = MDP(counts / n_samples, rewards, discount, termination=(ended / n_samples).reshape(S, A))
    return Discretization(mdp, grid, choices, interpolation)


_RANDOM = (random_state,)


def _axes(grid: Any) -> Any:
    try:
        return list(grid)
    except TypeError:
        raise DataError("The grid must be a Grid, or a sequence with the coordinates along each axis.") from None
