"""Vectorised exponentials: e^x, and the sigmoid together with log(1 + e^-|x|).

The C library computes one exponential at a time. The branch-free form below is vectorised by the compiler, which makes
it about three times as fast. With k the integer nearest to x / log 2, |r| <= log(2) / 2 and a polynomial of degree 9
that interpolates (e^r - 1 - r) / r^2 at the Chebyshev points,

    e^x = 2^k e^r,    r = x - k log 2,    e^r = 1 + r + r^2 p(r)                        (relative error: 2e-17)    (1)

Where the exponent is a product anyway, the power of 2 saves the reduction: with k the integer nearest to t, |f| <= 1/2,

    2^t = 2^k 2^f,    f = t - k,    2^f = 1 + f p(f), p of degree 10                    (relative error: 2e-17)    (2)

and for 0 <= e <= 1, with f = e or, above sqrt(2) - 1, (1 + e) / 2 - 1, so that |s| <= 0.172,

    log(1 + f) = 2 artanh(s) = 2 s sum_{n <= 10} s^2n / (2n + 1),    s = f / (2 + f)       (next term: 6e-19)    (3)

All are accurate to a few units in the last place. Exponents are clipped to +-600: e^600 = 4e260 can still be summed
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
