"""Results of the solvers of Markov decision processes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import DataError
from summula.core.numerics.certificate import Verification

__all__ = ["HorizonSolution", "MDPSolution"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class MDPSolution:
    """Solution of a Markov decision process, with bounds that hold even if the solver stopped early.

    Attributes
    ----------
    values : ndarray of shape (S,)
        Estimate of the optimal values V*, between `lower` and `upper`: their middle, or the policy's values (policy
        iteration).
    policy : ndarray of shape (S,)
        Action for each state. Its own values lie between `lower` and V*, so they are within `gap` of optimal.
    q_values : ndarray of shape (S, A)
        r(s, a) + gamma sum P(s' | s, a) values(s'); -inf for unavailable actions.
    lower, upper : ndarray of shape (S,)
        Bounds on V* (MacQueen and Porteus), rounding errors included.
    gap : float
        The largest difference of the bounds.
    status : {"converged", "max_iter", "max_time", "stalled", "interrupted"}
        "stalled" means that the tolerance is smaller than rounding errors.
    converged : bool
        Whether gap <= tol.
    n_steps : int
        Number of steps: sweeps of value iteration, improvements of policy iteration.
    trace : tuple of float
        The gap after each step.
    method : str
        The algorithm that was used.
    message : str
        Additional information about the status.
    discount : float
        Discount of the process.
    """

    values: Array
    policy: NDArray[np.int64]
    q_values: Array = field(repr=False)
    lower: Array = field(repr=False)
    upper: Array = field(repr=False)
    gap: float
    status: str
    converged: bool
    n_steps: int
    trace: tuple[float, ...] = field(default=(), repr=False)
    method: str = ""
    message: str = ""
    discount: float = field(default=np.nan, repr=False)

    def verify(self, mdp: Any) -> Verification:
        """Check the bounds from Bellman's inequalities, without a solver.

        Parameters
        ----------
        mdp : MDP
            The process that was solved.

        Returns
        -------
        Verification
            True if T upper <= upper, and T lower >= lower with the actions of the policy, up to rounding errors.
            `primal` is the mean of the values.
        """
        from summula.mdp.solvers.verification import verify

        return verify(self, mdp._process)

    def plot(
        self, shape: tuple[int, int] | None = None, *, hidden: Any = (), final: Any = (), ax: Any = None, **options: Any
    ) -> Any:
        """Plot values and policy; for states that form a grid, the policy is shown as arrows.

        Parameters
        ----------
        shape : tuple of int, optional
            Numbers of rows and columns of a grid; states are numbered row by row, and further states are not drawn.
            Without it the values are drawn against the numbers of the states.
        hidden : sequence of int, optional
            States of the grid without value and action, such as walls.
        final : sequence of int, optional
            States of the grid without action.
        ax : matplotlib Axes, optional
        **options
            Further arguments of `summula.plotting.value_grid`, such as `steps`.

        Returns
        -------
        matplotlib Axes
        """
        from summula.plotting import state_values, value_grid

        if shape is None:
            return state_values(self.values, self.policy, lower=self.lower, upper=self.upper, ax=ax, **options)
        size = shape[0] * shape[1]
        if len(self.values) < size:
            raise DataError(f"A grid of {shape[0]} x {shape[1]} needs {size} states; there are {len(self.values)}.")
        values, policy = self.values.copy(), self.policy.copy()
        values[list(hidden)] = np.nan
        policy[list(final)] = -1
        return value_grid(values[:size].reshape(shape), policy[:size].reshape(shape), ax=ax, **options)


@dataclass(frozen=True)
class HorizonSolution:
    """Optimal values and policies of a finite horizon.

    Attributes
    ----------
    values : ndarray of shape (horizon + 1, S)
        Optimal values after t = 0, 1, ... steps; the last row contains the terminal values.
    policy : ndarray of shape (horizon, S)
        Optimal action at each step.
    """

    values: Array
    policy: NDArray[np.int64]

    def plot(self, *, ax: Any = None) -> Any:
        """Plot the values against the step and the number of the state, with the numbers of the best actions.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes
        """
        from summula.plotting import horizon_values

        return horizon_values(self.values, self.policy, ax=ax)
