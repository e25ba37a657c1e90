"""Coordinate descent for rows in memory: the dual over rows (L2), the primal over columns (L1).

The dual of `problem.py` with w = sum_i beta_i z_i: the optimality condition of row i is

    beta_i  <-  the point of [low_i, high_i] nearest to  soft(beta_i - G / H, eps / H),                           (1)
    G = z_i'w - y_i + D_i beta_i,    H = ||z_i||^2 + D_i,    soft(b, t) = sign(b) max(|b| - t, 0)

and w is updated. Rows are visited in random order; those that stay at a bound are excluded temporarily (Hsieh, Chang,
Lin, Keerthi and Sundararajan 2008, A dual coordinate descent method for large-scale linear SVM). Under the L1 penalty
columns are visited instead, each with a Newton step and a line search (Fan et al. 2008, LIBLINEAR). Both stop when the
duality gap is small.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.engine.random import permutation, stream_key
from summula.kernels.rows import rows_of
from summula.kernels.standard import Linear
from summula.svm.dual.kernel_matrix import CachedKernel
from summula.svm.dual.solver import DualPoint, DualProblem, Options, Rounds, intercept_of, solve_dual
from summula.svm.linear.dual import DualRows, dual_sides, penalty_of
from summula.svm.linear.problem import LinearProblem, losses

__all__ = ["CoordinateFit", "Schedule", "by_columns", "by_pairs", "by_rows", "judged_at"]

Array = NDArray[Any]

_CHECK_EVERY = 5  # epochs between evaluations of the gap
_PERMUTATIONS = 1  # stream of random numbers
_DENSE = 0.3  # fraction of nonzeros above which rows are treated as dense
_CACHE = 200 * 2.0**20  # size of the cache of kernel rows in bytes


class CoordinateFit(NamedTuple):
    """v = (w, w_s), objective and gap, number of epochs; the dual point, and beta of all rows."""

    v: Array
    primal: float
    gap: float
    epochs: int
    converged: bool
    dual: DualRows
    beta: Array


class Schedule(NamedTuple):
    """Tolerance relative to the objective, epoch limit, seed of the order of rows, and callback after each epoch."""

    tolerance: float
    max_epochs: int
    seed: int
    on_epoch: Callable[[Callable[[], CoordinateFit]], bool]


def by_rows(Z: Any, y: Array, weight: Array, problem: LinearProblem, schedule: Schedule) -> CoordinateFit:
    """Minimise P with an L2 penalty, until the gap is `schedule.tolerance` of the objective.

    An unpenalised intercept is found by an outer search: min over w of P is convex in b, and its slope is -sum beta.
    """
    if not problem.is_free:
        return _descend(Z, y, weight, problem, np.zeros(len(y)), 0.0, schedule)
    low, high, b, step = -np.inf, np.inf, 0.0, 1.0
    beta, epochs = np.zeros(len(y)), 0
    best = CoordinateFit(np.zeros(Z.shape[1]), np.inf, np.inf, 0, False, DualRows.none(), beta)
    while epochs < schedule.max_epochs:
        left = schedule._replace(max_epochs=schedule.max_epochs - epochs)
        fit = _descend(Z, y, weight, problem, beta, b, left)
        beta, epochs = fit.beta, epochs + fit.epochs
        best = fit if fit.gap < best.gap else best
        best = best._replace(epochs=epochs)
        if best.converged or high - low <= 1e-15 * max(abs(b), 1.0):
            break
        if beta.sum() > 0:
            low, b, step = b, (b + step if np.isinf(high) else (b + high) / 2), 2 * step
        else:
            high, b, step = b, (b - step if np.isinf(low) else (low + b) / 2), 2 * step
    return best


def by_pairs(Z: Any, y: Array, weight: Array, problem: LinearProblem, schedule: Schedule) -> CoordinateFit:
    """Minimise P for losses with a kink and an unpenalised intercept: steps of pairs of rows preserve sum beta = 0."""
    kept = np.flatnonzero(weight > 0)
    X = Z[kept, :-1]
    rows = rows_of(X.toarray() if X.nnz > _DENSE * X.shape[0] * X.shape[1] else X)
    dual = _dual_problem(problem, y[kept], weight[kept])

    def judged(point: DualPoint) -> CoordinateFit:
        beta = np.zeros(len(y))
        beta[kept] = np.bincount(dual.row, point.beta, len(kept))
        v = np.asarray(Z.T @ beta)
        v[-1] = intercept_of(dual, point.beta, point.f) / problem.column
        return judged_at(Z, y, weight, problem, v, beta, schedule.tolerance)._replace(epochs=point.steps)

    def on_round(rounds: Rounds) -> bool:
        return schedule.on_epoch(lambda: judged(rounds.point()))

    best: CoordinateFit | None = None
    beta, violation, steps = np.zeros(len(dual.q)), 1e-2, 0
    while best is None or not best.converged:
        options = Options(violation, schedule.max_epochs * len(kept) - steps)
        point = solve_dual(CachedKernel(Linear(), rows, _CACHE), dual, options, start=beta, on_round=on_round)
        beta, violation, steps = point.beta, violation / 10, steps + point.steps
        best = judged(point)
        if not point.converged or violation < 1e-12:
            break
    return best._replace(epochs=-(-steps // max(len(kept), 1)))


def _dual_problem(problem: LinearProblem, y: Array, weight: Array) -> DualProblem:
    """Return the dual of `svm/dual/solver.py`: one variable per row, or two for regression."""
    n, zero = len(y), np.zeros(len(y))
    if problem.positive >= 0:
        return DualProblem(-y, np.where(y < 0, -weight, zero), np.where(y > 0, weight, zero), np.arange(n))
    q = np.concatenate([problem.epsilon - y, -problem.epsilon - y])
    return DualProblem(q, np.append(zero, -weight), np.append(weight, zero), np.tile(np.arange(n), 2))


def _descend(
    Z: Any,
    y: Array,
    weight: Array,
    problem: LinearProblem,
    beta: Array,
    b: float,
    schedule: Schedule,
) -> CoordinateFit:
    """Perform the steps (1) from some beta; the weight of an unpenalised constant column is b."""
    from summula.svm.linear.coordinate_kernels import dual_epoch

    square = np.asarray(Z.multiply(Z).sum(axis=1)).reshape(-1) - (problem.column**2 if problem.is_free else 0.0)
    box, kept = _box(problem, y, weight), np.flatnonzero(weight > 0)
    beta, v, y_left, whole = beta.copy(), np.asarray(Z.T @ beta), y, Z
    if problem.is_free:
        # The weight of the constant column is fixed at b: its steps are undone, and y is replaced by y - b.
        v[-1], y_left = 0.0, y - b * problem.column
        whole, Z = Z, Z.copy()
        Z.data[Z.indptr[1:] - 1] = 0.0  # the constant is the last entry of every row
    rows = (Z.indptr, Z.indices, Z.data)
    state = np.array([np.inf, 0.0, float(stream_key(schedule.seed, _PERMUTATIONS) >> 11), 0.0])
    order, active, epoch = kept.astype(np.int64), len(kept), 0

    def judged() -> CoordinateFit:
        w = v.copy()
        if problem.is_free:
            w[-1] = b
        return judged_at(whole, y, weight, problem, w, beta.copy(), schedule.tolerance)._replace(epochs=epoch)

    while epoch < schedule.max_epochs:
        active = int(dual_epoch(rows, y_left, box, square, v, beta, order[:active], state))
        epoch += 1
        state[0] = max(state[1], 1e-12)
        if schedule.on_epoch(judged):
            break
        settled = state[1] <= 0.01 * schedule.tolerance
        if settled or epoch % _CHECK_EVERY == 0 or active == 0:
            fit = judged()
            if fit.converged or (settled and active == len(kept)):
                return fit
            active, state[0] = len(kept), np.inf  # all rows are active again
    return judged()


def _box(problem: LinearProblem, y: Array, weight: Array) -> Array:
    """Return low, high, D and epsilon of every row."""
    most = np.full(len(y), np.inf) if problem.is_squared else weight
    D = 0.5 / np.where(weight > 0, weight, 1.0) if problem.is_squared else np.zeros(len(y))
    if problem.positive >= 0:
        low, high = np.where(y < 0, -most, 0.0), np.where(y > 0, most, 0.0)
        return np.column_stack([low, high, D, np.zeros(len(y))])
    return np.column_stack([-most, most, D, np.full(len(y), problem.epsilon)])


def judged_at(
    Z: Any, y: Array, weight: Array, problem: LinearProblem, v: Array, beta: Array | None, tolerance: float
) -> CoordinateFit:
    """Return P(v) and its gap to the dual of beta, or of the slopes at v; Z is CSR, or has `scores` and `combined`."""
    own = hasattr(Z, "scores")
    f = np.asarray(Z.scores(v) if own else Z @ v)
    here = losses(problem, y, f)
    primal = penalty_of(problem, v) + float(weight @ here.value)
    theta = -weight * here.slope
    dual = DualRows.none() if beta is None else DualRows.of(problem, y, f, theta, beta)
    theta = theta if beta is None else beta
    sides = dual_sides(problem, y, weight, theta, Z.combined if own else lambda side: np.asarray(Z.T @ side))
    gap = primal - sides.dual(problem)
    return CoordinateFit(v, primal, gap, 0, gap <= tolerance * max(abs(primal), 1e-300), dual, theta)


def by_columns(Z: Any, y: Array, weight: Array, problem: LinearProblem, schedule: Schedule) -> CoordinateFit:
    """Minimise P of a squared hinge loss with an L1 penalty."""
    from summula.svm.linear.coordinate_kernels import l1_epoch

    columns = Z.tocsc()
    v, short = np.zeros(Z.shape[1]), np.ones(len(y))
    penalised = np.ones(len(v))
    if problem.is_free:
        penalised[-1] = 0.0
    fit = judged_at(Z, y, weight, problem, v, None, schedule.tolerance)
    for epoch in range(1, schedule.max_epochs + 1):
        order = permutation(stream_key(schedule.seed, (_PERMUTATIONS, epoch)), len(v)).astype(np.int64)
        l1_epoch((columns.indptr, columns.indices, columns.data), weight, penalised, v, short, order, y)
        short = 1.0 - y * np.asarray(Z @ v)
        fit = judged_at(Z, y, weight, problem, v.copy(), None, schedule.tolerance)._replace(epochs=epoch)
        if schedule.on_epoch(lambda: fit) or fit.converged:  # noqa: B023  (called before the next epoch)
            break
    return fit
