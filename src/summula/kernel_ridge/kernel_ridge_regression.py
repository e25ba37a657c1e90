"""Ridge regression in the feature space of a kernel.

    minimise  sum_i w_i (y_i - theta'phi(x_i))^2 + alpha ||theta||^2                                             (1)

is solved by theta = sum_i c_i phi(x_i) with, for weights of 1,

    (K + alpha I) c = y,       and in general   (S K S + alpha I) S^-1 c = S y,   S = diag(sqrt(w))               (2)

The matrix is positive definite. It is factored in single precision (half the time and memory of double), and conjugate
gradients in double precision, preconditioned by this factor, refine the solution to rounding; if single precision is
not sufficient (condition numbers above about 1e6), it is factored in double precision. The objective is convex, and the
residual r of (2) bounds its gap: J - min J <= r' (S K S + alpha I)^-1 r <= ||r||^2 / alpha.

A linear kernel with few columns needs no n x n matrix: with Z = S X, S K S = Z Z' and

    (Z Z' + alpha I)^-1 b = (b - Z (Z'Z + alpha I)^-1 Z'b) / alpha                                               (3)

followed by one step of iterative refinement, which compensates for cancellation.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg
from sklearn.callback import with_callbacks

from summula.core.data.chunks import Chunk
from summula.core.data.layout.blocks import aligned, product
from summula.core.docstrings import inherit_docs
from summula.core.engine.threads import solving
from summula.core.errors import DataError
from summula.core.estimator.certificates import check_width
from summula.core.estimator.input.argument_values import numbers_in
from summula.core.estimator.input.validation import as_source
from summula.core.estimator.parameters import Allowed, array_like, real
from summula.core.estimator.regressor import Regressor
from summula.core.estimator.rows import RowFunction
from summula.core.estimator.run import Run, Unnamed
from summula.core.model_files import schema
from summula.core.numerics.certificate import Certificate, Verification
from summula.kernels.kernel import Kernel, centre_of, check_range, gram
from summula.kernels.rows import rows_of
from summula.kernels.settings import KERNEL_SETTINGS, chosen_kernel
from summula.kernels.standard import Linear
from summula.kernels.values import kernel_values
from summula.optimize.solvers.newton_method import Factor

__all__ = ["KernelRidge"]

Array = NDArray[Any]

_SINGLE = 1_024  # number of rows from which single precision is tried
_CORRECTIONS = 60
_HEAVY = 1e8  # weight above which rows are scaled
_NARROW = 4  # rows per column from which a linear kernel is solved by (3)
_REFINEMENTS = 3
_CLOSE = 1e-12  # residual of (3), relative to the right-hand side


class LinearGram(NamedTuple):
    """The implicit matrix X X' of a linear kernel."""

    X: Any

    def __matmul__(self, coef: Array) -> Array:
        return np.asarray(product(self.X, product(self.X.T, coef)))


def _given_values(coef: Array, chunk: Chunk) -> Array:
    return np.asarray(product(chunk.block(np.float64), coef))


def _one_target(compute: RowFunction, chunk: Chunk) -> Array:
    return compute(chunk)[:, 0]


def solve_positive(A: Array, B: Array) -> Array:
    """Return A^-1 B for a positive definite matrix, by a refined factorisation as for (2); A is not modified."""
    if len(A) < _SINGLE:
        return np.asarray(linalg.solve(A, B, assume_a="pos"))
    try:
        factor = linalg.cho_factor(A.astype(np.float32), lower=True, overwrite_a=True, check_finite=False)
    except linalg.LinAlgError:
        return np.asarray(linalg.solve(A, B, assume_a="pos"))
    X = np.column_stack([_corrected(A, b, factor) for b in B.T])
    if not np.isfinite(X).all():
        return np.asarray(linalg.solve(A, B, assume_a="pos"))
    return X


