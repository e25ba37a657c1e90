"""Statistics shared by models: normal distributions, information, families and links, bounds on means, tables.

Names are loaded on first use (PEP 562).
"""

from summula.core.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "bounds": "Bounds McNemar bernstein_bounds chernoff_bounds clopper_pearson_bounds "
        "hoeffding_bounds mcnemar order_statistic",
        "bounds_betting": "anytime_bounds anytime_rejects betting_bounds betting_rejects",
        "families": "Bernoulli Binomial Gamma InverseGaussian "
        "Multinomial NegativeBinomial Normal Poisson Tweedie family_named",
        "information": "SampledDivergence conditional_entropy entropy gini_impurity "
        "jensen_gap kl_divergence mutual_information",
        "links": "CLogLog Cauchit Identity Inverse InverseSquared Log LogLog Logit Probit Sqrt link_named",
        "multivariate_normal": "EllipseAxes MultivariateNormal",
    },
)
