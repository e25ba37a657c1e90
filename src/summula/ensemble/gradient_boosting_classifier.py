"""Gradient boosting for classification, with exact trees or any other regressor.

Two classes have one score; K > 2 classes have one each, whose softmax are the probabilities. The algorithm is in
`stagewise/boosting.py`, the losses are in `stagewise/losses.py`.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from summula.core.docstrings import inherit_docs
from summula.core.errors import DataError, ParameterError
from summula.core.estimator.parameters import Allowed, none, one_of
from summula.core.model_files import schema
from summula.dummy import DummyClassifier
from summula.ensemble.stagewise.base import SHARED_PARAMETERS, GradientBoosting
from summula.ensemble.stagewise.losses import ClassScores, MarginLoss, StageLoss
from summula.ensemble.stagewise.staged import StagedClassifier

__all__ = ["GradientBoostingClassifier"]

Array = NDArray[Any]


_with_probabilities = Allowed(
    lambda v: hasattr(v, "fit") and hasattr(v, "predict_proba"), "an object implementing 'fit' and 'predict_proba'"
)


def _counts_scores(model: Any, sizes: schema.Sizes) -> str | None:
    scores = 1 if sizes["n_classes"] == 2 else sizes["n_classes"]
    if sizes["n_scores"] != scores:
        return f"{sizes['n_classes']} classes have {sizes['n_scores']} scores"
    if isinstance(model.init_, str) or len(getattr(model.init_, "classes_", ())) == sizes["n_classes"]:
        return None
    return f"the initial estimator does not predict probabilities of {sizes['n_classes']} classes"


@inherit_docs()
@schema.saved(_counts_scores, classes_=schema.Labels("n_classes", low=2))
class GradientBoostingClassifier(GradientBoosting, StagedClassifier):
    """Gradient boosting classifier, with exact trees or any other regressor as base learner.

    `HistGradientBoostingClassifier` is much faster on large data, and supports categories and streams.

    Parameters
    ----------
    loss : {"log_loss", "exponential"}, default="log_loss"
        "log_loss" for any number of classes; "exponential", the loss of AdaBoost, for two.
    init : estimator, "zero" or None, default=None
        Initial estimator: by default the class proportions.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_classes_ : int

    References
    ----------
    Friedman, Greedy function approximation: a gradient boosting machine, Annals of Statistics 29, 2001. Hastie,
    Tibshirani and Friedman, The Elements of Statistical Learning, 2009, chapter 10.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from summula.ensemble import GradientBoostingClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GradientBoostingClassifier(n_estimators=20).fit(X, y)
    >>> model.predict(X[[0, 60, 120]])
    array([0, 1, 2])
    """

    _streaming_alternative = "HistGradientBoostingClassifier"
    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "loss": (one_of("log_loss", "exponential"),),
        **SHARED_PARAMETERS,
        "init": (one_of("zero"), none, _with_probabilities),
    }

    def __init__(
        self,
        *,
        loss: str = "log_loss",
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
        if len(self.classes_) == 2:
            return MarginLoss(self.loss)
        if self.loss == "exponential":
            raise ParameterError(
                f"loss='exponential' is only suitable for a binary classification problem, you have n_classes="
                f"{len(self.classes_)}; use loss='log_loss'."
            )
        return ClassScores(len(self.classes_))

    def _check_rows(self, y: Array, weight: Array | None) -> None:
        if weight is not None and len(np.unique(y[weight > 0])) < 2:
            raise DataError(
                "y contains 1 class after sample_weight trimmed classes with zero weights, while a minimum of 2 "
                "classes are required; pass a positive weight for rows of another class."
            )

    def _coded(self, y: Array) -> Array:
        return 2.0 * y - 1.0 if len(self.classes_) == 2 else y.astype(np.intp)

    def _default_start(self) -> Any:
        return DummyClassifier()

    @property
    def n_classes_(self) -> int:
        """Number of classes."""
        check_is_fitted(self)
        return len(self.classes_)

    def _probabilities(self, scores: Array) -> Array:  # type: ignore[override]
        return super()._probabilities(2.0 * scores if self.loss == "exponential" else scores)

    def _log_probabilities(self, scores: Array) -> Array:  # type: ignore[override]
        return super()._log_probabilities(2.0 * scores if self.loss == "exponential" else scores)
