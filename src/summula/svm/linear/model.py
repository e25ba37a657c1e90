"""Base class of LinearSVC and LinearSVR: the choice of the solver, and the fitted attributes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from summula.core.data.chunks import Chunk
from summula.core.errors import DataError, ParameterError, warn
from summula.core.estimator.estimator import Estimator
from summula.core.estimator.parameters import Allowed, boolean, integer, none, one_of, random_state, real
from summula.core.estimator.run import Run
from summula.svm.linear.certificate import LinearCertificate, judge
from summula.svm.linear.coordinates import CoordinateFit, Schedule, by_columns, by_pairs, by_rows
from summula.svm.linear.dual import DualRows
from summula.svm.linear.interior_point import MOST_COLUMNS, by_interior_point
from summula.svm.linear.newton import WIDE, minimise
from summula.svm.linear.problem import LinearProblem, targets_and_weights
from summula.svm.linear.proximal_newton import minimise_sparse
from summula.svm.linear.row_products import rows_in_memory

__all__ = ["SHARED_PARAMETERS", "LinearMachine"]

Array = NDArray[Any]

SHARED_PARAMETERS: dict[str, tuple[Allowed, ...]] = {
    "dual": (boolean, one_of("auto")),
    "tol": (real(0.0, open_low=True),),
    "C": (real(0.0, open_low=True),),
    "fit_intercept": (boolean,),
    "intercept_scaling": (real(0.0, open_low=True),),
    "verbose": (integer(0), boolean),
    "random_state": (random_state,),
    "max_iter": (integer(0),),
    "penalize_intercept": (boolean,),
    "max_time": (none, real(0.0)),
}

_OVERFLOW = (
    "Products of rows, targets and weights overflow; scale the columns and y, and divide the weights by their mean."
)


class _Fitted(NamedTuple):
    """One score: v, objective, gap, steps, whether the tolerance was reached, and rows on the kink of the loss.

    `is_confirmed` is whether objective and gap are already those of the certificate.
    """

    v: Array
    primal: float
    gap: float
    steps: int
    converged: bool
    dual: DualRows = DualRows.none()
    is_confirmed: bool = False


class LinearMachine(Estimator):
    """Base class of linear models w'x + b that minimise the problem of `problem.py`.

    Parameters
    ----------
    dual : bool or "auto", default="auto"
        For compatibility with scikit-learn; the solver is chosen by the shape of the data.
    tol : float, default=1e-4
        Tolerance for the gap, relative to the objective.
    C : float, default=1.0
    fit_intercept : bool, default=True
    verbose : int, default=0
    penalize_intercept : bool, default=True
        Whether to penalise the intercept, as in scikit-learn; False is the objective of the textbooks.
    max_time : float, optional

    Attributes
    ----------
    n_iter_ : int
    certificate_ : LinearCertificate
    """

    loss: str
    tol: float
    C: float
    fit_intercept: bool
    intercept_scaling: float
    penalize_intercept: bool
    random_state: Any
    max_iter: int
    certificate_: LinearCertificate

    def _column(self) -> float:
        """Return the value of the constant column of the intercept; 0 without one."""
        if not self.fit_intercept:
            return 0.0
        return float(self.intercept_scaling) if self.penalize_intercept else 1.0

    def _check_finite(self) -> None:
        if not np.isfinite(self.C):
            raise ParameterError(
                f"{type(self).__name__} needs a finite C; SVC(kernel='linear', C=inf) has a hard margin."
            )

    def _solve(self, run: Run, problems: list[LinearProblem]) -> None:
        """Fit the scores one by one; intermediate fits are offered."""
        if len(problems) > 1:
            run.keep_rows()
        p = run.source.n_features + (self._column() != 0.0)
        fits: list[_Fitted] = []
        solver = self._solver(run, problems[0])
        for k, problem in enumerate(problems):

            def offer(fit: _Fitted, k: int = k) -> None:
                rest = [_unfitted(run, one, p) for one in problems[k + 1 :]]
                self._name([*fits[:k], fit, *rest], problems, run)

            try:
                with np.errstate(invalid="ignore"):
                    fits.append(solver(run, problem, offer))
            except np.linalg.LinAlgError:
                raise DataError(_OVERFLOW) from None
        if self.max_iter and not all(np.isfinite(fit.primal) for fit in fits):
            raise DataError(_OVERFLOW)
        self._name(fits, problems, run)
        if not all(fit.is_confirmed for fit in fits):
            self.certificate_ = self.certificate_.rounded_outward(run.source)
        if not all(fit.converged for fit in fits):
            warn(
                f"{type(self).__name__} failed to converge, increase the number of iterations: after {self.n_iter_} "
                f"(max_iter={self.max_iter}) the gap is {self.certificate_.gap:.3g} of {self.certificate_.primal:.6g}, "
                f"and tol={self.tol:g} of it is required.",
                ConvergenceWarning,
            )

    def _solver(self, run: Run, problem: LinearProblem) -> Callable[..., _Fitted]:
        p = run.source.n_features + (problem.column != 0.0)
        if problem.is_squared and p <= WIDE:
            return self._by_newton
        if run.source.streams:
            why = f"loss={problem.loss!r}" if not problem.is_squared else f"more than {WIDE} columns"
            raise DataError(
                f"{type(self).__name__} needs its rows in memory with {why}, and X is in files or a Dask collection: "
                "use a squared loss and fewer columns, or SGDClassifier and SGDRegressor, which stream."
            )
        if not problem.is_squared and p <= min(MOST_COLUMNS, run.source.n_rows):
            return self._by_interior_point
        return self._by_coordinates

    def _by_newton(self, run: Run, problem: LinearProblem, offer: Callable[[_Fitted], None]) -> _Fitted:
        if not run.source.weighted and not self.max_iter:
            return _Fitted(np.zeros(run.source.n_features + (problem.column != 0.0)), np.inf, np.inf, 0, False)
        run.keep_rows()

        def on_step(x: Array) -> None:
            run.offer(lambda: offer(_Fitted(x, *judge(run.leading(run.source.n_rows), problem, x), 0, False)))

        most = min(max(self.max_iter, 1), 200)
        if problem.penalty == "l1":
            found = minimise_sparse(run, problem, self.tol, most, on_step)
            return _Fitted(found.x, found.value, found.gap, found.n_steps, found.converged)
        found = minimise(run, problem, 1e-4 * self.tol, most, on_step)
        primal, gap = judge(run, problem, found.x)
        while gap > self.tol * primal and found.converged and found.gap > 0.0 and found.n_steps:
            # With columns of large norm the decrement is less reliable than the gap: continue from there.
            found = minimise(run, problem, 1e-4 * found.gap / primal, most, on_step, start=found.x)
            before, (primal, gap) = gap, judge(run, problem, found.x)
            if gap > before / 2:
                break
        return _Fitted(found.x, primal, gap, found.n_steps, found.converged or gap <= self.tol * primal)

    def _by_interior_point(self, run: Run, problem: LinearProblem, offer: Callable[[_Fitted], None]) -> _Fitted:
        chunk, y, weight = _read(run, problem)

        def on_step(judged: Callable[[], CoordinateFit]) -> bool:
            run.offer(lambda: offer(_with_dual(judged())))
            return run.step("interior-point step")

        most = min(max(self.max_iter, 1), 200)
        fit = by_interior_point(chunk, y, weight, problem, tolerance=self.tol, max_steps=most, on_step=on_step)
        return _with_dual(fit)._replace(is_confirmed=bool((weight > 0).all()))

    def _by_coordinates(self, run: Run, problem: LinearProblem, offer: Callable[[_Fitted], None]) -> _Fitted:
        chunk, y, weight = _read(run, problem)
        Z = rows_in_memory(chunk, problem.column)
        seed = int(check_random_state(_legacy(self.random_state)).randint(2**31))

        def on_step(judged: Callable[[], CoordinateFit]) -> bool:
            run.offer(lambda: offer(_with_dual(judged())))
            return run.step("epoch")

        kinked = problem.is_free and not problem.is_squared
        descend = by_columns if problem.penalty == "l1" else by_pairs if kinked else by_rows
        return _with_dual(descend(Z, y, weight, problem, Schedule(self.tol, max(self.max_iter, 1), seed, on_step)))

    def _name(self, fits: list[_Fitted], problems: list[LinearProblem], run: Run) -> None:
        column, dtype = self._column(), run.source.dtype
        v = np.array([fit.v for fit in fits])
        self.coef_: Any = (v[:, :-1] if column else v).astype(dtype)
        self.intercept_: Any = (column * v[:, -1] if column else np.zeros(len(v))).astype(dtype)
        self.n_iter_ = int(max(fit.steps for fit in fits))
        self.certificate_ = LinearCertificate(
            "global",
            float(sum(fit.primal for fit in fits)),
            float(sum(max(fit.gap, 0.0) for fit in fits)),
            tuple(problems),
            v,
            tuple(fit.dual for fit in fits),
            getattr(self, "classes_", None),
            1e-4 if run.source.dtype == np.float32 else 1e-8,
        )


def _unfitted(run: Run, problem: LinearProblem, columns: int) -> _Fitted:
    """Return the zero score with its objective and gap."""
    v = np.zeros(columns)
    return _Fitted(v, *judge(run.leading(run.source.n_rows), problem, v), 0, False)


def _with_dual(fit: CoordinateFit) -> _Fitted:
    return _Fitted(fit.v, fit.primal, fit.gap, fit.epochs, fit.converged, fit.dual)


def _read(run: Run, problem: LinearProblem) -> tuple[Chunk, Array, Array]:
    """Return all rows, their targets and weights; raise an error for values that are not finite."""
    chunk = run.source.chunk(0, run.source.n_rows)
    y, weight = targets_and_weights(problem, chunk)
    values: Any = chunk.X.data if chunk.is_sparse else chunk.X
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(values.sum(dtype=np.float64)) + float(y.sum())
    if not np.isfinite(total):
        run.raise_if_not_finite()
    return chunk, y, weight


def _legacy(state: Any) -> Any:
    """Return an int seed, or a RandomState seeded from a Generator."""
    return np.random.RandomState(state.integers(2**31)) if isinstance(state, np.random.Generator) else state
