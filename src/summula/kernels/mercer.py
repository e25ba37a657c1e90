"""Whether a matrix can be a kernel matrix: symmetric, and no eigenvalue below zero (Mercer's condition on a sample)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import DataError
from summula.kernels.kernel import Kernel

__all__ = ["MercerTest", "is_mercer"]

Array = NDArray[Any]


@dataclass(frozen=True)
class MercerTest:
    """Whether a kernel matrix is symmetric and positive semidefinite; true if it is, up to rounding.

    Attributes
    ----------
    eigenvalue : float
        Smallest eigenvalue of the symmetric part.
    asymmetry : float
        The largest |K_ij - K_ji|.
    tolerance : float
        Negative eigenvalues of at most this size count as rounding: n eps times the largest |eigenvalue|.
    """

    eigenvalue: float
    asymmetry: float
    tolerance: float

    def __bool__(self) -> bool:
        return self.asymmetry <= self.tolerance and self.eigenvalue >= -self.tolerance


def is_mercer(kernel: Any, X: Any = None) -> MercerTest:
    """Test Mercer's condition for a matrix, or for a kernel on the rows of X (a sample can only refute a kernel).

    Parameters
    ----------
    kernel : array-like of shape (n, n), Kernel, or function of (X, Z)
    X : array-like of shape (n, d), optional
        Required unless a matrix is passed.

    Returns
    -------
    MercerTest
        True or false; `eigenvalue` is the smallest one, which refutes the kernel if it is negative.

    Examples
    --------
    >>> from summula.kernels import Gaussian, Sigmoid, is_mercer
    >>> X = [[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]]
    >>> bool(is_mercer(Gaussian(), X))
    True
    >>> refuted = is_mercer(Sigmoid(1.0, -1.0), X)
    >>> bool(refuted), round(refuted.eigenvalue, 3)
    (False, -1.652)
    """
    if callable(kernel) or isinstance(kernel, Kernel):
        if X is None:
            raise DataError("is_mercer(kernel) needs rows to test the kernel on: is_mercer(kernel, X).")
        K = np.asarray(kernel(X) if isinstance(kernel, Kernel) else kernel(np.asarray(X), np.asarray(X)), np.float64)
    else:
        K = np.asarray(kernel, np.float64)
    if K.ndim != 2 or K.shape[0] != K.shape[1] or not len(K):
        raise DataError(f"A kernel matrix must be square, one row and column per point; got shape {K.shape}.")
    if not np.isfinite(K).all():
        raise DataError("The kernel matrix has values that are not finite.")
    values = np.linalg.eigvalsh((K + K.T) / 2)
    tolerance = len(K) * float(np.finfo(np.float64).eps) * float(np.abs(values).max())
    return MercerTest(float(values[0]), float(np.abs(K - K.T).max()), tolerance)
