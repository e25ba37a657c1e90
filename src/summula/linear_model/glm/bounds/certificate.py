"""The certificate of a generalised linear model, verified from the data without the solver.

At the stated point the objective, its gradient and its Hessian are recomputed; the bounds are those of
`glm/bounds/gap.py`, or with an L1 penalty the duality gap of `glm/bounds/dual.py`, or if that is not available the
gap of `l1/quadratic_model.py`. Where columns are far from 0 the same is done at the point before its intercepts were
rounded, which the certificate states too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.factors import Factors
from summula.core.data.labels import Labels
from summula.core.data.sources import Source
from summula.core.estimator.certificates import SummedCertificate
from summula.core.estimator.input.validation import as_source
from summula.core.estimator.linear.factor_columns import LEVEL
from summula.core.estimator.run import Run, Unnamed
from summula.core.model_files import schema
from summula.linear_model.glm.bounds.dual import bound_of
from summula.linear_model.glm.bounds.gap import judge, newton_decrement
from summula.linear_model.glm.bounds.returned import point_of
from summula.linear_model.glm.objective import GlmProblem, Objective
from summula.linear_model.glm.offsets import rows_and_offset
from summula.linear_model.l1.quadratic_model import local_gap
from summula.losses import Loss, Multinomial
from summula.penalties import Penalty

__all__ = ["GlmCertificate"]

Array = NDArray[Any]


@schema.saved(
    coef=schema.Array("float64", "n_scores", "n_terms"),
    intercept=schema.Array("float64", "n_scores"),
    loss=schema.Object(Loss),
    penalty=schema.Real(0.0, finite=False),
    fit_intercept=schema.Flag(),
    class_weight=schema.Array("float64", "n_classes", low=0.0) | None,
    classes=schema.Labels("n_classes") | None,
    low=schema.Array("float64", "n_terms", finite=False) | None,
    high=schema.Array("float64", "n_terms", finite=False) | None,
    unit=schema.Real(0.0),
    levels=schema.Dict(schema.Text(), schema.Items(LEVEL)) | None,
    l1=schema.Real(0.0, finite=False),
    zeros=schema.Array("bool", "n_scores", "n_terms") | None,
    lost=schema.Array("float64", "n_scores", finite=False) | None,
)
@dataclass(frozen=True)
class GlmCertificate(SummedCertificate):
    """Bound on the suboptimality of a penalised likelihood.

    `coef` (K, d), `intercept`, `loss`, `penalty` (lambda, relative to the sum over rows), `class_weight` and the bounds
    define the point and the problem; `classes` are the labels of a classifier, `levels` those of factors. `unit` is the
    relative rounding error. `l1` is the weight of an L1 penalty, relative to the sum over rows, and `zeros`, of the
    shape of `coef`, marks the slopes that are then zero in every minimiser. `lost` is what the intercepts lost by
    rounding to the returned ones (None in files of earlier versions).
    """

    coef: Array
    intercept: Array
    loss: Loss
    penalty: float
    fit_intercept: bool
    class_weight: Array | None
    classes: Array | None
    low: Array | None
    high: Array | None
    unit: float
    levels: dict[str, tuple[Any, ...]] | None = None
    l1: float = 0.0
    zeros: Array | None = None
    lost: Array | None = None

    _columns = "n_terms"

    def _source(self, X: Any, y: Any, sample_weight: Any, *, offset: Any = None, exposure: Any = None) -> Source:
        factors = Factors("the certificate", self.levels) if self.levels else None
        labels = None if self.classes is None else Labels("the certificate", self.classes)
        X, total = rows_and_offset(X, offset, exposure)
        return as_source(Unnamed(), X, y, sample_weight, needs_y=True, labels=labels, factors=factors, offset=total)

    def confirms(self, value: float, gap: float) -> bool:
        """Whether the values agree with the stated ones, up to rounding."""
        same = abs(value - self.primal) <= (self.unit + 1e-9) * abs(self.primal)
        return bool(same and gap <= self._most)

    @property
    def _most(self) -> float:
        """The largest gap that confirms the certificate; an estimate may come from a Hessian at a nearby point."""
        return (1.1 if self.kind == "global" else 2.0) * self.gap + self.unit * abs(self.primal)

    def objective(self, run: Run) -> tuple[float, float]:
        """Objective and gap at the stated point, from sums over the rows of a run."""
        d = run.source.n_features
        origin = run.origin()[:d] if self.fit_intercept else np.zeros(d)
        objective = Objective(run, self._problem(), origin)
        x = point_of(self.coef, self.intercept, origin, self.fit_intercept)
        value, gap = self._judged(objective, x)
        if not gap <= self._most and self.fit_intercept and self.lost is not None:
            # Rounding of the intercepts costs J(x) - J(x + lost), and the bound is that of x + lost: (1) of
            # `glm/bounds/returned.py`, which holds for any `lost`.
            whole = x.reshape(len(self.coef), -1).copy()
            whole[:, 0] += self.lost
            best, least = self._judged(objective, whole.ravel())
            gap = min(gap, max(value - best, 0.0) + least)
        return value, gap

    def _problem(self) -> GlmProblem:
        several = isinstance(self.loss, Multinomial)
        return GlmProblem(
            self.loss,
            Penalty(self.l1, self.penalty),
            self.fit_intercept,
            outputs=len(self.coef) if several else 1,
            class_weight=self.class_weight,
            low=self.low,
            high=self.high,
        )

    def _judged(self, objective: Objective, x: Array) -> tuple[float, float]:
        """Return the objective at x, and a bound on or an estimate of its suboptimality."""
        if self.l1:
            bound = bound_of(objective.run, objective.at(x, 1), objective.problem.regulariser)
            return bound.value, bound.gap if self.kind == "global" else local_gap(objective, x)
        if objective.affordable():
            objective(x, 2)
        here, gap = judge(objective, x)
        return here.value, gap if self.kind == "global" else newton_decrement(objective, x)
