"""Conjugate priors of several parameters: mean and variance of normal data, probabilities of several outcomes.

    normal(t, s)       t | s ~ normal(m, s/k), s ~ inverse gamma(shape, rate);  after n data with sum S:
                       k' = k + n,   m' = (k m + S) / k',   shape' = shape + n/2,
                       rate' = rate + 1/2 sum (x - mean)^2 + k n (mean - m)^2 / (2 k')                          (1)
    multinomial(t)     Dirichlet(a), after some outcomes Dirichlet(a + their counts)                            (2)

Reference: Gelman et al., Bayesian Data Analysis, sections 3.3 and 3.4.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special, stats

from summula.bayes.conjugate import (
    Conjugate,
    checked_data,
    equal_tails,
    require_not_negative,
    require_proper,
    require_some,
)
from summula.bayes.estimation import check_loss, least_expected_loss, quantile_nodes
from summula.core.errors import DataError, ParameterError
from summula.core.estimator.input.argument_values import number_or_nan

__all__ = ["DirichletMultinomial", "MeanAndVariance", "NormalInverseGamma"]

Array = NDArray[np.float64]

_LOG_DRAWS = 13  # log2 of the number of points that represent a posterior of several parameters


class MeanAndVariance(NamedTuple):
    """Estimates, or intervals, of mean and variance of normal data."""

    mean: Any
    variance: Any


@dataclass(frozen=True)
class NormalInverseGamma(Conjugate):
    """Mean and variance of normal data, with a normal-inverse-gamma prior (1).

    Parameters
    ----------
    mean : float
        Prior mean of the mean.
    strength : float
        Number of data to which the prior mean is equivalent (k).
    shape, rate : float
        Parameters of the inverse gamma prior of the variance. With strength 0, shape -1/2 and rate 0 the prior is
        improper, proportional to 1 / variance; after some data the credible interval of the mean is then the usual
        confidence interval.

    Examples
    --------
    >>> from summula.bayes import NormalInverseGamma
    >>> model = NormalInverseGamma(0, 1, 2, 2).posterior([1.0, 2.0, 3.0])
    >>> model
    NormalInverseGamma(mean=1.5, strength=4.0, shape=3.5, rate=4.5)
    >>> model.estimate()
    MeanAndVariance(mean=1.5, variance=1.8)
    """

    mean: float
    strength: float
    shape: float
    rate: float

    def __post_init__(self) -> None:
        require_not_negative(self, "strength", "rate")
        if not -0.5 <= number_or_nan(self.shape) < np.inf:
            raise ParameterError(
                f"shape of NormalInverseGamma must be a positive number, or -1/2 to 0 for an improper prior; got "
                f"{self.shape!r}."
            )

    def distribution(self) -> MeanAndVariance:
        """Return the marginal distributions: Student's t for the mean, inverse gamma for the variance."""
        require_proper(self, proper=(self.strength > 0, self.shape > 0, self.rate > 0))
        scale = np.sqrt(self.rate / (self.shape * self.strength))
        return MeanAndVariance(stats.t(2 * self.shape, self.mean, scale), stats.invgamma(self.shape, scale=self.rate))

    def posterior(self, data: ArrayLike) -> Self:
        """Return the posterior after data (1)."""
        x = checked_data(data, "finite numbers")
        if not len(x):
            return self
        n, k, average = len(x), self.strength, float(x.mean())
        spread = ((x - average) ** 2).sum() / 2 + k * n * (average - self.mean) ** 2 / (2 * (k + n))
        return replace(
            self,
            mean=float((k * self.mean + n * average) / (k + n)),
            strength=float(k + n),
            shape=self.shape + n / 2,
            rate=float(self.rate + spread),
        )

    def mle(self, data: ArrayLike) -> MeanAndVariance:
        """Return mean and variance (with divisor n) of the data."""
        x = require_some(checked_data(data, "finite numbers"))
        return MeanAndVariance(float(x.mean()), float(x.var()))

    def predictive(self) -> Any:
        """Return Student's t distribution."""
        require_proper(self, proper=(self.strength > 0, self.shape > 0, self.rate > 0))
        scale = np.sqrt(self.rate * (self.strength + 1) / (self.shape * self.strength))
        return stats.t(2 * self.shape, self.mean, scale)

    def mode(self) -> Any:
        """Return the mode of the joint density."""
        return MeanAndVariance(self.mean, self.rate / (self.shape + 1.5))

    def estimate(self, loss: Any = "square") -> MeanAndVariance:
        """Return estimates of mean and variance; a loss function is applied to each separately."""
        check_loss(loss)
        marginals = self.distribution()
        if loss == "zero_one":
            return MeanAndVariance(*self.mode())
        if loss == "square":
            return MeanAndVariance(self.mean, self.rate / (self.shape - 1) if self.shape > 1 else np.inf)
        if loss == "absolute":
            return MeanAndVariance(*(float(one.median()) for one in marginals))
        return MeanAndVariance(*(least_expected_loss(*quantile_nodes(one), loss) for one in marginals))

    def interval(self, level: float = 0.95) -> Any:
        """Return credible intervals of mean and variance, each with probability `level`."""
        return MeanAndVariance(*(equal_tails(one, level) for one in self.distribution()))


