"""Choice of the solver for principal axes, by the shape of the data.

- More rows than columns: sums of products of columns (`covariance`); rows are read again for ill-conditioned columns.
- More columns than rows: products of rows, or singular values (`gathered`).
- Thousands of both: block Krylov method (`krylov`).
- Missing values: expectation-maximisation (`missing`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from summula import em
from summula.core.engine.threads import one_blas_thread
from summula.core.errors import ParameterError, warn
from summula.core.estimator.input.finiteness import raise_if_overflowing, raise_if_underflowing
from summula.core.estimator.run import Run
from summula.core.numerics.solution import Solution
from summula.core.numerics.statistics import Gram, off_centre
from summula.decomposition.principal import missing
from summula.decomposition.principal.axes import Axes, Problem
from summula.decomposition.principal.covariance import from_gram
from summula.decomposition.principal.gathered import from_factor, from_rows, gather
from summula.decomposition.principal.krylov import KrylovOptions, leading_axes

__all__ = ["KEPT_COLUMNS", "Found", "Options", "solve", "sum_products"]

KEPT_COLUMNS = 2_048  # number of columns up to which products of columns are summed, and stored
_KEPT_WIDE = 512  # the same for more columns than rows, or if a Krylov method is requested
_GATHERED_ROWS = 2_048  # number of rows up to which they are gathered if there are more columns
_GATHERED_VALUES = 2**27
_MOST_ALL = 16_384  # rows or columns up to which all axes can be requested
_BLOCKS = 4  # minimum ratio of rows and columns to the block width for a requested Krylov method
_SUMMED_MISSING = 4_096  # number of columns up to which EM is affordable


class Options(NamedTuple):
    """Solver options: `wanted` axes (None: as many as the eigenvalues imply), a speed hint, tolerances and limits."""

    wanted: int | None
    hint: str
    krylov: KrylovOptions
    em_tol: float
    max_iter: int


class Found(NamedTuple):
    """The axes, and the sums from which they can be recomputed, if these were formed."""

    axes: Axes
    sums: Gram | None


def sum_products(run: Run, problem: Problem, *, each: bool | None = None) -> Gram:
    """Return products of all pairs of columns, about an origin near the mean, or about 0; NaN for missing values.

    `each` states whether every column is divided by its own scale, by default whether the problem scales them.
    """
    d = run.source.n_features
    origin = run.origin()[:d] if problem.center else np.zeros(d)
    gram = run.sum(Gram, origin, "products of columns")
    if not np.isnan(gram.total).any():
        squares = np.diagonal(gram.products)
        raise_if_overflowing(run.source, squares)
        each = problem.scale if each is None else each
        raise_if_underflowing(run.source, squares, gram.total, each=each, dtype=run.source.dtype)
    if problem.center and not run.source.is_sparse and np.isfinite(gram.total).all() and off_centre(gram):
        return run.sum(Gram, gram.mean, "products of columns, re-centred")
    return gram


def solve(run: Run, problem: Problem, options: Options, offer: Callable[[Axes], None]) -> Found:
    """Compute the principal axes of the rows of a run; `offer` receives intermediate results of iterative solvers."""
    n, d = run.source.n_rows, run.source.n_features
    if _suits_krylov(run, options):
        assert options.wanted is not None
        with one_blas_thread():  # throughout, as in the passes: changing it costs more than it saves
            axes = leading_axes(run, problem, options.wanted, options.krylov, offer)
        return Found(_with_missing(run, problem, options, offer) if axes is None else axes, None)
    if min(n, d) > _MOST_ALL:
        raise ParameterError(
            f"Computing all eigenvalues of {n} rows and {d} columns is too expensive: pass n_components as an int."
        )
    unit = float(np.finfo(run.source.dtype).eps)
    sums = sum_products(run, problem) if d <= _KEPT_WIDE or n > d else None
    if sums is not None and np.isnan(sums.total).any():
        return Found(_with_missing(run, problem, options, offer), None)
    if n <= d:
        origin = run.origin()[:d] if problem.center else np.zeros(d)
        rows, weight = gather(run, origin)
        if np.isnan(rows).any():
            return Found(_with_missing(run, problem, options, offer), sums)
        return Found(from_rows(rows, weight, origin, problem, options.wanted, unit), sums)
    assert sums is not None
    axes = from_gram(sums, problem, options.wanted, unit)
    if options.hint == "full" or _is_short(axes, sums, unit):
        axes = from_factor(run, problem, axes, options.wanted)
    return Found(axes, sums if d <= KEPT_COLUMNS else None)


def _suits_krylov(run: Run, options: Options) -> bool:
    n, d = run.source.n_rows, run.source.n_features
    if options.wanted is None or options.wanted == 0:
        return False
    block = options.wanted + options.krylov.oversamples
    if _BLOCKS * block > min(n, d):
        return False
    if options.hint == "randomized":
        return True
    if options.hint == "arpack":  # full accuracy, which the products of few columns provide directly
        return d > _KEPT_WIDE
    if options.hint in ("full", "covariance_eigh"):
        return False
    return d > KEPT_COLUMNS and (n > _GATHERED_ROWS or n * d > _GATHERED_VALUES)


def _is_short(axes: Axes, sums: Gram, unit: float) -> bool:
    """Return whether a requested eigenvalue is so small that it is affected by the rounding of the products."""
    varying = int((np.diag(sums.centred()) > 0).sum())
    kept = axes.values[: min(len(axes.vectors), varying, max(axes.count - 1, 1))]
    return bool(len(kept) and kept[-1] < np.sqrt(unit) * kept[0])


def _with_missing(run: Run, problem: Problem, options: Options, offer: Callable[[Axes], None]) -> Axes:
    """Compute axes by EM, for missing values."""
    if run.source.n_features > _SUMMED_MISSING:
        raise ParameterError(
            f"{run.source.n_features} columns with missing values are too many for EM (at most {_SUMMED_MISSING}): "
            "impute them first."
        )
    run.keep_rows(passes=options.max_iter)
    model = missing.model_of(run, problem, options.wanted)

    def assign(solution: Solution) -> None:
        offer(missing.axes_of(model, solution, options.wanted))

    solution = em.fit(model, run, tol=options.em_tol, max_iter=options.max_iter, assign=assign)
    if solution.status == "max_iter":
        warn(
            f"{type(run.estimator).__name__} did not converge in {options.max_iter} EM steps (tolerance "
            f"{options.em_tol:.1e} per row): increase max_iter or tol.",
            ConvergenceWarning,
        )
    return missing.axes_of(model, solution, options.wanted)
