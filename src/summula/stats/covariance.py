"""Covariance estimation: diagonal and spherical constraints, and shrinkage.

With the sample covariance S of n rows in d columns (divided by n) and its mean variance mu = tr(S) / d,

    diagonal    diag(S)            spherical    mu I                                                            (1)
    shrunk      (1 - s) S + s mu I,     0 <= s <= 1                                                             (2)
    Ledoit-Wolf s = min(b, c) / c,   c = ||S - mu I||^2 / d,   b = (1 / (n d)) [mean of ||x - m||^4 - ||S||^2]  (3)

(3) estimates the s that minimises the expected squared error of (2). It needs a second pass over the rows, about the
mean from the first.

Reference: Ledoit and Wolf (2004), A well-conditioned estimator for large-dimensional covariance matrices, section 3.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk

__all__ = [
    "COVARIANCES",
    "COVARIANCE_NAMES",
    "constrained",
    "covariance_form",
    "fourth_powers",
    "ledoit_wolf_share",
    "shrunk",
]

Array = NDArray[np.float64]

COVARIANCES = ("full", "diag", "spherical")
_OTHER_NAMES = {"diagonal": "diag", "isotropic": "spherical"}
COVARIANCE_NAMES = (*COVARIANCES, *_OTHER_NAMES)


def covariance_form(name: str) -> str:
    """Return one of `COVARIANCES` by any of its names."""
    return _OTHER_NAMES.get(name, name)


def constrained(S: Array, form: str) -> Array:
    """Return the maximum likelihood covariance of the form "full", "diag" or "spherical" (1)."""
    if form == "full":
        return S
    values: Any = np.diag(S) if form == "diag" else np.full(len(S), np.trace(S) / len(S))
    return np.asarray(np.diag(values))


def shrunk(S: Array, share: float) -> Array:
    """Return the covariance shrunk towards a multiple of the identity (2)."""
    return np.asarray((1 - share) * S + share * np.trace(S) / len(S) * np.eye(len(S)))


def fourth_powers(m: Array, chunk: Chunk) -> Array:
    """Return the weighted sum of ||x - m||^4 over rows."""
    away = chunk.block(np.float64, m)
    powers = (away * away).sum(axis=1) ** 2
    return np.asarray((chunk.weights * powers).sum())


def ledoit_wolf_share(S: Array, fourth: float, weight: float) -> float:
    """Return the Ledoit-Wolf shrinkage (3).

    Parameters
    ----------
    S : ndarray of shape (d, d)
        Sample covariance, divided by the sum of weights.
    fourth : float
        Weighted sum of ||x - m||^4.
    weight : float
        Sum of weights; n without weights.
    """
    d = len(S)
    size: Any = np.sum(S * S)
    mu = np.trace(S) / d
    c = (size - d * mu**2) / d
    b = min((fourth / weight - size) / (weight * d), c)
    return 0.0 if d == 1 or b <= 0 or c <= 0 else float(b / c)
