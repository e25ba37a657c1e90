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

from typing import Any

from summula.core.estimator.parameters import object_named
from summula.stats.families.continuous import Gamma, InverseGaussian, Normal, Tweedie
from summula.stats.families.discrete import Bernoulli, Binomial, Multinomial, NegativeBinomial, Poisson
from summula.stats.families.exponential_family import Family, UnsupportedTarget

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
    return object_named("family", value, Family, _FAMILIES)  # type: ignore[type-abstract]
