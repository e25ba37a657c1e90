"""What forests for regression share."""

from __future__ import annotations

import functools
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.metrics import r2_score

from summula.core.data.chunks import Chunk
from summula.core.errors import ParameterError
from summula.core.estimator.parameters import Allowed, one_of
from summula.core.estimator.regressor import Regressor
from summula.core.estimator.rows import RowFunction
from summula.core.model_files import schema
from summula.ensemble.forest.base import FOREST_PARAMETERS, Forest
from summula.ensemble.forest.walking import mean_values
from summula.stats.bounds import Bounds
from summula.tree.binned.packed import PackedTrees
from summula.tree.columns.binning import BinMap
from summula.tree.decision_tree_regressor import DecisionTreeRegressor
from summula.tree.growing.limits import check_regression_targets

__all__ = ["ForestRegressor"]

Array = NDArray[Any]


def _leaves_have_a_number(model: Any, sizes: schema.Sizes) -> str | None:
    if sizes["n_values"] != 1 or model._trees.values.dtype != np.float64 or not sizes["n_weights"]:
        return "leaves do not have one value and a weight each"
    return None


def means(trees: PackedTrees, bins: BinMap, chunk: Chunk) -> Array:
    """Return the predictions for the rows of a chunk."""
    return mean_values(trees, bins, chunk)[:, 0]


@schema.state(_leaves_have_a_number, oob_prediction_=schema.Maybe(schema.Array("float64", "n_samples")))
class ForestRegressor(Forest, Regressor):
    """The mean of the values of trees."""

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "criterion": (one_of("squared_error", "absolute_error", "poisson"),),
        **FOREST_PARAMETERS,
    }

    oob_prediction_: Array

    def _check_targets(self, y: Array) -> None:
        check_regression_targets(y, self.criterion)

    def _row_function(self) -> RowFunction:
        return functools.partial(means, self._trees, self._bins)

    def _set_out_of_bag(self, means: Array, y: Array) -> None:
        self.oob_prediction_ = means[:, 0].copy()
        score = self.oob_score if callable(self.oob_score) else r2_score
        self.oob_score_ = float(score(y, self.oob_prediction_))

    def _interval(self, values: Array, delta: float) -> Bounds:
        """Return Student's intervals: the values of the trees are independent given the data."""
        n = values.shape[1]
        if n < 2:
            raise ParameterError("An interval needs the spread of several trees: set n_estimators to 2 or more.")
        mean, error = values[..., 0].mean(axis=1), values[..., 0].std(axis=1, ddof=1) / np.sqrt(n)
        width = stats.t.ppf(1.0 - delta / 2, n - 1) * error
        return Bounds(mean - width, mean + width)

    def _view_of(self, tree: int) -> Any:
        return self._as_tree(DecisionTreeRegressor, tree)
