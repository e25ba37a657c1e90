"""Non-negative least squares: min ||A v - b||^2 with v >= 0 (Lawson and Hanson 1974, chapter 23)."""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

__all__ = ["nonnegative_least_squares"]

Array = NDArray[np.float64]


def nonnegative_least_squares(A: Array, B: Array) -> Array:
    """Return the minimisers of ||A v - b||^2 with v >= 0 for the columns b of B, as columns."""
    if not len(A):
        return np.zeros((A.shape[1], B.shape[1]))
    # A positive scaling preserves the constraint and improves the conditioning; first by the largest value, then by the
    # norm, so that squares do not overflow.
    largest = _or_one(np.abs(A).max(axis=0, initial=0.0))
    size = _or_one(np.abs(B).max(axis=0, initial=0.0))
    length = _or_one(np.linalg.norm(A / largest, axis=0))
    scaled = A / largest / length
    columns = [scipy.optimize.nnls(scaled, b, maxiter=30 * A.shape[1] + 100)[0] for b in (B / size).T]
    return np.column_stack(columns) / length[:, None] * (size / largest[:, None])


def _or_one(x: Array) -> Array:
    return np.where(x > 0, x, 1.0)
