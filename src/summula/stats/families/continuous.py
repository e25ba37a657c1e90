"""Exponential families of real numbers; the table is in `families.py`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from summula.core.model_files import schema
from summula.stats.families.discrete import Poisson
from summula.stats.families.exponential_family import Family, Interval, check_parameter

__all__ = ["Gamma", "InverseGaussian", "Normal", "Tweedie"]

Array = NDArray[np.float64]


@schema.saved("stats.families.Normal")
@dataclass(frozen=True)
class Normal(Family):
    """The normal distribution with mean mu and variance phi."""

    name = "normal"
    support = "finite numbers"
    mean_range = (-np.inf, np.inf)
    default_link = "identity"

    def log_base(self, y: Array, dispersion: float | Array = 1.0) -> Array:
        return -0.5 * (np.square(y) / dispersion + np.log(2 * np.pi * dispersion))

    def natural(self, mean: Array) -> Array:
        return np.array(mean, dtype=np.float64)

    def log_partition(self, eta: Array) -> Array:
        return 0.5 * np.square(eta)

    def mean(self, eta: Array) -> Array:
        return np.array(eta, dtype=np.float64)

    def variance(self, eta: Array) -> Array:
        return np.ones_like(eta, dtype=np.float64)

    def unit_variance(self, mu: Array) -> Array:
        return np.ones_like(mu, dtype=np.float64)

    def unit_variance_slope(self, mu: Array) -> Array:
        return np.zeros_like(mu, dtype=np.float64)

    def unit_deviance(self, y: Array, mu: Array) -> Array:
        y, mu = np.asarray(y), np.asarray(mu)
        return np.square(y - mu)

    def _log_likelihood_rows(self, y: Array, mu: Array, dispersion: Array) -> Array:
        # Not through (1): y mu - mu^2 / 2 - y^2 / 2 cancels when the mean is far from 0.
        return -0.5 * (np.square(y - mu) / dispersion + np.log(2 * np.pi * dispersion))

    def _inside(self, y: Array) -> NDArray[np.bool_]:
        return np.ones(y.shape, dtype=np.bool_)


class PositiveFamily(Family):
    """Base class of the families of positive targets with negative natural parameters."""

    support = "values > 0"
    natural_range = (-np.inf, 0.0)

    def _inside(self, y: Array) -> NDArray[np.bool_]:
        return y > 0


@schema.saved("stats.families.Gamma")
@dataclass(frozen=True)
class Gamma(PositiveFamily):
    """The gamma distribution, with mean mu and variance phi mu^2: shape 1 / phi."""

    name = "gamma"

    def log_base(self, y: Array, dispersion: float | Array = 1.0) -> Array:
        shape = 1.0 / np.asarray(dispersion)
        log_base: Array = special.xlogy(shape - 1.0, y) + shape * np.log(shape) - special.gammaln(shape)
        return log_base

    def natural(self, mean: Array) -> Array:
        return -1.0 / np.asarray(mean)

    def log_partition(self, eta: Array) -> Array:
        return -np.log(-np.asarray(eta))

    def mean(self, eta: Array) -> Array:
        return -1.0 / np.asarray(eta)

    def variance(self, eta: Array) -> Array:
        return 1.0 / np.square(eta)

    def unit_variance(self, mu: Array) -> Array:
        return np.square(mu)

    def unit_variance_slope(self, mu: Array) -> Array:
        mu = np.asarray(mu)
        return 2.0 * mu

    def unit_deviance(self, y: Array, mu: Array) -> Array:
        y, mu = np.asarray(y), np.asarray(mu)
        ratio = y / mu
        return 2.0 * (ratio - 1.0 - np.log(ratio))


@schema.saved("stats.families.InverseGaussian")
@dataclass(frozen=True)
class InverseGaussian(PositiveFamily):
    """The inverse Gaussian distribution, with mean mu and variance phi mu^3."""

    name = "inverse_gaussian"

    def log_base(self, y: Array, dispersion: float | Array = 1.0) -> Array:
        y = np.asarray(y, dtype=np.float64)
        return -0.5 * (1.0 / (dispersion * y) + np.log(2 * np.pi * dispersion) + 3.0 * np.log(y))

    def natural(self, mean: Array) -> Array:
        return -0.5 / np.square(mean)

    def log_partition(self, eta: Array) -> Array:
        return -np.sqrt(-2.0 * np.asarray(eta))

    def mean(self, eta: Array) -> Array:
        return 1.0 / np.sqrt(-2.0 * np.asarray(eta))

    def variance(self, eta: Array) -> Array:
        return self.mean(eta) ** 3

    def unit_variance(self, mu: Array) -> Array:
        return np.asarray(mu) ** 3

    def unit_variance_slope(self, mu: Array) -> Array:
        return 3.0 * np.square(mu)

    def unit_deviance(self, y: Array, mu: Array) -> Array:
        y, mu = np.asarray(y), np.asarray(mu)
        return np.square(y / mu - 1.0) / y


@schema.saved("stats.families.Tweedie", power=schema.Real())
@dataclass(frozen=True)
class Tweedie(Family):
    """The Tweedie distributions, with variance phi mu^power.

    Powers 0, 1, 2 and 3 are the normal, Poisson, gamma and inverse Gaussian distributions, powers between 1 and 2
    compound Poisson sums of gammas; there is none between 0 and 1. The density has a closed form for powers 0, 3 and
    1 to 2; for other powers `log_base` and the likelihood are NaN.
    """

    power: float = 1.5

    name = "tweedie"

    def __post_init__(self) -> None:
        possible = np.isfinite(self.power) and not 0.0 < self.power < 1.0
        check_parameter(bool(possible), self, "power", "a number <= 0 or >= 1")

    @property
    def twin(self) -> Family | None:
        """The equivalent named family, if any."""
        twins: dict[float, Family] = {0.0: Normal(), 1.0: Poisson(), 2.0: Gamma(), 3.0: InverseGaussian()}
        return twins.get(float(self.power))

    @property
    def default_link(self) -> str:
        return "identity" if self.power <= 0 else "log"

    @property
    def support(self) -> str:  # type: ignore[override]
        return "finite numbers" if self.power <= 0 else f"values {'>= 0' if self.power < 2 else '> 0'}"

    @property
    def mean_range(self) -> Interval:  # type: ignore[override]
        return (-np.inf if self.power == 0 else 0.0, np.inf)

    @property
    def natural_range(self) -> Interval:  # type: ignore[override]
        return (0.0 if self.power < 0 else -np.inf, 0.0 if self.power > 1 else np.inf)

    def log_base(self, y: Array, dispersion: float | Array = 1.0) -> Array:
        p, y = self.power, np.asarray(y, dtype=np.float64)
        if self.twin:
            return self.twin.log_base(y, dispersion)
        if not 1.0 < p < 2.0:
            return np.full_like(y, np.nan)
        positive = np.where(y > 0, y, 1.0)
        a = (2.0 - p) / (p - 1.0)
        x = (positive / ((p - 1.0) * dispersion)) ** a / ((2.0 - p) * dispersion)
        return np.where(y > 0, special.log_wright_bessel(a, 0.0, x) - np.log(positive), 0.0)

    def natural(self, mean: Array) -> Array:
        if self.power == 1:
            return np.log(mean)
        return np.asarray(mean) ** (1.0 - self.power) / (1.0 - self.power)

    def log_partition(self, eta: Array) -> Array:
        p = self.power
        return self.twin.log_partition(eta) if self.twin else self.mean(eta) ** (2.0 - p) / (2.0 - p)

    def mean(self, eta: Array) -> Array:
        p = self.power
        return np.exp(eta) if p == 1 else ((1.0 - p) * np.asarray(eta)) ** (1.0 / (1.0 - p))

    def variance(self, eta: Array) -> Array:
        return self.unit_variance(self.mean(eta))

    def unit_variance(self, mu: Array) -> Array:
        return np.asarray(mu) ** self.power

    def unit_variance_slope(self, mu: Array) -> Array:
        if self.twin:  # without the 0 / 0 of the normal at mu = 0
            return self.twin.unit_variance_slope(mu)
        return self.power * np.asarray(mu) ** (self.power - 1.0)

    def unit_deviance(self, y: Array, mu: Array) -> Array:
        y, mu = np.asarray(y), np.asarray(mu)
        if self.twin:
            return self.twin.unit_deviance(y, mu)
        p = self.power
        # A negative power allows y < 0, but not a negative mean: the optimal mean then tends to 0.
        own = np.maximum(y, 0.0) ** (2.0 - p) / ((1.0 - p) * (2.0 - p))
        return 2.0 * (own - y * mu ** (1.0 - p) / (1.0 - p) + mu ** (2.0 - p) / (2.0 - p))

    def _log_likelihood_rows(self, y: Array, mu: Array, dispersion: Array) -> Array:
        rows = super()._log_likelihood_rows if self.twin is None else self.twin._log_likelihood_rows
        return rows(y, mu, dispersion)

    def _inside(self, y: Array) -> NDArray[np.bool_]:
        return np.ones(y.shape, np.bool_) if self.power <= 0 else (y >= 0 if self.power < 2 else y > 0)
