"""Regression by the nearest training rows: the weighted mean of their targets, equation (1) of `k_neighbors`."""

from __future__ import annotations

import functools
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.callback import with_callbacks

from summula.core.docstrings import inherit_docs
from summula.core.estimator.parameters import Allowed
from summula.core.estimator.regressor import Regressor
from summula.core.model_files import schema
from summula.neighbors.k_neighbors import NEIGHBOR_PARAMETERS, KNeighborsModel
from summula.neighbors.search.base import Neighbors
from summula.neighbors.weighting import check_weights, neighbor_weights

__all__ = ["KNeighborsRegressor"]

Array = NDArray[Any]


def _weighted_means(y: Array, weights: Any, found: Neighbors) -> Array:
    """Return the weighted mean of the targets of the neighbours."""
    w = neighbor_weights(weights, found.values)
    columns = y.reshape(len(y), -1)
    total, out = np.zeros(len(w)), np.zeros((len(w), columns.shape[1]))
    for m in range(w.shape[1]):  # from near to far, whatever the number of rows
        total += w[:, m]
        out += w[:, m, None] * columns[found.rows[:, m]]
    check_weights(total, found.values)
    with np.errstate(divide="ignore", invalid="ignore"):
        out /= total[:, None]
    return out[:, 0] if y.ndim == 1 else out


@inherit_docs()
@schema.saved(_y=schema.Array("float64", "n_rows") | schema.Array("float64", "n_rows", "n_outputs"))
class KNeighborsRegressor(KNeighborsModel, Regressor):
    """The mean target of the k nearest training rows.

    Notes
    -----
    Columns in large units decide the distance: scale them, as in make_pipeline(StandardScaler(), ...).
    Training rows are kept in memory; `predict` takes files and Dask collections.

    References
    ----------
    Stone (1977), Consistent nonparametric regression. Friedman, Bentley and Finkel (1977), An algorithm for finding
    best matches in logarithmic expected time.

    Examples
    --------
    >>> from summula.neighbors import KNeighborsRegressor
    >>> X, y = [[0.0], [1.0], [2.0], [7.0]], [0.0, 1.0, 4.0, 49.0]
    >>> KNeighborsRegressor(n_neighbors=2).fit(X, y).predict([[1.4], [6.0]])
    array([ 2.5, 26.5])
    >>> KNeighborsRegressor(n_neighbors=2, weights="distance").fit(X, y).predict([[6.0]])
    array([40.])
    """

    _streaming_alternative: ClassVar[str | None] = "HistGradientBoostingRegressor, which streams"
    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = NEIGHBOR_PARAMETERS
    _y: Array

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        weights: Any = "uniform",
        algorithm: str = "auto",
        leaf_size: int = 30,
        p: float = 2,
        metric: Any = "minkowski",
        metric_params: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.algorithm = algorithm
        self.leaf_size = leaf_size
        self.p = p
        self.metric = metric
        self.metric_params = metric_params
        self.n_jobs = n_jobs

    @with_callbacks
    def fit(self, X: Any, y: Any) -> Self:
        """Keep the training rows, and index them for the search.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)
            Or with metric="precomputed" the distances of shape (n_samples, n_samples).
        y : array-like of shape (n_samples,) or (n_samples, n_targets), or names of columns of X
        """
        with self._fitting(X, y) as run:
            chunk = self._keep_rows(run)
            assert chunk.y is not None
            values = np.array(chunk.y, np.float64)
            self._y = values[:, 0] if run.source.one_target else values
        return self

    def _average(self) -> Any:
        return functools.partial(_weighted_means, self._y, self.weights)

    def _n_outputs(self) -> int:
        return 1 if self._y.ndim == 1 else int(self._y.shape[1])

    def loo_curve(self, max_k: int | None = None) -> Array:
        """Return the leave-one-out error of every number of neighbours, from one search.

        Parameters
        ----------
        max_k : int, optional
            Largest number of neighbours, by default twice that of the constructor.

        Returns
        -------
        ndarray of shape (max_k,)
            Entry k - 1 is the mean squared error of predicting training rows from their k nearest other rows (the mean
            over the targets).

        Examples
        --------
        >>> from summula.neighbors import KNeighborsRegressor
        >>> KNeighborsRegressor().fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 2.0, 3.0]).loo_curve(2)
        array([1.   , 1.125])
        """
        return self._curve(self._squared_errors, max_k)

    def _squared_errors(self, own: Array, found: Neighbors, weights: Array) -> Array:
        """Return the squared error of the mean of the first k neighbours of rows, for every k."""
        Y = self._y.reshape(len(self._y), -1)
        near = Y[found.rows]
        if weights.shape[1] == 1:
            w = weights[:, 0]
            means = np.cumsum(w[..., None] * near, axis=1) / np.cumsum(w, axis=1)[..., None]
        else:
            means = np.einsum("nkm,nmt->nkt", weights, near) / weights.sum(axis=2)[..., None]
        return np.asarray(((means - Y[own][:, None, :]) ** 2).mean(axis=2))
