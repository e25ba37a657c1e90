"""Linear regression by stochastic gradient descent; with plain settings, the least-mean-squares (LMS) rule.

With loss="squared_error", penalty=None and learning_rate="constant" every row moves the weights by

    w <- w + eta0 (y - w'x - b) x,      b <- b + eta0 (y - w'x - b)                                                (1)

(Widrow and Hoff 1960). A row's error is multiplied by 1 - eta0 (|x|^2 + 1), so no row overshoots when
eta0 < 2 / (max |x|^2 + 1); on average the weights converge to least squares if eta0 < 2 / (largest eigenvalue of the
mean of x x'), and fluctuate about it at a distance that decreases with eta0. The objective, the steps and the stopping
rule are in `stochastic_descent/solver.py`.
"""

from __future__ import annotations

import functools
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.callback import with_callbacks

from summula.core.docstrings import inherit_docs
from summula.core.estimator.linear.linear_predictor import LinearPredictor, dense, linear_values
from summula.core.estimator.parameters import Allowed, one_of
from summula.core.estimator.regressor import check_one_target
from summula.core.estimator.rows import RowFunction
from summula.core.model_files import schema
from summula.optimize.solvers.stochastic_descent.certificate import DescentProblem
from summula.optimize.solvers.stochastic_descent.model import SHARED_PARAMETERS, StochasticModel

__all__ = ["SGDRegressor"]

Array = NDArray[Any]

_LOSSES = ("squared_error", "huber", "epsilon_insensitive", "squared_epsilon_insensitive")


def _has_one_score(model: Any, sizes: schema.Sizes) -> str | None:
    return None if sizes["n_scores"] == 1 else f"there are {sizes['n_scores']} intercepts, but one target"


@inherit_docs()
@schema.saved(
    _has_one_score,
    coef_=schema.Array("float", "n_features") | schema.Sparse("n_features") | schema.Sparse(1, "n_features"),
)
class SGDRegressor(StochasticModel, LinearPredictor):
    """Linear regression fitted by stochastic gradient descent.

    Minimises the mean of the loss over the rows plus alpha times the penalty. Columns are not scaled: use
    `StandardScaler` first. The LMS rule is `SGDRegressor(penalty=None, learning_rate="constant")`; its steps are safe
    for eta0 < 2 / (max |x|^2 + 1), and converge on average for eta0 < 2 / (largest eigenvalue of the mean of x x').

    Parameters
    ----------
    loss : {"squared_error", "huber", "epsilon_insensitive", "squared_epsilon_insensitive"}, default="squared_error"
        Loss function.
    learning_rate : {"invscaling", "constant", "optimal", "adaptive", "pa1", "pa2"}, default="invscaling"
        Step size: eta0 / t^power_t; eta0; 1 / (alpha (t0 + t)); eta0, divided by 5 when the objective stops improving;
        or passive-aggressive, limited by eta0 (loss="epsilon_insensitive").
    power_t : float, default=0.25
        Exponent of "invscaling".
    early_stopping : bool, default=False
        Whether to stop based on R^2 on held-out rows.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : ndarray of shape (1,)
    n_iter_ : int
        Number of epochs.
    certificate_ : DescentCertificate
        Objective, and a bound on its suboptimality.

    References
    ----------
    Widrow and Hoff (1960), Adaptive switching circuits. Bottou (2012), Stochastic gradient descent tricks.

    Examples
    --------
    >>> import numpy as np
    >>> from summula.linear_model import SGDRegressor
    >>> X = np.array([[-1.0], [0.0], [1.0]])
    >>> lms = SGDRegressor(penalty=None, learning_rate="constant", eta0=0.1, random_state=0)
    >>> lms.fit(X, [-1.0, 1.0, 3.0]).predict([[2.0]]).round(1)
    array([5.])
    """

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {"loss": (one_of(*_LOSSES),), **SHARED_PARAMETERS}

    def __init__(
        self,
        loss: str = "squared_error",
        *,
        penalty: str | None = "l2",
        alpha: float = 0.0001,
        l1_ratio: float | None = 0.15,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        shuffle: bool = True,
        verbose: int = 0,
        epsilon: float = 0.1,
        random_state: Any = None,
        learning_rate: str = "invscaling",
        eta0: float = 0.01,
        power_t: float = 0.25,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        warm_start: bool = False,
        average: bool | int = False,
        batch_size: int | None = None,
        max_time: float | None = None,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.shuffle = shuffle
        self.verbose = verbose
        self.epsilon = epsilon
        self.random_state = random_state
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.power_t = power_t
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.warm_start = warm_start
        self.average = average
        self.batch_size = batch_size
        self.max_time = max_time

    @with_callbacks
    def fit(
        self, X: Any, y: Any, coef_init: Any = None, intercept_init: Any = None, sample_weight: Any = None
    ) -> SGDRegressor:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,), or name of a column of X
            Targets.
        coef_init : array-like of shape (n_features,), optional
            Initial coefficients.
        intercept_init : float or array-like of shape (1,), optional
            Initial intercept.
        sample_weight : array-like of shape (n_samples,), float, or name of a column of X, optional
            Sample weights, which multiply the steps.

        Returns
        -------
        self
        """
        with self._fitting(X, y, sample_weight) as run:
            self._check_settings()
            check_one_target(run, y)
            sizes = self._survey(run, 0)
            start = self._start(run, 1, coef_init, intercept_init)
            self._forget_averages()
            self.t_ = 1.0
            self._descend(run, self._one_problem(), start, sizes, whole=True)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> SGDRegressor:
        """Perform one epoch over some rows, starting from the current model.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)
            Part of the training data.
        y : array-like of shape (n_samples,), or name of a column of X
            Targets.
        sample_weight : array-like of shape (n_samples,), float, or name of a column of X, optional

        Returns
        -------
        self
        """
        first = not hasattr(self, "coef_")
        with self._fitting(X, y, sample_weight, reset=first) as run:
            if first:
                self._check_settings(by_parts=True)
                self.t_ = 1.0
            check_one_target(run, y)
            sizes = self._survey(run, 0)
            self._descend(run, self._one_problem(), self._present(run, 1), sizes, whole=False)
        return self

    def _one_problem(self) -> DescentProblem:
        return self._problem(np.array([-1.0]), np.ones(1), np.ones(1))

    def _shaped(self, coef: Array) -> Array:
        return np.asarray(coef[0])

    def _named_targets(self) -> tuple[str, ...] | None:
        return None

    def _row_function(self) -> RowFunction:
        return functools.partial(linear_values, dense(self.coef_).ravel(), self.intercept_)
