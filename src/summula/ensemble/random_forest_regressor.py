"""Regression by a random forest."""

from __future__ import annotations

from summula.core.docstrings import inherit_docs
from summula.core.model_files import schema
from summula.ensemble.forest.regressor import ForestRegressor

__all__ = ["RandomForestRegressor"]


@inherit_docs()
@schema.saved()
class RandomForestRegressor(ForestRegressor):
    """Random forest regressor: trees of bootstrap samples, with a few random columns tried at each split.

    Predictions are the mean over the trees of the values of the leaves that a row reaches.

    References
    ----------
    Breiman, Random forests, Machine Learning 45 (2001).

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from summula.ensemble import RandomForestRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = RandomForestRegressor(min_samples_leaf=3, random_state=0, oob_score=True).fit(X, y)
    >>> model.oob_score_ > 0.4
    True
    """
