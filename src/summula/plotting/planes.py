"""The plane of largest variance of rows with many columns, for plots of rows and centres.

With the mean m of the rows and their first two principal components as columns of W, a row x is plotted at W'(x - m).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Plane", "principal_plane"]

Array = NDArray[np.float64]


class Plane(NamedTuple):
    """A plane in the space of all columns."""

    mean: Array
    directions: Array  # of shape (n_features, 2)
    names: tuple[str, str]
    title: str

    def __call__(self, rows: Any) -> Array:
        """Return the coordinates of rows in the plane."""
        return np.asarray((np.asarray(rows, np.float64) - self.mean) @ self.directions)


def principal_plane(rows: Any) -> Plane:
    """Return the plane of the two largest principal components of rows with at least two columns."""
    values = np.asarray(rows, np.float64)
    mean = values.mean(axis=0)
    variances, vectors = np.linalg.eigh(np.atleast_2d(np.cov(values, rowvar=False, bias=True)))
    W = vectors[:, ::-1][:, :2]
    W = W * np.where(W[np.abs(W).argmax(axis=0), [0, 1]] < 0, -1.0, 1.0)  # the largest entry is positive
    total = float(variances.sum())
    share = float(variances[-2:].sum()) / total if total > 0 else 1.0
    title = f"two principal components, {share:.0%} of the variance of {values.shape[1]} columns"
    return Plane(mean, W, ("component 1", "component 2"), title)
