"""Compiled loops for `exponentials.py`, with its equation numbers."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from summula.core.compilation.compile import internal_kernel, kernel

__all__ = ["exponentials", "sigmoids", "warmup"]

Array = NDArray[np.float64]

_PER_LOG_2 = 1.0 / math.log(2.0)
_LOG_2 = math.log(2.0)
_LOG_2_HIGH = float.fromhex("0x1.62e42feep-1")  # log 2 in two parts: k times the first is exact
_LOG_2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
_ROUND = 1.5 * 2.0**52  # adding this rounds to an integer, stored in the low bits of the sum
_EXP = tuple(1.0 / math.factorial(n) for n in range(14))
_ARTANH = tuple(1.0 / (2 * n + 1) for n in range(11))


@internal_kernel
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


@internal_kernel
def _log1p(e: float) -> float:
    """Equation (2), for 0 <= e <= 1."""
    large = e > 0.41421356
    f = 0.5 * (e - 1.0) if large else e
    s = f * np.reciprocal(2.0 + f)  # the / operator would test each row for 0
    z = s * s
    total = _ARTANH[10]
    for n in range(9, -1, -1):
        total = total * z + _ARTANH[n]
    return 2.0 * s * total + (_LOG_2 if large else 0.0)  # type: ignore[no-any-return]


# The comparisons with the bound are written so that NaN is preserved.


@kernel
def exponentials(x: Array, factor: float, bound: float, out: Array) -> None:
    """Write out = e^(factor x), with x clipped to +-bound."""
    for i in range(len(x)):
        y = x[i]
        y = -bound if y < -bound else y
        y = bound if y > bound else y
        out[i] = _exp(factor * y)


@kernel
def sigmoids(eta: Array, p: Array, spread: Array, tail: Array) -> None:
    """Write p, p (1 - p) and log(1 + e^-|eta|)."""
    for i in range(len(eta)):
        x = -abs(eta[i])
        x = -600.0 if x < -600.0 else x
        e = _exp(x)
        larger = np.reciprocal(1.0 + e)
        smaller = e * larger
        p[i] = smaller if eta[i] < 0.0 else larger
        spread[i] = smaller * larger
        tail[i] = _log1p(e)


def warmup() -> None:
    """Compile the kernels."""
    from summula.core.numerics.exponentials import exponential, sigmoid

    sigmoid(np.zeros(1))
    exponential(np.zeros(1))
