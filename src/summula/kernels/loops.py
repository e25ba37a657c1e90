"""Compiled loops that convert inner products to kernel values in place."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.compilation.compile import internal_fused_kernel, kernel, summing_kernel
from summula.core.numerics.exponential32_kernels import exp32 as separate_exp32
from summula.core.numerics.exponential_kernels import exp2 as separate_exp2

__all__ = ["absolute_differences", "exponentials", "gaussian", "powers", "warmup"]

Array = NDArray[Any]

exp32 = internal_fused_kernel(separate_exp32.py_func)
exp2 = internal_fused_kernel(separate_exp2.py_func)  # half the time, and the series are as accurate

_LOG2_E = math.log2(math.e)
_LEAST64 = -865.0  # products with smaller powers of 2 could be subnormal, which is slow
_NONE64 = -1023.0  # exp2 gives 0

_ZERO32, _LEAST32 = np.float32(0.0), np.float32(-80.0)


@kernel
def _gaussian64(P: Array, a: Array, b: Array, gamma: float) -> None:
    factor = -gamma * _LOG2_E
    for i in range(P.shape[0]):
        row, ai = P[i], a[i]
        for j in range(P.shape[1]):  # (in a separate loop the processor overlaps more exponentials)
            t = factor * ((ai + b[j]) - 2.0 * row[j])
            t = 0.0 if t > 0.0 else t
            row[j] = t if t > _LEAST64 else _NONE64
        for j in range(P.shape[1]):
            row[j] = exp2(row[j])


@kernel
def _gaussian32(P: Array, a: Array, b: Array, gamma: Any) -> None:
    two = np.float32(2.0)
    for i in range(P.shape[0]):
        row, ai = P[i], a[i]
        for j in range(P.shape[1]):
            x = gamma * (two * row[j] - ai - b[j])
            x = _ZERO32 if x > _ZERO32 else x
            value = exp32(x if x > _LEAST32 else _LEAST32)
            row[j] = value if x > _LEAST32 else _ZERO32


def gaussian(P: Array, a: Array, b: Array, gamma: float) -> None:
    """P_ij = exp(-gamma (a_i + b_j - 2 P_ij)), in place; 0 below 2^-865, or e^-80 in single precision."""
    if P.dtype == np.float32:
        _gaussian32(P, a, b, np.float32(gamma))
    else:
        _gaussian64(P, a, b, float(gamma))


@kernel
def exponentials(D: Array, gamma: float) -> None:
    """D_ij = exp(-gamma D_ij), in place, for D >= 0 in double precision; 0 below 2^-865."""
    factor = -gamma * _LOG2_E
    for i in range(D.shape[0]):
        row = D[i]
        for j in range(D.shape[1]):
            t = factor * row[j]
            row[j] = exp2(t if t > _LEAST64 else _NONE64)


@summing_kernel
def absolute_differences(A: Array, B: Array, out: Array) -> None:
    """out_ij = sum_k |A_ik - B_jk|."""
    for i in range(A.shape[0]):
        for j in range(B.shape[0]):
            total = 0.0
            for k in range(A.shape[1]):
                total += abs(A[i, k] - B[j, k])
            out[i, j] = total


@kernel
def powers(P: Array, gamma: float, coef0: float, degree: int) -> None:
    """P_ij = (gamma P_ij + coef0)^degree, in place, for integer degrees."""
    for i in range(P.shape[0]):
        for j in range(P.shape[1]):
            base, value, left = gamma * P[i, j] + coef0, 1.0, degree
            while left > 0:
                if left & 1:
                    value *= base
                base *= base
                left >>= 1
            P[i, j] = value


def warmup() -> None:
    """Compile for the usual types."""
    P, a = np.zeros((1, 1)), np.zeros(1)
    gaussian(P, a, a, 1.0)
    gaussian(P.astype(np.float32), a.astype(np.float32), a.astype(np.float32), 1.0)
    exponentials(P, 1.0)
    absolute_differences(P, P, P)
    powers(P, 1.0, 1.0, 2)
    powers(P.astype(np.float32), 1.0, 1.0, 2)
