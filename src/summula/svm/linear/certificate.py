"""Certificate of linear support vector machines, recomputed from the rows in one pass.

The slopes at the solution give the dual point; for rows on the kink of a loss, `DualRows` contains the subgradients.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.data.labels import Labels
from summula.core.data.layout.blocks import aligned, product
from summula.core.data.sources import Source
from summula.core.engine.threads import one_blas_thread
from summula.core.estimator.certificates import check_width
from summula.core.estimator.input.validation import as_source
from summula.core.estimator.run import Run, Unnamed
from summula.core.model_files import schema
from summula.core.numerics.certificate import Certificate, Verification
from summula.core.numerics.sums import Sum
from summula.svm.linear.dual import DualRows, DualSides, dual_sides, penalty_of
from summula.svm.linear.newton import rows_with_constant
from summula.svm.linear.problem import CLASS_LOSSES, LinearProblem, losses, targets_and_weights
from summula.svm.linear.row_products import RowProducts

__all__ = ["LinearCertificate", "judge"]

Array = NDArray[Any]

_ROUNDINGS = 16.0  # upper bound on the number of roundings in an objective, which is summed over blocks


@dataclass(frozen=True)
class _Slopes(Sum):
    """Losses and dual sums at v; `params` are the problem, v, and the dtype of the products (None for that of X)."""

    loss: float
    total: Array
    linear: Array
    square: Array
    products: Array

    @classmethod
    def map(cls, chunk: Chunk, params: tuple[LinearProblem, Array, Any]) -> Self:
        """Return the sums over one chunk."""
        problem, v, dtype = params
        Z = rows_with_constant(chunk, problem.column)
        if dtype is not None and Z.dtype != dtype:
            Z = aligned(Z, dtype)  # (sparse rows have this dtype)
        y, weight = targets_and_weights(problem, chunk)
        if chunk.is_sparse:
            f, times = np.asarray(Z @ v), lambda side: np.asarray(Z.T @ side)
        else:
            f = np.asarray(product(Z, v.astype(Z.dtype)), np.float64)
            times = lambda side: np.asarray(product(Z.T, side.astype(Z.dtype)), np.float64)  # noqa: E731
        here = losses(problem, y, f)
        return cls(float(weight @ here.value), *dual_sides(problem, y, weight, -weight * here.slope, times))


def judge(run: Run, problem: LinearProblem, v: Array, dtype: Any = None) -> tuple[float, float]:
    """Return objective and gap at v, from the slopes there; products are computed in `dtype`, by default that of X."""
    sums = run.sum(_Slopes, (problem, v, dtype), "certificate")
    primal = penalty_of(problem, v) + sums.loss
    dual = DualSides(sums.total, sums.linear, sums.square, sums.products).dual(problem)
    return primal, _gap(primal, dual)


def _gap(primal: float, dual: float) -> float:
    """Return primal minus dual, rounded outward."""
    return max(primal - dual, 0.0) + _ROUNDINGS * float(np.finfo(np.float64).eps) * abs(primal)


def _problems_agree(certificate: Any, sizes: schema.Sizes) -> str | None:
    """Rule of saved models: each score has the terms of the columns, and separates one of the classes from the rest."""
    n = 0 if certificate.classes is None else len(certificate.classes)
    for problem in certificate.problems:
        if "n_features" in sizes and sizes["n_terms"] != sizes["n_features"] + (problem.column != 0.0):
            return f"v has {sizes['n_terms']} terms for {sizes['n_features']} columns"
        if (problem.loss in CLASS_LOSSES) != (problem.positive >= 0) or not -1 <= problem.positive < max(n, 1):
            return f"a score separates class {problem.positive} of {n} from the rest"
        if (problem.positive >= 0) != (n > 0):
            return "there are scores of classes without classes"
    return None


@schema.saved(
    _problems_agree,
    problems=schema.Items(schema.Object(LinearProblem), "n_scores", low=1),
    v=schema.Array("float64", "n_scores", "n_terms"),
    on_kink=schema.Items(schema.Object(DualRows), "n_scores", low=1),
    classes=schema.Labels("n_classes", low=2) | None,
    unit=schema.Real(0.0),
)
@dataclass(frozen=True)
class LinearCertificate(Certificate):
    """Primal minus dual of a linear support vector machine, summed over its scores."""

    problems: tuple[LinearProblem, ...]
    v: Array
    on_kink: tuple[DualRows, ...]
    classes: Array | None
    unit: float

    def verify(self, X: Any, y: Any = None, sample_weight: Any = None) -> Verification:
        """Recompute objective and gap from the data, without the solver."""
        labels = None if self.classes is None else Labels("the certificate", self.classes)
        source = as_source(Unnamed(), X, y, sample_weight, needs_y=True, labels=labels)
        primal = gap = 0.0
        try:
            check_width(source, self.v.shape[1] - int(self.problems[0].column != 0.0))
            for k, problem in enumerate(self.problems):
                one, more = self._judged(source, k, problem)
                primal, gap = primal + one, gap + more
        finally:
            source.release()
        slack = self.unit * max(abs(self.primal), 1e-300)
        same = abs(primal - self.primal) <= slack and gap <= self.gap + slack
        return Verification(primal, gap, bool(same))

    def rounded_outward(self, source: Source) -> Self:
        """Return the certificate with its gap enlarged for rounding, which matters for columns far from 0."""
        if source.dtype == np.float64 and not any(len(kept.rows) for kept in self.on_kink):
            return self
        gap = sum(self._judged(source, k, problem)[1] for k, problem in enumerate(self.problems))
        return replace(self, gap=float(gap)) if gap > self.gap else self

    def _judged(self, source: Source, k: int, problem: LinearProblem) -> tuple[float, float]:
        kept = self.on_kink[k]
        if not len(kept.rows):
            # In single precision, slopes of columns far from 0 do not cancel to the digits of the dual.
            return judge(Run(Unnamed(), source), problem, self.v[k], np.float64)
        chunk = source.chunk(0, source.n_rows)
        target, weight = targets_and_weights(problem, chunk)
        most = np.inf if problem.is_squared else weight * (1 + 1e-12)
        if int(kept.rows.max()) >= len(target):
            return np.nan, np.nan
        with one_blas_thread():
            rows = RowProducts(chunk, problem.column)
            here = losses(problem, target, rows.scores(self.v[k]))
            beta = kept.applied(-weight * here.slope)
            if (np.abs(beta) > most).any() or (problem.positive >= 0 and (beta * target < 0).any()):
                return np.nan, np.nan
            primal = penalty_of(problem, self.v[k]) + float(weight @ here.value)
            return primal, _gap(primal, dual_sides(problem, target, weight, beta, rows.combined).dual(problem))
