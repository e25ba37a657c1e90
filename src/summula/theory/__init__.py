"""Learning theory: generalisation guarantees from samples, and the sample sizes they require."""

from summula.theory.bias_variances import BiasVariance, bias_variance
from summula.theory.inequalities import chernoff_kl, hoeffding, union_bound
from summula.theory.margin_bounds import margin_bound
from summula.theory.planning import plan_holdout, plan_recall
from summula.theory.ridge_stabilities import RidgeStability, ridge_stability
from summula.theory.risks import ERM, empirical_risk, erm
from summula.theory.sample_sizes import error_bound, sample_size
from summula.theory.shattering import (
    Boxes,
    Halfspaces,
    HypothesisClass,
    Thresholds,
    shatters,
    unrealized_labels,
    vc_dimension,
)

__all__ = [
    "ERM",
    "BiasVariance",
    "Boxes",
    "Halfspaces",
    "HypothesisClass",
    "RidgeStability",
    "Thresholds",
    "bias_variance",
    "chernoff_kl",
    "empirical_risk",
    "erm",
    "error_bound",
    "hoeffding",
    "margin_bound",
    "plan_holdout",
    "plan_recall",
    "ridge_stability",
    "sample_size",
    "shatters",
    "union_bound",
    "unrealized_labels",
    "vc_dimension",
]
