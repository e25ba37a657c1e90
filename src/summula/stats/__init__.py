"""Statistics shared by models: normal distributions, information, families and links, bounds on means, tables.

Names are loaded on first use (PEP 562).
"""

from summula.core.lazy_names import lazy_names

_NAMES = {
    "Bernoulli": "families",
    "Binomial": "families",
    "Bounds": "bounds",
    "CLogLog": "links",
    "EllipseAxes": "multivariate_normal",
    "Gamma": "families",
    "Identity": "links",
    "Inverse": "links",
    "InverseGaussian": "families",
    "InverseSquared": "links",
    "Log": "links",
    "Logit": "links",
    "McNemar": "bounds",
    "Multinomial": "families",
    "MultivariateNormal": "multivariate_normal",
    "NegativeBinomial": "families",
    "Normal": "families",
    "Poisson": "families",
    "Probit": "links",
    "SampledDivergence": "information",
    "Tweedie": "families",
    "anytime_bounds": "bounds_betting",
    "anytime_rejects": "bounds_betting",
    "bernstein_bounds": "bounds",
    "betting_bounds": "bounds_betting",
    "betting_rejects": "bounds_betting",
    "chernoff_bounds": "bounds",
    "clopper_pearson_bounds": "bounds",
    "conditional_entropy": "information",
    "entropy": "information",
    "family_named": "families",
    "gini_impurity": "information",
    "hoeffding_bounds": "bounds",
    "jensen_gap": "information",
    "kl_divergence": "information",
    "link_named": "links",
    "mcnemar": "bounds",
    "mutual_information": "information",
    "order_statistic": "bounds",
}

__all__ = [*_NAMES]

__getattr__, __dir__ = lazy_names(__name__, _NAMES)
