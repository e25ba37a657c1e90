"""Base class of forests for classification."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from summula.core.data.sources import Source
from summula.core.docstrings import inherit_docs
from summula.core.errors import ParameterError, warn
from summula.core.estimator.classifier import check_same_classes
from summula.core.estimator.input.argument_values import is_choice
from summula.core.estimator.multi_output import row_weights_of_outputs
from summula.core.estimator.parameters import Allowed, array_like, mapping, none, one_of
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.ensemble.forest.base import FOREST_PARAMETERS, Forest, check_same_number
from summula.stats.bounds import chernoff_bounds
from summula.tree.decision_tree import DecisionTree
from summula.tree.decision_tree_classifier import DecisionTreeClassifier
from summula.tree.prediction.arrays import stacked_values
from summula.tree.targets import TreeClassifier, shares_are_sound

__all__ = ["ForestClassifier"]

Array = NDArray[Any]


def _leaves_have_weights(model: Any, sizes: schema.Sizes) -> str | None:
    values = model._trees.values
    if isinstance(model.classes_, list):
        return shares_are_sound(model, values) if sizes["n_weights"] else "leaves of several targets have no weights"
    if sizes["n_values"] != sizes["n_classes"] or sizes["n_weights"]:
        return f"leaves have {sizes['n_values']} values for {sizes['n_classes']} classes"
    if values.dtype != np.float32 or (values < 0).any() or not (values.sum(axis=1) > 0).all():
        return "the weights of the classes in a leaf are not positive numbers"
    return None


@inherit_docs(DecisionTree)
@schema.state(
    _leaves_have_weights,
    classes_=schema.Labels("n_classes") | schema.Items(schema.Labels(), low=2),
    oob_decision_function_=schema.Maybe(
        schema.Array("float64", "n_samples", "n_classes")
        | schema.Array("float64", "n_samples", "n_largest", "n_outputs")
    ),
)
class ForestClassifier(Forest, TreeClassifier):
    """Base class of forest classifiers, which average the class proportions of trees.

    Parameters
    ----------
    criterion : {"gini", "entropy", "log_loss"}, default="gini"
        Impurity of a node; "log_loss" is the entropy.
    max_features : int, float, {"sqrt", "log2"} or None, default="sqrt"
        Number of columns tried at each node, drawn at random, or their fraction; None tries all.
    oob_score : bool or callable, default=False
        Whether to compute out-of-bag predictions and their score: the accuracy, or a function of the codes of the
        true and predicted classes.
    class_weight : dict of label to weight, list of dicts, "balanced", "balanced_subsample" or None, default=None
        Class weights, which multiply the sample weights; with several targets, those of all targets are multiplied.
        "balanced_subsample" balances the classes in the sample of each tree.
    monotonic_cst : array-like of int, dict or None, default=None
        Monotonicity constraint of each column on the probability of the second of two classes: 1 increasing, -1
        decreasing, 0 none.
    splits : {"bins", "exact"}, default="bins"
        Whether to use the thresholds of `max_bins` bins shared by all trees, or exact thresholds; the latter takes
        more time and needs the rows in memory.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,), or list of such arrays
        With several targets, one array per target.
    n_classes_ : int, or list of int
    estimators_ : list of DecisionTreeClassifier
        The trees, created on access.
    oob_decision_function_ : ndarray of shape (n_samples, n_classes), or (n_samples, n_classes, n_outputs)
        Out-of-bag prediction of each row. Only with `oob_score`.
    """

    _tree_class: ClassVar[Any] = DecisionTreeClassifier
    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "criterion": (one_of("gini", "entropy", "log_loss"),),
        **FOREST_PARAMETERS,
        "class_weight": (none, one_of("balanced", "balanced_subsample"), mapping, array_like),
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

    def _check_continues(self, before: Any, run: Run) -> None:
        old, new = before if isinstance(before, list) else [before], self._classes_of_outputs
        check_same_number(len(old), len(new))
        for classes in zip(old, new, strict=True):
            check_same_classes(*classes)

    def _row_weights(self, y: Array, weight: Array | None) -> Array | None:
        if self.class_weight is None:
            return weight
        if self.warm_start and isinstance(self.class_weight, str):
            warn(
                f"class_weight={self.class_weight!r} is computed from the rows of each fit, so it may change "
                "between the fits "
                "of warm_start=True; pass the weights as a dict.",
                UserWarning,
            )
        if is_choice(self.class_weight, ("balanced_subsample",)) and self.bootstrap:
            return weight  # computed per tree
        balanced = "balanced" if isinstance(self.class_weight, str) else self.class_weight
        return row_weights_of_outputs(balanced, self._classes_of_outputs, y, weight)

    def _set_out_of_bag(self, means: Array, y: Array) -> None:
        from sklearn.metrics import accuracy_score

        score = self.oob_score if callable(self.oob_score) else accuracy_score
        stacked = stacked_values(means, self._outputs)
        if len(y) == 1:
            self.oob_decision_function_ = means
            self.oob_score_ = float(score(y[0], means.argmax(axis=1)))
        else:
            self.oob_decision_function_ = np.ascontiguousarray(stacked.transpose(0, 2, 1))
            self.oob_score_ = float(score(y.T, stacked.argmax(axis=2)))

    def _check_together(self, source: Source) -> None:
        super()._check_together(source)
        if (
            self.oob_score
            and not callable(self.oob_score)
            and self._outputs.n_outputs > 1
            and max(self._outputs.n_classes) > 2
        ):
            raise ParameterError(
                "The type of target cannot be used to compute OOB estimates. Got multiclass-multioutput while only the "
                "following are supported: continuous, continuous-multioutput, binary, multiclass, "
                "multilabel-indicator; pass a function of class codes as oob_score."
            )

    def _interval(self, values: Array, delta: float) -> Any:
        """Return Chernoff bounds: the class proportions of trees are independent given the data, and within [0, 1]."""
        means = self._split_outputs(np.clip(values.mean(axis=1), 0.0, 1.0))
        if isinstance(means, list):
            return [chernoff_bounds(mean, values.shape[1], delta / 2) for mean in means]
        return chernoff_bounds(means, values.shape[1], delta / 2)

    def _view_of(self, tree: int) -> Any:
        codes = [np.arange(len(classes), dtype=np.float64) for classes in self._classes_of_outputs]
        return self._as_tree(tree, classes_=codes if isinstance(self.classes_, list) else codes[0])
