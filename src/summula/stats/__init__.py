"""Statistics shared by models: tables of coefficients, families and links, bounds on means; later normals."""

from summula.stats.bounds import (
    Bounds,
    McNemar,
    bernstein_bounds,
    chernoff_bounds,
    clopper_pearson_bounds,
    hoeffding_bounds,
    mcnemar,
    order_statistic,
)
from summula.stats.bounds_betting import anytime_bounds, anytime_rejects, betting_bounds, betting_rejects
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
    "Bounds",
    "CLogLog",
    "Gamma",
    "Identity",
    "Inverse",
    "InverseGaussian",
    "InverseSquared",
    "Log",
    "Logit",
    "McNemar",
    "Multinomial",
    "NegativeBinomial",
    "Normal",
    "Poisson",
    "Probit",
    "Tweedie",
    "anytime_bounds",
    "anytime_rejects",
    "bernstein_bounds",
    "betting_bounds",
    "betting_rejects",
    "chernoff_bounds",
    "clopper_pearson_bounds",
    "family_named",
    "hoeffding_bounds",
    "link_named",
    "mcnemar",
    "order_statistic",
]
