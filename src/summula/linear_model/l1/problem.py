"""Least squares with an L1 penalty: the quadratic of a source, its solution in the user's units, and its certificate.

    min  1/(2 W) sum_i w_i (y_i - x_i'v - b)^2 + alpha rho |v|_1 + alpha (1 - rho)/2 |v|^2                      (1)

W is the sum of weights. With centred columns and target the intercept is eliminated, and the problem is the quadratic
of `optimize/solvers/l1_quadratic.py`. One pass over the rows gives its Gram matrix, so a whole path of alphas needs no
further pass. With too many columns for a full Gram matrix, it is computed for the columns in use only
(`column_quadratic.py`).

A coefficient is certified to be zero if it is zero in every minimiser. With the gap, the slope g scaled by t to be dual
feasible, and the norm of the column, sqrt(G_jj + b),

    t |g_j - b v_j| + sqrt(2 gap (G_jj + b)) < a       implies  v_j = 0                      (gap-safe screening)  (2)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import DataError
from summula.core.estimator.certificates import SummedCertificate
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.core.numerics.certificate import Verification, rounded_up
from summula.core.numerics.exact import intercepts, leads
from summula.core.numerics.origins import far_origin
from summula.core.numerics.statistics import Gram, Moments, off_centre
from summula.linear_model.l1.column_quadratic import ColumnQuadratic
from summula.linear_model.least_squares.problem import ROUNDINGS, Point, Residuals, residual_dtype
from summula.optimize.solvers.l1_quadratic import GramQuadratic, L1Solution, judged
from summula.penalties import Penalty

if TYPE_CHECKING:
    from summula.core.data.sources import Source

__all__ = [
    "Centred",
    "L1Certificate",
    "certified_zeros",
    "columns_of",
    "gram_quadratic",
    "quadratics_of",
    "raise_if_sums_overflow",
    "returned",
    "use_gram",
]

Array = NDArray[Any]

_EPS = float(np.finfo(np.float64).eps)
_ACCURACY = {"float64": 1e-10, "float32": 1e-5}  # rounding of the objective above which it is computed from residuals
_GAP_ACCURACY = 1e3  # rounding of the gap above which it is computed from residuals, in units of the former
_ROUNDINGS = 1.0  # effective number of roundings in a sum: rows are added in blocks, and errors have both signs
_OFF_CENTRE = 1e2  # ratio of squares about the origin and about the mean above which centring loses digits
_LEADING_ROWS = 256  # rows used to determine whether columns are far from 0
_GRAM_COLUMNS = 2_048  # number of columns up to which the Gram matrix of rows in memory is computed at once
_STREAM_COLUMNS = 10_000  # the same for files, where no other method is available


class Centred(NamedTuple):
    """A quadratic of one target, and the centre of its columns and target: an origin plus a drift."""

    quadratic: Any
    origin_x: Array
    drift_x: Array
    origin_y: float
    drift_y: float
    squares: Array  # diagonal of G

    def lead(self, v: Array) -> Array:
        """Return the optimal intercept for v (or for each column of v), about the origin."""
        return np.asarray(self.drift_y - self.drift_x @ v)


class Returned(NamedTuple):
    """The point returned for a target, rounded to its dtype (stored as float64), and its suboptimality."""

    coef: Array
    intercept: float
    value: float
    gap: float
    zeros: NDArray[np.bool_]
    is_rounded: bool  # whether rounding of the sums exceeds the accuracy expected of the objective


def returned(one: Centred, solution: L1Solution, penalty: Penalty, fit_intercept: bool, dtype: Any) -> Returned:
    """Round a solution to the returned point, and bound its gap: (4) of `l1_quadratic.py` plus rounding."""
    v, value, gap, slope = solution.v, solution.value, solution.gap, solution.slope
    if dtype != np.float64:
        v = v.astype(dtype).astype(np.float64)
        slope = one.quadratic.slope(v, np.flatnonzero(v))
        value = judged(v, slope, one.quadratic, penalty)[0]
        gap += max(value - solution.value, 0.0)
    zeros = certified_zeros(solution, one.squares, penalty)
    rounding = _rounding(one, v, slope, penalty, value, float(np.finfo(dtype).eps))
    accuracy = _ACCURACY[np.dtype(dtype).name]
    is_rounded = not (rounding.value <= accuracy * value and rounding.gap <= _GAP_ACCURACY * accuracy * value)
    gap += rounding.gap + _ROUNDINGS * _EPS * abs(value)
    gap = min(gap, value + rounding.value)  # no objective is below 0
    if not fit_intercept:
        return Returned(v, 0.0, value, gap, zeros, is_rounded)
    lead = one.lead(v)
    intercept = intercepts(v, one.origin_x, lead, one.origin_y, dtype=dtype)
    lost = float(leads(v, one.origin_x, intercept, -one.origin_y, -lead)[0] ** 2) / 2
    return Returned(v, float(intercept[0]), value + lost, gap + lost, zeros, is_rounded)


class Rounding(NamedTuple):
    """Bounds on the errors of an objective and of its gap by rounding."""

    value: float
    gap: float


def _rounding(one: Centred, v: Array, slope: Array, penalty: Penalty, value: float, unit: float) -> Rounding:
    """Bound the effect of rounding of relative size `unit` in sums about the origin on objective and gap.

    In single precision the objective is known to that precision only, which the gap includes. The error of a slope is
    `unit` times the norms of column and target. If the slopes g, minus those of the L2 penalty, may therefore exceed a
    by e, the dual point is scaled by 1 - s, with s = e / (a + e), which costs at most s g'v + s^2 P(v).
    """
    lengths = np.sqrt(one.squares + one.drift_x**2)
    target = float(np.sqrt(one.quadratic.c) + abs(one.drift_y) + lengths @ np.abs(v))
    wrong = _ROUNDINGS * unit * target * lengths
    steep = slope - penalty.l2 * v
    excess = float(wrong.max(initial=0.0, where=np.abs(steep) + wrong >= penalty.l1))
    whole = _ROUNDINGS * unit * target**2
    if penalty.l1 == 0:
        return Rounding(whole, whole + excess * float(np.abs(v).sum()))
    share = excess / (penalty.l1 + excess)
    slack = share * (abs(float(steep @ v)) + float(wrong @ np.abs(v))) + share**2 * value
    return Rounding(whole, whole + slack)


def use_gram(source: Source) -> bool:
    """Return whether to use one Gram matrix: for rows of files and clusters, or more rows than columns."""
    if source.streams:
        if source.n_features > _STREAM_COLUMNS:
            raise DataError(
                f"The rows are in files with {source.n_features} columns, too many for their Gram matrix "
                f"({_STREAM_COLUMNS:,} at most); select columns, or load the rows."
            )
        return True
    return source.n_features <= _GRAM_COLUMNS and source.n_rows >= source.n_features


def quadratics_of(run: Run, fit_intercept: bool) -> list[Centred]:
    """Return the quadratic of each target."""
    source = run.source
    if use_gram(source):
        origin = run.origin() if fit_intercept else np.zeros(source.n_features + source.n_targets)
        gram = run.sum(Gram, origin, "Gram matrix")
        raise_if_sums_overflow(gram, source)
        if fit_intercept and not source.is_sparse and off_centre(gram):
            gram = run.sum(Gram, gram.mean, "Gram matrix, re-centred")
        elif source.dtype == np.float32 and not source.is_sparse and off_centre(gram):
            # Squares of columns far from 0 take more digits than single precision has.
            gram = run.sum(Gram, gram.mean, "Gram matrix, re-centred").recentre(origin)
        return gram_quadratic(gram, source.n_features, fit_intercept)
    chunk = source.chunk(0, source.n_rows)
    assert chunk.y is not None
    X, origin = columns_of(source, fit_intercept)
    X = X.tocsc() if chunk.is_sparse else X
    found = []
    for j in range(source.n_targets):
        with np.errstate(over="ignore", invalid="ignore"):
            quadratic = ColumnQuadratic(X, chunk.y[:, j], chunk.weight, fit_intercept)
            squares = quadratic.squares()
        columns_finite = bool(np.isfinite(squares).all())
        if not (columns_finite and np.isfinite(quadratic.q).all() and np.isfinite(quadratic.c)):
            run.raise_if_not_finite()
            raise _overflow(of_target=columns_finite)
        found.append(Centred(quadratic, origin, quadratic.mean, 0.0, quadratic.mean_y, squares))
    return found


def raise_if_sums_overflow(gram: Gram, source: Source) -> None:
    """Raise DataError if products of the columns, or of the targets that follow them, overflow."""
    if not gram.is_finite():
        raise _overflow(of_target=bool(np.isfinite(np.diagonal(gram.products)[: source.n_features]).all()))


def _overflow(*, of_target: bool) -> DataError:
    if of_target:
        return DataError("y has values so large that their squares overflow; rescale the target first.")
    return DataError("Some values are so large that their squares overflow; rescale the columns first.")


def columns_of(source: Source, fit_intercept: bool) -> tuple[Any, Array]:
    """Return all rows in memory as an array or CSR matrix, and the origin that columns far from 0 were shifted to."""
    chunk, few = source.chunk(0, source.n_rows), source.chunk(0, min(source.n_rows, _LEADING_ROWS))
    origin = far_origin(few) if fit_intercept else np.zeros(source.n_features)
    if chunk.is_sparse:
        return chunk.rows.about(origin).csr(), origin
    return chunk.block(np.float64, origin) if origin.any() else chunk.X, origin


def gram_quadratic(gram: Gram, d: int, fit_intercept: bool) -> list[Centred]:
    """Return the quadratics from sums of products; the targets follow the d columns."""
    products = (gram.centred() if fit_intercept else gram.products) / gram.weight
    drift = gram.total / gram.weight if fit_intercept else np.zeros(len(gram.total))
    origin = gram.origin if fit_intercept else np.zeros(len(gram.total))
    G = np.ascontiguousarray(products[:d, :d])
    return [
        Centred(
            GramQuadratic(G, np.ascontiguousarray(products[:d, k]), max(float(products[k, k]), 0.0)),
            origin[:d],
            drift[:d],
            float(origin[k]),
            float(drift[k]),
            np.maximum(np.diag(G), 0.0),
        )
        for k in range(d, len(products))
    ]


def certified_zeros(solution: L1Solution, squares: Array, penalty: Penalty) -> NDArray[np.bool_]:
    """Return a mask of the columns whose coefficients are zero in every minimiser, by (2)."""
    slope = solution.slope - penalty.l2 * solution.v
    reach = np.sqrt(2 * max(solution.gap, 0.0) * (squares + penalty.l2))
    return penalty.certified_zero(solution.v, penalty.dual_scale(slope) * slope, reach)


class _AtPoint(NamedTuple):
    """Sums at the point of a certificate for one target, per unit of weight: residuals, slopes, norms of the terms."""

    v: Array
    slope: Array
    start: Array  # the slope at v = 0
    c: float
    target: float
    squares: float
    value: float
    mean: float
    lengths: Array
    size: float  # norm of the terms of a residual about the mean
    residual_error: float  # bound on the root mean square of its rounding errors: e of `least_squares/certificate.py`

    @property
    def error(self) -> float:
        """Bound on the rounding error of the objective: (8) of `least_squares/certificate.py`."""
        return self.residual_error**2 / 2 + self.residual_error * float(np.sqrt(2 * self.value))

    def gap(self, penalty: Penalty) -> float:
        """Return the duality gap, and the decrease by optimising the intercept."""
        quadratic = GramQuadratic(np.zeros((0, 0)), self.start, self.c)
        return judged(self.v, self.slope, quadratic, penalty)[1] + self.mean**2 / 2

    def rounded_gap(self, penalty: Penalty) -> float:
        """Return an upper bound on the gap: rounding errors make slopes steeper, and the dual point smaller."""
        wrong, steep = self._slope_error(), self.slope - penalty.l2 * self.v
        size = float(np.abs(self.v) @ wrong)
        if penalty.l1 == 0:
            return self.gap(penalty) + self.error + size
        residual = max(self.squares - self.mean**2, 0.0) + penalty.l2 * float(self.v @ self.v)
        scale = min(1.0, penalty.l1 / float((penalty.steepness(steep) + wrong).max(initial=penalty.l1)))
        slack = penalty.l1 * float(np.abs(self.v).sum()) - scale * float(steep @ self.v)
        return max(slack, 0.0) + size + (1 - scale) ** 2 / 2 * residual + self.mean**2 / 2 + self.error

    def zeros(self, penalty: Penalty, gap: float) -> NDArray[np.bool_]:
        """Return a mask of the columns whose coefficients are zero in every minimiser, by (2)."""
        steep = self.slope - penalty.l2 * self.v
        reach = np.sqrt(2 * gap * (self.lengths**2 + penalty.l2)) + self._slope_error()
        return penalty.certified_zero(self.v, penalty.dual_scale(steep) * steep, reach)

    def _slope_error(self) -> Array:
        return np.asarray((self.residual_error + ROUNDINGS * _EPS * np.sqrt(self.squares)) * self.lengths)


@schema.saved(
    coef=schema.Array("float64", "n_targets", "n_features"),
    intercept=schema.Array("float64", "n_targets"),
    alpha=schema.Real(0.0),
    l1_ratio=schema.Real(0.0, 1.0),
    fit_intercept=schema.Flag(),
    positive=schema.Flag(),
    zeros=schema.Array("bool", "n_targets", "n_features"),
    unit=schema.Real(0.0),
)
@dataclass(frozen=True)
class L1Certificate(SummedCertificate):
    """Bound on the suboptimality of an L1 fit (1), summed over targets, and the certified zeros.

    `coef` (n_targets, n_features), `intercept`, `alpha`, `l1_ratio`, `fit_intercept` and `positive` define the point
    and the problem; `zeros` has the shape of `coef`.
    """

    coef: Array
    intercept: Array
    alpha: float
    l1_ratio: float
    fit_intercept: bool
    positive: bool
    zeros: Array
    unit: float

    _supervised = True

    def objective(self, run: Run) -> tuple[float, float]:
        """Objective and gap at the stated point, from sums over the rows of a run."""
        return self._judged(run)[:2]

    def compare(self, run: Run) -> Verification:
        """Recompute objective and gap on the rows of a run, and compare them with the stated values."""
        primal, gap, rounding, error = self._judged(run)
        unit = self.unit * max(abs(self.primal), 1e-300)
        same = abs(primal - self.primal) <= unit + 1e-9 * abs(self.primal) + error
        return Verification(primal, gap, bool(same and gap <= 1.1 * self.gap + unit + rounding + error))

    def from_residuals(self, run: Run) -> tuple[Self, Array]:
        """Return the certificate with objective, gap and zeros computed from residuals, and the gap of each target.

        Residuals are accurate where the columns are far from 0 and there is no intercept, or where the fit is nearly
        perfect: the objective is then much smaller than the sums of products it is computed from otherwise.
        """
        penalty = Penalty.of_ratio(self.alpha, self.l1_ratio, self.positive)
        every = self._at_point(run)
        gaps = np.array([rounded_up(min(one.rounded_gap(penalty), one.value + one.error), one.value) for one in every])
        zeros = np.stack([one.zeros(penalty, gap) for one, gap in zip(every, gaps, strict=True)])
        primal = float(sum(one.value for one in every))
        return replace(self, primal=primal, gap=float(gaps.sum()), zeros=zeros), gaps

    def _judged(self, run: Run) -> tuple[float, float, float, float]:
        """Return objective, gap, the error of the gap by rounding of the sums, and that of the objective."""
        penalty = Penalty.of_ratio(self.alpha, self.l1_ratio, self.positive)
        known = max(ROUNDINGS * _EPS, _ROUNDINGS * float(np.finfo(run.source.dtype).eps))
        primal = gap = rounding = error = 0.0
        for one in self._at_point(run):
            primal += one.value
            gap += one.gap(penalty)
            # The dual point is scaled by the largest slope; that of the longest column has the largest rounding error.
            worst = 8 * _EPS * float(one.lengths.max()) * one.size
            rounding += worst / penalty.l1 * one.value if penalty.l1 else 0.0
            # If a row with most of the weight is far from the origin, the sums lose digits when they are centred.
            rounding += ROUNDINGS * _EPS * one.target if one.target > _OFF_CENTRE * one.c else 0.0
            # Rounding of the centred sums used for the stated value.
            error += one.error + known * one.size**2
        if self.positive and (self.coef < 0).any():
            gap = np.inf  # infeasible
        return primal, gap, rounding, error

    def _at_point(self, run: Run) -> list[_AtPoint]:
        """Return the sums over the rows of a run at the stated point, one for each target."""
        d, t = run.source.n_features, run.source.n_targets
        penalty = Penalty.of_ratio(self.alpha, self.l1_ratio, self.positive)
        origin = run.origin() if self.fit_intercept else np.zeros(d + t)
        number = residual_dtype(run.source)
        here = run.sum(Residuals, self._point(origin, self.coef.T, self.intercept, number))
        mean = here.total / here.weight if self.fit_intercept else np.zeros(t)
        moments = run.sum(Moments, origin[:d])
        shift = moments.total / moments.weight if self.fit_intercept else np.zeros(d)
        nothing = run.sum(Residuals, self._point(origin, np.zeros((d, t)), origin[d:]))
        total = nothing.total / nothing.weight if self.fit_intercept else np.zeros(t)
        lengths = np.sqrt(moments.square / moments.weight)
        about = leads(self.coef, origin[:d], self.intercept, -origin[d:])
        found = []
        for j in range(t):
            v = np.asarray(self.coef[j], np.float64)
            c = float(nothing.squares[j] / nothing.weight - total[j] ** 2)
            target = float(nothing.squares[j] / nothing.weight)
            spread = np.sqrt(np.maximum(lengths**2 - shift**2, 0.0))
            reach = np.sqrt(target) + lengths @ np.abs(v)
            found.append(
                _AtPoint(
                    v=v,
                    # Residuals about their mean: the decrease by optimising the intercept is part of the gap.
                    slope=np.asarray((here.slope[:, j] - shift * here.total[j]) / here.weight, np.float64),
                    start=np.asarray((nothing.slope[:, j] - shift * nothing.total[j]) / nothing.weight, np.float64),
                    c=c,
                    target=target,
                    squares=float(here.squares[j] / here.weight),
                    # From residuals, which are accurate even if one row has most of the weight, unlike sums of squares.
                    value=float(here.squares[j] / here.weight) / 2 + penalty.value(v),
                    mean=float(mean[j]),
                    lengths=lengths,
                    size=float(np.sqrt(max(c, 0.0)) + spread @ np.abs(v)),
                    residual_error=float(np.finfo(number).eps * ROUNDINGS * reach + ROUNDINGS * _EPS * abs(about[j])),
                )
            )
        return found

    def _point(self, origin: Array, coef: Array, intercept: Array, number: Any = np.float64) -> Point:
        d, coef = len(coef), np.asarray(coef, np.float64)
        return Point(origin, coef, leads(coef.T, origin[:d], intercept, -origin[d:]).astype(number), number)
