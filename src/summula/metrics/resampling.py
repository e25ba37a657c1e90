"""The BCa bootstrap interval (bias-corrected and accelerated) of any metric.

With the metric t of the rows, t_b of B resamples and t_(g) without the rows of block g,

    z0 = Phi^-1(share of t_b below t),      a = sum d_g^3 / (6 (sum d_g^2)^(3/2)),    d_g = mean t_(.) - t_(g)     (1)
    limits: quantiles of t_b at Phi(z0 + (z0 + z) / (1 - a (z0 + z))),    z = Phi^-1((1 -+ confidence) / 2)        (2)

Ties of t_b with t count half. Blocks are single rows (the jackknife), or for large n 200 random blocks, whose skewness
estimates the same a. A metric of labels depends on the rows only through the counts of the confusion matrix, which are
multinomial: the cost of resampling does not depend on n. A metric that is a function of sums over rows is computed
from sums of blocks, single rows or for large n 2,000 random blocks, which are resampled instead: their sums have the
same variance and skewness as those of rows.

Reference: Efron (1987), "Better bootstrap confidence intervals", JASA 82.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from summula.core.errors import AccuracyWarning, DataError, ParameterError, warn
from summula.metrics.intervals import Interval
from summula.metrics.named_metrics import Function, Sums, Weights

__all__ = ["bca_interval"]

Array = NDArray[Any]

_BLOCKS = 200
_SUMMED_BLOCKS = 2_000  # blocks for metrics that are functions of sums
_ROUNDING = 1e-12  # relative difference of values that are equal up to rounding


class Resamples(NamedTuple):
    """Values of the metric on resamples, and without each block of rows, with the number of such blocks."""

    values: Array
    without: Array
    blocks: Array


def bca_interval(
    metric: Function,
    y: Array,
    p: Array,
    w: Weights,
    *,
    confidence: float,
    n_resamples: int,
    rng: np.random.Generator,
    labels: bool = False,
    sums: Sums | None = None,
) -> Interval:
    """Return the metric and its limits (2).

    `labels` is whether it is a function of the confusion matrix; `sums` are the sums over rows it is a function of.
    """
    if isinstance(n_resamples, bool) or not isinstance(n_resamples, int | np.integer) or n_resamples < 100:
        raise ParameterError(f"n_resamples must be an int >= 100; got {n_resamples!r}.")
    estimate = float(metric(y, p, w))
    if not math.isfinite(estimate):
        raise DataError("The metric is undefined for these rows (one class only, or a target without spread?).")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # resamples for which the metric is undefined
        if labels and w is None:
            found = _resampled_cells(metric, y, p, n_resamples, rng)
        elif sums is not None:
            found = _resampled_sums(sums, y, p, w, n_resamples, rng)
        else:
            found = _resampled_rows(metric, y, p, w, n_resamples, rng)
    values = found.values[np.isfinite(found.values)]
    if len(values) < n_resamples / 2:
        raise DataError(
            f"The metric is undefined for {n_resamples - len(values)} of {n_resamples} resamples: too few rows of "
            "a class, or too little spread; use more rows."
        )
    if values.max() - values.min() <= _ROUNDING * np.abs(values).max():
        warn(
            f"The metric is {estimate:.6g} on all resamples, so the interval has no width, and does not say how far "
            "the true value may be off: use more rows.",
            AccuracyWarning,
        )
    lower, upper = np.quantile(values, _levels(values, estimate, _acceleration(found), confidence))
    return Interval(estimate, float(min(lower, estimate)), float(max(upper, estimate)))


def _levels(values: Array, estimate: float, a: float, confidence: float) -> Array:
    """Return the levels of the quantiles in equation (2)."""
    slack = _ROUNDING * float(np.abs(values).max())
    below = ((values < estimate - slack).mean() + (values <= estimate + slack).mean()) / 2
    z0 = float(ndtri(np.clip(below, 0.5 / len(values), 1 - 0.5 / len(values))))
    z = ndtri(np.array([(1 - confidence) / 2, (1 + confidence) / 2]))
    return np.asarray(ndtr(z0 + (z0 + z) / np.maximum(1 - a * (z0 + z), 1e-3)))


def _acceleration(found: Resamples) -> float:
    """Return a of equation (1); 0 if the metric does not change."""
    finite = np.isfinite(found.without)
    values, times = found.without[finite], found.blocks[finite]
    if times.sum() < 2:
        return 0.0
    d = times @ values / times.sum() - values
    spread = float(times @ d**2)
    return float(times @ d**3) / (6 * spread**1.5) if spread > 0 else 0.0


def _resampled_rows(
    metric: Function, y: Array, p: Array, w: Weights, n_resamples: int, rng: np.random.Generator
) -> Resamples:
    n, of = len(y), _value(metric)
    values = [of(y, p, w, rng.integers(0, n, n)) for _ in range(n_resamples)]
    blocks = min(n, _BLOCKS)
    block = rng.permutation(np.arange(n) % blocks)
    without = [of(y, p, w, block != g) for g in range(blocks)]
    return Resamples(np.array(values), np.array(without), np.ones(blocks))


def _value(metric: Function) -> Callable[[Array, Array, Weights, Array], float]:
    """Return the metric of some rows; NaN if it is undefined."""

    def value(y: Array, p: Array, w: Weights, rows: Array) -> float:
        try:
            return float(metric(y[rows], p[rows], None if w is None else w[rows]))
        except (ValueError, ZeroDivisionError):
            return math.nan

    return value


def _resampled_cells(metric: Function, y: Array, p: Array, n_resamples: int, rng: np.random.Generator) -> Resamples:
    labels, codes = np.unique(np.concatenate([y, p]), return_inverse=True)
    cells, sizes = np.unique(codes[: len(y)] * len(labels) + codes[len(y) :], return_counts=True)
    true, predicted = labels[cells // len(labels)], labels[cells % len(labels)]
    drawn = rng.multinomial(len(y), sizes / len(y), size=n_resamples).astype(np.float64)
    values = [metric(true, predicted, one) for one in drawn]
    without = [metric(true, predicted, sizes - one) for one in np.eye(len(sizes))]
    return Resamples(np.array(values), np.array(without), sizes.astype(np.float64))


def _resampled_sums(
    sums: Sums, y: Array, p: Array, w: Weights, n_resamples: int, rng: np.random.Generator
) -> Resamples:
    rows = sums.rows(y, p) if w is None else w[:, None] * sums.rows(y, p)
    blocks = min(len(y), _SUMMED_BLOCKS)
    if blocks < len(y):
        block = rng.permutation(np.arange(len(y)) % blocks)
        rows = np.column_stack([np.bincount(block, weights=column, minlength=blocks) for column in rows.T])
    drawn = (np.bincount(rng.integers(0, blocks, blocks), minlength=blocks) for _ in range(n_resamples))
    values = sums.value(np.array([times @ rows for times in drawn]))
    return Resamples(values, sums.value(rows.sum(axis=0) - rows), np.ones(blocks))
