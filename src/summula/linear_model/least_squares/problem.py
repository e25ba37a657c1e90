"""The least-squares problem, its solution, and residual sums, shared by all solvers.

Equations are numbered in `least_squares/solver.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.data.layout.blocks import aligned, product
from summula.core.model_files import schema
from summula.core.numerics.exact import intercepts, leads
from summula.core.numerics.statistics import Gram
from summula.core.numerics.sums import Sum

if TYPE_CHECKING:
    from summula.core.data.sources import Source
    from summula.core.estimator.run import Run

__all__ = [
    "EXTENDED_ELEMENTS",
    "ROUNDINGS",
    "Fit",
    "Point",
    "Problem",
    "Residuals",
    "centred_slope",
    "hidden",
    "penalty",
    "quadratic_gap",
    "residual_dtype",
    "residual_noise",
    "residual_pass",
]

Array = NDArray[np.float64]

EXTENDED_ELEMENTS = 1_000_000  # rows x columns up to which residuals are also computed in extended precision
ROUNDINGS = 16.0  # upper bound on the number of roundings in a slope, which is summed over blocks


class Problem(NamedTuple):
    """Definition of the problem (1)."""

    fit_intercept: bool
    alpha: Array  # one per target
    positive: bool
    dtype: Any = np.float64  # of the returned coefficients, which the certificate is about

    def as_returned(self, coef: Array) -> Array:
        """Round coefficients to the dtype in which they are returned, as float64."""
        if self.dtype == np.float64:
            return coef
        with np.errstate(over="ignore"):
            return coef.astype(self.dtype).astype(np.float64)


def _counts_columns(fit: Fit, sizes: schema.Sizes) -> str | None:
    columns = sizes["n_features"] + sizes["n_targets"]
    if fit.sums is not None and len(fit.sums.origin) != columns:
        return f"sums have {len(fit.sums.origin)} columns, but there are {columns} features and targets"
    if sizes.get("n_columns", columns) != columns or (fit.origin is None) != (fit.drift is None):
        return f"origin and drift do not have {columns} features and targets"
    if fit.half_inverse is not None and fit.half_inverse.shape[1] != fit.rank:
        return f"half_inverse has {fit.half_inverse.shape[1]} columns for a rank of {fit.rank}"
    return None


@schema.saved(
    _counts_columns,
    coef=schema.Array("float64", "n_features", "n_targets"),
    mean_x=schema.Array("float64", "n_features"),
    mean_y=schema.Array("float64", "n_targets"),
    rss=schema.Array("float64", "n_targets", finite=False),
    tss=schema.Array("float64", "n_targets", finite=False),
    gap=schema.Array("float64", "n_targets", finite=False),
    count=schema.Integer(0),
    weight=schema.Real(5e-324),
    log_weight=schema.Real(),
    half_inverse=schema.Array("float64", "n_features", "n_determined", finite=False) | None,
    rank=schema.Integer(0),
    dependent=schema.Array("int64", "n_dependent", low=0, below="n_features"),
    undetermined=schema.Array("int64", "n_undetermined", low=0, below="n_features"),
    method=schema.Text(),
    n_iter=schema.Integer(0) | None,
    trace=schema.Items(schema.Real(finite=False)),
    correction=schema.Real() | schema.Array("float64", "n_targets"),
    intercept_free=schema.Flag(),
    sums=schema.Object(Gram) | None,
    origin=schema.Array("float64", "n_columns") | None,
    drift=schema.Array("float64", "n_columns") | None,
    noise=schema.Real(finite=False),
)
@dataclass(frozen=True)
class Fit:
    """Solution of a least-squares problem, with the quantities needed for statistics.

    Attributes
    ----------
    coef : ndarray of shape (n_features, n_targets)
    mean_x, mean_y : ndarray
        Centre of the columns (zeros without an intercept).
    rss, tss : ndarray of shape (n_targets,)
        Residual and total sum of squares.
    gap : ndarray of shape (n_targets,)
        Bound (6) or (7).
    half_inverse : ndarray of shape (n_features, rank), or None
        F with F F' = (Xc'W Xc)^+; None for penalised, constrained or iterative fits.
    rank : int
    dependent : ndarray of int
        Columns that are linear combinations of others.
    undetermined : ndarray of int
        Columns whose coefficient the data do not determine.
    intercept_free : bool
        Whether the data do not determine the intercept either.
    sums : Gram, or None
        Sums from which the fit can be updated when rows are added or removed; None for more than 2,048 columns.
    origin, drift : ndarray of shape (n_features + n_targets,)
        A point near the means, and the differences of the means to it, with more digits than `mean_x` and `mean_y`.
    noise : float
        Rounding error of the gaps.
    """

    coef: Array
    mean_x: Array
    mean_y: Array
    rss: Array
    tss: Array
    gap: Array
    count: int
    weight: float
    log_weight: float
    half_inverse: Array | None
    rank: int
    dependent: NDArray[np.intp]
    undetermined: NDArray[np.intp]
    method: str
    n_iter: int | None = None
    trace: tuple[float, ...] = ()
    correction: Array | float = 0.0
    intercept_free: bool = True
    sums: Gram | None = None
    origin: Array | None = None
    drift: Array | None = None
    noise: float = 0.0

    @property
    def lead(self) -> Array:
        """Optimal intercept about the origin."""
        assert self.drift is not None
        d = len(self.coef)
        return np.asarray(self.drift[d:] - self.drift[:d] @ self.coef + self.correction)

    @property
    def lead_error(self) -> Array:
        """Bound on the rounding error of the optimal intercept about the origin."""
        if self.drift is None:  # from a file of version 0.1
            return np.zeros(len(self.rss))
        d = len(self.coef)
        size = np.abs(self.drift[d:]) + np.abs(self.drift[:d]) @ np.abs(self.coef) + np.abs(self.correction)
        return np.asarray(4 * float(np.finfo(np.float64).eps) * size)

    @property
    def intercept(self) -> Array:
        """b = ybar - xbar'v, rounded once."""
        return self.intercept_in(np.float64)

    def intercept_in(self, dtype: Any) -> Array:
        """Return the intercept rounded to a dtype."""
        if self.origin is None:  # from a file of version 0.1
            return np.asarray(self.mean_y - self.mean_x @ self.coef + self.correction)
        d = len(self.coef)
        return intercepts(self.coef.T, self.origin[:d], self.lead, self.origin[d:], dtype=dtype)

    def shift_of(self, intercept: Array) -> Array:
        """Return the difference between an intercept and the optimal one."""
        if self.origin is None:
            return np.zeros(len(self.rss))
        d = len(self.coef)
        return leads(self.coef.T, self.origin[:d], intercept, -self.origin[d:], -self.lead)


