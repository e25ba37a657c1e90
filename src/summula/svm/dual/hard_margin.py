"""Whether a hard margin exists, decided before the solver starts.

Two classes can be separated in the feature space of a kernel exactly when the convex hulls of their
features do not meet (with an intercept). If they meet there are weights

    lambda >= 0,   sum_i lambda_i y_i phi(x_i) = 0,   sum_i lambda_i y_i = 0,   sum_i lambda_i = 2              (1)

and the rows with lambda_i > 0 (at most D + 2 in D dimensions) are in conflict: a linear program finds them. For kernels
without explicit features, the rows of a factor L of the kernel matrix, K = L L', are used, from a pivoted Cholesky
factorisation, which ends after rank(K) columns. The matrix of a Gaussian or Laplacian kernel at distinct points, and of
its sum with another kernel, is positive definite, so every labelling of distinct points is separable; only equal rows
with different labels are in conflict.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy import sparse

from summula.core.errors import DataError
from summula.kernels.kernel import Kernel, KernelSum, ScaledKernel, centre_of
from summula.kernels.rows import rows_of
from summula.kernels.standard import Gaussian, Laplacian, Linear, Polynomial
from summula.optimize.separation import separation_of_rows

__all__ = ["check_separable"]

Array = NDArray[Any]
Index = NDArray[np.intp]

_MOST_VALUES = 50_000_000  # maximum number of explicit features for the linear program
_MOST_RANK = 1_000  # maximum size of a kernel matrix that is factored for it
_NO_FEATURE = 1e-12  # relative to the largest k(x, x): a smaller remainder counts as rounding


def check_separable(kernel: Kernel | None, X: Any, y: Array, numbers: Index, *, intercept: bool) -> None:
    """Raise if no hyperplane of the feature space separates rows (`numbers` in the data) of classes y = -1, 1.

    X are the rows, or (without a kernel) the kernel matrix among them.
    """
    _check_equal_rows(X, y, numbers)
    if kernel is not None and _is_positive_definite(kernel):
        return
    features = _features(kernel, X)
    if features is None:
        return
    codes = (y > 0).astype(np.intp)
    if separation_of_rows(features, codes, 2, intercept).kind == "complete":
        return
    conflict = _conflict(features, y, intercept)
    named = ", ".join(str(row) for row in numbers[conflict][:8].tolist()) + (", ..." if len(conflict) > 8 else "")
    raise DataError(
        f"C=inf requires a hard margin, and the classes cannot be separated: the convex hulls of the rows {named} "
        f"intersect{'' if isinstance(kernel, Linear) else ' in the feature space of the kernel'}; "
        "pass a finite C, or a kernel with more features."
    )


def _check_equal_rows(X: Any, y: Array, numbers: Index) -> None:
    """Raise if equal rows have different labels, which no kernel can separate."""
    if hasattr(X, "indptr"):
        X = X.tocsr().copy()
        X.sum_duplicates()
        keys: dict[bytes, int] = {}
        for i in range(X.shape[0]):
            part = slice(X.indptr[i], X.indptr[i + 1])
            key = X.indices[part].tobytes() + X.data[part].tobytes()
            first = keys.setdefault(key, i)
            if y[first] != y[i]:
                _raise_equal(int(numbers[first]), int(numbers[i]))
        return
    _, places, group = np.unique(np.asarray(X) + 0.0, axis=0, return_index=True, return_inverse=True)
    leader = places[group.reshape(-1)]
    other = np.flatnonzero(y != y[leader])
    if len(other):
        _raise_equal(int(numbers[leader[other[0]]]), int(numbers[other[0]]))


def _raise_equal(a: int, b: int) -> None:
    raise DataError(
        f"C=inf requires a hard margin, and rows {min(a, b)} and {max(a, b)} are equal but of different classes; "
        "pass a finite C, or drop one of them."
    )


def _is_positive_definite(kernel: Kernel) -> bool:
    """Return whether the kernel is known to have positive definite matrices at distinct points."""
    if isinstance(kernel, ScaledKernel):
        return kernel.factor > 0 and _is_positive_definite(kernel.kernel)
    if isinstance(kernel, KernelSum):
        return _is_positive_definite(kernel.left) or _is_positive_definite(kernel.right)
    return (isinstance(kernel, Gaussian) and kernel.rate > 0) or (isinstance(kernel, Laplacian) and kernel.gamma > 0)


def _features(kernel: Kernel | None, X: Any) -> Any:
    """Return the explicit features of the rows; None if there are too many."""
    if isinstance(kernel, Linear):
        return X
    if isinstance(kernel, Polynomial):
        width = X.shape[1] + (kernel.coef0 > 0)
        if X.shape[0] * math.comb(width + kernel.degree - 1, kernel.degree) <= _MOST_VALUES:
            return kernel.features(X)
    if kernel is None:
        K = np.asarray(X, np.float64)
        return _factor(lambda j: K[:, j], np.diag(K).copy())
    rows = rows_of(X, centre_of(kernel, X))

    def column(j: int) -> Array:
        return np.asarray(kernel.evaluate(rows, rows.take(np.array([j])))[:, 0], np.float64)

    return _factor(column, np.array(kernel.diagonal(rows), np.float64))


def _factor(column: Callable[[int], Array], left: Array) -> Array | None:
    """Return L with L L' = K from columns of K and its diagonal; None if the rank is n, or too large.

    (With rank n every labelling can be separated.)
    """
    n, top = len(left), float(left.max(initial=0.0))
    most = min(n, _MOST_RANK, _MOST_VALUES // max(n, 1))
    L = np.zeros((n, most))
    for rank in range(most):
        pivot = int(np.argmax(left))
        if left[pivot] <= _NO_FEATURE * n * top:
            return L[:, : max(rank, 1)]
        L[:, rank] = (column(pivot) - L[:, :rank] @ L[pivot, :rank]) / math.sqrt(left[pivot])
        left -= L[:, rank] ** 2
        left[pivot] = 0.0
    return None


def _conflict(features: Any, y: Array, intercept: bool) -> Index:
    """Return rows whose convex hulls intersect, by the linear program (1)."""
    F: Any = sparse.csc_array(features) if hasattr(features, "indptr") else np.asarray(features, np.float64)
    if not sparse.issparse(F):
        spread = np.abs(F).max(axis=0)
        F = F / np.where(spread > 0, spread, 1.0)
    signed = (F.multiply(y[:, None]) if sparse.issparse(F) else F * y[:, None]).T
    rows = [signed] + ([y[None, :]] if intercept else []) + [np.ones((1, len(y)))]
    left = sparse.vstack([sparse.csr_array(r) for r in rows]) if sparse.issparse(signed) else np.vstack(rows)
    right = np.zeros(left.shape[0])
    right[-1] = 2.0
    found = scipy.optimize.linprog(np.zeros(len(y)), A_eq=left, b_eq=right, bounds=(0, None), method="highs-ds")
    if found.x is None:
        return np.arange(0)
    return np.flatnonzero(found.x > 1e-9)
