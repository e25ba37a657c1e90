"""Least squares by orthogonal transformations: equation (5) of `least_squares/solver.py`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from summula.core.engine.threads import solving
from summula.core.errors import DataError
from summula.core.numerics.statistics import Gram, TriangularFactor, triangle
from summula.linear_model.least_squares.problem import (
    EXTENDED_ELEMENTS,
    Fit,
    Problem,
    centred_slope,
    hidden,
    quadratic_gap,
    residual_noise,
    residual_pass,
)
from summula.optimize.solvers.nonnegative import nonnegative_least_squares

if TYPE_CHECKING:
    from summula.core.estimator.run import Run

__all__ = ["FactorAnswer", "lengths", "solve_by_factor", "solve_factor"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

_EPS = float(np.finfo(np.float64).eps)
_EXTENDED = float(np.finfo(np.longdouble).eps) / _EPS  # 1 if there is no extended precision
_MOST_POLISH = 5
_FACTORED_ROWS = 4_096  # approximate number of rows factored at once, on which the rounding error depends
_NOTHING = 1e-7  # relative coefficient below which a column is not part of a linear combination
_FAR = 1e4  # distance of the origin from the mean, relative to the spread, above which the pass is repeated
_ROUNDING = 1e-11  # rounding error of a zero product of columns, relative to their norms


def solve_by_factor(run: Run, problem: Problem, origin: Array, *, centred: bool = False) -> Fit:
    """Solve (1) from the triangular factor of the rows; again about the mean if `origin` was far from it."""
    d = run.source.n_features
    factor = run.sum(TriangularFactor, (origin, problem.fit_intercept), "triangular factor")
    with solving(d):
        R = triangle(factor.R)
        _check_finite(R, d + int(problem.fit_intercept))
        # The constant column comes first: its row of R contains the means, the rest is centred.
        first = int(problem.fit_intercept)
        A, B = R[first:, first : first + d], R[first:, first + d :]
        mean = factor.origin + R[0, 1:] / R[0, 0] if problem.fit_intercept else np.zeros(len(factor.origin))
        if problem.fit_intercept and not centred and (np.abs(R[0, 1:]) > _FAR * lengths(R[1:, 1:])).any():
            return solve_by_factor(run, problem, mean, centred=True)
        removed = np.sqrt(factor.weight) * np.abs(mean[:d])
        answer = solve_factor(A, B, problem, factor.count, removed)
    rss, tss = ((B - A @ answer.coef) ** 2).sum(axis=0), (B**2).sum(axis=0)
    drift = R[0, 1:] / R[0, 0] if problem.fit_intercept else np.zeros(len(factor.origin))
    size, unresolved = _sizes(R[:, first:], answer.coef), hidden(answer.condition(A), tss, _EPS)
    noise = unresolved + residual_noise(rss, size, _EPS)
    fit = replace(answer.fit(problem, mean, factor, rss, tss), drift=drift, noise=noise)
    small = run.source.n_rows * d <= EXTENDED_ELEMENTS and not problem.positive
    small = small and len(np.unique(problem.alpha)) == 1  # the inverse is that of a single alpha
    if not small:
        return fit
    fit = _polished(run, problem, replace(fit, noise=unresolved * _EXTENDED**2), answer)
    return replace(fit, noise=fit.noise + residual_noise(fit.rss, _sizes(R[:, first:], fit.coef), _EXTENDED * _EPS))


def _check_finite(R: Array, n_columns: int) -> None:
    """Raise if sums of the values overflow, of the first columns or of the targets."""
    if not np.isfinite(R[:, :n_columns]).all():
        raise DataError("Some values are so large that sums of them overflow; rescale the columns first.")
    if not np.isfinite(R).all():
        raise DataError("y has values so large that their squares overflow; rescale the target first.")


def _sizes(R: Array, coef: Array) -> Array:
    """Return the norms of the terms of residuals, from the triangular factor of columns and targets."""
    norms = lengths(R)
    return np.asarray(norms[len(coef) :] + norms[: len(coef)] @ np.abs(coef))


def _polished(run: Run, problem: Problem, fit: Fit, answer: FactorAnswer) -> Fit:
    """Refine with residuals in extended precision, while each step is at most half the previous one."""
    assert fit.drift is not None
    d, last, F = len(fit.coef), np.full(len(fit.rss), np.inf), answer.half_inverse
    for step_number in range(_MOST_POLISH + 1):
        residuals = residual_pass(run, fit, np.longdouble)
        total, weight = (residuals.total, residuals.weight) if problem.fit_intercept else (0.0, 1.0)
        squares = np.asarray(residuals.squares - total**2 / weight, dtype=np.float64)
        slope = centred_slope(residuals, fit.drift[:d], problem) - problem.alpha * fit.coef
        half = F.T @ slope
        size = np.sqrt((half**2).sum(axis=0))
        if not np.isfinite(size).all():  # squares overflow
            break
        correction = fit.correction + np.asarray(total / weight, dtype=np.float64)
        fit = replace(fit, rss=squares, gap=size**2, correction=correction)
        better = problem.as_returned(fit.coef + F @ half * (size <= last / 2))
        if step_number == _MOST_POLISH or (better == fit.coef).all():
            break
        fit, last = replace(fit, coef=better), size
    return fit


class FactorAnswer(NamedTuple):
    """Solution from the triangular factor; `half_inverse` is F with F F' = H^+.

    The columns of `null` span the null space; None if it is too large. `span` is set for ridge regression with fewer
    rows than columns: outside the span of the rows H is alpha I, which F does not include.
    """

    coef: Array
    half_inverse: Array
    rank: int
    dependent: Indices
    undetermined: Indices
    gap: Array
    null: Array | None = None
    span: Array | None = None
    alpha: float = 0.0

    def fit(self, problem: Problem, mean: Array, sums: Gram | TriangularFactor, rss: Array, tss: Array) -> Fit:
        """Return the solution with its sums of squares; `mean` is the centre of features and targets."""
        d = len(self.coef)
        return Fit(
            coef=self.coef,
            mean_x=mean[:d],
            mean_y=mean[d:],
            rss=rss,
            tss=tss,
            gap=self.gap,
            count=sums.count,
            weight=sums.weight,
            log_weight=sums.log_weight,
            half_inverse=None if problem.positive or problem.alpha.any() else self.half_inverse,
            rank=self.rank,
            dependent=self.dependent,
            undetermined=self.undetermined,
            method="svd",
            intercept_free=self.moves(mean[:d]),
            origin=sums.origin if problem.fit_intercept else np.zeros(len(mean)),
            drift=mean - sums.origin if problem.fit_intercept else np.zeros(len(mean)),
        )

    def condition(self, A: Array) -> float:
        """Return the approximate condition number for columns of norm one."""
        scaled = self.half_inverse * lengths(A)[:, None]
        return max(float(np.sqrt((scaled**2).sum())), 1.0)

    def apply_inverse(self, g: Array) -> Array:
        """Return H^+ g."""
        inside = self.half_inverse @ (self.half_inverse.T @ g)
        return inside if self.span is None else inside + (g - self.span @ (self.span.T @ g)) / self.alpha

    def moves(self, term: Array) -> bool:
        """Return whether term'v differs between equivalent solutions v."""
        if self.null is None:
            return True
        return bool((np.abs(term @ self.null) > _NOTHING * (np.abs(term) @ np.abs(self.null))).any())

    def bound(self, A: Array, slope: Array, coef: Array, positive: bool, size: Array) -> Array:
        """Return the bounds (6) and (7); `size` is the norm of the targets, to which rounding errors are relative."""
        regular = self.rank == A.shape[1] or not len(self.dependent)
        gap = quadratic_gap(slope, coef, self.apply_inverse, positive, regular=regular)
        if positive and not regular:
            # H is singular: (7) holds only if the slope plus multipliers is in the range of H.
            rest = np.maximum(slope, 0.0)
            outside = np.abs(rest - A.T @ (A @ self.apply_inverse(rest)))
            gap[(outside > _ROUNDING * np.outer(lengths(A), size)).any(axis=0)] = np.inf
        return gap


