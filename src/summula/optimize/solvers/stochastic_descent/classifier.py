"""Base class of linear classifiers fitted by stochastic gradient descent, one versus rest.

For two classes there is one score, w'x + b, positive for the second; for K > 2 classes there is one score per class,
fitted separately to targets +1 (this class) and -1 (any other), and the class with the largest score is predicted. Ties
go to the first class.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.callback import with_callbacks

from summula.core.docstrings import inherit_docs
from summula.core.errors import ParameterError
from summula.core.estimator.classifier import classes_of_parts, weights_of_labels
from summula.core.estimator.linear.linear_classifier import LinearClassifier
from summula.optimize.solvers.stochastic_descent.certificate import DescentProblem
from summula.optimize.solvers.stochastic_descent.model import StochasticModel

__all__ = ["StochasticClassifier"]

Array = NDArray[Any]


@inherit_docs()
class StochasticClassifier(LinearClassifier, StochasticModel):
    """Base class of SGDClassifier, Perceptron and PegasosSVC.

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
