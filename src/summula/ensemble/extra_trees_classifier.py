"""Classification by extremely randomised trees."""

from __future__ import annotations

from summula.core.docstrings import inherit_docs, with_defaults
from summula.core.model_files import schema
from summula.ensemble.forest.classifier import ForestClassifier

__all__ = ["ExtraTreesClassifier"]


@inherit_docs()
@schema.saved()
class ExtraTreesClassifier(ForestClassifier):
    """Extra-trees classifier: splits are the best among random thresholds, one per column.

    Otherwise trees are those of `RandomForestClassifier`, grown on all rows unless `bootstrap` is set.

    References
    ----------
    Geurts, Ernst and Wehenkel, Extremely randomized trees, Machine Learning 63 (2006).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from summula.ensemble import ExtraTreesClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ExtraTreesClassifier(random_state=0).fit(X, y)
    >>> model.predict(X[[0, 60, 120]])
    array([0, 1, 2])
    """

    _random_threshold = True
    __init__ = with_defaults(ForestClassifier.__init__, bootstrap=False)
