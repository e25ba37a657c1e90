"""Statistics shared by models: tables of coefficients, families and links; later normals and bounds."""

from summula.stats.families import (
    Bernoulli,
    Binomial,
    Gamma,
    InverseGaussian,
    Multinomial,
    NegativeBinomial,
    Normal,
    Poisson,
    Tweedie,
    family_named,
)
from summula.stats.links import CLogLog, Identity, Inverse, InverseSquared, Log, Logit, Probit, link_named

__all__ = [
    "Bernoulli",
    "Binomial",
    "CLogLog",
    "Gamma",
    "Identity",
    "Inverse",
    "InverseGaussian",
    "InverseSquared",
    "Log",
    "Logit",
    "Multinomial",
    "NegativeBinomial",
    "Normal",
    "Poisson",
    "Probit",
    "Tweedie",
    "family_named",
    "link_named",
]
