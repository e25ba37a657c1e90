"""Likelihood ratio tests of one density against another, with a fixed sample or sequentially.

For states 1 and 0 with priors P_1, P_0 and costs c[action, state], action 1 has the smaller risk if and only if

    sum_i log p_1(x_i) / p_0(x_i)  >  log [P_0 (c[1, 0] - c[0, 0])] / [P_1 (c[0, 1] - c[1, 1])]                 (1)

Wald's sequential test stops as soon as the left side leaves an interval,

    log beta / (1 - alpha)  <  sum_i log p_1(x_i) / p_0(x_i)  <  log (1 - beta) / alpha                         (2)

Then P(say 1 | 0) <= alpha / (1 - beta), P(say 0 | 1) <= beta / (1 - alpha), and their sum is at most alpha + beta. No
test with the same errors needs fewer observations on average. Reference: Wald (1945); Wald and Wolfowitz (1948).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.bayes.densities import check_probabilities, density_of, item_of, listed
from summula.bayes.labelled import list_or_dict
from summula.core.errors import DataError, ParameterError
from summula.core.estimator.input.argument_values import numbers_in
from summula.stats.bounds import check_delta

__all__ = ["SPRT", "LikelihoodRatio", "SequentialDecision", "likelihood_ratio_test"]

Array = NDArray[np.float64]


class LikelihoodRatio(NamedTuple):
    """Result of a likelihood ratio test.

    Attributes
    ----------
    decision : int
        1 if the log ratio exceeds the threshold, else 0.
    log_ratio, log_threshold : float
        The two sides of (1).
    """

    decision: int
    log_ratio: float
    log_threshold: float


def likelihood_ratio_test(
    xs: Any, density1: Any, density0: Any, *, priors: Any = (0.5, 0.5), costs: Any = ((0.0, 1.0), (1.0, 0.0))
) -> LikelihoodRatio:
    """Decide between two states by the likelihood ratio of independent observations (1).

    Parameters
    ----------
    xs : sequence
        Observations.
    density1, density0 : dict, callable or distribution
        Distributions of an observation in the states 1 and 0: {observation: probability}, a density, or anything with
        `logpdf` or `logpmf`.
    priors : pair of float, Series or dict, default=(0.5, 0.5)
        Prior probabilities of the states 0 and 1, or {0: probability, 1: probability}.
    costs : array-like of shape (2, 2), DataFrame or dict of dicts, default=((0, 1), (1, 0))
        costs[action, state], or {action: {state: cost}}; each action must be the cheaper one in its own state.

    Returns
    -------
    LikelihoodRatio

    Examples
    --------
    >>> from scipy.stats import norm
    >>> from summula.bayes import likelihood_ratio_test
    >>> likelihood_ratio_test([0.9, 0.4], norm(1, 1), norm(0, 1)).decision
    1
    >>> likelihood_ratio_test([0.9, 0.4], norm(1, 1), norm(0, 1), costs=[[0, 1], [3, 0]]).decision
    0
    """
    prior = check_probabilities(_in_order(priors, "priors"), "The priors", sums=True)
    costs = _in_order(costs, "costs")
    table = numbers_in("costs", [_in_order(row, "costs") for row in costs] if isinstance(costs, list) else costs)
    if prior.shape != (2,) or table.shape != (2, 2):
        raise ParameterError(
            f"Two states need 2 priors and costs of shape (2, 2), actions by states; got {len(prior)}, {table.shape}."
        )
    wrong1, wrong0 = table[1, 0] - table[0, 0], table[0, 1] - table[1, 1]
    if not (wrong1 > 0 and wrong0 > 0):
        raise ParameterError(
            f"costs {table.tolist()} make one action better in both states, so there is nothing to test: in state 0 "
            "action 0 must cost less than action 1, and in state 1 more."
        )
    with np.errstate(divide="ignore"):
        threshold = float(np.log(prior[0] * wrong1) - np.log(prior[1] * wrong0))
    ratios = _log_ratios(xs, density1, density0)
    if ratios.max(initial=0.0) == np.inf and ratios.min(initial=0.0) == -np.inf:
        raise DataError(
            f"The observations have probability 0 in both states: in state 0 because of observation "
            f"{int(ratios.argmax())}, in state 1 because of observation {int(ratios.argmin())}; check the densities."
        )
    ratio = float(ratios.sum())
    return LikelihoodRatio(int(ratio > threshold), ratio, threshold)


def _in_order(values: Any, name: str) -> Any:
    """Return the values of a dict with the keys 0 and 1, or of a pandas object, as a list; others unchanged."""
    values = list_or_dict(values)
    if not isinstance(values, Mapping):
        return values
    if set(values) != {0, 1}:
        raise ParameterError(f"{name} must be a pair, or a dict with the keys 0 and 1; got the keys {list(values)!r}.")
    return [values[0], values[1]]


def _log_ratios(xs: Any, density1: Any, density0: Any) -> Array:
    """Return log p_1(x) / p_0(x) of every observation."""
    xs = listed(xs)
    if not len(xs):
        return np.zeros(0)
    one, zero = density_of(density1, "the state 1").log(xs), density_of(density0, "the state 0").log(xs)
    impossible = np.flatnonzero(np.isneginf(one) & np.isneginf(zero))
    if len(impossible):
        raise DataError(
            f"The observation {item_of(xs[int(impossible[0])])!r} has probability 0 in both states, so its ratio is "
            "undefined."
        )
    return np.asarray(one - zero)


class SequentialDecision(NamedTuple):
    """State of a sequential test.

    Attributes
    ----------
    decision : {0, 1} or None
        None if more observations are needed.
    n : int
        Number of observations used.
    log_ratio : float
    path : ndarray of shape (n,)
        The log ratio after each observation.
    """

    decision: int | None
    n: int
    log_ratio: float
    path: Array


class SPRT:
    """Wald's sequential probability ratio test (2), which takes observations until it can decide.

    Parameters
    ----------
    alpha : float
        Nominal probability of deciding for 1 in state 0.
    beta : float
        Nominal probability of deciding for 0 in state 1; alpha + beta < 1.
    density1, density0 : dict, callable or distribution
        As in `likelihood_ratio_test`.

    Attributes
    ----------
    lower, upper : float
        Bounds of the interval (2).

    Examples
    --------
    >>> from summula.bayes import SPRT
    >>> fair, biased = {"head": 0.5, "tail": 0.5}, {"head": 0.8, "tail": 0.2}
    >>> test = SPRT(0.05, 0.05, density1=biased, density0=fair)
    >>> result = test.run(["head"] * 20)
    >>> result.decision, result.n
    (1, 7)
    """

    def __init__(self, alpha: float, beta: float, density1: Any, density0: Any) -> None:
        self.alpha, self.beta = check_delta(alpha, "alpha"), check_delta(beta, "beta")
        if self.alpha + self.beta >= 1:
            raise ParameterError(
                f"alpha + beta must be below 1; got {alpha} + {beta}, which is no better than guessing."
            )
        self.density1, self.density0 = density_of(density1, "the state 1"), density_of(density0, "the state 0")
        self.lower, self.upper = math.log(self.beta / (1 - self.alpha)), math.log((1 - self.beta) / self.alpha)

    def run(self, xs: Iterable[Any]) -> SequentialDecision:
        """Take observations until the test can decide, or there are no more.

        Parameters
        ----------
        xs : iterable
            Observations; an iterator is not read further than needed.

        Returns
        -------
        SequentialDecision
        """
        total, path = 0.0, []
        for x in xs if isinstance(xs, Iterator) else listed(xs):
            total += float(_log_ratios([x], self.density1, self.density0)[0])
            path.append(total)
            if not self.lower < total < self.upper:
                return SequentialDecision(int(total >= self.upper), len(path), total, np.array(path))
        return SequentialDecision(None, len(path), total, np.array(path))

    def expected_samples(self, mean0: float, mean1: float) -> tuple[float, float]:
        """Compute Wald's approximation of the expected numbers of observations in the states 0 and 1.

        Parameters
        ----------
        mean0, mean1 : float
            Mean of log p_1(x) / p_0(x) in each state: minus KL(p_0 || p_1), and KL(p_1 || p_0).

        Returns
        -------
        tuple of float
        """
        if not (mean0 < 0 < mean1):
            raise ParameterError(f"The mean log ratio is negative in state 0, positive in 1; got {mean0} and {mean1}.")
        in0 = ((1 - self.alpha) * self.lower + self.alpha * self.upper) / mean0
        return in0, (self.beta * self.lower + (1 - self.beta) * self.upper) / mean1
