"""What forests for classification share."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score

from summula.core.errors import warn
from summula.core.estimator.classifier import ShareClassifier, row_weights
from summula.core.estimator.parameters import Allowed, mapping, none, one_of
from summula.core.model_files import schema
from summula.ensemble.forest.base import FOREST_PARAMETERS, Forest
from summula.stats.bounds import Bounds, chernoff_bounds
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


@schema.state(
    _leaves_have_weights,
    classes_=schema.Labels("n_classes"),
    oob_decision_function_=schema.Maybe(schema.Array("float64", "n_samples", "n_classes")),
)
class ForestClassifier(Forest, ShareClassifier):
    """The mean of the class shares of trees."""

    _fewest_classes = 1
    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "criterion": (one_of("gini", "entropy", "log_loss"),),
        **FOREST_PARAMETERS,
        "class_weight": (none, one_of("balanced", "balanced_subsample"), mapping),
    }

    oob_decision_function_: Array

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
        return self._as_tree(DecisionTreeClassifier, tree, classes_=np.arange(len(self.classes_), dtype=np.float64))
