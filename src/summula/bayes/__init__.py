"""Bayesian decision theory and estimation: decision problems, tests, risks, conjugate priors, cost-sensitive models."""

from summula.bayes.conjugate import BetaBernoulli, BetaBinomial, GammaExponential, GammaPoisson, NormalKnownVariance
from summula.bayes.conjugate_joint import DirichletMultinomial, MeanAndVariance, NormalInverseGamma
from summula.bayes.cost_sensitive_classifier import CostSensitiveClassifier
from summula.bayes.costs import expected_cost, mean_cost
from summula.bayes.decision_problem import DecisionProblem, Sensitivity
from summula.bayes.estimation import bayes_estimator
from summula.bayes.likelihood_ratio import SPRT, LikelihoodRatio, SequentialDecision, likelihood_ratio_test
from summula.bayes.risk import BayesClassifier, DecisionRisk, bayes_risk, decision_risk

__all__ = [
    "SPRT",
    "BayesClassifier",
    "BetaBernoulli",
    "BetaBinomial",
    "CostSensitiveClassifier",
    "DecisionProblem",
    "DecisionRisk",
    "DirichletMultinomial",
    "GammaExponential",
    "GammaPoisson",
    "LikelihoodRatio",
    "MeanAndVariance",
    "NormalInverseGamma",
    "NormalKnownVariance",
    "Sensitivity",
    "SequentialDecision",
    "bayes_estimator",
    "bayes_risk",
    "decision_risk",
    "expected_cost",
    "likelihood_ratio_test",
    "mean_cost",
]
