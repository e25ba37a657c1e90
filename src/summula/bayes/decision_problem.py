"""Decisions under uncertainty: states of the world, observations, actions and costs.

    posterior          P(s | x_1..x_n)  proportional to  P(s) prod_i p(x_i | s),      in logarithms             (1)
    conditional risk   R(a | x_1..x_n) = sum_s costs[a, s] P(s | x_1..x_n)                                      (2)
    decision           the first action with minimum risk                                                      (3)

Observations are independent given the state, so the posterior after some is the prior for the next. The decision (3)
changes where two risks are equal; risks are linear in any cost, and, before normalisation, in any prior with the others
scaled in proportion, which gives the ranges of `sensitivity` in closed form.

Reference: DeGroot, Optimal Statistical Decisions, chapter 8; Duda, Hart and Stork, Pattern Classification, section 2.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from summula.bayes.costs import CostTable, cost_table
from summula.bayes.densities import Density, check_probabilities, density_of, finite_joint, item_of, listed
from summula.bayes.labelled import is_labelled, list_or_dict
from summula.core.errors import DataError, ParameterError

__all__ = ["DecisionProblem", "Sensitivity"]

Array = NDArray[np.float64]


class Sensitivity(NamedTuple):
    """Ranges of priors and costs within which the decision does not change.

    Attributes
    ----------
    action : object
        The decision.
    margin : float
        Difference between the risks of the second-best action and the decision.
    priors : dict or ndarray
        For each state the smallest and largest prior probability (others scaled in proportion) with this decision.
    costs : dict of dicts or ndarray
        For each action and state the smallest and largest cost with this decision.
    """

    action: Any
    margin: float
    priors: Any
    costs: Any


class DecisionProblem:
    """A choice between actions whose costs depend on an unknown state, given observations.

    Parameters
    ----------
    priors : dict, Series or array-like
        state -> prior probability; they sum to 1. An array names the states 0, 1, ...
    likelihoods : dict, DataFrame or sequence
        state -> distribution of an observation: {observation: probability}, a density (a function of arrays), or
        anything with `logpdf` or `logpmf`. An array, or a DataFrame, has the probabilities [state, observation].
    costs : dict, DataFrame or array-like, optional
        action -> {state: cost}, or an array costs[action, state]. By default the actions are the states, with cost 0
        for the correct one and 1 for others.
    reject_cost : float, optional
        Cost of the additional action "reject".

    Attributes
    ----------
    states, actions : tuple
        Names.
    priors : ndarray of shape (n_states,)
    costs : ndarray of shape (n_actions, n_states)

    Examples
    --------
    >>> from summula.bayes import DecisionProblem
    >>> umbrella = DecisionProblem(
    ...     priors={"rain": 0.2, "dry": 0.8},
    ...     likelihoods={"rain": {"grey": 0.9, "blue": 0.1}, "dry": {"grey": 0.3, "blue": 0.7}},
    ...     costs={"take it": {"rain": 1, "dry": 2}, "leave it": {"rain": 10, "dry": 0}},
    ... )
    >>> {state: round(p, 3) for state, p in umbrella.posterior(["grey"]).items()}
    {'rain': 0.429, 'dry': 0.571}
    >>> umbrella.decide([]), umbrella.decide(["grey"]), umbrella.decide(["grey", "blue"])
    ('take it', 'take it', 'leave it')
    """

    def __init__(self, priors: Any, likelihoods: Any, costs: Any = None, *, reject_cost: Any = None) -> None:
        priors = list_or_dict(priors)
        self._named = isinstance(priors, Mapping)
        values = list(priors.values()) if self._named else priors
        self.priors = check_probabilities(values, "The priors", sums=True)
        self.states: tuple[Any, ...] = tuple(priors) if self._named else tuple(range(len(self.priors)))
        self._densities = _by_state(likelihoods, self.states)
        self._table = costs if isinstance(costs, CostTable) else cost_table(costs, self.states, reject_cost)
        by_name = isinstance(costs, Mapping) or (is_labelled(costs) and isinstance(list_or_dict(costs), Mapping))
        self._named_actions = self._named or by_name or reject_cost is not None

    @property
    def actions(self) -> tuple[Any, ...]:
        """Names of the actions."""
        return self._table.actions

    @property
    def costs(self) -> Array:
        """Costs of shape (n_actions, n_states)."""
        return self._table.values

    def __repr__(self) -> str:
        return f"DecisionProblem(states={list(self.states)!r}, actions={list(self.actions)!r})"

    # ---- posterior

    def log_posterior(self, observations: Any) -> Array:
        """Return the log posterior probabilities (1), as an array in the order of `states`."""
        joint = finite_joint(self._log_joint(observations))
        total = logsumexp(joint)
        if total == -np.inf:
            raise DataError(
                f"The observations {_shown(observations)} have probability 0 in every possible state, so there is no "
                "posterior: pass likelihoods with a positive probability of each observation in some state, and with "
                "logpdf instead of functions if densities underflow."
            )
        return np.asarray(joint - total)

    def posterior(self, observations: Any) -> Any:
        """Return the probability of each state after some observations (1).

        Parameters
        ----------
        observations : sequence
            Independent given the state; if empty, the prior is returned.

        Returns
        -------
        dict, state -> probability; an array if the priors were passed as one
        """
        return self._by_name(self.states, np.exp(self.log_posterior(observations)), self._named)

    def log_evidence(self, observations: Any) -> float:
        """Return the log marginal probability (or density) of the observations."""
        return float(logsumexp(self._log_joint(observations)))

    def update(self, observation: Any) -> DecisionProblem:
        """Return the problem after one more observation, whose prior is the posterior of this one."""
        after = np.exp(self.log_posterior([observation]))
        new = object.__new__(DecisionProblem)
        new.__dict__.update(self.__dict__)
        new.priors = after / after.sum()
        return new

    def _log_joint(self, observations: Any) -> Array:
        observations = listed(observations)
        with np.errstate(divide="ignore"):
            joint = np.log(self.priors)
        if len(observations):
            joint = joint + np.array([density.log(observations).sum() for density in self._densities])
        if np.isnan(joint).any():
            raise DataError(f"The observations {_shown(observations)} have a density that is NaN; check the densities.")
        return np.asarray(joint)

    # ---- risk

    def risk(self, observations: Any) -> Any:
        """Return the conditional risk (2) of each action after some observations.

        Returns
        -------
        dict, action -> expected cost; an array if costs and priors were passed as arrays
        """
        risks = self._table.risks(np.exp(self.log_posterior(observations)))
        return self._by_name(self.actions, risks, self._named_actions)

    def decide(self, observations: Any) -> Any:
        """Return the action with minimum risk after some observations (3); ties go to the first."""
        risks = self._table.risks(np.exp(self.log_posterior(observations)))
        return self.actions[int(np.argmin(risks))]

    def sensitivity(self, observations: Any = ()) -> Sensitivity:
        """Compute the ranges of priors and costs, varied one at a time, that preserve the decision.

        Parameters
        ----------
        observations : sequence, optional

        Returns
        -------
        Sensitivity
        """
        posterior = np.exp(self.log_posterior(observations))
        risks = self._table.risks(posterior)
        best = int(np.argmin(risks))
        others = np.delete(risks, best)
        margin = float(others.min() - risks[best]) if len(others) else np.inf
        priors = self._prior_ranges(observations, best)
        costs = self._cost_ranges(posterior, risks, best)
        by_state = self._by_name(self.states, priors, self._named)
        if not self._named_actions:
            return Sensitivity(self.actions[best], margin, by_state, costs)
        by_action = {
            action: self._by_name(self.states, rows, self._named)
            for action, rows in zip(self.actions, costs, strict=True)
        }
        return Sensitivity(self.actions[best], margin, by_state, by_action)

    def _cost_ranges(self, posterior: Array, risks: Array, best: int) -> Array:
        """Return lower and upper limits of every cost, shape (n_actions, n_states, 2)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            lead = np.where(posterior > 0, (risks[:, None] - risks[best]) / posterior, np.inf)
        ranges = np.stack([self.costs - lead, np.full(self.costs.shape, np.inf)], axis=2)  # risk of other actions
        rivals = np.delete(lead, best, axis=0)
        ranges[best, :, 0] = -np.inf
        ranges[best, :, 1] = self.costs[best] + (rivals.min(axis=0) if len(rivals) else np.inf)
        return ranges

    def _prior_ranges(self, observations: Any, best: int) -> Array:
        """Return lower and upper limits of every prior, shape (n_states, 2), that preserve the decision."""
        log_likelihood = np.array([d.log(observations).sum() if len(observations) else 0.0 for d in self._densities])
        likelihood = np.exp(log_likelihood - log_likelihood.max())
        ranges = np.empty((len(self.states), 2))
        for s, prior in enumerate(self.priors):
            rest = np.where(np.arange(len(self.states)) == s, 0.0, self.priors)
            rest = rest / rest.sum() if rest.sum() else rest
            # With prior t of s, risk a exceeds that of the decision by t * here + (1 - t) * there.
            excess = (self.costs - self.costs[best]) * likelihood
            here, there = excess[:, s], excess @ rest
            low, high = 0.0, 1.0
            for h, r in zip(here, there, strict=True):
                if h < 0 <= r:
                    high = min(high, r / (r - h))
                elif r < 0 <= h:
                    low = max(low, -r / (h - r))
            ranges[s] = min(low, prior), max(high, prior)
        return ranges

    @staticmethod
    def _by_name(names: Sequence[Any], values: Array, named: bool) -> Any:
        if not named:
            return values
        return {
            name: (float(v) if np.ndim(v) == 0 else tuple(v.tolist())) for name, v in zip(names, values, strict=True)
        }

    def plot(self, observations: Any, *, ax: Any = None) -> Any:
        """Plot posterior and conditional risks after a single observation, as functions of it.

        Parameters
        ----------
        observations : array-like of shape (n,)
            Numbers in ascending order, each treated as a single observation.
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes
        """
        from summula.plotting.predictions.decisions import draw_decisions

        x = np.asarray(observations, np.float64)
        with np.errstate(divide="ignore"):
            joint = np.log(self.priors) + np.column_stack([density.log(x) for density in self._densities])
        posterior = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
        return draw_decisions(x, posterior, self._table.risks(posterior), self.states, self.actions, ax=ax)


def _by_state(likelihoods: Any, states: tuple[Any, ...]) -> tuple[Density, ...]:
    likelihoods = list_or_dict(likelihoods)
    if isinstance(likelihoods, Mapping):
        if set(likelihoods) != set(states):
            raise ParameterError(
                f"likelihoods has the states {list(likelihoods)!r}, but priors {list(states)!r}; they must agree."
            )
        listed = [likelihoods[state] for state in states]
    else:
        listed = list(likelihoods)
        if len(listed) != len(states):
            raise ParameterError(
                f"likelihoods has {len(listed)} distributions, but priors {len(states)} states; pass one per state."
            )
    return tuple(density_of(one, f"the state {state!r}") for one, state in zip(listed, states, strict=True))


def _shown(observations: Any) -> str:
    values = [item_of(x) for x in list(observations)[:3]]
    return repr(values) if len(observations) <= 3 else f"{values!r} and {len(observations) - 3} more"
