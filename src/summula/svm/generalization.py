"""A bound on the risk from the number of support vectors (the scenario approach of Campi and Garatti).

The soft-margin SVM of m independent rows has a slack xi_i for every row with y f(x) < 1. Let s be the number of rows
that determine the solution, the support vectors. Then, for any distribution of the rows,

    P( low(s) <= P(y f(x) < 1) <= high(s) ) >= 1 - delta,     low(k) = max(0, 1 - t_high(k)),  high(k) = 1 - t_low(k)

with t_low(k) <= t_high(k) the two positive roots of

    C(m, k) t^(m-k) = delta/(2m) sum_{i=k}^{m-1} C(i, k) t^(i-k) + delta/(6m) sum_{i=m+1}^{4m} C(i, k) t^(i-k)      (1)

(high(m) = 1). Garatti and Campi (2022), Risk and complexity in scenario optimization, Math. Programming 191, theorem 1;
Campi and Garatti (2021), A theory of the risk for optimization with relaxation and its application to support vector
machines, JMLR 22. Both sides of (1) are compared in logarithms.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from summula.core.errors import ParameterError
from summula.core.estimator.input.argument_values import is_fraction

__all__ = ["ScenarioBound", "scenario_bound"]

Array = NDArray[Any]


class ScenarioBound(NamedTuple):
    """`low` <= P(y f(x) < 1) <= `high` with probability >= 1 - `delta`; `complexity` support vectors among `rows`."""

    low: float
    high: float
    delta: float
    complexity: int
    rows: int


def _log_excess(t: float, m: int, k: int, delta: float, logs: tuple[Array, Array]) -> float:
    """Return the logarithm of the right side of (1) minus that of the left side."""
    below, above = logs
    log_t = np.log(t)
    right = []
    if len(below):
        right.append(np.log(delta / (2 * m)) + special.logsumexp(below + np.arange(len(below)) * log_t))
    powers = np.arange(m + 1 - k, 4 * m + 1 - k)
    right.append(np.log(delta / (6 * m)) + special.logsumexp(above + powers * log_t))
    return float(special.logsumexp(right) - _log_choose(np.array(m), k) - (m - k) * log_t)


def _log_choose(n: Array, k: int) -> Any:
    return special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)


def scenario_bound(m: int, k: int, delta: float) -> ScenarioBound:
    """Return the bounds for k support vectors among m rows."""
    if not is_fraction(delta):
        raise ParameterError(f"delta must be between 0 and 1, got {delta!r}.")
    logs = (_log_choose(np.arange(k, m), k), _log_choose(np.arange(m + 1, 4 * m + 1), k))

    def excess(log_t: float) -> float:
        return _log_excess(np.exp(log_t), m, k, delta, logs)

    # The left side of (1) is larger between the roots, where t = 1 - k/m, the empirical fraction, lies.
    middle = np.log(max(1 - k / m, 1e-12))
    high = 1.0
    if k < m:
        lowest = middle - 1.0
        while excess(lowest) <= 0:
            lowest *= 2.0
        high = 1 - float(np.exp(optimize.brentq(excess, lowest, middle, xtol=1e-12)))
    upper = 1.0
    while excess(upper) <= 0:
        upper += 1.0
    low = max(0.0, 1 - float(np.exp(optimize.brentq(excess, middle if k < m else -30.0, upper, xtol=1e-12))))
    return ScenarioBound(low, high, delta, k, m)
