"""Orthogonal rotations of loadings to simple structure (orthomax): each column should load on few factors.

Over rotations T of the loadings L, shape (d, k), B = L T maximises

    quartimax   sum_jm B_jm^4                                                                                  (1)
    varimax     sum_m [sum_j B_jm^4 - (sum_j B_jm^2)^2 / d]                                                     (2)

by the steps T = U V', where U D V' is the singular value decomposition of L'G, G the gradient at B.
Reference: Kaiser (1958), Psychometrika 23; Jennrich (2001), Psychometrika 66, on why the steps increase (1) and (2).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["rotated"]

Array = NDArray[np.float64]

_TOL = 1e-6
_MAX_STEPS = 100


def rotated(loadings: Array, method: str) -> Array:
    """Return the loadings, shape (k, d), rotated by varimax or quartimax."""
    L = loadings.T
    T, before = np.eye(L.shape[1]), 0.0
    for _ in range(_MAX_STEPS):
        B = L @ T
        G = B**3 - (B * (B**2).mean(axis=0) if method == "varimax" else 0.0)
        U, singular, Vt = np.linalg.svd(L.T @ G)
        T, now = U @ Vt, float(singular.sum())
        if before and now < before * (1 + _TOL):
            break
        before = now
    return np.ascontiguousarray((L @ T).T)
