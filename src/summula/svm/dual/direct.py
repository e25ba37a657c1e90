"""Primal solution in explicit features, for problems on which sequential minimal optimisation is too slow.

Large C and columns of very different scales make the dual so ill-conditioned that sequential minimal optimisation
converges slowly, and w = sum_i beta_i x_i, a small difference of large sums, is inaccurate in double precision. The
interior-point method of `linear/interior_point.py` minimises the primal

    1/2 ||w||^2 + sum_i C_i l(y_i, w'x_i + b)                                                                   (1)

in about 10 to 25 steps, independent of the scales. Its multipliers are beta; rescaled to satisfy the sum constraint
exactly they are dual feasible and give the usual bound on the objective of (w, b). The machine stores w as well as
beta.

Other kernels have features, too. A pivoted Cholesky factor K = L L' has one row of features per row of the data, and
rank(K) columns: few for polynomials, and at most the number of rows. (1) with the rows of L is the same problem;
objective and gap of its beta are those of K itself.

Fine and Scheinberg (2001), Efficient SVM training using low-rank kernel representations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.data.layout.blocks import aligned
from summula.core.data.layout.stored_rows import SparseRows
from summula.core.engine.threads import one_blas_thread
from summula.kernels.kernel import Kernel
from summula.kernels.standard import Linear
from summula.svm.dual import solver
from summula.svm.dual.certificate import MachineTask
from summula.svm.dual.kernel_matrix import CachedKernel, KernelMatrix
from summula.svm.dual.solver import DualPoint, DualProblem, LinearWeights
from summula.svm.linear.coordinates import CoordinateFit
from summula.svm.linear.interior_point import MOST_COLUMNS, by_interior_point
from summula.svm.linear.problem import LinearProblem, losses

__all__ = ["can_be_direct", "can_be_factored", "solve_by_factor", "solve_directly"]

Array = NDArray[Any]

_MOST_STEPS = 100
_GAP = 1e-6  # relative to the objective: convergence
_ACCURATE = 1e-10  # the same if weights are computed from beta
_MOST_RANK = 1_024
_MOST_VALUES = 2**21  # of a factor
_RESIDUAL = 1e-15  # relative to the largest diagonal: a smaller remainder of a factored matrix is rounding


def can_be_direct(task: MachineTask, kernel: Kernel | None, rows: Any) -> bool:
    """Return whether (1) applies: SVC or SVR with a linear kernel, few columns and a finite C."""
    possible = isinstance(kernel, Linear) and task.kind != "one class" and bool(np.isfinite(task.C))
    return possible and int(rows.X.shape[1]) <= MOST_COLUMNS


def can_be_factored(task: MachineTask, K: KernelMatrix) -> bool:
    """Return whether to try a factor of K: SVC or SVR, a finite C, not too many rows, double precision."""
    possible = task.kind != "one class" and bool(np.isfinite(task.C)) and 2 * K.n <= _MOST_VALUES
    return possible and (not isinstance(K, CachedKernel) or K.rows.dtype == np.float64)


def factor_of(K: KernelMatrix) -> Array | None:
    """Return L with K = L L' by pivoted Cholesky factorisation; None if the rank is too large."""
    rest, most = K.diagonal(), min(_MOST_RANK, _MOST_VALUES // K.n, K.n)
    least = _RESIDUAL * float(rest.max(initial=0.0))
    L = np.zeros((K.n, most))
    for k in range(most):
        pivot = int(rest.argmax())
        if rest[pivot] <= least:
            return L[:, :k]
        root = np.sqrt(rest[pivot])
        L[:, k] = (K.column(pivot) - L[:, :k] @ L[pivot, :k]) / root
        L[pivot, k] = root
        rest = rest - L[:, k] ** 2
        rest[pivot] = 0.0
    return L if rest.max(initial=0.0) <= least or most == K.n else None


def solve_by_factor(
    task: MachineTask,
    K: KernelMatrix,
    problem: DualProblem,
    so_far: DualPoint,
    tolerance: float,
    on_step: Callable[[], bool],
) -> DualPoint:
    """Solve (1) with features from a factor of K; return the better of its point and the current one."""
    with one_blas_thread():  # the bits of products may depend on the number of threads
        L = factor_of(K)
    if L is None:
        return so_far
    # (Weights are computed from beta here, so beta itself has to be accurate, not only its objective.)
    _, b, beta = _interior_point(task, aligned(L), problem, min(1e-6 * tolerance, _ACCURATE), on_step)
    whole = np.bincount(problem.row, beta, K.n)
    used = np.flatnonzero(whole)
    f = K.products(used, whole[used], np.arange(K.n))[problem.row] + problem.q
    primal, dual = solver.objectives(problem, beta, f, b)
    before = solver.objectives(problem, so_far.beta, so_far.f, solver.intercept_of(problem, so_far.beta, so_far.f))
    if not primal - dual <= before[0] - before[1]:
        return so_far
    converged = primal - dual <= _GAP * abs(primal)
    status = "converged" if converged else "slow"
    return DualPoint(beta, f, solver.violation_of(problem, beta, f), so_far.steps, converged, status, intercept=b)


def solve_directly(
    task: MachineTask,
    X: Any,
    problem: DualProblem,
    so_far: DualPoint,
    tolerance: float,
    on_step: Callable[[], bool],
) -> DualPoint:
    """Solve (1) on these rows; return its point or the current one, whichever has the smaller gap."""
    coef, b, beta = _interior_point(task, X, problem, min(1e-3 * tolerance, _GAP), on_step)
    scores = np.asarray(X @ coef)
    primal, dual = solver.linear_objectives(problem, X, beta, coef, b)
    before = solver.objectives(problem, so_far.beta, so_far.f, solver.intercept_of(problem, so_far.beta, so_far.f))
    if not primal - dual <= before[0] - before[1]:
        return so_far
    converged = primal - dual <= _GAP * abs(primal)
    f = scores[problem.row] + problem.q
    return DualPoint(
        beta,
        f,
        solver.violation_of(problem, beta, f),
        so_far.steps,
        converged,
        "converged" if converged else "stalled",
        LinearWeights(coef.copy(), b, primal, dual),
    )


def _interior_point(
    task: MachineTask, X: Any, problem: DualProblem, tolerance: float, on_step: Callable[[], bool]
) -> tuple[Array, float, Array]:
    """Return the weights and intercept that minimise (1), and a dual feasible point."""
    n, is_class = X.shape[0], task.kind == "classes"
    chunk = Chunk(SparseRows(X, 0, n) if hasattr(X, "indptr") else X, None, None, 0, n, np.dtype(np.float64))
    # (SVR has two variables per row, with q = epsilon - y and q = -epsilon - y.)
    y = -problem.q if is_class else -0.5 * (problem.q[:n] + problem.q[n:])
    c = np.maximum(problem.high[:n], -problem.low[:n])
    loss, positive = ("hinge", 1) if is_class else ("epsilon_insensitive", -1)
    linear = LinearProblem(loss, "l2", 1.0, float(task.epsilon), float(problem.intercept), False, positive)

    def after_step(_: Callable[[], CoordinateFit]) -> bool:
        return on_step()

    found = by_interior_point(chunk, y, c, linear, tolerance=tolerance, max_steps=_MOST_STEPS, on_step=after_step)
    coef, b = (found.v[:-1], float(found.v[-1])) if problem.intercept else (found.v, 0.0)
    slope = losses(linear, y, np.asarray(X @ coef) + b).slope
    return coef, b, _feasible(problem, found.dual.applied(-c * slope), is_class)


def _feasible(problem: DualProblem, beta: Array, is_class: bool) -> Array:
    """Return beta clipped to its bounds, with sum 0: the heavier sign is scaled down. SVR has two variables per row."""
    if not is_class:
        beta = np.append(np.maximum(beta, 0.0), np.minimum(beta, 0.0))
    beta = np.clip(beta, problem.low, problem.high)
    if problem.intercept:
        up, down = float(beta[beta > 0].sum()), -float(beta[beta < 0].sum())
        if up > down:
            beta = np.where(beta > 0, beta * (down / up), beta)
        elif down > up:
            beta = np.where(beta < 0, beta * (up / down), beta)
    return beta
