"""Linear support vector regression on many rows: the problem is in `linear/problem.py`."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.callback import with_callbacks

from summula.core.docstrings import inherit_docs
from summula.core.estimator.linear.linear_predictor import LinearPredictor
from summula.core.estimator.parameters import Allowed, one_of, real
from summula.core.estimator.regressor import check_one_target
from summula.core.model_files import schema
from summula.svm.linear.certificate import LinearCertificate
from summula.svm.linear.model import SHARED_PARAMETERS, LinearMachine
from summula.svm.linear.problem import NUMBER_LOSSES, LinearProblem

__all__ = ["LinearSVR"]

Array = NDArray[Any]


@inherit_docs()
@schema.saved(
    coef_=schema.Array("float", "n_features"),
    intercept_=schema.Array("float", 1),
    n_iter_=schema.Integer(0),
    certificate_=schema.Object(LinearCertificate, n_features="n_features"),
)
class LinearSVR(LinearMachine, LinearPredictor):
    """Linear support vector regression, with an epsilon-insensitive loss.

    Parameters
    ----------
    epsilon : float, default=0.0
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default="epsilon_insensitive"
        The squared loss supports streams, up to 2,048 columns.
    intercept_scaling : float, default=1.0
    random_state : int, Generator, RandomState or None, default=None
    max_iter : int, default=1000

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : ndarray of shape (1,)

    Examples
    --------
    >>> from summula.svm import LinearSVR
    >>> model = LinearSVR(C=100.0, penalize_intercept=False).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> model.predict([[4.0]]).round(2)
    array([9.])
    """

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        **SHARED_PARAMETERS,
        "epsilon": (real(0.0),),
        "loss": (one_of(*NUMBER_LOSSES),),
    }

    def __init__(
        self,
        *,
        epsilon: float = 0.0,
        tol: float = 1e-4,
        C: float = 1.0,
        loss: str = "epsilon_insensitive",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        dual: Any = "auto",
        verbose: int = 0,
        random_state: Any = None,
        max_iter: int = 1000,
        penalize_intercept: bool = True,
        max_time: float | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.tol = tol
        self.C = C
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.dual = dual
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.penalize_intercept = penalize_intercept
        self.max_time = max_time

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model."""
        with self._fitting(X, y, sample_weight) as run:
            self._check_finite()
            check_one_target(run, y)
            shared = (
                self.loss,
                "l2",
                float(self.C),
                float(self.epsilon),
                self._column(),
                bool(self.penalize_intercept),
            )
            self._solve(run, [LinearProblem(*shared)])
        return self

    def _name(self, *given: Any) -> None:
        super()._name(*given)
        self.coef_ = np.ascontiguousarray(self.coef_[0])
