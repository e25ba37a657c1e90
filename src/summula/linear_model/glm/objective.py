"""The problem of a generalised linear model, and its objective as a function of one vector.

    J(b, V) = sum_i w_i l(y_i, b + V'x_i + offset_i) + lambda/2 ||V||^2                                        (1)

An `Objective` evaluates J on the rows of a run, about an origin: value, gradient and optionally the Hessian, in one
pass. The results of the last evaluations are stored in its `state`, so that certificates need not recompute them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from summula.core.engine.threads import solving
from summula.core.model_files import schema
from summula.linear_model.glm.bounds.returned import Returned, point_of
from summula.linear_model.glm.sums import At, Slopes
from summula.losses import Loss
from summula.optimize.solvers.newton_method import Bounds, Factor, Local
from summula.penalties import Penalty

if TYPE_CHECKING:
    from summula.core.estimator.run import Run
    from summula.core.numerics.solution import Solution

__all__ = [
    "WIDE",
    "Curved",
    "GlmFit",
    "GlmProblem",
    "Objective",
    "Offer",
    "Start",
    "State",
    "bounds_of",
    "hessian_affordable",
    "origin_of",
]

Array = NDArray[Any]

WIDE = 2_048  # maximum number of parameters of one output for which a Hessian is formed
_NEWTON_WORK = 3e9  # maximum rows x columns^2 x pairs of outputs for which a Hessian of all rows is computed


class GlmProblem(NamedTuple):
    """Definition of the problem (1): loss, penalty, constraints, and tolerances."""

    loss: Loss
    regulariser: Penalty  # relative to the sum over rows
    intercept: bool
    outputs: int = 1
    class_weight: Array | None = None
    low: Array | None = None  # bounds on the slopes
    high: Array | None = None
    tolerance: float = 1e-10
    max_steps: int = 100
    link: Any = None  # determines the initial intercept
    family: Any = None  # checks the targets

    @property
    def penalised(self) -> bool:
        """Whether there is any penalty."""
        return not self.regulariser.is_zero

    @property
    def penalty(self) -> float:
        """lambda of (1)."""
        return self.regulariser.l2

    @property
    def l1(self) -> float:
        """a of `l1/likelihood.py`."""
        return self.regulariser.l1


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
    lost=schema.Array("float64", "n_scores", finite=False) | None,
)
@dataclass(frozen=True)
class GlmFit:
    """Result of a fit.

    Attributes
    ----------
    coef : ndarray of shape (K, d)
    intercept : ndarray of shape (K,)
    value : float
        Objective (1).
    loss : float
        First term of (1): half the deviance of a family.
    gap : float
        A bound of `glm/bounds/gap.py`, or the last Newton decrement if none applies (`kind` is then "local").
    kind : str
    half_inverse : ndarray of shape (p K, rank), or None
        F with F F' = H^+ at the solution, about the origin; None if no Hessian was formed there.
    free : ndarray of shape (p K, p K - rank), or None
        N with H N = 0: directions that the data do not determine.
    origin : ndarray of shape (d,)
    rank : int
    largest : ndarray of shape (d,), or None
        Largest |x_j - o_j|.
    zeros : ndarray of shape (K, d), or None
        Slopes that are zero in every minimiser, with an L1 penalty.
    lost : ndarray of shape (K,), or None
        What the intercepts lost by rounding, as in `GlmCertificate`.
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
    lost: Array | None = None

    @classmethod
    def of(
        cls, objective: Objective, point: Returned, solution: Solution, kind: str, loss: float, weight: float
    ) -> Self:
        """Return the result at a point; `loss` and `weight` are summed over the rows."""
        return cls(
            coef=point.coef,
            intercept=point.intercept,
            value=point.value,
            loss=loss,
            gap=point.gap,
            kind=kind,
            weight=weight,
            n_iter=solution.n_steps,
            converged=solution.converged,
            status=solution.status,
            trace=solution.trace,
            origin=objective.origin,
            lost=point.lost,
        )

    @property
    def settled(self) -> bool:
        """Whether the solver converged, or was stopped by rounding with a negligible gap."""
        much = self.gap > 1e-6 * abs(self.value) + 1e-14 * self.weight
        return self.converged or not (self.status == "max_iter" or much)

    def at(self, problem: GlmProblem, order: int = 1, *, expected: bool = False) -> At:
        """Return the solution as a point of evaluation."""
        theta = point_of(self.coef, self.intercept, self.origin, problem.intercept).reshape(len(self.coef), -1).T
        return At(problem.loss, self.origin, theta, problem.intercept, order, expected, problem.class_weight)


Offer = Callable[[Callable[[], GlmFit]], None]  # receives a function that returns the fit so far
Start = tuple[Array, Array]  # initial intercepts and slopes


def origin_of(run: Run, problem: GlmProblem) -> Array:
    """Return the origin of the columns: 0 without an intercept, and for sparse rows unless they are far from 0."""
    d = run.source.n_features
    return run.origin()[:d] if problem.intercept else np.zeros(d)


