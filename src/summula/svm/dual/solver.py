"""The dual problem of SVC, SVR and OneClassSVM, and its solution by large working sets.

    minimise    1/2 beta'K beta + q'beta
    subject to  low <= beta <= high,   sum beta = total (with an intercept)                                     (1)

where beta carries the sign of its class, so that f(x) = sum_i beta_i k(x_i, x) + b throughout:

    SVC          q_i = -y_i,          beta_i y_i from 0 to C_i,    total 0
    SVR          two variables per row: q = epsilon - y from 0 to C, and q = -epsilon - y from -C to 0; total 0
    OneClassSVM  q_i = 0,             beta_i from 0 to w_i,        total nu sum w

With the slope f = K beta + q, beta is optimal exactly when there is a rho with f_i >= rho where beta_i can grow and
f_i <= rho where it can shrink (KKT); rho = -b. The violation

    max {f_i : beta_i > low_i} - min {f_i : beta_i < high_i}                                                     (2)

is bounded by `tol`. Each round selects several hundred variables that violate (2) most, on both sides, and some of the
previous round, solves (1) for these with all others fixed (`smo_kernels.py`), and updates f by the rows of K whose beta
has changed: large matrix products instead of two rows at a time. Variables that are at a bound and far from leaving it
are excluded temporarily (shrinking); before the end their slopes are recomputed and they are checked again.

Joachims (1999), Making large-scale SVM learning practical. Wen et al. (2018), ThunderSVM: a fast SVM library on GPUs
and CPUs. Fan, Chen and Lin (2005), Working set selection using second order information.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.data.layout.blocks import product
from summula.core.numerics.exact import dot
from summula.kernels.rows import far_columns_of, rows_of
from summula.svm.dual.kernel_matrix import KernelMatrix

__all__ = [
    "DualPoint",
    "DualProblem",
    "LinearWeights",
    "Options",
    "Rounds",
    "intercept_of",
    "linear_objectives",
    "objectives",
    "solve_dual",
    "violation_of",
    "weighted_sum",
]

Array = NDArray[Any]
Index = NDArray[np.intp]

_BLOCK = 64  # working sets are padded to a multiple of this
_MOST = 50_000  # maximum number of steps per kernel call, after which Ctrl-C and time limits take effect
_IDLE = 20  # number of rounds without progress after which the solver stops
_ROUNDING = 1e-15  # relative to the objective: a smaller decrease is not progress
_UNBOUNDED = 1e12  # objective of a hard margin above which the data are not separable
_SHRINK_AFTER = 8  # rounds
_SHRINK_SHARE = 0.3  # fraction of the variables: excluding fewer is not worth the copying
_SUMMED_ROWS = 1_024  # rows converted at a time for a sum in extended precision


class DualProblem(NamedTuple):
    """The problem (1) without K; variable k refers to row `row[k]` of K."""

    q: Array
    low: Array
    high: Array
    row: Index
    total: float = 0.0
    intercept: bool = True


@dataclass(frozen=True)
class DualPoint:
    """Result of the solver: beta, the slope f, the violation (2), and the number of steps.

    Weights of columns are included if they are more accurate than those computed from beta (linear kernels,
    `direct.py`), and the intercept if it is not determined by variables strictly within their bounds.
    """

    beta: Array
    f: Array
    violation: float
    steps: int
    converged: bool
    status: str
    weights: LinearWeights | None = None
    intercept: float | None = None


class LinearWeights(NamedTuple):
    """A linear function w'x + b, and its objectives: the primal of (w, b), and the dual of beta."""

    coef: Array
    intercept: float
    primal: float
    dual: float


class Options(NamedTuple):
    """Solver options: tolerance of (2), maximum number of steps (-1: any number), size of working sets, shrinking.

    After `patience` steps (-1: none), or `most_work` (number of values summed in steps and rows of K), the solver stops
    with the status "slow", so that another one can take over.
    """

    tolerance: float
    max_steps: int = -1
    working_set: int = 1_024
    shrinking: bool = True
    patience: int = -1
    most_work: float = np.inf


