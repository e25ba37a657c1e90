"""Mixtures of normal distributions: the E-step in one pass over blocks of rows, and the M-step from its sums.

    p(x) = sum_k pi_k N(x; mu_k, Sigma_k),        Sigma_k = L_k L_k'

E-step, with the whitened rows y_ik = L_k^-1 (x_i - mu_k):

    r_ik = pi_k N(x_i; mu_k, Sigma_k) / p(x_i),        log N = -|y_ik|^2 / 2 - log det L_k - d/2 log 2 pi        (1)
    n_k = sum_i w_i r_ik,      s_k = sum_i w_i r_ik y_ik,      S_k = sum_i w_i r_ik y_ik y_ik'                   (2)

M-step, with the drift a_k = s_k / n_k of the mean in whitened coordinates:

    pi_k = n_k / sum_j n_j,        mu_k += L_k a_k,        Sigma_k = L_k (S_k / n_k - a_k a_k') L_k' + reg I        (3)

Sums about the current mean, in units of the current spread, are accurate for data far from 0. Shared
("tied"), diagonal and spherical covariances average (3) over components or columns.

A missing value is replaced by its conditional expectation given the observed values of its row, component by component,
and its conditional covariance is added to S_k: the E-step for values missing at random. The density of a row is that of
its observed values. A row without any observed value is ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from summula.core.data.chunks import Chunk
from summula.core.data.layout.blocks import aligned
from summula.core.model_files import schema
from summula.core.numerics.sums import Sum
from summula.em import Collapse

__all__ = ["GaussianSums", "Gaussians", "log_joint", "maximized"]

Array = NDArray[Any]

_TINY = 10 * np.finfo(np.float64).eps
_LOG_2_PI = float(np.log(2.0 * np.pi))


def _spreads(theta: Any, sizes: schema.Sizes) -> str | None:
    """Check a saved model: the factors have the shape of their kind, and positive diagonals."""
    k, d = theta.means.shape
    shape = {"full": (k, d, d), "tied": (1, d, d), "diag": (k, d), "spherical": (k, 1)}[theta.kind]
    if theta.factors.shape != shape:
        return f"factors must be of shape {shape} for the kind {theta.kind!r}"
    diagonal = theta.factors if theta.is_diagonal else np.diagonal(theta.factors, axis1=1, axis2=2)
    return None if (diagonal > 0).all() else "factors must have a positive diagonal"


@schema.saved(
    _spreads,
    kind=schema.Text("full", "tied", "diag", "spherical"),
    weights=schema.Array("float64", "n_components", low=0.0),
    means=schema.Array("float64", "n_components", "n_features"),
    factors=schema.Array("float64", "..."),
)
@dataclass(frozen=True)
class Gaussians:
    """The parameters of a mixture of normal distributions.

    Attributes
    ----------
    kind : {"full", "tied", "diag", "spherical"}
    weights : ndarray of shape (k,)
    means : ndarray of shape (k, d)
    factors : ndarray of shape (k, d, d), (1, d, d), (k, d) or (k, 1)
        Cholesky factor L of each covariance, or of the shared one; standard deviations if it is diagonal.
    """

    kind: str
    weights: Array
    means: Array
    factors: Array

    def __getstate__(self) -> dict[str, Any]:
        # Derived arrays are recomputed after unpickling, since blocks must be aligned.
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @classmethod
    def from_precisions(cls, kind: str, weights: Array, means: Array, upper: Array) -> Gaussians:
        """Return the mixture with the inverse covariances U U', or 1 / sigma^2 for U = 1 / sigma."""
        k, d = means.shape
        if kind in ("diag", "spherical"):
            return cls(kind, weights, means, 1.0 / upper.reshape(k, -1))
        unit = np.eye(d)
        inverses = [linalg.solve_triangular(U.T, unit, lower=True) for U in upper.reshape(-1, d, d)]
        return cls(kind, weights, means, np.stack(inverses))

    @property
    def is_diagonal(self) -> bool:
        """Whether covariances are diagonal."""
        return self.kind in ("diag", "spherical")

    @cached_property
    def scales(self) -> Array:
        """1 / sigma of diagonal covariances, shape (k, d)."""
        return np.ascontiguousarray(np.broadcast_to(1.0 / self.factors, self.means.shape))

    @cached_property
    def inverse_factors(self) -> Array:
        """L^-1 for each factor."""
        unit = np.eye(self.means.shape[1])
        return np.stack([linalg.solve_triangular(L, unit, lower=True) for L in self.factors])

    @cached_property
    def covariances(self) -> Array:
        """The covariance of each component, shape (k, d, d)."""
        if self.is_diagonal:
            return np.stack([np.diag(row) for row in np.broadcast_to(self.factors**2, self.means.shape)])
        products = self.factors @ self.factors.transpose(0, 2, 1)
        return np.ascontiguousarray(np.broadcast_to(products, (len(self.means), *products.shape[1:])))

    @cached_property
    def log_weights(self) -> Array:
        """Return log pi, a large negative number for a weight of 0."""
        return np.log(np.maximum(self.weights, np.finfo(np.float64).tiny))

    @cached_property
    def constants(self) -> Array:
        """log pi_k - log det L_k - d/2 log 2 pi."""
        d = self.means.shape[1]
        if self.is_diagonal:
            log_det = -np.log(self.scales).sum(axis=1)
        else:
            log_det = np.log(np.diagonal(self.factors, axis1=1, axis2=2)).sum(axis=1)
        return np.asarray(self.log_weights - log_det - 0.5 * d * _LOG_2_PI)

    @cached_property
    def origin(self) -> Array:
        """Origin of the rows: the mean of the mixture."""
        return np.asarray((self.weights[:, None] * self.means).sum(axis=0))

    @cached_property
    def whitening(self) -> tuple[Array, Array]:
        """Return L_k^-1, shape (k, d, d), and L_k^-1 times the mean minus the origin, shape (k, d)."""
        k, d = self.means.shape
        inverses = np.ascontiguousarray(np.broadcast_to(self.inverse_factors, (k, d, d)))
        return inverses, np.ascontiguousarray(np.einsum("kij,kj->ki", inverses, self.means - self.origin))

    def distance(self, other: Gaussians) -> float:
        """Return the largest change of a weight, of a mean in standard deviations, or (relative) of a covariance."""
        drift, scale = other.means - self.means, other.factors / self.factors if self.is_diagonal else None
        if scale is not None:
            moved, spread = drift * self.scales, scale**2 - 1.0
        else:
            inverses = np.broadcast_to(self.inverse_factors, (len(self.means), *self.factors.shape[1:]))
            moved, turned = np.einsum("kij,kj->ki", inverses, drift), self.inverse_factors @ other.factors
            spread = turned @ turned.transpose(0, 2, 1) - np.eye(self.means.shape[1])
        return float(max(np.abs(part).max() for part in (other.weights - self.weights, moved, spread)))


