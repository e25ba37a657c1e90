"""Newton's method for squared losses by passes over the rows, which may be arrays, files or collections.

The squared losses are differentiable, with a curvature that jumps where a row reaches the margin. With A the rows that
violate the margin

    P'(v)  = R'(v) + C sum_{i in A} c_i l'(f_i) z_i,       P''(v) = I + 2 C sum_{i in A} c_i z_i z_i'             (1)

(a generalised Hessian, Mangasarian 2002). Newton's steps with a line search end after finitely many passes, at the
exact minimum of the piece they are in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.data.layout.blocks import product, scratch_block
from summula.core.engine.threads import one_blas_thread
from summula.core.estimator.run import Run
from summula.core.numerics.solution import Solution
from summula.core.numerics.sums import Sum
from summula.optimize.solvers.newton_method import Local, newton
from summula.svm.linear.problem import LinearProblem, losses, targets_and_weights
from summula.svm.linear.row_products import is_small

__all__ = ["WIDE", "SquaredSums", "minimise"]

Array = NDArray[Any]

WIDE = 2_048  # number of columns above which no Hessian is formed
_LEVEL = 8  # ratio of the numbers of rows of consecutive initialisation levels
_FEWEST = 4_096
_ROWS = "rows and a constant"


@dataclass(frozen=True)
class SquaredSums(Sum):
    """Loss, its slope and half its curvature matrix; `params`: the problem, v, and whether curvature is needed."""

    value: float
    slope: Array
    curvature: Array | None

    @classmethod
    def map(cls, chunk: Chunk, params: tuple[LinearProblem, Array, bool]) -> Self:
        """Return the sums over one chunk."""
        problem, v, curved = params
        Z = rows_with_constant(chunk, problem.column)
        y, weight = targets_and_weights(problem, chunk)
        if is_small(Z):
            return cls._of_few(problem, v, curved, Z, y, weight)
        f = np.asarray(Z @ v if chunk.is_sparse else product(Z, v.astype(Z.dtype)), np.float64)
        here = losses(problem, y, f)
        slope = weight * here.slope
        if chunk.is_sparse:
            gradient = np.asarray(Z.T @ slope)
        else:
            gradient = np.asarray(product(Z.T, slope.astype(Z.dtype)), np.float64)
        value = float(weight @ here.value)
        if not curved:
            return cls(value, gradient, None)
        scale = np.sqrt(weight * here.curvature)
        active = np.flatnonzero(scale)
        some = Z[active]
        if chunk.is_sparse:
            some = some.multiply(scale[active][:, None]).tocsr()
            return cls(value, gradient, np.asarray((some.T @ some).toarray()))
        block = scratch_block("active rows", len(active), Z.shape[1], Z.dtype)
        np.multiply(some, scale[active].astype(Z.dtype)[:, None], out=block)
        return cls(value, gradient, np.asarray(block.T @ block, np.float64))

    @classmethod
    def _of_few(cls, problem: LinearProblem, v: Array, curved: bool, Z: Array, y: Array, weight: Array) -> Self:
        from summula.svm.linear.newton_kernels import squared_sums

        slope, curvature = np.zeros(len(v)), np.zeros((len(v), len(v)) if curved else (0, 0))
        epsilon = -1.0 if problem.positive >= 0 else problem.epsilon
        value = squared_sums(Z, y, weight, v, epsilon, slope, curvature)
        return cls(value, slope, curvature if curved else None)


def rows_with_constant(chunk: Chunk, column: float) -> Any:
    """Return the rows z_i of a chunk, a block or CSR, which must not be modified."""
    return chunk.kept((_ROWS, column), lambda: _with_constant(chunk, column))


def _with_constant(chunk: Chunk, column: float) -> Any:
    if not column:
        return chunk.X.astype(np.float64) if chunk.is_sparse else chunk.block()
    if chunk.is_sparse:
        from scipy import sparse

        return sparse.hstack([chunk.X.astype(np.float64), np.full((len(chunk), 1), column)], format="csr")
    width = chunk.n_features + 1
    Z = chunk.blank(width) if chunk.is_small else scratch_block(_ROWS, len(chunk), width, chunk.dtype)
    chunk.write(Z[:, :-1])
    Z[:, -1] = column
    return Z


def minimise(
    run: Run,
    problem: LinearProblem,
    tolerance: float,
    max_steps: int,
    offer: Callable[[Array], None] | None = None,
    *,
    start: Array | None = None,
) -> Solution:
    """Minimise P from a start, or a fit of the leading rows, to a decrement of `tolerance` times the value."""
    p = run.source.n_features + (problem.column != 0.0)
    v = np.zeros(p) if start is None else start
    few = run.source.n_rows // _LEVEL
    if start is None and few >= max(_FEWEST, 4 * p) and not run.source.is_sparse:
        part = problem._replace(C=problem.C * run.source.n_rows / few)
        v = _solve(run.leading(few), part, v, 1e-3, 8, None).x
    return _solve(run, problem, v, tolerance, max_steps, offer)


def _solve(
    run: Run,
    problem: LinearProblem,
    v: Array,
    tolerance: float,
    max_steps: int,
    offer: Callable[[Array], None] | None,
) -> Solution:
    penalised = np.ones(len(v))
    if problem.is_free:
        penalised[-1] = 0.0
    ridge = np.diag(penalised)

    def evaluate(x: Array, order: int) -> Local:
        sums = run.sum(SquaredSums, (problem, x, order == 2), "Newton step" if order == 2 else "gradient")
        value = sums.value + 0.5 * float(x @ (penalised * x))
        H = None if sums.curvature is None else sums.curvature + ridge
        if not np.isfinite(value):
            run.raise_if_not_finite()
        return Local(value, sums.slope + penalised * x, H)

    def on_step(x: Array, here: Local, decrement: float) -> bool:
        if offer is not None:
            offer(x)
        return run.step("Newton step")

    with one_blas_thread():
        return newton(evaluate, v, tolerance=tolerance, max_steps=max_steps, on_step=on_step)
