"""Vectorised exponentials: e^x, and the sigmoid together with log(1 + e^-|x|).

The C library computes one exponential at a time. The branch-free form below is vectorised by the compiler, which makes
it about three times as fast. With k the integer nearest to x / log 2, |r| <= log(2) / 2 and Taylor's series

    e^x = 2^k e^r,    r = x - k log 2,    e^r = sum_{n <= 13} r^n / n!                     (next term: 4e-18)    (1)

and for 0 <= e <= 1, with f = e or, above sqrt(2) - 1, (1 + e) / 2 - 1, so that |s| <= 0.172,

    log(1 + f) = 2 artanh(s) = 2 s sum_{n <= 10} s^2n / (2n + 1),    s = f / (2 + f)       (next term: 6e-19)    (2)

Both are accurate to a few units in the last place. Exponents are clipped to +-600: e^600 = 4e260 can still be summed
over rows without overflow.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["FAR", "Sigmoid", "exponential", "sigmoid"]

Array = NDArray[np.float64]

FAR = 600.0  # exponents are clipped to this absolute value


class Sigmoid(NamedTuple):
    """Values of the logistic function and related quantities for each row."""

    p: Array  # 1 / (1 + e^-eta)
    spread: Array  # p (1 - p)
    tail: Array  # log(1 + e^-|eta|)


def sigmoid(eta: Array) -> Sigmoid:
    """Compute p, p (1 - p) and log(1 + e^-|eta|) for each row, accurate in both tails; eta is one-dimensional."""
    from summula.core.numerics.exponential_kernels import sigmoids

    x = np.ascontiguousarray(eta, dtype=np.float64)
    result = Sigmoid(np.empty_like(x), np.empty_like(x), np.empty_like(x))
    sigmoids(x, *result)
    return result


def exponential(eta: Array, factor: float = 1.0, bound: float = FAR) -> Array:
    """Compute e^(factor eta) with eta clipped to +-bound; |factor| bound is at most 600; eta is one-dimensional."""
    from summula.core.numerics.exponential_kernels import exponentials

    x = np.ascontiguousarray(eta, dtype=np.float64)
    out = np.empty_like(x)
    exponentials(x, factor, bound, out)
    return out