@dataclass(frozen=True, eq=False)
class DirichletMultinomial(Conjugate):
    """Probabilities of several outcomes, with a Dirichlet prior (2).

    Parameters
    ----------
    concentration : array-like of shape (n_outcomes,)
        Pseudo-counts of the outcomes; ones give a uniform prior, whose posterior mean is Laplace smoothing. Zeros are
        an improper prior.

    Examples
    --------
    >>> from summula.bayes import DirichletMultinomial
    >>> die = DirichletMultinomial([1.0, 1.0, 1.0]).posterior([0, 2, 2, 2, 1, 0])
    >>> die.estimate().round(4)
    array([0.3333, 0.2222, 0.4444])
    """

    concentration: Any

    def __post_init__(self) -> None:
        a = np.asarray(self.concentration, np.float64)
        if a.ndim != 1 or len(a) < 2 or not (np.isfinite(a).all() and (a >= 0).all()):
            raise ParameterError(
                "concentration must be two or more positive numbers, or zeros for an improper prior; got "
                f"{self.concentration!r}."
            )
        object.__setattr__(self, "concentration", a)

    def distribution(self) -> Any:
        """Return the Dirichlet distribution."""
        self._require_proper()
        return stats.dirichlet(self.concentration)

    def _require_proper(self) -> None:
        require_proper(self, proper=self.concentration > 0)

    def posterior(self, data: ArrayLike) -> Self:
        """Return the posterior after outcomes (non-negative integers), or rows of counts of the outcomes."""
        return replace(self, concentration=self.concentration + self._counts(data))

    def _counts(self, data: ArrayLike) -> Array:
        values, K = np.asarray(data, np.float64), len(self.concentration)
        if values.ndim == 2:
            if values.shape[1] != K or not np.isfinite(values).all() or (values < 0).any():
                raise DataError(f"Rows of counts must have {K} non-negative numbers; got shape {values.shape}.")
            return np.asarray(values.sum(axis=0))
        codes = checked_data(values, f"outcomes: integers from 0 to {K - 1}", 0, K - 1, whole=True)
        return np.bincount(codes.astype(np.intp), minlength=K).astype(np.float64)

    def mle(self, data: ArrayLike) -> Array:
        """Return the proportions of the outcomes."""
        counts = self._counts(data)
        return np.asarray(counts / require_some(counts[counts > 0]).sum())

    def predictive(self) -> Any:
        """Return the distribution of one draw with the mean probabilities."""
        self._require_proper()
        return stats.multinomial(1, self.concentration / self.concentration.sum())

    def mode(self) -> Any:
        """Return the mode of the density, (a - 1) / (sum of a - K), with 0 for outcomes with a < 1."""
        above = np.maximum(self.concentration - 1, 0.0)
        if not above.any():  # flat, or largest at the corners
            top = self.concentration == self.concentration.max()
            return top / top.sum()
        return above / above.sum()

    def estimate(self, loss: Any = "square") -> Any:
        """Return the probabilities that minimise the expected loss.

        Parameters
        ----------
        loss : {"square", "zero_one", "absolute"} or callable, default="square"
            "absolute" gives the medians of the marginal distributions, whose sum need not be 1. A function is called
            with the estimate and an array of draws, one per row, and its mean over 8,192 draws is minimised.
        """
        check_loss(loss)
        self._require_proper()
        a = self.concentration
        if loss == "square":
            return a / a.sum()
        if loss == "zero_one":
            return self.mode()
        if loss == "absolute":
            return np.asarray(stats.beta(a, a.sum() - a).median())
        # A Sobol sequence of gamma variables, which are Dirichlet after normalisation.
        u = stats.qmc.Sobol(len(a), rng=np.random.default_rng(0)).random_base2(_LOG_DRAWS)
        draws = np.maximum(stats.gamma.ppf(u, a), np.finfo(np.float64).tiny)
        draws = draws / draws.sum(axis=1, keepdims=True)

        def expected(z: Array) -> float:
            return float(np.mean(loss(special.softmax(z), draws)))

        found = optimize.minimize(
            expected,
            np.log(a / a.sum()),
            method="Nelder-Mead",
            options={"xatol": 1e-6, "fatol": 1e-10, "maxiter": 5_000},
        )
        return np.asarray(special.softmax(found.x))

    def interval(self, level: float = 0.95) -> Any:
        """Return credible intervals of the individual probabilities, shape (n_outcomes, 2)."""
        self._require_proper()
        a = self.concentration
        return equal_tails(stats.beta(a, a.sum() - a), level)
