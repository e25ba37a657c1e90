"""Proximal Newton for the squared hinge loss with an L1 penalty: passes over the rows, as in `newton.py`.

With slope g and (generalised) Hessian H of the loss at v, a step goes towards the minimiser of the model

    g'(z - v) + 1/2 (z - v)'H (z - v) + |z|_1                                                                    (1)

which is an L1 quadratic (`optimize/solvers/l1_quadratic.py`; an unpenalised intercept is eliminated first), halved
until the objective decreases. The loss is piecewise quadratic, so the last step ends at the minimum. Lee, Sun and
Saunders (2014), Proximal Newton-type methods for minimizing composite functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.engine.threads import one_blas_thread
from summula.core.estimator.run import Run
from summula.core.numerics.solution import Solution
from summula.optimize.solvers.l1_quadratic import GramQuadratic, minimise_l1
from summula.penalties import Penalty
from summula.svm.linear.certificate import judge
from summula.svm.linear.dual import penalty_of
from summula.svm.linear.newton import SquaredSums
from summula.svm.linear.problem import LinearProblem

__all__ = ["minimise_sparse"]

Array = NDArray[Any]

_ARMIJO = 1e-4
_HALVINGS = 30
_NOISE = {"float64": 1e-13, "float32": 1e-6}  # relative to the value: smaller differences are rounding
_ROUNDING = {"float64": 1e-6, "float32": 1e-4}  # relative to the objective: a smaller, constant gap is rounding
_MODEL = 1e-14  # tolerance of (1), relative to the loss


class _Local(NamedTuple):
    """The loss at a point, its slope and Hessian, and the objective."""

    loss: float
    slope: Array
    hessian: Array
    value: float


def minimise_sparse(
    run: Run,
    problem: LinearProblem,
    tolerance: float,
    max_steps: int,
    offer: Callable[[Array], None],
) -> Solution:
    """Minimise P from 0 until the duality gap is `tolerance` of the objective."""
    v = np.zeros(run.source.n_features + (problem.column != 0.0))
    with one_blas_thread():
        here, status, steps = _local(run, problem, v), "max_iter", 0
        while True:
            primal, gap = judge(run, problem, v)
            offer(v)
            if run.step("Newton step"):
                status = "stopped"
                break
            if gap <= tolerance * primal:
                status = "converged"
                break
            if steps == max_steps:
                break
            step = _model_step(problem, v, here)
            found = _backtracked(run, problem, v, here, step)
            if found is None and judge(run, problem, v + step)[1] < gap / 2:
                found = v + step, _local(run, problem, v + step)  # values differ by rounding; the gap decides
            if found is None:
                status = "converged" if gap <= _ROUNDING[run.source.dtype.name] * primal else "stalled"
                break
            (v, here), steps = found, steps + 1
    return Solution(v, primal, gap, status, status == "converged", steps)


def _local(run: Run, problem: LinearProblem, v: Array) -> _Local:
    sums = run.sum(SquaredSums, (problem, v, True), "Newton step")
    if not np.isfinite(sums.value):
        run.raise_if_not_finite()
    assert sums.curvature is not None
    return _Local(sums.value, sums.slope, sums.curvature, sums.value + penalty_of(problem, v))


def _model_step(problem: LinearProblem, v: Array, here: _Local) -> Array:
    """Return the step to the minimiser of (1)."""
    H, g = here.hessian, here.slope
    step = np.zeros_like(v)
    if problem.is_free and H[-1, -1] > 0:
        # The intercept follows from the others: its row of the slope is zero.
        lift, shift = H[-1, :-1] / H[-1, -1], g[-1] / H[-1, -1]
        G, slope, some = H[:-1, :-1] - np.outer(H[:-1, -1], lift), g[:-1] - H[:-1, -1] * shift, v[:-1]
        moved = _minimiser(G, slope, some, here.loss) - some
        step[:-1], step[-1] = moved, -shift - float(lift @ moved)
        return step
    inner = slice(0, len(v) - problem.is_free)
    step[inner] = _minimiser(H[inner, inner], g[inner], v[inner], here.loss) - v[inner]
    return step


def _minimiser(G: Array, slope: Array, v: Array, loss: float) -> Array:
    Gv = G @ v
    # (The constant makes the quadratic about as large as the loss, to which its tolerance is relative.)
    quadratic = GramQuadratic(np.ascontiguousarray(G), Gv - slope, 2 * loss + max(float((Gv - 2 * slope) @ v), 0.0))
    return minimise_l1(quadratic, Penalty(1.0), start=v, tolerance=_MODEL, max_sweeps=10_000).v


def _backtracked(run: Run, problem: LinearProblem, v: Array, here: _Local, step: Array) -> tuple[Array, _Local] | None:
    """Return the longest of the steps 1, 1/2, ... with sufficient decrease; None if there is none."""
    t, noise = 1.0, _NOISE[run.source.dtype.name] * abs(here.value)
    promise = here.slope @ step + penalty_of(problem, v + step) - penalty_of(problem, v)
    if promise >= -noise:
        return None
    for _ in range(_HALVINGS):
        there = _local(run, problem, v + t * step)
        if there.value <= here.value + _ARMIJO * t * promise + noise:
            return v + t * step, there
        t /= 2
    return None
