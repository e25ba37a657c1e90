"""k-means in a few lines of NumPy, and exactly in one dimension."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def squared_distances(X: Array, C: Array) -> Array:
    """Return the squared distances of every row to every centre."""
    return ((X[:, None, :].astype(np.float64) - C[None, :, :]) ** 2).sum(axis=2)


def lloyd(X: Array, centres: Array, passes: int, weight: Array | None = None) -> tuple[Array, Array, list[float]]:
    """Centres, labels and the inertia of each pass, from given centres; every cluster keeps some rows."""
    w = np.ones(len(X)) if weight is None else weight
    trace = []
    for _ in range(passes):
        D = squared_distances(X, centres)
        labels = D.argmin(axis=1)
        trace.append(float(w @ D.min(axis=1)))
        centres = np.array([np.average(X[labels == a], axis=0, weights=w[labels == a]) for a in range(len(centres))])
    return centres, squared_distances(X, centres).argmin(axis=1), trace


def least_inertia_1d(x: Array, k: int) -> float:
    """Return the minimum inertia of k centres of numbers, by dynamic programming.

    Clusters are intervals of the sorted numbers. With J(m, i) the least inertia of the first i numbers in m clusters,
    J(m, i) = min over j of J(m - 1, j) + cost(j, i). Wang and Song (2011), Ckmeans.1d.dp, The R Journal 3.
    """
    x = np.sort(x)
    n = len(x)
    total, square = np.concatenate([[0.0], np.cumsum(x)]), np.concatenate([[0.0], np.cumsum(x**2)])

    def cost(j: int, i: int) -> float:
        return float(square[i] - square[j] - (total[i] - total[j]) ** 2 / (i - j))

    least = np.array([0.0] + [cost(0, i) for i in range(1, n + 1)])
    for m in range(2, k + 1):
        least = np.array(
            [np.inf if i < m else min(least[j] + cost(j, i) for j in range(m - 1, i)) for i in range(n + 1)]
        )
    return float(least[n])
