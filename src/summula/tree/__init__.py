"""Decision trees, and the binning, histograms and tree growing shared with ensembles.

Reading order: `decision_tree_classifier`, `decision_tree_regressor`, `decision_tree`, `id3_classifier` (the
estimators); `targets` (shared with forests), `named_importances`; `exact/` (trees with exact thresholds); `columns/`,
`growing/` (trees on binned rows, for boosting), `binned/` (the same for forests), `prediction/`; `exporting`
(scikit-learn's text and plots).

>>> from summula.tree import DecisionTreeRegressor
>>> DecisionTreeRegressor().fit([[1.0], [2.0], [3.0]], [1.0, 1.0, 7.0]).predict([[1.4], [2.9]])
array([1., 7.])
"""

from summula.tree.decision_tree_classifier import DecisionTreeClassifier
from summula.tree.decision_tree_regressor import DecisionTreeRegressor
from summula.tree.exporting import export_graphviz, export_text, plot_tree
from summula.tree.id3_classifier import ID3Classifier

__all__ = [
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ID3Classifier",
    "export_graphviz",
    "export_text",
    "plot_tree",
]
