"""Fitted value iteration: values of continuous states as a regression.

    q_i(a) = (1/k) sum_j [ R(s_i, a) + gamma V(s'_ij) ],   s'_i1, ..., s'_ik drawn from P(. | s_i, a)               (1)
    y_i = max_a q_i(a)                                                                                             (2)
    V := regression of y_i on s_i                                                                                  (3)

q_i(a) estimates R + gamma E[V(s')], and the maximum is taken afterwards. A deterministic model needs k = 1. The
projection (3) need not contract, so the iteration may oscillate or diverge; averagers (k nearest neighbours, trees on
fixed cells) converge (Gordon 1995). It stops when no y_i changes by more than the tolerance.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from summula.core.errors import DataError, warn
from summula.core.estimator.parameters import Allowed, array_like, boolean, check_parameters, integer, none, real
from summula.core.estimator.parameters import random_state as seeds
from summula.mdp.grids import as_states
from summula.mdp.process import BELOW_ONE, as_numbers
from summula.mdp.simulators import Outcome, check_actions, check_simulator, run
from summula.mdp.solvers.bounds import Clock

__all__ = ["FittedValueIteration"]

Array = NDArray[np.float64]

_REGRESSOR = Allowed(lambda value: hasattr(value, "fit") and hasattr(value, "predict"), "a regressor")
_DIVERGED = 1e12  # times the largest reward


class FittedValueIteration(BaseEstimator):
    """Value iteration for continuous states, with the value function fitted by any regressor.

    Parameters
    ----------
    regressor : regressor
        Model of the value function, such as a pipeline of features and `LinearRegression`, or a forest.
    actions : array-like of shape (A,) or (A, k)
        Possible actions.
    discount : float in [0, 1), default=0.99
    n_samples : int, default=1
        Number of next states drawn per state and action; 1 suffices for a deterministic simulator.
    resample : bool, default=False
        Whether to draw next states again in each iteration. If not, the iteration can converge.
    tol : float, default=1e-4
        Stop when no target changes by more than this.
    max_iter : int, default=200
    max_time : float, optional
        Time limit in seconds.
    random_state : int, Generator or None

    Attributes
    ----------
    regressor_ : regressor
        The fitted value function.
    n_iter_ : int
    converged_ : bool
    trace_ : tuple of float
        Largest change of a target in each iteration.
    bellman_residual_ : float
        Root mean square of V(s_i) - y_i at the states of the fit, a measure of the error of the regression.

    References
    ----------
    R. Munos and C. Szepesvari, Finite-time bounds for fitted value iteration, JMLR 9 (2008), 815-857.

    Examples
    --------
    Drive a point on a line to 0 with steps of at most 0.2. The values are fitted by a quadratic function.

    >>> import numpy as np
    >>> from summula.linear_model import PolynomialRegression
    >>> from summula.mdp import FittedValueIteration
    >>> def step(x, a, rng):
    ...     return x + a[:, None], -(x[:, 0] ** 2), np.zeros(len(x), bool)
    >>> model = FittedValueIteration(PolynomialRegression(2), [-0.2, 0.0, 0.2], discount=0.9)
    >>> model.fit(step, np.linspace(-1, 1, 41)).act([0.63, 0.0, -0.31]).tolist()
    [-0.2, 0.0, 0.2]
    """

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "regressor": (_REGRESSOR,),
        "actions": (array_like,),
        "discount": (BELOW_ONE,),
        "n_samples": (integer(1),),
        "resample": (boolean,),
        "tol": (real(0.0),),
        "max_iter": (integer(1),),
        "max_time": (none, real(0.0)),
        "random_state": (seeds,),
    }

    def __init__(
        self,
        regressor: Any,
        actions: Any,
        *,
        discount: float = 0.99,
        n_samples: int = 1,
        resample: bool = False,
        tol: float = 1e-4,
        max_iter: int = 200,
        max_time: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.regressor = regressor
        self.actions = actions
        self.discount = discount
        self.n_samples = n_samples
        self.resample = resample
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.random_state = random_state

    def fit(self, simulator: Any, states: Any) -> FittedValueIteration:
        """Fit the value function at sampled states.

        Parameters
        ----------
        simulator : callable
            (states, actions, rng) -> (next_states, rewards, terminated) on batches.
        states : array-like of shape (n, d)
            States that the regression is fitted to; they should cover the region of interest.
        """
        check_parameters(self, self._parameters)
        check_simulator(simulator, "FittedValueIteration")
        s, choices = _sampled(states), check_actions(self.actions)
        from summula.mdp.markov import random_generator

        rng, clock = random_generator(self.random_state), Clock(self.max_time)
        outcome = self._draw(simulator, s, choices, rng)
        y = self._targets(outcome, None, len(s))
        regressor, trace, status = clone(self.regressor).fit(s, y), [], "max_iter"
        best = regressor, y
        try:
            for _ in range(self.max_iter):
                if self.resample:
                    outcome = self._draw(simulator, s, choices, rng)
                new = self._targets(outcome, regressor, len(s))
                trace.append(float(np.abs(new - y).max()))
                y = new
                if not np.isfinite(y).all() or trace[-1] > _DIVERGED * max(1.0, float(np.abs(outcome.rewards).max())):
                    status = "diverged"
                    break
                regressor = clone(self.regressor).fit(s, y)
                best = regressor, y
                if trace[-1] <= self.tol:
                    status = "converged"
                    break
                if clock.is_over:
                    status = "max_time"
                    break
        except KeyboardInterrupt:
            self._assign(simulator, s, best, trace, "interrupted")
            raise
        self._assign(simulator, s, best, trace, status)
        self._report(status)
        return self

    def predict(self, states: Any) -> Array:
        """Return the fitted values of states."""
        check_is_fitted(self)
        return np.asarray(self.regressor_.predict(as_states(states, self.n_features_in_)), np.float64).ravel()

    def q_values(self, states: Any, random_state: Any = 0) -> Array:
        """Return the estimates (1) of every action, of shape (n, A), from the simulator of the fit."""
        from summula.mdp.markov import random_generator

        check_is_fitted(self)
        s, choices = as_states(states, self.n_features_in_), check_actions(self.actions)
        outcome = self._draw(self._simulator, s, choices, random_generator(random_state))
        return self._averages(outcome, self.regressor_, len(s))

    def act(self, states: Any, random_state: Any = 0) -> Any:
        """Return the best action for each state, by one step of the simulator and the fitted values."""
        return check_actions(self.actions)[self.q_values(states, random_state).argmax(axis=1)]

    def _plot(self, X: Any = None, y: Any = None, *, names: Any = None, resolution: int = 81, ax: Any = None) -> Any:
        """Plot values and actions over the range of the states of the fit, or of X; called by `summula.plot`."""
        from summula.plotting import value_function

        check_is_fitted(self)
        low, high = self._range if X is None else _range(as_states(X, self.n_features_in_))
        if len(low) > 2:
            raise DataError(f"The states have {len(low)} coordinates; plots support one or two.")
        sides = [np.linspace(a, b, resolution) for a, b in zip(low, high, strict=True)]
        points = np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1)
        q = self.q_values(points.reshape(-1, len(low)))
        labels = [str(np.asarray(a).tolist()) for a in check_actions(self.actions)]
        shape = points.shape[:-1]
        values, actions = self.predict(points.reshape(-1, len(low))).reshape(shape), q.argmax(axis=1).reshape(shape)
        return value_function(sides, values, actions, labels=labels, names=names, ax=ax)

    def _draw(self, simulator: Any, s: Array, choices: Any, rng: np.random.Generator) -> Outcome:
        """Outcomes of all actions in all states, in the order state, action, sample."""
        A, k = len(choices), self.n_samples
        rows = np.arange(len(s) * A * k) // k
        return run(simulator, s[rows // A], choices[rows % A], rng)

    def _averages(self, outcome: Outcome, regressor: Any, n: int) -> Array:
        """The estimates (1), of shape (n, A); the values are 0 before the first regression."""
        total = outcome.rewards
        if regressor is not None:
            V = np.asarray(regressor.predict(outcome.states), np.float64).ravel()
            total = total + self.discount * np.where(outcome.terminated, 0.0, V)
        return np.asarray(total.reshape(n, -1, self.n_samples).mean(axis=2))

    def _targets(self, outcome: Outcome, regressor: Any, n: int) -> Array:
        return np.asarray(self._averages(outcome, regressor, n).max(axis=1))  # (2)

    def _assign(self, simulator: Any, s: Array, best: Any, trace: list[float], status: str) -> None:
        self.regressor_, y = best
        self.n_features_in_, self._simulator, self._range = s.shape[1], simulator, _range(s)
        self.n_iter_, self.trace_, self.converged_ = len(trace), tuple(trace), status == "converged"
        fitted = np.asarray(self.regressor_.predict(s), np.float64).ravel()
        self.bellman_residual_ = float(np.sqrt(np.mean((fitted - y) ** 2)))

    def _report(self, status: str) -> None:
        last = self.trace_[-1]
        words = {
            "max_iter": f"stopped after max_iter={self.max_iter} iterations; the values last changed by {last:.3g} > "
            f"tol={self.tol:g}: increase max_iter or tol, or use a regressor that averages (nearest neighbours).",
            "max_time": f"stopped after max_time={self.max_time} s; the values last changed by {last:.3g} > "
            f"tol={self.tol:g}: increase max_time or tol.",
            "diverged": "diverged and kept its last finite values: use a regressor that averages (nearest neighbours, "
            "trees), fewer features, or a smaller discount.",
        }
        if status in words:
            warn(f"FittedValueIteration {words[status]}", ConvergenceWarning)


def _range(states: Array) -> tuple[Array, Array]:
    return states.min(axis=0), states.max(axis=0)


def _sampled(states: Any) -> Array:
    table = as_numbers(states, "states")
    if table.ndim not in (1, 2) or not table.size:
        raise DataError(f"states has shape {table.shape}; FittedValueIteration needs one row per state.")
    return as_states(table, 1 if table.ndim == 1 else table.shape[1])
