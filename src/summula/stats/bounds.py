"""Confidence bounds on a mean from a sample, in closed form.

For n independent losses in [0, 1] with sample mean p, sample variance v and true mean mu, each bound below is
one-sided: the probability that mu is above `upper` is at most delta, and so is the probability that it is below
`lower`. (Both hold with probability at least 1 - 2 delta.) The bounds always include the sample mean: if separately
computed bounds would exclude it, which requires a delta near 1/2 or more, or an extreme sample, they are moved outward
to the mean, which preserves their validity and lower <= upper. With L = log(1 / delta) and the relative entropy
kl(p, q) = p log(p / q) + (1 - p) log((1 - p) / (1 - q)),

    Hoeffding             mu <= p + sqrt(L / (2 n))                                                            (1)
    Chernoff              mu <= the largest q with n kl(p, q) <= L                                             (2)
    empirical Bernstein   mu <= p + sqrt(2 v log(2 / delta) / n) + 7 log(2 / delta) / (3 (n - 1))              (3)
    Clopper-Pearson       mu <= the q with P(Binomial(n, q) <= k) = delta, for k losses of 1 among n           (4)

(1) uses the range only and (2) is never worse; (3) exploits a small variance; (4) is exact for losses that are 0 or 1.
`bounds_betting.py` has the tightest bounds for other losses.

Two more results use only the binomial distribution. McNemar's test: if two models have equal error rates, then among
the b + c rows on which exactly one of them is correct, each is correct with probability 1/2,

    p = P(Binomial(b + c, 1/2) >= max(b, c)), twice that for a difference of either sign                       (5)

Order statistics: the k-th smallest of n scores is below the (1 - alpha)-quantile with probability

    P(Binomial(n, 1 - alpha) >= k), which is at most delta for large enough k if (1 - alpha)^n <= delta        (6)

References: Hoeffding (1963), theorem 1; Chernoff (1952); Maurer and Pontil (2009), theorem 4; Clopper and Pearson
(1934); McNemar (1947); Tong, Feng and Li (2018), proposition 1.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, rel_entr

from summula.core.docstrings import inherit_docs
from summula.core.errors import DataError, ParameterError
from summula.core.estimator.input.argument_values import number_or_nan
from summula.stats.binomial_limits import lower_limit, upper_limit

__all__ = [
    "Bounds",
    "McNemar",
    "bernstein_bounds",
    "check_delta",
    "chernoff_bounds",
    "clopper_pearson_bounds",
    "hoeffding_bounds",
    "mcnemar",
    "order_statistic",
    "outward",
    "shared_delta",
]

Array = NDArray[np.float64]

_ROUNDING = 1e-12
_HALVINGS = 60


class Bounds(NamedTuple):
    """One-sided bounds on a true mean, each with error probability at most delta.

    Attributes
    ----------
    lower, upper : float or ndarray
        One value per sample, in the shape of the arguments.
    """

    lower: Any
    upper: Any


class McNemar(NamedTuple):
    """Result of McNemar's test: which of two models has the larger error rate.

    Attributes
    ----------
    p_value : float or ndarray
        Two-sided p-value of the hypothesis of equal error rates.
    p_first_worse, p_second_worse : float or ndarray
        One-sided p-values: small if the first (the second) model has the larger error rate.
    """

    p_value: Any
    p_first_worse: Any
    p_second_worse: Any


def check_delta(delta: Any, name: str = "delta") -> float:
    """Return a probability strictly between 0 and 1."""
    value = number_or_nan(delta)
    if not 0.0 < value < 1.0 or isinstance(delta, bool | np.bool_):
        raise ParameterError(f"{name} must be a number between 0 and 1 (exclusive), such as 0.05; got {delta!r}.")
    return value


def shared_delta(delta: float, n_models: int) -> float:
    """Return the error probability for each of several models (union bound), rounded down."""
    share = math.nextafter(delta / n_models, 0.0) if n_models > 1 else delta
    if not share:
        raise ParameterError(f"delta={delta:g} is too small to divide among {n_models} models: use a larger delta.")
    return share


def hoeffding_bounds(mean: ArrayLike, n: ArrayLike, delta: float = 0.05) -> Bounds:
    """Compute Hoeffding's bounds (1).

    Parameters
    ----------
    mean : float or array-like
        Means of losses in [0, 1].
    n : int or array-like
        Number of losses averaged.
    delta : float
        Error probability of each one-sided bound.

    Returns
    -------
    Bounds

    Examples
    --------
    >>> hoeffding_bounds(0.05, 1000).upper.round(4)
    np.float64(0.0887)
    """
    p, n = _means(mean, n)
    width = np.sqrt(-np.log(check_delta(delta)) / (2 * n))
    return outward(p - width, p + width, p)


@inherit_docs(hoeffding_bounds)
def chernoff_bounds(mean: ArrayLike, n: ArrayLike, delta: float = 0.05) -> Bounds:
    """Compute Chernoff's bounds (2), based on the relative entropy.

    Examples
    --------
    >>> chernoff_bounds(0.05, 1000).upper.round(4)
    np.float64(0.0687)
    """
    p, n = _means(mean, n)
    most = -np.log(check_delta(delta)) / n
    return outward(1.0 - _largest(1.0 - p, most), _largest(p, most), p)


@inherit_docs(hoeffding_bounds)
def bernstein_bounds(mean: ArrayLike, variance: ArrayLike, n: ArrayLike, delta: float = 0.05) -> Bounds:
    """Compute the empirical Bernstein bounds (3) from the mean and variance of a sample.

    Parameters
    ----------
    variance : float or array-like
        Sample variances, with denominator n - 1.
    n : int or array-like
        Number of losses, at least 2.

    Examples
    --------
    >>> bernstein_bounds(0.05, 0.0475, 1000).upper.round(4)
    np.float64(0.0773)
    """
    p, n = _means(mean, n)
    v = np.asarray(variance, np.float64)
    if (n < 2).any():
        raise DataError("Bernstein's bound needs a variance, hence at least 2 rows: use more, or Hoeffding's bound.")
    if not (v >= 0).all():
        raise DataError("The variance is negative or missing; it must be a non-negative number.")
    both = np.log(2.0) - np.log(check_delta(delta))
    width = np.sqrt(2 * v * both / n) + 7 * both / (3 * (n - 1))
    return outward(p - width, p + width, p)


@inherit_docs(hoeffding_bounds)
def clopper_pearson_bounds(k: ArrayLike, n: ArrayLike, delta: float = 0.05) -> Bounds:
    """Compute the exact Clopper-Pearson bounds (4) on a probability.

    Parameters
    ----------
    k : int or array-like
        Number of losses that are 1; the others are 0.
    n : int or array-like
        Number of losses.

    Examples
    --------
    >>> clopper_pearson_bounds(50, 1000).upper.round(4)
    np.float64(0.0629)
    >>> clopper_pearson_bounds(0, 59).upper < 0.05  # 59 rows without an error
    np.True_
    """
    delta = check_delta(delta)
    k, n = np.asarray(k, np.float64), _counts(n)
    if not ((k >= 0) & (k <= n) & (k == np.floor(k))).all():
        raise DataError("The number of errors must be an integer from 0 to the number of rows.")
    return Bounds(np.minimum(lower_limit(k, n, delta), k / n)[()], np.maximum(upper_limit(k, n, delta), k / n)[()])


def mcnemar(first_only: ArrayLike, second_only: ArrayLike) -> McNemar:
    """Compare two models by McNemar's exact test (5).

    Parameters
    ----------
    first_only, second_only : int or array-like
        Number of rows on which only the first, and only the second, model is wrong.

    Returns
    -------
    McNemar

    Examples
    --------
    >>> round(float(mcnemar(12, 2).p_value), 4)
    0.0129
    """
    b, c = np.asarray(first_only, np.float64), np.asarray(second_only, np.float64)
    for count in (b, c):
        if not ((count >= 0) & (count == np.floor(count))).all():
            raise DataError("McNemar's test needs two row counts; one is negative, missing or not an integer.")
    first, second = _upper_tail(b, b + c, 0.5), _upper_tail(c, b + c, 0.5)
    return McNemar(np.minimum(1.0, 2 * np.minimum(first, second))[()], first[()], second[()])


def order_statistic(n: int, alpha: float, delta: float = 0.05) -> int:
    """Return the smallest k for which the k-th smallest of n scores is an upper bound on a quantile (6).

    The k-th smallest score is below the (1 - alpha)-quantile with probability at most delta.

    Parameters
    ----------
    n : int
        Number of scores.
    alpha : float
        Fraction of scores above the quantile.
    delta : float
        Probability that the order statistic is below the quantile.

    Returns
    -------
    int
        From 1 to n; n + 1 if no order statistic is large enough: (1 - alpha)^n > delta.

    Examples
    --------
    >>> order_statistic(59, 0.05), order_statistic(58, 0.05), order_statistic(1000, 0.05)
    (59, 59, 962)
    """
    alpha, delta = check_delta(alpha, "alpha"), check_delta(delta)
    n = int(_counts(n))
    low, high = 0, n + 1  # the probability is 1 at k = 0, and 0 at k = n + 1
    while high - low > 1:
        middle = (low + high) // 2
        if _upper_tail(np.float64(middle), np.float64(n), 1 - alpha) <= delta:
            high = middle
        else:
            low = middle
    return high


def outward(lower: Any, upper: Any, mean: Any) -> Bounds:
    """Clip bounds to [0, 1] and to either side of the sample mean, and widen them to cover rounding errors."""
    low = np.clip(np.asarray(lower) * (1 - _ROUNDING) - np.spacing(1.0), 0.0, mean)
    high = np.clip(np.asarray(upper) * (1 + _ROUNDING) + np.spacing(1.0), mean, 1.0)
    return Bounds(low[()], high[()])


def _upper_tail(k: Any, n: Any, p: float) -> Any:
    """P(Binomial(n, p) >= k)."""
    return np.where(k <= 0, 1.0, betainc(np.maximum(k, 1.0), n - np.maximum(k, 1.0) + 1, p))


def _largest(p: Array, most: Array) -> Array:
    """Return the largest q with kl(p, q) <= most, rounded up, by bisection."""
    most = most + 4 * np.spacing(1.0)  # rounding error of the entropies
    low, high = p, np.ones(np.broadcast(p, most).shape)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        inside = rel_entr(p, middle) + rel_entr(1 - p, 1 - middle) <= most
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return np.asarray(high)


def _counts(n: ArrayLike) -> Array:
    values = np.asarray(n, np.float64)
    if not ((values >= 1) & (values == np.floor(values)) & np.isfinite(values)).all():
        raise DataError(f"The number of rows must be an integer >= 1; got {n!r}.")
    return values


def _means(mean: ArrayLike, n: ArrayLike) -> tuple[Array, Array]:
    p = np.asarray(mean, np.float64)
    if not ((p >= 0) & (p <= 1)).all():
        raise DataError("The mean of the losses must be in [0, 1]: scale the losses to that range first.")
    return p, _counts(n)
