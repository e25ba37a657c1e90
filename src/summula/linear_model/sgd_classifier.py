"""Linear classifiers fitted by stochastic gradient descent, one versus rest.

The objective, the steps and the stopping rule are in `sgd/solver.py`, the losses in `losses/scores.py`. For two classes
there is one score, w'x + b, positive for the second; for K > 2 classes there is one score per class, fitted separately
to targets +1 (this class) and -1 (any other), and the class with the largest score is predicted. Ties go to the first
class.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.callback import with_callbacks
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from summula.core.docstrings import inherit_docs
from summula.core.errors import ParameterError
from summula.core.estimator.classifier import ProbabilisticClassifier, classes_of_parts, weights_of_labels
from summula.core.estimator.linear.linear_classifier import LinearClassifier
from summula.core.estimator.parameters import Allowed, integer, mapping, none, one_of
from summula.core.model_files import schema
from summula.linear_model.sgd.certificate import DescentProblem
from summula.linear_model.sgd.model import SHARED_PARAMETERS, StochasticModel
from summula.linear_model.sgd.rule import LOSSES

__all__ = ["SGDClassifier", "StochasticClassifier"]

Array = NDArray[Any]

_PROBABLE = ("log_loss", "modified_huber")


@inherit_docs()
class StochasticClassifier(LinearClassifier, StochasticModel):
    """Base class of SGDClassifier and Perceptron.

    Parameters
    ----------
    n_jobs : int, optional
        Maximum number of threads, used to fit the scores of several classes in parallel; None uses all.
    early_stopping : bool, default=False
        Whether to stop based on the accuracy on held-out rows.
    class_weight : dict of label to weight, "balanced" or None, default=None
        Weights of the classes, which multiply the steps.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    """

    class_weight: Any
    n_jobs: int | None

    @with_callbacks
    def fit(self, X: Any, y: Any, coef_init: Any = None, intercept_init: Any = None, sample_weight: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,), or name of a column of X
            Class labels of any type.
        coef_init : array-like of shape (n_classes, n_features), or (n_features,) for two classes, optional
            Initial coefficients.
        intercept_init : array-like of shape (n_classes,), or (1,) for two classes, optional
            Initial intercepts.
        sample_weight : array-like of shape (n_samples,), float, or name of a column of X, optional
            Sample weights, which multiply the steps, as do class weights.
        """
        with self._fitting(X, y, sample_weight) as run:
            self._check_settings()
            K = len(self.classes_)
            sizes = self._survey(run, K)
            problem = self._class_problem(sizes.counts)
            start = self._start(run, len(problem.positive), coef_init, intercept_init)
            self._forget_averages()
            self.t_ = 1.0
            self._descend(run, problem, start, sizes, whole=True)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Perform one epoch over some rows, starting from the current model.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)
            Part of the training data.
        y : array-like of shape (n_samples,), or name of a column of X
            Class labels.
        classes : array-like of shape (n_classes,), optional
            All classes that can occur in y; required in the first call.
        sample_weight : array-like of shape (n_samples,), float, or name of a column of X, optional
        """
        first = not hasattr(self, "coef_")
        if first:
            self._check_settings(by_parts=True)
        known = classes_of_parts(self, classes)
        with self._fitting(X, y, sample_weight, reset=first, classes=known) as run:
            if first:
                if self.class_weight == "balanced":
                    raise ParameterError(_NOT_BALANCED)
                self.t_ = 1.0
            sizes = self._survey(run, len(known))
            problem = self._class_problem(sizes.counts)
            start = self._present(run, len(problem.positive))
            self._descend(run, problem, start, sizes, whole=False)
        return self

    def _class_problem(self, counts: Array) -> DescentProblem:
        """Return the targets and weights of each score; `counts` are the numbers of rows of each class."""
        K = len(self.classes_)
        weights = self._class_weights(counts)
        if K == 2:
            return self._problem(np.array([1.0]), weights[1:], weights[:1])
        return self._problem(np.arange(K, dtype=float), weights, np.ones(K))

    def _class_weights(self, counts: Array) -> Array:
        K = len(self.classes_)
        if self.class_weight is None:
            return np.ones(K)
        if isinstance(self.class_weight, str):
            return np.asarray(counts.sum() / (K * np.maximum(counts, 1)))
        return weights_of_labels(self.class_weight, self.classes_, all_known=False)


_NOT_BALANCED = (
    "class_weight 'balanced' is not supported for partial_fit. In order to use 'balanced' weights, use "
    "compute_class_weight('balanced', classes=classes, y=y). In place of y you can use a large enough sample of the "
    "full training set target to properly estimate the class frequency distributions. Pass the resulting weights as "
    "the class_weight parameter."
)


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
