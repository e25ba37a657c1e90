"""L-BFGS for likelihoods whose Hessian is too expensive (many classes or columns).

It is preconditioned by the Hessian of the leading rows, a Gram matrix per class, or, for very many columns, the
diagonal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.engine.threads import one_blas_thread
from summula.core.numerics.solution import Solution
from summula.linear_model.glm.objective import WIDE, Objective
from summula.linear_model.glm.sums import At, Diagonal, Slopes
from summula.losses import Squared
from summula.optimize.solvers.limited_memory import lbfgs
from summula.optimize.solvers.newton_method import Factor, Local

__all__ = ["minimise_by_lbfgs"]

Array = NDArray[Any]


class _Whole:
    """A preconditioner from a factored Hessian."""

    def __init__(self, factor: Factor) -> None:
        self._F = factor.half_inverse()  # H0^-1 = F F'

    def solve(self, u: Array) -> Array:
        return np.asarray(self._F @ u)

    def solve_transposed(self, g: Array) -> Array:
        return np.asarray(self._F.T @ g)


class _Blocks:
    """A preconditioner with one block per output."""

    def __init__(self, blocks: list[Array]) -> None:
        self._blocks = blocks

    def solve(self, u: Array) -> Array:
        parts = u.reshape(len(self._blocks), -1)
        return np.concatenate([F @ part for F, part in zip(self._blocks, parts, strict=True)])

    def solve_transposed(self, g: Array) -> Array:
        parts = g.reshape(len(self._blocks), -1)
        return np.concatenate([F.T @ part for F, part in zip(self._blocks, parts, strict=True)])


class _Scales:
    """A preconditioner from the diagonal."""

    def __init__(self, diagonal: Array) -> None:
        self._size = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))

    def solve(self, u: Array) -> Array:
        return np.asarray(self._size * u)

    def solve_transposed(self, g: Array) -> Array:
        return np.asarray(self._size * g)


def _preconditioner(objective: Objective, x: Array, rough: Factor | None) -> Any:
    if rough is not None:
        return _Whole(rough)
    problem, run = objective.problem, objective.run
    penalty = problem.penalty * objective.penalised(np.ones(len(x)))
    if objective.p > WIDE:
        diagonal = run.sum(Diagonal, objective.at(x, 1), "diagonal").diagonal.T.ravel()
        return _Scales(diagonal + penalty)
    # The Gram matrix times the average curvature of each output.
    squares = At(Squared(), objective.origin, np.zeros((objective.p, 1)), problem.intercept, 2)
    gram = run.sum(Slopes, squares, "Gram matrix")
    assert gram.hessian is not None
    sums, _ = objective.state.last()
    inner = np.maximum(np.diag(sums.inner) / gram.weight, 1e-6)
    per_output = penalty.reshape(problem.outputs, objective.p)
    factors = (Factor.of(c * gram.hessian + np.diag(mine)) for c, mine in zip(inner, per_output, strict=True))
    return _Blocks([factor.half_inverse() for factor in factors])


def minimise_by_lbfgs(objective: Objective, x: Array, rough: Factor | None, on_step: Any) -> Solution:
    """Minimise J from x; `rough` is the factor of a Hessian at a nearby point, `on_step` is called at each point."""
    problem = objective.problem
    first = objective(x, 1)
    if not np.isfinite(first.value):
        return Solution(x, np.inf, np.inf, "unbounded", False, 0)
    start, M = x, _preconditioner(objective, x, rough)

    def evaluate(x: Array) -> tuple[float, Array]:
        here = first if x is start else objective(x, 1)
        return here.value, here.gradient

    def enough(x: Array, value: float, gradient: Array) -> bool:
        left = M.solve_transposed(gradient)
        decrement = float(left @ left) / 2
        stop = on_step is not None and on_step(x, Local(value, gradient), np.inf)  # no bound is known here
        return bool(stop or decrement <= problem.tolerance * abs(value))

    with one_blas_thread():  # the bits of long products may depend on the number of threads
        return lbfgs(evaluate, x, M, enough=enough, max_steps=max(problem.max_steps, 1))
