"""How many rows to label before a statement can be made: the inverse of the bounds on held-out data.

With k errors among n rows the exact bounds on the error are those of Clopper and Pearson, at delta / M after a choice
among M models. `plan_holdout` finds the first n from which on an observed error of p, that is k = ceil(p n), leaves the
upper bound within a limit, or both bounds within a width. `plan_recall` finds the first n with

    (1 - alpha)^n <= delta                                                                                     (1)

from which on the largest of n scores lies above their (1 - alpha)-quantile with probability at least 1 - delta: what a
threshold that keeps a recall of 1 - alpha needs.
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
    """How many held-out rows certify an error, if the model errs as often as expected.

    Parameters
    ----------
    error : float
        The share of errors that is expected to be observed.
    limit : float, optional
        What the upper bound is to stay within.
    width : float, optional
        What the distance of the two bounds is to stay within; instead of `limit`.
    delta : float
        The chance that a bound is wrong, for each of the two.
    n_models : int
        How many models the rows will choose from.

    Returns
    -------
    int
        From this number of rows on the statement can be made.

    Examples
    --------
    >>> plan_holdout(0.0, limit=0.05), plan_holdout(0.05, limit=0.06), plan_holdout(0.05, width=0.02)
    (59, 1743, 1402)
    """
    delta = check_delta(delta)
    if not 0 <= error < 1:
        raise ParameterError(f"error must be at least 0 and less than 1; got {error!r}.")
    if isinstance(n_models, bool) or int(n_models) != n_models or n_models < 1:
        raise ParameterError(f"n_models must be a number of models, at least 1; got {n_models!r}.")
    if (limit is None) == (width is None):
        raise ParameterError("Give one of limit and width: what the bounds are to stay within.")
    if limit is not None and not error < limit <= 1:
        raise ParameterError(
            f"limit must be more than the error of {error:g} and at most 1, since no number of rows bounds an error "
            f"below what is observed; got {limit!r}."
        )
    if width is not None and not 0 < width <= 1:
        raise ParameterError(f"width must be more than 0 and at most 1; got {width!r}.")

    share = shared_delta(delta, n_models)
    within: Any = width if limit is None else limit

    def enough(n: NDArray[np.float64], k: NDArray[np.float64]) -> NDArray[np.bool_]:
        k = np.minimum(k, n)
        upper = upper_limit(k, n, share)
        lower = lower_limit(k, n, share) if limit is None else 0.0
        return np.asarray(upper - lower <= within)

    return _from_there_on(enough, error)


def plan_recall(alpha: float, delta: float = 0.05) -> int:
    """How many rows of a class a threshold needs that misses at most a share alpha of it (1).

    Parameters
    ----------
    alpha : float
        The largest share of the class that may be missed: one minus the recall.
    delta : float
        The chance that more is missed.

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
        raise ParameterError(f"alpha={alpha:g} is too small: the number of rows it needs overflows; use a larger one.")
    n = max(1, math.floor(exact))
    return n if n * math.log1p(-alpha) <= math.log(delta) else n + 1


def _from_there_on(enough: Callable[[Any, Any], NDArray[np.bool_]], p: float) -> int:
    """The first n from which on n rows with ceil(p n) errors are enough.

    Rounding moves the bounds up and down. Between the first n at which p n errors (not rounded) are enough and the
    first at which p n + 1 are, every n is looked at.
    """
    first = _first(lambda n: bool(enough(n, p * n + np.array([0.0, 1.0])).any()))
    # (The bounds are furthest apart at n / 2 errors.)
    sure = _first(lambda n: bool(enough(n, p * n + np.array([0.0, np.clip(n / 2 - p * n, 0.0, 1.0), 1.0])).all()))
    n = np.arange(first, max(sure, first) + 1, dtype=np.float64)
    # Rounded first, so that 0.05 times 100 is 5.
    missing = n[~enough(n, np.ceil(np.round(p * n, 9)))]
    return int(missing[-1]) + 1 if len(missing) else first


def _first(holds: Callable[[Any], bool]) -> int:
    """The first n of which something holds that holds ever after."""
    low, high = 0, 1
    while not holds(np.float64(high)):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(np.float64(middle)) else (middle, high)
    return high
