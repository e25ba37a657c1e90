"""The EM model of a mixture of normal distributions: starts, and detection of collapsed components."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from summula import em
from summula.core.data.layout.blocks import aligned
from summula.core.engine.random import stream_key, uniform
from summula.core.errors import DataError, ParameterError
from summula.core.estimator.input.argument_values import numbers_in
from summula.core.estimator.input.finiteness import raise_if_overflowing, raise_if_underflowing
from summula.core.estimator.run import Run
from summula.mixture.gaussians import Gaussians, GaussianSums, cholesky_factors, collapse, maximized
from summula.mixture.starts import RowSample, nearest, row_sample, seed_points

__all__ = ["GaussianEM", "Given", "collapsed_components", "precision_factors"]

Array = NDArray[Any]

_SPREAD = 100.0  # maximum ratio of the variance of a collapsed component to that of the mixture


@dataclass(frozen=True)
class Given:
    """Initial parameters given by the user; None for those to be initialised."""

    weights: Array | None = None
    means: Array | None = None
    factors: Array | None = None

    @property
    def is_whole(self) -> bool:
        """Return whether all parameters are given."""
        return self.weights is not None and self.means is not None and self.factors is not None


class GaussianEM(em.Model[Gaussians, GaussianSums]):
    """A mixture of normal distributions.

    Parameters
    ----------
    k : int
        Number of components.
    kind : {"full", "tied", "diag", "spherical"}
    reg_covar : float
        Added to the diagonal of every covariance.
    method : {"kmeans", "k-means++", "random", "random_from_data"}
    given : Given
    seeds : sequence of int
        One per start.
    theta : Gaussians, optional
        Parameters to continue from, instead of a new start.
    """

    statistic = GaussianSums

    def __init__(
        self,
        k: int,
        kind: str,
        reg_covar: float,
        method: str = "kmeans",
        given: Given | None = None,
        seeds: Sequence[int] = (0,),
        theta: Gaussians | None = None,
    ) -> None:
        self.k, self.kind, self.reg_covar, self.method = k, kind, reg_covar, method
        self.given, self.seeds, self.theta = Given() if given is None else given, seeds, theta

    def maximize(self, sums: GaussianSums, theta: Gaussians) -> Gaussians:
        """Perform the M-step."""
        return maximized(sums, theta, self.reg_covar)

    def is_degenerate(self, theta: Gaussians) -> bool:
        """Return whether a component has collapsed to a few rows, or to a line or plane through them."""
        return bool(len(collapsed_components(theta, self.reg_covar)))

    def starts(self, run: Run) -> list[Gaussians]:
        """Initialise each start from the responsibilities given by some points of a sample."""
        if self.theta is not None:
            return [self.theta]
        given = self.given
        if given.weights is not None and given.means is not None and given.factors is not None:
            return [Gaussians(self.kind, given.weights, given.means, given.factors)]
        sample = row_sample(run, self.seeds[0])
        rows, scale = _filled(sample, run)
        return [self._start(rows, scale, sample.weight, seed) for seed in self.seeds]

    def _start(self, rows: Array, scale: Array, weight: Array, seed: int) -> Gaussians:
        Z = rows / scale
        if self.given.means is not None:
            labels = nearest(Z, self.given.means / scale)
        elif self.method == "random":
            R = np.stack([uniform(stream_key(seed, (2, k)), len(Z)) for k in range(self.k)], axis=1)
            return self._from(rows, weight[:, None] * (R / R.sum(axis=1, keepdims=True)))
        else:
            labels = nearest(Z, seed_points(Z, weight, self.k, self.method, stream_key(seed, 1)))
        return self._from(rows, weight[:, None] * (labels[:, None] == np.arange(self.k)))

    def _from(self, rows: Array, R: Array) -> Gaussians:
        """Perform the M-step from responsibilities R (m, k) of the sampled rows, except for given parameters."""
        rows, R = aligned(rows), aligned(R)
        n = R.sum(axis=0)
        empty = n <= 0
        total = n.sum()
        means = (R.T @ rows) / np.where(empty, 1.0, n)[:, None]
        means[empty] = rows[np.arange(empty.sum()) % len(rows)]
        weights = np.maximum(n, 1e-3 * total / len(n)) / np.maximum(n, 1e-3 * total / len(n)).sum()
        factors = self.given.factors
        if factors is None:
            factors = self._factors(rows, R, n, means)
        given = self.given
        return Gaussians(
            self.kind,
            weights if given.weights is None else given.weights,
            means if given.means is None else given.means,
            factors,
        )

    def _factors(self, rows: Array, R: Array, n: Array, means: Array) -> Array:
        """Return the covariance factors about the means; the pooled one for components with a singular covariance."""
        centred = [aligned(rows - mean) for mean in means]
        if self.kind in ("diag", "spherical"):
            squares = np.stack([aligned(r) @ aligned(Z**2) for r, Z in zip(R.T, centred, strict=True)])
            pooled = squares.sum(axis=0) / n.sum()
            variances = np.where(n[:, None] > 0, squares / np.where(n > 0, n, 1.0)[:, None], 0.0)
            variances = np.where(variances > 0, variances, pooled) + self.reg_covar
            if self.kind == "spherical":
                variances = variances.mean(axis=1, keepdims=True)
            if not (variances > 0).all():
                raise collapse(np.flatnonzero(~(variances > 0).all(axis=1)))
            return np.sqrt(variances)
        products = np.stack([aligned(Z * r[:, None]).T @ Z for r, Z in zip(R.T, centred, strict=True)])
        pooled = products.sum(axis=0)[None] / n.sum()
        if self.kind == "tied":
            return cholesky_factors(pooled, self.reg_covar)
        factors = []
        for k, product in enumerate(products):
            try:
                factors.append(cholesky_factors(product[None] / max(n[k], np.finfo(float).tiny), self.reg_covar)[0])
            except em.Collapse:
                factors.append(cholesky_factors(pooled, self.reg_covar)[0])
        return np.stack(factors)


def _filled(sample: RowSample, run: Run) -> tuple[Array, Array]:
    """Return the sampled rows with missing values replaced by column means, and the spread of each column."""
    rows, weight = sample.rows, sample.weight[:, None]
    missing = np.isnan(rows)
    present_weight = np.where(missing, 0.0, weight)
    counts = present_weight.sum(axis=0)
    if not counts.all():
        j = int(np.flatnonzero(counts == 0)[0])
        raise DataError(
            f"{run.source.column(j)} has no observed value (all are NaN) in the {len(rows)} sampled rows; drop it."
        )
    origin = np.where(missing, 0.0, rows).max(axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = origin + (present_weight * np.where(missing, 0.0, rows - origin)).sum(axis=0) / counts
        rows = np.where(missing, mean, rows)
        variance = (present_weight * (rows - mean) ** 2).sum(axis=0) / counts
    raise_if_overflowing(run.source, variance)
    raise_if_underflowing(run.source, variance * run.source.n_rows, origin - mean)
    return rows, np.where(variance > 0, np.sqrt(variance), 1.0)


def collapsed_components(theta: Gaussians, reg_covar: float) -> NDArray[np.intp]:
    """Return the components whose variance, in some direction, is negligible relative to that of the mixture."""
    covariances = theta.covariances
    drift = theta.means - theta.weights @ theta.means
    total = np.einsum("k,kij->ij", theta.weights, covariances) + np.einsum("k,ki,kj->ij", theta.weights, drift, drift)
    found = []
    for k, S in enumerate(covariances):
        values, vectors = linalg.eigh(S)
        whole = vectors[:, 0] @ total @ vectors[:, 0]
        if values[0] <= 2 * reg_covar and whole > _SPREAD * max(values[0], reg_covar):
            found.append(k)
    return np.array(found, np.intp)


def precision_factors(precisions: Any, kind: str, k: int, d: int) -> Array:
    """Return the factors of covariances given by their inverses, or raise with scikit-learn's message."""
    values = numbers_in("precisions_init", precisions)
    shape = {"full": (k, d, d), "tied": (d, d), "diag": (k, d), "spherical": (k,)}[kind]
    if values.shape != shape:
        raise ParameterError(
            f"The parameter '{kind} precision' should have the shape of {shape}, but got {values.shape}"
        )
    if kind in ("diag", "spherical"):
        if not (values > 0).all():
            raise ParameterError(f"'{kind} precision' should be positive")
        return np.asarray(1.0 / np.sqrt(values)).reshape(k, -1)
    factors = []
    for P in values.reshape(-1, d, d):
        if not np.allclose(P, P.T) or not (linalg.eigvalsh(P) > 0).all():
            raise ParameterError(f"'{kind} precision' should be symmetric, positive-definite")
        factors.append(linalg.cholesky(linalg.inv(P), lower=True))
    return np.stack(factors)
