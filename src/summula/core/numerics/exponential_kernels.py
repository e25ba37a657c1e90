"""Compiled loops for `exponentials.py`, with its equation numbers."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from summula.core.compilation.compile import internal_kernel, kernel

__all__ = ["exp", "exp2", "exponentials", "sigmoids", "warmup"]

Array = NDArray[np.float64]

_PER_LOG_2 = 1.0 / math.log(2.0)
_LOG_2 = math.log(2.0)
_LOG_2_HIGH = float.fromhex("0x1.62e42feep-1")  # log 2 in two parts: k times the first is exact
_LOG_2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
_ROUND = 1.5 * 2.0**52  # adding this rounds to an integer, stored in the low bits of the sum
_EXP = tuple(
    float.fromhex(digits)
    for digits in (
        "0x1.0000000000001p-1",
        "0x1.5555555555556p-3",
        "0x1.5555555553d68p-5",
        "0x1.11111111109b5p-7",
        "0x1.6c16c17889ef9p-10",
        "0x1.a01a01a7c2f03p-13",
        "0x1.a019b914985a9p-16",
        "0x1.71de0db2f585ep-19",
        "0x1.28917c8be7ad6p-22",
        "0x1.af389ed28db09p-26",
    )
)
_EXP2 = tuple(
    float.fromhex(digits)
    for digits in (
        "0x1.62e42fefa39efp-1",
        "0x1.ebfbdff82c598p-3",
        "0x1.c6b08d704a0c2p-5",
        "0x1.3b2ab6fba1ddap-7",
        "0x1.5d87fe78a5276p-10",
        "0x1.430913096fd9fp-13",
        "0x1.ffcbfc670dcd4p-17",
        "0x1.62bfd47773353p-20",
        "0x1.b524fae627834p-24",
        "0x1.e6063f7217bc6p-28",
        "0x1.e9d3fe3952179p-32",
    )
)
_ARTANH = tuple(1.0 / (2 * n + 1) for n in range(11))


@internal_kernel
def exp(x: float) -> float:
    """Equation (1), for |x| <= 600."""
    shifted = x * _PER_LOG_2 + _ROUND
    k = shifted - _ROUND
    r = (x - k * _LOG_2_HIGH) - k * _LOG_2_LOW
    # Estrin's scheme, whose terms are independent, unlike the steps of Horner's.
    r2 = r * r
    r4 = r2 * r2
    low = (_EXP[0] + _EXP[1] * r) + (_EXP[2] + _EXP[3] * r) * r2
    middle = (_EXP[4] + _EXP[5] * r) + (_EXP[6] + _EXP[7] * r) * r2
    high = _EXP[8] + _EXP[9] * r
    total = 1.0 + (r + (low + (middle + high * r4) * r4) * r2)
    exponent = (np.float64(shifted).view(np.int64) + 1023) << 52  # the bits of 2^k
    return total * np.int64(exponent).view(np.float64)


@internal_kernel
def exp2(t: float) -> float:
    """Equation (2), for -1022 <= t <= 1023; 0 at t = -1023."""
    shifted = t + _ROUND
    f = t - (shifted - _ROUND)
    f2 = f * f
    f4 = f2 * f2
    low = (_EXP2[0] + _EXP2[1] * f) + (_EXP2[2] + _EXP2[3] * f) * f2
    middle = (_EXP2[4] + _EXP2[5] * f) + (_EXP2[6] + _EXP2[7] * f) * f2
    high = (_EXP2[8] + _EXP2[9] * f) + _EXP2[10] * f2
    total = 1.0 + (low + (middle + high * f4) * f4) * f
    bits = np.float64(total).view(np.int64) + (np.float64(shifted).view(np.int64) << 52)  # multiplied by 2^k
    return np.int64(bits).view(np.float64)


@internal_kernel
def _log1p(e: float) -> float:
    """Equation (3), for 0 <= e <= 1."""
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
        out[i] = exp(factor * y)


@kernel
def sigmoids(eta: Array, p: Array, spread: Array, tail: Array) -> None:
    """Write p, p (1 - p) and log(1 + e^-|eta|)."""
    for i in range(len(eta)):
        x = -abs(eta[i])
        x = -600.0 if x < -600.0 else x
        e = exp(x)
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
