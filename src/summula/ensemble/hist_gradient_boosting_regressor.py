"""Regression by boosted trees on binned rows.

The losses are in `boosting_losses.py`, the algorithm in `boosting.py`.
"""

from __future__ import annotations

import functools
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.callback import with_callbacks

from summula.core.errors import ParameterError
from summula.core.estimator.parameters import Allowed, none, one_of, real
from summula.core.estimator.regressor import Regressor
from summula.core.estimator.rows import RowFunction, composed
from summula.core.model_files import schema
from summula.ensemble.boosting_losses import LOSSES, Loss, Pinball
from summula.ensemble.hist_gradient_boosting import SHARED_PARAMETERS, HistGradientBoosting

__all__ = ["HistGradientBoostingRegressor"]

Array = NDArray[Any]


def _means(loss: Loss, scores: Array) -> Array:
    return np.asarray(loss.mean(scores.T)[0])


def _has_one_score(model: Any, sizes: schema.Sizes) -> str | None:
    return None if sizes["n_scores"] == 1 else f"one target has {sizes['n_scores']} scores"


@schema.saved(_has_one_score)
class HistGradientBoostingRegressor(HistGradientBoosting, Regressor):
    """Gradient boosting of regression trees on binned columns.

    Parameters
    ----------
    loss : {"squared_error", "absolute_error", "gamma", "poisson", "quantile"}, default="squared_error"
        "poisson" and "gamma" predict e^score, for counts and for positive amounts.
    quantile : float, optional
        The level of loss="quantile".
    learning_rate : float, default=0.1
        What the values of leaves are multiplied by.
    max_iter : int, default=100
        Most iterations: trees, or trees a class of three or more.
    max_leaf_nodes : int or None, default=31
        Most leaves of a tree.
    max_depth : int or None, default=None
        Most splits on a path.
    min_samples_leaf : int, default=20
        Fewest rows of a leaf; rows are counted, whatever their weights.
    l2_regularization : float, default=0
        What is added to the sum of curvatures of a leaf.
    max_features : float, default=1.0
        Share of the columns, drawn anew, that each node may be split on.
    max_bins : int, default=255
        Most bins of a column, without that of missing values.
    categorical_features : "from_dtype", array-like of bool, int or str, or None, default="from_dtype"
        Columns whose values have no order: those a frame or file calls categorical and those of text, or a mask, or
        numbers or names of columns. Beyond `max_bins` levels the rarer ones share a bin; levels that the fit has not
        seen go with the missing values.
    monotonic_cst : array-like of shape (n_features,), dict of names, or None, default=None
        1 where predictions may only rise with a column, -1 where they may only fall, 0 elsewhere.
    interaction_cst : {"pairwise", "no_interactions"}, sequence of collections of int, or None, default=None
        Groups of columns that may meet on a path of a tree; columns in none of them are one more group.
    warm_start : bool, default=False
        Whether a fit adds trees to those of the fit before, with its bins.
    early_stopping : "auto" or bool, default="auto"
        Whether to stop when trees no longer help; "auto" for more than 10,000 rows.
    scoring : str, callable or None, default="loss"
        What to stop by: the loss, a scorer of scikit-learn, or (None) the method `score`. A callable is given an
        estimator that stands for the trees so far, and the bins of rows (255 for missing values) as X.
    validation_fraction : int, float or None, default=0.1
        Rows held out to stop by, or their share; None stops by the rows that are learnt from.
    n_iter_no_change : int, default=10
        Iterations without a better score after which to stop.
    tol : float, default=1e-7
        What counts as better.
    verbose : int, default=0
        For compatibility; use scikit-learn's callbacks for progress.
    random_state : int, Generator, RandomState or None, default=None
        For rounding, bins of large data, rows held out and columns drawn.
    n_jobs : int, optional
        At most so many threads; the model does not depend on it.
    max_time : float, optional
        Seconds after which a fit stops with the trees it has.

    Attributes
    ----------
    n_iter_ : int
        Iterations.
    n_trees_per_iteration_ : int
    do_early_stopping_ : bool
    learning_curve_ : dict
        The mean loss before the first and after each iteration, of the rows learnt from ("train") and of those held out
        ("validation").
    train_score_, validation_score_ : ndarray of shape (n_iter_ + 1,)
        What early stopping looked at; the loss counts as negative. Empty without early stopping.
    feature_importances_ : ndarray of shape (n_features,)
        The gains of the splits on each column, as shares of all.
    is_categorical_ : ndarray of shape (n_features,), bool, or None
    category_levels_ : dict
        The sorted texts of each column of text, by name (x0, x1, ... in an array).
    n_features_in_, feature_names_in_ : as in scikit-learn

    References
    ----------
    Friedman (2001), Greedy function approximation: a gradient boosting machine. Ke and others (2017), LightGBM. Hastie,
    Tibshirani and Friedman, The Elements of Statistical Learning, chapter 10.

    Examples
    --------
    >>> import numpy as np
    >>> from summula.ensemble import HistGradientBoostingRegressor
    >>> X = np.arange(100.0)[:, None]
    >>> model = HistGradientBoostingRegressor().fit(X, np.where(X[:, 0] < 50, 1.0, 3.0))
    >>> model.predict([[10.0], [90.0]]).round(3)
    array([1., 3.])
    """

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "loss": (one_of(*LOSSES, "quantile"),),
        "quantile": (real(0.0, 1.0), none),
        **SHARED_PARAMETERS,
    }

    def __init__(
        self,
        loss: str = "squared_error",
        *,
        quantile: float | None = None,
        learning_rate: float = 0.1,
        max_iter: int = 100,
        max_leaf_nodes: int | None = 31,
        max_depth: int | None = None,
        min_samples_leaf: int = 20,
        l2_regularization: float = 0.0,
        max_features: float = 1.0,
        max_bins: int = 255,
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        warm_start: bool = False,
        early_stopping: Any = "auto",
        scoring: Any = "loss",
        validation_fraction: float | None = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-7,
        verbose: int = 0,
        random_state: Any = None,
        n_jobs: int | None = None,
        max_time: float | None = None,
    ) -> None:
        self.loss = loss
        self.quantile = quantile
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.max_leaf_nodes = max_leaf_nodes
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.l2_regularization = l2_regularization
        self.max_features = max_features
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.monotonic_cst = monotonic_cst
        self.interaction_cst = interaction_cst
        self.warm_start = warm_start
        self.early_stopping = early_stopping
        self.scoring = scoring
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.max_time = max_time

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
    ) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, frame, scan, Dask collection} of shape (n_samples, n_features)
            Training data; NaN is a missing value, infinities are the outermost values of their column.
        y : array-like of shape (n_samples,), or name of a column of X
            Targets.
        sample_weight : array-like of shape (n_samples,), float, or name of a column of X, optional
            Weights of rows.
        X_val, y_val, sample_weight_val : as X, y and sample_weight, optional
            Rows to stop by, instead of some of the training data. In a pipeline they pass through the steps before with
            `Pipeline(..., transform_input=["X_val"])`.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight, X_val, y_val, sample_weight_val)

    def _make_loss(self) -> Loss:
        if self.loss == "quantile":
            if self.quantile is None or not 0.0 < self.quantile < 1.0:
                raise ParameterError(f"loss='quantile' needs quantile between 0 and 1, got quantile={self.quantile!r}.")
            return Pinball(float(self.quantile))
        return LOSSES[self.loss]()

    def _from_scores(self, scores: Array) -> Array:
        return _means(self._make_loss(), scores)

    def _row_function(self) -> RowFunction:
        return composed(functools.partial(_means, self._make_loss()), self._score_function())
