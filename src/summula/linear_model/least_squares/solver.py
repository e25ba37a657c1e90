"""Solver for least squares with or without a ridge penalty, used by LinearRegression, Ridge and PolynomialRegression.

The problem.  Rows x_i with weights w_i and targets y_i; find the slope v and the intercept b that minimise

    P(v, b) = sum_i w_i (y_i - x_i'v - b)^2 + alpha ||v||^2                                                 (1)

b = ybar - xbar'v is optimal for every v, so with centred columns (Xc, yc; W = diag w) the problem reduces to

    (Xc'W Xc + alpha I) v = Xc'W yc                                                                         (2)

1. One pass computes the Gram matrix of [X, Y] about a pilot origin; centring gives S = Xc'W Xc, s = Xc'W yc.
2. With D = diag(S + alpha I)^(1/2) solve C z = D^-1 s, C = D^-1 (S + alpha I) D^-1, v = D^-1 z, by Cholesky;  (3)
   the reciprocal condition number of C is kappa^-2, kappa that of the scaled columns.
3. kappa small: done. Medium: one pass for the true residual r = yc - Xc v and one step v += (3) of Xc'W r.     (4)
   Large, or fewer rows than columns: one pass for the triangular factor R of the rows (TSQR), and       (5)
   min ||R v - c||^2 + alpha ||v||^2 by orthogonal transformations. The error is then kappa eps, not kappa^2 eps.
4. The rank is determined by a pivoted QR factorisation with normalised columns; if it is deficient, the solution is the
   minimiser of minimum norm in the original units.

Suboptimality.  For any v, with the gradient g = Xc'W (yc - Xc v) - alpha v and H = S + alpha I,

    P(v) - min P = g' H^+ g                                                                                 (6)

and with sign constraints v >= 0, multipliers m = max(-2 g, 0) bound it by m'v + (g + m/2)' H^+ (g + m/2).        (7)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.engine.threads import solving
from summula.core.numerics.statistics import Gram
from summula.linear_model.least_squares.normal_equations import from_gram, refined, well_centred
from summula.linear_model.least_squares.orthogonal import solve_by_factor
from summula.linear_model.least_squares.problem import Fit, Problem

if TYPE_CHECKING:
    from summula.core.estimator.run import Run

__all__ = ["SPARSE_GRAM_COLUMNS", "TINY_CONDITION", "TINY_FACTOR", "solve"]

SPARSE_GRAM_COLUMNS = 2_048  # sparse data with more columns are solved by conjugate gradients
TINY_FACTOR = 1e6  # rows x columns^2 up to which accuracy comes first: small tables get nearly all digits
TINY_CONDITION = 10.0  # condition number up to which the Gram matrix loses at most two digits
_CHEAP_FACTOR = 2e8  # rows x columns^2 up to which a second, orthogonal pass is cheap


class Limits(NamedTuple):
    """Condition numbers above which the Gram solution is refined, and above which it is not used."""

    refine: float
    orthogonal: float
    residual: float  # rss / tss below which the residual sum of squares is computed from residuals


_LIMITS = {
    np.dtype(np.float64): Limits(refine=1e3, orthogonal=1e6, residual=1e-6),
    # Products in float32 have relative errors of about 1e-7.
    np.dtype(np.float32): Limits(refine=10.0, orthogonal=1e3, residual=1e-3),
}


@np.errstate(over="ignore", invalid="ignore")  # if squares overflow, the solution is computed without them
def solve(run: Run, problem: Problem, offer: Callable[[Fit], None], gram: Gram | None = None) -> Fit:
    """Solve (1) on the rows of a run by the cheapest method that is accurate enough.

    `offer` is called with fits that a later pass only refines, to be kept if that pass is interrupted. `gram` is the
    Gram matrix of the rows, if it has already been computed.
    """
    source = run.source
    if source.is_sparse and source.n_features > SPARSE_GRAM_COLUMNS:
        from summula.linear_model.least_squares.sparse_least_squares import solve_sparse

        return solve_sparse(run, problem, offer)
    if gram is not None:
        origin = gram.origin
    else:
        origin = run.origin() if problem.fit_intercept else np.zeros(source.n_features + source.n_targets)
    if source.n_rows <= source.n_features:
        answer = solve_by_factor(run, problem, origin)
        kept = source.n_features <= SPARSE_GRAM_COLUMNS
        return replace(answer, sums=run.sum(Gram, origin, "Gram matrix")) if kept else answer
    gram = run.sum(Gram, origin, "Gram matrix") if gram is None else gram
    if not gram.is_finite():
        # The squares of finite values overflow; orthogonal transformations do not square them.
        return solve_by_factor(run, problem, origin)
    return _by_gram(run, problem, offer, well_centred(run, problem, gram), origin)


def _by_gram(run: Run, problem: Problem, offer: Callable[[Fit], None], gram: Gram, origin: NDArray[np.float64]) -> Fit:
    """Solve (1) from the Gram matrix, and refine the fit, or solve again by a factor, where it is too inaccurate."""
    source = run.source
    sums = gram if source.n_features <= SPARSE_GRAM_COLUMNS else None
    with solving(source.n_features):
        fit, kappa = from_gram(gram, problem, source.n_features)
    if fit is not None and sums is None:
        fit = replace(fit, sums=None)
    limits, work = _LIMITS[source.dtype], source.n_rows * source.n_features**2
    if work <= TINY_FACTOR:
        if fit is None or kappa > limits.refine or (fit.rss < limits.residual * fit.tss).any():
            return replace(solve_by_factor(run, problem, origin), sums=sums)
        return refined(run, problem, gram, fit) if kappa > TINY_CONDITION else fit
    if fit is None or kappa > limits.orthogonal or (work <= _CHEAP_FACTOR and kappa > limits.refine):
        if fit is not None:
            offer(fit)
        fit = solve_by_factor(run, problem, gram.mean if problem.fit_intercept else origin)
        return replace(fit, sums=sums)
    if kappa > limits.refine or (fit.rss < limits.residual * fit.tss).any():
        offer(fit)
        return refined(run, problem, gram, fit)
    return fit
