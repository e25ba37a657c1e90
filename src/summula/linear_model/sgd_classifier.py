"""Linear classifiers fitted by stochastic gradient descent, one versus rest.

The objective, the steps and the stopping rule are in `optimize/solvers/stochastic_descent/solver.py`, the scores of
several classes in its `classifier.py`, the losses in `losses/scores.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from summula.core.docstrings import inherit_docs
from summula.core.estimator.classifier import ProbabilisticClassifier
from summula.core.estimator.parameters import Allowed, integer, mapping, none, one_of
from summula.core.model_files import schema
from summula.optimize.solvers.stochastic_descent.classifier import StochasticClassifier
from summula.optimize.solvers.stochastic_descent.model import SHARED_PARAMETERS
from summula.optimize.solvers.stochastic_descent.rule import LOSSES

__all__ = ["SGDClassifier"]

Array = NDArray[Any]

_PROBABLE = ("log_loss", "modified_huber")


def _has_probabilities(model: Any) -> bool:
    if model.loss not in _PROBABLE:
        raise AttributeError(f"probability estimates are not available for loss={model.loss!r}")
    return True


@inherit_docs()
@schema.saved()
class SGDClassifier(StochasticClassifier):
    """Linear classifiers (SVM, logistic regression, perceptron, ...) fitted by stochastic gradient descent.

    Each score minimises the mean of its loss over the rows plus alpha times the penalty. Columns are not scaled: use
    `StandardScaler` first.

    Parameters
    ----------
    loss : str, default="hinge"
        Loss function: "hinge" (linear SVM), "log_loss" (logistic regression), "modified_huber", "squared_hinge",
        "perceptron", or a regression loss with targets -1 and 1: "squared_error", "huber", "epsilon_insensitive",
        "squared_epsilon_insensitive".
    learning_rate : {"optimal", "constant", "invscaling", "adaptive", "pa1", "pa2"}, default="optimal"
        Step size: 1 / (alpha (t0 + t)); eta0; eta0 / t^power_t; eta0, divided by 5 when the objective stops improving;
        or passive-aggressive, limited by eta0 (loss="hinge").
    power_t : float, default=0.5
        Exponent of "invscaling".

    Attributes
    ----------
    n_iter_ : int
        Number of epochs; for several scores the maximum.
    certificate_ : DescentCertificate
        Objective, summed over the scores, and a bound on its suboptimality.

    References
    ----------
    Bottou (2012), Stochastic gradient descent tricks. Shalev-Shwartz and Ben-David, Understanding Machine Learning,
    chapter 14.

    Examples
    --------
    >>> import numpy as np
    >>> from summula.linear_model import SGDClassifier
    >>> X = np.array([[-1.0, -1.0], [-2.0, -1.0], [1.0, 1.0], [2.0, 1.0]])
    >>> SGDClassifier(random_state=0).fit(X, ["no", "no", "yes", "yes"]).predict([[-0.8, -1.0], [3.0, 2.0]])
    array(['no', 'yes'], dtype='<U3')
    """

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "loss": (one_of(*LOSSES),),
        **SHARED_PARAMETERS,
        "n_jobs": (none, integer()),
        "class_weight": (none, one_of("balanced"), mapping),
    }

    def __init__(
        self,
        loss: str = "hinge",
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
        n_jobs: int | None = None,
        random_state: Any = None,
        learning_rate: str = "optimal",
        eta0: float = 0.01,
        power_t: float = 0.5,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        class_weight: Any = None,
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
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.power_t = power_t
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.average = average
        self.batch_size = batch_size
        self.max_time = max_time

    @available_if(_has_probabilities)
    @inherit_docs(ProbabilisticClassifier.predict_proba)
    def predict_proba(self, X: Any) -> Any:
        """Predict the probability of each class, with loss="log_loss" or "modified_huber".

        Returns
        -------
        ndarray of shape (n_samples, n_classes); batches for a scan
            For several classes, the probabilities of each against the rest are normalised to sum 1.
        """
        check_is_fitted(self)
        return self._by_row(X, self._score_function(), self._shares())

    @available_if(_has_probabilities)
    @inherit_docs(predict_proba)
    def predict_log_proba(self, X: Any) -> Any:
        """Predict the logarithm of the probability of each class.

        Returns
        -------
        ndarray of shape (n_samples, n_classes); batches for a scan
        """
        check_is_fitted(self)
        return self._by_row(X, self._score_function(), functools.partial(_logarithms, self._shares()))

    def _shares(self) -> Callable[[Array], Array]:
        """Return the function that converts scores to probabilities."""
        return _logistic if self.loss == "log_loss" else _clipped


def _logarithms(shares: Callable[[Array], Array], scores: Array) -> Array:
    with np.errstate(divide="ignore"):  # a probability may be 0
        return np.asarray(np.log(shares(scores)))


def _logistic(scores: Array) -> Array:
    p = special.expit(scores)
    return np.column_stack([1 - p[:, 0], p[:, 0]]) if scores.shape[1] == 1 else _divided(p)


def _clipped(scores: Array) -> Array:
    """Return the probability estimate for the modified Huber loss (Zhang 2004)."""
    p = (np.clip(scores, -1, 1) + 1) / 2
    return np.column_stack([1 - p[:, 0], p[:, 0]]) if scores.shape[1] == 1 else _divided(p)


def _divided(shares: Array) -> Array:
    """Normalise probabilities to sum 1; if all are 0, they become equal."""
    total = shares.sum(axis=1, keepdims=True)
    return np.asarray(np.where(total > 0, shares / np.where(total > 0, total, 1), 1 / shares.shape[1]), shares.dtype)
