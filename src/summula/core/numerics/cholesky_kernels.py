"""Compiled Cholesky factors of small matrices, A = L L', for kernels that solve equations between other loops."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.compilation.compile import internal_kernel

__all__ = ["cholesky", "cholesky_solve"]

Array = NDArray[Any]


@internal_kernel
def cholesky(L: Array, n: int, dependent: float) -> int:
    """Overwrite the lower triangle of a matrix with its Cholesky factor; return the number of leading columns factored.

    It stops at a column whose fraction independent of the previous columns is at most `dependent`.
    """
    for j in range(n):
        pivot = L[j, j]
        for i in range(j):
            pivot -= L[j, i] * L[j, i]
        if not pivot > dependent * L[j, j]:  # (NaN included)
            return j
        L[j, j] = np.sqrt(pivot)
        for k in range(j + 1, n):
            product = L[k, j]
            for i in range(j):
                product -= L[k, i] * L[j, i]
            L[k, j] = product / L[j, j]
    return n


@internal_kernel
def cholesky_solve(L: Array, n: int, x: Array) -> None:
    """Solve L L'z = x in place, with the leading n columns of L."""
    for j in range(n):
        total = x[j]
        for i in range(j):
            total -= L[j, i] * x[i]
        x[j] = total / L[j, j]
    for j in range(n - 1, -1, -1):
        total = x[j]
        for i in range(j + 1, n):
            total -= L[i, j] * x[i]
        x[j] = total / L[j, j]
