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
    # A positive scaling keeps the constraint and helps the active-set rule; by the largest value, then by length, lest
    # squares overflow.
    largest = _or_one(np.abs(A).max(axis=0, initial=0.0))
    size = _or_one(np.abs(B).max(axis=0, initial=0.0))
    length = _or_one(np.linalg.norm(A / largest, axis=0))
    scaled = A / largest / length
    columns = [optimize.nnls(scaled, b, maxiter=30 * A.shape[1] + 100)[0] for b in (B / size).T]
    return np.column_stack(columns) / length[:, None] * (size / largest[:, None])


def _or_one(x: Array) -> Array:
    return np.where(x > 0, x, 1.0)
