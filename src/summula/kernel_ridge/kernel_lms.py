"""Least mean squares in the feature space of a kernel: one row at a time.

The step of LMS, theta <- theta + eta (y_i - theta'phi(x_i)) phi(x_i), keeps theta a sum of features of rows, so

    theta = sum_i beta_i phi(x_i),      beta_i <- beta_i + eta (y_i - sum_j beta_j k(x_j, x_i))                  (1)

Features are implicit. Every visited row becomes a centre; with a budget, the centre with the smallest
|beta| sqrt(k(x, x)) is replaced by the new one, which bounds memory and time per row on a stream.
"""

from __future__ import annotations

import functools
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.callback import with_callbacks

from summula.core.docstrings import inherit_docs
from summula.core.errors import DataError
from summula.core.estimator.parameters import Allowed, integer, none, real
from summula.core.estimator.regressor import Regressor, check_one_target
from summula.core.estimator.rows import RowFunction
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.kernels.rows import far_columns_of, rows_of
from summula.kernels.settings import KERNEL_SETTINGS, chosen_kernel
from summula.kernels.values import kernel_values

__all__ = ["KernelLMS"]

Array = NDArray[Any]


def _first_column(compute: RowFunction, chunk: Any) -> Array:
    return compute(chunk)[:, 0]


@inherit_docs()
@schema.saved(
    centres_=schema.Array("float64", "n_centres", "n_features"),
    beta_=schema.Array("float64", "n_centres"),
    n_iter_=schema.Integer(0),
    t_=schema.Integer(0),
)
class KernelLMS(Regressor):
    """Kernel least mean squares, an online regressor.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="rbf"
    eta : float, default=0.5
        Step size; below 2 / k(x, x), visiting a row again reduces its error.
    max_iter : int, default=1
        Number of passes over the rows.
    budget : int, optional
        Maximum number of centres; None makes every row a centre.
    gamma, degree, coef0, kernel_params :
        Parameters of the kernel, as in `KernelRidge`.

    Attributes
    ----------
    centres_ : ndarray of shape (n_centres, n_features)
    beta_ : ndarray of shape (n_centres,)
    n_iter_ : int
    t_ : int
        Number of rows visited.

    References
    ----------
    Liu, Pokharel and Principe (2008), The kernel least-mean-square algorithm.

    Examples
    --------
    >>> import numpy as np
    >>> from summula.kernel_ridge import KernelLMS
    >>> X = np.linspace(0.0, 3.0, 40)[:, None]
    >>> model = KernelLMS(gamma=2.0, max_iter=20).fit(X, np.sin(X[:, 0]))
    >>> model.predict([[1.5]]).round(1)
    array([1.])
    """

    _accepts_sparse: ClassVar[bool] = False
    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        **KERNEL_SETTINGS,
        "eta": (real(0.0, open_low=True),),
        "max_iter": (integer(1),),
        "budget": (none, integer(1)),
    }

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        eta: float = 0.5,
        max_iter: int = 1,
        budget: int | None = None,
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: Any = None,
    ) -> None:
        self.kernel = kernel
        self.eta = eta
        self.max_iter = max_iter
        self.budget = budget
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params

    @with_callbacks
    def fit(self, X: Any, y: Any) -> Any:
        """Fit the model by `max_iter` passes over the rows, in order.

        Parameters
        ----------
        X : {array-like, frame, scan, Dask collection} of shape (n_samples, n_features)
        """
        with self._fitting(X, y) as run:
            self._start(run, y)
            for _ in range(self.max_iter):
                self._visit(run)
        return self

    def partial_fit(self, X: Any, y: Any) -> Any:
        """Update the model by one pass over more rows.

        Parameters
        ----------
        X : {array-like, frame, scan, Dask collection} of shape (n_samples, n_features)
        """
        first = not hasattr(self, "beta_")
        with self._fitting(X, y, reset=first) as run:
            if first:
                self._start(run, y)
            self._numbers = np.full(len(self.beta_), -1)
            self._visit(run)
        return self

    def _start(self, run: Run, y: Any) -> None:
        check_one_target(run, y)
        if self.kernel == "precomputed":
            raise DataError("KernelLMS evaluates its kernel on new rows: pass the kernel, not a precomputed matrix.")
        self.centres_, self.beta_ = np.empty((0, run.source.n_features)), np.empty(0)
        self._numbers = np.empty(0, np.int64)  # row number of each centre in this fit
        self.n_iter_, self.t_ = 0, 0

    def _visit(self, run: Run) -> None:
        """Perform one pass (1), row by row; the kernel between a chunk and the centres is computed at once."""
        kernel = chosen_kernel(self, run.source.n_features)
        assert kernel is not None
        state = _Centres(self.centres_, self.beta_, self._numbers, self.budget)
        for part in run.parts:
            for chunk in part.chunks():
                X, y = chunk.block(np.float64), chunk.target
                with np.errstate(over="ignore", invalid="ignore"):
                    total = X.sum() + y.sum()
                if not np.isfinite(total):
                    run.raise_if_not_finite()
                for a in range(0, len(chunk), 256):
                    state.learn(kernel, X[a : a + 256], y[a : a + 256], chunk.start + a, float(self.eta))
        self.centres_, self.beta_, self._numbers = state.X, state.beta, state.numbers
        if not np.isfinite(self.beta_).all():
            raise DataError(f"The fit with eta={self.eta:g} diverges; choose eta below 2 / k(x, x).")
        self.n_iter_ += 1
        self.t_ += run.source.n_rows

    _transient: ClassVar[tuple[str, ...]] = ("_training", "_numbers")

    def _row_function(self) -> RowFunction:
        kernel = chosen_kernel(self, self.centres_.shape[1])
        assert kernel is not None
        origin = _origin_of(kernel, self.centres_)
        centres = rows_of(self.centres_, origin)
        compute = functools.partial(kernel_values, kernel, centres, self.beta_[:, None], origin, 0.0)
        return functools.partial(_first_column, compute)


