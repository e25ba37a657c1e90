"""Ensembles of trees.

Each estimator is one file, named after it. Reading order of the machinery: `forest/` (random forests and extra trees),
`adaptive/` (AdaBoost), `stagewise/` (gradient boosting with exact trees), `histogram/` (histogram-based gradient
boosting). Trees themselves are grown by `summula.tree`.

>>> import numpy as np
>>> from summula.ensemble import HistGradientBoostingRegressor
>>> X = np.arange(60.0)[:, None]
>>> HistGradientBoostingRegressor().fit(X, X[:, 0] > 30).predict([[1.0], [50.0]]).round(2) + 0.0
array([0., 1.])
"""

from summula.ensemble.ada_boost_classifier import AdaBoostClassifier
from summula.ensemble.extra_trees_classifier import ExtraTreesClassifier
from summula.ensemble.extra_trees_regressor import ExtraTreesRegressor
from summula.ensemble.gradient_boosting_classifier import GradientBoostingClassifier
from summula.ensemble.gradient_boosting_regressor import GradientBoostingRegressor
from summula.ensemble.hist_gradient_boosting_classifier import HistGradientBoostingClassifier
from summula.ensemble.hist_gradient_boosting_regressor import HistGradientBoostingRegressor
from summula.ensemble.random_forest_classifier import RandomForestClassifier
from summula.ensemble.random_forest_regressor import RandomForestRegressor

__all__ = [
    "AdaBoostClassifier",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "GradientBoostingClassifier",
    "GradientBoostingRegressor",
    "HistGradientBoostingClassifier",
    "HistGradientBoostingRegressor",
    "RandomForestClassifier",
    "RandomForestRegressor",
]
