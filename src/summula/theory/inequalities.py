"""Concentration inequalities for means of n independent losses.

For losses in an interval of length r with mean mu, and their sample mean m,

    Hoeffding        P(m - mu >= e) <= exp(-2 n e^2 / r^2), twice that for |m - mu| >= e                       (1)
    Chernoff         P(m beyond q) <= exp(-n kl(q, mu)),  losses in [0, 1]                                     (2)
    union bound      P(one of some events) <= sum of their probabilities                                       (3)

where kl(q, p) = q log(q / p) + (1 - q) log((1 - q) / (1 - p)), and "beyond" means q or more when q > mu, q or less when
q < mu. References: Hoeffding (1963); Chernoff (1952).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import rel_entr

from summula.core.errors import ParameterError

__all__ = ["chernoff_kl", "hoeffding", "union_bound"]


def hoeffding(epsilon: ArrayLike, n: ArrayLike, *, sides: int = 2, width: float = 1.0) -> Any:
    """Bound the probability that a mean of n losses deviates by epsilon or more (1).

    Parameters
    ----------
    epsilon : float or array-like
        Deviation, at least 0.
    n : int or array-like
        Number of independent losses.
    sides : {1, 2}
        1 for a one-sided bound, 2 for a two-sided one.
    width : float
        Length of the interval that contains the losses.

    Returns
    -------
    float or ndarray
        At most 1.

    Examples
    --------
    >>> round(float(hoeffding(0.05, 1_000)), 4)
    0.0135
    """
    e, rows = _checked("epsilon", epsilon, 0.0), _checked("n", n, 0.0)
    if sides not in (1, 2):
        raise ParameterError(f"sides must be 1 or 2, for a one-sided or two-sided bound; got {sides!r}.")
    if not 0 < width < np.inf:
        raise ParameterError(f"width must be positive and finite; got {width!r}.")
    with np.errstate(over="ignore", invalid="ignore"):
        exponent = np.where(rows > 0, 2 * rows * (e / width) ** 2, 0.0)
    return np.minimum(1.0, sides * np.exp(-exponent))[()]


def chernoff_kl(p: ArrayLike, q: ArrayLike, n: ArrayLike) -> Any:
    """Bound the probability that the mean of n losses in [0, 1] with true mean p is q or farther from p (2).

    Parameters
    ----------
    p, q : float or array-like
        True and observed mean, in [0, 1].
    n : int or array-like
        Number of independent losses.

    Returns
    -------
    float or ndarray
        At most 1, and never more than Hoeffding's one-sided bound.

    Examples
    --------
    >>> bool(chernoff_kl(0.05, 0.08, 1_000) < hoeffding(0.03, 1_000, sides=1))
    True
    """
    mean, observed, rows = _checked("p", p, 0.0, 1.0), _checked("q", q, 0.0, 1.0), _checked("n", n, 0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        exponent = np.where(rows > 0, rows * (rel_entr(observed, mean) + rel_entr(1 - observed, 1 - mean)), 0.0)
    return np.exp(-exponent)[()]


def union_bound(probabilities: ArrayLike, times: float = 1) -> float:
    """Bound the probability of a union of events (3), which may be dependent.

    Parameters
    ----------
    probabilities : float or array-like
        Probability of each event.
    times : int
        Number of events with each probability.

    Returns
    -------
    float
        At most 1.

    Examples
    --------
    >>> union_bound(0.001, 20)
    0.02
    """
    p = _checked("probabilities", probabilities, 0.0, 1.0)
    if not times >= 0:
        raise ParameterError(f"times must be non-negative; got {times!r}.")
    return min(1.0, float(np.sum(p)) * times)


def _checked(name: str, value: ArrayLike, low: float, high: float = np.inf) -> Any:
    try:
        values = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} must be a number, or an array of numbers; got {value!r}.") from None
    if not ((values >= low) & (values <= high)).all():
        upper = "" if np.isinf(high) else f" and at most {high:g}"
        raise ParameterError(f"{name} must be at least {low:g}{upper}; got {value!r}.")
    return values
