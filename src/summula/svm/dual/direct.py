"""A linear kernel's dual solved through the weights of columns, where steps of pairs would take too long.

Large C and columns of very different scales make the dual so ill-conditioned that sequential minimal optimisation
creeps, and beta, in double precision, no longer tells w = sum_i beta_i x_i: a small difference of large sums. The
interior-point method of `linear/interior_point.py` minimises the primal

    1/2 ||w||^2 + sum_i C_i l(y_i, w'x_i + b)                                                                   (1)

in some 10 to 25 steps, whatever the scales. Its multipliers are beta; scaled so that their sum is exactly right they
are a point of the dual, so that the objective of (w, b) is bounded as always. The machine keeps w beside beta.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk, SparseRows
from summula.kernels.kernel import Kernel
from summula.kernels.standard import Linear
from summula.svm.dual.certificate import MachineTask
from summula.svm.dual.solver import (
    DualPoint,
    DualProblem,
    LinearWeights,
    intercept_of,
    linear_objectives,
    objectives,
    violation_of,
)
from summula.svm.linear.coordinates import CoordinateFit
from summula.svm.linear.interior_point import MOST_COLUMNS, by_interior_point
from summula.svm.linear.problem import LinearProblem, losses

__all__ = ["can_be_direct", "solve_directly"]

Array = NDArray[Any]

_MOST_STEPS = 100
_GAP = 1e-6  # of the objective: convergence


def can_be_direct(task: MachineTask, kernel: Kernel | None, rows: Any) -> bool:
    """Whether (1) applies: a linear kernel of few columns, classes or numbers, a finite C."""
    possible = isinstance(kernel, Linear) and task.kind != "one class" and bool(np.isfinite(task.C))
    return possible and int(rows.X.shape[1]) <= MOST_COLUMNS


def solve_directly(
    task: MachineTask,
    X: Any,
    problem: DualProblem,
    so_far: DualPoint,
    tolerance: float,
    on_step: Callable[[], bool],
) -> DualPoint:
    """Solve the problem of these rows through (1); returns the point of smaller gap, this one or the one so far."""
    n, is_class = X.shape[0], task.kind == "classes"
    chunk = Chunk(SparseRows(X, 0, n) if hasattr(X, "indptr") else X, None, None, 0, n, np.dtype(np.float64))
    # (SVR has two variables per row, with q = epsilon - y and q = -epsilon - y.)
    y = -problem.q if is_class else -0.5 * (problem.q[:n] + problem.q[n:])
    c = np.maximum(problem.high[:n], -problem.low[:n])
    loss, positive = ("hinge", 1) if is_class else ("epsilon_insensitive", -1)
    linear = LinearProblem(loss, "l2", 1.0, float(task.epsilon), float(problem.intercept), False, positive)

    def told(_: Callable[[], CoordinateFit]) -> bool:
        return on_step()

    found = by_interior_point(
        chunk, y, c, linear, tolerance=min(1e-3 * tolerance, _GAP), max_steps=_MOST_STEPS, on_step=told
    )
    coef, b = (found.v[:-1], float(found.v[-1])) if problem.intercept else (found.v, 0.0)
    scores = np.asarray(X @ coef)
    beta = _feasible(problem, found.dual.applied(-c * losses(linear, y, scores + b).slope), is_class)
    primal, dual = linear_objectives(problem, X, beta, coef, b)
    before = objectives(problem, so_far.beta, so_far.f, intercept_of(problem, so_far.beta, so_far.f))
    if not primal - dual <= before[0] - before[1]:
        return so_far
    converged = primal - dual <= _GAP * abs(primal)
    f = scores[problem.row] + problem.q
    return DualPoint(
        beta,
        f,
        violation_of(problem, beta, f),
        so_far.steps,
        converged,
        "converged" if converged else "stalled",
        LinearWeights(coef.copy(), b, primal, dual),
    )


def _feasible(problem: DualProblem, beta: Array, is_class: bool) -> Array:
    """Beta within its bounds and with the sum 0: the heavier sign is scaled down. Two variables per row for numbers."""
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
