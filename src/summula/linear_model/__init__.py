"""Linear models.

>>> import numpy as np
>>> from summula.linear_model import LinearRegression
>>> X = np.array([[1.0], [2.0], [3.0]])
>>> LinearRegression().fit(X, [2.0, 4.0, 6.0]).predict([[4.0]]).round(6)
array([8.])
"""

from summula.linear_model.bayesian_logistic_regression import BayesianLogisticRegression
from summula.linear_model.elastic_net import ElasticNet, Lasso, enet_path, lasso_path
from summula.linear_model.elastic_net_cv import ElasticNetCV, LassoCV
from summula.linear_model.generalized_linear_regressor import (
    GammaRegressor,
    GeneralizedLinearRegressor,
    PoissonRegressor,
    TweedieRegressor,
)
from summula.linear_model.linear_regression import LinearRegression
from summula.linear_model.logistic_regression import LogisticRegression
from summula.linear_model.logistic_regression_cv import LogisticRegressionCV
from summula.linear_model.perceptron import Perceptron
from summula.linear_model.polynomial_regression import PolynomialRegression
from summula.linear_model.ridge import Ridge
from summula.linear_model.ridge_cv import RidgeCV
from summula.linear_model.sgd_classifier import SGDClassifier
from summula.linear_model.sgd_regressor import SGDRegressor

__all__ = [
    "BayesianLogisticRegression",
    "ElasticNet",
    "ElasticNetCV",
    "GammaRegressor",
    "GeneralizedLinearRegressor",
    "Lasso",
    "LassoCV",
    "LinearRegression",
    "LogisticRegression",
    "LogisticRegressionCV",
    "Perceptron",
    "PoissonRegressor",
    "PolynomialRegression",
    "Ridge",
    "RidgeCV",
    "SGDClassifier",
    "SGDRegressor",
    "TweedieRegressor",
    "enet_path",
    "lasso_path",
]
