"""Conjugate priors of one parameter: the posterior belongs to the same family as the prior.

    model                    prior of its parameter                 posterior after n data with sum S
    Bernoulli(t)             Beta(a, b)                             Beta(a + S, b + n - S)                      (1)
    binomial(m, t)           Beta(a, b)                             Beta(a + S, b + n m - S)                    (2)
    Poisson(t)               Gamma(shape, rate)                     Gamma(shape + S, rate + n)                  (3)
    exponential(rate t)      Gamma(shape, rate)                     Gamma(shape + n, rate + S)                  (4)
    normal(t, v)             normal(m, u)                           precision 1/u + n/v, mean weighted by it    (5)

So a prior is equivalent to earlier data: Gamma(1, 1) in (4) is one waiting time of length 1 (up to one unit of shape
for the mode). A prior of no data at all (zeros, or an infinite variance in (5)) is improper: it has no distribution,
but its posterior after some data has. Estimates minimise an expected loss: the mean for squared, the median for
absolute, the mode for zero-one loss, and quadrature over quantiles for any other. Models with several parameters are in
`conjugate_joint`.

Reference: Gelman et al., Bayesian Data Analysis, chapters 2 and 3; DeGroot, Optimal Statistical Decisions, chapter 9.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from summula.bayes.estimation import check_loss, least_expected_loss, quantile_nodes
from summula.core.errors import DataError, ParameterError
from summula.core.estimator.input.argument_values import is_fraction, number_or_nan

__all__ = [
    "BetaBernoulli",
    "BetaBinomial",
    "Conjugate",
    "GammaExponential",
    "GammaPoisson",
    "NormalKnownVariance",
    "checked_data",
    "equal_tails",
    "require_not_negative",
    "require_positive",
    "require_proper",
    "require_some",
]

Array = NDArray[np.float64]


class Conjugate(ABC):
    """A prior, or posterior, of one parameter; subclasses are frozen dataclasses of its hyperparameters."""

    @abstractmethod
    def distribution(self) -> Any:
        """Return the distribution of the parameter, as a `scipy.stats` distribution."""

    @abstractmethod
    def posterior(self, data: ArrayLike) -> Self:
        """Return the posterior after some data, in the same family."""

    @abstractmethod
    def mle(self, data: ArrayLike) -> Any:
        """Return the maximum likelihood estimate, which ignores the prior."""

    @abstractmethod
    def predictive(self) -> Any:
        """Return the predictive distribution of the next datum, as a `scipy.stats` distribution."""

    @abstractmethod
    def mode(self) -> float:
        """Return the mode of the distribution of the parameter."""

    def estimate(self, loss: Any = "square") -> Any:
        """Return the Bayes estimate, which minimises the expected loss.

        Parameters
        ----------
        loss : {"square", "zero_one", "absolute"} or callable, default="square"
            These give the mean, the mode and the median. A function is called with the estimate and an array of
            possible values of the parameter.

        Returns
        -------
        float
        """
        check_loss(loss)
        distribution = self.distribution()
        if loss == "square":
            return float(distribution.mean())
        if loss == "zero_one":
            return float(self.mode())
        if loss == "absolute":
            return float(distribution.median())
        return least_expected_loss(*quantile_nodes(distribution), loss)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the equal-tailed credible interval, which contains the parameter with probability `level`."""
        low, high = equal_tails(self.distribution(), level)
        return low, high


def equal_tails(distribution: Any, level: float) -> Any:
    """Return the interval between the quantiles that leave equal probabilities on both sides.

    The upper one is computed from its tail, since 1 - tail is rounded to 1 at extreme levels.
    """
    if not is_fraction(level):
        raise ParameterError(f"level must be a probability between 0 and 1; got {level!r}.")
    tail = (1 - float(level)) / 2
    low, high = distribution.ppf(tail), distribution.isf(tail)
    return (float(low), float(high)) if np.ndim(low) == 0 else np.column_stack([low, high])


def require_positive(model: Any, *names: str) -> None:
    """Raise for fields of a model that are not positive."""
    for name in names:
        value = getattr(model, name)
        if not 0 < number_or_nan(value) < np.inf:
            raise ParameterError(f"{name} of {type(model).__name__} must be a positive number; got {value!r}.")


def require_not_negative(model: Any, *names: str) -> None:
    """Raise for fields of a model that are negative; zeros are improper priors."""
    for name in names:
        value = getattr(model, name)
        if not 0 <= number_or_nan(value) < np.inf:
            raise ParameterError(
                f"{name} of {type(model).__name__} must be a positive number, or 0 for an improper prior; got "
                f"{value!r}."
            )


