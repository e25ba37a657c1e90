"""Number of clusters: the silhouette of a sample of rows, and the elbow of the inertia.

For a row i in a cluster with others, let a_i be its mean distance to these, and b_i the smallest of its mean distances
to the rows of another cluster. Its silhouette is

    s_i = (b_i - a_i) / max(a_i, b_i),        0 for a row alone in its cluster                                      (1)

which is near 1 well inside a cluster, and near 0 between two. The elbow of inertias J_k is the k furthest below the
straight line from the first to the last of them, with both axes scaled to 1.

References
----------
Rousseeuw (1987), Silhouettes, Journal of Computational and Applied Mathematics 20.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["elbow", "silhouette_samples"]

Array = NDArray[Any]

_BLOCK = 512  # rows


def silhouette_samples(X: Array, labels: Array) -> Array:
    """Compute the silhouette (1) of every row, from all pairs of rows.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    labels : ndarray of shape (n,)

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from summula.cluster import silhouette_samples
    >>> silhouette_samples(np.array([[0.0], [1.0], [9.0], [10.0]]), np.array([0, 0, 1, 1])).round(3)
    array([0.895, 0.882, 0.882, 0.895])
    """
    from scipy.spatial.distance import cdist

    X = np.asarray(X, np.float64)
    codes = np.unique(labels, return_inverse=True)[1]
    k, sizes = int(codes.max()) + 1, np.bincount(codes)
    out = np.zeros(len(X))
    if k < 2:
        return out
    for start in range(0, len(X), _BLOCK):
        own = codes[start : start + _BLOCK]
        rows = np.arange(len(own))
        totals = np.array(
            [np.bincount(codes, weights=line, minlength=k) for line in cdist(X[start : start + _BLOCK], X)]
        )
        inside = totals[rows, own] / np.maximum(sizes[own] - 1, 1)
        means = totals / sizes
        means[rows, own] = np.inf
        nearest, most = means.min(axis=1), np.maximum(inside, means.min(axis=1))
        here = np.where(most > 0, (nearest - inside) / np.where(most > 0, most, 1.0), 0.0)
        out[start : start + _BLOCK] = np.where(sizes[own] > 1, here, 0.0)
    return out


def elbow(inertias: Mapping[int, float]) -> int:
    """Find the number of clusters at which the decrease of the inertia slows down (the elbow).

    Parameters
    ----------
    inertias : mapping of int to float
        Inertia for each number of clusters.

    Returns
    -------
    int

    Examples
    --------
    >>> from summula.cluster import elbow
    >>> elbow({1: 100.0, 2: 40.0, 3: 10.0, 4: 8.0, 5: 7.0, 6: 6.0})
    3
    """
    k = np.array(sorted(inertias), np.float64)
    J = np.array([inertias[int(one)] for one in k])
    if len(k) < 3 or J[0] <= J[-1]:
        return int(k[0])
    below = (1 - (k - k[0]) / (k[-1] - k[0])) - (J - J[-1]) / (J[0] - J[-1])
    return int(k[int(below.argmax())])
