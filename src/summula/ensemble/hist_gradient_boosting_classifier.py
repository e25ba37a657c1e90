"""Classification by boosted trees on binned rows.

Two classes have one score, whose sigmoid is the probability of the second; K > 2 classes have one each, whose softmax
are the probabilities. The losses are in `boosting_losses.py`, the algorithm in `boosting.py`.
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
from summula.ensemble.boosting_losses import Binary, Loss, Multiclass
from summula.ensemble.hist_gradient_boosting import SHARED_PARAMETERS, HistGradientBoosting

__all__ = ["HistGradientBoostingClassifier"]

Array = NDArray[Any]


def _counts_scores(model: Any, sizes: schema.Sizes) -> str | None:
    scores = 1 if sizes["n_classes"] == 2 else sizes["n_classes"]
    return None if sizes["n_scores"] == scores else f"{sizes['n_classes']} classes have {sizes['n_scores']} scores"


@schema.saved(_counts_scores, classes_=schema.Labels("n_classes"))
class HistGradientBoostingClassifier(HistGradientBoosting, ProbabilisticClassifier, ScoreClassifier):
    """Gradient boosting of classification trees on binned columns.

    Parameters
    ----------
    loss : {"log_loss"}, default="log_loss"
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
    class_weight : dict of label to weight, "balanced" or None, default=None
        Weights of rows are multiplied by the weight of their class.
    n_jobs : int, optional
        At most so many threads; the model does not depend on it.
    max_time : float, optional
        Seconds after which a fit stops with the trees it has.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
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
            Training data; NaN is a missing value, infinities are the outermost values of their column.
        y : array-like of shape (n_samples,), or name of a column of X
            Class labels of any kind.
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
        return Binary() if len(self.classes_) == 2 else Multiclass(len(self.classes_))

    def _row_weights(self, y: Array, weight: Array | None) -> Array | None:
        if self.class_weight is None:
            return weight
        known = self.classes_.tolist()
        if isinstance(self.class_weight, dict) and not any(label in known for label in self.class_weight):
            raise ParameterError(f"class_weight names none of the classes; they are {known}.")
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
        """Probabilities after each iteration.

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
        """Raw scores after each iteration.

        Parameters
        ----------
        X : {array-like, frame} of shape (n_samples, n_features)

        Yields
        ------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        check_is_fitted(self)
        return self._staged(X, self._decided)
