"""Exact confidence limits of a binomial probability, for any count and any confidence level.

The lower limit after k successes in n trials is the q with

    P(Binomial(n, q) >= k) = I_q(k, n - k + 1) = delta                                                         (1)

and the upper limit is one minus the lower limit of the failures. The regularised incomplete beta function I and its
inverse come from SciPy, to about twelve digits, as long as delta is not extremely small and n not extremely large.
Otherwise (1) is solved for s = log(q / (1 - q)) by bisection, with

    log P = -n kl(k / n, q) + log(g(n) / (g(k) g(n - k))) + log sum over j of T_j                              (2)
    T_0 = 1,     T_j = T_{j-1} (q / (1 - q)) (n - k - j + 1) / (k + j)                                         (3)

where kl is the relative entropy, g(x) = x! / (x / e)^x, and T_j the probability of k + j successes relative to that of
k. For q < k / n the ratios in (3) are below 1 and decreasing, so the remaining terms are bounded by a geometric series.
This bound and a bound on the rounding error of (2) are added, so that the limit errs outward.

References: Clopper and Pearson (1934); Loader (2000) for (2).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainccinv, betaincinv, expit, gammaln, logit

__all__ = ["lower_limit", "upper_limit"]

Array = NDArray[np.float64]

_SMALLEST_DELTA, _LARGEST_N, _SMALLEST_LIMIT = 1e-100, 2.0**30, 1e-10  # range in which SciPy's inverse is used
_EPS = np.finfo(np.float64).eps
_TERMS = 64
_HALVINGS = 64


def lower_limit(k: Any, n: Any, delta: float) -> Array:
    """Return the lower Clopper-Pearson limit (1) at confidence 1 - delta, rounded down; k need not be an integer."""
    k, n = np.broadcast_arrays(np.asarray(k, np.float64), np.asarray(n, np.float64))
    interior = k > 0
    with np.errstate(all="ignore"):
        found = betaincinv(np.where(interior, k, 1.0), n - k + 1, delta)
    is_extreme = interior & _beyond_scipy(found, n, delta)
    limit = np.array(np.clip(found * (1 - _slack(n)) - _EPS, 0.0, 1.0))
    if is_extreme.any():
        limit[is_extreme] = (1 - 4 * _EPS) * expit(_log_odds(k[is_extreme], n[is_extreme], delta))
    return np.where(interior, limit, 0.0)


def upper_limit(k: Any, n: Any, delta: float) -> Array:
    """Return the upper Clopper-Pearson limit at confidence 1 - delta, rounded up; k need not be an integer."""
    k, n = np.broadcast_arrays(np.asarray(k, np.float64), np.asarray(n, np.float64))
    interior = k < n
    with np.errstate(all="ignore"):
        found = betainccinv(k + 1, np.where(interior, n - k, 1.0), delta)
    is_extreme = interior & _beyond_scipy(found, n, delta)
    limit = np.array(np.clip(found * (1 + _slack(n)) + _EPS, 0.0, 1.0))
    if is_extreme.any():
        odds = -_log_odds((n - k)[is_extreme], n[is_extreme], delta)
        limit[is_extreme] = np.minimum((1 + 4 * _EPS) * expit(odds), 1.0)
    return np.where(interior, limit, 1.0)


def _slack(n: Array) -> Array:
    """Return an upper bound on the relative error of SciPy's inverse."""
    return 1e-12 * (1 + np.sqrt(n) / 1e3)


def _beyond_scipy(found: Array, n: Array, delta: float) -> NDArray[np.bool_]:
    return (n > _LARGEST_N) | ~(found > _SMALLEST_LIMIT) | (delta < _SMALLEST_DELTA)


def _log_odds(k: Array, n: Array, delta: float) -> Array:
    """Return the log odds of the lower limit, rounded down."""
    target = np.log(min(delta, 0.5))  # for 1/2 the limit is already at most k / n
    low = np.full(k.shape, np.log(delta) - 60.0)  # below the limit of one success in e^60 trials
    high = np.where(k < n, logit(np.minimum(k / n, 1 - 1e-16)), 40.0)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        inside = _log_tail(k, n, middle) <= target
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return low


def _log_tail(k: Array, n: Array, s: Array) -> Array:
    """Return a tight upper bound on (2) for q = expit(s) < k / n."""
    log_q, log_p = -np.logaddexp(0.0, -s), -np.logaddexp(0.0, s)
    share, rest = k / n, (n - k) / n
    # Rounding errors must be small relative to log_share and log_rest, not to 1.
    with np.errstate(divide="ignore"):
        log_share = np.where(share < 0.5, np.log(share), np.log1p(-rest))
        log_rest = np.where(k == n, 0.0, np.where(rest < 0.5, np.log(rest), np.log1p(-share)))
    entropy = k * (log_share - log_q) + (n - k) * (log_rest - log_p)
    size = k * (np.abs(log_share) + np.abs(log_q)) + (n - k) * (np.abs(log_rest) + np.abs(log_p))
    left, j = n - k, np.arange(1.0, _TERMS + 1)
    ratios = np.exp(s)[..., None] * np.maximum(left[..., None] - j + 1, 0.0) / (k[..., None] + j)
    terms = np.cumprod(ratios[..., :-1], axis=-1)
    last = np.minimum(ratios[..., -1], 1 - _EPS)
    total = 1 + terms.sum(axis=-1) + terms[..., -1] * last / (1 - last)
    log_g = _log_g(n) - _log_g(k) - _log_g(n - k)
    return np.asarray(-entropy + log_g + np.log(total) + 4 * _EPS * size + 1e-12)


def _log_g(x: Array) -> Array:
    """log(x! / (x / e)^x), which is about log(2 pi x) / 2."""
    inverse = 1 / np.maximum(x, 16.0)
    series = inverse * (1 / 12 - inverse**2 * (1 / 360 - inverse**2 * (1 / 1260 - inverse**2 / 1680)))
    small = np.clip(x, 1e-300, 16.0)
    return np.where(
        x < 16, gammaln(small + 1) + small - small * np.log(small), np.log(2 * np.pi * np.maximum(x, 16.0)) / 2 + series
    )