def _corrected(A: Array, b: Array, factor: Any) -> Array:
    """Solve by conjugate gradients preconditioned by a single-precision factor; NaN if they do not converge."""

    def precondition(r: Array) -> Array:
        size = float(np.abs(r).max(initial=0.0)) or 1.0
        return (
            np.asarray(linalg.cho_solve(factor, (r / size).astype(np.float32), check_finite=False), np.float64) * size
        )

    x, goal = np.zeros_like(b), 1e-14 * float(np.linalg.norm(b))
    r = b.copy()
    z = precondition(r)
    p, rz = z, float(r @ z)
    for _ in range(_CORRECTIONS):
        if float(np.linalg.norm(r)) <= goal:
            return x
        Ap = A @ p
        step = rz / float(p @ Ap)
        x, r = x + step * p, r - step * Ap
        z = precondition(r)
        rz, before = float(r @ z), rz
        p = z + rz / before * p
    left = float(np.linalg.norm(b - A @ x))
    return x if left <= 1e-10 * float(np.linalg.norm(b)) else np.full_like(b, np.nan)


@schema.saved(
    alpha=schema.Array("float64", "n_targets", low=0.0),
    coef=schema.Array("float64", "n_rows", "n_targets"),
    kernel=schema.Object(Kernel) | None,
)
@dataclass(frozen=True)
class KernelRidgeCertificate(Certificate):
    """Certificate: the objective (1), and the bound on its gap by the residual of (2).

    It is "stationary", with an infinite gap, if K + alpha I is not positive definite: (1) may then have no minimum.
    """

    alpha: Array
    coef: Array
    kernel: Kernel | None

    def verify(self, X: Any, y: Any = None, sample_weight: Any = None) -> Verification:
        """Recompute objective and gap from the data, without the solver."""
        source = as_source(Unnamed(), X, y, sample_weight, needs_y=True)
        try:
            check_width(source, len(self.coef) if self.kernel is None else None)
            chunk = source.chunk(0, source.n_rows)
        finally:
            source.release()
        assert chunk.y is not None
        rows = chunk.X if chunk.is_sparse else chunk.block(np.float64)
        if rows.shape[0] != len(self.coef):
            return Verification(np.nan, np.nan, False)
        weight = chunk.weights
        if self.kernel is None:
            K = np.asarray(rows)
        else:
            K = gram(self.kernel, rows_of(rows, centre_of(self.kernel, rows, weight)))
        primal, gap = objective(K, chunk.y.astype(np.float64), weight, self.alpha, self.coef)
        if self.kind == "stationary":  # the objective is not convex, so the residual gives no bound
            gap = np.inf
        slack = 1e-8 * max(abs(self.primal), 1e-300)
        return Verification(primal, gap, bool(abs(primal - self.primal) <= slack and gap <= self.gap + slack))


def objective(K: Any, Y: Array, weight: Array, alpha: Array, coef: Array) -> tuple[float, float]:
    """Return the objective (1), summed over the targets, and the bound on its gap (infinite without a penalty)."""
    fitted = K @ coef
    residual = Y - fitted
    square = np.einsum("ij,ij->j", coef, fitted)
    with np.errstate(over="ignore", invalid="ignore"):  # `fit` rejects an objective that is not finite
        primal = float((weight @ residual**2 + alpha * square).sum())
    root = np.sqrt(weight)[:, None]
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        left = root * residual - alpha * np.where(root > 0, coef / root, 0.0)
        bound = np.einsum("ij,ij->j", left, left) / alpha
    return primal, float(np.where(alpha > 0, bound, np.inf).sum())


