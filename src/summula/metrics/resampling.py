"""The BCa bootstrap interval (bias-corrected and accelerated) of any metric.

With the metric t of the rows, t_b of B resamples and t_(g) without the rows of block g,

    z0 = Phi^-1(share of t_b below t),      a = sum d_g^3 / (6 (sum d_g^2)^(3/2)),    d_g = mean t_(.) - t_(g)     (1)
    limits: quantiles of t_b at Phi(z0 + (z0 + z) / (1 - a (z0 + z))),    z = Phi^-1((1 -+ confidence) / 2)        (2)

Ties of t_b with t count half. Blocks are single rows (the jackknife), or for large n 200 random blocks, whose skewness
estimates the same a.

Reference: Efron (1987), "Better bootstrap confidence intervals", JASA 82.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from summula.core.errors import DataError, ParameterError
from summula.metrics.delong import Limits

__all__ = ["bca_interval"]

Array = NDArray[Any]

_BLOCKS = 200


def bca_interval(
    metric: Callable[[Any, Any], Any],
    y: Array,
    p: Array,
    *,
    confidence: float,
    n_resamples: int,
    rng: np.random.Generator,
) -> Limits:
    """Return the metric and its limits (2)."""
    if isinstance(n_resamples, bool) or not isinstance(n_resamples, int | np.integer) or n_resamples < 100:
        raise ParameterError(f"n_resamples must be an int >= 100; got {n_resamples!r}.")
    n = len(y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of metrics that are undefined for a resample
        estimate = _value(metric, y, p)
        if not math.isfinite(estimate):
            raise DataError("The metric is undefined for these rows (one class only, or a target without spread?).")
        drawn = (rng.integers(0, n, n) for _ in range(n_resamples))
        values = np.array([_value(metric, y[rows], p[rows]) for rows in drawn])
        values = values[np.isfinite(values)]
        if len(values) < n_resamples / 2:
            raise DataError(
                f"The metric is undefined for {n_resamples - len(values)} of {n_resamples} resamples: too few rows of "
                "a class, or too little spread; use more rows."
            )
        a = _acceleration(metric, y, p, rng)
    slack = 1e-12 * float(np.abs(values).max())  # equal up to rounding
    below = ((values < estimate - slack).mean() + (values <= estimate + slack).mean()) / 2
    z0 = float(ndtri(np.clip(below, 0.5 / len(values), 1 - 0.5 / len(values))))
    z = ndtri(np.array([(1 - confidence) / 2, (1 + confidence) / 2]))
    levels = ndtr(z0 + (z0 + z) / np.maximum(1 - a * (z0 + z), 1e-3))
    lower, upper = np.quantile(values, levels)
    return Limits(estimate, float(min(lower, estimate)), float(max(upper, estimate)))


def _value(metric: Callable[[Any, Any], Any], y: Array, p: Array) -> float:
    try:
        return float(metric(y, p))
    except (ValueError, ZeroDivisionError):
        return math.nan


def _acceleration(metric: Callable[[Any, Any], Any], y: Array, p: Array, rng: np.random.Generator) -> float:
    """Equation (1); 0 where the metric does not change."""
    n = len(y)
    blocks = min(n, _BLOCKS)
    labels = rng.permutation(np.arange(n) % blocks)
    values = np.array([_value(metric, y[labels != g], p[labels != g]) for g in range(blocks)])
    values = values[np.isfinite(values)]
    if len(values) < 2:
        return 0.0
    d = values.mean() - values
    spread = float((d**2).sum())
    return float((d**3).sum()) / (6 * spread**1.5) if spread > 0 else 0.0
