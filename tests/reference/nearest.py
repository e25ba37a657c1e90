"""Nearest rows by all distances, in a few lines of NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def ranking_values(X: Array, Q: Array, metric: str, p: float = 2.0) -> Array:
    """The sum over columns, in their order, that ranks the rows of X for each row of Q."""
    values = np.zeros((len(Q), len(X)))
    for j in range(X.shape[1]):
        t = X[:, j].astype(np.float64)[None, :] - Q[:, j].astype(np.float64)[:, None]
        if metric == "chebyshev":
            values = np.maximum(values, np.abs(t))
        elif metric == "euclidean":
            values = values + t * t
        elif metric == "hamming":
            values = values + (t != 0)
        else:
            values = values + (np.abs(t) if metric == "manhattan" else np.abs(t) ** p)
    return values


def nearest_rows(X: Array, Q: Array, k: int, metric: str = "euclidean", p: float = 2.0) -> tuple[Array, Array]:
    """Distances and numbers of the k nearest rows; of equally near ones the first."""
    values = ranking_values(X, Q, metric, p)
    order = np.argsort(values, axis=1, kind="stable")[:, :k]
    near = np.take_along_axis(values, order, axis=1)
    roots = {"euclidean": 0.5, "minkowski": 1.0 / p}
    return (np.sqrt(near) if metric == "euclidean" else near ** roots.get(metric, 1.0)), order
