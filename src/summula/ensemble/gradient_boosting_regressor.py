"""Gradient boosting of regression trees with exact thresholds, or of any other regressor.

The algorithm is in `stagewise/boosting.py`, the losses are in `stagewise/losses.py`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from numpy.typing import NDArray
from sklearn.callback import with_callbacks
from sklearn.utils.metaestimators import available_if

from summula.core.estimator.parameters import Allowed, one_of, real
from summula.core.estimator.regressor import Regressor
from summula.core.estimator.rows import RowFunction, composed
from summula.core.model_files import schema
from summula.dummy import DummyRegressor
from summula.ensemble.gradient_boosting import SHARED_PARAMETERS, GradientBoosting, grows_trees
from summula.ensemble.stagewise.losses import ResidualLoss, StageLoss

__all__ = ["GradientBoostingRegressor"]

Array = NDArray[Any]


def _only(scores: Array) -> Array:
    return scores[:, 0]


def _has_one_score(model: Any, sizes: schema.Sizes) -> str | None:
    if sizes["n_scores"] != 1:
        return f"one target has {sizes['n_scores']} scores"
    return "the start predicts classes" if hasattr(model.init_, "classes_") else None


@schema.saved(_has_one_score)
class GradientBoostingRegressor(GradientBoosting, Regressor):
    """Regression by stages that follow the negative gradient of a loss, with exact trees or any other regressor.

    `HistGradientBoostingRegressor` is much faster on large data, takes categories, and streams.

    Parameters
    ----------
    loss : {"squared_error", "absolute_error", "huber", "quantile"}, default="squared_error"
        "huber" is quadratic for small residuals and linear for large ones; "quantile" gives the quantile `alpha`.
    learning_rate : float, default=0.1
        Shrinkage applied to each stage.
    n_estimators : int, default=100
        Number of stages.
    subsample : float, default=1.0
        Share of the rows that each stage uses, drawn anew; the others give `oob_improvement_`.
    criterion : str, default="deprecated"
        Has no effect, as in scikit-learn: splits are those of the squared error.
    min_samples_split, min_samples_leaf, min_weight_fraction_leaf, max_depth, min_impurity_decrease : int or float
        Limits of the trees, as in `DecisionTreeRegressor`; `max_depth` is 3 by default.
    init : estimator, "zero" or None, default=None
        Where to start: by default the mean of the targets, or the median or quantile that the loss asks for.
    random_state : int, Generator, RandomState or None, default=None
        For rows and columns drawn, and rows held out.
    max_features : int, float, {"sqrt", "log2"} or None, default=None
        Number of columns tried at each node, drawn anew, or their share; None tries all.
    alpha : float, default=0.9
        Level of the quantile of "quantile", or of the sizes of residuals beyond which "huber" is linear.
    verbose : int, default=0
        For compatibility; use scikit-learn's callbacks for progress.
    max_leaf_nodes : int or None, default=None
        Maximum number of leaves of a tree.
    warm_start : bool, default=False
        Whether a fit adds stages to those of the fit before.
    validation_fraction : float, default=0.1
        Share of the rows held out to stop by, with `n_iter_no_change`.
    n_iter_no_change : int or None, default=None
        Stages without a lower loss of the rows held out after which to stop; None does not stop early.
    tol : float, default=1e-4
        What counts as lower.
    ccp_alpha : float, default=0
        Penalty per leaf; trees are pruned.
    estimator : regressor, optional
        What is fitted to the negative gradients instead of a tree: any regressor. Each is multiplied by the factor that
        lowers the loss most.
    max_time : float, optional
        Seconds after which a fit stops with the stages it has.

    Attributes
    ----------
    estimators_ : ndarray of shape (n_estimators_, n_trees_per_iteration_)
        The learners.
    n_estimators_ : int
        Number of stages.
    n_trees_per_iteration_ : int
    init_ : estimator or "zero"
        What the first stage starts from.
    train_score_ : ndarray of shape (n_estimators_,)
        Mean loss of the rows used, after each stage.
    oob_scores_, oob_improvement_ : ndarray of shape (n_estimators_,)
        Mean loss of the rows not used, after each stage, and by how much it fell; where `subsample` is below 1.
    oob_score_ : float
        The last of `oob_scores_`.
    feature_importances_ : ndarray of shape (n_features,)
        Decrease of the squared error of the gradients by the splits on each column, as shares of all.
    max_features_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only when all columns have names.

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

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, monitor: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)
            Training data. Trees take NaN for a missing value and infinities for the outermost values of their column,
            and hold sparse rows as dense columns.
        y : array-like of shape (n_samples,), or name of a column of X
            Targets.
        sample_weight : array-like of shape (n_samples,), float, or name of a column of X, optional
            Weights of rows; rows of weight 0 are left out.
        monitor : callable, optional
            Called after each stage with its number, the model so far and a dict; the fit ends when it returns True.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight, monitor)

    def _make_loss(self) -> StageLoss:
        return ResidualLoss(self.loss, float(self.alpha))

    def _default_start(self) -> Any:
        if self.loss == "squared_error":
            return DummyRegressor()
        return DummyRegressor(strategy="quantile", quantile=float(self.alpha) if self.loss == "quantile" else 0.5)

    @available_if(grows_trees)
    def apply(self, X: Any) -> Any:
        """The leaf of each tree that rows end in.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_estimators_) of node numbers within the tree
        """
        return super().apply(X)[:, :, 0]

    def _from_scores(self, scores: Array) -> Array:
        return _only(scores)

    def _row_function(self) -> RowFunction:
        return composed(_only, self._score_function())