def _origin_of(kernel: Any, X: Array) -> Array | None:
    """Return the origin of rows about which a shift-invariant kernel keeps its digits; None if that is 0."""
    return far_columns_of(X) if kernel.translation_invariant else None


class _Centres:
    """The centres with their weights and row numbers."""

    def __init__(self, X: Array, beta: Array, numbers: Array, budget: int | None) -> None:
        self.X, self.beta, self.numbers, self.budget = X, beta, numbers, budget

    def learn(self, kernel: Any, rows: Array, y: Array, start: int, eta: float) -> None:
        """Perform steps (1) for some rows in order."""
        old = len(self.beta)
        known = {int(number): place for place, number in enumerate(self.numbers) if number >= 0}
        X = np.vstack([self.X, rows])
        beta = np.append(self.beta, np.zeros(len(rows)))
        numbers = np.append(self.numbers, start + np.arange(len(rows)))
        origin = _origin_of(kernel, X)
        every = rows_of(X, origin)
        K, size = kernel.evaluate(rows_of(rows, origin), every), np.sqrt(np.maximum(kernel.diagonal(every), 0.0))
        used = int(np.count_nonzero(beta))
        for i in range(len(rows)):
            change = eta * (y[i] - float(K[i] @ beta))
            place = known.get(start + i, old + i)
            place = place if place == old + i or beta[place] else old + i  # the centre may have been replaced
            used += int(not beta[place] and change != 0.0)
            beta[place] += change
            if self.budget is not None and used > self.budget:
                held = np.flatnonzero(beta)
                beta[held[np.argmin(np.abs(beta[held]) * size[held])]] = 0.0
                used -= 1
        kept = np.flatnonzero(beta)
        self.X, self.beta, self.numbers = X[kept], beta[kept], numbers[kept]
