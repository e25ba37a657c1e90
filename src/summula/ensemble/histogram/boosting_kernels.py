"""Values and derivatives of the log-losses in single precision, vectorised over rows.

Gradients are stored in single precision. With s = 1 - 2 y and t = s z, for two classes

    loss = log(1 + e^t) = max(t, 0) + log(1 + e^-|t|),      g = s / (1 + e^-t),      h = p (1 - p),             (1)

without cancellation, so g is accurate to the last digits in both tails.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from summula.core.compilation.compile import internal_kernel, summing_kernel
from summula.core.numerics.exponential32_kernels import exp32, log1p32

__all__ = ["binary_slopes", "softmax_slopes", "warmup"]

_FAR = np.float32(80.0)  # exponents are clipped to this absolute value
_NONE = np.int32(0)
_ZERO, _ONE, _TWO = np.float32(0.0), np.float32(1.0), np.float32(2.0)
_ROWS = 256  # rows per block of exponentials of all classes


@internal_kernel
def _bits(x: Any) -> Any:
    """Return the bits of x >= 0 as an integer, which has the same order as x; integer maxima are vectorised."""
    return np.float32(x).view(np.int32)


@internal_kernel
def _number(bits: Any) -> Any:
    """Return the x with these bits."""
    whole = np.int32(bits)
    return np.float64(whole.view(np.float32))


@summing_kernel
def binary_slopes(y: Any, z: Any, weight: Any, g: Any, h: Any) -> Any:
    """Compute (1) for rows with targets 0 and 1; return the sum of the losses, and the largest |g| and h.

    An empty `weight` means that all weights are 1.
    """
    plain = len(weight) == 0
    total, most, widest = 0.0, _NONE, _NONE
    for i in range(len(y)):
        s = _ONE - _TWO * np.float32(y[i])
        t = s * np.float32(z[i])
        x = -abs(t)
        x = -_FAR if x < -_FAR else x
        e = exp32(x)
        larger = np.reciprocal(_ONE + e)
        smaller = e * larger
        wrong = larger if t > _ZERO else smaller
        w = _ONE if plain else np.float32(weight[i])
        value = (log1p32(e) + (t if t > _ZERO else _ZERO)) * w
        slope, spread = wrong * w, smaller * larger * w
        g[i], h[i] = s * slope, spread
        total += np.float64(value)
        most, widest = max(most, _bits(slope)), max(widest, _bits(spread))
    return total, _number(most), _number(widest)


@summing_kernel
def softmax_slopes(y: Any, z: Any, weight: Any, g: Any, h: Any, begin: int, end: int, tops: Any) -> float:
    """Compute g_k = p_k - [y = k] and h_k = p_k (1 - p_k) for the rows from `begin` up to `end`; return the loss sum.

    The largest |g_k| and h_k of each class are written to `tops`, of shape (2, classes).
    """
    classes = len(z)
    top, total, part = np.empty(_ROWS, np.float32), np.empty(_ROWS), np.empty(_ROWS)
    e, number, right = np.empty((classes, _ROWS), np.float32), np.empty(_ROWS, np.int32), np.empty(_ROWS)
    loss, plain = 0.0, len(weight) == 0
    tops[:] = 0.0
    for start in range(begin, end, _ROWS):
        m = min(_ROWS, end - start)
        _exponentials(z, start, m, top, total, e)
        for i in range(m):
            number[i] = np.int32(y[start + i])
            right[i] = np.float32(z[number[i], start + i]) - top[i]
            part[i] = np.reciprocal(total[i])
        for i in range(m):
            loss += (math.log(total[i]) - right[i]) * (1.0 if plain else np.float64(weight[start + i]))
        for k in range(classes):
            slopes, spreads = g[k, start : start + m], h[k, start : start + m]
            most, widest = _slopes_of_class(e[k], total, part, number, np.int32(k), slopes, spreads)
            if not plain:
                most, widest = _weighted(weight[start : start + m], slopes, spreads)
            tops[0, k], tops[1, k] = max(tops[0, k], most), max(tops[1, k], widest)
    return loss


@internal_kernel
def _exponentials(z: Any, start: int, m: int, top: Any, total: Any, out: Any) -> None:
    """Compute e^(z_k - max z) of m rows, and their sums."""
    for i in range(m):
        top[i], total[i] = np.float32(z[0, start + i]), 0.0
    for k in range(1, len(z)):
        here = z[k, start : start + m]
        for i in range(m):
            x = np.float32(here[i])
            top[i] = x if x > top[i] else top[i]
    for k in range(len(z)):
        here, e = z[k, start : start + m], out[k]
        for i in range(m):
            x = np.float32(here[i]) - top[i]
            x = -_FAR if x < -_FAR else x
            e[i] = exp32(x)
        for i in range(m):
            total[i] += np.float64(e[i])


@internal_kernel
def _slopes_of_class(e: Any, total: Any, part: Any, number: Any, k: Any, slopes: Any, spreads: Any) -> Any:
    """Compute the derivatives in the score of one class; 1 - p is computed without cancellation if p is near 1."""
    most, widest = _NONE, _NONE
    for i in range(len(slopes)):
        e64 = np.float64(e[i])
        p, rest = np.float32(e64 * part[i]), np.float32((total[i] - e64) * part[i])
        slope, spread = -rest if number[i] == k else p, p * rest
        slopes[i], spreads[i] = slope, spread
        most, widest = max(most, _bits(abs(slope))), max(widest, _bits(spread))
    return _number(most), _number(widest)


@internal_kernel
def _weighted(weight: Any, slopes: Any, spreads: Any) -> Any:
    """Multiply derivatives by sample weights; return the largest absolute values."""
    most, widest = _NONE, _NONE
    for i in range(len(slopes)):
        w = np.float32(weight[i])
        slope, spread = slopes[i] * w, spreads[i] * w
        slopes[i], spreads[i] = slope, spread
        most, widest = max(most, _bits(abs(slope))), max(widest, _bits(spread))
    return _number(most), _number(widest)


def warmup() -> None:
    """Compile for the common argument types."""
    y, none = np.zeros(1), np.empty(0)
    for kind in (np.float64, np.float32):
        z, g, h = np.zeros((2, 1), kind), np.empty((2, 1), np.float32), np.empty((2, 1), np.float32)
        binary_slopes(y.astype(kind), z[0], none, g[0], h[0])
        softmax_slopes(y.astype(kind), z, none, g, h, 0, 1, np.zeros((2, 2)))
