"""Sums over the rows of a node, and the impurity that follows from them; for exact and for binned thresholds.

The sums of a node are the weights of the classes, or the sums of w y and w y^2 (Poisson: w y log y); the last one is
the weight of all rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from summula.core.compilation.compile import internal_kernel
from summula.tree.exact.records import ENTROPY, GINI, POISSON, SQUARED

__all__ = ["add_row", "impurity"]


@internal_kernel
def add_row(sums: Any, y: float, w: float, criterion: int) -> None:
    """Add a row to the sums of a node."""
    last = len(sums) - 1
    if criterion <= ENTROPY:
        sums[np.int64(y)] += w
    else:
        sums[0] += w * y
        if criterion == POISSON:
            sums[1] += w * y * np.log(y) if y > 0.0 else 0.0
        else:
            sums[1] += w * y * y
    sums[last] += w


@internal_kernel
def impurity(sums: Any, criterion: int) -> float:
    """Return the impurity of a node; that of absolute error is not a function of sums."""
    weight, found = sums[len(sums) - 1], 0.0
    if criterion == GINI:
        found = 1.0
        for k in range(len(sums) - 1):
            found -= (sums[k] / weight) ** 2
    elif criterion == ENTROPY:
        for k in range(len(sums) - 1):
            share = sums[k] / weight
            if share > 0.0:
                found -= share * np.log2(share)
    else:
        mean = sums[0] / weight
        if criterion == SQUARED:
            found = sums[1] / weight - mean * mean
        elif mean > 0.0:
            found = sums[1] / weight - mean * np.log(mean)
    return max(found, 0.0)
