"""The certificate of a least-squares fit, verified from the data by an orthogonal factorisation.

At the stated point (v, b) the objective is computed from residuals. Lower bounds: equation (6) or (7) of
`least_squares/solver.py` with H applied through a triangular factor of the rows; for sparse data too wide for that,

    P(v) - min P <= ||g||^2 / alpha                                                     (alpha > 0, P strongly convex)

and P(v) - min P <= P(v), as P is never negative. Rounding changes a residual by at most eps times the sum of the
magnitudes of its terms, so that the root of the weighted sum of squares changes by at most

    e = c eps (||y - o||_w + sum_j |v_j| ||x_j - o_j||_w + W^(1/2) |lead|),      |P' - P| <= e^2 + 2 e P^(1/2)       (8)

which matters if a few rows have nearly all of the weight: they are fitted up to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.engine.threads import solving
from summula.core.estimator.certificates import SummedCertificate
from summula.core.estimator.linear.factor_columns import LEVEL
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.core.numerics.certificate import Verification
from summula.core.numerics.exact import leads
from summula.core.numerics.statistics import TriangularFactor, triangle
from summula.linear_model.least_squares.orthogonal import lengths, solve_factor
from summula.linear_model.least_squares.problem import ROUNDINGS, Point, Problem, Residuals, penalty, residual_dtype
from summula.linear_model.least_squares.solver import SPARSE_GRAM_COLUMNS

__all__ = ["LeastSquaresCertificate"]

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_SUBNORMAL = float(np.finfo(np.float64).smallest_subnormal)  # rounding of squares that underflow


class Judged(NamedTuple):
    """Objective and gap at a point, and the bound (8) on the error of both by rounding."""

    primal: float
    gap: float
    rounding: float


@schema.saved(
    coef=schema.Array("float64", "n_features", "n_targets"),
    intercept=schema.Array("float64", "n_targets"),
    alpha=schema.Array("float64", "n_targets", low=0.0),
    fit_intercept=schema.Flag(),
    positive=schema.Flag(),
    scale=schema.Real(finite=False),
    unit=schema.Real(0.0),
    levels=schema.Maybe(schema.Dict(schema.Text(), schema.Items(LEVEL)) | None),
)
@dataclass(frozen=True)
class LeastSquaresCertificate(SummedCertificate):
    """Bound on the suboptimality of a least-squares fit.

    `coef` (n_features, n_targets), `intercept`, `alpha` (one per target) and `positive` define the point and the
    problem; `scale` is the total sum of squares of y, to which rounding errors are relative;
    `levels` are those of factors. The bound holds for the numerical rank of the columns: directions in which they vary
    by rounding of their values only are not searched.
    """

    coef: Array
    intercept: Array
    alpha: Array
    fit_intercept: bool
    positive: bool
    scale: float
    unit: float
    levels: dict[str, tuple[Any, ...]] | None = field(default=None, kw_only=True)

    _supervised = True

    def objective(self, run: Run) -> tuple[float, float]:
        """Objective and gap at the stated point, from sums over the rows of a run."""
        return self._judged(run)[:2]

    def compare(self, run: Run) -> Verification:
        """Recompute objective and gap on the rows of a run, and compare them with the stated values."""
        value, gap, rounding = self._judged(run)
        rounding += self.unit * (self.scale + self.primal) + run.source.n_rows * _SUBNORMAL
        # The objective of a closed form may come from sums, whose rounding the gap contains.
        lost = self.gap if self.kind == "exact" and np.isfinite(self.gap) else 0.0
        same = value == self.primal or abs(value - self.primal) <= rounding + lost + 1e-9 * self.primal
        # (The objective, never negative, is a bound too: that of heavy rows, fitted up to rounding, is rounding.)
        return Verification(value, gap, bool(same and min(gap, value) <= self.gap * (1 + 1e-6) + rounding))

    def _judged(self, run: Run) -> Judged:
        problem = Problem(self.fit_intercept, self.alpha, self.positive)
        return judged_point(run, problem, self.coef, self.intercept)


@np.errstate(over="ignore", invalid="ignore")
def judged_point(run: Run, problem: Problem, coef: Array, intercept: Array) -> Judged:
    """Return P at a point, computed from residuals, and the bound on P minus its minimum."""
    d = run.source.n_features
    origin = run.origin() if problem.fit_intercept else np.zeros(d + run.source.n_targets)
    number = residual_dtype(run.source)
    about = leads(coef.T, origin[:d], intercept, -origin[d:]).astype(number)
    residuals = run.sum(Residuals, Point(origin, coef, about, number))
    primal = float(residuals.squares.sum()) + penalty(problem, coef)
    # The decrease by optimising the intercept has a closed form.
    by_intercept = float((residuals.total**2).sum() / residuals.weight) if problem.fit_intercept else 0.0
    wide = run.source.is_sparse and d > SPARSE_GRAM_COLUMNS
    gap, size = (_wide_gap if wide else _factor_gap)(run, problem, residuals, origin, coef)
    whole = float(gap + by_intercept)
    if not whole >= 0:  # NaN if squares overflow
        whole = np.inf
    if problem.alpha.all():
        whole = min(whole, primal)
    if problem.positive and (coef < 0).any():
        whole = np.inf  # infeasible
    error = np.float64(ROUNDINGS * _EPS) * (size + np.sqrt(residuals.weight) * np.abs(about)).astype(np.float64)
    rounding = float((error**2).sum() + 2 * np.sqrt((error**2).sum()) * np.sqrt(primal))
    return Judged(primal, whole, rounding if np.isfinite(rounding) else 0.0)


def _factor_gap(run: Run, problem: Problem, residuals: Residuals, origin: Array, coef: Array) -> tuple[float, Array]:
    """Return the gap, and the norms of the terms of the residuals, one per target."""
    d, first = run.source.n_features, int(problem.fit_intercept)
    factor = run.sum(TriangularFactor, (origin, problem.fit_intercept))
    with solving(d):
        R = triangle(factor.R)
        drift = R[0, 1 : d + 1] / R[0, 0] if problem.fit_intercept else np.zeros(d)
        removed = np.sqrt(factor.weight) * np.abs(origin[:d] + drift) if problem.fit_intercept else np.zeros(d)
        slope = np.asarray(residuals.slope - np.outer(drift, residuals.total) - problem.alpha * coef, np.float64)
        A = R[first:, first : first + d]
        gap = 0.0
        for j, alpha in enumerate(problem.alpha):
            free = Problem(problem.fit_intercept, np.array([alpha]), False)
            H = solve_factor(A, np.zeros((len(A), 1)), free, factor.count, removed)
            size = lengths(R[first:, [first + d + j]])
            gap += float(H.bound(A, slope[:, [j]], coef[:, [j]], problem.positive, size)[0])
    norms = lengths(R[:, first:])
    return gap, norms[d:] + norms[:d] @ np.abs(coef)


def _wide_gap(run: Run, problem: Problem, residuals: Residuals, origin: Array, coef: Array) -> tuple[float, Array]:
    from summula.linear_model.least_squares.sparse_least_squares import ColumnSums, sparse_gap

    d = run.source.n_features
    sums = run.sum(ColumnSums, origin)
    mean = sums.total / sums.weight if problem.fit_intercept else np.zeros(d)
    size = np.sqrt(sums.y_square) + np.sqrt(sums.square) @ np.abs(coef)
    return sparse_gap(problem, residuals, mean, coef), size
