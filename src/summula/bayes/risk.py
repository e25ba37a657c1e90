"""The risk of decision rules, and the Bayes risk, for known priors and densities.

    R(rule) = sum_s P(s) integral costs[rule(x), s] p(x | s) dx                                                 (1)
    Bayes rule: the action that minimises sum_s costs[a, s] P(s) p(x | s);  its risk is
    R* = integral min_a sum_s costs[a, s] P(s) p(x | s) dx                                                      (2)

`risk_values` computes the integral by summation, quadrature or Monte Carlo.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin

from summula.bayes.decision_problem import DecisionProblem
from summula.bayes.risk_values import DecisionRisk, Rule, log_joint, risk_of_rule
from summula.core.errors import DataError, ParameterError
from summula.stats.bounds import check_delta

__all__ = ["BayesClassifier", "DecisionRisk", "bayes_risk", "decision_risk"]

Array = NDArray[np.float64]


class BayesClassifier(ClassifierMixin, BaseEstimator):
    """The Bayes classifier, which minimises the risk for known priors and densities. It needs no fit.

    Parameters
    ----------
    priors : dict or array-like
        class -> prior probability.
    densities : dict or sequence
        class -> density of a row: a function of arrays, or anything with `logpdf` or `logpmf`. Densities of one
        variable are called with a vector if rows have one column, others with the array of rows.
    costs : dict or array-like of shape (n_actions, n_classes), optional
        costs[action, class]; errors cost 1 by default.
    reject_cost : float, optional
        Cost of the additional action "reject".

    Attributes
    ----------
    classes_ : ndarray
        Classes, in the order of `priors`.
    actions_ : ndarray
        Possible return values of `predict`.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import norm
    >>> from summula.bayes import BayesClassifier
    >>> rule = BayesClassifier({"short": 0.5, "tall": 0.5}, {"short": norm(165, 6), "tall": norm(180, 6)})
    >>> rule.predict(np.array([[171.0], [174.0]]))
    array(['short', 'tall'], dtype='<U5')
    """

    def __init__(self, priors: Any, densities: Any, costs: Any = None, *, reject_cost: Any = None) -> None:
        self.priors, self.densities, self.costs, self.reject_cost = priors, densities, costs, reject_cost

    def fit(self, X: Any = None, y: Any = None) -> BayesClassifier:
        """Validate the parameters; nothing is learned."""
        self._problem()
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def _problem(self) -> DecisionProblem:
        return DecisionProblem(self.priors, self.densities, self.costs, reject_cost=self.reject_cost)

    @property
    def classes_(self) -> NDArray[Any]:
        """Classes, in the order of `priors`."""
        return np.array(self._problem().states)

    @property
    def actions_(self) -> NDArray[Any]:
        """Actions, in the order of `costs`."""
        return _labels(self._problem().actions)

    def predict_joint_log_proba(self, X: Any) -> Array:
        """Compute log P(class) p(x | class), one column per class."""
        return log_joint(self._problem(), _observed(X))

    def predict_log_proba(self, X: Any) -> Array:
        """Compute the log posterior probabilities of the classes."""
        joint = self.predict_joint_log_proba(X)
        with np.errstate(invalid="ignore"):
            return np.asarray(joint - logsumexp(joint, axis=1, keepdims=True))

    def predict_proba(self, X: Any) -> Array:
        """Compute the posterior probabilities of the classes."""
        return np.exp(self.predict_log_proba(X))

    def score_samples(self, X: Any) -> Array:
        """Compute the log density of rows, marginalised over the classes; small for outliers."""
        return np.asarray(logsumexp(self.predict_joint_log_proba(X), axis=1))

    def risk(self, X: Any) -> Array:
        """Compute the conditional risk of every action, shape (n_samples, n_actions)."""
        return self._problem()._table.risks(self.predict_proba(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the action with minimum conditional risk; ties go to the first."""
        return np.asarray(self.actions_[_decided(self._problem(), _observed(X))])