class _Rows(NamedTuple):
    """Some rows of a chunk minus the origin: Z (n, d), their indices in the chunk, and which values are observed."""

    Z: Array
    places: Any
    patterns: Any  # None if all values are observed


# ------------------------------------------------------------------------------------------------------- log densities


def _split(Z: Array) -> Iterator[_Rows]:
    """Split rows into complete ones and those with missing values, grouped by missing pattern."""
    if not np.isnan(Z.sum()):
        yield _Rows(Z, slice(None), None)
        return
    missing = np.isnan(Z)
    incomplete = missing.any(axis=1)
    if not incomplete.all():
        places = np.flatnonzero(~incomplete)
        yield _Rows(aligned(Z[places]), places, None)
    if incomplete.any():  # avoids infinities of both signs
        places = np.flatnonzero(incomplete)
        order, patterns = _patterns(missing[places])
        yield _Rows(aligned(Z[places[order]]), places[order], patterns)


def _patterns(missing: Array) -> tuple[Array, Any]:
    """Return the order that groups rows by missing pattern, and the groups."""
    from summula.mixture.kernels import Patterns

    kinds, inverse, counts = np.unique(np.packbits(missing, axis=1), axis=0, return_inverse=True, return_counts=True)
    order = np.argsort(inverse.ravel(), kind="stable")
    is_missing = np.unpackbits(kinds, axis=1, count=missing.shape[1]).astype(bool)
    columns = np.argsort(is_missing, axis=1, kind="stable")
    starts = np.concatenate([[0], np.cumsum(counts)])
    return order, Patterns(columns.astype(np.int64), (~is_missing).sum(axis=1), starts.astype(np.int64))


