"""Solver for generalised linear models with smooth penalties.

Minimises J of `glm/objective.py`:

1. **Initialisation.** The same problem is solved on the leading eighth of the rows, recursively down to a few thousand.
   A fit on m rows is within about sqrt(p/m) of the fit on all, so two or three passes over all rows remain.
2. **Newton's method** (`optimize/solvers/newton_method.py`) if the Hessian is affordable, invariant to column scales;
   **L-BFGS** (`glm/lbfgs.py`) otherwise (many classes or columns).
3. **Suboptimality.** The bounds of `glm/bounds/gap.py`, for the returned point (`glm/bounds/returned.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from summula.core.engine.threads import solving
from summula.core.errors import DataError
from summula.core.estimator.input.finiteness import raise_if_underflowing
from summula.core.numerics.solution import Solution
from summula.linear_model.glm.bounds.gap import judge
from summula.linear_model.glm.bounds.returned import point_of, returned
from summula.linear_model.glm.lbfgs import minimise_by_lbfgs
from summula.linear_model.glm.objective import (
    WIDE,
    GlmFit,
    GlmProblem,
    Objective,
    Offer,
    Start,
    bounds_of,
    hessian_affordable,
    origin_of,
)
from summula.linear_model.glm.sums import row_weights
from summula.losses import Logistic, Multinomial
from summula.optimize.solvers.newton_method import Factor, Local, newton

if TYPE_CHECKING:
    from summula.core.estimator.run import Run

__all__ = ["first_guess", "representative", "solve"]

Array = NDArray[Any]

_LEVEL = 8  # ratio of the numbers of rows of consecutive initialisation levels
_LEADING_VALUES = 2**23  # maximum number of values of leading rows, which are kept in memory
_FEWEST = 2_048  # minimum number of rows of the lowest level
_ROWS_PER_PARAMETER = 4
_LEAST_REST = 1 / 8  # 1 - R^2 in the length of the first step
_MOST_LENGTHENED = 4  # classes: the first step of more is not lengthened
_LEAST_REST_OF_CLASSES = 1 / 2  # the same for several classes, whose directions may not all be lengthened far
_ROUGH = 1e-5  # tolerance of the levels below the last
_ROUNDING = {"float64": 1e-13, "float32": 1e-7}  # relative rounding error of the objective, by dtype of the products


def solve(run: Run, problem: GlmProblem, offer: Offer | None = None, start: Start | None = None) -> GlmFit:
    """Minimise (1) by Newton's method or L-BFGS; the arguments are those of `glm/minimise.py`."""
    run.keep_rows()
    source, origin = run.source, origin_of(run, problem)
    if start is None:
        x, rough = _start(run, problem, origin, source.n_rows)
    else:
        x, rough = point_of(start[1], start[0], origin, problem.intercept), None
    objective = Objective(run, problem, origin)

    def on_step(x: Array, here: Local, decrement: float) -> bool:
        if offer is not None and objective.state.sums is not None:
            now = objective.as_of_now()

            def so_far() -> GlmFit:
                stopped = Solution(x, here.value, decrement, "stopped", False, 0)
                return _named(now, stopped, decrement, "local", None, exact=False)

            offer(so_far)
        return objective.stop

    if objective.affordable():
        with solving(len(x)):
            solution = newton(
                objective,
                x,
                tolerance=problem.tolerance,
                max_steps=problem.max_steps,
                bounds=bounds_of(problem),
                rounding=_ROUNDING[source.dtype.name],
                lengthen=_lengthen(objective) if start is None else None,
                on_step=on_step,
            )
    else:
        solution = minimise_by_lbfgs(objective, x, rough, on_step)
    if objective.stop:
        solution = replace(solution, status="stopped", converged=False)
    if not np.isfinite(solution.value):
        raise DataError("The loss is infinite at the starting point; scale the columns, or choose another link.")
    if problem.penalty == 0 and (largest := objective.state.largest) is not None:
        # The Hessian, whose diagonal is about squares of the columns, is all that limits the coefficients.
        raise_if_underflowing(source, source.n_rows * largest**2, largest)
    if problem.penalty == 0 and problem.low is None:
        solution = replace(solution, x=_shortest(objective, solution))
    return _finished(objective, solution)


