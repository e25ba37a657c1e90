"""Exponential families: normal, Bernoulli, Poisson, gamma and others in one form.

Each is p(y; eta, phi) = b(y, phi) exp((eta T(y) - a(eta)) / phi), see `exponential_family.py`, with T(y) = y except
for the multinomial, for which T(y) is one-hot:

                          eta                      a(eta)                    E[T] = a'(eta)
    Normal                mu                       eta^2 / 2                 eta
    Bernoulli             log(p / (1 - p))         log(1 + e^eta)            1 / (1 + e^-eta)
    Binomial(m)           log(p / (1 - p))         m log(1 + e^eta)          m / (1 + e^-eta)
    Poisson               log mu                   e^eta                     e^eta
    Gamma                 -1 / mu                  -log(-eta)                -1 / eta
    InverseGaussian       -1 / (2 mu^2)            -sqrt(-2 eta)             1 / sqrt(-2 eta)
    NegativeBinomial(c)   -log(1 + 1 / (c mu))     -log(1 - e^eta) / c       1 / (c (e^-eta - 1))
    Tweedie(p)            mu^(1-p) / (1 - p)       mu^(2-p) / (2 - p)        mu = ((1 - p) eta)^(1 / (1-p))
    Multinomial(k)        log p_1, ..., log p_k    log sum_j e^eta_j         softmax(eta)

                          V(mu)                    support of a model        default link    dispersion
    Normal                1                        real numbers              identity        estimated
    Bernoulli, Binomial   mu (1 - mu)              0 <= y <= 1               logit           1
    Poisson               mu                       y >= 0                    log             1
    Gamma                 mu^2                     y > 0                     log             estimated
    InverseGaussian       mu^3                     y > 0                     log             estimated
    NegativeBinomial(c)   mu + c mu^2              y >= 0                    log             1
    Tweedie(p)            mu^p                     see below                 log             estimated
    Multinomial(k)        mu (1 - mu)              0, ..., k - 1             logit           1

Tweedie: any y and the identity link for p <= 0, y >= 0 for 1 <= p < 2, y > 0 for p >= 2.

References: McCullagh and Nelder (1989), chapter 2; Jorgensen (1997) for Tweedie, Dunn and Smyth (2005) for its density.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from summula.core.errors import ParameterError
from summula.core.model_files import schema
from summula.stats.exponential_family import Family, UnsupportedTarget

__all__ = [
    "Bernoulli",
    "Binomial",
    "Family",
    "Gamma",
    "InverseGaussian",
    "Multinomial",
    "NegativeBinomial",
    "Normal",
    "Poisson",
    "Tweedie",
    "UnsupportedTarget",
    "family_named",
]

Array = NDArray[np.float64]
Interval = tuple[float, float]

_TINY, _BELOW_ONE = np.finfo(np.float64).tiny, 1.0 - 2.0**-53


def _check(valid: bool, family: Family, name: str, what: str) -> None:
    if not valid:
        value = getattr(family, name)
        raise ParameterError(f"The {name!r} of {type(family).__name__} must be {what}. Got {value!r} instead.")


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
        return np.square(y - mu)

    def _log_likelihood_rows(self, y: Array, mu: Array, dispersion: Array) -> Array:
        # Not through (1): y mu - mu^2 / 2 - y^2 / 2 cancels when the mean is far from 0.
        return -0.5 * (np.square(y - mu) / dispersion + np.log(2 * np.pi * dispersion))

    def _inside(self, y: Array) -> NDArray[np.bool_]:
        return np.ones(y.shape, dtype=np.bool_)


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
        return mu * (1.0 - mu)

    def unit_variance_slope(self, mu: Array) -> Array:
        return 1.0 - 2.0 * mu

    def unit_deviance(self, y: Array, mu: Array) -> Array:
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
        _check(self.trials >= 1 and self.trials == int(self.trials), self, "trials", "an integer >= 1")

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
    support = "values >= 0"
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
        deviance: Array = 2.0 * (special.xlogy(y, y / mu) - y + mu)
        return deviance

    def _inside(self, y: Array) -> NDArray[np.bool_]:
        return y >= 0


@schema.saved("stats.families.Gamma")
@dataclass(frozen=True)
class Gamma(Family):
    """The gamma distribution, with mean mu and variance phi mu^2: shape 1 / phi."""

    name = "gamma"
    support = "values > 0"
    natural_range = (-np.inf, 0.0)

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
        return 2.0 * mu

    def unit_deviance(self, y: Array, mu: Array) -> Array:
        ratio = y / mu
        return 2.0 * (ratio - 1.0 - np.log(ratio))

    def _inside(self, y: Array) -> NDArray[np.bool_]:
        return y > 0


@schema.saved("stats.families.InverseGaussian")
@dataclass(frozen=True)
class InverseGaussian(Family):
    """The inverse Gaussian distribution, with mean mu and variance phi mu^3."""

    name = "inverse_gaussian"
    support = "values > 0"
    natural_range = (-np.inf, 0.0)

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
        return np.square(y / mu - 1.0) / y

    def _inside(self, y: Array) -> NDArray[np.bool_]:
        return y > 0


@schema.saved("stats.families.NegativeBinomial", alpha=schema.Real(0.0))
@dataclass(frozen=True)
class NegativeBinomial(Family):
    """The negative binomial distribution of counts, with mean mu and variance mu + alpha mu^2 for a known alpha > 0.

    It is a Poisson distribution with a gamma distributed mean.
    """

    alpha: float = 1.0

    name = "negative_binomial"
    support = "values >= 0"
    fixed_dispersion = True
    natural_range = (-np.inf, 0.0)

    def __post_init__(self) -> None:
        _check(0.0 < self.alpha < np.inf, self, "alpha", "a number > 0")

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
        return mu + self.alpha * np.square(mu)

    def unit_variance_slope(self, mu: Array) -> Array:
        return 1.0 + 2.0 * self.alpha * mu

    def unit_deviance(self, y: Array, mu: Array) -> Array:
        c = self.alpha
        deviance: Array = 2.0 * (special.xlogy(y, y / mu) - (y + 1.0 / c) * np.log1p(c * (y - mu) / (1.0 + c * mu)))
        return deviance

    def _inside(self, y: Array) -> NDArray[np.bool_]:
        return y >= 0


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
        _check(bool(possible), self, "power", "a number <= 0 or >= 1")

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
        if self.twin:
            return self.twin.unit_deviance(y, mu)
        p = self.power
        # A negative power allows y < 0, but no negative mean: the best mean then tends to 0.
        own = np.maximum(y, 0.0) ** (2.0 - p) / ((1.0 - p) * (2.0 - p))
        return 2.0 * (own - y * mu ** (1.0 - p) / (1.0 - p) + mu ** (2.0 - p) / (2.0 - p))

    def _log_likelihood_rows(self, y: Array, mu: Array, dispersion: Array) -> Array:
        rows = super()._log_likelihood_rows if self.twin is None else self.twin._log_likelihood_rows
        return rows(y, mu, dispersion)

    def _inside(self, y: Array) -> NDArray[np.bool_]:
        return np.ones(y.shape, np.bool_) if self.power <= 0 else (y >= 0 if self.power < 2 else y > 0)


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
        _check(self.k >= 2 and self.k == int(self.k), self, "k", "an integer >= 2")

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
        return mu * (1.0 - mu)

    def unit_variance_slope(self, mu: Array) -> Array:
        return 1.0 - 2.0 * mu

    def unit_deviance(self, y: Array, mu: Array) -> Array:
        chosen: Array = np.sum(np.asarray(mu) * self.statistic(y), axis=-1)
        return -2.0 * np.log(chosen)

    def _inside(self, y: Array) -> NDArray[np.bool_]:
        inside: NDArray[np.bool_] = (y >= 0) & (y < self.k) & (y == np.floor(y))
        return inside


_FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Normal(),
        Bernoulli(),
        Binomial(),
        Poisson(),
        Gamma(),
        InverseGaussian(),
        NegativeBinomial(),
        Tweedie(),
    )
}


def family_named(value: Any) -> Family:
    """Return the family specified by a parameter.

    Parameters
    ----------
    value : str or Family
        A name means the default parameters: `Binomial(trials=1)`, `NegativeBinomial(alpha=1)`, `Tweedie(power=1.5)`.
        `Multinomial` needs the number of classes, so it must be passed as an object.

    Returns
    -------
    Family

    Examples
    --------
    >>> from summula.stats.families import family_named
    >>> family_named("poisson").default_link
    'log'
    """
    if isinstance(value, Family):
        return value
    if isinstance(value, str) and value in _FAMILIES:
        return _FAMILIES[value]
    names = ", ".join(repr(name) for name in _FAMILIES)
    raise ParameterError(f"The 'family' parameter must be one of {names} or a Family object. Got {value!r} instead.")