class Curved(NamedTuple):
    """The Hessian of J at a point, and the largest |x_j - o_j| of the rows."""

    x: Array
    hessian: Array
    factor: Factor
    largest: Array


class State(NamedTuple):
    """Results of the evaluations of J so far: the last sums and point, and the last point with a Hessian."""

    sums: Slopes | None = None
    x: Array | None = None
    here: Local | None = None
    curved: Curved | None = None
    largest: Array | None = None  # |x_j - o_j|, from the first Hessian on

    def last(self) -> tuple[Slopes, Local]:
        """Return the sums and J at the last point."""
        assert self.sums is not None
        assert self.here is not None
        return self.sums, self.here

    def is_at(self, x: Array) -> bool:
        """Whether the last evaluation was at x."""
        return self.x is not None and np.array_equal(self.x, x)


class Objective:
    """J on the rows of a run, as a function of one parameter vector, output by output; `state` has the last results."""

    def __init__(self, run: Run, problem: GlmProblem, origin: Array) -> None:
        self.run, self.problem, self.origin = run, problem, origin
        self.first = int(problem.intercept)
        self.p = self.first + run.source.n_features
        self.support = problem.family
        self.stop = False  # whether a callback requested to stop
        self.state = State()
        self.free: Any = slice(None)  # parameters included in the Hessian

    def as_of_now(self) -> Objective:
        """Return an objective with the results so far, which further evaluations of this one do not change."""
        now = object.__new__(type(self))
        vars(now).update(vars(self))
        return now

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
            extent=order == 2 and self.state.largest is None and not problem.l1,
        )
        self.support = None  # the targets are checked once
        return point

    def __call__(self, x: Array, order: int) -> Local:
        problem = self.problem
        sums = self.sum(x, order)
        self.stop = self.run.step() or self.stop
        state = self.state = self.state._replace(sums=sums)
        penalised = self.penalised(x)
        value = sums.value + problem.penalty / 2 * float(penalised @ penalised)
        gradient = sums.slope.T.ravel() + problem.penalty * penalised
        hessian = sums.hessian
        if hessian is not None:
            if problem.penalty:
                hessian = hessian.copy()
                hessian.flat[:: len(hessian) + 1] += problem.penalty * self.penalised(np.ones(len(x)))[self.free]
            if not np.isfinite(hessian).all():
                return Local(np.inf, gradient, hessian, None if state.curved is None else state.curved.factor)
            largest = sums.largest if state.largest is None else state.largest
            curved = state.curved if problem.l1 else Curved(x.copy(), hessian, self.factor(hessian), largest)
            state = state._replace(largest=largest, curved=curved)
        known = None if hessian is None or state.curved is None else state.curved.factor
        here = Local(value, gradient, hessian, known)
        self.state = state._replace(x=x.copy(), here=here)
        return here

    def sum(self, x: Array, order: int) -> Slopes:
        """The sums over the rows at x."""
        # A pass takes much longer than a plain sum: the chunks of a single part are worth several threads.
        few = len(self.run.parts) == 1
        task = "Newton step" if order == 2 else "gradient"
        return self.run.sum(Slopes, self.at(x, order), task, by_chunk=few)

    def affordable(self) -> bool:
        """Whether a Hessian of all rows is affordable."""
        return hessian_affordable(self.run.source.n_rows, self.p, self.problem)

    def penalised(self, x: Array) -> Array:
        """The parameters with the intercepts set to 0."""
        theta = x.reshape(self.problem.outputs, self.p).copy()
        theta[:, : self.first] = 0.0
        return theta.ravel()

    def factor(self, H: Array) -> Factor:
        """Factor a Hessian; curvature is added in directions in which softmax is constant, so that steps avoid them."""
        K = self.problem.outputs
        if K > 1:
            blocks = H.reshape(K, self.p, K, self.p).copy()
            columns = np.einsum("kjlj->klj", blocks)  # a view
            columns += np.einsum("kkj->kj", columns).mean(axis=0)
            H = blocks.reshape(K * self.p, K * self.p)
        with solving(len(H)):
            return Factor.of(H)


def hessian_affordable(rows: int, p: int, problem: GlmProblem) -> bool:
    """Whether a Hessian is affordable for this number of rows and of parameters per output."""
    pairs = problem.outputs * (problem.outputs + 1) / 2
    return p * problem.outputs <= WIDE and (problem.outputs == 1 or rows * p * p * pairs <= _NEWTON_WORK)


def bounds_of(problem: GlmProblem) -> Bounds | None:
    """Return the bounds on all parameters of one output."""
    first = int(problem.intercept)
    if problem.low is None or problem.high is None:
        return None
    return Bounds(np.append(np.full(first, -np.inf), problem.low), np.append(np.full(first, np.inf), problem.high))
