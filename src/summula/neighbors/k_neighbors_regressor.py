"""Regression by the nearest training rows: the weighted mean of their targets, equation (1) of `k_neighbors`."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.docstrings import inherit_docs
from summula.core.estimator.regressor import Regressor
from summula.core.model_files import schema
from summula.neighbors.k_neighbors import KNeighborsModel
from summula.neighbors.search.base import Neighbors
from summula.neighbors.weighting import check_weights, neighbor_weights

__all__ = ["KNeighborsRegressor"]

Array = NDArray[Any]


def _weighted_means(y: Array, weights: Any, found: Neighbors) -> Array:
    """Return the weighted mean of the targets of the neighbours."""
    w = neighbor_weights(weights, found.values)
    columns = y.reshape(len(y), -1)
    total, out = np.zeros(len(w)), np.zeros((len(w), columns.shape[1]))
    for m in range(w.shape[1]):  # by increasing distance, independent of the number of rows
        total += w[:, m]
        out += w[:, m, None] * columns[found.rows[:, m]]
    check_weights(total, found.values)
    with np.errstate(divide="ignore", invalid="ignore"):
        out /= total[:, None]
    return out[:, 0] if y.ndim == 1 else out


@inherit_docs()
@schema.saved(
    schema.nonempty("n_outputs"), _y=schema.Array("float64", "n_rows") | schema.Array("float64", "n_rows", "n_outputs")
)
class KNeighborsRegressor(KNeighborsModel, Regressor):
    """Regressor that predicts the mean target of the k nearest training rows.

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

    def _targets(self, chunk: Chunk, one_target: bool) -> Array:
        assert chunk.y is not None
        values = np.array(chunk.y, np.float64)
        return values[:, 0] if one_target else values

    def _average(self) -> Any:
        return functools.partial(_weighted_means, self._y, self.weights)

    def _n_outputs(self) -> int:
        return 1 if self._y.ndim == 1 else int(self._y.shape[1])

    def _errors(self, own: Array, found: Neighbors, weights: Array) -> Array:
        """Return the squared error of the mean of the first k neighbours of rows, for every k."""
        Y = self._y.reshape(len(self._y), -1)
        near = Y[found.rows]
        if weights.shape[1] == 1:
            w = weights[:, 0]
            means = np.cumsum(w[..., None] * near, axis=1) / np.cumsum(w, axis=1)[..., None]
        else:
            means = np.einsum("nkm,nmt->nkt", weights, near) / weights.sum(axis=2)[..., None]
        return np.asarray(((means - Y[own][:, None, :]) ** 2).mean(axis=2))
