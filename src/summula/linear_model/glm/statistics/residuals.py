"""Residuals of generalised linear models, row by row.

    response   y - mu                                                                                          (1)
    pearson    sqrt(w) (y - mu) / sqrt(V(mu))                                                                  (2)
    deviance   sign(y - mu) sqrt(w d(y, mu))                                                                   (3)
    working    (y - mu) d eta / d mu                                                                           (4)

Squares of (2) sum to Pearson's chi-squared, those of (3) to the deviance.
Reference: McCullagh and Nelder (1989), section 2.4.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.stats.families.exponential_family import Family
from summula.stats.links import Link

__all__ = ["KINDS", "residuals"]

Array = NDArray[Any]

KINDS = ("deviance", "pearson", "response", "working")


def residuals(kind: str, y: Array, eta: Array, weight: Array | None, family: Family, link: Link) -> Array:
    """Compute the residuals (1) to (4) of rows with targets y at linear predictors eta."""
    mu = link.inverse(eta)
    root = 1.0 if weight is None else np.sqrt(weight)
    with np.errstate(all="ignore"):
        if kind == "response":
            return np.asarray(y - mu)
        if kind == "working":
            return np.asarray((y - mu) / link.slope(eta))
        if kind == "pearson":
            return np.asarray(root * (y - mu) / np.sqrt(family.unit_variance(mu)))
        return np.asarray(np.sign(y - mu) * root * np.sqrt(np.maximum(family.unit_deviance(y, mu), 0.0)))
