"""Likelihoods with an L1 or elastic-net penalty, by proximal Newton steps on a working set of columns.

    P(b, V) = J(b, V) + a |V|_1,     J(b, V) = sum_i w_i l(y_i, b + V'x_i + offset_i) + lambda/2 ||V||^2        (1)

1. **Newton.** At x = (b, V), with gradient g and Hessian H of J, the step goes to the minimiser of

       g'(z - x) + 1/2 (z - x)'H (z - x) + a |V_z|_1                                                            (2)

   Intercepts are not penalised and are eliminated: G = H_VV - H_Vb H_bb^+ H_bV is the Schur complement, and (2) an L1
   quadratic in V, solved by `optimize/solvers/l1_quadratic.py`. Steps are halved until P decreases by a fraction of the
   predicted decrease, D = g'p + a (|V + P|_1 - |V|_1) <= 0:

       P(x + t p) <= P(x) + c t D                                                                               (3)

   Near the optimum the previous Hessian is reused. Coordinate descent is invariant to the scale of the columns.

2. **Working set.** Columns with V_j = 0 and |g_j| <= a satisfy their optimality condition. With many columns, (1) is
   solved on the nonzero ones and the worst violators, g is computed for all columns, and the set is updated until no
   column violates its condition. A step costs n |set|^2, no d x d matrix is formed, and each check is one pass.

3. **Suboptimality.** The duality gap (4) of `glm/bounds/dual.py`; if that is unknown, the gap of the quadratic (2).

References: Lee, Sun, Saunders (2014), Proximal Newton-type methods; Johnson and Guestrin (2015), Blitz.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.sources import MappedSource, MemorySource
from summula.core.engine.engine import engine, local_engine
from summula.core.errors import DataError
from summula.core.numerics.grouped import ClassWeights
from summula.core.numerics.solution import Solution
from summula.linear_model.glm.bounds.dual import bound_of
from summula.linear_model.glm.bounds.returned import point_of, returned, rounded
from summula.linear_model.glm.objective import GlmFit, GlmProblem, Objective, Offer, Start, origin_of
from summula.linear_model.glm.solver import first_guess, representative
from summula.linear_model.l1.quadratic_model import Point, QuadraticModel, evaluated, local_gap, promise_of, slopes_of
from summula.linear_model.l1.working_set import WorkingSetColumns

if TYPE_CHECKING:
    from summula.core.estimator.run import Run

__all__ = ["at_once", "solve_l1"]

Array = NDArray[Any]
Columns = NDArray[np.intp]

_WHOLE = 300  # number of parameters up to which all columns are in the working set,
_WHOLE_STREAM = 1_000  # and the same if each pass reads files
_FIRST = 100  # minimum number of columns added to a working set
_NEARLY = 0.05  # relative to the penalty: columns whose slopes are this close to it may change
_MANY_NEW = 0.05  # fraction of new columns in a working set above which it is solved approximately
_ROUNDS = 200
_LEVEL = 8  # as in `glm/solver.py`
_FEWEST = 2_048
_ROUGH = 1e-4
_SHARE = 1e-3  # fraction of the decrease of (2) that may remain
_UNBALANCED = 4.0  # approximate minimum ratio of the weight of the rows to the sum of their slopes of one sign
_ARMIJO = 1e-3
_NEAR = 1e-14  # change of the parameters small enough that the gap may be computed after it
_HALVINGS = 40
_CHORD = 1e-4  # predicted relative decrease of the objective below which the Hessian is not recomputed
_LEAST = {"float64": 2e-15, "float32": 2e-9}  # gap, relative to P, below which only rounding remains
_NOISE = {"float64": 1e-13, "float32": 1e-7}


def _gap(objective: Objective, at: Point) -> float:
    """Approximate the bound (4) of `glm/bounds/dual.py` from the sums at the point."""
    problem, (sums, _) = objective.problem, objective.state.last()
    moving = np.zeros(len(at.x))
    moving[objective.free] = 1.0
    moves = slopes_of(objective, moving) > 0
    v = slopes_of(objective, at.x)[moves]
    g = problem.penalty * v - slopes_of(objective, at.here.gradient)[moves]
    loss = sums.value
    gap = problem.regulariser.gap(v, g, lambda t: (1 - t) * loss)[0]
    if problem.intercept:
        # Balancing slopes that do not sum to 0 costs about this fraction of the losses.
        rest = at.here.gradient.reshape(problem.outputs, objective.p)[:, 0]
        gap += _UNBALANCED * float(np.abs(rest).sum()) / sums.weight * loss
    return gap


@dataclass
class Goal:
    """Stopping criteria: the gap relative to P, the maximum number of steps, and a callback for each step."""

    tolerance: float
    max_steps: int
    least: float
    noise: float
    on_step: Callable[[Objective, Point, float], bool] | None = None
    steps: int = 0


def descend(objective: Objective, x: Array, goal: Goal) -> Solution:
    """Take steps (2) from x until the gap is small enough."""
    at = evaluated(objective, x, 2)
    if not np.isfinite(at.value):
        return Solution(x, np.inf, np.inf, "unbounded", False, goal.steps)
    assert at.here.hessian is not None
    descent = _Descent(objective, goal, at, QuadraticModel(objective, at.here.hessian))
    while (status := descent.advance()) is None:
        pass
    at, trace = descent.at, tuple(descent.trace)
    return Solution(at.x, at.value, trace[-1], status, status == "converged", goal.steps, trace)


@dataclass
class _Descent:
    """State of the proximal Newton iteration.

    `model` is the quadratic (2) with the Hessian at `at` if it is `fresh`, else at an earlier point; `best` is the
    smallest gap so far.
    """

    objective: Objective
    goal: Goal
    at: Point
    model: QuadraticModel
    fresh: bool = True
    best: float = np.inf
    trace: list[float] = field(default_factory=list)

    def advance(self) -> str | None:
        """Take one step, or recompute the Hessian; return the status if this was the last iteration."""
        objective, goal, at = self.objective, self.goal, self.at
        weight = objective.state.last()[0].weight
        enough = max(goal.tolerance, goal.least) * abs(at.value)
        noise = goal.noise * (abs(at.value) + 1e-2 * weight)  # (a row without loss has rounding errors, too)
        step, promise, left = self._proposed(enough)
        self.trace.append(left)
        if goal.on_step is not None and goal.on_step(objective, at, left):
            return "stopped"
        if left <= enough:
            return "converged"
        if goal.steps >= goal.max_steps:
            return "max_iter"
        if promise <= 10 * noise:
            return self._polish(step, left)
        slow, self.best = left > self.best / 10, min(self.best, left)
        if slow and not self.fresh:
            self._renew()
            return None
        more = promise > _CHORD * abs(at.value) or slow
        order = 2 if more and goal.steps + 1 < goal.max_steps else 1  # (the last step needs no Hessian after it)
        found = _backtracked(objective, at, step, promise, order, noise)
        if found is None:
            return self._recompute_or_stop(left)
        goal.steps += 1
        self.at, self.fresh = found, found.here.hessian is not None
        if found.here.hessian is not None:
            self.model = QuadraticModel(objective, found.here.hessian)
        return None

    def _proposed(self, enough: float) -> tuple[Array, float, float]:
        """Return the step to the minimiser of (2), its predicted decrease, and the remaining decrease."""
        objective, gap = self.objective, _gap(self.objective, self.at)
        convex = objective.problem.loss.convex
        if convex and (gap <= enough or self.goal.steps >= self.goal.max_steps):
            return np.zeros(0), 0.0, gap
        step = self.model.step(self.at, objective.state.last()[0].value, _SHARE)
        promise = promise_of(objective, self.at, step)
        return step, promise, gap if convex else promise

    def _polish(self, step: Array, left: float) -> str | None:
        """Take a step that changes P by rounding only if it halves the gap."""
        if self.objective.problem.loss.convex:
            there = evaluated(self.objective, self.at.x + step, 1)
            if _gap(self.objective, there) < left / 2:
                self.at, self.fresh, self.best = there, False, left
                return None
        return self._recompute_or_stop(left)

    def _recompute_or_stop(self, left: float) -> str | None:
        """Recompute an old Hessian; with a fresh one, no step can help."""
        if not self.fresh:
            self._renew()
            return None
        return "converged" if left <= 1e-9 * abs(self.at.value) else "stalled"

    def _renew(self) -> None:
        """Compute the Hessian at the point."""
        self.at, self.fresh = evaluated(self.objective, self.at.x, 2), True
        assert self.at.here.hessian is not None
        self.model = QuadraticModel(self.objective, self.at.here.hessian)


def _backtracked(
    objective: Objective, at: Point, step: Array, promise: float, order: int, noise: float
) -> Point | None:
    """Backtrack by rule (3); None if no step helps."""
    t = 1.0
    for _ in range(_HALVINGS):
        there = evaluated(objective, at.x + t * step, order)
        if there.value <= at.value - _ARMIJO * t * promise + noise:
            return there
        t /= 2
    return None


# --------------------------------------------------------------------------------------------------------- many columns


def _selected(columns: Columns, block: Array) -> Array:
    return np.asarray(block[:, columns])


def restricted(run: Run, columns: Columns) -> Run:
    """Return a run over the same rows with some of the columns, which are copied if the rows are sparse."""
    from summula.core.estimator.run import Run

    source = run.source
    if source.streams:
        few = copy.copy(run)
        few.use(MappedSource(source, functools.partial(_selected, columns), len(columns)))
        return few
    chunk = source.chunk(0, source.n_rows)
    X = chunk.rows.csr()[:, columns]
    held = replace(MemorySource.of_chunk(chunk, source), rows=X, names=None)
    with engine(local_engine()):
        return Run(run.estimator, held, quiet=True, deadline=run._deadline)


def _on(full: Objective, columns: Columns, moving: NDArray[np.bool_]) -> Objective:
    """Return J on some of the columns; slopes that are not `moving` may be held fixed."""
    if isinstance(full, WorkingSetColumns):
        return full.on(columns, moving)
    return Objective(restricted(full.run, columns), full.problem._replace(family=None), full.origin[columns])


def _by_columns(full: Objective, x: Array, goal: Goal) -> Solution:
    """Solve on working sets until no column outside violates its optimality condition."""
    problem, d = full.problem, full.p - full.first
    K, steps, best = problem.outputs, goal.max_steps, np.inf
    columns = np.zeros(0, np.intp)
    solution = Solution(x, np.inf, np.inf, "max_iter", False, 0)
    for rounds in range(_ROUNDS):
        at = evaluated(full, x, 1)
        if not np.isfinite(at.value):
            return replace(solution, x=x, value=at.value, status="unbounded")
        gap = _gap(full, at)
        enough = max(goal.tolerance, goal.least) * abs(at.value)
        stuck = rounds > 2 and gap > best / 2 and gap <= 1e-9 * abs(at.value)
        solution = replace(solution, x=x, value=at.value, gap=gap, n_steps=goal.steps)
        if goal.on_step is not None and goal.on_step(full, at, gap):
            return replace(solution, status="stopped")
        if (gap <= enough and rounds) or stuck:
            return replace(solution, status="converged", converged=True)
        if goal.steps >= steps:
            return replace(solution, status="max_iter")
        best = min(best, gap)
        theta = x.reshape(K, full.p)
        V = theta[:, full.first :]
        wrong = np.abs(problem.penalty * V - slopes_of(full, at.here.gradient).reshape(K, d)) - problem.l1
        columns, new = _renewed_set(columns, np.asarray(V.any(axis=0)), wrong.max(axis=0))
        part = _on(full, columns, ((V != 0) | (wrong > -_NEARLY * problem.l1))[:, columns])
        inside = np.hstack([theta[:, : full.first], V[:, columns]]).ravel()
        # While the set grows one step suffices, and later an approximate solution.
        share = max(enough / 2, 0.05 * gap if new else 0.0) / abs(at.value)
        most = goal.steps + 1 if new > _MANY_NEW * len(columns) else steps
        mine = replace(goal, tolerance=share, max_steps=min(most, steps), on_step=None)
        found = descend(part, inside, mine)
        goal.steps, full.stop = mine.steps, full.stop or part.stop
        theta = np.zeros((K, full.p))
        theta[:, : full.first] = found.x.reshape(K, -1)[:, : full.first]
        theta[:, full.first + columns] = found.x.reshape(K, -1)[:, full.first :]
        x = theta.ravel()
    return solution


def _renewed_set(columns: Columns, used: NDArray[np.bool_], wrong: Array) -> tuple[Columns, int]:
    """Return the columns in use and the worst violators (at most as many again), and the number of new columns."""
    here = np.flatnonzero(used)
    new = np.flatnonzero(~used & (wrong > 0))
    capacity = max(_FIRST, len(here))
    if len(new) > capacity:
        new = new[np.argpartition(-wrong[new], capacity)[:capacity]]
    if not len(here) and not len(new):
        new = np.array([int(wrong.argmax())])
    chosen = np.union1d(here, new)
    return chosen, len(np.setdiff1d(chosen, columns))


# --------------------------------------------------------------------------------------------------------------- solver


def solve_l1(run: Run, problem: GlmProblem, offer: Offer | None = None, start: Start | None = None) -> GlmFit:
    """Minimise (1) by proximal Newton steps; the arguments are those of `glm/minimise.py`."""
    run.keep_rows()
    source, origin = run.source, origin_of(run, problem)
    if start is None:
        x = _started(run, problem, origin, source.n_rows)
    else:
        x = point_of(start[1], start[0], origin, problem.intercept)
    whole = at_once(run, problem)
    held = not (whole or source.streams or source.is_sparse)
    objective = WorkingSetColumns(run, problem, origin) if held else Objective(run, problem, origin)

    def on_step(now: Objective, at: Point, gap: float) -> bool:
        if offer is not None and now is objective and now.state.sums is not None:
            offer(functools.partial(_stopped, copy.copy(now), at, gap))
        return now.stop

    name = source.dtype.name
    # With an L2 penalty the gap is quadratic in the error, without one it is linear.
    least = _LEAST[name] ** (1.4 if problem.penalty > 0 else 1.0)
    goal = Goal(problem.tolerance, problem.max_steps, least, _NOISE[name], on_step)
    solution = descend(objective, x, goal) if whole else _by_columns(objective, x, goal)
    if not np.isfinite(solution.value):
        raise DataError("The loss is infinite at all starting points; rescale the columns, or choose another link.")
    return _certified(run, problem, objective, solution)


def _certified(run: Run, problem: GlmProblem, objective: Objective, solution: Solution) -> GlmFit:
    """Return the fit at the coefficients of a solution, rounded as the user gets them, with its gap."""
    point = rounded(objective, solution.x)
    near = float(np.abs(point.x - solution.x).max(initial=0.0)) <= _NEAR
    bound = bound_of(run, objective.at(point.x if near else solution.x, 1), problem.regulariser)
    kind = "global" if np.isfinite(bound.gap) else "local"
    gap = bound.gap
    if kind == "local":
        every = Objective(run, problem, objective.origin)
        gap = local_gap(every, point.x if near else solution.x) if every.affordable() else float(abs(solution.gap))
    objective.stop = False
    settled = solution.converged or (kind == "global" and gap <= 1e-9 * abs(bound.value))
    point, loss = point._replace(value=bound.value, gap=gap), bound.loss
    if not near:  # (1) of `glm/bounds/returned.py`
        here = evaluated(objective, point.x, 1).value
        sums, _ = objective.state.last()
        point, loss = point._replace(value=here, gap=gap + max(here - bound.value, 0.0)), sums.value
    solution = replace(solution, converged=settled)
    return replace(GlmFit.of(objective, point, solution, kind, loss, bound.weight), zeros=bound.zeros)


def at_once(run: Run, problem: GlmProblem) -> bool:
    """Return whether all columns are in one working set."""
    parameters = problem.outputs * (int(problem.intercept) + run.source.n_features)
    return parameters <= (_WHOLE_STREAM if run.source.streams else _WHOLE)


def _started(run: Run, problem: GlmProblem, origin: Array, rows: int) -> Array:
    """Return a starting point fitted to the leading rows if they are representative, else zero slopes."""
    parameters = problem.outputs * (int(problem.intercept) + run.source.n_features)
    fewer = rows // _LEVEL
    guess = _constant(run, problem, rows)
    if not at_once(run, problem) or fewer < max(_FEWEST, 4 * parameters) or not problem.max_steps:
        return guess
    few = run.leading(fewer)
    if not representative(few, problem):
        return guess
    share = rows / fewer
    part = problem._replace(regulariser=problem.regulariser.divided(share), family=None)
    x = _started(run, problem, origin, fewer)
    solution = descend(Objective(few, part, origin), x, Goal(_ROUGH, 10, 1e-12, 1e-9))
    return np.asarray(solution.x) if np.isfinite(solution.value) else guess


def _constant(run: Run, problem: GlmProblem, rows: int) -> Array:
    """Return zero slopes, and intercepts that fit the mean or the class proportions."""
    x = first_guess(run, problem, min(rows, 65_536))
    if problem.outputs > 1 and problem.intercept and problem.max_steps:
        totals = run.leading(min(rows, 65_536)).sum(ClassWeights, problem.outputs).totals
        totals = totals if problem.class_weight is None else totals * problem.class_weight
        theta = x.reshape(problem.outputs, -1)
        level = np.log(np.maximum(totals, 1e-3 * totals.max()))
        theta[:, 0] = level - level.mean()
        x = theta.ravel()
    return x


def _stopped(objective: Objective, at: Point, gap: float) -> GlmFit:
    """Return the fit at a point where the solver was stopped."""
    sums, _ = objective.state.last()
    solution = Solution(at.x, at.value, gap, "stopped", False, 0)
    point = returned(objective, at.x, at.value, gap, exact=False)
    return GlmFit.of(objective, point, solution, "local", sums.value, sums.weight)
