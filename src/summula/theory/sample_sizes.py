"""Sample complexity: the number of rows sufficient for learning, and the guarantee of a number of rows.

A learner selects the hypothesis h_S with the smallest error on n rows from a class H. With probability at least 1 - d,
for a finite class, by Hoeffding's inequality and the union bound,

    deviation    |R(h) - R_S(h)| <= g for all h in H,       g = sqrt(log(2 |H| / d) / (2 n))                   (1)
    excess       R(h_S) - min R(h) <= 2 g,                  n >= (2 / e^2) log(2 |H| / d)                      (2)
    realisable   R(h_S) <= log(|H| / d) / n                 if some h in H has zero error                      (3)

For a class of VC dimension D, |H| is replaced by the number of labellings of 2 n points, at most (2 e n / D)^D (Sauer's
lemma, for 2 n >= D; 2^(2 n) otherwise), and

    deviation    g = sqrt(8 (D log(2 e n / D) + log(4 / d)) / n)                                               (4)
    excess       2 g, as in (2)
    realisable   R(h_S) <= 2 (D log2(2 e n / D) + log2(2 / d)) / n, or 8 / n if that is larger                 (5)

A class whose hypotheses are described by b bits has |H| = 2^b; d double precision numbers have 64 d bits. The constants
of (4) are from Anthony and Bartlett (1999), theorem 4.3; those of (5) from Blumer et al. (1989), theorem A2.1. The
bounds hold for every distribution and are conservative for most; `certify` measures the error instead.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from summula.core.errors import ParameterError
from summula.stats.bounds import check_delta

__all__ = ["error_bound", "sample_size"]

_LOG_2 = math.log(2.0)
_MOST_BITS = 1e300
_LARGE = 2**1000  # beyond which numbers of rows are handled by their logarithms, since floats end at 2^1024


def sample_size(
    epsilon: float,
    delta: float = 0.05,
    *,
    hypotheses: float | None = None,
    bits: float | None = None,
    vc: int | None = None,
    realizable: bool = False,
    kind: str = "excess",
) -> int:
    """Return the number of rows that guarantees an error within epsilon with probability at least 1 - delta.

    Parameters
    ----------
    epsilon : float
        Error to guarantee, between 0 and 1.
    delta : float
        Probability that the guarantee fails.
    hypotheses, bits, vc : one of them
        Size of the class: number of hypotheses, number of bits that describe one, or VC dimension.
    realizable : bool
        Whether some hypothesis of the class has zero error.
    kind : {"excess", "deviation"}
        Quantity to bound by epsilon: the excess error of the learned hypothesis over the best of the class, or the
        largest difference between empirical and true error. For a realisable class both are the error itself.

    Returns
    -------
    int

    Examples
    --------
    >>> sample_size(0.1, 0.05, hypotheses=1_000)
    2120
    >>> sample_size(0.1, 0.05, hypotheses=1_000, kind="deviation"), sample_size(0.1, hypotheses=1_000, realizable=True)
    (530, 100)
    >>> sample_size(0.1, bits=64 * 10) > sample_size(0.1, bits=32 * 10)
    True
    """
    if not isinstance(epsilon, float | int | np.number) or not 0 < epsilon < 1:
        raise ParameterError(f"epsilon must be in the range (0, 1); got {epsilon!r}.")
    options: dict[str, Any] = {"hypotheses": hypotheses, "bits": bits, "vc": vc, "realizable": realizable, "kind": kind}
    low, high = 0, 1
    while error_bound(high, delta, **options) > epsilon:
        low, high = high, 2 * high
    # The bound decreases with n.
    while high - low > 1:
        middle = (low + high) // 2
        if error_bound(middle, delta, **options) <= epsilon:
            high = middle
        else:
            low = middle
    return high


def error_bound(
    n: int,
    delta: float = 0.05,
    *,
    hypotheses: float | None = None,
    bits: float | None = None,
    vc: int | None = None,
    realizable: bool = False,
    kind: str = "excess",
) -> float:
    """Return the error bound that n rows guarantee with probability at least 1 - delta: the inverse of `sample_size`.

    Parameters
    ----------
    n : int
        Number of rows.
    delta, hypotheses, bits, vc, realizable, kind
        As in `sample_size`.

    Returns
    -------
    float
        A value above 1 means that nothing is guaranteed.

    Examples
    --------
    >>> round(error_bound(2_120, 0.05, hypotheses=1_000), 4)
    0.1
    >>> error_bound(100, vc=10) > 1  # vacuous
    True
    """
    delta, n = check_delta(delta), _whole("n", n, 1)
    if kind not in ("excess", "deviation"):
        raise ParameterError(f"kind must be 'excess' or 'deviation'; got {kind!r}.")
    if vc is not None:
        size = _labellings(n, _dimension(vc, hypotheses, bits))
        if realizable:
            return _ratio(max(2 * (size + _LOG_2 - math.log(delta)) / _LOG_2, 8.0), n)
        g = _root(8 * (size + 2 * _LOG_2 - math.log(delta)), n)
    else:
        size = _log_size(hypotheses, bits)
        if realizable:
            return _ratio(size - math.log(delta), n)
        g = _root((size + _LOG_2 - math.log(delta)) / 2, n)
    return 2 * g if kind == "excess" else g


def _labellings(n: int, dimension: int) -> float:
    """Return the logarithm of Sauer's bound on the number of labellings of 2 n points."""
    if dimension == 0:
        return 0.0
    if n > _LARGE:
        return dimension * (1 + _LOG_2 + math.log(n) - math.log(dimension))
    if 2 * n <= dimension:
        return 2 * n * _LOG_2
    return min(2 * n * _LOG_2, dimension * math.log(2 * math.e * n / dimension))


def _ratio(x: float, n: int) -> float:
    return x / n if n <= _LARGE else math.exp(math.log(x) - math.log(n))


def _root(x: float, n: int) -> float:
    """Return sqrt(x / n)."""
    return math.sqrt(x / n) if n <= _LARGE else math.exp((math.log(x) - math.log(n)) / 2)


def _whole(name: str, value: Any, least: int) -> int:
    number = isinstance(value, float | int | np.number) and not isinstance(value, bool | np.bool_)
    if not number or not least <= value < math.inf or int(value) != value:
        raise ParameterError(f"{name} must be an int >= {least}; got {value!r}.")
    return int(value)


def _dimension(vc: Any, hypotheses: Any, bits: Any) -> int:
    if hypotheses is not None or bits is not None:
        raise ParameterError("Pass exactly one of hypotheses, bits and vc.")
    dimension = _whole("vc", vc, 0)
    if dimension > _MOST_BITS:
        raise ParameterError(f"vc must be at most {_MOST_BITS:g}; got about 10^{len(str(dimension)) - 1}.")
    return dimension


def _log_size(hypotheses: Any, bits: Any) -> float:
    if (hypotheses is None) == (bits is None):
        raise ParameterError("Pass exactly one of hypotheses, bits and vc.")
    if bits is not None:
        if not isinstance(bits, float | int | np.number) or not 0 <= bits <= _MOST_BITS:
            raise ParameterError(f"bits must be at least 0 and at most {_MOST_BITS:g}; got {bits!r}.")
        return float(bits) * _LOG_2
    if not isinstance(hypotheses, float | int | np.number) or not 1 <= hypotheses < math.inf:
        raise ParameterError(
            f"hypotheses must be at least 1 and finite (pass vc for infinite classes); got {hypotheses!r}."
        )
    return math.log(hypotheses)