def _lengthen(objective: Objective) -> Callable[[Array, float], Array] | None:
    """Return the function that lengthens the first step from zero slopes to the linear discriminant, if it is known."""
    problem = objective.problem
    if isinstance(problem.loss, Logistic):
        return _to_discriminant(objective)
    several = isinstance(problem.loss, Multinomial) and problem.outputs <= _MOST_LENGTHENED
    return _to_discriminants(objective) if several else None


def _to_discriminant(objective: Objective) -> Callable[[Array, float], Array]:
    """Return the first step of logistic regression from zero slopes, lengthened to the linear discriminant.

    The first step, of decrement D, is a least-squares fit with the coefficient of determination R^2 = 2 D / W. For
    normal classes of equal covariance it is (1 - R^2) times the linear discriminant (Fisher), near which the optimum of
    the loss is. So the curvature c = 2 D - r of the loss along the step counts (1 - R^2) times, that of the penalty, r,
    in full.
    """

    def lengthened(step: Array, decrement: float) -> Array:
        sums, _ = objective.state.last()
        rest = max(1.0 - 2.0 * decrement / sums.weight, _LEAST_REST)
        r = objective.problem.penalty * float(np.square(objective.penalised(step)).sum())
        return 2.0 * decrement / (rest * max(2.0 * decrement - r, 0.0) + r) * step

    return lengthened


def _to_discriminants(objective: Objective) -> Callable[[Array, float], Array]:
    """The same for softmax: with equal probabilities, the step is a least-squares fit to the indicators of the classes.

    Its products with the slopes, divided by W, have the squared canonical correlations of columns and classes as
    eigenvalues; the step is lengthened along each eigenvector by 1 / (1 - R^2), at most twice.
    """

    def lengthened(step: Array, decrement: float) -> Array:
        sums, _ = objective.state.last()
        steps = step.reshape(sums.slope.shape[1], -1)
        explained = steps @ sums.slope / -sums.weight
        squares, vectors = np.linalg.eigh((explained + explained.T) / 2)
        rest = np.maximum(1.0 - np.maximum(squares, 0.0), _LEAST_REST_OF_CLASSES)
        return np.asarray(vectors / rest @ (vectors.T @ steps)).ravel()

    return lengthened


def _shortest(objective: Objective, solution: Solution) -> Array:
    """Return the equivalent solution of minimum norm, if the data do not determine all directions."""
    x: Array = solution.x
    curved = objective.state.curved
    free = np.empty((len(x), 0)) if curved is None else curved.factor.null_space()
    if not free.shape[1]:
        return x
    slopes = objective.penalised(np.ones(len(x))) > 0
    shorter = np.asarray(x - free @ np.linalg.lstsq(free[slopes], x[slopes])[0])
    # Directions of tiny curvature, as for a diverging solution, are not free: the value decides.
    value = objective(shorter, 1).value
    sums, _ = objective.state.last()
    return shorter if value <= solution.value + 1e-12 * abs(solution.value) + 1e-14 * sums.weight else x


# --------------------------------------------------------------------------------------------------------------- start