def solve_factor(A: Array, B: Array, problem: Problem, n_rows: int, removed: Array) -> FactorAnswer:
    """Solve min ||A v - B||^2 + alpha ||v||^2 for each target.

    `removed` is the norm of the part of each column removed by centring, which affects the rounding errors.
    """
    coef, gap = np.empty((A.shape[1], B.shape[1])), np.empty(B.shape[1])
    for alpha in np.unique(problem.alpha):
        mine = problem.alpha == alpha
        answer = _penalised(A, B[:, mine], float(alpha)) if alpha > 0 else _plain(A, B[:, mine], n_rows, removed)
        at = answer.coef
        if problem.positive:
            at = nonnegative_least_squares(*_with_penalty(A, B[:, mine], float(alpha)))
        at = problem.as_returned(at)
        slope = A.T @ (B[:, mine] - A @ at) - alpha * at
        coef[:, mine], gap[mine] = at, answer.bound(A, slope, at, problem.positive, lengths(B[:, mine]))
    return answer._replace(coef=coef, gap=gap)


def _with_penalty(A: Array, B: Array, alpha: float) -> tuple[Array, Array]:
    """Return [A; sqrt(alpha) I] and [B; 0]."""
    if alpha == 0:
        return A, B
    d = A.shape[1]
    return np.vstack([A, np.sqrt(alpha) * np.eye(d)]), np.vstack([B, np.zeros((d, B.shape[1]))])


