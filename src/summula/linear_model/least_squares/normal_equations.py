"""Least squares from the Gram matrix: equations (3) and (4) of `least_squares/solver.py`."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from summula.core.numerics.statistics import Gram, off_centre
from summula.linear_model.least_squares.orthogonal import solve_factor
from summula.linear_model.least_squares.problem import (
    ROUNDINGS,
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

__all__ = [
    "ScaledCholesky",
    "among",
    "from_gram",
    "from_sums",
    "live_columns",
    "refined",
    "scaled_cholesky",
    "well_centred",
]

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_SINGULAR = 1e7  # condition number above which the solution from the sums has at most two digits
_CENTRED = 8 * _EPS  # fraction of the sum of squares of a constant column that remains after centring
_SUBTRACTED = 64 * _EPS  # ... and after subtraction: rounding errors of two different sums of thousands of terms
_CANCELLING = 10.0  # squared size of terms, relative to y, above which their cancellation loses digits


def well_centred(run: Run, problem: Problem, gram: Gram) -> Gram:
    """Recompute the sums about the mean if the pilot origin was so far from it that centring loses digits."""
    if not problem.fit_intercept or run.source.is_sparse:
        return gram
    return run.sum(Gram, gram.mean, "Gram matrix, re-centred") if off_centre(gram) else gram


def live_columns(gram: Gram, S: Array, fit_intercept: bool, d: int, squares: Array | None = None) -> NDArray[np.bool_]:
    """Return a mask of the columns that vary: their products about the mean exceed the rounding errors.

    `squares` are the largest sums of squares so far, if rows were subtracted.
    """
    if squares is not None:
        return np.asarray(S.diagonal()[:d] > _SUBTRACTED * squares)
    squares = gram.products.diagonal()[:d] if fit_intercept else np.zeros(d)
    return np.asarray(S.diagonal()[:d] > _CENTRED * squares)


def from_gram(gram: Gram, problem: Problem, d: int, squares: Array | None = None) -> tuple[Fit | None, float]:
    """Solve (3) and return the condition number; no fit if the scaled matrix is not numerically positive definite."""
    S = gram.centred() if problem.fit_intercept else gram.products
    alive = live_columns(gram, S, problem.fit_intercept, d, squares)
    about_origin = gram.products.diagonal()[:d]
    few = about_origin < gram.count * np.finfo(np.float64).tiny
    if few.any() and (few & ((about_origin > 0) | (gram.total[:d] != 0))).any():
        return None, np.inf  # squares underflow
    if not alive.any():
        return None, np.inf
    Sxx, Sxy, Syy = among(S[:d, :d], alive), S[:d, d:][alive], S.diagonal()[d:]
    coef, excess, gap, kappa = np.empty_like(Sxy), np.empty_like(Sxy), np.empty(len(Syy)), 1.0
    # Centring amplifies the rounding errors of the products by this factor.
    loss = float(((about_origin if squares is None else squares)[alive] / Sxx.diagonal()).max())
    factor = None
    for alpha, mine in _penalties(problem):
        factor = scaled_cholesky(Sxx, alpha)
        if factor is None:
            return None, np.inf
        kappa = max(kappa, factor.kappa)
        solve = factor.nonnegative if problem.positive else factor.solve
        coef[:, mine] = at = problem.as_returned(solve(Sxy[:, mine]))
        excess[:, mine] = Sxy[:, mine] - Sxx @ at
        gap[mine] = quadratic_gap(excess[:, mine] - alpha * at, at, factor.solve, problem.positive)
    rss = Syy - ((Sxy + excess) * coef).sum(axis=0)
    mean = gram.mean if problem.fit_intercept else np.zeros(len(gram.origin))
    plain = factor is not None and not problem.positive and not problem.alpha.any()
    constant = np.flatnonzero(~alive)
    kappa *= math.sqrt(max(loss, 1.0))
    fit = Fit(
        coef=_spread(coef, alive),
        mean_x=mean[:d],
        mean_y=mean[d:],
        rss=np.maximum(rss, 0.0),
        tss=Syy.copy(),
        gap=gap,
        count=gram.count,
        weight=gram.weight,
        log_weight=gram.log_weight,
        half_inverse=_spread(factor.half_inverse(), alive) if plain and factor is not None else None,
        rank=d - len(constant),
        dependent=constant,
        undetermined=constant,
        method="cholesky",
        intercept_free=bool(mean[constant].any()),
        sums=gram,
        origin=gram.origin if problem.fit_intercept else np.zeros(len(gram.origin)),
        drift=gram.total / gram.weight if problem.fit_intercept else np.zeros(len(gram.origin)),
        noise=_noise(kappa, Syy, problem, sizes_about_origin(gram, _spread(coef, alive))),
    )
    return fit, kappa


def _penalties(problem: Problem) -> list[tuple[float, Any]]:
    """Return each penalty and the targets that have it, as an index."""
    different = sorted(set(problem.alpha.tolist()))
    if len(different) == 1:
        return [(different[0], slice(None))]
    return [(alpha, problem.alpha == alpha) for alpha in different]


def among(S: Array, alive: NDArray[np.bool_]) -> Array:
    """Return a copy of the rows and columns of S that vary."""
    return S.copy() if alive.all() else S[np.ix_(alive, alive)]


def _noise(kappa: float, tss: Array, problem: Problem, size: Array) -> float:
    """Return the rounding error of the gap and of a residual sum of squares computed from the sums."""
    unit = float(np.finfo(problem.dtype).eps)
    with np.errstate(over="ignore"):
        return hidden(kappa, tss, unit) + 4 * unit * float((size**2).sum())


def sizes_about_origin(gram: Gram, coef: Array) -> Array:
    """Return the norms of the terms of residuals about the origin, one per target."""
    lengths = np.sqrt(gram.products.diagonal())
    return np.asarray(lengths[len(coef) :] + lengths[: len(coef)] @ np.abs(coef))


def from_sums(gram: Gram, problem: Problem, d: int, squares: Array) -> tuple[Fit, float]:
    """Return the fit from sums alone, and the condition number kappa (the error is about kappa^2 eps).

    kappa is infinite if y depends on directions of the columns whose variance is lost in the rounding of the sums.

    `squares` are the largest sums of squares of the columns before rows were subtracted.
    """
    squares = np.maximum(squares, np.diag(gram.products)[:d])
    fit, kappa = from_gram(gram, problem, d, squares)
    few = _most_rank(gram, problem) < d and not problem.alpha.all()
    if fit is None or few or kappa > _SINGULAR:
        fit, kappa = _from_eigenvalues(gram, problem, d, squares)
        fit = replace(fit, sums=gram)
    return replace(fit, noise=fit.noise + _cancellation(gram, problem, fit, kappa)), kappa


def _cancellation(gram: Gram, problem: Problem, fit: Fit, kappa: float) -> float:
    """Return the rounding error where terms v_j x_j that are much larger than y cancel, which a pass would remove."""
    S = gram.centred() if problem.fit_intercept else gram.products
    sizes = np.sqrt(np.maximum(S.diagonal()[: len(fit.coef)], 0.0)) @ np.abs(fit.coef)
    beyond = np.maximum(sizes**2 - _CANCELLING * fit.tss, 0.0)
    unit = float(np.finfo(problem.dtype).eps)
    kappa = kappa if np.isfinite(kappa) else 1.0
    return ROUNDINGS * unit * float(beyond.sum()) + hidden(kappa, beyond, unit)


def _most_rank(gram: Gram, problem: Problem) -> int:
    """Return the largest possible rank for this number of rows."""
    return max(gram.count - int(problem.fit_intercept), 0)


def _from_eigenvalues(gram: Gram, problem: Problem, d: int, squares: Array) -> tuple[Fit, float]:
    """Solve for a singular Gram matrix, with a factor A, A'A = S, from the eigenvalues above rounding error."""
    S = gram.centred() if problem.fit_intercept else gram.products
    mean = gram.mean if problem.fit_intercept else np.zeros(len(gram.origin))
    alive = live_columns(gram, S, problem.fit_intercept, d, squares)
    scale = np.sqrt(np.where(alive, np.diag(S)[:d], 1.0))
    loss = float((squares / scale**2).max(initial=1.0, where=alive))
    values, vectors = linalg.eigh(np.where(np.outer(alive, alive), S[:d, :d] / scale / scale[:, None], 0.0))
    kept = values > 4 * d * _EPS * loss * max(float(values[-1]), 1e-300)
    kept[: max(d - _most_rank(gram, problem), 0)] = False
    root = np.sqrt(values[kept])
    slopes = vectors.T @ (S[:d, d:] * alive[:, None] / scale[:, None])
    A, B = root[:, None] * vectors[:, kept].T * scale, slopes[kept] / root[:, None]
    answer = solve_factor(A, B, problem, gram.count, np.zeros(d))
    tss = np.diag(S)[d:].copy()
    explained = (B**2).sum(axis=0) - ((B - A @ answer.coef) ** 2).sum(axis=0)
    fit = answer.fit(problem, mean, gram, np.maximum(tss - explained, 0.0), tss)
    spread = float(values[-1] / values[kept][0]) if kept.any() else 1.0
    kappa = float(np.sqrt(spread * loss))
    drift = gram.total / gram.weight if problem.fit_intercept else np.zeros(len(mean))
    fit = replace(fit, drift=drift, noise=_noise(kappa, tss, problem, sizes_about_origin(gram, fit.coef)))
    # y has no slope along columns that are linear combinations of others. A slope that exceeds the rounding errors
    # shows that they nearly are: what it explains is unknown, and at most what is left.
    rounding = 4 * d * np.finfo(problem.dtype).eps * loss * np.sqrt(np.diag(gram.products)[d:])
    lost = (np.abs(slopes[~kept]) > rounding).any(axis=0)
    return replace(fit, gap=fit.gap + np.where(lost, fit.rss, 0.0)), np.inf if lost.any() else kappa


