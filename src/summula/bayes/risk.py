"""The risk of decision rules, and the Bayes risk, for known priors and densities.

    R(rule) = sum_s P(s) integral costs[rule(x), s] p(x | s) dx                                                 (1)
    Bayes rule: the action that minimises sum_s costs[a, s] P(s) p(x | s);  its risk is
    R* = integral min_a sum_s costs[a, s] P(s) p(x | s) dx                                                      (2)

The integral is a sum for discrete observations, adaptive quadrature for a single number, and otherwise the mean of the
conditional risk over draws from the mixture of the densities. That is bounded by the costs, so its betting interval
(`stats.betting_bounds`) is valid for any distribution. Rules on numbers are piecewise constant: their change points
between points of a grid are found by bisection, and pieces are integrated one by one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin

from summula.bayes.decision_problem import DecisionProblem
from summula.bayes.densities import Density, evaluate, finite_joint
from summula.bayes.estimation import checked_support
from summula.bayes.rules import Rule, decided, log_joint, rule_of
from summula.core.errors import ParameterError
from summula.core.estimator.input.argument_values import is_choice, is_integer
from summula.stats.bounds import check_delta
from summula.stats.bounds_betting import betting_bounds
from summula.stats.multivariate_normal import MultivariateNormal

__all__ = ["BayesClassifier", "DecisionRisk", "bayes_risk", "decision_risk"]

Array = NDArray[np.float64]

_METHODS = ("auto", "sum", "quadrature", "monte_carlo")
_GRID = 4_001  # number of points at which a rule on numbers is evaluated
_TAIL = 1e-13  # probability excluded at each end of an unbounded support
_PIECES = 20  # pieces per density that are integrated separately
_LEVELS = special.expit(np.linspace(-1, 1, 801) * special.logit(1 - _TAIL))  # probabilities of the points of a grid
_LEGENDRE = np.polynomial.Legendre.basis(12)
_COARSE_NODES = np.concatenate([[-1.0], _LEGENDRE.deriv().roots(), [1.0]])  # Lobatto, which detects a jump at an end
_COARSE_WEIGHTS = 2 / (12 * 13 * _LEGENDRE(_COARSE_NODES) ** 2)
_FINE_NODES, _FINE_WEIGHTS = np.polynomial.legendre.leggauss(20)
_NODES, _COARSE = np.concatenate([_COARSE_NODES, _FINE_NODES]), len(_COARSE_NODES)
_HALVINGS = 60  # maximum number of pieces on which a density is not smooth
_WIDE_GRID = 40_001  # number of points at which a plain function is evaluated to find its support
_MASS_ERROR = 0.01  # tolerance for the sum over that grid to be 1


class DecisionRisk(NamedTuple):
    """The risk of a rule.

    Attributes
    ----------
    value : float
        Expected cost.
    lower, upper : float
        Interval around it: rounding of a sum, the error estimate of quadrature, or for Monte Carlo bounds that each
        fail with probability at most delta.
    method : {"sum", "quadrature", "monte_carlo"}
    n : int
        Number of observations, evaluations or draws.
    """

    value: float
    lower: float
    upper: float
    method: str
    n: int


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
        joint = finite_joint(self.predict_joint_log_proba(X))
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
        return np.asarray(self.actions_[decided(self._problem(), _observed(X))])


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
        A function of an array of observations, or of one observation, that returns actions; {observation: action};
        or an object with `predict`.
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
    decide = rule_of(rule, problem)
    return _risk(problem, decide, method, support, n_samples, check_delta(delta), random_state)


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
        return decided(problem, x)

    return _risk(problem, decide, method, support, n_samples, check_delta(delta), random_state)


def _risk(
    problem: DecisionProblem,
    decide: Rule,
    method: str,
    support: tuple[float, float] | None,
    n_samples: int,
    delta: float,
    random_state: int,
) -> DecisionRisk:
    if not is_choice(method, _METHODS):
        raise ParameterError(f"method must be one of {', '.join(_METHODS)}; got {method!r}.")
    densities = problem._densities
    if method == "sum" or (method == "auto" and densities[0].is_discrete):
        return _summed(problem, decide)
    grid = None if method == "monte_carlo" else _grid(densities, support)
    if method == "quadrature" or grid is not None:
        return _integrate(problem, decide, grid)
    return _sampled(problem, decide, n_samples, delta, random_state)


def _summed(problem: DecisionProblem, decide: Rule) -> DecisionRisk:
    x = _outcomes(problem._densities)
    joint = np.exp(log_joint(problem, x))
    paid = (problem.costs[decide(x)] * joint).ravel()
    left = abs(1 - math.fsum(joint.ravel())) * float(np.abs(problem.costs).max())  # beyond the outcomes listed
    value = math.fsum(paid)
    return DecisionRisk(value, value - left, value + left, "sum", len(x))


def _outcomes(densities: tuple[Density, ...]) -> Any:
    """Return all observations with a probability."""
    if all(density.table is not None for density in densities):
        return list(dict.fromkeys(x for density in densities for x in density.table or ()))
    if any(not density.is_discrete for density in densities):
        raise ParameterError("method='sum' needs discrete observations; use quadrature or monte_carlo for densities.")
    ends: Any = [density.quantiles([_TAIL, 1 - _TAIL]) for density in densities if density.table is None]
    return np.arange(int(np.floor(np.min(ends))), int(np.ceil(np.max(ends))) + 1)


def _quantiles(density: Density, support: tuple[float, float] | None) -> Array | None:
    """Return quantiles of a density, including its tails; None if observations are not single numbers."""
    given = density.given
    if isinstance(given, MultivariateNormal):
        if given.dimension != 1:
            return None
        return np.asarray(given.mean[0] + math.sqrt(given.cov[0, 0]) * special.ndtri(_LEVELS), np.float64)
    quantiles = density.quantiles(_LEVELS)
    if quantiles is not None or hasattr(given, "logpdf") or density.is_discrete:
        return quantiles
    return _quantiles_of_function(density, support)


def _quantiles_of_function(density: Density, support: tuple[float, float] | None) -> Array | None:
    """Return quantiles of a plain function from sums over a grid; None if it does not integrate to 1 there."""
    x = np.sinh(np.linspace(-25.0, 25.0, _WIDE_GRID)) if support is None else np.linspace(*support, _WIDE_GRID)
    try:
        with np.errstate(all="ignore"):
            p = np.nan_to_num(evaluate(density.given, x), nan=0.0, posinf=0.0)  # as exp(-x) * (x > 0) is at -1e9
    except (TypeError, ValueError, IndexError, OverflowError):  # a function of vectors
        return None
    with np.errstate(over="ignore"):
        mass = np.concatenate([[0.0], np.cumsum((p[1:] + p[:-1]) / 2 * np.diff(x))])
    if support is None and abs(mass[-1] - 1) > _MASS_ERROR:
        return None
    positive = np.flatnonzero(p > 0)
    if not len(positive):
        return None
    first, last = max(positive[0] - 1, 0), min(positive[-1] + 2, len(x))
    return np.asarray(np.interp(_LEVELS * mass[-1], mass[first:last], x[first:last]), np.float64)


def _grid(densities: tuple[Density, ...], support: Any) -> tuple[Array, Array] | None:
    """Return points at which a rule is evaluated, and ends of the pieces of an integral; None without single numbers.

    Both follow the quantiles of every density: distributions of very different scales, or with heavy tails, have no
    common grid of equal steps.
    """
    ends = _check_support(support)
    quantiles = [_quantiles(density, ends) for density in densities]
    if any(points is None or not np.isfinite(points).all() for points in quantiles):
        return None
    points = np.concatenate([points for points in quantiles if points is not None])
    low, high = ends if ends is not None else (points.min(), points.max())
    fine = np.concatenate([points, np.linspace(low, high, _GRID)])
    pieces = np.concatenate([points[:: len(_LEVELS) // _PIECES] for points in quantiles if points is not None])
    return _between(fine, low, high), _between(pieces, low, high)


def _between(points: Array, low: float, high: float) -> Array:
    return np.unique(np.concatenate([[low], np.clip(points, low, high), [high]]))


def _check_support(support: Any) -> tuple[float, float] | None:
    if support is None:
        return None
    low, high = checked_support(support)
    if not np.isfinite([low, high]).all():
        raise ParameterError(f"support must be two finite numbers, the smaller first; got {support!r}.")
    return low, high


def _integrate(problem: DecisionProblem, decide: Rule, grid: tuple[Array, Array] | None) -> DecisionRisk:
    if grid is None:
        raise ParameterError(
            "Quadrature needs densities of one number that integrate to 1: pass distributions with `ppf` "
            "(scipy.stats), or support=(low, high), outside of which the densities are 0."
        )
    fine, pieces = grid
    edges = np.unique(np.concatenate([_changes(decide, fine), pieces]))
    value, error, calls = _adaptive(problem, edges, lambda x: problem.costs[decide(x)])
    error += float(np.abs(problem.costs).max()) * (2 * _TAIL + _missed_mass(problem, edges))
    return DecisionRisk(value, value - error, value + error, "quadrature", calls)


def _missed_mass(problem: DecisionProblem, edges: Array) -> float:
    """Return the probability that is missing from the integrals of the densities, or too much.

    Nearer to a pole than the spacing of floating-point numbers there may be much of it, unless the pole is at 0. Plain
    functions may not be normalised, so only distributions count.
    """
    missed = 0.0
    for density, prior, one in zip(problem._densities, problem.priors, np.eye(len(problem.states)), strict=True):
        if hasattr(density.given, "logpdf"):
            mass = _adaptive(problem, edges, functools.partial(_repeated, one))[0]
            missed += abs(float(prior) - mass)
    return missed


def _repeated(row: Array, x: Array) -> Array:
    """Return one row for each point."""
    return np.tile(row, (len(x), 1))


def _adaptive(problem: DecisionProblem, edges: Array, costs: Callable[[Array], Array]) -> tuple[float, float, int]:
    """Integrate the costs of states, which are constant between edges; return the integral, its error, and calls."""
    low, high = edges[:-1], edges[1:]
    value, error, calls = 0.0, 0.0, 0
    for _ in range(_HALVINGS):
        parts, uncertain = _gauss(problem, costs, low, high)
        calls += len(low) * len(_NODES)
        left = uncertain > 1e-14 + 1e-11 * np.abs(parts)
        value, error = value + math.fsum(parts[~left]), error + math.fsum(uncertain[~left])
        low, high, parts, uncertain = low[left], high[left], parts[left], uncertain[left]
        if not len(low):
            break
        middle = (low + high) / 2
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    return value + math.fsum(parts), error + math.fsum(uncertain), calls


def _gauss(problem: DecisionProblem, costs: Callable[[Array], Array], low: Array, high: Array) -> tuple[Array, Array]:
    """Integrate over pieces with constant costs; the error is the difference of Gauss and Lobatto rules."""
    half, middle = (high - low) / 2, (high + low) / 2
    x = middle[:, None] + half[:, None] * _NODES
    with np.errstate(over="ignore"):
        joint = np.exp(log_joint(problem, x.ravel())).reshape(*x.shape, -1)
    # The end of a piece may be a pole of a density: the largest finite value is used there, and the piece is uncertain.
    pole = np.isinf(joint)
    np.copyto(joint, np.where(pole, 0.0, joint).max(axis=1, keepdims=True), where=pole)
    paid = np.einsum("pns,ps->pn", joint, costs(middle))
    parts, coarse = half * (paid[:, _COARSE:] @ _FINE_WEIGHTS), half * (paid[:, :_COARSE] @ _COARSE_WEIGHTS)
    return parts, np.abs(parts - coarse) + np.where(pole.any(axis=(1, 2)), 2 * np.abs(parts), 0.0)


def _changes(decide: Rule, grid: Array) -> Array:
    """Find the points between grid points at which the rule changes its action, by bisection."""
    actions = decide(grid)
    changes = np.flatnonzero(actions[1:] != actions[:-1])
    left, right, before = grid[changes], grid[changes + 1], actions[changes]
    for _ in range(60 if len(changes) else 0):
        middle = (left + right) / 2
        same = decide(middle) == before
        left, right = np.where(same, middle, left), np.where(same, right, middle)
    return np.asarray((left + right) / 2)


def _sampled(problem: DecisionProblem, decide: Rule, n: int, delta: float, random_state: int) -> DecisionRisk:
    if not (is_integer(n) and n > 0):
        raise ParameterError(f"n_samples must be a positive integer; got {n!r}.")
    rng = np.random.default_rng(random_state)
    states = rng.choice(len(problem.states), n, p=problem.priors / problem.priors.sum())
    counts = np.bincount(states, minlength=len(problem.states))
    drawn = [density.draw(int(k), rng) for density, k in zip(problem._densities, counts, strict=True) if k]
    x = np.concatenate(drawn)[rng.permutation(n)]
    joint = finite_joint(log_joint(problem, x))
    posterior = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    paid = (posterior * problem.costs[decide(x)]).sum(axis=1)
    low, high = float(problem.costs.min()), float(problem.costs.max())
    if low == high:
        return DecisionRisk(low, low, low, "monte_carlo", n)
    bounds = betting_bounds(np.clip((paid - low) / (high - low), 0.0, 1.0), delta)
    lower, upper = (low + float(end) * (high - low) for end in bounds)
    return DecisionRisk(float(paid.mean()), lower, upper, "monte_carlo", n)


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
