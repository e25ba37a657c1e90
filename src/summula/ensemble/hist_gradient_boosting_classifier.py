"""Histogram-based gradient boosting for classification.

For two classes there is one score, whose sigmoid is the probability of the second; for K > 2 classes there is one score
per class, and the probabilities are their softmax. The losses are in `boosting_losses.py`, the algorithm in
`boosting.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.callback import with_callbacks
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import check_is_fitted

from summula.core.errors import ParameterError
from summula.core.estimator.classifier import ProbabilisticClassifier, ScoreClassifier
from summula.core.estimator.parameters import Allowed, mapping, none, one_of
from summula.core.model_files import schema
from summula.ensemble.hist_gradient_boosting import SHARED_PARAMETERS, HistGradientBoosting
from summula.ensemble.histogram.boosting_losses import Binary, Loss, Multiclass

__all__ = ["HistGradientBoostingClassifier"]

Array = NDArray[Any]


def _counts_scores(model: Any, sizes: schema.Sizes) -> str | None:
    scores = 1 if sizes["n_classes"] == 2 else sizes["n_classes"]
    return None if sizes["n_scores"] == scores else f"{sizes['n_classes']} classes have {sizes['n_scores']} scores"


@schema.saved(_counts_scores, classes_=schema.Labels("n_classes", low=2))
class HistGradientBoostingClassifier(HistGradientBoosting, ProbabilisticClassifier, ScoreClassifier):
    """Histogram-based gradient boosting classifier.

    Parameters
    ----------
    loss : {"log_loss"}, default="log_loss"
        Loss function.
    learning_rate : float, default=0.1
        Shrinkage applied to each leaf value (learning rate).
    max_iter : int, default=100
        Maximum number of iterations, each of which adds one tree, or one per class for three or more classes.
    max_leaf_nodes : int or None, default=31
        Maximum number of leaves per tree; None means no limit.
    max_depth : int or None, default=None
        Maximum depth of a tree; None means no limit.
    min_samples_leaf : int, default=20
        Minimum number of rows per leaf, regardless of sample weights.
    l2_regularization : float, default=0
        L2 penalty on leaf values, added to the sum of hessians of a leaf.
    max_features : float, default=1.0
        Fraction of columns, randomly chosen for each node, that are considered for splits.
    max_bins : int, default=255
        Maximum number of bins per column, not counting the bin of missing values.
    categorical_features : "from_dtype", array-like of bool, int or str, or None, default="from_dtype"
        Categorical columns: by default those of categorical or text type in a frame or file; otherwise a mask, or
        indices or names of columns. If there are more than `max_bins` levels, the rarest share a bin; levels that did
        not occur in `fit` are treated as missing values.
    monotonic_cst : array-like of shape (n_features,), dict of names, or None, default=None
        Monotonicity constraints: 1 for predictions that increase with a column, -1 for decreasing ones, 0 for no
        constraint.
    interaction_cst : {"pairwise", "no_interactions"}, sequence of collections of int, or None, default=None
        Groups of columns that may interact, that is occur on the same path of a tree; columns in none of them form
        another group.
    warm_start : bool, default=False
        Whether to add trees to those of the previous fit, with the same bins.
    early_stopping : "auto" or bool, default="auto"
        Whether to stop when the score no longer improves; "auto" enables it for more than 10,000 rows.
    scoring : str, callable or None, default="loss"
        Score used for early stopping: the loss, a scikit-learn scorer, or (None) the method `score`. A callable is
        passed an estimator for the trees so far, and the binned rows (255 for missing values) as X.
    validation_fraction : int, float or None, default=0.1
        Number or fraction of rows held out for early stopping; None uses the training rows.
    n_iter_no_change : int, default=10
        Number of iterations without improvement after which to stop.
    tol : float, default=1e-7
        Minimum improvement of the score.
    verbose : int, default=0
        Ignored; use scikit-learn's callbacks for progress reports.
    random_state : int, Generator, RandomState or None, default=None
        Seed for rounding gradients, sampling rows for bin edges, held-out rows and columns.
    class_weight : dict of label to weight, "balanced" or None, default=None
        Weights of classes, which multiply the sample weights.
    n_jobs : int, optional
        Maximum number of threads; None uses all. The model does not depend on it.
    max_time : float, optional
        Time limit in seconds, after which the trees so far are kept.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    n_iter_ : int
        Number of iterations.
    n_trees_per_iteration_ : int
        Number of trees per iteration.
    do_early_stopping_ : bool
        Whether early stopping was used.
    learning_curve_ : dict
        Mean loss before the first and after each iteration, for the training rows ("train") and the held-out rows
        ("validation").
    train_score_, validation_score_ : ndarray of shape (n_iter_ + 1,)
        Scores used for early stopping; the loss is negated. Empty without early stopping.
    feature_importances_ : ndarray of shape (n_features,)
        Total gain of the splits on each column, normalised to sum 1.
    is_categorical_ : ndarray of shape (n_features,), bool, or None
        Mask of the categorical columns.
    category_levels_ : dict
        Sorted levels of each text column, by name (x0, x1, ... for an array).
    n_features_in_, feature_names_in_ : as in scikit-learn

    References
    ----------
    Friedman (2001), Greedy function approximation: a gradient boosting machine. Ke and others (2017), LightGBM. Hastie,
    Tibshirani and Friedman, The Elements of Statistical Learning, chapter 10.

    Examples
    --------
    >>> import numpy as np
    >>> from summula.ensemble import HistGradientBoostingClassifier
    >>> X = np.arange(100.0)[:, None]
    >>> model = HistGradientBoostingClassifier().fit(X, np.where(X[:, 0] < 50, "low", "high"))
    >>> model.predict([[10.0], [90.0]])
    array(['low', 'high'], dtype='<U4')
    """

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "loss": (one_of("log_loss"),),
        **SHARED_PARAMETERS,
        "class_weight": (none, one_of("balanced"), mapping),
    }

    def __init__(
        self,
        loss: str = "log_loss",
        *,
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
        class_weight: Any = None,
        n_jobs: int | None = None,
        max_time: float | None = None,
    ) -> None:
        self.loss = loss
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
        self.class_weight = class_weight
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
            Training data; NaN is treated as missing, infinities as the extreme values of their column.
        y : array-like of shape (n_samples,), or name of a column of X
            Class labels of any type.
        sample_weight : array-like of shape (n_samples,), float, or name of a column of X, optional
            Sample weights.
        X_val, y_val, sample_weight_val : as X, y and sample_weight, optional
            Rows for early stopping, instead of a part of the training data. In a pipeline they are transformed by the
            previous steps with `Pipeline(..., transform_input=["X_val"])`.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight, X_val, y_val, sample_weight_val)

    def _make_loss(self) -> Loss:
        return Binary() if len(self.classes_) == 2 else Multiclass(len(self.classes_))

    def _row_weights(self, y: Array, weight: Array | None) -> Array | None:
        if self.class_weight is None:
            return weight
        known = self.classes_.tolist()
        if isinstance(self.class_weight, dict) and not any(label in known for label in self.class_weight):
            raise ParameterError(f"class_weight contains none of the classes {known}.")
        by_class = self.class_weight
        if isinstance(by_class, dict):
            by_class = {k: float(by_class.get(label, 1.0)) for k, label in enumerate(known)}
        expanded = np.asarray(compute_sample_weight(by_class, y.astype(np.intp)))
        return expanded if weight is None else weight * expanded

    def _from_scores(self, scores: Array) -> Array:
        return np.asarray(self.classes_[self._winners(scores)])

    def _probabilities(self, scores: Array) -> Array:  # type: ignore[override]
        return np.ascontiguousarray(self._make_loss().mean(scores.T).T)

    def _log_probabilities(self, scores: Array) -> Array:  # type: ignore[override]
        return np.asarray(np.log(self._probabilities(scores)))

    def staged_predict_proba(self, X: Any) -> Iterator[Array]:
        """Predict class probabilities after each iteration.

        Parameters
        ----------
        X : {array-like, frame} of shape (n_samples, n_features)

        Yields
        ------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        return self._staged(X, self._probabilities)

    def staged_decision_function(self, X: Any) -> Iterator[Array]:
        """Compute raw scores after each iteration.

        Parameters
        ----------
        X : {array-like, frame} of shape (n_samples, n_features)

        Yields
        ------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        check_is_fitted(self)
        return self._staged(X, self._decided)