def _spread(rows: Array, alive: NDArray[np.bool_]) -> Array:
    """Return the rows of varying columns, and zeros for constant ones."""
    if alive.all():
        return rows
    whole = np.zeros((len(alive), rows.shape[1]))
    whole[alive] = rows
    return whole


class ScaledCholesky(NamedTuple):
    """S + alpha I = D U'U D, U upper triangular, U'U with a unit diagonal; kappa of U."""

    U: Array
    scale: Array
    kappa: float

    def solve(self, b: Array) -> Array:
        """Return (S + alpha I)^-1 b."""
        z, _ = linalg.lapack.dpotrs(self.U, b / self.scale[:, None])
        return np.asarray(z / self.scale[:, None])

    def half_inverse(self) -> Array:
        """Return F with F F' = (S + alpha I)^-1."""
        inverse, _ = linalg.lapack.dtrtri(self.U)  # the zeros below the diagonal of U are preserved
        return np.asarray(inverse / self.scale[:, None])

    def nonnegative(self, b: Array) -> Array:
        """Return the minimiser over v >= 0."""
        right = linalg.solve_triangular(self.U, b / self.scale[:, None], trans="T", check_finite=False)
        return nonnegative_least_squares(self.U, right) / self.scale[:, None]


def scaled_cholesky(S: Array, alpha: float) -> ScaledCholesky | None:
    """Return the factor of S + alpha I; None if it is not numerically positive definite."""
    H = S.copy()
    H.flat[:: len(H) + 1] += alpha
    scale = np.sqrt(np.maximum(H.diagonal(), 0.0))
    if not scale.all():
        return None
    H /= scale
    H /= scale[:, None]
    norm = float(np.abs(H).sum(axis=0).max())
    U, info = linalg.lapack.dpotrf(H, clean=True)
    if info != 0:
        return None
    rcond, _ = linalg.lapack.dpocon(U, norm)
    return ScaledCholesky(U, scale, 1.0 / math.sqrt(max(rcond, 1e-300)))


