"""Dynamics learned by least squares.

    s' = A f(s) + B g(a) + c + e,      e ~ N(0, Sigma)                                                             (1)

with f and g the identity, or features of states and actions; c is optional. A, B and c minimise the sum of squares of
e over observed transitions: the least squares of `LinearRegression`, with one target per coordinate. Sigma is the
covariance matrix of the residuals,

    Sigma = sum e e' / (n - p),      p the number of coefficients per coordinate                                   (2)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from summula.core.data.sparse_format import as_dense
from summula.core.errors import DataError, ParameterError
from summula.core.estimator.parameters import Allowed, boolean, check_parameters, none
from summula.mdp.process import as_numbers

__all__ = ["LinearDynamics"]

Array = NDArray[np.float64]

_FEATURES = Allowed(
    lambda value: callable(value) or hasattr(value, "fit_transform"), "a function of an array, a transformer"
)


class LinearDynamics(BaseEstimator):
    """Linear model of a process with continuous states: s' = A s + B a + noise, nonlinear through features.

    Parameters
    ----------
    state_features, action_features : callable or transformer, optional
        Features f(s) and g(a): a function of an array of shape (n, d) that returns one of shape (n, p), or a
        transformer such as scikit-learn's `PolynomialFeatures`. By default the states and actions themselves.
    fit_intercept : bool, default=False
        Whether there is a constant c.

    Attributes
    ----------
    A_ : ndarray of shape (d, p)
        Coefficients of the state features.
    B_ : ndarray of shape (d, q)
        Coefficients of the action features.
    intercept_ : ndarray of shape (d,)
    noise_covariance_ : ndarray of shape (d, d)
        Unbiased estimate of the covariance matrix of the noise.
    regression_ : LinearRegression
        The fitted regression, with its certificate and, for each coordinate, its residual sum of squares.

    Examples
    --------
    A cart with position and speed, pushed by a force; we observe it every 0.1 s, with noise in the speed.

    >>> import numpy as np
    >>> from summula.mdp import LinearDynamics
    >>> rng = np.random.default_rng(0)
    >>> s, a = rng.normal(size=(500, 2)), rng.normal(size=(500, 1))
    >>> after = s @ [[1.0, 0.0], [0.1, 1.0]] + a @ [[0.0, 0.1]] + rng.normal(size=(500, 2)) * [0.0, 0.01]
    >>> model = LinearDynamics().fit(s, a, after)
    >>> model.A_.round(2) + 0.0, model.B_.round(2) + 0.0
    (array([[1. , 0.1],
           [0. , 1. ]]), array([[0. ],
           [0.1]]))
    >>> bool(abs(model.noise_covariance_[1, 1] - 0.01**2) < 1e-5)
    True
    """

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "state_features": (none, _FEATURES),
        "action_features": (none, _FEATURES),
        "fit_intercept": (boolean,),
    }

    def __init__(self, *, state_features: Any = None, action_features: Any = None, fit_intercept: bool = False) -> None:
        self.state_features = state_features
        self.action_features = action_features
        self.fit_intercept = fit_intercept

    def fit(self, states: Any, actions: Any, next_states: Any, sample_weight: Any = None) -> LinearDynamics:
        """Fit the model to transitions.

        Parameters
        ----------
        states, next_states : array-like of shape (n, d)
        actions : array-like of shape (n,) or (n, k)
        sample_weight : array-like of shape (n,), optional
            Weights of the transitions, taken as frequencies.
        """
        from summula.linear_model import LinearRegression

        check_parameters(self, self._parameters)
        s, a, after = (
            _table(x, name) for x, name in ((states, "states"), (actions, "actions"), (next_states, "next_states"))
        )
        if after.shape != s.shape or len(a) != len(s):
            raise DataError(
                f"states, actions and next_states have shapes {s.shape}, {a.shape} and {after.shape}; they need equal "
                "numbers of rows, and next_states as many columns as states."
            )
        state_map, action_map = _learned(self.state_features, s), _learned(self.action_features, a)
        F = _features(state_map, s, "state_features")
        X = np.hstack([F, _features(action_map, a, "action_features")])
        regression = LinearRegression(fit_intercept=self.fit_intercept).fit(X, after, sample_weight)
        weight = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, np.float64)
        e = after - np.asarray(regression.predict(X)).reshape(after.shape)
        free = weight.sum() - regression.rank_ - int(self.fit_intercept)
        if free <= 0:
            raise DataError(
                f"{len(X)} transitions do not determine the noise of a model with {X.shape[1]} features; pass more."
            )
        coef = np.asarray(regression.coef_).reshape(s.shape[1], -1)
        self.n_features_in_, self._n_action_columns = s.shape[1], a.shape[1]
        self._state_map, self._action_map = state_map, action_map
        self.regression_ = regression
        self.A_, self.B_ = coef[:, : F.shape[1]], coef[:, F.shape[1] :]
        self.intercept_ = np.zeros(s.shape[1]) + (regression.intercept_ if self.fit_intercept else 0.0)
        self.noise_covariance_ = (e * weight[:, None]).T @ e / free  # (2)
        return self

    def fit_trajectories(self, trajectories: Iterable[tuple[Any, Any]]) -> LinearDynamics:
        """Fit the model to trajectories: pairs of n + 1 states and n actions."""
        pairs = [(_table(s, "states"), _table(a, "actions")) for s, a, *_ in trajectories]
        if not pairs:
            raise DataError("There are no trajectories; pass at least one.")
        for number, (s, a) in enumerate(pairs):
            if len(s) != len(a) + 1:
                raise DataError(
                    f"Trajectory {number} has {len(s)} states and {len(a)} actions; it needs one state more."
                )
        before, after = (np.vstack([s[cut] for s, _ in pairs]) for cut in (slice(None, -1), slice(1, None)))
        return self.fit(before, np.vstack([a for _, a in pairs]), after)

    def predict(self, states: Any, actions: Any) -> Array:
        """Return the expected next states, of shape (n, d)."""
        check_is_fitted(self)
        s, a = _table(states, "states"), _table(actions, "actions")
        if s.shape[1] != self.n_features_in_ or a.shape[1] != self._n_action_columns or len(a) != len(s):
            raise DataError(
                f"states and actions have shapes {s.shape} and {a.shape}; the model was fitted to "
                f"{self.n_features_in_} coordinates and {self._n_action_columns} of actions."
            )
        F, G = _features(self._state_map, s, "state_features"), _features(self._action_map, a, "action_features")
        return np.asarray(F @ self.A_.T + G @ self.B_.T + self.intercept_)  # (1)

    def sample(self, states: Any, actions: Any, random_state: Any = None) -> Array:
        """Return next states with noise."""
        from summula.mdp.markov import random_generator

        mean, d = self.predict(states, actions), self.n_features_in_
        values, vectors = np.linalg.eigh(self.noise_covariance_)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        return np.asarray(mean + random_generator(random_state).standard_normal((len(mean), d)) @ root.T)

    def rollout(self, state: Any, actions: Any, *, noise: bool = False, random_state: Any = None) -> Array:
        """Return the states, of shape (n + 1, d), after n actions from one state."""
        from summula.mdp.markov import random_generator

        rng, a = random_generator(random_state), _table(actions, "actions")
        states = [_table(np.atleast_2d(as_numbers(state, "state")), "state")]
        for t in range(len(a)):
            now = states[-1]
            states.append(self.sample(now, a[t : t + 1], rng) if noise else self.predict(now, a[t : t + 1]))
        return np.vstack(states)

    def simulator(self, reward: Callable[..., Any], *, terminated: Any = None, noise: bool = True) -> Any:
        """Return a simulator for `discretize` and `FittedValueIteration`.

        Parameters
        ----------
        reward : callable
            (states, actions) -> rewards.
        terminated : callable, optional
            next_states -> whether the process ends there; by default it never ends.
        noise : bool, default=True
            Whether next states are drawn, or the expected ones.
        """
        check_is_fitted(self)
        if not callable(reward) or not (terminated is None or callable(terminated)):
            raise ParameterError(
                "reward must be a function of states and actions, and terminated, if given, one of next states."
            )

        return _Simulator(self, reward, terminated, noise)


@dataclass(frozen=True)
class _Simulator:
    """A simulator that draws from fitted dynamics; it can be pickled if its functions can."""

    model: LinearDynamics
    reward: Callable[..., Any]
    terminated: Callable[..., Any] | None
    noise: bool

    def __call__(self, states: Any, actions: Any, rng: Any) -> tuple[Any, Any, Any]:
        after = self.model.sample(states, actions, rng) if self.noise else self.model.predict(states, actions)
        ends = np.zeros(len(after), bool) if self.terminated is None else self.terminated(after)
        return after, self.reward(states, actions), ends


def _table(values: Any, name: str) -> Array:
    table = as_numbers(values, name)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or not table.size:
        raise DataError(f"{name} has shape {table.shape}; it must have one row per transition.")
    if not np.isfinite(table).all():
        row, column = divmod(int(np.argmin(np.isfinite(table))), table.shape[1])
        raise DataError(f"{name} is missing or infinite at row {row}, column {column}: drop such transitions.")
    return table


def _learned(features: Any, values: Array) -> Any:
    """Return the map of features, fitted if it is a transformer."""
    return clone(features).fit(values) if hasattr(features, "fit_transform") else features


def _features(features: Any, values: Array, name: str) -> Array:
    if features is None:
        return values
    made = features.transform(values) if hasattr(features, "transform") else features(values)
    table = np.asarray(as_dense(made, f"of {name}"), np.float64)
    if table.ndim != 2 or len(table) != len(values) or not np.isfinite(table).all():
        raise DataError(
            f"{name} must return a finite array with a row for each of {len(values)}, not shape {table.shape}."
        )
    return table
