"""Base class of models with centres: nearest centres, distances, inertia, silhouette."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from summula.cluster.passes import Centres, ClusterSums, LloydPass, RowState, assign, chunk_rows, writeable
from summula.cluster.seeding import random_rows
from summula.cluster.selection import silhouette_samples
from summula.core.data.chunks import Chunk
from summula.core.docstrings import inherit_docs
from summula.core.engine.random import stream_key
from summula.core.estimator.clusterer import Clusterer, LogDensityScores
from summula.core.estimator.transformer import Transformer

__all__ = ["CentreModel"]

Array = NDArray[Any]


class CentreModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Clusterer):
    """Base class of models with centres: nearest centres, distances, inertia.

    Parameters
    ----------
    n_clusters : int, default=8
    random_state : int, Generator, RandomState or None, default=None
    """

    cluster_centers_: Array
    _n_threads: int  # set by scikit-learn's tests, but unused

    @property
    def _n_features_out(self) -> int:
        return int(self.cluster_centers_.shape[0])

    def _centres(self) -> Centres:
        values = np.asarray(self.cluster_centers_, np.float64)
        with np.errstate(over="ignore"):
            mean = values.mean(axis=0)
        return Centres.of(values, mean if np.isfinite(mean).all() else values[0])

    @inherit_docs(Clusterer.predict)
    def predict(self, X: Any) -> Any:
        """Predict the nearest centre of each row; ties go to the first.

        Returns
        -------
        ndarray of shape (n_samples,), int32; batches for a scan, a Dask array for a Dask collection
        """
        check_is_fitted(self)
        return self._by_row(X, functools.partial(_nearest, self._centres()), _labels)

    @inherit_docs(Transformer.transform)
    def transform(self, X: Any) -> Any:
        """Compute the distance of each row to each centre.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters); batches for a scan, a Dask array for a Dask collection
        """
        check_is_fitted(self)
        return self._by_row(X, self._distances)

    def _distances(self, chunk: Chunk) -> Array:
        from summula.cluster.k_means_kernels import squared_distances

        X, C = chunk_rows(chunk), writeable(np.asarray(self.cluster_centers_, np.float64))
        if chunk.is_sparse:
            squares = np.asarray(X.multiply(X).sum(axis=1), np.float64).ravel()[:, None]
            D = np.maximum(squares + (np.einsum("kj,kj->k", C, C) - 2.0 * (X @ C.T)), 0.0)
        else:
            D = np.empty((len(chunk), len(C)))
            squared_distances(X, C, D)
        return np.asarray(np.sqrt(D), chunk.dtype)

    @inherit_docs(LogDensityScores.score)
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the negative inertia of the rows; larger is better."""
        check_is_fitted(self)
        with self._evaluating(X, None, sample_weight, needs_y=False) as run:
            inertia = run.sum(ClusterSums, LloydPass(self._centres()), "score").inertia
            if not np.isfinite(inertia):
                run.raise_if_not_finite()
        return -inertia

    @inherit_docs(score)
    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:  # type: ignore[override]
        """Fit the model, and return the cluster of each row.

        Returns
        -------
        ndarray of shape (n_samples,), int32; for a scan or a Dask collection as `predict`
        """
        self.fit(X, sample_weight=sample_weight)
        in_memory = getattr(self, "labels_", None) is not None and not self._streamed
        return self.labels_ if in_memory else self.predict(X)

    @inherit_docs(score)
    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit the model, and return the distance of each row to each centre.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters); for a scan or a Dask collection as `transform`
        """
        return self.fit(X, sample_weight=sample_weight).transform(X)

    def silhouette(self, X: Any, sample_weight: Any = None, *, sample_size: int = 2_000, seed: int = 0) -> float:
        """Compute the mean silhouette of a random sample of rows, near 1 for well-separated clusters.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)
        sample_weight : array-like of shape (n_samples,), or name of a column of X, optional
            Rows are drawn with probabilities proportional to their weights.
        sample_size : int, default=2000
            Maximum number of rows; the cost is quadratic in it.
        seed : int, default=0
            Seed for drawing the sample.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        with self._evaluating(X, None, sample_weight, needs_y=False) as run:
            source = run.source
            rows = random_rows(run, min(sample_size, source.n_rows), stream_key(seed), distinct=True)
        chunk = Chunk(rows.astype(source.dtype), None, None, 0, len(rows), source.dtype)
        labels = _labels(_nearest(self._centres(), chunk))
        return float(silhouette_samples(rows, labels).mean())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _nearest(centres: Centres, chunk: Chunk) -> Array:
    """Return label and D of each row; D is not finite for rows with values that are not."""
    out, state = np.empty((len(chunk), 2)), RowState.blank(len(chunk), 0)
    own = np.empty(len(chunk))
    assign(chunk_rows(chunk), centres, state, own)
    out[:, 0], out[:, 1] = state.labels, own
    return out


def _labels(found: Array) -> Array:
    return found[:, 0].astype(np.int32)
