"""Markov decision processes: the public class. The mathematics is in `bounds` and the solvers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import DataError
from summula.core.estimator.parameters import Allowed, integer, none, one_of, random_state, real
from summula.mdp.process import as_numbers, check_process
from summula.mdp.results import HorizonSolution, MDPSolution
from summula.mdp.simulation import Trajectories, simulate
from summula.mdp.solvers import episodic
from summula.mdp.solvers.bounds import Backups, Clock, Interrupted, Stop, check_start
from summula.mdp.solvers.evaluation import PolicyValue, check_policy, evaluate
from summula.mdp.solvers.policy_iteration import backward_induction, policy_iteration
from summula.mdp.solvers.value_iteration import ORDERS, check_order, in_order, modified, synchronous, undiscounted
from summula.optimize.problems.objective import check_arguments

__all__ = ["MDP", "random_generator"]

_POSITIVE = real(0.0, open_low=True)
_SMALL = 300  # number of states up to which a linear system is solved directly
_ORDER = Allowed(lambda order: not isinstance(order, str) and np.ndim(order) == 1, "an array of state numbers")


class MDP:
    """Markov decision process: states 0 to S - 1, actions 0 to A - 1, transitions, rewards, and a discount.

    Parameters
    ----------
    transitions : array-like of shape (S, A, S), list of A sparse S x S matrices, or sparse matrix of shape (S A, S)
        Probabilities of the next states. In the last form, row s A + a is that of action a in state s.
    rewards : array-like of shape (S,), (S, A) or (S, A, S), or sparse as the transitions
        R(s), R(s, a) or R(s, a, s'). A reward of -inf in an (S, A) table marks an action that is not available.
    discount : float in [0, 1]
        Weight of a reward t steps ahead is discount^t. With discount 1 the process has to end: by `termination`, or in
        absorbing states without rewards.
    available : array-like of bool of shape (S, A), optional
        Which actions are available in which states; by default all. Transitions of others are ignored.
    termination : array-like of shape (S,) or (S, A), optional
        Probability that the process ends after an action, by default 0; the probabilities of next states are the rest.

    Attributes
    ----------
    n_states, n_actions : int
    discount : float
    transitions : csr_matrix of shape (S A, S)
    rewards : ndarray of shape (S, A)
        Expected rewards; -inf for unavailable actions.
    solution_ : MDPSolution
        The last solution found, also if Ctrl-C interrupted the solver.

    References
    ----------
    M. L. Puterman, Markov Decision Processes (1994), chapter 6.

    Examples
    --------
    A machine is new or worn. Running it earns 3 or 1; replacing a worn one costs 1.

    >>> import numpy as np
    >>> from summula.mdp import MDP
    >>> transitions = [[[0.6, 0.4], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]]  # state, action, next state
    >>> mdp = MDP(transitions, [[3.0, -1.0], [1.0, -1.0]], discount=0.9)
    >>> found = mdp.solve()
    >>> found.policy, found.values.round(3)
    (array([0, 1]), array([19.412, 16.471]))
    >>> found.gap < 1e-6  # no policy is better by more
    True
    """

    def __init__(
        self, transitions: Any, rewards: Any, discount: float, *, available: Any = None, termination: Any = None
    ) -> None:
        self._process = check_process(transitions, rewards, discount, available, termination)

    @property
    def n_states(self) -> int:
        """Number of states."""
        return self._process.n_states

    @property
    def n_actions(self) -> int:
        """Number of actions."""
        return self._process.n_actions

    @property
    def discount(self) -> float:
        """Discount per step."""
        return self._process.gamma

    @property
    def transitions(self) -> Any:
        """Probabilities of next states, a CSR matrix of shape (S A, S)."""
        return self._process.P

    @property
    def rewards(self) -> NDArray[np.float64]:
        """Expected rewards, of shape (S, A)."""
        return self._process.table

    @property
    def termination(self) -> NDArray[np.float64]:
        """Probabilities that the process ends, of shape (S, A)."""
        return self._process.ending.reshape(self.n_states, -1)

    def __repr__(self) -> str:
        return f"MDP({self.n_states} states, {self.n_actions} actions, discount={self.discount:g})"

    # ------------------------------------------------------------------------------------------------------- policies

    def simulate(
        self,
        policy: Any = None,
        *,
        start: Any = 0,
        n_episodes: int = 1,
        n_steps: int = 100,
        random_state: Any = None,
    ) -> Trajectories:
        """Simulate episodes of a policy.

        Parameters
        ----------
        policy : array of shape (S,) or (S, A), or MDPSolution, optional
            An action per state, or probabilities of actions; by default all available actions are equally likely.
        start : int or array of shape (n_episodes,), default=0
            Initial states.
        n_episodes : int, default=1
        n_steps : int, default=100
            Maximum number of steps of an episode; it may end earlier by `termination`.
        random_state : int, Generator or None
            Pass an int for reproducible results.

        Examples
        --------
        >>> from summula.mdp import MDP
        >>> mdp = MDP([[[0.5, 0.5]], [[0.0, 1.0]]], [1.0, 0.0], discount=0.9)
        >>> episodes = mdp.simulate(n_episodes=10_000, n_steps=50, random_state=0)
        >>> print(episodes.returns.mean().round(2), mdp.evaluate([0, 0]).values.round(2))
        1.8 [1.82 0.  ]
        """
        check_arguments(
            "simulate",
            n_episodes=(n_episodes, (integer(1),)),
            n_steps=(n_steps, (integer(1),)),
            random_state=(random_state, _RANDOM),
        )
        if policy is None:
            open_actions = self._process.table > -np.inf
            policy = open_actions / open_actions.sum(axis=1, keepdims=True)
        states = np.asarray(start)
        if states.dtype.kind not in "iu" or states.shape not in ((), (n_episodes,)):
            raise DataError(f"start must be a state number, or {n_episodes} of them, one for each episode.")
        if ((states < 0) | (states >= self.n_states)).any():
            raise DataError(f"start contains a state outside of 0 to {self.n_states - 1}.")
        states = np.broadcast_to(states, (n_episodes,)).astype(np.int64)
        rng = random_generator(random_state)
        return simulate(self._process, check_policy(policy, self._process), states, n_steps, rng)

    def evaluate(self, policy: Any, *, method: str = "auto", tol: float = 1e-8) -> PolicyValue:
        """Compute the value of a policy from Bellman's linear system.

        Parameters
        ----------
        policy : array of shape (S,) or (S, A), or MDPSolution
            An action per state, or probabilities of actions.
        method : {"auto", "direct", "iterative"}, default="auto"
            LU decomposition, or BiCGSTAB and GMRES; by default the former up to 1,000 states or if BiCGSTAB is slow.
        tol : float, default=1e-8
            Accuracy of the values by iterative methods.

        Examples
        --------
        >>> from summula.mdp import MDP
        >>> mdp = MDP([[[0.5, 0.5]], [[0.0, 1.0]]], [1.0, 0.0], discount=0.9)
        >>> mdp.evaluate([0, 0]).values.round(4)  # 1 / (1 - 0.45)
        array([1.8182, 0.    ])
        """
        check_arguments("evaluate", method=(method, (one_of("auto", "direct", "iterative"),)), tol=(tol, (_POSITIVE,)))
        checked = check_policy(policy, self._process)
        if self.discount == 1.0:
            return episodic.evaluate(self._process, checked)
        return evaluate(self._process, checked, method, tol)

    # -------------------------------------------------------------------------------------------------------- solvers

    def solve(
        self, *, tol: float = 1e-6, start: Any = None, max_iter: int = 10_000, max_time: float | None = None
    ) -> MDPSolution:
        """Find an optimal policy: by policy iteration for few states or discount 1, else by modified policy iteration.

        Parameters
        ----------
        tol : float, default=1e-6
            Stop when the policy is known to be within `tol` of optimal in every state.
        start : array of shape (S,) or MDPSolution, optional
            Initial values (warm start); by default 0.
        max_iter : int, default=10_000
            Maximum number of steps.
        max_time : float, optional
            Time limit in seconds.

        Returns
        -------
        MDPSolution
            Its bounds hold even if the solver stopped early.
        """
        stop = self._stop("solve", tol, max_iter, max_time)
        V = check_start(start, self.n_states)
        if self.discount == 1.0:
            V = V if self.n_states <= _SMALL else episodic.approximate(self._plan(), V, stop)
            return self._keep(lambda: episodic.policy_iteration(self._process, None, V, stop))
        if self.n_states <= _SMALL:
            return self._keep(lambda: policy_iteration(self._plan(), None, V, stop, "direct"))
        return self._keep(lambda: modified(self._plan(), V, stop))

    def value_iteration(
        self,
        order: Any = "synchronous",
        *,
        tol: float = 1e-6,
        start: Any = None,
        max_iter: int = 10_000,
        max_time: float | None = None,
        random_state: Any = None,
    ) -> MDPSolution:
        """Find an optimal policy by value iteration: V(s) := max_a [r(s, a) + discount sum P(s' | s, a) V(s')].

        Parameters
        ----------
        order : {"synchronous", "asynchronous", "random"} or array of state numbers, default="synchronous"
            All states at once from the old values; or one after the other with new values, by number ("gauss_seidel"
            is the same), in a new random order in each sweep, or in the given order, in which states may be repeated.
        tol, start, max_iter, max_time
            As in `solve`.
        random_state : int, Generator or None
            For order="random".

        Examples
        --------
        >>> from summula.mdp import MDP
        >>> mdp = MDP([[[0.5, 0.5], [1, 0]], [[0.0, 1.0], [0.5, 0.5]]], [[1.0, 0.5], [0.0, -0.1]], discount=0.9)
        >>> [
        ...     mdp.value_iteration(order, random_state=0).policy.tolist()
        ...     for order in ("synchronous", "asynchronous", "random")
        ... ]
        [[0, 1], [0, 1], [0, 1]]
        """
        stop = self._stop("value_iteration", tol, max_iter, max_time)
        check_arguments(
            "value_iteration", order=(order, (one_of(*ORDERS), _ORDER)), random_state=(random_state, _RANDOM)
        )
        V, rng = check_start(start, self.n_states), random_generator(random_state)
        order = check_order(order, self.n_states)
        if self.discount == 1.0:
            return self._keep(lambda: undiscounted(self._plan(), V, stop, order, rng))
        if isinstance(order, str) and order == "synchronous":
            return self._keep(lambda: synchronous(self._plan(), V, stop))
        return self._keep(lambda: in_order(self._plan(), V, stop, order, rng))

    def policy_iteration(
        self,
        start: Any = None,
        *,
        method: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 1_000,
        max_time: float | None = None,
    ) -> MDPSolution:
        """Find an optimal policy by policy iteration: evaluate the policy exactly, act greedily, repeat.

        Parameters
        ----------
        start : array of shape (S,) of actions, or MDPSolution, optional
            Initial policy; by default the one with the largest immediate reward.
        method : {"auto", "direct", "iterative"}, default="auto"
            How policies are evaluated, as in `evaluate`.
        tol, max_iter, max_time
            As in `solve`.

        Examples
        --------
        >>> from summula.mdp import MDP
        >>> mdp = MDP([[[0.5, 0.5], [1, 0]], [[0.0, 1.0], [0.5, 0.5]]], [[1.0, 0.5], [0.0, -0.1]], discount=0.9)
        >>> found = mdp.policy_iteration()
        >>> found.values.round(3), found.n_steps
        (array([5.05, 3.95]), 3)
        """
        stop = self._stop("policy_iteration", tol, max_iter, max_time)
        check_arguments("policy_iteration", method=(method, (one_of("auto", "direct", "iterative"),)))
        policy = None if start is None else check_policy(start, self._process)
        if policy is not None and policy.ndim == 2:
            raise DataError("policy_iteration starts from one action per state; pass policy.argmax(axis=1).")
        V = np.zeros(self.n_states)
        if self.discount == 1.0:
            return self._keep(lambda: episodic.policy_iteration(self._process, policy, V, stop))
        return self._keep(lambda: policy_iteration(self._plan(), policy, V, stop, method))

    def backward_induction(self, horizon: int, terminal_values: Any = 0.0) -> HorizonSolution:
        """Find the optimal policy for a given number of steps; the discount may be 1.

        Parameters
        ----------
        horizon : int
            Number of steps.
        terminal_values : float or array of shape (S,), default=0
            Value of each state after the last step.

        Examples
        --------
        >>> from summula.mdp import MDP
        >>> mdp = MDP([[[0.5, 0.5], [1, 0]], [[0.0, 1.0], [0.5, 0.5]]], [[1.0, 0.5], [0.0, -0.1]], discount=1.0)
        >>> mdp.backward_induction(3).policy
        array([[1, 1],
               [0, 1],
               [0, 0]])
        """
        check_arguments("backward_induction", horizon=(horizon, (integer(1),)))
        given = as_numbers(terminal_values, "terminal_values")
        if given.shape not in ((), (self.n_states,)) or not np.isfinite(given).all():
            raise DataError(f"terminal_values must be a finite number or {self.n_states} of them.")
        return backward_induction(self._plan(), horizon, given)

    @classmethod
    def from_trajectories(
        cls,
        trajectories: Any,
        discount: float,
        *,
        n_states: int | None = None,
        n_actions: int | None = None,
        unseen: str = "uniform",
        unseen_reward: float = 0.0,
        state_rewards: bool = False,
    ) -> MDP:
        """Estimate a process from episodes: frequencies of next states, and average rewards.

        Parameters
        ----------
        trajectories : Trajectories, or iterable of (states, actions, rewards) or (states, actions, rewards, terminated)
            Each with n actions and rewards, and n + 1 states (n or n + 1 if it terminated).
        discount : float
        n_states, n_actions : int, optional
            By default one more than the largest number that occurs.
        unseen : {"uniform", "stay", "unavailable"}, default="uniform"
            Outcome of an action that was never tried in a state: any state with probability 1 / S, the same state, or
            it is not available.
        unseen_reward : float, default=0
            Reward of such an action (of a state without any, with `state_rewards`); a large one makes planning try
            everything once.
        state_rewards : bool, default=False
            Whether rewards are averaged over all actions in a state, R(s), instead of R(s, a).

        See Also
        --------
        TransitionCounts : The underlying sums, which can be updated, merged and subtracted.

        Examples
        --------
        >>> from summula.mdp import MDP
        >>> episodes = [([0, 1, 1, 0], [0, 1, 1], [1.0, 0.0, 2.0]), ([0, 0], [0], [3.0])]
        >>> mdp = MDP.from_trajectories(episodes, discount=0.9)
        >>> mdp.transitions.toarray()  # action 1 in state 0 and action 0 in state 1 were not tried
        array([[0.5, 0.5],
               [0.5, 0.5],
               [0.5, 0.5],
               [0.5, 0.5]])
        >>> mdp.rewards
        array([[2., 0.],
               [0., 1.]])
        """
        from summula.mdp.counts import TransitionCounts

        counts = TransitionCounts.of(trajectories, n_states, n_actions)
        return counts.mdp(discount, unseen=unseen, unseen_reward=unseen_reward, state_rewards=state_rewards)

    # ------------------------------------------------------------------------------------------------------ internals

    def _plot(self, X: Any = None, y: Any = None, *, ax: Any = None, **options: Any) -> Any:
        """Plot the last solution, for `summula.plot`."""
        if not hasattr(self, "solution_"):
            raise DataError("There is no solution to plot yet: solve the process, mdp.solve().")
        return self.solution_.plot(ax=ax, **options)

    def _plan(self) -> Backups:
        return Backups(self._process)

    def _keep(self, solve: Callable[[], MDPSolution]) -> MDPSolution:
        try:
            self.solution_ = solve()
        except Interrupted as stopped:
            self.solution_ = stopped.solution
            raise KeyboardInterrupt from None
        return self.solution_

    def _stop(self, function: str, tol: Any, max_iter: Any, max_time: Any) -> Stop:
        check_arguments(
            function,
            tol=(tol, (_POSITIVE,)),
            max_iter=(max_iter, (integer(1),)),
            max_time=(max_time, (none, real(0.0))),
        )
        return Stop(float(tol), int(max_iter), Clock(max_time))


_RANDOM = (random_state,)


def random_generator(given: Any) -> np.random.Generator:
    """Return a generator from the parameter `random_state`."""
    if isinstance(given, np.random.RandomState):
        return np.random.default_rng(given.randint(2**32 - 1, dtype="u8"))
    return np.random.default_rng(given)