def require_proper(model: Any, *, proper: Any) -> None:
    """Raise unless all of some conditions hold, under which a prior or posterior is a distribution."""
    if not np.all(proper):
        raise DataError(f"{model!r} is improper, so it has no distribution; use its posterior(data) after more data.")


def checked_data(
    values: ArrayLike, what: str, low: float = -np.inf, high: float = np.inf, *, whole: bool = False
) -> Array:
    """Return data as a vector of numbers within a range, or raise."""
    try:
        x = np.atleast_1d(np.asarray(values, np.float64))
    except (TypeError, ValueError):
        raise DataError(f"data must be {what}; got {values!r}.") from None
    if x.ndim != 1:
        raise DataError(f"data must be a list of numbers; got shape {x.shape}.")
    good = np.isfinite(x) & (x >= low) & (x <= high) & (~np.bool_(whole) | (x == np.floor(x)))
    if not good.all():
        row = int(np.argmin(good))
        raise DataError(f"data must be {what}; value {row} is {x[row]:g}.")
    return x


def require_some(x: Array) -> Array:
    """Raise for an empty list of data."""
    if not len(x):
        raise DataError("data is empty, so the posterior is improper; pass at least one value.")
    return x


class _Beta(Conjugate):
    """Base class of models with a Beta prior."""

    a: float
    b: float

    def __post_init__(self) -> None:
        require_not_negative(self, "a", "b")

    def distribution(self) -> Any:
        """Return Beta(a, b)."""
        require_proper(self, proper=(self.a > 0, self.b > 0))
        return stats.beta(self.a, self.b)

    def mode(self) -> float:
        """Return (a - 1) / (a + b - 2), or an end of [0, 1] if the density is largest there, or 1/2 if it is flat."""
        if self.a > 1 and self.b > 1:
            return (self.a - 1) / (self.a + self.b - 2)
        return 0.5 if self.a == self.b else float(self.a > self.b)


@dataclass(frozen=True)
class BetaBernoulli(_Beta):
    """The probability of success of Bernoulli trials, with a Beta prior (1).

    Parameters
    ----------
    a, b : float, default=1.0
        Pseudo-counts of successes and failures; Beta(1, 1) is uniform, and its posterior mean is Laplace's rule of
        succession. With zeros (improper) the posterior mean is the proportion of successes.

    Examples
    --------
    >>> from summula.bayes import BetaBernoulli
    >>> coin = BetaBernoulli(1, 1).posterior([1, 1, 0, 1])
    >>> coin
    BetaBernoulli(a=4.0, b=2.0)
    >>> round(coin.estimate("square"), 4), coin.estimate("zero_one")
    (0.6667, 0.75)
    """

    a: float = 1.0
    b: float = 1.0

    def posterior(self, data: ArrayLike) -> Self:
        """Return the posterior after outcomes, 1 for success and 0 for failure."""
        x = checked_data(data, "0 or 1", 0, 1, whole=True)
        return replace(self, a=float(self.a + x.sum()), b=float(self.b + len(x) - x.sum()))

    def mle(self, data: ArrayLike) -> float:
        """Return the proportion of successes."""
        return float(require_some(checked_data(data, "0 or 1", 0, 1, whole=True)).mean())

    def predictive(self) -> Any:
        """Return the Bernoulli distribution with the mean of the parameter."""
        return stats.bernoulli(self.distribution().mean())


@dataclass(frozen=True)
class BetaBinomial(_Beta):
    """The probability of success for counts of successes among n trials each, with a Beta prior (2).

    Parameters
    ----------
    a, b : float
        Pseudo-counts of successes and failures.
    n : int
        Number of trials per datum.

    Examples
    --------
    >>> from summula.bayes import BetaBinomial
    >>> BetaBinomial(1, 1, n=10).posterior([9, 8]).mode()
    0.85
    """

    a: float
    b: float
    n: int

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "n")

    def posterior(self, data: ArrayLike) -> Self:
        """Return the posterior after counts of successes, each among n trials."""
        x = self._counts(data)
        return replace(self, a=float(self.a + x.sum()), b=float(self.b + self.n * len(x) - x.sum()))

    def mle(self, data: ArrayLike) -> float:
        """Return the proportion of successes among all trials."""
        return float(require_some(self._counts(data)).mean() / self.n)

    def predictive(self) -> Any:
        """Return the beta-binomial distribution of successes among n further trials."""
        require_proper(self, proper=(self.a > 0, self.b > 0))
        return stats.betabinom(self.n, self.a, self.b)

    def _counts(self, data: ArrayLike) -> Array:
        return checked_data(data, f"integers from 0 to n = {self.n}", 0, self.n, whole=True)


