"""Intervals of metrics that are proportions of rows, or functions of one.

    k of n rows                limits of Clopper and Pearson, each at (1 - confidence) / 2                         (1)
    F1                         2 J / (1 + J) is increasing in J = TP / (TP + FP + FN), a proportion of the rows that are
                               positive or predicted positive: the limits are those of J, transformed              (2)
    proportion p with weights  (1) with n replaced by an effective number n* of rows, and k by p n*:               (3)

        n* = (sum w)^2 / sum w^2,   or   p (1 - p) (sum w)^2 / sum w^2 (x - p)^2   if that is smaller

where x is 1 for the rows in the numerator and 0 for the others. (1) and (2) are exact: their coverage is at least the
confidence for any number of rows, conditional on the denominator. (3) is approximate.

Without errors the bootstrap distribution is degenerate, and limits follow from (1):

    F_beta            with J >= L, and the remaining rows of the worst type of error                               (4)
    balanced accuracy the mean over K classes of limits of their recalls, each at (1 - confidence) / (2 K)         (5)

References: Clopper and Pearson (1934), Biometrika 26; Korn and Graubard (1998), Survey Methodology 24, for (3).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.metrics.intervals import Interval
from summula.metrics.named_metrics import SHARES, Weights
from summula.stats.binomial_limits import lower_limit, upper_limit

__all__ = ["faultless_limits", "limits_among", "share_limits"]

Array = NDArray[Any]


def share_limits(name: str, y: Array, p: Array, w: Weights, confidence: float) -> tuple[Interval, int]:
    """Return the limits of (1) to (3), and the number of rows in the denominator (0 if there are none)."""
    wanted, among = SHARES["jaccard" if name == "f1" else name](y, p)
    found, n = limits_among(wanted, among, w, confidence)
    return (Interval(*(2 * J / (1 + J) for J in found)) if name == "f1" and n else found), n


def limits_among(wanted: Array, among: Array, w: Weights, confidence: float) -> tuple[Interval, int]:
    """Return the limits of (1) or (3) for the wanted rows among some, and the number of the latter."""
    wanted, n = wanted[among].astype(np.float64), int(np.count_nonzero(among))
    weight = np.ones(n) if w is None else w[among]
    if not n or not weight.sum():
        return Interval(np.nan, np.nan, np.nan), 0
    share = float(weight @ wanted / weight.sum())
    effective = float(n) if w is None else _effective_rows(wanted, weight, share)
    return _limits(share, effective, (1 - confidence) / 2), n


def _limits(share: float, n: float, delta: float) -> Interval:
    k = share * n
    k = float(round(k)) if abs(k - round(k)) < 1e-9 * max(n, 1.0) else k
    return Interval(share, min(float(lower_limit(k, n, delta)), share), max(float(upper_limit(k, n, delta)), share))


def _effective_rows(x: Array, w: Array, share: float) -> float:
    """Return the n* of equation (3)."""
    kish = float(w.sum() ** 2 / (w**2).sum())
    spread = float((w**2) @ (x - share) ** 2)
    return min(kish, share * (1 - share) * float(w.sum()) ** 2 / spread) if spread > 0 else kish


def faultless_limits(name: str, y: Array, p: Array, beta: float, confidence: float) -> Interval | None:
    """Return the limits (4) and (5) for predictions without errors; None if there are errors, or for other metrics."""
    delta = (1 - confidence) / 2
    if name == "fbeta":
        hits, either = int(np.count_nonzero(y & p)), int(np.count_nonzero(y | p))
        if hits == either:
            J = float(lower_limit(hits, hits, delta))
            return Interval(1.0, _f_beta_of(J, max(1.0, beta**2), beta), 1.0)
        if hits == 0:
            J = float(upper_limit(0, either, delta))
            return Interval(0.0, 0.0, _f_beta_of(J, min(1.0, beta**2), beta))
    if name == "balanced_accuracy" and (y == p).all():
        sizes = np.unique(y, return_counts=True)[1]
        return Interval(1.0, float(lower_limit(sizes, sizes, delta / len(sizes)).mean()), 1.0)
    return None


def _f_beta_of(J: float, cost: float, beta: float) -> float:
    return (1 + beta**2) * J / ((1 + beta**2) * J + cost * (1 - J))
