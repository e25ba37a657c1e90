"""Base class of forests for regression."""

from __future__ import annotations

import functools
from typing import Any, ClassVar

import numpy as np
import scipy
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.docstrings import inherit_docs
from summula.core.errors import ParameterError
from summula.core.estimator.parameters import Allowed, one_of
from summula.core.estimator.rows import RowFunction
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.ensemble.forest.base import FOREST_PARAMETERS, Forest, check_same_number
from summula.ensemble.forest.walking import mean_values
from summula.stats.bounds import Bounds
from summula.tree.binned.packed import PackedTrees
from summula.tree.columns.binning import BinMap
from summula.tree.decision_tree import DecisionTree
from summula.tree.decision_tree_regressor import DecisionTreeRegressor
from summula.tree.targets import TreeRegressor, regression_criterion

__all__ = ["ForestRegressor"]

Array = NDArray[Any]


def _leaves_have_a_number(model: Any, sizes: schema.Sizes) -> str | None:
    if sizes["n_values"] < 1 or model._trees.values.dtype != np.float64 or not sizes["n_weights"]:
        return "leaves do not have one value and one weight each"
    return None


def means(trees: PackedTrees, bins: BinMap, chunk: Chunk) -> Array:
    """Return the predictions for the rows of a chunk."""
    found = mean_values(trees, bins, chunk)
    return found[:, 0] if found.shape[1] == 1 else found


@inherit_docs(DecisionTree)
@schema.state(
    _leaves_have_a_number,
    oob_prediction_=schema.Maybe(
        schema.Array("float64", "n_samples") | schema.Array("float64", "n_samples", "n_values")
    ),
)
class ForestRegressor(Forest, TreeRegressor):
    """Base class of forest regressors, which average the values of trees.

    Parameters
    ----------
    criterion : {"squared_error", "absolute_error", "poisson"}, default="squared_error"
        Impurity of a node.
    max_features : int, float, {"sqrt", "log2"} or None, default=1.0
        Number of columns tried at each node, drawn at random, or their fraction; None tries all.
    oob_score : bool or callable, default=False
        Whether to compute out-of-bag predictions and their score: R2, or a function of targets and predictions.
    monotonic_cst : array-like of int, dict or None, default=None
        Monotonicity constraint of each column: 1 increasing, -1 decreasing, 0 none.
    splits : {"bins", "exact"}, default="bins"
        Whether to use the thresholds of `max_bins` bins shared by all trees, or exact thresholds; the latter takes
        more time and needs the rows in memory. `criterion="absolute_error"` always uses exact thresholds.

    Attributes
    ----------
    estimators_ : list of DecisionTreeRegressor
        The trees, created on access.
    oob_prediction_ : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        Out-of-bag prediction of each row. Only with `oob_score`.
    """

    _tree_class: ClassVar[Any] = DecisionTreeRegressor
    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "criterion": (one_of("squared_error", "absolute_error", "poisson"),),
        **FOREST_PARAMETERS,
    }

    oob_prediction_: Array

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "squared_error",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = 1.0,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = True,
        oob_score: Any = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
        ccp_alpha: float = 0.0,
        max_samples: float | None = None,
        monotonic_cst: Any = None,
        splits: str = "bins",
        max_bins: int = 255,
        categorical_features: Any = "from_dtype",
        max_time: float | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.criterion = regression_criterion(criterion)
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
        self.ccp_alpha = ccp_alpha
        self.max_samples = max_samples
        self.monotonic_cst = monotonic_cst
        self.splits = splits
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.max_time = max_time

    def _check_continues(self, before: Any, run: Run) -> None:
        check_same_number(self.n_outputs_, run.source.n_targets)

    def _row_function(self) -> RowFunction:
        return functools.partial(means, self._trees, self._bins)

    def _set_out_of_bag(self, means: Array, y: Array) -> None:
        from sklearn.metrics import r2_score

        one = len(y) == 1
        self.oob_prediction_ = means[:, 0].copy() if one else means
        score = self.oob_score if callable(self.oob_score) else r2_score
        self.oob_score_ = float(score(y[0] if one else y.T, self.oob_prediction_))

    def _interval(self, values: Array, delta: float) -> Bounds:
        """Return Student's t intervals: the values of the trees are independent given the data."""
        n = values.shape[1]
        if n < 2:
            raise ParameterError("An interval needs the variance over several trees: set n_estimators to 2 or more.")
        values = values[..., 0] if values.shape[2] == 1 else values
        mean, error = values.mean(axis=1), values.std(axis=1, ddof=1) / np.sqrt(n)
        width = scipy.stats.t.ppf(1.0 - delta / 2, n - 1) * error
        return Bounds(mean - width, mean + width)

    def _view_of(self, tree: int) -> Any:
        return self._as_tree(tree)