@inherit_docs()
@schema.saved(
    schema.nonempty("n_rows", "n_targets"),
    dual_coef_=schema.Array("float64", "n_rows") | schema.Array("float64", "n_rows", "n_targets"),
    X_fit_=schema.Array("float", "n_rows", "n_features") | schema.Sparse("n_rows", "n_features"),
    certificate_=schema.Object(KernelRidgeCertificate),
)
class KernelRidge(Regressor):
    """Kernel ridge regression.

    Parameters
    ----------
    alpha : float or array-like of shape (n_targets,), default=1.0
        Strength of the penalty.
    kernel : str, Kernel or callable, default="linear"
        A kernel name of scikit-learn, a kernel of `summula.kernels`, "precomputed", or a function of two rows.
    gamma : float, optional
        1 / n_features by default.
    degree : float, default=3
    coef0 : float, default=1
    kernel_params : dict, optional
        Additional arguments of a kernel function.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_samples,) or (n_samples, n_targets)
        c of equation (2).
    X_fit_ : ndarray or CSR matrix of shape (n_samples, n_features)
    certificate_ : KernelRidgeCertificate

    Notes
    -----
    Solves n x n equations in memory. For larger data use `Nystroem` followed by `Ridge`, which stream.

    Examples
    --------
    >>> from summula.kernel_ridge import KernelRidge
    >>> from summula.kernels import Gaussian
    >>> model = KernelRidge(alpha=0.5, kernel=Gaussian(1.0)).fit([[0.0], [2.0]], [1.0, 3.0])
    >>> model.dual_coef_.round(4)
    array([0.4902, 1.9558])
    """

    _streaming_alternative: ClassVar[str | None] = (
        "Nystroem or RBFSampler (summula.kernel_approximation) followed by Ridge, which stream"
    )
    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {**KERNEL_SETTINGS, "alpha": (real(0.0), array_like)}

    def __init__(
        self,
        alpha: float | ArrayLike = 1,
        *,
        kernel: str | Kernel | Callable[..., float] = "linear",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: Mapping[str, Any] | None = None,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)
            Training data, or with kernel="precomputed" the kernel matrix of shape (n_samples, n_samples).
        y : array-like of shape (n_samples,) or (n_samples, n_targets), or names of columns of X
        sample_weight : array-like of shape (n_samples,), float, or name of a column of X, optional
        """
        with self._fitting(X, y, sample_weight) as run:
            rows, Y, weight = _read(run)
            if hasattr(rows, "indptr"):
                rows = rows.sorted_indices()  # a copy: it becomes part of the model
            kernel = chosen_kernel(self, rows.shape[1])
            if kernel is None and rows.shape[0] != rows.shape[1]:
                raise DataError(f"Precomputed kernel matrix must be square; X has shape {rows.shape}.")
            alpha = self._alphas(Y.shape[1])
            K: Any
            coef, definite = None, True
            if isinstance(kernel, Linear) and _NARROW * rows.shape[1] <= rows.shape[0]:
                with solving(rows.shape[0]):
                    K, coef = LinearGram(rows), _linear_coefficients(rows, Y, weight, alpha)
            if coef is None:
                if kernel is None:
                    K = np.asarray(rows, np.float64)
                else:
                    about = rows_of(rows, centre_of(kernel, rows, weight))
                    check_range(kernel, about)
                    K = gram(kernel, about)
                if not np.isfinite(K.sum()):
                    run.raise_if_not_finite()
                    raise DataError("The kernel has values that are not finite on these rows; scale the columns.")
                with solving(rows.shape[0]):
                    coef, definite = _coefficients(K, Y, weight, alpha, is_given=kernel is None)
            if not np.isfinite(coef).all():
                run.raise_if_not_finite()
            self.dual_coef_ = coef[:, 0] if run.source.one_target else coef
            self.X_fit_ = rows if hasattr(rows, "indptr") else np.array(rows)
            with solving(rows.shape[0]):
                primal, gap = objective(K, Y, weight, alpha, coef)
            if not np.isfinite(primal):
                raise DataError(
                    "y has values so large that their squares, times the sample weights, overflow; rescale the target "
                    "first, or divide the weights by their mean."
                )
            kind = "exact" if definite else "stationary"
            self.certificate_ = KernelRidgeCertificate(kind, primal, gap if definite else np.inf, alpha, coef, kernel)
        return self

    def _alphas(self, targets: int) -> Array:
        alpha = numbers_in("alpha", self.alpha).reshape(-1)
        if len(alpha) not in (1, targets) or (alpha < 0).any():
            raise DataError(
                f"alpha must be one non-negative penalty, or one per target ({targets}); got {self.alpha!r}."
            )
        return np.array(np.broadcast_to(alpha, (targets,)))

    def _row_function(self) -> RowFunction:
        coef = self.dual_coef_.reshape(len(self.dual_coef_), -1)
        kernel = chosen_kernel(self, self.X_fit_.shape[1])
        if kernel is None:
            compute: RowFunction = functools.partial(_given_values, coef)
        else:
            origin = centre_of(kernel, self.X_fit_, np.abs(coef).max(axis=1))
            compute = functools.partial(kernel_values, kernel, rows_of(self.X_fit_, origin), coef, origin, 0.0)
        return functools.partial(_one_target, compute) if self.dual_coef_.ndim == 1 else compute

    def _n_outputs(self) -> int:
        return 1 if self.dual_coef_.ndim == 1 else int(self.dual_coef_.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        tags.target_tags.multi_output = True
        return tags


def _read(run: Run) -> tuple[Any, Array, Array]:
    source = run.source
    chunk = source.chunk(0, source.n_rows)
    assert chunk.y is not None
    rows = chunk.X if chunk.is_sparse else chunk.block(np.float64)
    weight = chunk.weights
    Y = chunk.y.astype(np.float64)
    values: Any = rows.data if chunk.is_sparse else rows  # (a sum of the matrix would sort it)
    with np.errstate(over="ignore", invalid="ignore"):
        total = Y.sum() + values.sum()
    if not np.isfinite(total):
        run.raise_if_not_finite()
    return rows, Y, weight


def _linear_coefficients(X: Any, Y: Array, weight: Array, alpha: Array) -> Array | None:
    """Return c of (2) by (3); None if it is not accurate enough (for a penalty of 0, or a tiny one)."""
    if not (alpha > 0).all():
        return None
    root = np.sqrt(weight)[:, None]
    if hasattr(X, "indptr"):
        Z: Any = X.multiply(root).tocsr()
        inner = np.asarray((Z.T @ Z).toarray())
    else:
        Z = X if (weight == 1.0).all() else aligned(X * root)
        inner = np.asarray(Z.T @ Z)
    if not np.isfinite(inner).all():
        return None
    coef = np.zeros_like(Y)
    for value in np.unique(alpha):
        targets = np.flatnonzero(alpha == value)
        b = root * Y[:, targets]
        factor = Factor.of(inner + value * np.eye(len(inner)))
        u, left = np.zeros_like(b), b
        for _ in range(_REFINEMENTS):
            with np.errstate(over="ignore", invalid="ignore"):  # a diverging refinement is rejected below
                u = u + (left - product(Z, factor.solve(product(Z.T, left)))) / value
                left = b - product(Z, product(Z.T, u)) - value * u
        if not float(np.linalg.norm(left)) <= _CLOSE * float(np.linalg.norm(b)) < np.inf:
            return None
        coef[:, targets] = root * u
    return coef


def _coefficients(K: Array, Y: Array, weight: Array, alpha: Array, *, is_given: bool) -> tuple[Array, bool]:
    """Return c of (2) for every target (c = 0 for rows without weight), and whether the matrix was definite.

    A matrix that was not passed by the user is overwritten temporarily, which avoids a copy.
    """
    kept, root = np.flatnonzero(weight > 0), np.sqrt(weight[weight > 0])
    ridge = np.ones(len(root))
    if weight.max(initial=0.0) > _HEAVY:  # divide heavy rows by their root: the penalty loses its digits next to them
        root, ridge = np.minimum(root, 1.0), np.minimum(1.0 / root**2, 1.0)
    whole = len(kept) == len(K)
    A = K if whole else K[np.ix_(kept, kept)]
    if (root != 1.0).any():
        A = root[:, None] * A * root
    elif whole and is_given:
        A = A.copy()
    right, diagonal = root[:, None] * Y[kept], A.diagonal().copy()
    coef, definite = np.zeros_like(Y), True
    for value in np.unique(alpha):
        targets = np.flatnonzero(alpha == value)
        np.fill_diagonal(A, diagonal + value * ridge)
        try:
            coef[np.ix_(kept, targets)] = root[:, None] * solve_positive(A, right[:, targets])
        except linalg.LinAlgError:
            coef[np.ix_(kept, targets)] = root[:, None] * linalg.lstsq(A, right[:, targets])[0]
            definite = False
    np.fill_diagonal(A, diagonal)
    return coef, definite
