"""Upper bound on the suboptimality of stochastic gradient descent, from one pass over the rows.

For F of `stochastic_descent/solver.py` and any slopes theta_i with sum_i theta_i = 0 (if an intercept is fitted)

    min F >= -1/n sum_i c_i l*(theta_i / c_i) - R*(-X'theta / n)                                                (1)

by Fenchel duality. All losses here are convex with minimum 0, so l*(0) = 0 and l*(f theta) <= f l*(theta) for
0 <= f <= 1: slopes may be scaled down, and at the slopes of the fit, theta_i = c_i l'(p_i), the conjugate is explicit:

    c_i l*(theta_i / c_i) = theta_i p_i - c_i l(p_i)                                                            (2)

So positive and negative slopes are scaled to sum to 0, then all of them so that (1) is largest (L2) or defined (L1).
The bound is at least 0, and generally no larger without a penalty.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.data.layout.blocks import product
from summula.core.estimator.certificates import SummedCertificate
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.core.numerics.certificate import rounded_up
from summula.core.numerics.exact import leads
from summula.core.numerics.sums import Sum
from summula.losses import score_losses
from summula.optimize.solvers.stochastic_descent.rows import rows_about, score_origin
from summula.optimize.solvers.stochastic_descent.rule import LOSSES
from summula.penalties import Penalty

__all__ = ["DescentCertificate", "DescentProblem", "DualSums"]

Array = NDArray[Any]


@schema.saved(
    "linear_model.DescentProblem",
    loss=schema.Text(*LOSSES),
    bend=schema.Real(),
    l2=schema.Real(0.0),
    l1=schema.Real(0.0),
    fit_intercept=schema.Flag(),
    positive=schema.Array("float64", "n_scores", low=-1.0),
    inside=schema.Array("float64", "n_scores"),
    outside=schema.Array("float64", "n_scores"),
)
class DescentProblem(NamedTuple):
    """Definition of the objective: loss, its margin or epsilon, penalties, positive class of each score, class weights.

    `positive` contains the code of the positive class of each score, -1 for numeric targets.
    """

    loss: str
    bend: float
    l2: float
    l1: float
    fit_intercept: bool
    positive: Array
    inside: Array
    outside: Array

    @property
    def penalty(self) -> Penalty:
        """The penalty on the coefficients of each score."""
        return Penalty(self.l1, self.l2)


def _products(X: Any, theta: Array) -> Array:
    """Return X'theta, one row per column of theta."""
    if not hasattr(X, "indptr"):
        return np.asarray(product(X.T, theta.astype(X.dtype)), np.float64).T
    from summula.optimize.solvers.stochastic_descent.kernels import add_products

    out = np.zeros((theta.shape[1], X.shape[1]))
    add_products(X.indptr, X.indices, X.data, theta, out)
    return out


@dataclass(frozen=True)
class DualSums(Sum):
    """Sums for (1) and (2): loss of each score; sum, conjugate and X'theta of negative and of positive slopes."""

    rows: int
    loss: Array
    total: Array  # (2, K)
    conjugate: Array  # (2, K)
    product: Array  # (2, K, d)

    @classmethod
    def map(cls, chunk: Chunk, params: tuple[DescentProblem, Array, Array, Array]) -> Self:
        """Return the sums of one chunk about an origin, with `intercept` the constant term there."""
        problem, coef, intercept, origin = params
        X, y = rows_about(chunk, origin), chunk.target[:, None].astype(np.float64)
        weight: Any = 1.0 if chunk.weight is None else chunk.weight[:, None]
        p = np.asarray(product(X, coef.T.astype(X.dtype)) + intercept, np.float64)
        targets = np.broadcast_to(y, p.shape)
        if problem.positive[0] >= 0:
            mine = targets == problem.positive
            weight = weight * np.where(mine, problem.inside, problem.outside)
            targets = np.where(mine, 1.0, -1.0)
        value, slope = score_losses(problem.loss, problem.bend, targets, p)
        value, theta = (value, slope) if isinstance(weight, float) else (weight * value, weight * slope)
        K, conjugate = len(coef), theta * p - value
        sides, conjugates = np.empty((len(y), 2 * K)), np.empty((len(y), 2 * K))
        np.minimum(theta, 0.0, out=sides[:, :K])
        np.maximum(theta, 0.0, out=sides[:, K:])
        conjugates[:, :K] = conjugates[:, K:] = conjugate
        conjugates[sides == 0.0] = 0.0
        return cls(
            len(y),
            value.sum(axis=0),
            sides.sum(axis=0).reshape(2, K),
            conjugates.sum(axis=0).reshape(2, K),
            _products(X, sides).reshape(2, K, -1),
        )

    def judged(self, problem: DescentProblem, coef: Array) -> tuple[float, float]:
        """Return objective and gap, summed over the scores."""
        primal = gap = 0.0
        for k, w in enumerate(np.asarray(coef, np.float64)):
            value = float(self.loss[k]) / self.rows + problem.penalty.value(w)
            primal, gap = primal + value, gap + value - max(self._bound(problem, k), 0.0)
        return primal, gap

    def _bound(self, problem: DescentProblem, k: int) -> float:
        """Return the right side of (1)."""
        scale = np.ones(2)
        if problem.fit_intercept:
            sizes = np.abs(self.total[:, k])
            scale = np.minimum(1.0, sizes[::-1] / np.where(sizes > 0, sizes, 1.0))
        slope = scale @ self.product[:, k] / self.rows
        conjugate = float(scale @ self.conjugate[:, k]) / self.rows
        penalty = problem.penalty
        inner = penalty.dual_scale(slope)
        if penalty.l2 == 0.0:
            return -conjugate * inner
        square = float(slope @ slope)
        best = np.clip(-conjugate * penalty.l2 / square, 0.0, 1.0) if square > 0 else 1.0
        return max(-conjugate * f - penalty.conjugate(f * slope) for f in (best, inner, 1.0))


@schema.saved(
    "linear_model.DescentCertificate",
    coef=schema.Array("float", "n_scores", "n_features"),
    intercept=schema.Array("float", "n_scores"),
    problem=schema.Object(DescentProblem, n_scores="n_scores"),
    classes=schema.Labels("n_classes") | None,
    unit=schema.Real(0.0),
)
@dataclass(frozen=True)
class DescentCertificate(SummedCertificate):
    """Objective at the final point, and an upper bound on its distance from the minimum."""

    coef: Array
    intercept: Array
    problem: DescentProblem
    classes: Array | None
    unit: float

    _supervised = True

    @classmethod
    def of(cls, run: Run, problem: DescentProblem, coef: Array, intercept: Array, classes: Array | None) -> Self:
        """Compute the certificate of a point in one pass."""
        unit = 1e-4 if run.source.dtype == np.float32 else 1e-9
        unknown = cls("global", np.nan, np.nan, coef, intercept, problem, classes, unit)
        primal, gap = unknown.objective(run)
        return replace(unknown, primal=primal, gap=rounded_up(gap, primal, run.source.dtype))

    def objective(self, run: Run) -> tuple[float, float]:
        """Objective and gap at the stated point, from sums over the rows of a run."""
        problem, coef = self.problem, self.coef
        origin = score_origin(run.source, problem.fit_intercept)
        lead = leads(coef, origin, self.intercept) if origin.any() else self.intercept
        return run.sum(DualSums, (problem, coef, lead, origin), "certificate").judged(problem, coef)