def violation_of(problem: DualProblem, beta: Array, f: Array) -> float:
    """Return the violation (2); without an intercept, the largest slope against which a variable can move."""
    least, most = _extremes(problem, beta, f)
    return max(most - least, 0.0) if problem.intercept else max(most, -least, 0.0)


def _extremes(problem: DualProblem, beta: Array, f: Array) -> tuple[float, float]:
    """Return the smallest slope of a variable that can grow, and the largest of one that can shrink."""
    least = np.where(beta < problem.high, f, np.inf).min(initial=np.inf)
    most = np.where(beta > problem.low, f, -np.inf).max(initial=-np.inf)
    return float(least), float(most)


def intercept_of(problem: DualProblem, beta: Array, f: Array) -> float:
    """Return b = -rho: the mean of -f over variables between their bounds, else the midpoint of the KKT interval."""
    if not problem.intercept:
        return 0.0
    free = (beta > problem.low) & (beta < problem.high)
    if free.any():
        return -float(f[free].mean())
    least, most = _extremes(problem, beta, f)
    if not np.isfinite(least) or not np.isfinite(most):
        return -(least if np.isfinite(least) else most if np.isfinite(most) else 0.0)
    return -(least + most) / 2


def objectives(problem: DualProblem, beta: Array, f: Array, intercept: float) -> tuple[float, float]:
    """Return the primal objective of f(x) = sum beta k(x_i, x) + b, and the dual objective of beta.

        primal  1/2 beta'K beta + sum_k max over t from low_k to high_k of -(f_k + b) t,  + b total
        dual    -1/2 beta'K beta - q'beta

    The maximum is high max(-(f + b), 0) - low max(f + b, 0): C times the hinge loss for SVC, and the
    epsilon-insensitive loss for SVR. If it is infinite (a hard margin), the weights are first scaled up to satisfy the
    margin.
    """
    square, linear = float(beta @ (f - problem.q)), float(problem.q @ beta)
    return _primal(problem, square, f + intercept, intercept), -0.5 * square - linear


def _primal(problem: DualProblem, square: float, s: Array, intercept: float) -> float:
    """Return the primal objective of weights with this squared length, and the slopes f + b."""
    if not np.isfinite(problem.high - problem.low).all():
        # A hard margin, and q = -y: the margin of a row is 1 - y (f + b).
        margin = float((problem.q * (problem.q - s)).min())
        return 0.5 * square / margin**2 if margin > 0 else np.inf
    with np.errstate(over="ignore"):
        loss = float(problem.high @ np.maximum(-s, 0.0) - problem.low @ np.maximum(s, 0.0))
    return 0.5 * square + loss + intercept * problem.total


def linear_objectives(problem: DualProblem, X: Any, beta: Array, coef: Array, intercept: float) -> tuple[float, float]:
    """Return the same for a linear kernel: the primal of weights w, and the dual of beta.

    With sum beta = 0 the dual is the same for rows about any origin; the mean is used. Scores are those of exact
    arithmetic also for columns far from 0, where x'w + b loses digits.
    """
    far = far_columns_of(X)
    if far is None:
        s = np.asarray(X @ coef)[problem.row] + problem.q + intercept
    else:
        lead = dot(far, coef, intercept)
        s = np.asarray(rows_of(X, far).X @ coef)[problem.row] + problem.q + lead
    balanced = problem.intercept and not problem.total
    origin = np.asarray(X.mean(axis=0, dtype=np.float64)).reshape(-1) if balanced else np.zeros(X.shape[1])
    inner = weighted_sum(X, np.bincount(problem.row, beta, X.shape[0]), origin)
    primal = _primal(problem, float(coef @ coef), s, intercept)
    return primal, -0.5 * float(inner @ inner) - float(problem.q @ beta)


def weighted_sum(X: Any, weight: Array, origin: Array) -> Array:
    """Return the sum of w_i (x_i - o) over dense or sparse rows, in extended precision.

    With large costs and columns of different scales it is a small difference of large sums.
    """
    used, total = np.flatnonzero(weight), np.zeros(X.shape[1], np.longdouble)
    for a in range(0, len(used), _SUMMED_ROWS):
        some = used[a : a + _SUMMED_ROWS]
        rows = X[some]
        dense = np.asarray(rows.toarray() if hasattr(rows, "indptr") else rows)
        total += ((dense.astype(np.longdouble) - origin) * weight[some, None]).sum(axis=0)
    return total.astype(np.float64)


