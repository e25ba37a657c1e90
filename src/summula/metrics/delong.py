"""DeLong's interval of the area under the ROC curve.

The area is the probability that a positive row (score x) is ranked above a negative one (score z), ties counting half:

    A = 1/(m n) sum_ij psi(x_i, z_j),     psi = 1, 1/2 or 0 for x > z, x = z, x < z                              (1)

It is a U-statistic of two samples, and its variance is estimated from the means over either sample,

    V_i = (1/n) sum_j psi(x_i, z_j),    W_j = (1/m) sum_i psi(x_i, z_j),    var A = S_V / m + S_W / n            (2)

with sample variances S. With midranks r among all rows and r' within a sample, V_i = (r_i - r'_i) / n and
W_j = 1 - (r_j - r'_j) / m: sorting suffices. The interval is symmetric on the scale of log(A / (1 - A)), so it stays in
[0, 1]. If all pairs are in order, (2) is 0; since min(m, n) pairs are disjoint, hence independent, that has a
probability of at most A^min(m, n), and the lower limit is L = (alpha / 2)^(1 / min(m, n)). If all pairs are ties, at
least a fraction L of all pairs are, and A is within (1 - L) / 2 of 1/2.

References: DeLong, DeLong and Clarke-Pearson (1988), Biometrics 44; Sun and Xu (2014) for the midranks.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri
from scipy.stats import rankdata

from summula.core.errors import DataError
from summula.metrics.intervals import Interval

__all__ = ["AreaVariance", "delong_interval", "delong_variance"]

Array = NDArray[Any]


class AreaVariance(NamedTuple):
    """The area under the ROC curve and its variance (2)."""

    area: float
    variance: float


def delong_variance(y: Array, score: Array) -> AreaVariance:
    """Equations (1) and (2), for y of 0 and 1."""
    positive, negative = score[y == 1], score[y == 0]
    m, n = len(positive), len(negative)
    if not m or not n:
        raise DataError(
            f"The area under the ROC curve needs rows of both classes; there are {m} positive, {n} negative."
        )
    ranks = rankdata(np.concatenate([positive, negative]))
    V = (ranks[:m] - rankdata(positive)) / n
    W = 1.0 - (ranks[m:] - rankdata(negative)) / m
    variance = (float(V.var(ddof=1)) / m if m > 1 else 0.0) + (float(W.var(ddof=1)) / n if n > 1 else 0.0)
    return AreaVariance(float(V.mean()), variance)


def delong_interval(y: Array, score: Array, confidence: float) -> Interval:
    """Return the area and its limits."""
    area, variance = delong_variance(y, score)
    pairs = int(min(y.sum(), len(y) - y.sum()))
    half = (1 - confidence) / 2
    if area in (0.0, 1.0):
        edge = half ** (1 / pairs)
        return Interval(area, edge, 1.0) if area == 1.0 else Interval(area, 0.0, 1.0 - edge)
    if score.min() == score.max():
        edge = half ** (1 / pairs)
        return Interval(area, edge / 2, 1.0 - edge / 2)
    if pairs < 2:
        raise DataError("DeLong's interval needs at least 2 rows of each class: use more rows.")
    width = float(-ndtri(half)) * math.sqrt(variance) / (area * (1 - area))
    middle = float(logit(area))
    return Interval(area, float(expit(middle - width)), float(expit(middle + width)))
