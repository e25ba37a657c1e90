"""Least squares under v >= 0: min ||A v - b||^2, one column of b at a time (Lawson and Hanson 1974, chapter 23)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

__all__ = ["nonnegative_least_squares"]

Array = NDArray[np.float64]


def nonnegative_least_squares(A: Array, B: Array) -> Array:
    """The minimiser of ||A v - b||^2 with v >= 0 for every column b of B, as columns."""
    if not len(A):
        return np.zeros((A.shape[1], B.shape[1]))
    scale = np.linalg.norm(A, axis=0)
    scale = np.where(scale > 0, scale, 1.0)  # a positive scaling keeps the constraint and helps the active-set rule
    columns = [optimize.nnls(A / scale, b, maxiter=30 * A.shape[1] + 100)[0] / scale for b in B.T]
    return np.column_stack(columns)