def _start(run: Run, problem: GlmProblem, origin: Array, rows: int) -> tuple[Array, Factor | None]:
    """Return a starting point and the factor of an approximate Hessian (or None), from the leading rows."""
    p = int(problem.intercept) + run.source.n_features
    q = p * problem.outputs
    fewer = min(rows // _LEVEL, int(_LEADING_VALUES / max(run.source.width, 1.0)))
    if q > WIDE or fewer < max(_FEWEST, _ROWS_PER_PARAMETER * q) or not problem.max_steps:
        return first_guess(run, problem, min(rows, 65_536)), None
    few = run.leading(fewer)
    if not representative(few, problem):
        return first_guess(run, problem, min(rows, 65_536)), None
    x, rough = _start(run, problem, origin, fewer)
    share = rows / fewer
    part = problem._replace(regulariser=problem.regulariser.divided(share), tolerance=_ROUGH, max_steps=8, family=None)
    objective = Objective(few, part, origin)
    if hessian_affordable(rows, p, problem) or rough is None:
        solution = newton(
            objective,
            x,
            tolerance=_ROUGH,
            max_steps=8,
            bounds=bounds_of(problem),
            rounding=_ROUNDING[run.source.dtype.name],
        )
    else:
        solution = minimise_by_lbfgs(objective, x, rough, None)
    if not np.isfinite(solution.value):
        return x, None
    if hessian_affordable(rows, p, problem):
        return solution.x, None
    H = objective(solution.x, 2).hessian
    assert H is not None
    return solution.x, objective.factor(H * share)


def representative(few: Run, problem: GlmProblem) -> bool:
    """Whether the leading rows are representative: they contain all classes, and the targets vary."""
    chunk = few.source.chunk(0, few.source.n_rows)
    values = chunk.target if chunk.weight is None else chunk.target[chunk.weight > 0]
    classes = problem.outputs if problem.outputs > 1 else 2
    values, counts = np.unique(values, return_counts=True)
    if problem.family is not None:
        return len(values) > 1
    return len(values) >= classes and bool(counts.min() >= 10)


def first_guess(run: Run, problem: GlmProblem, rows: int) -> Array:
    """Return zero slopes and the intercept of the mean; without an intercept, a least-squares fit to the link of y."""
    p = int(problem.intercept) + run.source.n_features
    theta = np.zeros((problem.outputs, p))
    if problem.outputs > 1 or problem.link is None:
        return theta.ravel()
    chunk = run.source.chunk(0, rows)
    y, w = chunk.target, row_weights(chunk, problem.class_weight)
    offset = np.zeros(len(y)) if chunk.offset is None else chunk.offset
    with np.errstate(all="ignore"):
        mean = float(np.average(y, weights=w) if w is None or w.any() else y.mean())
        eta = problem.link.link(np.array([mean]))
        if problem.intercept:
            theta[0, 0] = float(eta[0]) - float(np.average(offset, weights=w) if w is None or w.any() else 0.0)
        else:
            low, high = problem.loss.eta_range
            if not low < 0.0 < high:
                target = problem.link.link((y + mean) / 2) - offset
                theta[0] = np.linalg.lstsq(chunk.block(np.float64), target, rcond=None)[0]
    return np.where(np.isfinite(theta), theta, 0.0).ravel()


# ------------------------------------------------------------------------------------------------------------ how good


def _finished(objective: Objective, solution: Solution) -> GlmFit:
    """Bound the suboptimality of the solution; for unpenalised fits compute the Hessian there, for inference."""
    problem, x = objective.problem, solution.x
    fresh = objective.state.curved is not None and np.array_equal(objective.state.curved.x, x)
    if problem.penalty == 0 and not fresh and objective.affordable():
        objective(x, 2)
    here, gap = judge(objective, x)
    kind = "global"
    if not np.isfinite(gap):
        kind, gap = "local", float(abs(solution.gap))
    curved = objective.state.curved
    factor = curved.factor if curved is not None and np.array_equal(curved.x, x) else None
    return _named(objective, replace(solution, value=here.value), gap, kind, factor)


def _named(
    objective: Objective, solution: Solution, gap: float, kind: str, factor: Factor | None, *, exact: bool = True
) -> GlmFit:
    point = returned(objective, solution.x, solution.value, gap, exact=exact)
    sums, _ = objective.state.last()
    fit = GlmFit.of(objective, point, solution, kind, sums.value, sums.weight)
    if (curved := objective.state.curved) is not None:
        fit = replace(fit, largest=curved.largest)
    if factor is None:
        return fit
    fit = replace(fit, rank=factor.rank)
    if objective.problem.penalty > 0:
        return fit
    return replace(fit, half_inverse=factor.half_inverse(), free=factor.null_space())