def refined(run: Run, problem: Problem, gram: Gram, fit: Fit) -> Fit:
    """Compute the residuals at the Gram solution, one step of refinement, and the residual sum of squares."""
    d = run.source.n_features
    residuals = residual_pass(run, fit)
    S = (gram.centred() if problem.fit_intercept else gram.products)[:d, :d]
    alive = np.setdiff1d(np.arange(d), fit.dependent)
    slope = centred_slope(residuals, gram.mean[:d] - gram.origin[:d], problem)
    step, gap, kappa = np.zeros_like(fit.coef), np.empty(len(fit.gap)), 1.0
    for alpha in np.unique(problem.alpha):
        mine = problem.alpha == alpha
        factor = scaled_cholesky(S[np.ix_(alive, alive)], float(alpha))
        assert factor is not None
        kappa = max(kappa, factor.kappa)
        g = (slope - problem.alpha * fit.coef)[np.ix_(alive, mine)]
        if not problem.positive:
            before = fit.coef[np.ix_(alive, mine)]
            step[np.ix_(alive, mine)] = change = problem.as_returned(before + factor.solve(g)) - before
            g = g - S[np.ix_(alive, alive)] @ change - alpha * change
        at = (fit.coef + step)[np.ix_(alive, mine)]
        gap[mine] = quadratic_gap(g, at, factor.solve, problem.positive)
    squares = residuals.squares - (residuals.total**2 / residuals.weight if problem.fit_intercept else 0.0)
    rss = squares - (step * (2 * slope - S @ step)).sum(axis=0)
    # Residuals and their products are float64; the products of columns only affect a small step.
    unit = _EPS + float(np.finfo(problem.dtype).eps) ** 2
    fit = replace(fit, coef=fit.coef + step, rss=np.maximum(rss, 0.0), gap=gap)
    noise = hidden(kappa, fit.tss, unit) + residual_noise(fit.rss, sizes_about_origin(gram, fit.coef), _EPS)
    return replace(fit, noise=noise)