def log_joint(chunk: Chunk, theta: Gaussians) -> Array:
    """Return log pi_k + log N(x_i; mu_k, Sigma_k), shape (n, k), over the observed values of each row."""
    from summula.mixture import kernels

    out = np.empty((len(chunk), len(theta.means)))
    block = chunk.block(np.float64, theta.origin)
    means = theta.means - theta.origin
    if theta.is_diagonal:
        joint = np.empty(out.T.shape)
        kernels.diagonal_joint(block, means, theta.scales, theta.constants, joint)
        out[:] = joint.T
        return out
    for rows in _split(block):
        joint = np.empty((out.shape[1], len(rows.Z)))
        if rows.patterns is None:
            kernels.whitened_joint(rows.Z, *theta.whitening, theta.constants, joint)
        else:
            kernels.incomplete_joint(rows.Z, rows.patterns, means, theta.covariances, theta.log_weights, joint)
        out[rows.places] = joint.T
    return out


# ----------------------------------------------------------------------------------------------------------- the E-step


@dataclass(frozen=True)
class GaussianSums(Sum):
    """The sums (2), in whitened coordinates about the means of the E-step.

    Attributes
    ----------
    elbo, weight : float
        The weighted sum of the log density, and of the weights.
    counts : ndarray of shape (k,)
    first : ndarray of shape (k, d)
    second : ndarray of shape (k, d, d), or (k, d) for diagonal covariances
    """

    elbo: float
    weight: float
    counts: Array
    first: Array
    second: Array

    @classmethod
    def map(cls, chunk: Chunk, params: Gaussians) -> Self:
        """Return the sums over one chunk at the parameters `params`."""
        block = chunk.block(np.float64, params.origin)
        weight = np.ascontiguousarray(chunk.weights, np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            if params.is_diagonal:
                return cls._diagonal(block, weight, params)
            parts = [
                cls._complete(rows.Z, weight[rows.places], params)
                if rows.patterns is None
                else cls._incomplete(rows, weight[rows.places], params)
                for rows in _split(block)
            ]
        return parts[0] if len(parts) == 1 else parts[0].merge(parts[1])

    @classmethod
    def _complete(cls, Z: Array, weight: Array, theta: Gaussians) -> Self:
        from summula.mixture import kernels

        k, d = theta.means.shape
        sums = np.zeros((k, d + 1 + (d + 1) % 2, d + 1 + (d + 1) % 2))
        elbo = kernels.whitened_sums(Z, *theta.whitening, theta.constants, weight, sums)
        second = np.tril(sums[:, 1 : d + 1, 1 : d + 1])
        second += np.tril(second, -1).transpose(0, 2, 1)
        first = np.ascontiguousarray(sums[:, 1 : d + 1, 0])
        return cls(elbo, float(weight.sum()), sums[:, 0, 0].copy(), first, second)

    @classmethod
    def _diagonal(cls, block: Array, weight: Array, theta: Gaussians) -> Self:
        from summula.mixture import kernels

        k, d = theta.means.shape
        means, weight = theta.means - theta.origin, _without_empty(block, weight)
        counts, first, second = np.zeros(k), np.zeros((k, d)), np.zeros((k, d))
        elbo = kernels.diagonal_sums(block, means, theta.scales, theta.constants, weight, counts, first, second)
        return cls(elbo, float(weight.sum()), counts, first, second)

    @classmethod
    def _incomplete(cls, rows: _Rows, weight: Array, theta: Gaussians) -> Self:
        from summula.mixture import kernels

        k, d = theta.means.shape
        means, weight = theta.means - theta.origin, _without_empty(rows.Z, weight)
        lines, first, second = np.empty((k + 2, len(weight))), np.zeros((k, d)), np.zeros((k, d, d))
        kernels.incomplete_joint(rows.Z, rows.patterns, means, theta.covariances, theta.log_weights, lines)
        elbo = kernels.responsibilities(lines, k, weight)
        kernels.incomplete_sums(rows.Z, rows.patterns, means, theta.covariances, lines, first, second)
        inverses = np.broadcast_to(theta.inverse_factors, (k, d, d))
        second = inverses @ second @ inverses.transpose(0, 2, 1)
        first = np.einsum("kij,kj->ki", inverses, first)
        return cls(elbo, float(weight.sum()), lines[:k].sum(axis=1), first, second)


def _without_empty(Z: Array, weight: Array) -> Array:
    """Return the weights, 0 for rows without any observed value."""
    return np.where(np.isnan(Z).all(axis=1), 0.0, weight) if np.isnan(Z.sum()) else weight


# ----------------------------------------------------------------------------------------------------------- the M-step


def maximized(sums: GaussianSums, theta: Gaussians, reg_covar: float) -> Gaussians:
    """Perform the M-step (3)."""
    n = sums.counts
    total = max(float(n.sum()), np.finfo(np.float64).tiny)
    empty = n <= _TINY * total  # its mean and covariance are unchanged
    safe = np.where(empty, 1.0, n)[:, None]
    drift = np.where(empty[:, None], 0.0, sums.first / safe)
    if theta.is_diagonal:
        spread = np.where(empty[:, None], 1.0, sums.second / safe - drift**2)
        variances = np.maximum(spread, 0.0) * theta.factors**2 + reg_covar
        if theta.kind == "spherical":
            variances = variances.mean(axis=1, keepdims=True)
        if not (variances > 0).all():
            raise collapse(np.flatnonzero(~(variances > 0).all(axis=1)))
        return Gaussians(theta.kind, n / total, theta.means + drift * theta.factors, np.sqrt(variances))
    outer = drift[:, :, None] * drift[:, None, :]
    if theta.kind == "tied":
        spread = ((sums.second - n[:, None, None] * outer).sum(axis=0) / total)[None]
    else:
        unit = np.eye(theta.means.shape[1])
        spread = np.where(empty[:, None, None], unit, sums.second / safe[:, :, None] - outer)
    L = theta.factors
    covariances = L @ spread @ L.transpose(0, 2, 1)
    means = theta.means + np.einsum("kij,kj->ki", np.broadcast_to(L, (len(n), *L.shape[1:])), drift)
    return Gaussians(theta.kind, n / total, means, cholesky_factors(covariances, reg_covar))


def cholesky_factors(covariances: Array, reg_covar: float) -> Array:
    """Return the factor L of each covariance plus reg_covar I; raise `Collapse` if there is none."""
    factors = np.empty_like(covariances)
    for k, S in enumerate(covariances):
        try:
            factors[k] = linalg.cholesky((S + S.T) / 2 + reg_covar * np.eye(len(S)), lower=True, check_finite=False)
        except linalg.LinAlgError:
            raise collapse(np.array([k])) from None
        if not np.isfinite(factors[k]).all() or np.diagonal(factors[k]).min() <= 0:
            raise collapse(np.array([k]))
    return factors


def collapse(components: Array) -> Collapse:
    """Return the error for a component with a singular covariance."""
    which = ", ".join(map(str, components.tolist()))
    return Collapse(
        "Fitting the mixture model failed because some components have ill-defined empirical covariance (for instance "
        "caused by singleton or collapsed samples). Try to decrease the number of components, increase reg_covar, or "
        f"scale the input data. (Singular: component {which}.)"
    )
