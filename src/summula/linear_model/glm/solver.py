"""Fitting a generalised linear model: the one optimisation behind LogisticRegression and the GLM regressors.

    J(b, V) = sum_i w_i l(y_i, b + V'x_i + offset_i) + lambda/2 ||V||^2                                        (1)

1. **Start.** The same problem on the leading eighth of the rows, and so on down to a few thousand. A fit on m rows is
   within about sqrt(p/m) of the fit on all, so two or three passes over all rows remain.
2. **Newton** (`optimize/solvers/newton_method.py`) where the Hessian is affordable: insensitive to the columns' scales.
   **L-BFGS** (`optimize/solvers/limited_memory.py`) where it is not (many classes or columns), preconditioned by the
   Hessian of the leading rows, by a Gram matrix for each class, or, for very many columns, by the diagonal.
3. **How good.** The bounds (2) and (3).

The gap.  Let g be the slope and H the Hessian of J. All losses marked self-concordant have |l'''| <= l'', so along any
step p the curvature changes by a factor of at most exp(r), r = max_i |z_i'p|. With nu^2 = g'H^-1 g and
r <= R ||p||_H, R^2 = sum_j max_i z_ij^2 / (D_j^2 c), where D^2 = diag H and c the least eigenvalue of D^-1 H D^-1,

    J - min J <= nu^2   whenever  R nu <= 1/2                                            (Bach 2010, prop. 2)  (2)

An H from a nearby point x0 serves as well: with r = R ||x - x0||_H replace nu^2 by e^r nu^2 and R^2 by e^r R^2.

Without H there is strong convexity in V once the intercepts are optimal. Moving them to their optimum lowers J by at
most nu_b^2 (the same bound, R = 1 for one intercept, sqrt(2) for several) and changes the slope in V by at most
e sqrt(tr H_VV) nu_b, so

    J - min J <= nu_b^2 + (||g_V|| + e sqrt(tr H_VV) nu_b)^2 / (2 lambda)                                       (3)
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import DataError
from summula.core.model_files import schema
from summula.core.numerics.solution import Solution
from summula.linear_model.glm.returned import point_of, returned
from summula.linear_model.glm.sums import At, Diagonal, Slopes, row_weights
from summula.linear_model.least_squares.problem import solving
from summula.losses import Loss, Squared
from summula.optimize.solvers.limited_memory import lbfgs
from summula.optimize.solvers.newton_method import Bounds, Factor, Local, newton

if TYPE_CHECKING:
    from summula.core.estimator.run import Run

__all__ = ["GlmFit", "GlmProblem", "Objective", "first_guess", "judge", "representative", "solve"]

Array = NDArray[Any]

WIDE = 2_048  # parameters of one output beyond which no Hessian is formed
_NEWTON_WORK = 3e9  # rows x columns^2 x pairs of outputs up to which a Hessian of all rows is worth it
_LEVEL = 8  # each level of the start has so many times fewer rows
_LEADING_VALUES = 2**23  # most values of leading rows, which are held in memory
_FEWEST = 2_048  # rows of the lowest level, and
_ROWS_PER_PARAMETER = 4
_ROUGH = 1e-5  # tolerance of the levels below the last
_ROUNDING = {"float64": 1e-13, "float32": 1e-7}  # of the objective, by how products are computed


class GlmProblem(NamedTuple):
    """Which problem (1): the loss, the penalty, what is constrained, and how exactly to solve it."""

    loss: Loss
    penalty: float  # lambda; of the whole sum
    intercept: bool
    outputs: int = 1
    class_weight: Array | None = None
    low: Array | None = None  # bounds on the slopes
    high: Array | None = None
    tolerance: float = 1e-10
    max_steps: int = 100
    link: Any = None  # where an intercept alone starts
    family: Any = None  # checks the targets
    l1: float = 0.0  # a of `l1/likelihood.py`; of the whole sum

    @property
    def penalised(self) -> bool:
        """Whether there is any penalty."""
        return self.penalty > 0 or self.l1 > 0


@schema.saved(
    coef=schema.Array("float64", "n_scores", "n_terms"),
    intercept=schema.Array("float64", "n_scores"),
    value=schema.Real(finite=False),
    loss=schema.Real(finite=False),
    gap=schema.Real(finite=False),
    kind=schema.Text("global", "local"),
    weight=schema.Real(),
    n_iter=schema.Integer(0),
    converged=schema.Flag(),
    status=schema.Text(),
    trace=schema.Items(schema.Real(finite=False)),
    origin=schema.Array("float64", "n_terms"),
    half_inverse=schema.Array("float64", "n_parameters", "n_determined", finite=False) | None,
    rank=schema.Integer(0),
    free=schema.Array("float64", "n_parameters", "n_free", finite=False) | None,
    largest=schema.Array("float64", "n_terms", finite=False) | None,
    zeros=schema.Array("bool", "n_scores", "n_terms") | None,
)
@dataclass(frozen=True)
class GlmFit:
    """The answer.

    Attributes
    ----------
    coef : ndarray of shape (K, d)
    intercept : ndarray of shape (K,)
    value : float
        The objective (1).
    loss : float
        Its first term: half the deviance of a family.
    gap : float
        Bound (2) or (3), or the decrement of the last Newton step where neither holds (`kind` is then "local").
    kind : str
    half_inverse : ndarray of shape (p K, rank), or None
        F with F F' = H^+ at the answer, about the origin; None when no Hessian was formed there.
    free : ndarray of shape (p K, p K - rank), or None
        N with H N = 0: what the data leave free.
    origin : ndarray of shape (d,)
    rank : int
    largest : ndarray of shape (d,), or None
        The largest |x_j - o_j|.
    zeros : ndarray of shape (K, d), or None
        Slopes that are zero in every minimiser, under an L1 penalty.
    """

    coef: Array
    intercept: Array
    value: float
    loss: float
    gap: float
    kind: str
    weight: float
    n_iter: int
    converged: bool
    status: str
    trace: tuple[float, ...]
    origin: Array
    half_inverse: Array | None = None
    rank: int = 0
    free: Array | None = None
    largest: Array | None = None
    zeros: Array | None = None

    @property
    def settled(self) -> bool:
        """Whether the solver ended as asked, or where rounding ended it with nothing to speak of left to gain."""
        much = self.gap > 1e-6 * abs(self.value) + 1e-14 * self.weight
        return self.converged or not (self.status == "max_iter" or much)

    def at(self, problem: GlmProblem, order: int = 1, *, expected: bool = False) -> At:
        """The answer as a point where a pass sums."""
        theta = point_of(self.coef, self.intercept, self.origin, problem.intercept).reshape(len(self.coef), -1).T
        return At(problem.loss, self.origin, theta, problem.intercept, order, expected, problem.class_weight)


class Curved(NamedTuple):
    """The Hessian of J at a point, and the largest |x_j - o_j| of the rows."""

    x: Array
    hessian: Array
    factor: Factor
    largest: Array


class Objective:
    """J on the rows of a run, of the parameters as one vector, output by output; remembers the last sums."""

    def __init__(self, run: Run, problem: GlmProblem, origin: Array) -> None:
        self.run, self.problem, self.origin = run, problem, origin
        self.first = int(problem.intercept)
        self.p = self.first + run.source.n_features
        self.support = problem.family
        self.stop = False  # whether a callback asked to stop
        self.sums: Slopes | None = None
        self.seen: tuple[Array, Local] | None = None  # the last point
        self.curved: Curved | None = None  # the last one with a Hessian
        self.largest: Array | None = None
        self.free: Any = slice(None)  # parameters that a Hessian is of

    def theta(self, x: Array) -> Array:
        """The vector as a matrix of shape (p, K)."""
        return np.ascontiguousarray(x.reshape(self.problem.outputs, self.p).T)

    def at(self, x: Array, order: int) -> At:
        problem = self.problem
        point = At(
            problem.loss,
            self.origin,
            self.theta(x),
            problem.intercept,
            order,
            not problem.loss.convex,
            problem.class_weight,
            self.support,
            extent=order == 2 and self.largest is None and not problem.l1,
        )
        self.support = None  # one look at the targets is enough
        return point

    def __call__(self, x: Array, order: int) -> Local:
        problem = self.problem
        sums = self.sum(x, order)
        self.stop = self.run.step() or self.stop
        self.sums = sums
        penalised = self.penalised(x)
        value = sums.value + problem.penalty / 2 * float(penalised @ penalised)
        gradient = sums.slope.T.ravel() + problem.penalty * penalised
        hessian = sums.hessian
        if hessian is not None:
            hessian = hessian + np.diag(problem.penalty * self.penalised(np.ones(len(x)))[self.free])
            if not np.isfinite(hessian).all():
                return Local(np.inf, gradient, hessian, None if self.curved is None else self.curved.factor)
            self.largest = sums.largest if self.largest is None else self.largest
            if not problem.l1:
                self.curved = Curved(x.copy(), hessian, self.factor(hessian), self.largest)
        known = None if hessian is None or self.curved is None else self.curved.factor
        here = Local(value, gradient, hessian, known)
        self.seen = x.copy(), here
        return here

    def sum(self, x: Array, order: int) -> Slopes:
        """The sums over the rows at x."""
        return self.run.sum(Slopes, self.at(x, order), "Newton step" if order == 2 else "gradient")

    def decrement(self, x: Array) -> float:
        """What a Newton step from x would still give, if a Hessian is affordable; else infinity."""
        if not self.affordable():
            return np.inf
        here = self(x, 2)
        assert self.curved is not None
        return max(float(here.gradient @ self.curved.factor.solve(here.gradient)) / 2, 0.0)

    def affordable(self) -> bool:
        """Whether a Hessian of all rows is worth its cost."""
        return _newton_affordable(self.run.source.n_rows, self.p, self.problem)

    def penalised(self, x: Array) -> Array:
        """The parameters with the intercepts set to 0."""
        theta = x.reshape(self.problem.outputs, self.p).copy()
        theta[:, : self.first] = 0.0
        return theta.ravel()

    def factor(self, H: Array) -> Factor:
        """Factor a Hessian; directions that softmax cannot see get a curvature, so that nothing moves along them."""
        K = self.problem.outputs
        if K > 1:
            H = H.copy().reshape(K, self.p, K, self.p)
            for j in range(self.p):
                H[:, j, :, j] += np.mean([H[k, j, k, j] for k in range(K)])
            H = H.reshape(K * self.p, K * self.p)
        with solving(len(H)):
            return Factor.of(H)


def solve(
    run: Run,
    problem: GlmProblem,
    offer: Callable[[Callable[[], GlmFit]], None] | None = None,
    start: tuple[Array, Array] | None = None,
) -> GlmFit:
    """Minimise (1) on the rows of a run.

    `offer` is given a function that returns the fit so far, at each point that a later pass would improve; `start` are
    intercepts and slopes to begin with.
    """
    run.keep_rows()
    source = run.source
    # Models through the origin stay about 0, and so do sparse rows unless they lie far from there.
    d, first = source.n_features, int(problem.intercept)
    origin = run.origin()[:d] if problem.intercept else np.zeros(d)
    if start is None:
        x, rough = _start(run, problem, origin, source.n_rows)
    else:
        x, rough = point_of(start[1], start[0], origin, problem.intercept), None
    objective = Objective(run, problem, origin)

    def told(x: Array, here: Local, decrement: float) -> bool:
        if offer is not None and objective.sums is not None:
            stopped, now = Solution(x, here.value, decrement, "stopped", False, 0), copy.copy(objective)
            offer(lambda: _named(now, stopped, decrement, "local", None, exact=False))
        return objective.stop

    if objective.affordable():
        bounds = _bounds(problem, first)
        with solving(len(x)):
            solution = newton(
                objective,
                x,
                tolerance=problem.tolerance,
                max_steps=problem.max_steps,
                bounds=bounds,
                rounding=_ROUNDING[source.dtype.name],
                on_step=told,
            )
    else:
        solution = _by_lbfgs(objective, x, rough, told)
    if objective.stop:
        solution = replace(solution, status="stopped", converged=False)
    if not np.isfinite(solution.value):
        raise DataError("The loss is infinite at every start; scale the columns, or choose another link.")
    if problem.penalty == 0 and problem.low is None:
        solution = replace(solution, x=_shortest(objective, solution))
    return _finished(objective, solution)


def _shortest(objective: Objective, solution: Solution) -> Array:
    """The same fit with the shortest slopes, where the data leave some directions free."""
    x: Array = solution.x
    curved = objective.curved
    free = np.empty((len(x), 0)) if curved is None else curved.factor.null_space()
    if not free.shape[1]:
        return x
    slopes = objective.penalised(np.ones(len(x))) > 0
    shorter = np.asarray(x - free @ np.linalg.lstsq(free[slopes], x[slopes])[0])
    # Directions of almost no curvature, as near an infinite answer, are not free: there the value tells.
    value = objective(shorter, 1).value
    assert objective.sums is not None
    return shorter if value <= solution.value + 1e-12 * abs(solution.value) + 1e-14 * objective.sums.weight else x


def _newton_affordable(rows: int, p: int, problem: GlmProblem) -> bool:
    pairs = problem.outputs * (problem.outputs + 1) / 2
    return p * problem.outputs <= WIDE and (problem.outputs == 1 or rows * p * p * pairs <= _NEWTON_WORK)


def _bounds(problem: GlmProblem, first: int) -> Bounds | None:
    if problem.low is None or problem.high is None:
        return None
    return Bounds(np.append(np.full(first, -np.inf), problem.low), np.append(np.full(first, np.inf), problem.high))


# --------------------------------------------------------------------------------------------------------------- start


def _start(run: Run, problem: GlmProblem, origin: Array, rows: int) -> tuple[Array, Factor | None]:
    """A point near the answer and the factor of a rough Hessian (None: there is none), from the leading rows."""
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
    part = problem._replace(penalty=problem.penalty / share, tolerance=_ROUGH, max_steps=8, family=None)
    objective = Objective(few, part, origin)
    if _newton_affordable(rows, p, problem) or rough is None:
        solution = newton(
            objective,
            x,
            tolerance=_ROUGH,
            max_steps=8,
            bounds=_bounds(problem, int(problem.intercept)),
            rounding=_ROUNDING[run.source.dtype.name],
        )
    else:
        solution = _by_lbfgs(objective, x, rough, None)
    if not np.isfinite(solution.value):
        return x, None
    if _newton_affordable(rows, p, problem):
        return solution.x, None
    H = objective(solution.x, 2).hessian
    assert H is not None
    return solution.x, objective.factor(H * share)


def representative(few: Run, problem: GlmProblem) -> bool:
    """Whether leading rows can tell: every class is among them, and the targets vary."""
    chunk = few.source.chunk(0, few.source.n_rows)
    values = chunk.target if chunk.weight is None else chunk.target[chunk.weight > 0]
    classes = problem.outputs if problem.outputs > 1 else 2
    values, counts = np.unique(values, return_counts=True)
    if problem.family is not None:
        return len(values) > 1
    return len(values) >= classes and bool(counts.min() >= 10)


def first_guess(run: Run, problem: GlmProblem, rows: int) -> Array:
    """No slopes, and an intercept that fits the mean; through the origin, a least-squares fit of the link of y."""
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


# -------------------------------------------------------------------------------------------------------------- L-BFGS


class _Whole:
    """A preconditioner from a factored Hessian."""

    def __init__(self, factor: Factor) -> None:
        self._F = factor.half_inverse()  # H0^-1 = F F'

    def away(self, u: Array) -> Array:
        return np.asarray(self._F @ u)

    def back(self, g: Array) -> Array:
        return np.asarray(self._F.T @ g)


class _Blocks:
    """A preconditioner with one block for each output."""

    def __init__(self, blocks: list[Array]) -> None:
        self._blocks = blocks

    def away(self, u: Array) -> Array:
        parts = u.reshape(len(self._blocks), -1)
        return np.concatenate([F @ part for F, part in zip(self._blocks, parts, strict=True)])

    def back(self, g: Array) -> Array:
        parts = g.reshape(len(self._blocks), -1)
        return np.concatenate([F.T @ part for F, part in zip(self._blocks, parts, strict=True)])


class _Scales:
    """A preconditioner from the diagonal."""

    def __init__(self, diagonal: Array) -> None:
        self._size = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))

    def away(self, u: Array) -> Array:
        return np.asarray(self._size * u)

    def back(self, g: Array) -> Array:
        return np.asarray(self._size * g)


def _preconditioner(objective: Objective, x: Array, rough: Factor | None) -> Any:
    if rough is not None:
        return _Whole(rough)
    problem, run = objective.problem, objective.run
    penalty = problem.penalty * objective.penalised(np.ones(len(x)))
    if objective.p > WIDE:
        diagonal = run.sum(Diagonal, objective.at(x, 1), "diagonal").diagonal.T.ravel()
        return _Scales(diagonal + penalty)
    # The Gram matrix, times what the curvature of each output is on average.
    squares = At(Squared(), objective.origin, np.zeros((objective.p, 1)), problem.intercept, 2)
    gram = run.sum(Slopes, squares, "Gram matrix")
    assert gram.hessian is not None
    assert objective.sums is not None
    inner = np.maximum(np.diag(objective.sums.inner) / gram.weight, 1e-6)
    per_output = penalty.reshape(problem.outputs, objective.p)
    factors = (Factor.of(c * gram.hessian + np.diag(mine)) for c, mine in zip(inner, per_output, strict=True))
    return _Blocks([factor.half_inverse() for factor in factors])


def _by_lbfgs(objective: Objective, x: Array, rough: Factor | None, told: Any) -> Solution:
    problem = objective.problem
    first = objective(x, 1)
    if not np.isfinite(first.value):
        return Solution(x, np.inf, np.inf, "unbounded", False, 0)
    start, M = x, _preconditioner(objective, x, rough)

    def evaluate(x: Array) -> tuple[float, Array]:
        here = first if x is start else objective(x, 1)
        return here.value, here.gradient

    def enough(x: Array, value: float, gradient: Array) -> bool:
        left = M.back(gradient)
        decrement = float(left @ left) / 2
        stop = told is not None and told(x, Local(value, gradient), np.inf)  # (no bound is known here)
        return bool(stop or decrement <= problem.tolerance * abs(value))

    return lbfgs(evaluate, x, M, enough=enough, max_steps=max(problem.max_steps, 1))


# ------------------------------------------------------------------------------------------------------------ how good


def gap_bounds(
    x: Array, gradient: Array, inner: Array, problem: GlmProblem, curved: Curved | None, diagonal: Array
) -> float:
    """The smaller of (2) and (3); infinite when neither holds.

    `inner` is the block of H of the intercepts at x, `curved` a Hessian there or near, `diagonal` that of H.
    """
    if not problem.loss.self_concordant or problem.low is not None:
        return np.inf
    bounds = [np.inf]
    if curved is not None and curved.factor.cholesky is not None:
        factor, moved = curved.factor, x - curved.x
        size = np.concatenate([np.ones(int(problem.intercept)), curved.largest])
        widths = np.tile(size, problem.outputs) / factor.scale
        R = np.sqrt((2.0 if problem.outputs > 1 else 1.0) * float(widths @ widths) / factor.smallest)
        growth = np.exp(min(R * np.sqrt(max(moved @ curved.hessian @ moved, 0.0)), 700.0))
        nu = np.sqrt(max(float(gradient @ factor.solve(gradient)), 0.0) * growth)
        if R * np.sqrt(growth) * nu <= 0.5:
            bounds.append(float(nu**2) + _alike(gradient, problem))
    if problem.penalty > 0:
        bounds.append(_strong_bound(gradient, inner, problem, diagonal))
    return float(min(bounds))


def _alike(gradient: Array, problem: GlmProblem) -> float:
    """What is lost in slopes that are alike for all classes: softmax cannot see them, there J is the penalty alone."""
    if problem.outputs == 1 or problem.penalty == 0:
        return 0.0
    g = gradient.reshape(problem.outputs, -1)[:, int(problem.intercept) :].sum(axis=0)
    return float(g @ g) / (2 * problem.outputs * problem.penalty)


def _strong_bound(gradient: Array, inner: Array, problem: GlmProblem, diagonal: Array) -> float:
    """Bound (3)."""
    first, several = int(problem.intercept), problem.outputs > 1
    g = gradient.reshape(problem.outputs, -1)
    slope = float(np.linalg.norm(g[:, first:]))
    if not first:
        return slope**2 / (2 * problem.penalty)
    factor = Factor.of(inner + (inner.trace() if several else 0.0))  # all intercepts alike: softmax cannot see that
    nu = np.sqrt(max(float(g[:, 0] @ factor.solve(g[:, 0])), 0.0))
    least = factor.smallest * float(np.square(factor.scale).min())
    if not (np.sqrt(2.0) if several else 1.0) * nu <= 0.5 * np.sqrt(least):
        return np.inf
    spread = float(diagonal.reshape(problem.outputs, -1)[:, first:].sum())
    return float(nu**2 + (slope + np.e * np.sqrt(spread) * nu) ** 2 / (2 * problem.penalty))


def judge(objective: Objective, x: Array) -> tuple[Local, float]:
    """The objective at x and the bound on how far it is from the least; what was computed there before is used."""
    problem = objective.problem
    if objective.seen is None or not np.array_equal(objective.seen[0], x):
        objective(x, 2 if objective.curved is not None else 1)
    assert objective.seen is not None
    assert objective.sums is not None
    here, curved = objective.seen[1], objective.curved
    if curved is not None:
        diagonal = np.diag(curved.hessian)
    elif problem.penalty > 0:
        diagonal = objective.run.sum(Diagonal, objective.at(x, 1), "diagonal").diagonal.T.ravel()
    else:
        diagonal = np.zeros(len(x))
    with solving(len(x)):
        return here, gap_bounds(x, here.gradient, objective.sums.inner, problem, curved, diagonal)


def _finished(objective: Objective, solution: Solution) -> GlmFit:
    """Judge the point reached; unpenalised fits get their Hessian there, for inference."""
    problem, x = objective.problem, solution.x
    fresh = objective.curved is not None and np.array_equal(objective.curved.x, x)
    if problem.penalty == 0 and not fresh and objective.affordable():
        objective(x, 2)
    here, gap = judge(objective, x)
    kind = "global"
    if not np.isfinite(gap):
        kind, gap = "local", float(abs(solution.gap))
    curved = objective.curved
    factor = curved.factor if curved is not None and np.array_equal(curved.x, x) else None
    return _named(objective, replace(solution, value=here.value), gap, kind, factor)


def _named(
    objective: Objective, solution: Solution, gap: float, kind: str, factor: Factor | None, *, exact: bool = True
) -> GlmFit:
    problem = objective.problem
    point = returned(objective, solution.x, solution.value, gap, exact=exact)
    assert objective.sums is not None
    return GlmFit(
        coef=point.coef,
        intercept=point.intercept,
        value=point.value,
        loss=objective.sums.value,
        gap=point.gap,
        kind=kind,
        weight=objective.sums.weight,
        n_iter=solution.n_steps,
        converged=solution.converged,
        status=solution.status,
        trace=solution.trace,
        origin=objective.origin,
        half_inverse=None if factor is None or problem.penalty > 0 else factor.half_inverse(),
        rank=0 if factor is None else factor.rank,
        free=None if factor is None or problem.penalty > 0 else factor.null_space(),
        largest=None if objective.curved is None else objective.curved.largest,
    )
