"""Support vector regression, with an epsilon-insensitive loss.

    minimise   1/2 ||w||^2 + sum_i C_i max(|y_i - w'phi(x_i) - b| - epsilon, 0)                                  (1)

Its dual is that of `solver.py` with two variables per row, for errors above and below.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.callback import with_callbacks

from summula.core.data.chunks import Chunk
from summula.core.docstrings import inherit_docs
from summula.core.errors import ParameterError
from summula.core.estimator.parameters import Allowed, real
from summula.core.estimator.regressor import Regressor, check_one_target
from summula.core.estimator.rows import RowFunction, composed
from summula.core.model_files import schema
from summula.svm.dual.certificate import MachineTask
from summula.svm.dual.kernel_machine import KERNEL_PARAMETERS, KernelMachine

__all__ = ["SVR", "first_column", "one_machine"]

Array = NDArray[Any]


def first_column(values: Array) -> Array:
    """Return the values of the only machine."""
    return values[:, 0]


def one_machine(model: Any, sizes: schema.Sizes) -> str | None:
    """Check a saved model: one machine has one row of coefficients and one intercept."""
    return None if sizes["n_coefs"] == sizes["n_machines"] == 1 else "dual_coef_ or intercept_ do not match one machine"


@inherit_docs()
@schema.saved(one_machine, n_support_=schema.Array("int32", 1, low=0), n_iter_=schema.Integer(0))
class SVR(KernelMachine, Regressor):
    """Support vector regression with any kernel.

    Parameters
    ----------
    tol : float, default=1e-3
        Tolerance for the violation of the KKT conditions.
    C : float, default=1.0
        Cost of errors beyond epsilon.
    epsilon : float, default=0.1
        Width of the tube within which errors are not penalised.
    verbose : bool, default=False
        Ignored; use scikit-learn's callbacks for progress reports.
    fit_intercept : bool, default=True

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_, gamma_, fit_status_ : as in `SVC`
    n_iter_ : int
    certificate_ : SupportCertificate

    Examples
    --------
    >>> from summula.svm import SVR
    >>> SVR(kernel="linear", C=10.0, epsilon=0.0).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).predict([[4.0]]).round(2)
    array([9.])
    """

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        **KERNEL_PARAMETERS,
        "C": (real(0.0, open_low=True),),
        "epsilon": (real(0.0),),
    }

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        C: float = 1.0,
        epsilon: float = 0.1,
        shrinking: bool = True,
        cache_size: float = 200,
        verbose: bool = False,
        max_iter: int = -1,
        fit_intercept: bool = True,
        max_time: float | None = None,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.C = C
        self.epsilon = epsilon
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.max_time = max_time

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model."""
        with self._fitting(X, y, sample_weight) as run:
            if not np.isfinite(self.C):
                raise ParameterError("SVR needs a finite C: there may be no function within epsilon of every target.")
            check_one_target(run, y)
            self._solve(run)
        return self

    def _task(self, weights: Array | None, y: Array | None) -> MachineTask:
        return MachineTask("numbers", float(self.C), float(self.epsilon), 0.0, bool(self.fit_intercept), np.ones(1))

    def _name_steps(self, steps: Array) -> None:
        self.n_iter_ = int(steps[0])

    def _predicted(self, chunk: Chunk) -> Array:
        return first_column(self._value_function()(chunk))

    def _row_function(self) -> RowFunction:
        return composed(first_column, self._value_function())
