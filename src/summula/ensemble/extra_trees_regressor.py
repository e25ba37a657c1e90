"""Regression by extremely randomised trees."""

from __future__ import annotations

from typing import Any

from sklearn.callback import with_callbacks

from summula.core.model_files import schema
from summula.ensemble.forest.regressor import ForestRegressor

__all__ = ["ExtraTreesRegressor"]


@schema.saved()
class ExtraTreesRegressor(ForestRegressor):
    """Regression by extremely randomised trees: one threshold per column is drawn, and the best is taken.

    Predictions are the mean over the trees of the values of the leaves that a row ends in.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    criterion : {"squared_error", "absolute_error", "poisson"}, default="squared_error"
        Impurity of a node.
    max_depth : int or None, default=None
        Maximum number of splits on a path.
    min_samples_split : int or float, default=2
        Minimum number of rows of a node that is split, or their share.
    min_samples_leaf : int or float, default=1
        Minimum number of rows of a leaf, or their share.
    min_weight_fraction_leaf : float, default=0
        Minimum share of the total weight in a leaf.
    max_features : int, float, {"sqrt", "log2"} or None, default=1.0
        Number of columns tried at each node, drawn anew, or their share; None tries all.
    max_leaf_nodes : int or None, default=None
        Maximum number of leaves per tree; the node of largest improvement is split first.
    min_impurity_decrease : float, default=0
        Minimum decrease of impurity, weighted by the share of rows, of a split.
    bootstrap : bool, default=False
        Whether each tree has rows drawn with replacement, in proportion to their weights, or all rows.
    oob_score : bool or callable, default=False
        Whether to predict each row by the trees that do not have it, and to score these predictions: by
        R2, or by a function of targets and predictions.
    n_jobs : int, optional
        Maximum number of threads; None uses all.
    random_state : int, Generator, RandomState or None, default=None
        For rows, columns and thresholds drawn; the forest does not depend on the number of threads.
    verbose : int, default=0
        Ignored.
    warm_start : bool, default=False
        Whether a further fit adds trees to those there are.
    ccp_alpha : float, default=0
        Penalty per leaf; each tree is pruned to its best subtree.
    max_samples : int, float or None, default=None
        Number of draws per tree, or their share of the number (or weight) of rows; None draws as many as rows.
    monotonic_cst : array-like of int, dict or None, default=None
        1 where predictions may only rise with a column, -1 where they may only fall, 0 elsewhere.
    splits : {"bins", "exact"}, default="bins"
        Whether thresholds are those of `max_bins` bins shared by all trees, or any values; the latter needs more time
        and its rows in memory. `criterion="absolute_error"` always takes them.
    max_bins : int, default=255
        Maximum number of bins per column.
    categorical_features : "from_dtype", array-like of bool, int or str, or None, default="from_dtype"
        Columns whose values have no order: those a frame calls categorical and those of text, or a mask, or numbers or
        names of columns. Beyond 255 levels the rarer ones are taken together.
    max_time : float, optional
        Seconds after which a fit stops with the trees it has.

    Attributes
    ----------
    estimators_ : list of DecisionTreeRegressor
        The trees, made when asked for.
    feature_importances_ : ndarray of shape (n_features,)
        Decrease of impurity by the splits on each column, as shares of all; `oob_importances` is unbiased.
    oob_score_ : float
        Only with `oob_score`.
    oob_prediction_ : ndarray of shape (n_samples,)
        Prediction of each row by the trees that do not have it. Only with `oob_score`.
    is_categorical_ : ndarray of shape (n_features,), bool, or None
    category_levels_ : dict
        The texts of each column of text.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only when all columns have names.

    References
    ----------
    Geurts, Ernst and Wehenkel, Extremely randomized trees, Machine Learning 63 (2006).

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from summula.ensemble import ExtraTreesRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ExtraTreesRegressor(min_samples_leaf=3, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.7
    True
    """

    _random_threshold = True

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
        bootstrap: bool = False,
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
        self.ccp_alpha = ccp_alpha
        self.max_samples = max_samples
        self.monotonic_cst = monotonic_cst
        self.splits = splits
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.max_time = max_time

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)
            Training data; NaN is a missing value, infinities are the outermost values of their column.
        y : array-like of shape (n_samples,), or name of a column of X
            Targets.
        sample_weight : array-like of shape (n_samples,), float, or name of a column of X, optional
            Weights of rows: with `bootstrap`, rows are drawn in proportion to them; otherwise trees count them.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)
