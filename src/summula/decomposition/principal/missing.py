"""Principal axes with missing values: probabilistic principal components by expectation-maximisation.

    a = m + L'z + e,       z ~ N(0, I_r),     e ~ N(0, v I),                 loadings L of shape (r, d)          (1)

For complete rows the likelihood is maximal if the rows of L are the leading eigenvectors of the covariance matrix
times (l_j - v)^1/2, with v the mean of the other eigenvalues (Tipping and Bishop 1999), so the axes are principal axes.
With the columns O of a row observed and the others missing at random, and l_j the column j of L,

    M = v I + sum_(j in O) l_j l_j',      E[z] = M^-1 sum_O l_j (a_j - m_j),      Cov[z] = v M^-1                (2)
    log p = -1/2 [|O| log 2 pi + (|O| - r) log v + log|M| + (||a_O - m_O - L_O'E[z]||^2 + v ||E[z]||^2) / v]     (3)

The M-step regresses every column on (1, z) over the rows that have it, and v is the mean squared residual,

    (m_j, l_j) = (sum w E[(1,z)(1,z)'])^-1 sum w a_j E[(1,z)],         v = sum of squares left / number of values  (4)

after which z is renormalised to mean 0 and covariance I over all rows, which does not change the fit and accelerates
convergence (Liu, Rubin and Wu 1998). References: Tipping and Bishop (1999), JRSS B 61; Ilin and Raiko (2010),
Practical approaches to principal component analysis in the presence of missing values, JMLR 11.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from summula import em
from summula.core.data.chunks import Chunk
from summula.core.data.layout.blocks import product
from summula.core.engine.threads import solving
from summula.core.errors import DataError
from summula.core.estimator.run import Run
from summula.core.numerics.function_sums import FunctionSum
from summula.core.numerics.solution import Solution
from summula.core.numerics.statistics import Moments, weight_sums
from summula.core.numerics.sums import Sum
from summula.decomposition.principal.axes import Axes, Problem, column_scale, oriented
from summula.decomposition.principal.covariance import leading_eigenvectors

__all__ = ["Latent", "MissingModel", "MissingSums", "axes_of", "completed", "log_density", "model_of"]

Array = NDArray[np.float64]

_LEAST = 1e-12  # lower bound of the noise variance, relative to the mean variance


class Latent(NamedTuple):
    """The parameters of (1): mean m, loadings L, noise variance v, and whether the mean is estimated.

    Rows a are x / scale.
    """

    mean: Array
    loadings: Array
    noise: float
    scale: Array
    center: bool


@dataclass(frozen=True)
class _Posterior:
    """E[z] and E[z z'] of rows; `observed` is the mask of values; `rows` are centred, with zeros for missing values."""

    rows: Array
    observed: Array
    mean: Array
    second: Array
    log_density: Array


def _posterior(block: Array, latent: Latent) -> _Posterior:
    """Compute (2) and (3) for rows x of a block, with NaN for missing values."""
    L, v = latent.loadings, latent.noise
    r, d = L.shape
    observed = ~np.isnan(block)
    rows = np.where(observed, block / latent.scale - latent.mean, 0.0)
    there = observed.astype(np.float64)
    pairs = (L[:, None, :] * L[None, :, :]).reshape(r * r, d)
    M = product(there, np.ascontiguousarray(pairs.T)).reshape(-1, r, r) + v * np.eye(r)
    inverse = np.linalg.inv(M)
    right = product(rows, np.ascontiguousarray(L.T))
    mean = (inverse @ right[:, :, None])[:, :, 0]
    second = v * inverse + mean[:, :, None] * mean[:, None, :]
    left = (rows - product(mean, L)) * there
    misfit = (left**2).sum(axis=1) / v + (mean**2).sum(axis=1)
    count = there.sum(axis=1)
    spread = (count - r) * np.log(v) + np.linalg.slogdet(M)[1] + there @ (2 * np.log(latent.scale))
    return _Posterior(
        rows,
        there,
        np.asarray(mean, np.float64),
        np.asarray(second, np.float64),
        -(count * np.log(2 * np.pi) + spread + misfit) / 2,
    )


@dataclass(frozen=True)
class MissingSums(Sum):
    """The sums of the E-step: for every column those of (4), and for all rows those of z.

    The log-likelihood is that of the rows x.
    """

    elbo: float
    count: int
    weight: float
    observed: Array
    second: Array
    cross: Array
    square: Array
    hidden: Array

    @classmethod
    def map(cls, chunk: Chunk, params: Latent) -> Self:
        """Return the sums over one chunk."""
        w = np.asarray(chunk.weights, np.float64)
        found = _posterior(chunk.block(np.float64), params)
        n, r = found.mean.shape
        with_one = np.empty((n, r + 1, r + 1))
        with_one[:, 0, 0] = 1.0
        with_one[:, 0, 1:] = with_one[:, 1:, 0] = found.mean
        with_one[:, 1:, 1:] = found.second
        flat = with_one.reshape(n, -1) * w[:, None]
        count, weight, _ = weight_sums(chunk)
        rows = found.rows
        return cls(
            float(w @ found.log_density),
            count,
            weight,
            product(found.observed.T, w[:, None])[:, 0],
            product(found.observed.T, flat),
            product(rows.T, np.ascontiguousarray(with_one[:, 0, :] * w[:, None])),
            product((rows * rows).T, w[:, None])[:, 0],
            flat.sum(axis=0),
        )


def _filled_products(mean: Array, scale: Array, chunk: Chunk) -> Array:
    """Return products of columns about their means, with missing values replaced by the mean, for the initial axes."""
    w = np.asarray(chunk.weights, np.float64)
    block = np.nan_to_num(chunk.block(np.float64) / scale - mean, nan=0.0, posinf=np.inf, neginf=-np.inf)
    return product(block.T, np.ascontiguousarray(block * w[:, None]))


class MissingModel(em.Model[Latent, MissingSums]):
    """Probabilistic principal components, for `em.fit`."""

    statistic = MissingSums

    def __init__(self, first: Latent) -> None:
        self.first = first
        self.sums: MissingSums | None = None  # of the last step

    def starts(self, run: Run) -> Sequence[Latent]:
        """Return the single start."""
        return [self.first]

    def maximize(self, sums: MissingSums, theta: Latent) -> Latent:
        """Compute (4), and renormalise z to mean 0 and covariance I."""
        self.sums = sums
        d, r = len(sums.observed), len(theta.loadings)
        second = sums.second.reshape(d, r + 1, r + 1)
        first = 0 if theta.center else 1
        solved = np.linalg.solve(second[:, first:, first:], sums.cross[:, first:, None])[:, :, 0]
        left = sums.square.sum() - (solved * sums.cross[:, first:]).sum()
        noise = max(left / sums.observed.sum(), _LEAST * sums.square.sum() / sums.observed.sum())
        shift, L = (solved[:, 0], solved[:, 1:].T) if theta.center else (np.zeros(d), solved.T)
        hidden = sums.hidden.reshape(r + 1, r + 1) / sums.weight
        away = hidden[0, 1:] if theta.center else np.zeros(r)
        root = np.linalg.cholesky(hidden[1:, 1:] - np.outer(away, away))
        return theta._replace(mean=theta.mean + shift + away @ L, loadings=root.T @ L, noise=float(noise))


def model_of(run: Run, problem: Problem, wanted: int | None) -> MissingModel:
    """Return the model for rows with missing values, initialised from the axes of mean-imputed rows."""
    d = run.source.n_features
    moments = run.sum(Moments, run.origin()[:d], "means")
    _check_columns(run, moments)
    unit = float(np.finfo(run.source.dtype).eps)
    mean = moments.mean if problem.center else np.zeros(d)
    variance = moments.variance if problem.center else moments.variance + moments.mean**2
    scale = column_scale(problem, variance, mean, unit)
    filled = run.sum(FunctionSum, functools.partial(_filled_products, mean / scale, scale), "first axes")
    r = max(1, min(d - 1, d if wanted is None else wanted))
    with solving(d):
        values, vectors = leading_eigenvectors(filled.value / filled.weight, None)
    values = np.maximum(values, _LEAST * max(float(values[0]), 1e-300))
    noise = float(values[r:].mean()) if r < d else float(values[-1])
    loadings = np.sqrt(np.maximum(values[:r] - noise, 0.1 * noise))[:, None] * vectors[:r]
    return MissingModel(Latent(mean / scale, loadings, noise, scale, problem.center))


def _check_columns(run: Run, moments: Moments) -> None:
    for j in np.flatnonzero(~(moments.weight > 0))[:1]:
        raise DataError(f"{run.source.column(int(j))} has only missing values: drop it.")


def axes_of(model: MissingModel, solution: Solution, wanted: int | None) -> Axes:
    """Return the axes and eigenvalues of L'L + v I, as for a scatter matrix of complete rows."""
    latent, sums = solution.x, model.sums
    assert sums is not None
    r, d = latent.loadings.shape
    with solving(d):
        _, singular, Vt = linalg.svd(latent.loadings, full_matrices=False)
    variances = np.full(d, latent.noise)
    variances[:r] += singular**2
    kept = d if wanted is None else wanted
    vectors = Vt if kept <= r else np.vstack([Vt, linalg.null_space(Vt).T[: kept - r]])
    values, W = variances * sums.weight, sums.weight
    following = float(values[kept]) if kept < d else 0.0
    return Axes(
        latent.mean * latent.scale,
        latent.scale,
        sums.count,
        W,
        float(values.sum()),
        values,
        oriented(vectors[:kept]),
        "em",
        following,
        n_iter=solution.n_steps,
    )


def completed(block: Array, latent: Latent) -> Array:
    """Return rows with missing values replaced by their conditional expectations."""
    found = _posterior(block, latent)
    expected = (product(found.mean, latent.loadings) + latent.mean) * latent.scale
    return np.where(np.isnan(block), expected, block)


def log_density(block: Array, latent: Latent) -> Array:
    """Return the log density of the observed values of rows x, by (3)."""
    return _posterior(block, latent).log_density
