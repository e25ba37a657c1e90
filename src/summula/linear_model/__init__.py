"""Linear models. Names are loaded on first use (PEP 562).

>>> import numpy as np
>>> from summula.linear_model import LinearRegression
>>> X = np.array([[1.0], [2.0], [3.0]])
>>> LinearRegression().fit(X, [2.0, 4.0, 6.0]).predict([[4.0]]).round(6)
array([8.])
"""

from summula.core.lazy_names import lazy_names

_NAMES = {
    "BayesianLogisticRegression": "bayesian_logistic_regression",
    "ElasticNet": "elastic_net",
    "ElasticNetCV": "elastic_net_cv",
    "GammaRegressor": "generalized_linear_regressor",
    "GeneralizedLinearRegressor": "generalized_linear_regressor",
    "Lasso": "elastic_net",
    "LassoCV": "elastic_net_cv",
    "LinearRegression": "linear_regression",
    "LogisticRegression": "logistic_regression",
    "LogisticRegressionCV": "logistic_regression_cv",
    "Perceptron": "perceptron",
    "PoissonRegressor": "generalized_linear_regressor",
    "PolynomialRegression": "polynomial_regression",
    "Ridge": "ridge",
    "RidgeCV": "ridge_cv",
    "SGDClassifier": "sgd_classifier",
    "SGDRegressor": "sgd_regressor",
    "TweedieRegressor": "generalized_linear_regressor",
    "enet_path": "elastic_net",
    "lasso_path": "elastic_net",
}

__all__ = [*_NAMES]

__getattr__, __dir__ = lazy_names(__name__, _NAMES)
