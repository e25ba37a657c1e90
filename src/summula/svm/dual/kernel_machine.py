"""Base class of SVC, SVR and OneClassSVM: the kernel, the fit of one or several duals, and the values of rows.

The dual, its solver and the certificate are in `solver.py`, `kernel_matrix.py` and `certificate.py`. Rows are centred
for shift-invariant kernels, sparse ones in columns far from 0, which keeps squared distances accurate.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from summula.core.data.chunks import Chunk
from summula.core.data.layout.blocks import product
from summula.core.errors import DataError, ParameterError, warn
from summula.core.estimator.parameters import Allowed, boolean, integer, none, one_of, real
from summula.core.estimator.rows import RowFunction, RowwiseEstimator
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.kernels.kernel import Kernel, centre_of, check_range
from summula.kernels.rows import Rows, rows_of
from summula.kernels.standard import Gaussian, Linear, Polynomial, as_kernel
from summula.kernels.values import kernel_values
from summula.svm.dual.certificate import (
    Machine,
    MachineTask,
    SupportCertificate,
    problem_of,
    rows_of_pair,
    tasks_of,
)
from summula.svm.dual.definiteness import warn_if_indefinite
from summula.svm.dual.direct import can_be_direct, can_be_factored, solve_by_factor, solve_directly
from summula.svm.dual.far_columns import far_origin, with_weights
from summula.svm.dual.hard_margin import check_separable
from summula.svm.dual.kernel_matrix import CachedKernel, KernelMatrix, PrecomputedKernel
from summula.svm.dual.machine_fit import MachineFit, first_point, gap_of_point
from summula.svm.dual.solver import DualPoint, DualProblem, Options, Rounds, solve_dual

__all__ = ["KERNEL_PARAMETERS", "KernelMachine"]

Array = NDArray[Any]
Index = NDArray[np.intp]

_WORKING_BYTES = 2**24  # maximum bytes of the kernel matrix of a working set
_WHOLE_BYTES = 2**25  # maximum bytes of a kernel matrix that is a single working set
_SINGLE_TOLERANCE = 1e-4  # tolerance from which many kernel rows are computed in single precision, as in libsvm
_SINGLE_ROWS = 2_048
_SINGLE_EXTENT = 64.0  # maximum gamma |x|^2: above, single precision loses digits of the distances
_PATIENCE = 100_000  # number of SMO steps (at least 100 per variable) after which explicit features are used
_MANY_STEPS = 2_000_000  # the same for kernels that may have as many features as rows
_MOST_STEPS = 10_000_000  # minimum number of steps if that fails, after which the fit ends with a warning
_MOST_STEP_WORK = 10**10  # steps times variables, which allows more steps for fewer than a thousand variables
_MOST_WORK = 3e11  # number of values summed in steps and kernel rows: about ten minutes on two processors
_MOST_WEIGHT = 1e150
_FAR = 1e-3  # variance, relative to the squared mean, below which a difference of sums of squares loses digits
_LEAST_SPREAD = 1e-150  # minimum range of values whose squares do not underflow

_kernel_or_function = Allowed(callable, "a callable")

KERNEL_PARAMETERS: dict[str, tuple[Allowed, ...]] = {
    "kernel": (one_of("linear", "poly", "rbf", "sigmoid", "laplacian", "precomputed"), _kernel_or_function),
    "degree": (integer(0),),
    "gamma": (one_of("scale", "auto"), real(0.0)),
    "coef0": (real(),),
    "tol": (real(0.0, open_low=True),),
    "shrinking": (boolean,),
    "cache_size": (real(0.0, open_low=True),),
    "verbose": (Allowed(lambda value: isinstance(value, bool | int), "a bool or int"),),
    "max_iter": (integer(-1),),
    "fit_intercept": (boolean,),
    "max_time": (none, real(0.0)),
}


def _precomputed_values(support: Index, weights: Array, intercept: Array, chunk: Chunk) -> Array:
    return np.asarray(product(chunk.block()[:, support], weights) + intercept)


def _linear_values(coef: Array, intercept: Array, chunk: Chunk) -> Array:
    return np.asarray(chunk.times(coef) + intercept)


def _agreeing(model: Any, sizes: schema.Sizes) -> str | None:
    given = model.kernel == "precomputed"
    known = [machine.coef for machine in model.certificate_.machines if machine.coef is not None]
    if any(len(coef) != sizes["n_features"] for coef in known):
        return "a machine of the certificate has weights of other columns"
    if given:
        if model.support_.max(initial=-1) >= sizes["n_features"]:
            return "support_ refers to columns that do not exist"
        return None
    if model.support_vectors_.shape != (sizes["n_support"], sizes["n_features"]):
        return f"support_vectors_ has shape {model.support_vectors_.shape}"
    return None


@schema.state(
    _agreeing,
    support_=schema.Array("int32", "n_support", low=0),
    support_vectors_=schema.Array("float", "n_vectors", "n_columns") | schema.Sparse("n_vectors", "n_columns"),
    dual_coef_=schema.Array("float64", "n_coefs", "n_support") | schema.Sparse("n_coefs", "n_support"),
    intercept_=schema.Array("float64", "n_machines"),
    fit_status_=schema.Integer(0, 1),
    shape_fit_=schema.Items(schema.Integer(0), low=2),
    gamma_=schema.Real(0.0),
    certificate_=schema.Object(SupportCertificate),
)
class KernelMachine(RowwiseEstimator):
    """Base class of models f(x) = sum_i beta_i k(x_i, x) + b in terms of some rows x_i, the support vectors.

    Parameters
    ----------
    kernel : {"linear", "poly", "rbf", "sigmoid", "laplacian", "precomputed"}, Kernel or callable, default="rbf"
    degree : int, default=3
    gamma : {"scale", "auto"} or float, default="scale"
    coef0 : float, default=0.0
    shrinking : bool, default=True
    cache_size : float, default=200
        Size of the cache of kernel rows in megabytes.
    max_iter : int, default=-1
    max_time : float, optional
    """

    _streaming_alternative: ClassVar[str | None] = (
        "Nystroem or RBFSampler (summula.kernel_approximation) followed by LinearSVC or LinearSVR, which stream, as in "
        "make_pipeline(Nystroem(), LinearSVC())"
    )

    kernel: Any
    degree: int
    gamma: Any
    coef0: float
    tol: float
    shrinking: bool
    cache_size: float
    max_iter: int
    fit_intercept: bool
    support_: Any
    dual_coef_: Any
    intercept_: Any
    support_vectors_: Any
    gamma_: float

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)
            Training data, or with kernel="precomputed" the kernel matrix of shape (n_samples, n_samples).
        sample_weight : array-like of shape (n_samples,), or name of a column of X, optional
            Weights, which multiply C.
        """
        raise NotImplementedError

    def _task(self, weights: Array | None, y: Array | None) -> MachineTask:
        """Return the dual problem; `weights` are those of the rows."""
        raise NotImplementedError

    def _machine_coefficients(self) -> Array:
        """Return beta of every support vector in every machine, shape (n_support, n_machines)."""
        return _dense(self.dual_coef_).T

    # ------------------------------------------------------------------------------------------------------ the kernel

    def _kernel(self) -> Kernel | None:
        """Return the kernel; None for a precomputed matrix."""
        if isinstance(self.kernel, str) and self.kernel == "precomputed":
            return None
        return as_kernel(self.kernel, gamma=self.gamma_, coef0=self.coef0, degree=self.degree)

    def _find_gamma(self, X: Any, weight: Array) -> float:
        if not isinstance(self.gamma, str):
            return float(self.gamma)
        if self.gamma == "auto" or self.kernel in ("linear", "precomputed"):
            return 1.0 / float(X.shape[1])
        variance = variance_of(X, weight)
        if not np.isfinite(variance):
            return np.inf
        if variance == 0 and 0 < float(X.max() - X.min()) < _LEAST_SPREAD:
            return np.inf
        return 1.0 / (float(X.shape[1]) * variance) if variance > 0 else 1.0

    def _read(self, run: Run) -> tuple[Any, Array | None, Array]:
        """Return X as a block or CSR, targets, and weights; raise an error for values that are not finite."""
        source = run.source
        chunk = source.chunk(0, source.n_rows)
        X = chunk.X.astype(np.float64, copy=False) if chunk.is_sparse else chunk.block(np.float64)
        values: Any = X.data if chunk.is_sparse else X
        y = None if chunk.y is None and chunk.codes is None else chunk.target.astype(np.float64, copy=False)
        with np.errstate(over="ignore", invalid="ignore"):
            total = float(values.sum()) + (0.0 if y is None else float(y.sum()))
        if not np.isfinite(total):
            run.raise_if_not_finite()
        weight = chunk.weights
        if float(weight.max(initial=0.0)) > _MOST_WEIGHT:
            raise DataError(
                f"A sample weight of {weight.max():.3g} times C overflows in squares; divide the weights by their mean."
            )
        if self.kernel == "precomputed" and chunk.is_sparse:
            raise ParameterError("Sparse precomputed kernels are not supported; pass a dense matrix: X.toarray().")
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise DataError(
                f"Precomputed matrix must be a square matrix: X should be a square kernel matrix, X.shape[0] should be "
                f"equal to X.shape[1]; Input is a {X.shape[0]}x{X.shape[1]} matrix."
            )
        return X, y, weight

    def _matrix(self, kernel: Kernel | None, X: Any, rows: Index) -> KernelMatrix:
        """Return the kernel matrix of some rows of X, computed or precomputed."""
        if kernel is None:
            return PrecomputedKernel(np.asarray(X[np.ix_(rows, rows)], np.float64))
        mine = X if len(rows) == len(X) else X.take(rows)
        if isinstance(kernel, Gaussian) and self._single_suffices(kernel, mine):
            mine = rows_of(mine.X, None, np.float32)
        return CachedKernel(kernel, mine, float(self.cache_size) * 2**20)

    def _single_suffices(self, kernel: Gaussian, rows: Rows) -> bool:
        """Return whether to use single-precision kernel values (with double sums): accurate enough, and worthwhile."""
        extent = kernel.rate * float(rows.squares.max(initial=0.0))
        return self.tol >= _SINGLE_TOLERANCE and len(rows) > _SINGLE_ROWS and extent <= _SINGLE_EXTENT

    # --------------------------------------------------------------------------------------------------------- the fit

    def _solve(self, run: Run) -> None:
        """Fit every machine and set the fitted attributes; intermediate fits are offered after every round."""
        X, y, weight = self._read(run)
        with np.errstate(over="ignore", invalid="ignore"):
            self.gamma_ = self._find_gamma(X, weight)
        if not np.isfinite(self.gamma_) or (self.gamma_ == 0.0 and isinstance(self.gamma, str)):
            raise DataError(
                "The dual coefficients or intercepts are not finite: the squares of the values of X overflow or "
                "underflow; scale the columns."
            )
        self.shape_fit_ = (int(X.shape[0]), int(X.shape[1]))
        task = self._task(weight, y)
        kernel = self._kernel()
        pairs = list(tasks_of(task))
        if not all(len(rows_of_pair(task, pair, y, weight)) for pair in pairs):
            raise DataError("Invalid input - all samples have zero or negative weights.")
        indefinite = warn_if_indefinite(kernel, X, hard=not np.isfinite(task.C))
        fits: list[MachineFit] = []
        far = far_origin(kernel, task, X, weight)
        all_rows = None if kernel is None else rows_of(X, centre_of(kernel, X, weight) if far is None else far)
        if kernel is not None and all_rows is not None:
            check_range(kernel, all_rows)
        for place, pair in enumerate(pairs):
            rows = rows_of_pair(task, pair, y, weight)
            problem = problem_of(task, pair, None if y is None else y[rows], weight[rows])
            if not np.isfinite(task.C):
                some = X[rows] if kernel is not None else X[np.ix_(rows, rows)]
                check_separable(kernel, some, -problem.q, rows, intercept=task.intercept)
            K = self._matrix(kernel, X if all_rows is None else all_rows, rows)
            largest = float(np.abs(K.diagonal()).max(initial=0.0))
            if place == len(pairs) - 1:
                all_rows = None  # its memory is needed for the cache

            def fitted(
                point: DualPoint, rows: Index = rows, problem: DualProblem = problem, largest: float = largest
            ) -> MachineFit:
                if far is not None:
                    point = with_weights(point, problem, X[rows], far)
                return MachineFit(point, rows, problem, largest)

            def on_round(
                rounds: Rounds, place: int = place, fitted: Callable[[DualPoint], MachineFit] = fitted
            ) -> bool:
                def name_so_far() -> None:
                    rest = [MachineFit.unsolved(task, later, y, weight) for later in pairs[place + 1 :]]
                    done = [*fits[:place], fitted(rounds.point())]  # (the next machine may have started)
                    self._name([*done, *rest], X, y, task, indefinite)

                run.offer(name_so_far)
                return run.step("round")

            point = self._solved(K, problem, task, kernel, run, on_round, indefinite)
            if point.status == "unbounded":
                raise DataError(
                    "C=inf requires a hard margin, and the classes cannot be separated in the feature space of the "
                    "kernel to double precision; pass a finite C."
                )
            fits.append(fitted(point))
            del K
        self._name(fits, X, y, task, indefinite)
        if task.kind == "numbers" and not np.isfinite(self.certificate_.primal):
            raise DataError(
                "y has values so large that the sum of the losses, times C and the sample weights, overflows; rescale "
                "the target, or divide the weights by their mean."
            )
        self._warn_of_the_end(fits)

    def _solved(
        self,
        K: KernelMatrix,
        problem: DualProblem,
        task: MachineTask,
        kernel: Kernel | None,
        run: Run,
        on_round: Callable[[Rounds], bool],
        indefinite: bool,
    ) -> DualPoint:
        """Solve one machine by sequential minimal optimisation or, if that is slow, in explicit features."""
        options, variables = self._options(K, len(problem.q)), len(problem.q)
        if options.max_steps >= 0:
            return solve_dual(K, problem, options, start=first_point(problem), on_round=on_round)
        mine = K.rows if isinstance(K, CachedKernel) else None
        direct = mine is not None and can_be_direct(task, kernel, mine)
        factored = not direct and not indefinite and can_be_factored(task, K)
        size = min(options.working_set, variables)
        limit = max(_MOST_STEPS, _MOST_STEP_WORK // size, 100 * variables)
        first = max(_PATIENCE, 100 * variables) if direct or isinstance(kernel, Polynomial) else _MANY_STEPS
        first = first if direct or factored else limit
        options = options._replace(patience=first, most_work=_MOST_WORK)
        point = solve_dual(K, problem, options, start=first_point(problem), on_round=on_round)
        if point.status != "slow":
            return point
        step = functools.partial(run.step, "interior-point step")
        if direct and mine is not None:
            try:
                with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # the end is judged
                    return solve_directly(task, mine.X, problem, point, float(self.tol), step)
            except np.linalg.LinAlgError:  # squares overflow
                return point
        if not factored or point.steps < first:
            return point
        found = solve_by_factor(task, K, problem, point, float(self.tol), step)
        if found.converged:
            return found
        last = solve_dual(K, problem, options._replace(patience=limit), start=found.beta, on_round=on_round)
        best = last if last.converged or gap_of_point(problem, last) <= gap_of_point(problem, found) else found
        return replace(best, steps=point.steps + last.steps)

    def _options(self, K: KernelMatrix, variables: int) -> Options:
        itemsize = K.rows.dtype.itemsize if isinstance(K, CachedKernel) else 8
        size = int(np.sqrt(_WORKING_BYTES / itemsize)) // 64 * 64
        if variables**2 * itemsize <= min(_WHOLE_BYTES, float(self.cache_size) * 2**20):
            size = variables  # a single working set, without rounds
        return Options(float(self.tol), int(self.max_iter), size, bool(self.shrinking))

    def _name(self, fits: list[MachineFit], X: Any, y: Array | None, task: MachineTask, indefinite: bool) -> None:
        machines = tuple(fit.machine() for fit in fits)
        sums = np.array([fit.objectives(m.intercept) for fit, m in zip(fits, machines, strict=True)])
        primal, dual = float(sums[:, 0].sum()), float(sums[:, 1].sum())
        self.fit_status_ = int(not all(fit.point.converged for fit in fits))
        self._name_support(machines, X, y, task)
        self._name_steps(np.array([fit.point.steps for fit in fits], np.int32))
        kernel = self._kernel()
        unit = 1e-7 if isinstance(kernel, Linear | Polynomial) or X.shape[0] <= _SINGLE_ROWS else 1e-4
        self.certificate_ = SupportCertificate(
            "stationary" if indefinite else "global",
            primal,
            np.inf if indefinite else max(primal - dual, 0.0) + sum(fit.rounding() for fit in fits),
            task,
            machines,
            kernel,
            getattr(self, "classes_", None),
            unit,
        )

    def _name_steps(self, steps: Array) -> None:
        self.n_iter_: Any = steps

    def _name_support(self, machines: tuple[Machine, ...], X: Any, y: Array | None, task: MachineTask) -> None:
        """Set the support vectors of all machines, and their coefficients."""
        machine = machines[0]
        self.support_ = machine.support.astype(np.int32)
        self._keep_vectors(X)
        self.dual_coef_ = self._like_rows(machine.beta[None, :], X)
        self.intercept_ = np.array([machine.intercept])
        self.n_support_: Any = np.array([len(self.support_)], np.int32)

    def _keep_vectors(self, X: Any) -> None:
        given = self.kernel == "precomputed"
        self.support_vectors_ = (
            np.empty((0, 0)) if given else X[self.support_] + 0.0 if not is_csr(X) else X[self.support_]
        )

    def _like_rows(self, coef: Array, X: Any) -> Any:
        return type(X)(coef) if is_csr(X) else coef

    def _warn_of_the_end(self, fits: list[MachineFit]) -> None:
        ends = {fit.point.status for fit in fits if not fit.point.converged} - {"stopped"}
        if not ends:
            return
        worst = max(fit.point.violation for fit in fits)
        early = (
            f"Solver terminated early (max_iter={self.max_iter}).  Consider pre-processing your data with "
            "StandardScaler or MinMaxScaler"
        )
        steps = f"The solver was stopped after {int(np.sum(self.n_iter_)):,} steps, the limit for fits of this size"
        reason = early if "max_iter" in ends else steps if "slow" in ends else "The solver makes no further progress"
        warn(
            f"{reason}: KKT conditions are violated by {worst:.3g}, and tol={self.tol:g} ({self.certificate_}). Scale "
            "the columns, lower C, or increase max_iter or tol.",
            ConvergenceWarning,
        )

    # ---------------------------------------------------------------------------------------------------------- values

    @property
    def coef_(self) -> Any:
        """Weights of the columns, for a linear kernel."""
        if not isinstance(self.kernel, Linear) and self.kernel != "linear":
            raise AttributeError("coef_ is only available when using a linear kernel")
        coef = self._machine_coefficients().T @ self.support_vectors_
        coef = np.asarray(coef.toarray() if sparse.issparse(coef) else coef)
        for row, machine in zip(coef, self.certificate_.machines, strict=True):
            if machine.coef is not None:
                row[:] = machine.coef
        if not is_csr(self.support_vectors_):
            coef.flags.writeable = False
            return coef
        return type(self.support_vectors_)(coef)

    def _value_function(self) -> RowFunction:
        """Return the function that computes the values of all machines for a chunk."""
        kernel, weights = self._kernel(), self._machine_coefficients()
        if kernel is None:
            return functools.partial(_precomputed_values, self.support_, weights, self.intercept_)
        if isinstance(kernel, Linear):
            return functools.partial(_linear_values, _dense(self.coef_).T, self.intercept_)
        origin = centre_of(kernel, self.support_vectors_) if len(self.support_) else None
        support = rows_of(self.support_vectors_, origin, np.float64)
        return functools.partial(kernel_values, kernel, support, weights, origin, self.intercept_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        given = isinstance(self.kernel, str) and self.kernel == "precomputed"
        tags.input_tags.pairwise = given
        tags.input_tags.sparse = not given
        return tags


def variance_of(X: Any, weight: Array) -> float:
    """Return the variance of all values of X, weighted by row."""
    whole = float(weight.sum() * X.shape[1])
    if not whole:
        return 0.0
    if is_csr(X):
        each = np.repeat(weight, np.diff(X.indptr))
        mean = float(each @ X.data) / whole
        variance = float(float(each @ X.data**2) / whole - mean**2)
        if variance > _FAR * mean**2:
            return variance
        about = float(each @ (X.data - mean) ** 2) + (whole - float(each.sum())) * mean**2  # that lost its digits
        return about / whole
    if (weight == 1.0).all():
        return float(X.var())
    mean = float(weight @ X.sum(axis=1)) / whole
    return float(weight @ ((X - mean) ** 2).sum(axis=1) / whole)


def is_csr(X: Any) -> bool:
    return hasattr(X, "indptr")


def _dense(values: Any) -> Array:
    return np.asarray(values.toarray() if sparse.issparse(values) else values)
