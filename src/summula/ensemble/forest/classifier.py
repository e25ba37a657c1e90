"""Base class of forests for classification."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score

from summula.core.docstrings import inherit_docs
from summula.core.errors import warn
from summula.core.estimator.classifier import ShareClassifier, row_weights
from summula.core.estimator.parameters import Allowed, mapping, none, one_of
from summula.core.model_files import schema
from summula.ensemble.forest.base import FOREST_PARAMETERS, Forest
from summula.stats.bounds import Bounds, chernoff_bounds
from summula.tree.decision_tree import DecisionTree
from summula.tree.decision_tree_classifier import DecisionTreeClassifier

__all__ = ["ForestClassifier"]

Array = NDArray[Any]


def _leaves_have_weights(model: Any, sizes: schema.Sizes) -> str | None:
    if sizes["n_values"] != sizes["n_classes"] or sizes["n_weights"]:
        return f"leaves have {sizes['n_values']} values for {sizes['n_classes']} classes"
    values = model._trees.values
    if values.dtype != np.float32 or (values < 0).any() or not (values.sum(axis=1) > 0).all():
        return "the weights of the classes in a leaf are not positive numbers"
    return None


@inherit_docs(DecisionTree)
@schema.state(
    _leaves_have_weights,
    classes_=schema.Labels("n_classes"),
    oob_decision_function_=schema.Maybe(schema.Array("float64", "n_samples", "n_classes")),
)
class ForestClassifier(Forest, ShareClassifier):
    """The mean of the class shares of trees.

    Parameters
    ----------
    criterion : {"gini", "entropy", "log_loss"}, default="gini"
        Impurity of a node; "log_loss" is the entropy.
    max_features : int, float, {"sqrt", "log2"} or None, default="sqrt"
        Number of columns tried at each node, drawn anew, or their share; None tries all.
    oob_score : bool or callable, default=False
        Whether to predict each row by the trees that do not have it, and to score these predictions: by
        the accuracy, or by a function of the codes of the true and of the predicted classes.
    class_weight : dict of label to weight, "balanced", "balanced_subsample" or None, default=None
        Weights of rows are multiplied by the weight of their class; "balanced_subsample" makes the classes equally
        heavy in the sample of each tree.
    monotonic_cst : array-like of int, dict or None, default=None
        1 where predictions may only rise with a column, -1 where they may only fall, 0 elsewhere; of the
        probability of the second of two classes.
    splits : {"bins", "exact"}, default="bins"
        Whether thresholds are those of `max_bins` bins shared by all trees, or any values; the latter needs more time
        and its rows in memory.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_classes_ : int
    estimators_ : list of DecisionTreeClassifier
        The trees, created on access.
    oob_decision_function_ : ndarray of shape (n_samples, n_classes)
        Prediction of each row by the trees that do not have it. Only with `oob_score`.
    """

    _fewest_classes = 1
    _tree_class: ClassVar[Any] = DecisionTreeClassifier
    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "criterion": (one_of("gini", "entropy", "log_loss"),),
        **FOREST_PARAMETERS,
        "class_weight": (none, one_of("balanced", "balanced_subsample"), mapping),
    }

    oob_decision_function_: Array

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "gini",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = "sqrt",
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = True,
        oob_score: Any = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
        class_weight: Any = None,
        ccp_alpha: float = 0.0,
        max_samples: float | None = None,
        monotonic_cst: Any = None,
        splits: str = "bins",
        max_bins: int = 255,
        categorical_features: Any = "from_dtype",
        max_time: float | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.bootstrap = bootstrap
        self.oob_score = oob_score
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.class_weight = class_weight
        self.ccp_alpha = ccp_alpha
        self.max_samples = max_samples
        self.monotonic_cst = monotonic_cst
        self.splits = splits
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.max_time = max_time

    @property
    def n_classes_(self) -> int:
        """Number of classes."""
        return len(self.classes_)

    def _n_classes(self) -> int:
        return len(self.classes_)

    def _row_weights(self, y: Array, weight: Array | None) -> Array | None:
        if self.class_weight is None:
            return weight
        if self.warm_start and isinstance(self.class_weight, str):
            warn(
                f"class_weight={self.class_weight!r} is computed from the rows of each fit, which changes what "
                "warm_start=True goes on with when these change; give the weights as a dict.",
                UserWarning,
            )
        if self.class_weight == "balanced_subsample" and self.bootstrap:
            return weight  # by tree
        return row_weights(self.class_weight, self.classes_, y.astype(np.intp), weight)

    def _set_out_of_bag(self, means: Array, y: Array) -> None:
        self.oob_decision_function_ = means
        score = self.oob_score if callable(self.oob_score) else accuracy_score
        self.oob_score_ = float(score(y, means.argmax(axis=1)))

    def _interval(self, values: Array, delta: float) -> Bounds:
        """Return Chernoff's bounds: the shares of the trees are independent given the data, and from 0 to 1."""
        return chernoff_bounds(np.clip(values.mean(axis=1), 0.0, 1.0), values.shape[1], delta / 2)

    def _view_of(self, tree: int) -> Any:
        return self._as_tree(tree, classes_=np.arange(len(self.classes_), dtype=np.float64))
