"""Margin-based generalisation bounds, independent of the number of columns.

Assume that, with probability 1, rows satisfy ||x|| <= rho and are separated with margin gamma by a halfspace through
the origin. Then with probability at least 1 - delta the error rate of the hard-margin SVM fitted to m rows is at most

    sqrt(4 (rho / gamma)^2 / m) + sqrt(2 log(2 / delta) / m)                                                     (1)

Shalev-Shwartz and Ben-David (2014), Understanding Machine Learning, theorem 15.4 with the constants of the corrections.
"""

from __future__ import annotations

import math

import numpy as np

from summula.core.errors import ParameterError
from summula.stats.bounds import check_delta

__all__ = ["margin_bound"]

_LARGE = 2**1000  # numbers of rows from which roots are taken by logarithms


def margin_bound(rho: float, gamma: float, n_samples: int, delta: float = 0.05) -> float:
    """Bound the error rate of a hard-margin SVM without intercept by its margin; 1 if the bound is vacuous.

    Parameters
    ----------
    rho : float
        Upper bound on the norm of rows.
    gamma : float
        Margin: some unit vector w satisfies y w'x >= gamma for every row.
    n_samples : int
        Number of training rows.
    delta : float, default=0.05
        Probability that the guarantee fails.

    Returns
    -------
    float

    Examples
    --------
    >>> from summula.theory import margin_bound
    >>> round(margin_bound(rho=1.0, gamma=0.2, n_samples=10_000), 3)
    0.127
    """
    delta = check_delta(delta)
    for name, value in (("rho", rho), ("gamma", gamma)):
        if not isinstance(value, float | int | np.number) or not 0 < value < math.inf:
            raise ParameterError(f"{name} must be a positive, finite number; got {value!r}.")
    if gamma > rho:
        raise ParameterError(
            f"gamma={gamma!r} is larger than rho={rho!r}: rows of norm at most rho have no larger margin than rho."
        )
    if isinstance(n_samples, bool) or not 1 <= n_samples < math.inf or int(n_samples) != n_samples:
        raise ParameterError(f"n_samples must be an int >= 1; got {n_samples!r}.")
    root = math.exp(math.log(n_samples) / 2) if n_samples > _LARGE else math.sqrt(n_samples)
    bound = 2.0 * (rho / gamma) / root + math.sqrt(2.0 * (math.log(2.0) - math.log(delta))) / root
    return min(bound, 1.0)
