"""Regression by a tree with exact thresholds."""

from __future__ import annotations

import functools
from typing import Any, ClassVar

from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.docstrings import inherit_docs
from summula.core.estimator.parameters import Allowed, one_of
from summula.core.estimator.rows import RowFunction
from summula.core.model_files import schema
from summula.tree.columns.binning import BinMap
from summula.tree.decision_tree import SHARED_PARAMETERS, DecisionTree, leaf_values
from summula.tree.prediction.predictor import Nodes
from summula.tree.targets import TreeRegressor, regression_criterion

__all__ = ["DecisionTreeRegressor"]

Array = NDArray[Any]


def _means(nodes: Nodes, bins: BinMap, values: Array, chunk: Chunk) -> Array:
    found = leaf_values(nodes, bins, values, chunk)
    return found[:, 0] if found.shape[1] == 1 else found


def _has_values(model: Any, sizes: schema.Sizes) -> str | None:
    return None if sizes["n_values"] else "leaves have no values"


@inherit_docs()
@schema.saved(_has_values)
class DecisionTreeRegressor(DecisionTree, TreeRegressor):
    """Regression tree: every value of a column is a possible threshold.

    The tree is the same as scikit-learn's, except for splits of equal gain.

    Parameters
    ----------
    criterion : {"squared_error", "absolute_error", "poisson"}, default="squared_error"
        Impurity of a node; a leaf predicts the mean, or the median for "absolute_error".
    monotonic_cst : array-like of shape (n_features,), dict of names, or None, default=None
        Monotonicity constraint of each column: 1 increasing, -1 decreasing, 0 none.

    References
    ----------
    Breiman, Friedman, Olshen and Stone, Classification and Regression Trees, 1984.

    Examples
    --------
    >>> import numpy as np
    >>> from summula.tree import DecisionTreeRegressor
    >>> X = np.arange(8.0)[:, None]
    >>> model = DecisionTreeRegressor(max_depth=1).fit(X, [1, 1, 1, 1, 5, 5, 5, 9])
    >>> print(model.rules())
    if x[0] <= 3.5: 1 (4 rows)
    if x[0] > 3.5 or is missing: 6 (4 rows)
    """

    _streaming_alternative = "HistGradientBoostingRegressor"
    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "criterion": (one_of("squared_error", "absolute_error", "poisson"),),
        **SHARED_PARAMETERS,
    }

    def __init__(
        self,
        *,
        criterion: str = "squared_error",
        splitter: str = "best",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = None,
        random_state: Any = None,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        ccp_alpha: float = 0.0,
        monotonic_cst: Any = None,
        categorical_features: Any = "from_dtype",
        max_time: float | None = None,
    ) -> None:
        self.criterion = regression_criterion(criterion)
        self.splitter = splitter
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.random_state = random_state
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.ccp_alpha = ccp_alpha
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features
        self.max_time = max_time

    def _row_function(self) -> RowFunction:
        return functools.partial(_means, self._nodes, self._bins, self._values)
