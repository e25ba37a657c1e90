"""Sample size planning: the number of labelled rows needed for a certificate, by inverting held-out bounds.

With k errors among n rows the exact bounds on the error rate are those of Clopper and Pearson, at level delta / M for a
selection among M models. `plan_holdout` finds the smallest n from which on an observed error rate of p, that is
k = ceil(p n), gives an upper bound below a limit, or an interval within a width. `plan_recall` finds the first n with

    (1 - alpha)^n <= delta                                                                                     (1)

for which the largest of n scores is above their (1 - alpha)-quantile with probability at least 1 - delta, as needed for
a threshold with a recall of at least 1 - alpha.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import ParameterError
from summula.stats.binomial_limits import lower_limit, upper_limit
from summula.stats.bounds import check_delta, shared_delta

__all__ = ["plan_holdout", "plan_recall"]


def plan_holdout(
    error: float, limit: float | None = None, width: float | None = None, delta: float = 0.05, n_models: int = 1
) -> int:
    """Return the number of held-out rows needed to certify an error rate.

    Parameters
    ----------
    error : float
        Error rate expected to be observed.
    limit : float, optional
        Largest acceptable upper bound.
    width : float, optional
        Largest acceptable distance between the two bounds; instead of `limit`.
    delta : float
        Error probability of each one-sided bound.
    n_models : int
        Number of models among which the rows are used to select.

    Returns
    -------
    int
        Smallest sufficient number of rows; any larger number is also sufficient.

    Examples
    --------
    >>> plan_holdout(0.0, limit=0.05), plan_holdout(0.05, limit=0.06), plan_holdout(0.05, width=0.02)
    (59, 1743, 1402)
    """
    delta = check_delta(delta)
    if not 0 <= error < 1:
        raise ParameterError(f"error must be in the range [0, 1); got {error!r}.")
    if isinstance(n_models, bool) or int(n_models) != n_models or n_models < 1:
        raise ParameterError(f"n_models must be an int >= 1; got {n_models!r}.")
    if (limit is None) == (width is None):
        raise ParameterError("Pass exactly one of limit and width.")
    if limit is not None and not error < limit <= 1:
        raise ParameterError(
            f"limit must be greater than the error of {error:g} and at most 1, since the bound is never below the "
            f"observed error; got {limit!r}."
        )
    if width is not None and not 0 < width <= 1:
        raise ParameterError(f"width must be in the range (0, 1]; got {width!r}.")

    share = shared_delta(delta, n_models)
    within: Any = width if limit is None else limit

    def enough(n: NDArray[np.float64], k: NDArray[np.float64]) -> NDArray[np.bool_]:
        k = np.minimum(k, n)
        upper = upper_limit(k, n, share)
        lower = lower_limit(k, n, share) if limit is None else 0.0
        return np.asarray(upper - lower <= within)

    return _smallest_sufficient(enough, error)


def plan_recall(alpha: float, delta: float = 0.05) -> int:
    """Return the number of rows of a class needed for a threshold that misses at most a fraction alpha of it (1).

    Parameters
    ----------
    alpha : float
        Largest acceptable fraction of missed rows: one minus the recall.
    delta : float
        Probability that more rows are missed.

    Returns
    -------
    int

    Examples
    --------
    >>> plan_recall(0.05), plan_recall(0.01)
    (59, 299)
    """
    alpha, delta = check_delta(alpha, "alpha"), check_delta(delta)
    exact = math.log(delta) / math.log1p(-alpha)
    if math.isinf(exact):
        raise ParameterError(f"alpha={alpha:g} is too small: the required number of rows overflows; use a larger one.")
    n = max(1, math.floor(exact))
    return n if n * math.log1p(-alpha) <= math.log(delta) else n + 1


def _smallest_sufficient(enough: Callable[[Any, Any], NDArray[np.bool_]], p: float) -> int:
    """Return the smallest n such that any number of rows >= n with ceil(p n) errors is sufficient.

    Rounding makes the bounds non-monotone. All n are checked between the first at which p n errors (not rounded) are
    acceptable and the first at which p n + 1 are.
    """
    first = _first(lambda n: bool(enough(n, p * n + np.array([0.0, 1.0])).any()))
    # (The bounds are furthest apart at n / 2 errors.)
    sure = _first(lambda n: bool(enough(n, p * n + np.array([0.0, np.clip(n / 2 - p * n, 0.0, 1.0), 1.0])).all()))
    n = np.arange(first, max(sure, first) + 1, dtype=np.float64)
    # Rounded first, so that 0.05 times 100 is 5.
    missing = n[~enough(n, np.ceil(np.round(p * n, 9)))]
    return int(missing[-1]) + 1 if len(missing) else first


def _first(holds: Callable[[Any], bool]) -> int:
    """Return the smallest n for which a monotone predicate holds."""
    low, high = 0, 1
    while not holds(np.float64(high)):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(np.float64(middle)) else (middle, high)
    return high
