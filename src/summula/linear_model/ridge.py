"""Ridge regression: min sum_i w_i (y_i - x_i'v - b)^2 + alpha ||v||^2. Solved in `least_squares/solver.py`."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from summula.core.docstrings import inherit_docs
from summula.core.errors import ParameterError
from summula.core.estimator.input.argument_values import numbers_in
from summula.core.estimator.parameters import Allowed, array_like, boolean, integer, none, one_of, random_state, real
from summula.core.model_files import schema
from summula.linear_model.least_squares.model import Given, LeastSquaresModel
from summula.linear_model.least_squares.problem import Fit, Problem

__all__ = ["Ridge"]

_SOLVERS = ("auto", "svd", "cholesky", "lsqr", "sparse_cg", "sag", "saga", "lbfgs")


@inherit_docs()
@schema.saved(
    solver_=schema.Text(*_SOLVERS),
    n_iter_=schema.Array("int32", "n_targets", low=0),
    trace_=schema.Maybe(schema.Items(schema.Real(finite=False))),
)
class Ridge(LeastSquaresModel):
    """Ridge regression: least squares with an L2 penalty.

    Parameters
    ----------
    alpha : float or array-like of shape (n_targets,), default=1.0
        Strength of the penalty, one for all targets or one per target. The intercept is not penalised.
    max_iter : int, optional
        Maximum number of conjugate gradient steps, used for wide sparse data.
    tol : float, default=1e-4
        Tolerance of conjugate gradients, used for wide sparse data; other solvers are exact up to rounding.
    solver : {"auto", "svd", "cholesky", "lsqr", "sparse_cg", "sag", "saga", "lbfgs"}, default="auto"
        For compatibility with scikit-learn; every value is accepted and none affects the result.
    random_state : optional
        Ignored; the fit is deterministic.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
    solver_ : str
        The parameter `solver`; for "auto" the solver used: "cholesky" (normal equations), "svd" (orthogonal
        factorisation), "sparse_cg" (conjugate gradients) or "lbfgs" (wide sparse data, positive=True).
    certificate_ : LeastSquaresCertificate
        Penalised sum of squares and a bound on its suboptimality.
    n_iter_ : ndarray of shape (n_targets,)
        Number of conjugate gradient steps if they were used, else 1.

    References
    ----------
    Hastie, Tibshirani, Friedman, The Elements of Statistical Learning, section 3.4.1.

    Examples
    --------
    >>> import numpy as np
    >>> from summula.linear_model import Ridge
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [2.0, 1.0]])
    >>> model = Ridge(alpha=0.5).fit(X, [1.0, 2.0, 3.0, 5.0])
    >>> model.coef_.round(3)
    array([1.6, 0.6])
    >>> bool(model.certificate_.gap < 1e-12)
    True
    """

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "alpha": (real(0.0), array_like),
        "fit_intercept": (boolean,),
        "copy_X": (boolean,),
        "max_iter": (none, integer(1)),
        "tol": (real(0.0),),
        "solver": (one_of(*_SOLVERS),),
        "positive": (boolean,),
        "random_state": (random_state,),
        "max_time": (none, real(0.0)),
    }

    def __init__(
        self,
        alpha: Any = 1.0,
        *,
        fit_intercept: bool = True,
        copy_X: bool = True,
        max_iter: int | None = None,
        tol: float = 1e-4,
        solver: str = "auto",
        positive: bool = False,
        random_state: Any = None,
        max_time: float | None = None,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.max_iter = max_iter
        self.tol = tol
        self.solver = solver
        self.positive = positive
        self.random_state = random_state
        self.max_time = max_time

    def _problem(self, n_targets: int) -> Problem:
        return Problem(self.fit_intercept, self._penalties(n_targets), self.positive)

    def _name_results(self, given: Given, problem: Problem, fit: Fit) -> None:
        super()._name_results(given, problem, fit)
        if len(problem.alpha) == 1:
            self.coef_ = self.coef_.ravel()  # also for a column vector y, as in scikit-learn
        self.solver_ = fit.method if self.solver == "auto" else self.solver
        self.n_iter_ = np.full(len(problem.alpha), 1 if fit.n_iter is None else fit.n_iter, np.int32)
        self.trace_ = fit.trace

    def _penalties(self, n_targets: int) -> Any:
        alpha = numbers_in("alpha", self.alpha).ravel()
        if len(alpha) not in (1, n_targets):
            raise ParameterError(
                f"Number of targets and number of penalties do not correspond: {len(alpha)} != {n_targets}; "
                "pass one alpha for all targets or one per target."
            )
        if not (np.isfinite(alpha) & (alpha >= 0)).all():
            raise ParameterError(f"alpha must be finite and non-negative; got {self.alpha!r}.")
        return np.broadcast_to(alpha, (n_targets,)).copy()