def lengths(A: Array) -> Array:
    """Return the norms of columns, without overflow or underflow of squares."""
    largest = np.abs(A).max(axis=0, initial=0.0)
    safe = np.where(largest > 0, largest, 1.0)
    return np.asarray(np.linalg.norm(A / safe, axis=0) * safe)


def _answer(coef: Array, half_inverse: Array, rank: int) -> FactorAnswer:
    none = np.empty(0, np.intp)
    return FactorAnswer(coef, half_inverse, rank, none, none, np.empty(0))


def _constant_columns(d: int, t: int) -> FactorAnswer:
    """Return the solution if no column varies."""
    everything = np.arange(d)
    return FactorAnswer(np.zeros((d, t)), np.zeros((d, 0)), 0, everything, everything, np.empty(0))


def _penalised(A: Array, B: Array, alpha: float) -> FactorAnswer:
    """Solve ridge regression by QR of [A; sqrt(alpha) I]; with fewer rows than columns, in the span of the rows."""
    k, d = A.shape
    if k == 0:
        nothing = np.zeros((d, 0))
        return _answer(np.zeros((d, B.shape[1])), nothing, 0)._replace(span=nothing, alpha=alpha)
    if k < d:
        Q, L = np.linalg.qr(A.T)  # A = L'Q', v = Q z, ||v|| = ||z||
        small = _penalised(L.T, B, alpha)
        return _answer(Q @ small.coef, Q @ small.half_inverse, k)._replace(span=Q, alpha=alpha)
    stacked, right = _with_penalty(A, B, alpha)
    Q, R = linalg.qr(stacked, mode="economic", check_finite=False)
    inverse, _ = linalg.lapack.dtrtri(R)
    return _answer(linalg.solve_triangular(R, Q.T @ right, check_finite=False), np.triu(inverse), d)


def _plain(A: Array, B: Array, n_rows: int, removed: Array) -> FactorAnswer:
    """Solve unpenalised least squares: rank from normalised columns, minimum norm in the original units."""
    k, d = A.shape
    if k == 0:
        return _constant_columns(d, B.shape[1])
    length = lengths(A)
    scale = np.where(length > 0, length, 1.0)
    Q, R, order = linalg.qr(A / scale, mode="economic", pivoting=True, check_finite=False)
    rank = _rank(R, max(min(n_rows, _FACTORED_ROWS), d), (1.0 + removed / scale)[order])
    right = Q[:, :rank].T @ B
    if rank == d:
        back = np.argsort(order)
        coef = linalg.solve_triangular(R, right, check_finite=False)[back]
        inverse, _ = linalg.lapack.dtrtri(R)
        return _answer(coef / scale[:, None], np.triu(inverse)[back] / scale[:, None], d)
    if rank == 0:
        return _constant_columns(d, B.shape[1])
    top = np.empty((rank, d))
    top[:, order] = R[:rank]
    # In the original units columns may differ widely in size; QR is row-wise stable if the largest come first.
    large_first = np.argsort(-scale, kind="stable")
    sorted_, L, turn = linalg.qr((top * scale).T[large_first], mode="economic", pivoting=True, check_finite=False)
    rows = sorted_[np.argsort(large_first)]
    half_inverse = rows @ linalg.solve_triangular(L, np.eye(rank)[turn], trans="T", check_finite=False)
    dependent, undetermined, null = np.sort(order[rank:]).astype(np.int64), np.arange(d), None
    if k >= d:
        # The data do not determine the coefficients of columns that are part of an exact linear combination.
        combination = linalg.solve_triangular(R[:rank, :rank], R[:rank, rank:], check_finite=False)
        null = np.empty((d, d - rank))
        null[order] = np.vstack([-combination, np.eye(d - rank)])
        undetermined = np.flatnonzero((np.abs(null) > _NOTHING).any(axis=1))
        null /= scale[:, None]
    return FactorAnswer(half_inverse @ right, half_inverse, rank, dependent, undetermined, np.empty(0), null)


def _rank(R: Array, size: int, noise: Array) -> int:
    """Return the number of pivots above the rounding errors of the factorisation and of the columns' values.

    For normalised columns, rounding the values of column j changes it by `noise[j]` eps, and a linear combination of
    columns accordingly. Pivots are in decreasing order; the last ones are checked.
    """
    rank = int((np.abs(np.diag(R)) > _EPS * size).sum())
    while rank:
        last = rank - 1
        combination = linalg.solve_triangular(R[:last, :last], R[:last, last], check_finite=False)
        rounding = noise[last] + np.abs(combination) @ noise[:last]
        if np.abs(R[last, last]) > _EPS * (size + 4 * rounding):
            break
        rank = last
    return rank