def decision_risk(
    rule: Any,
    priors: Any,
    densities: Any,
    costs: Any = None,
    *,
    method: str = "auto",
    support: tuple[float, float] | None = None,
    n_samples: int = 100_000,
    delta: float = 0.05,
    random_state: int = 0,
) -> DecisionRisk:
    """Compute the risk (1) of a decision rule.

    Parameters
    ----------
    rule : callable or classifier
        A function of an array of observations, or of one observation if they are discrete, that returns actions; or
        an object with `predict`.
    priors, densities, costs
        As in `BayesClassifier`; densities may also be {observation: probability}.
    method : {"auto", "sum", "quadrature", "monte_carlo"}, default="auto"
        "auto" uses sums for discrete observations, quadrature for a single number, else Monte Carlo.
    support : pair of float, optional
        Interval outside of which densities are 0. Needed for quadrature of plain functions only if it cannot be
        found, as for a narrow density far from 0.
    n_samples : int, default=100_000
        Number of Monte Carlo draws.
    delta : float, default=0.05
        Probability that each bound fails, for Monte Carlo.
    random_state : int, default=0

    Returns
    -------
    DecisionRisk

    Examples
    --------
    >>> from scipy.stats import norm
    >>> from summula.bayes import decision_risk
    >>> risk = decision_risk(lambda x: (x > 0.5).astype(int), [0.5, 0.5], [norm(0, 1), norm(1, 1)])
    >>> round(risk.value, 6), norm.cdf(-0.5).round(6).item()
    (0.308538, 0.308538)
    """
    problem = DecisionProblem(priors, densities, costs)
    decide = _rule_of(rule, problem)
    return risk_of_rule(problem, decide, method, support, n_samples, check_delta(delta), random_state)


def bayes_risk(
    priors: Any,
    densities: Any,
    costs: Any = None,
    *,
    reject_cost: Any = None,
    method: str = "auto",
    support: tuple[float, float] | None = None,
    n_samples: int = 100_000,
    delta: float = 0.05,
    random_state: int = 0,
) -> DecisionRisk:
    """Compute the Bayes risk (2), the minimum risk of any rule, which is that of `BayesClassifier`.

    Parameters
    ----------
    priors, densities, costs, reject_cost
        As in `BayesClassifier`.
    method, support, n_samples, delta, random_state
        As in `decision_risk`.

    Returns
    -------
    DecisionRisk

    Examples
    --------
    >>> from summula.bayes import bayes_risk
    >>> bayes_risk([0.5, 0.5], [{"a": 0.9, "b": 0.1}, {"a": 0.2, "b": 0.8}]).value.__round__(12)
    0.15
    """
    problem = DecisionProblem(priors, densities, costs, reject_cost=reject_cost)

    def decide(x: Any) -> NDArray[np.intp]:
        return _decided(problem, x)

    return risk_of_rule(problem, decide, method, support, n_samples, check_delta(delta), random_state)


# ------------------------------------------------------------------------------------------------------------ the rule


def _rule_of(rule: Any, problem: DecisionProblem) -> Rule:
    """Return a rule as a function from observations to indices of actions."""
    act = rule.predict if hasattr(rule, "predict") else rule
    if not callable(act):
        raise ParameterError(f"rule must be a function of observations, or have predict; got {type(rule).__name__}.")
    places = {action: place for place, action in enumerate(problem.actions)}
    discrete = problem._densities[0].table is not None

    def decide(x: Any) -> NDArray[np.intp]:
        if discrete and not hasattr(rule, "predict"):
            actions = [act(one) for one in x]
        else:
            rows = np.asarray(x)
            actions = np.asarray(act(rows[:, None] if hasattr(rule, "predict") and rows.ndim == 1 else rows)).tolist()
        if len(actions) != len(x):
            raise DataError(
                f"The rule returned {len(actions)} actions for {len(x)} observations; it must return one for each."
            )
        try:
            return np.array([places[action] for action in actions], np.intp)
        except KeyError as error:
            raise DataError(
                f"The rule returned {error.args[0]!r}, which has no costs; the actions are {list(problem.actions)!r}."
            ) from None

    return decide


def _decided(problem: DecisionProblem, x: Any) -> NDArray[np.intp]:
    """Return the Bayes action for every observation, which minimises sum_s costs[a, s] P(s) p(x | s)."""
    joint = log_joint(problem, x)
    top = joint.max(axis=1, keepdims=True)
    scaled = np.exp(joint - np.where(np.isfinite(top), top, 0.0))
    return np.asarray(problem._table.risks(scaled).argmin(axis=1), np.intp)


def _observed(X: Any) -> Any:
    """Return rows in the form passed to densities: a vector if there is one column."""
    rows = np.asarray(X)
    return rows[:, 0] if rows.ndim == 2 and rows.shape[1] == 1 else rows


def _labels(actions: tuple[Any, ...]) -> NDArray[Any]:
    """Return names of actions as an array; an object array for mixed types, such as numbers and "reject"."""
    if len({isinstance(action, str) for action in actions}) == 1:
        return np.array(actions)
    labels = np.empty(len(actions), object)
    labels[:] = list(actions)
    return labels
