"""Classification by a random forest."""

from __future__ import annotations

from summula.core.docstrings import inherit_docs
from summula.core.model_files import schema
from summula.ensemble.forest.classifier import ForestClassifier

__all__ = ["RandomForestClassifier"]


@inherit_docs()
@schema.saved()
class RandomForestClassifier(ForestClassifier):
    """Random forest classifier: trees of bootstrap samples, with a few random columns tried at each split.

    Probabilities are the mean over the trees of the class proportions in the leaves that a row reaches.

    References
    ----------
    Breiman, Random forests, Machine Learning 45 (2001).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from summula.ensemble import RandomForestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = RandomForestClassifier(random_state=0, oob_score=True).fit(X, y)
    >>> model.oob_score_ > 0.93
    True
    """
