"""Leave-one-out error for every number of neighbours, from one search."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.estimator.input.validation import check_fitted
from summula.neighbors.search.base import Neighbors
from summula.neighbors.weighting import check_weights, neighbor_weights

__all__ = ["LeaveOneOutCurve"]

Array = NDArray[Any]

_ROWS = 1_024  # training rows per block


class LeaveOneOutCurve:
    """Mixin of models of the k nearest training rows. Subclasses implement `_errors`."""

    n_neighbors: int
    weights: Any
    n_samples_fit_: int

    def _checked_k(self, n_neighbors: Any) -> int:
        raise NotImplementedError

    def _neighbors(self, X: Any, k: int) -> Neighbors:
        raise NotImplementedError

    def _errors(self, own: Array, found: Neighbors, weights: Array) -> Array:
        """Return the error of rows predicted from the first k of the neighbours `found`, of shape (n, k)."""
        raise NotImplementedError

    def loo_curve(self, max_k: int | None = None) -> Array:
        """Return the leave-one-out error of every number of neighbours, from one search.

        Parameters
        ----------
        max_k : int, optional
            Largest number of neighbours; by default twice that of the constructor.

        Returns
        -------
        ndarray of shape (max_k,)
            Entry k - 1 is the error of predicting training rows from their k nearest other rows: the fraction of
            misclassified rows for classifiers (with several targets, in any of them), the mean squared error (averaged
            over the targets) for regressors.

        Examples
        --------
        >>> from summula.neighbors import KNeighborsClassifier, KNeighborsRegressor
        >>> X = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]]
        >>> KNeighborsClassifier().fit(X, [0, 0, 0, 1, 1, 1]).loo_curve(3).round(3)
        array([0.167, 0.167, 0.167])
        >>> KNeighborsRegressor().fit(X[:4], [0.0, 1.0, 2.0, 3.0]).loo_curve(2)
        array([1.   , 1.125])
        """
        check_fitted(self)
        k = self._checked_k(min(2 * self.n_neighbors, self.n_samples_fit_ - 1) if max_k is None else max_k)
        found = self._neighbors(None, k)
        total = np.zeros(k)
        for a in range(0, self.n_samples_fit_, _ROWS):
            here = np.arange(a, min(a + _ROWS, self.n_samples_fit_))
            some = Neighbors(found.values[here], found.rows[here])
            total += self._errors(here, some, self._prefix_weights(some.values)).sum(axis=0)
        return np.asarray(total / self.n_samples_fit_)

    def _prefix_weights(self, distances: Array) -> Array:
        """Return the weights of the first k neighbours for every k, of shape (n, k, neighbour).

        The second dimension is 1 if weights do not depend on k.
        """
        if not callable(self.weights):
            return neighbor_weights(self.weights, distances)[:, None, :]
        n, most = distances.shape
        out = np.zeros((n, most, most))
        for k in range(1, most + 1):
            out[:, k - 1, :k] = neighbor_weights(self.weights, distances[:, :k])
            check_weights(out[:, k - 1].sum(axis=1), distances)
        return out
