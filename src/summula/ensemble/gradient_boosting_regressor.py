"""Gradient boosting of regression trees with exact thresholds, or of any other regressor.

The algorithm is in `stagewise/boosting.py`, the losses are in `stagewise/losses.py`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if

from summula.core.docstrings import inherit_docs
from summula.core.estimator.parameters import Allowed, one_of, real
from summula.core.estimator.regressor import Regressor
from summula.core.estimator.rows import RowFunction, composed
from summula.core.model_files import schema
from summula.dummy import DummyRegressor
from summula.ensemble.stagewise.base import SHARED_PARAMETERS, GradientBoosting, grows_trees
from summula.ensemble.stagewise.losses import ResidualLoss, StageLoss

__all__ = ["GradientBoostingRegressor"]

Array = NDArray[Any]


def _only(scores: Array) -> Array:
    return scores[:, 0]


def _has_one_score(model: Any, sizes: schema.Sizes) -> str | None:
    if sizes["n_scores"] != 1:
        return f"one target has {sizes['n_scores']} scores"
    return "the initial estimator predicts classes" if hasattr(model.init_, "classes_") else None


@inherit_docs()
@schema.saved(_has_one_score)
class GradientBoostingRegressor(GradientBoosting, Regressor):
    """Gradient boosting regressor, with exact trees or any other regressor as base learner.

    `HistGradientBoostingRegressor` is much faster on large data, and supports categories and streams.

    Parameters
    ----------
    loss : {"squared_error", "absolute_error", "huber", "quantile"}, default="squared_error"
        "huber" is quadratic for small residuals and linear for large ones; "quantile" predicts the quantile `alpha`.
    init : estimator, "zero" or None, default=None
        Initial estimator: by default the mean of the targets, or their median or quantile, depending on the loss.
    alpha : float, default=0.9
        Quantile level of "quantile", or of the absolute residuals above which "huber" is linear.

    References
    ----------
    Friedman, Greedy function approximation: a gradient boosting machine, Annals of Statistics 29, 2001. Hastie,
    Tibshirani and Friedman, The Elements of Statistical Learning, 2009, chapter 10.

    Examples
    --------
    >>> import numpy as np
    >>> from summula.ensemble import GradientBoostingRegressor
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> model = GradientBoostingRegressor().fit(X, np.sin(X[:, 0]))
    >>> model.predict([[1.6], [4.7]]).round(1)
    array([ 1., -1.])
    """

    _streaming_alternative = "HistGradientBoostingRegressor"
    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "loss": (one_of("squared_error", "absolute_error", "huber", "quantile"),),
        "alpha": (real(0.0, 1.0, open_low=True),),
        **SHARED_PARAMETERS,
    }

    def __init__(
        self,
        *,
        loss: str = "squared_error",
        learning_rate: float = 0.1,
        n_estimators: int = 100,
        subsample: float = 1.0,
        criterion: str = "deprecated",
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_depth: int | None = 3,
        min_impurity_decrease: float = 0.0,
        init: Any = None,
        random_state: Any = None,
        max_features: Any = None,
        alpha: float = 0.9,
        verbose: int = 0,
        max_leaf_nodes: int | None = None,
        warm_start: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int | None = None,
        tol: float = 1e-4,
        ccp_alpha: float = 0.0,
        estimator: Any = None,
        max_time: float | None = None,
    ) -> None:
        self.loss = loss
        self.learning_rate = learning_rate
        self.n_estimators = n_estimators
        self.subsample = subsample
        self.criterion = criterion
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_depth = max_depth
        self.min_impurity_decrease = min_impurity_decrease
        self.init = init
        self.random_state = random_state
        self.max_features = max_features
        self.alpha = alpha
        self.verbose = verbose
        self.max_leaf_nodes = max_leaf_nodes
        self.warm_start = warm_start
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.ccp_alpha = ccp_alpha
        self.estimator = estimator
        self.max_time = max_time

    def _make_loss(self) -> StageLoss:
        return ResidualLoss(self.loss, float(self.alpha))

    def _default_start(self) -> Any:
        if self.loss == "squared_error":
            return DummyRegressor()
        return DummyRegressor(strategy="quantile", quantile=float(self.alpha) if self.loss == "quantile" else 0.5)

    @available_if(grows_trees)
    @inherit_docs(GradientBoosting.apply)
    def apply(self, X: Any) -> Any:
        """Return the leaf of each tree that rows reach.

        Returns
        -------
        ndarray of shape (n_samples, n_estimators_) of node numbers within the tree
        """
        return super().apply(X)[:, :, 0]

    def _from_scores(self, scores: Array) -> Array:
        return _only(scores)

    def _row_function(self) -> RowFunction:
        return composed(_only, self._score_function())
