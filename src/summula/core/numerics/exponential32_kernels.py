"""e^x and log(1 + x) in single precision, for use in loops over many rows.

The series of `exponentials`, truncated for single precision; loops that call these functions are vectorised.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from summula.core.compilation.compile import internal_kernel

__all__ = ["exp32", "log1p32"]

_PER_LOG_2 = np.float32(1.0 / math.log(2.0))
_LOG_2 = np.float32(math.log(2.0))
_LOG_2_HIGH = np.float32(0.693359375)  # log 2 in two parts: small integer multiples of the first are exact
_LOG_2_LOW = np.float32(math.log(2.0) - 0.693359375)
_ROUND = np.float32(1.5 * 2.0**23)  # adding this rounds to an integer, stored in the low bits of the sum
_EXP = tuple(np.float32(1.0 / math.factorial(n)) for n in range(8))
_ARTANH = tuple(np.float32(1.0 / (2 * n + 1)) for n in range(5))
_ZERO, _HALF, _ONE, _TWO = np.float32(0.0), np.float32(0.5), np.float32(1.0), np.float32(2.0)
_MIDDLE = np.float32(0.41421356)


@internal_kernel
def exp32(x: Any) -> Any:
    """e^x for -80 <= x <= 0."""
    shifted = x * _PER_LOG_2 + _ROUND
    k = shifted - _ROUND
    r = (x - k * _LOG_2_HIGH) - k * _LOG_2_LOW
    total = _EXP[7]
    for n in range(6, -1, -1):
        total = total * r + _EXP[n]
    exponent = np.int32(np.int32(np.float32(shifted).view(np.int32) + np.int32(127)) << np.int32(23))
    return total * exponent.view(np.float32)


@internal_kernel
def log1p32(e: Any) -> Any:
    """log(1 + e) for 0 <= e <= 1."""
    large = e > _MIDDLE
    f = _HALF * (e - _ONE) if large else e
    s = f * np.reciprocal(_TWO + f)
    z = s * s
    total = _ARTANH[4]
    for n in range(3, -1, -1):
        total = total * z + _ARTANH[n]
    return _TWO * s * total + (_LOG_2 if large else _ZERO)
