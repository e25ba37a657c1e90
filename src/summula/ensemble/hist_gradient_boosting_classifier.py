"""Histogram-based gradient boosting for classification.

For two classes there is one score, whose sigmoid is the probability of the second; for K > 2 classes there is one score
per class, and the probabilities are their softmax. A single class has probability 1. The losses are in
`boosting_losses.py`, the algorithm in `boosting.py`.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_sample_weight

from summula.core.docstrings import inherit_docs
from summula.core.errors import ParameterError
from summula.core.estimator.parameters import Allowed, mapping, none, one_of
from summula.core.model_files import schema
from summula.ensemble.histogram.base import SHARED_PARAMETERS, HistGradientBoosting
from summula.ensemble.histogram.boosting_losses import Binary, Loss, Multiclass, SingleClass
from summula.ensemble.stagewise.staged import StagedClassifier

__all__ = ["HistGradientBoostingClassifier"]

Array = NDArray[Any]


def _counts_scores(model: Any, sizes: schema.Sizes) -> str | None:
    scores = 1 if sizes["n_classes"] <= 2 else sizes["n_classes"]
    if sizes["n_scores"] != scores:
        return f"{sizes['n_classes']} classes have {sizes['n_scores']} scores"
    if sizes["n_classes"] == 1 and (model._nodes.value.any() or model._start.any()):
        return "the scores of a single class must be 0"
    return None


@inherit_docs()
@schema.saved(_counts_scores, classes_=schema.Labels("n_classes"))
class HistGradientBoostingClassifier(HistGradientBoosting, StagedClassifier):
    """Histogram-based gradient boosting classifier.

    Parameters
    ----------
    loss : {"log_loss"}, default="log_loss"
        Loss function.
    class_weight : dict of label to weight, "balanced" or None, default=None
        Weights of classes, which multiply the sample weights.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.

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

    _fewest_classes = 1
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

    def _make_loss(self) -> Loss:
        K = len(self.classes_)
        return (SingleClass(), Binary())[K - 1] if K <= 2 else Multiclass(K)

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

    def _probabilities(self, scores: Array) -> Array:  # type: ignore[override]
        return np.ascontiguousarray(self._make_loss().mean(scores.T).T)

    def _log_probabilities(self, scores: Array) -> Array:  # type: ignore[override]
        return np.asarray(np.log(self._probabilities(scores)))
