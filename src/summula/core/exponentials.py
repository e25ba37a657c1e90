"""Exponentials of many rows at once: e^x, and the sigmoid with the logarithm that goes with it.

The C library computes one exponential at a time. Written without branches, as below, the compiler computes several
together, and a row costs a third. With k the integer nearest to x / log 2, |r| <= log(2) / 2 and Taylor's series

    e^x = 2^k e^r,    r = x - k log 2,    e^r = sum_{n <= 13} r^n / n!                     (next term: 4e-18)    (1)

and for 0 <= e <= 1, with f = e or, above sqrt(2) - 1, (1 + e) / 2 - 1, so that |s| <= 0.172,

    log(1 + f) = 2 artanh(s) = 2 s sum_{n <= 10} s^2n / (2n + 1),    s = f / (2 + f)       (next term: 6e-19)    (2)

Both are within a few units of the last place. Exponents stop at +-600: e^600 = 4e260 leaves room for sums over rows.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.compile import kernel

__all__ = ["FAR", "Sigmoid", "exponential", "sigmoid", "warmup"]

Array = NDArray[np.float64]

FAR = 600.0  # where exponents stop

_PER_LOG_2 = 1.0 / math.log(2.0)
_LOG_2 = math.log(2.0)
_LOG_2_HIGH = float.fromhex("0x1.62e42feep-1")  # log 2 in two parts: k times the first is exact
_LOG_2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
_ROUND = 1.5 * 2.0**52  # adding this rounds to an integer, which stands in the last bits of the sum
_EXP = tuple(1.0 / math.factorial(n) for n in range(14))
_ARTANH = tuple(1.0 / (2 * n + 1) for n in range(11))


@kernel
def _exp(x: float) -> float:
    """Equation (1), for |x| <= 600."""
    shifted = x * _PER_LOG_2 + _ROUND
    k = shifted - _ROUND
    r = (x - k * _LOG_2_HIGH) - k * _LOG_2_LOW
    total = _EXP[13]
    for n in range(12, -1, -1):
        total = total * r + _EXP[n]
    exponent = (np.float64(shifted).view(np.int64) + 1023) << 52  # the bits of 2^k
    return total * np.int64(exponent).view(np.float64)


@kernel
def _log1p(e: float) -> float:
    """Equation (2), for 0 <= e <= 1."""
    large = e > 0.41421356
    f = 0.5 * (e - 1.0) if large else e
    s = f * np.reciprocal(2.0 + f)  # a plain / would test for 0, row by row
    z = s * s
    total = _ARTANH[10]
    for n in range(9, -1, -1):
        total = total * z + _ARTANH[n]
    return 2.0 * s * total + (_LOG_2 if large else 0.0)  # type: ignore[no-any-return]


# The tests for x < bound are written so that a NaN stays one.


@kernel
def _exponentials(x: Array, factor: float, bound: float, out: Array) -> None:
    for i in range(len(x)):
        y = x[i]
        y = -bound if y < -bound else y
        y = bound if y > bound else y
        out[i] = _exp(factor * y)


@kernel
def _sigmoids(eta: Array, p: Array, spread: Array, tail: Array) -> None:
    for i in range(len(eta)):
        x = -abs(eta[i])
        x = -600.0 if x < -600.0 else x
        e = _exp(x)
        larger = np.reciprocal(1.0 + e)
        smaller = e * larger
        p[i] = smaller if eta[i] < 0.0 else larger
        spread[i] = smaller * larger
        tail[i] = _log1p(e)


class Sigmoid(NamedTuple):
    """What the logistic function gives for each row."""

    p: Array  # 1 / (1 + e^-eta)
    spread: Array  # p (1 - p)
    tail: Array  # log(1 + e^-|eta|)


def sigmoid(eta: Array) -> Sigmoid:
    """p, p (1 - p) and log(1 + e^-|eta|) of each row, accurate in both tails; eta is one-dimensional."""
    x = np.ascontiguousarray(eta, dtype=np.float64)
    result = Sigmoid(np.empty_like(x), np.empty_like(x), np.empty_like(x))
    _sigmoids(x, *result)
    return result


def exponential(eta: Array, factor: float = 1.0, bound: float = FAR) -> Array:
    """e^(factor eta) of each row, where eta stops at +-bound; |factor| bound is at most 600; eta is one-dimensional."""
    x = np.ascontiguousarray(eta, dtype=np.float64)
    out = np.empty_like(x)
    _exponentials(x, factor, bound, out)
    return out


def warmup() -> None:
    """Compile the kernels."""
    sigmoid(np.zeros(1))
    exponential(np.zeros(1))
