"""Histogram-based gradient boosting for regression.

The losses are in `boosting_losses.py`, the algorithm in `boosting.py`.
"""

from __future__ import annotations

import functools
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from summula.core.docstrings import inherit_docs
from summula.core.errors import ParameterError
from summula.core.estimator.parameters import Allowed, none, one_of, real
from summula.core.estimator.regressor import Regressor
from summula.core.estimator.rows import RowFunction, composed
from summula.core.model_files import schema
from summula.ensemble.histogram.base import SHARED_PARAMETERS, HistGradientBoosting
from summula.ensemble.histogram.boosting_losses import LOSSES, Loss, Pinball

__all__ = ["HistGradientBoostingRegressor"]

Array = NDArray[Any]


def _means(loss: Loss, scores: Array) -> Array:
    return np.asarray(loss.mean(scores.T)[0])


def _has_one_score(model: Any, sizes: schema.Sizes) -> str | None:
    return None if sizes["n_scores"] == 1 else f"one target has {sizes['n_scores']} scores"


@inherit_docs()
@schema.saved(_has_one_score)
class HistGradientBoostingRegressor(HistGradientBoosting, Regressor):
    """Histogram-based gradient boosting regressor.

    Parameters
    ----------
    loss : {"squared_error", "absolute_error", "gamma", "poisson", "quantile"}, default="squared_error"
        Loss function; "poisson" and "gamma" use a log link, for counts and positive targets.
    quantile : float, optional
        Quantile to predict with loss="quantile".

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
