"""Base classes of clusterers and density estimators: public methods derived from one method of a chunk of rows."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClusterMixin, DensityMixin
from sklearn.utils.validation import check_is_fitted

from summula.core.data.chunks import Chunk
from summula.core.docstrings import inherit_docs
from summula.core.estimator.rows import ROWS, UNLABELLED_ROWS, PredictionWriter, RowFunction, RowwiseEstimator
from summula.core.numerics.function_sums import FunctionSum

__all__ = ["Clusterer", "Density", "LogDensityScores"]

Array = NDArray[Any]


class Clusterer(ClusterMixin, PredictionWriter, RowwiseEstimator):
    """Base class of estimators that assign rows to the nearest cluster. Subclasses implement `_distances`."""

    def _distances(self, chunk: Chunk) -> Array:
        """Return the distances (or an increasing function of them) of rows to clusters, of shape (n, n_clusters)."""
        raise NotImplementedError

    @inherit_docs(ROWS)
    def predict(self, X: Any) -> Any:
        """Predict the nearest cluster of each row; ties go to the first cluster.

        Returns
        -------
        ndarray of shape (n_samples,) of cluster indices; batches for a scan, a Dask array for a Dask collection
        """
        check_is_fitted(self)
        return self._by_row(X, self._distances, _nearest)

    def fit_predict(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Fit and return the cluster of each row.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)
        y : ignored
        **params
            Passed to `fit`.

        Returns
        -------
        As `predict`.
        """
        return self.fit(X, **params).predict(X)


def _nearest(distances: Array) -> Array:
    return np.asarray(distances.argmin(axis=1))


class LogLikelihood(NamedTuple):
    """The log-likelihood of rows, and the sum of their weights."""

    total: float
    weight: float


class LogDensityScores(RowwiseEstimator):
    """Mixin of estimators with a probability density. Subclasses implement `_log_density`."""

    def _log_density(self, chunk: Chunk) -> Array:
        """Return the log-density of the rows of a chunk, of shape (n,)."""
        raise NotImplementedError

    @inherit_docs(ROWS)
    def score_samples(self, X: Any) -> Any:
        """Compute the log-density of each row.

        Returns
        -------
        ndarray of shape (n_samples,); batches for a scan, a Dask array for a Dask collection
        """
        check_is_fitted(self)
        return self._by_row(X, self._log_density)

    @inherit_docs(UNLABELLED_ROWS)
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Compute the mean log-density of the rows.

        Returns
        -------
        float
        """
        total, weight = self._log_likelihood(X, sample_weight)
        return total / weight

    def _log_likelihood(self, X: Any, sample_weight: Any) -> LogLikelihood:
        check_is_fitted(self)
        with self._evaluating(X, None, sample_weight, needs_y=False) as run:
            sums = run.sum(FunctionSum, functools.partial(_weighted_total, self._log_density), "score")
        return LogLikelihood(*sums.value.tolist())


class Density(DensityMixin, LogDensityScores):
    """Base class of density estimators."""

    score = LogDensityScores.score  # DensityMixin.score is empty and would come first


def _weighted_total(compute: RowFunction, chunk: Chunk) -> Array:
    """Return the sum of a function over the weighted rows of a chunk, and that of the weights."""
    values = np.asarray(compute(chunk), np.float64)
    if chunk.weight is None:
        return np.array([values.sum(), len(values)])
    return np.array([chunk.weight @ values, chunk.weight.sum()])
