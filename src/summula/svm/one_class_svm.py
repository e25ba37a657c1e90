"""The one-class support vector machine: a region that contains most of the rows.

    minimise   1/2 ||w||^2 + sum_i w_i max(rho - w'phi(x_i), 0) - nu rho sum_i w_i                               (1)

nu is an upper bound on the fraction of rows outside and a lower bound on the fraction of support vectors. A new row is
an outlier if w'phi(x) < rho.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin
from sklearn.callback import with_callbacks
from sklearn.utils.validation import check_is_fitted

from summula.core.docstrings import inherit_docs
from summula.core.estimator.parameters import Allowed, real
from summula.core.estimator.rows import ROWS, PredictionWriter
from summula.core.model_files import schema
from summula.svm.dual.certificate import Machine, MachineTask
from summula.svm.dual.kernel_machine import KERNEL_PARAMETERS, KernelMachine
from summula.svm.svr import first_column, one_machine

__all__ = ["OneClassSVM"]

Array = NDArray[Any]


def _signs(values: Array) -> Array:
    return np.where(values[:, 0] > 0, 1, -1)


@inherit_docs()
@schema.saved(
    one_machine,
    n_support_=schema.Array("int32", 1, low=0),
    n_iter_=schema.Integer(0),
    offset_=schema.Array("float64", 1),
)
class OneClassSVM(OutlierMixin, PredictionWriter, KernelMachine):
    """Outlier detection by a one-class support vector machine.

    Parameters
    ----------
    tol : float, default=1e-3
    nu : float, default=0.5
        Upper bound on the fraction of outliers and lower bound on the fraction of support vectors; in (0, 1].
    cache_size : float, default=200
    verbose : bool, default=False

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_, gamma_, fit_status_ : as in `SVC`
    offset_ : ndarray of shape (1,)
        rho: decision_function = score_samples - offset_.
    n_iter_ : int
    certificate_ : SupportCertificate

    Examples
    --------
    >>> from summula.svm import OneClassSVM
    >>> OneClassSVM(nu=0.4, gamma=1.0).fit([[0.0], [0.1], [0.2], [9.0], [0.15]]).predict([[0.1], [5.0]])
    array([ 1, -1])
    """

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        **{name: allowed for name, allowed in KERNEL_PARAMETERS.items() if name != "fit_intercept"},
        "nu": (real(0.0, 1.0, open_low=True),),
    }

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        nu: float = 0.5,
        shrinking: bool = True,
        cache_size: float = 200,
        verbose: bool = False,
        max_iter: int = -1,
        max_time: float | None = None,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.nu = nu
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.max_time = max_time

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit the region.

        Parameters
        ----------
        y : ignored
        sample_weight : array-like of shape (n_samples,), or name of a column of X, optional
        """
        with self._fitting(X, None, sample_weight, needs_y=False) as run:
            self._solve(run)
        return self

    def _task(self, weights: Array | None, y: Array | None) -> MachineTask:
        return MachineTask("one class", 1.0, 0.0, float(self.nu), True, np.ones(1))

    def _name_support(self, machines: tuple[Machine, ...], X: Any, y: Array | None, task: MachineTask) -> None:
        super()._name_support(machines, X, y, task)
        self.offset_ = -self.intercept_

    def _name_steps(self, steps: Array) -> None:
        self.n_iter_ = int(steps[0])

    @inherit_docs(ROWS)
    def decision_function(self, X: Any) -> Any:
        """Compute the signed distance to the boundary of the region, positive inside, times the norm of w.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return self._by_row(X, self._value_function(), first_column)

    @inherit_docs(decision_function)
    def score_samples(self, X: Any) -> Any:
        """Compute w'phi(x), which is decision_function + offset_."""
        return self.decision_function(X) + self.offset_

    @inherit_docs(decision_function)
    def predict(self, X: Any) -> Any:
        """Predict 1 for rows inside the region and -1 for outliers."""
        check_is_fitted(self)
        return self._by_row(X, self._value_function(), _signs)
