"""Exponentials of many rows at once: e^x, and the sigmoid with the logarithm that goes with it.

The C library computes one exponential at a time. Written without branches, as below, the compiler computes several
together, and a row costs a third. With k the integer nearest to x / log 2, |r| <= log(2) / 2 and Taylor's series

    e^x = 2^k e^r,    r = x - k log 2,    e^r = sum_{n <= 13} r^n / n!                     (next term: 4e-18)    (1)

and for 0 <= e <= 1, with f = e or, above sqrt(2) - 1, (1 + e) / 2 - 1, so that |s| <= 0.172,

    log(1 + f) = 2 artanh(s) = 2 s sum_{n <= 10} s^2n / (2n + 1),    s = f / (2 + f)       (next term: 6e-19)    (2)

Both are within a few units of the last place. Exponents stop at +-600: e^600 = 4e260 leaves room for sums over rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["FAR", "Sigmoid", "exponential", "sigmoid"]

Array = NDArray[np.float64]

FAR = 600.0  # where exponents stop


class Sigmoid(NamedTuple):
    """What the logistic function gives for each row."""

    p: Array  # 1 / (1 + e^-eta)
    spread: Array  # p (1 - p)
    tail: Array  # log(1 + e^-|eta|)


def sigmoid(eta: Array) -> Sigmoid:
    """p, p (1 - p) and log(1 + e^-|eta|) of each row, accurate in both tails; eta is one-dimensional."""
    from summula.core.numerics.exponential_kernels import sigmoids

    x = np.ascontiguousarray(eta, dtype=np.float64)
    result = Sigmoid(np.empty_like(x), np.empty_like(x), np.empty_like(x))
    sigmoids(x, *result)
    return result


def exponential(eta: Array, factor: float = 1.0, bound: float = FAR) -> Array:
    """e^(factor eta) of each row, where eta stops at +-bound; |factor| bound is at most 600; eta is one-dimensional."""
    from summula.core.numerics.exponential_kernels import exponentials

    x = np.ascontiguousarray(eta, dtype=np.float64)
    out = np.empty_like(x)
    exponentials(x, factor, bound, out)
    return out
