"""Weights of neighbours, by their distances."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import DataError, ParameterError

__all__ = ["check_weights", "neighbor_weights"]

Array = NDArray[Any]


def neighbor_weights(weights: Any, distances: Array) -> Array:
    """Return the weights of neighbours at these distances, which are increasing in each row."""
    if weights is None or weights == "uniform":
        return np.ones_like(distances)
    if callable(weights):
        given = np.asarray(weights(distances), np.float64)
        if given.shape != distances.shape:
            raise ParameterError(
                f"The function passed as weights must return an array of the shape of its argument, {distances.shape}; "
                f"it returned shape {given.shape}."
            )
        if not np.isfinite(given[np.isfinite(distances)]).all():
            raise ParameterError(
                "The function passed as weights returned a value that is not finite, such as 1 / 0 at a distance of 0: "
                "use weights='distance', where only rows at distance 0 count, or return finite numbers."
            )
        return given
    # Relative to the nearest, so that inverses of tiny distances do not overflow; the ratio in (1) is the same.
    nearest = distances[:, :1]
    is_at_0 = (nearest == 0) | np.isinf(nearest)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(is_at_0, distances == nearest, nearest / distances))


def check_weights(total: Array, distances: Array) -> Array:
    """Raise for rows whose neighbours have zero total weight; return the mask of rows that are not finite."""
    is_bad = np.isnan(distances[:, 0])
    if (total[~is_bad] == 0).any():
        raise DataError(
            "All neighbors of some sample is getting zero weights. Please modify 'weights' to avoid this case if you "
            "are using a user-defined function."
        )
    return np.asarray(is_bad)
