"""Exponential families of counts and classes; the table is in `families.py`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from summula.core.model_files import schema
from summula.stats.families.exponential_family import Family, check_parameter

__all__ = ["Bernoulli", "Binomial", "Multinomial", "NegativeBinomial", "Poisson"]

Array = NDArray[np.float64]

_TINY, _BELOW_ONE = np.finfo(np.float64).tiny, 1.0 - 2.0**-53


@schema.saved("stats.families.Bernoulli")
@dataclass(frozen=True)
class Bernoulli(Family):
    """The Bernoulli distribution: y is 0 or 1, and mu is the probability of 1. Models also accept 0 <= y <= 1."""

    name = "bernoulli"
    support = "values from 0 to 1"
    fixed_dispersion = True
    mean_range = (0.0, 1.0)
    default_link = "logit"

    def log_base(self, y: Array, dispersion: float | Array = 1.0) -> Array:
        return np.zeros_like(y, dtype=np.float64)

    def natural(self, mean: Array) -> Array:
        eta: Array = special.logit(mean)
        return eta

    def log_partition(self, eta: Array) -> Array:
        return np.logaddexp(0.0, eta)

    def mean(self, eta: Array) -> Array:
        mean: Array = special.expit(eta)
        return mean

    def variance(self, eta: Array) -> Array:
        variance: Array = special.expit(eta) * special.expit(-np.asarray(eta))
        return variance

    def unit_variance(self, mu: Array) -> Array:
        mu = np.asarray(mu)
        return mu * (1.0 - mu)

    def unit_variance_slope(self, mu: Array) -> Array:
        mu = np.asarray(mu)
        return 1.0 - 2.0 * mu

    def unit_deviance(self, y: Array, mu: Array) -> Array:
        y, mu = np.asarray(y), np.asarray(mu)
        deviance: Array = 2.0 * (special.xlogy(y, y / mu) + special.xlogy(1.0 - y, (1.0 - y) / (1.0 - mu)))
        return deviance

    def _log_likelihood_rows(self, y: Array, mu: Array, dispersion: Array) -> Array:
        return self.log_density(y, self.natural(np.clip(mu, _TINY, _BELOW_ONE)), dispersion)

    def _inside(self, y: Array) -> NDArray[np.bool_]:
        return (y >= 0) & (y <= 1)


@schema.saved("stats.families.Binomial", trials=schema.Integer(1))
@dataclass(frozen=True)
class Binomial(Bernoulli):
    """The binomial distribution: the number of successes in `trials` independent trials.

    As an exponential family y is the number of successes. In a model y is their proportion and mu its mean, so the unit
    variance and deviance are those of a single trial; pass the number of trials as the weight of a row.
    """

    trials: int = 1

    name = "binomial"

    def __post_init__(self) -> None:
        check_parameter(self.trials >= 1 and self.trials == int(self.trials), self, "trials", "an integer >= 1")

    def log_base(self, y: Array, dispersion: float | Array = 1.0) -> Array:
        if self.trials == 1:  # also for proportions
            return super().log_base(y, dispersion)
        m, y = self.trials, np.asarray(y, dtype=np.float64)
        choices: Array = special.gammaln(m + 1) - special.gammaln(y + 1) - special.gammaln(m - y + 1)
        return choices / dispersion

    def natural(self, mean: Array) -> Array:
        return super().natural(np.asarray(mean) / self.trials)

    def log_partition(self, eta: Array) -> Array:
        return self.trials * super().log_partition(eta)

    def mean(self, eta: Array) -> Array:
        return self.trials * super().mean(eta)

    def variance(self, eta: Array) -> Array:
        return self.trials * super().variance(eta)

    def _log_likelihood_rows(self, y: Array, mu: Array, dispersion: Array) -> Array:
        m = self.trials
        return self.log_density(m * y, self.natural(m * np.clip(mu, _TINY, _BELOW_ONE)), dispersion)


@schema.saved("stats.families.Poisson")
@dataclass(frozen=True)
class Poisson(Family):
    """The Poisson distribution of counts, with mean and variance mu. Models also accept non-integer y >= 0."""

    name = "poisson"
    fixed_dispersion = True

    def log_base(self, y: Array, dispersion: float | Array = 1.0) -> Array:
        log_base: Array = -special.gammaln(np.asarray(y, dtype=np.float64) + 1.0) / dispersion
        return log_base

    def natural(self, mean: Array) -> Array:
        return np.log(mean)

    def log_partition(self, eta: Array) -> Array:
        return np.exp(eta)

    mean = log_partition
    variance = log_partition

    def unit_variance(self, mu: Array) -> Array:
        return np.array(mu, dtype=np.float64)

    def unit_variance_slope(self, mu: Array) -> Array:
        return np.ones_like(mu, dtype=np.float64)

    def unit_deviance(self, y: Array, mu: Array) -> Array:
        y, mu = np.asarray(y), np.asarray(mu)
        deviance: Array = 2.0 * (special.xlogy(y, y / mu) - y + mu)
        return deviance


@schema.saved("stats.families.NegativeBinomial", alpha=schema.Real(0.0))
@dataclass(frozen=True)
class NegativeBinomial(Family):
    """The negative binomial distribution of counts, with mean mu and variance mu + alpha mu^2 for a known alpha > 0.

    It is a Poisson distribution with a gamma distributed mean.
    """

    alpha: float = 1.0

    name = "negative_binomial"
    fixed_dispersion = True
    natural_range = (-np.inf, 0.0)

    def __post_init__(self) -> None:
        check_parameter(0.0 < self.alpha < np.inf, self, "alpha", "a number > 0")

    def log_base(self, y: Array, dispersion: float | Array = 1.0) -> Array:
        r, y = 1.0 / self.alpha, np.asarray(y, dtype=np.float64)
        choices: Array = special.gammaln(y + r) - special.gammaln(r) - special.gammaln(y + 1.0)
        return choices / dispersion

    def natural(self, mean: Array) -> Array:
        return -np.log1p(1.0 / (self.alpha * np.asarray(mean)))

    def log_partition(self, eta: Array) -> Array:
        return -np.log(-np.expm1(eta)) / self.alpha

    def mean(self, eta: Array) -> Array:
        return 1.0 / (self.alpha * np.expm1(-np.asarray(eta)))

    def variance(self, eta: Array) -> Array:
        return self.unit_variance(self.mean(eta))

    def unit_variance(self, mu: Array) -> Array:
        mu = np.asarray(mu)
        return mu + self.alpha * np.square(mu)

    def unit_variance_slope(self, mu: Array) -> Array:
        mu = np.asarray(mu)
        return 1.0 + 2.0 * self.alpha * mu

    def unit_deviance(self, y: Array, mu: Array) -> Array:
        y, mu = np.asarray(y), np.asarray(mu)
        c = self.alpha
        deviance: Array = 2.0 * (special.xlogy(y, y / mu) - (y + 1.0 / c) * np.log1p(c * (y - mu) / (1.0 + c * mu)))
        return deviance


@schema.saved("stats.families.Multinomial", k=schema.Integer(2))
@dataclass(frozen=True)
class Multinomial(Family):
    """The categorical distribution: y is a code 0 ... k - 1; eta, mu and T(y) (one-hot) have a last axis of length k.

    eta is determined up to a constant. `variance` is the matrix diag(p) - p p', on the last two axes.
    """

    k: int

    name = "multinomial"
    fixed_dispersion = True
    mean_range = (0.0, 1.0)
    default_link = "logit"

    def __post_init__(self) -> None:
        check_parameter(self.k >= 2 and self.k == int(self.k), self, "k", "an integer >= 2")

    @property
    def support(self) -> str:  # type: ignore[override]
        return f"class codes 0 to {self.k - 1}"

    def log_base(self, y: Array, dispersion: float | Array = 1.0) -> Array:
        return np.zeros_like(y, dtype=np.float64)

    def statistic(self, y: Array) -> Array:
        return np.asarray(np.asarray(y)[..., None] == np.arange(self.k), dtype=np.float64)

    def natural(self, mean: Array) -> Array:
        return np.log(mean)

    def log_partition(self, eta: Array) -> Array:
        a: Array = special.logsumexp(eta, axis=-1)
        return a

    def mean(self, eta: Array) -> Array:
        p: Array = special.softmax(eta, axis=-1)
        return p

    def variance(self, eta: Array) -> Array:
        p = self.mean(eta)
        matrix: Array = p[..., None] * (np.eye(self.k) - p[..., None, :])
        return matrix

    def log_density(self, y: Array, eta: Array, dispersion: float | Array = 1.0) -> Array:
        chosen = np.sum(np.asarray(eta) * self.statistic(y), axis=-1)
        return np.asarray((chosen - self.log_partition(eta)) / dispersion)

    def unit_variance(self, mu: Array) -> Array:
        mu = np.asarray(mu)
        return mu * (1.0 - mu)

    def unit_variance_slope(self, mu: Array) -> Array:
        mu = np.asarray(mu)
        return 1.0 - 2.0 * mu

    def unit_deviance(self, y: Array, mu: Array) -> Array:
        chosen: Array = np.sum(np.asarray(mu) * self.statistic(y), axis=-1)
        return -2.0 * np.log(chosen)

    def _inside(self, y: Array) -> NDArray[np.bool_]:
        inside: NDArray[np.bool_] = (y >= 0) & (y < self.k) & (y == np.floor(y))
        return inside
