"""Classification by a tree with exact thresholds."""

from __future__ import annotations

from typing import Any, ClassVar

from numpy.typing import NDArray

from summula.core.docstrings import inherit_docs
from summula.core.estimator.multi_output import row_weights_of_outputs
from summula.core.estimator.parameters import Allowed, array_like, mapping, none, one_of
from summula.core.model_files import schema
from summula.tree.decision_tree import SHARED_PARAMETERS, DecisionTree
from summula.tree.targets import TreeClassifier, shares_are_sound

__all__ = ["DecisionTreeClassifier"]

Array = NDArray[Any]


def _values_are_shares(model: Any, sizes: schema.Sizes) -> str | None:
    return shares_are_sound(model, model._values)


@inherit_docs()
@schema.saved(_values_are_shares, classes_=schema.Labels("n_classes") | schema.Items(schema.Labels(), low=2))
class DecisionTreeClassifier(DecisionTree, TreeClassifier):
    """Classification tree: every value of a column is a possible threshold.

    The tree is the same as scikit-learn's, except for splits of equal gain.

    Parameters
    ----------
    criterion : {"gini", "entropy", "log_loss"}, default="gini"
        Impurity of a node; "log_loss" is the entropy.
    class_weight : dict of label to weight, list of dicts, "balanced" or None, default=None
        Class weights, which multiply the sample weights; with several targets, those of all targets are multiplied.
    monotonic_cst : array-like of shape (n_features,), dict of names, or None, default=None
        Monotonicity constraint of each column: 1 increasing, -1 decreasing, 0 none. It applies to the probability
        of the second of two classes.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,), or list of such arrays
        With several targets, one array per target.
    n_classes_ : int, or list of int

    References
    ----------
    Breiman, Friedman, Olshen and Stone, Classification and Regression Trees, 1984.

    Examples
    --------
    >>> import numpy as np
    >>> from summula.tree import DecisionTreeClassifier
    >>> X = np.array([[1.0, 0.0], [2.0, 1.0], [3.0, 0.0], [4.0, 1.0]])
    >>> model = DecisionTreeClassifier().fit(X, ["low", "low", "high", "high"])
    >>> print(model.rules())
    if x[0] <= 2.5: low (100% of 2 rows)
    if x[0] > 2.5 or is missing: high (100% of 2 rows)
    """

    _streaming_alternative = "HistGradientBoostingClassifier"
    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "criterion": (one_of("gini", "entropy", "log_loss"),),
        **SHARED_PARAMETERS,
        "class_weight": (none, one_of("balanced"), mapping, array_like),
    }

    def __init__(
        self,
        *,
        criterion: str = "gini",
        splitter: str = "best",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = None,
        random_state: Any = None,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        class_weight: Any = None,
        ccp_alpha: float = 0.0,
        monotonic_cst: Any = None,
        categorical_features: Any = "from_dtype",
        max_time: float | None = None,
    ) -> None:
        self.criterion = criterion
        self.splitter = splitter
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.random_state = random_state
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.class_weight = class_weight
        self.ccp_alpha = ccp_alpha
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features
        self.max_time = max_time

    def _row_weights(self, y: Array, weight: Array | None) -> Array | None:
        return row_weights_of_outputs(self.class_weight, self._classes_of_outputs, y, weight)