class _Gamma(Conjugate):
    """Base class of models with a Gamma prior."""

    shape: float
    rate: float

    def __post_init__(self) -> None:
        require_not_negative(self, "shape", "rate")

    def distribution(self) -> Any:
        """Return Gamma(shape, rate)."""
        require_proper(self, proper=(self.shape > 0, self.rate > 0))
        return stats.gamma(self.shape, scale=1 / self.rate)

    def mode(self) -> float:
        """Return (shape - 1) / rate, or 0 for a shape below 1."""
        return max(self.shape - 1, 0.0) / self.rate


@dataclass(frozen=True)
class GammaPoisson(_Gamma):
    """The mean of Poisson counts, with a Gamma prior (3).

    Parameters
    ----------
    shape, rate : float
        Equivalent to a total count of `shape` in `rate` observations.

    Examples
    --------
    >>> from summula.bayes import GammaPoisson
    >>> GammaPoisson(2, 1).posterior([3, 5, 4]).estimate()
    3.5
    """

    shape: float
    rate: float

    def posterior(self, data: ArrayLike) -> Self:
        """Return the posterior after counts."""
        x = checked_data(data, "non-negative integers", 0, whole=True)
        return replace(self, shape=float(self.shape + x.sum()), rate=float(self.rate + len(x)))

    def mle(self, data: ArrayLike) -> float:
        """Return the mean count."""
        return float(require_some(checked_data(data, "non-negative integers", 0, whole=True)).mean())

    def predictive(self) -> Any:
        """Return the negative binomial distribution."""
        require_proper(self, proper=(self.shape > 0, self.rate > 0))
        return stats.nbinom(self.shape, self.rate / (self.rate + 1))


@dataclass(frozen=True)
class GammaExponential(_Gamma):
    """The rate of exponential waiting times, with a Gamma prior (4).

    Parameters
    ----------
    shape, rate : float
        Equivalent to `shape` waiting times with the sum `rate`.

    Examples
    --------
    >>> from summula.bayes import GammaExponential
    >>> x = [0.5, 2.0, 1.5]
    >>> GammaExponential(1, 1).posterior(x).estimate("zero_one"), 3 / (sum(x) + 1)
    (0.6, 0.6)
    """

    shape: float
    rate: float

    def posterior(self, data: ArrayLike) -> Self:
        """Return the posterior after waiting times."""
        x = checked_data(data, "non-negative numbers", 0)
        return replace(self, shape=float(self.shape + len(x)), rate=float(self.rate + x.sum()))

    def mle(self, data: ArrayLike) -> float:
        """Return the inverse of the mean waiting time."""
        x = require_some(checked_data(data, "non-negative numbers", 0))
        return float(len(x) / x.sum()) if x.sum() else np.inf

    def predictive(self) -> Any:
        """Return the Lomax distribution of the next waiting time."""
        require_proper(self, proper=(self.shape > 0, self.rate > 0))
        return stats.lomax(self.shape, scale=self.rate)


@dataclass(frozen=True)
class NormalKnownVariance(Conjugate):
    """The mean of normal data with known variance, with a normal prior (5).

    Parameters
    ----------
    mean, variance : float
        Mean and variance of the prior; an infinite variance is a flat, improper prior.
    noise_variance : float
        Variance of the data about the mean.

    Examples
    --------
    >>> from summula.bayes import NormalKnownVariance
    >>> NormalKnownVariance(0, 1, noise_variance=1).posterior([3.0, 3.0, 3.0])
    NormalKnownVariance(mean=2.25, variance=0.25, noise_variance=1)
    """

    mean: float
    variance: float
    noise_variance: float

    def __post_init__(self) -> None:
        require_positive(self, "noise_variance", *(["variance"] if self.variance != np.inf else []))

    def distribution(self) -> Any:
        """Return the normal distribution."""
        require_proper(self, proper=np.isfinite(self.variance))
        return stats.norm(self.mean, np.sqrt(self.variance))

    def posterior(self, data: ArrayLike) -> Self:
        """Return the posterior after data; precisions add."""
        x = checked_data(data, "finite numbers")
        if not len(x):
            return self
        precision = 1 / self.variance + len(x) / self.noise_variance
        mean = (self.mean / self.variance + x.sum() / self.noise_variance) / precision
        return replace(self, mean=float(mean), variance=float(1 / precision))

    def mle(self, data: ArrayLike) -> float:
        """Return the mean of the data."""
        return float(require_some(checked_data(data, "finite numbers")).mean())

    def predictive(self) -> Any:
        """Return the normal distribution whose variance is the sum of those of parameter and data."""
        require_proper(self, proper=np.isfinite(self.variance))
        return stats.norm(self.mean, np.sqrt(self.variance + self.noise_variance))

    def mode(self) -> float:
        """Return the mean."""
        return self.mean
