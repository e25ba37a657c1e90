"""Base class of models with normal latent variables plus noise: principal components and factor analysis.

    x = mu + L'z + e,       z ~ N(0, I_k),    e ~ N(0, Psi),  Psi diagonal,         Sigma = L'L + Psi            (1)

The posterior mean E[z|x] = M^-1 L Psi^-1 (x - mu), M = I + L Psi^-1 L', minimises over z

    (x - mu - L'z)' Psi^-1 (x - mu - L'z) + z'z,     whose minimum is  (x - mu)' Sigma^-1 (x - mu)              (2)

so the density needs no d x d matrix and is accurate for small noise: errors of z enter squared. Moreover
log|Sigma| = log|Psi| + log|M|.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import check_is_fitted

from summula.core.data.layout.blocks import product
from summula.core.errors import DataError
from summula.core.estimator.additive import AdditiveEstimator
from summula.core.estimator.clusterer import LogDensityScores
from summula.core.estimator.transformer import Transformer

__all__ = ["Gaussian", "LatentVariables", "check_weight"]

Array = NDArray[Any]


def check_weight(name: str, count: int, weight: float) -> None:
    """Raise for rows without variance: a single row, or weights that sum to at most 1."""
    if weight > 1:
        return
    raise DataError(
        f"{name} needs at least 2 rows, but n_samples = {count}: pass more rows."
        if weight == count
        else f"Weights are frequencies, but their sum is {weight:g}: multiply them so that it exceeds 1."
    )


class Gaussian(NamedTuple):
    """The distribution (1): mean mu, loadings L, shape (k, d), and noise variances psi, all positive."""

    mean: Array
    loadings: Array
    psi: Array

    def posterior(self) -> tuple[Array, float]:
        """Return the matrix, shape (d, k), that maps x - mu to E[z|x], and log|Sigma|."""
        scaled = self.loadings / self.psi
        M = np.eye(len(scaled)) + scaled @ self.loadings.T
        return np.linalg.solve(M, scaled).T, float(np.log(self.psi).sum() + np.linalg.slogdet(M)[1])

    @np.errstate(invalid="ignore", over="ignore")
    def log_density(self, rows: Array) -> Array:
        """Return the log density at rows x - mu, by (2)."""
        to_z, log_determinant = self.posterior()
        z = product(rows, np.ascontiguousarray(to_z))
        left = (rows - product(z, self.loadings)) / np.sqrt(self.psi)
        constant = len(self.psi) * np.log(2 * np.pi) + log_determinant
        return np.asarray(-((left**2).sum(axis=1) + (z**2).sum(axis=1) + constant) / 2)

    def covariance(self) -> Array:
        """Return Sigma."""
        return np.asarray(self.loadings.T @ self.loadings + np.diag(self.psi))

    def precision(self) -> Array:
        """Return the inverse of Sigma, by Woodbury's identity: Psi^-1 - Psi^-1 L'M^-1 L Psi^-1."""
        to_z, _ = self.posterior()
        inverse = -(to_z @ (self.loadings / self.psi))
        inverse = (inverse + inverse.T) / 2
        inverse[np.diag_indices_from(inverse)] += 1.0 / self.psi
        return np.asarray(inverse)


class LatentVariables(ClassNamePrefixFeaturesOutMixin, Transformer, LogDensityScores, AdditiveEstimator):
    """Base class of transformers to latent variables that are also densities.

    Subclasses implement `_gaussian`, and `_log_density` for a chunk.

    Parameters
    ----------
    copy : bool, default=True
        Ignored; X is never overwritten.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
    """

    _needs_y = False
    components_: Array
    _dtype: Any

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _n_outputs(self) -> int:
        return len(self.components_)

    def _gaussian(self) -> Gaussian:
        """Return the distribution (1) of the fitted model."""
        raise NotImplementedError

    def get_covariance(self) -> Array:
        """Compute the covariance matrix L'L + Psi of the model.

        Returns
        -------
        ndarray of shape (n_features, n_features)
        """
        check_is_fitted(self)
        return self._gaussian().covariance().astype(self._dtype)

    def get_precision(self) -> Array:
        """Compute the inverse of the covariance matrix of the model.

        Returns
        -------
        ndarray of shape (n_features, n_features)
        """
        check_is_fitted(self)
        return self._gaussian().precision().astype(self._dtype)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
