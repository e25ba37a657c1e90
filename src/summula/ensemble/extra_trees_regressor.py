"""Regression by extremely randomised trees."""

from __future__ import annotations

from summula.core.docstrings import inherit_docs, with_defaults
from summula.core.model_files import schema
from summula.ensemble.forest.regressor import ForestRegressor

__all__ = ["ExtraTreesRegressor"]


@inherit_docs()
@schema.saved()
class ExtraTreesRegressor(ForestRegressor):
    """Extra-trees regressor: splits are the best among random thresholds, one per column.

    Otherwise trees are those of `RandomForestRegressor`, grown on all rows unless `bootstrap` is set.

    References
    ----------
    Geurts, Ernst and Wehenkel, Extremely randomized trees, Machine Learning 63 (2006).

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from summula.ensemble import ExtraTreesRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ExtraTreesRegressor(min_samples_leaf=3, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.7
    True
    """

    _random_threshold = True
    __init__ = with_defaults(ForestRegressor.__init__, bootstrap=False)
