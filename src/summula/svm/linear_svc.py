"""Linear support vector classification on many rows: the problem is in `linear/problem.py`.

Two classes need one score, positive for the second; K > 2 classes have one score each, one versus rest, and the class
with the largest score is predicted. Ties go to the first class in `classes_`.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.callback import with_callbacks

from summula.core.docstrings import inherit_docs
from summula.core.errors import ParameterError
from summula.core.estimator.classifier import weights_of_labels
from summula.core.estimator.linear.linear_classifier import LinearClassifier
from summula.core.estimator.linear.linear_predictor import SparseCoefficients
from summula.core.estimator.parameters import Allowed, mapping, none, one_of
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.core.numerics.grouped import ClassWeights
from summula.svm.linear.certificate import LinearCertificate
from summula.svm.linear.model import SHARED_PARAMETERS, LinearMachine
from summula.svm.linear.problem import CLASS_LOSSES, LinearProblem

__all__ = ["LinearSVC"]

Array = NDArray[Any]


@inherit_docs()
@schema.saved(n_iter_=schema.Integer(0), certificate_=schema.Object(LinearCertificate, n_features="n_features"))
class LinearSVC(SparseCoefficients, LinearMachine, LinearClassifier):
    """Linear support vector classification.

    Minimises 1/2 ||w||^2 (or ||w||_1) + C times the sum of the losses. The squared hinge loss with the L2 penalty is
    minimised by Newton's method on sums over the rows, up to 2,048 columns, also for files and Dask collections;
    anything else by coordinate descent on rows in memory.

    Parameters
    ----------
    penalty : {"l2", "l1"}, default="l2"
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
    multi_class : {"ovr"}, default="ovr"
    intercept_scaling : float, default=1.0
        Value of the constant column of the intercept; the larger, the less the intercept is penalised.
    class_weight : dict of label to weight, "balanced" or None, default=None
    random_state : int, Generator, RandomState or None, default=None
        Seed for the order of coordinate descent.
    max_iter : int, default=1000
        Maximum number of Newton steps or epochs.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)

    Examples
    --------
    >>> from summula.svm import LinearSVC
    >>> model = LinearSVC(C=10.0).fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1])
    >>> model.predict([[1.2], [2.9]])
    array([0, 1])
    """

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        **SHARED_PARAMETERS,
        "penalty": (one_of("l1", "l2"),),
        "loss": (one_of(*CLASS_LOSSES),),
        "multi_class": (one_of("ovr", "crammer_singer"),),
        "class_weight": (none, one_of("balanced"), mapping),
    }

    def __init__(
        self,
        penalty: str = "l2",
        loss: str = "squared_hinge",
        *,
        dual: Any = "auto",
        tol: float = 1e-4,
        C: float = 1.0,
        multi_class: str = "ovr",
        fit_intercept: bool = True,
        intercept_scaling: float = 1,
        class_weight: Any = None,
        verbose: int = 0,
        random_state: Any = None,
        max_iter: int = 1000,
        penalize_intercept: bool = True,
        max_time: float | None = None,
    ) -> None:
        self.penalty = penalty
        self.loss = loss
        self.dual = dual
        self.tol = tol
        self.C = C
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.penalize_intercept = penalize_intercept
        self.max_time = max_time

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        sample_weight : array-like of shape (n_samples,), or name of a column of X, optional
            Weights, which multiply C.
        """
        with self._fitting(X, y, sample_weight) as run:
            self._check_finite()
            if self.multi_class == "crammer_singer":
                raise ParameterError("multi_class='crammer_singer' is not supported; use 'ovr', or SVC (one-vs-one).")
            if self.penalty == "l1" and self.loss == "hinge":
                raise ParameterError(
                    "Unsupported set of arguments: The combination of penalty='l1' and loss='hinge' is not supported; "
                    "use loss='squared_hinge'."
                )
            self._solve(run, self._problems(run))
        return self

    def _problems(self, run: Run) -> list[LinearProblem]:
        weights, K = self._class_weights(run), len(self.classes_)
        shared = (self.loss, self.penalty, float(self.C), 0.0, self._column(), bool(self.penalize_intercept))
        if K == 2:
            return [LinearProblem(*shared, 1, float(weights[1]), float(weights[0]))]
        return [LinearProblem(*shared, k, float(weights[k]), 1.0) for k in range(K)]

    def _class_weights(self, run: Run) -> Array:
        K = len(self.classes_)
        if self.class_weight is None:
            return np.ones(K)
        if isinstance(self.class_weight, str):
            totals = run.sum(ClassWeights, K, "class weights").totals
            return np.asarray(totals.sum() / (K * np.maximum(totals, 1e-300)))
        return weights_of_labels(self.class_weight, self.classes_)