def solve_dual(
    K: KernelMatrix,
    problem: DualProblem,
    options: Options,
    *,
    start: Array | None = None,
    on_round: Callable[[Rounds], bool] | None = None,
) -> DualPoint:
    """Solve (1) from a feasible start (0 by default); `on_round` is called after every round, and stops if True."""
    rounds = Rounds(K, problem, options, np.zeros(len(problem.q)) if start is None else start.copy())
    while rounds.status == "running":
        rounds.once()
        if on_round is not None and rounds.status == "running" and on_round(rounds):
            rounds.status = "stopped"
    return rounds.point()


class Rounds:
    """State of the rounds of the solver: beta and f of the active variables, and g = K beta of their rows."""

    def __init__(self, K: KernelMatrix, problem: DualProblem, options: Options, beta: Array) -> None:
        self.K, self.whole, self.options = K, problem, options
        self.problem, self.beta, self.all_beta = problem, beta, beta
        self.active: Index | None = None  # active variables; None: all
        self.g = np.zeros(K.n)
        self.steps, self.count, self.idle, self.patience = 0, 0, 0, _SHRINK_AFTER
        self.work = 0.0
        self.last = np.zeros(0, np.intp)
        self.gained, self.status = 0.0, "running"
        self._apply(np.flatnonzero(beta), beta[beta != 0])
        self.violation = violation_of(problem, beta, self.f)

    def once(self) -> None:
        """Run one round, or end; return the status."""
        options = self.options
        if self.violation <= options.tolerance:
            if self.active is None:
                self.status = "converged"
            else:
                self._expand()
            return
        if 0 <= options.max_steps <= self.steps:
            self.status = "max_iter"
            return
        if 0 <= options.patience <= self.steps or self.work > options.most_work:
            self.status = "slow"
            return
        chosen = _working_set(self.problem, self.beta, self.f, self.last, options.working_set)
        gain = self._improve(chosen)
        self.last, self.count, self.gained = chosen, self.count + 1, self.gained + gain
        self.violation = violation_of(self.problem, self.beta, self.f)
        self.idle = self.idle + 1 if gain <= _ROUNDING * abs(self.gained) else 0
        if self.idle >= _IDLE:
            self.status = "stalled"
        elif self.gained > _UNBOUNDED and not np.isfinite(self.problem.high).all():
            self.status = "unbounded"
        elif options.shrinking and self.count >= self.patience:
            self._shrink()

    def point(self) -> DualPoint:
        """Return the current point, with all variables."""
        self._expand()
        converged = self.violation <= self.options.tolerance
        return DualPoint(self.beta, self.f, self.violation, self.steps, converged, self.status)

    def _apply(self, variables: Index, change: Array) -> None:
        """Update g and f after a change of some variables."""
        rows = self.problem.row[variables]
        one_each = len(self.problem.q) == self.K.n
        if not one_each:
            rows, inverse = np.unique(rows, return_inverse=True)
            change = np.bincount(inverse, change, len(rows))
        if len(rows):
            self.K.add_products(rows, change, self.g)
        self.f = (self.g if one_each else self.g[self.problem.row]) + self.problem.q

    def _improve(self, chosen: Index) -> float:
        """Solve the problem of some variables with all others fixed; return the decrease of the objective."""
        from summula.svm.dual.smo_kernels import descend_pairs, descend_singles

        problem, options, n = self.problem, self.options, len(chosen)
        size = -(-n // _BLOCK) * _BLOCK
        local = self.K.among(problem.row[chosen], size)
        f, beta, low, high = (np.zeros(size) for _ in range(4))
        f[:n], beta[:n], low[:n], high[:n] = (
            self.f[chosen],
            self.beta[chosen],
            problem.low[chosen],
            problem.high[chosen],
        )
        whole = n == len(self.whole.q)  # no other variables change, so there is no reason to stop early
        tolerance = options.tolerance if whole else max(0.1 * self.violation, 0.5 * options.tolerance)
        most = _MOST if options.max_steps < 0 else min(_MOST, options.max_steps - self.steps)
        descend = descend_pairs if problem.intercept else descend_singles
        steps = int(descend(local, f, beta, low, high, tolerance, most)[0])
        change = beta[:n] - self.beta[chosen]
        moved = np.flatnonzero(change)
        self.steps += steps
        self.work += float(steps) * size + (float(self.K.n) * len(moved) + float(size) * n) * self.K.price
        before = self.f[chosen[moved]]
        self.beta[chosen] = beta[:n]
        if whole and n == self.K.n:
            self.g += product(local, np.append(change, np.zeros(size - n)))[:n]
            self.f = self.g + problem.q
        else:
            self._apply(chosen[moved], change[moved])
        # The objective is quadratic: it changes by the mean of both slopes.
        return -0.5 * float(change[moved] @ (before + self.f[chosen[moved]]))

    def _shrink(self) -> None:
        """Exclude variables that are at a bound and unlikely to leave it, if there are many."""
        self.patience = self.count + _SHRINK_AFTER
        least, most = _extremes(self.problem, self.beta, self.f)
        if not self.problem.intercept:
            least, most = min(least, 0.0), max(most, 0.0)
        asleep = (self.beta == self.problem.low) & (self.f > most) | (self.beta == self.problem.high) & (self.f < least)
        awake = np.flatnonzero(~asleep)
        if asleep.sum() < _SHRINK_SHARE * len(asleep) or len(awake) < self.options.working_set:
            return
        rows = np.unique(self.problem.row[awake])
        new_row = np.zeros(self.K.n, np.intp)
        new_row[rows] = np.arange(len(rows))
        if self.active is None:
            self.all_beta = self.beta
        else:
            self.all_beta[self.active] = self.beta
        self.active = awake if self.active is None else self.active[awake]
        given = self.problem
        self.problem = given._replace(
            q=given.q[awake], low=given.low[awake], high=given.high[awake], row=new_row[given.row[awake]]
        )
        self.K.restrict(rows)
        self.beta, self.f, self.g = self.beta[awake], self.f[awake], self.g[rows]
        place = np.full(len(asleep), -1, np.intp)
        place[awake] = np.arange(len(awake))
        self.last = place[self.last][place[self.last] >= 0]

    def _expand(self) -> None:
        """Include all variables again; slopes of excluded ones are recomputed."""
        if self.active is None:
            return
        self.all_beta[self.active] = self.beta
        rows = np.unique(self.whole.row[self.active])
        kept, self.g = self.g, np.zeros(len(np.unique(self.whole.row)))
        self.K.expand()
        support = np.bincount(self.whole.row, self.all_beta, self.K.n)
        others = np.setdiff1d(np.arange(self.K.n), rows)
        self.g[rows], nonzero = kept, np.flatnonzero(support)
        self.g[others] = self.K.products(nonzero, support[nonzero], others)
        self.problem, self.beta, self.active = self.whole, self.all_beta, None
        self._apply(np.zeros(0, np.intp), np.zeros(0))
        self.violation = violation_of(self.problem, self.beta, self.f)
        self.last, self.patience = np.zeros(0, np.intp), self.count + _SHRINK_AFTER


def _working_set(problem: DualProblem, beta: Array, f: Array, last: Index, size: int) -> Index:
    """Return the worst violators, half of them able to grow, with half of the previous set."""
    n = len(f)
    if n <= size:
        return np.arange(n)
    used = np.zeros(n, bool)
    kept = last[len(last) // 2 :]
    used[kept] = True
    new = (size - len(kept)) // 2
    parts = [kept]
    for can_move, slope in ((beta < problem.high, f), (beta > problem.low, -f)):
        key = np.where(can_move & ~used, slope, np.inf)
        found = np.argpartition(key, new)[:new]
        found = found[key[found] < np.inf]
        used[found] = True
        parts.append(found)
    return np.concatenate(parts)
