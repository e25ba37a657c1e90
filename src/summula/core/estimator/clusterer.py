"""Base classes of clusterers and density estimators: public methods derived from one method of a chunk of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClusterMixin, DensityMixin
from sklearn.utils.validation import check_is_fitted

from summula.core.data.chunks import Chunk
from summula.core.docstrings import inherit_docs
from summula.core.estimator.rows import ROWS, UNLABELLED_ROWS, PredictionWriter, RowFunction, RowwiseEstimator
from summula.core.numerics.sums import Sum

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
        check_is_fitted(self)
        with self._evaluating(X, None, sample_weight, needs_y=False) as run:
            sums = run.sum(LogDensity, self._log_density, "score")
        return sums.total / sums.weight


class Density(DensityMixin, LogDensityScores):
    """Base class of density estimators."""

    score = LogDensityScores.score  # DensityMixin.score is empty and would come first


@dataclass(frozen=True)
class LogDensity(Sum):
    """The sum of log-densities over weighted rows; `params` is the log-density function of a chunk."""

    total: float
    weight: float

    @classmethod
    def map(cls, chunk: Chunk, params: RowFunction) -> Self:
        """Return the sum over one chunk."""
        values = np.asarray(params(chunk), np.float64)
        if chunk.weight is None:
            return cls(float(values.sum()), float(len(values)))
        return cls(float(chunk.weight @ values), float(chunk.weight.sum()))