class Point(NamedTuple):
    """Point at which residuals are computed, and their dtype (float64, or longdouble for more digits)."""

    origin: Array
    coef: Array
    intercept: NDArray[Any]  # about the origin
    number: Any = np.float64


@dataclass(frozen=True)
class Residuals(Sum):
    """Sums of a residual pass at a point: sum w r^2, sum w r, X'W r about an origin, and the weight."""

    squares: NDArray[Any]
    total: NDArray[Any]
    slope: NDArray[Any]
    weight: float

    @classmethod
    @np.errstate(over="ignore", invalid="ignore")
    def map(cls, chunk: Chunk, params: Point) -> Self:
        """The residual sums of one chunk."""
        origin, coef, intercept, number = params
        d = len(coef)
        assert chunk.y is not None
        y = chunk.y - origin[d:].astype(number)
        w = chunk.weights
        if chunk.is_sparse and number is np.float64:
            from summula.linear_model.least_squares.sparse_kernels import residual_sums

            X, slope = chunk.rows.about(origin[:d]), np.zeros(coef.shape)
            r = np.ascontiguousarray(y - intercept)
            residual_sums(X.indptr, X.indices, X.data, w if chunk.weight is not None else np.empty(0), r, coef, slope)
            wr = w[:, None] * r
        else:
            X = chunk.block(np.float64, None if number is not np.float64 else origin[:d])
            X = X if number is np.float64 else aligned(X.astype(number) - origin[:d])
            r = y - product(X, coef.astype(number, copy=False)) - intercept
            wr = w[:, None] * r
            slope = product(X.T, wr)
        return cls((wr * r).sum(axis=0), wr.sum(axis=0), slope, float(w.sum()))


def quadratic_gap(
    slope: Array, coef: Array, solve_h: Callable[[Array], Array], positive: bool, *, regular: bool = True
) -> Array:
    """Return the bounds (6) and (7), one per target: `slope` is g, `solve_h` applies H^+, the inverse if `regular`."""
    if not positive:
        return np.asarray((slope * solve_h(slope)).sum(axis=0))
    everywhere = np.maximum(-slope, 0.0)  # m / 2
    # Any m >= 0 is valid. At the optimum m is 0 for nonzero coefficients, so setting it to 0 has a second-order effect.
    choices = (everywhere, np.where(coef == 0, everywhere, 0.0)) if regular else (everywhere,)
    found = [2 * (m * coef).sum(axis=0) + ((slope + m) * solve_h(slope + m)).sum(axis=0) for m in choices]
    return np.asarray(np.min(found, axis=0))


def hidden(kappa: float, tss: Array, unit: float) -> float:
    """Return the error of (6) due to rounding errors of relative size `unit` in the slopes."""
    with np.errstate(over="ignore", invalid="ignore"):
        return float((ROUNDINGS * unit * kappa) ** 2 * tss.sum())


def residual_noise(rss: Array, size: Array, unit: float) -> float:
    """Return (8) of `least_squares/certificate.py`, the error of residual sums of squares, from the norms of the terms.

    There is one term per column, and one for the target, per residual; `unit` is the precision of the residuals.
    """
    error = ROUNDINGS * unit * size
    with np.errstate(over="ignore", invalid="ignore"):
        return float((error**2 + 2 * error * np.sqrt(np.maximum(rss, 0.0))).sum())


def penalty(problem: Problem, coef: Array) -> float:
    """Return alpha ||v||^2, summed over the targets."""
    mine = problem.alpha > 0
    return float((problem.alpha[mine] * (coef[:, mine] ** 2).sum(axis=0)).sum())


def residual_dtype(source: Source) -> Any:
    """Return the dtype for residuals: extended if it is cheap, so that a check is at least as accurate as the fit."""
    cheap = source.n_rows * source.n_features <= EXTENDED_ELEMENTS and not source.is_sparse
    return np.longdouble if cheap else np.float64


def residual_pass(run: Run, fit: Fit, number: Any = np.float64) -> Residuals:
    """Compute the residual sums of a fit about its origin in one pass."""
    assert fit.origin is not None
    return run.sum(Residuals, Point(fit.origin, fit.coef, fit.lead.astype(number), number), "residuals")


def centred_slope(residuals: Residuals, drift: Array, problem: Problem) -> Array:
    """Return Xc'W r of centred residuals, from sums about an origin; `drift` is the mean minus the origin."""
    if not problem.fit_intercept:
        return np.asarray(residuals.slope, dtype=np.float64)
    return np.asarray(residuals.slope - np.outer(drift, residuals.total), dtype=np.float64)
