"""Linear models. Names are loaded on first use (PEP 562).

Each estimator is one file, named after it. Reading order of the machinery: `least_squares/`, `glm/` (likelihoods),
`l1/` (lasso, elastic net), `cross_validation/` (many penalties from one pass). Stochastic gradient descent is in
`optimize/solvers/stochastic_descent/`.

>>> import numpy as np
>>> from summula.linear_model import LinearRegression
>>> X = np.array([[1.0], [2.0], [3.0]])
>>> LinearRegression().fit(X, [2.0, 4.0, 6.0]).predict([[4.0]]).round(6)
array([8.])
"""

from summula.core.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "bayesian_logistic_regression": "BayesianLogisticRegression",
        "elastic_net": "ElasticNet Lasso",
        "elastic_net_cv": "ElasticNetCV LassoCV",
        "generalized_linear_regressor": "GammaRegressor GeneralizedLinearRegressor PoissonRegressor TweedieRegressor",
        "l1.paths": "enet_path lasso_path",
        "linear_regression": "LinearRegression",
        "logistic_regression": "LogisticRegression",
        "logistic_regression_cv": "LogisticRegressionCV",
        "perceptron": "Perceptron",
        "polynomial_regression": "PolynomialRegression",
        "ridge": "Ridge",
        "ridge_cv": "RidgeCV",
        "sgd_classifier": "SGDClassifier",
        "sgd_regressor": "SGDRegressor",
    },
)
