"""Whether a hard margin exists, decided before the solver starts.

Two classes can be told apart without error in the feature space of a kernel exactly when the convex hulls of their
features do not meet (with an intercept). If they meet there are weights

    lambda >= 0,   sum_i lambda_i y_i phi(x_i) = 0,   sum_i lambda_i y_i = 0,   sum_i lambda_i = 2              (1)

and the rows with lambda_i > 0 (at most D + 2 in D dimensions) are in conflict: a linear program finds them. The matrix
of a Gaussian or Laplacian kernel of different points is positive definite, so every labelling of different points can
be separated; there only equal rows with different labels are in conflict.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

from summula.core.errors import DataError
from summula.kernels.kernel import Kernel
from summula.kernels.standard import Gaussian, Laplacian, Linear, Polynomial
from summula.optimize.separation import separation_of_rows

__all__ = ["check_separable"]

Array = NDArray[Any]
Index = NDArray[np.intp]

_MOST_VALUES = 50_000_000  # of features that are written out for the linear program


def check_separable(kernel: Kernel | None, X: Any, y: Array, numbers: Index, *, intercept: bool) -> None:
    """Raise for rows (`numbers` in the data) of classes y = -1, 1 that no hyperplane of the feature space separates."""
    _check_equal_rows(X, y, numbers)
    if isinstance(kernel, Gaussian | Laplacian) or kernel is None:
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
        f"C=inf asks for a hard margin, and the classes cannot be separated: the convex hulls of the rows {named} meet"
        f"{'' if isinstance(kernel, Linear) else ' in the feature space of the kernel'}; "
        "give a finite C, or a kernel with more features."
    )


def _check_equal_rows(X: Any, y: Array, numbers: Index) -> None:
    """Equal rows with different labels cannot be separated by any kernel."""
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
        f"C=inf asks for a hard margin, and rows {min(a, b)} and {max(a, b)} are equal but of different classes; "
        "give a finite C, or drop one of them."
    )


def _features(kernel: Kernel, X: Any) -> Any:
    """The features of the rows, where they are few enough to be written out; None otherwise."""
    if isinstance(kernel, Linear):
        return X
    if isinstance(kernel, Polynomial):
        width = X.shape[1] + (kernel.coef0 > 0)
        if X.shape[0] * math.comb(width + kernel.degree - 1, kernel.degree) <= _MOST_VALUES:
            return kernel.features(X)
    return None


def _conflict(features: Any, y: Array, intercept: bool) -> Index:
    """Rows whose hulls meet, by the linear program (1)."""
    F: Any = sparse.csc_array(features) if hasattr(features, "indptr") else np.asarray(features, np.float64)
    if not sparse.issparse(F):
        spread = np.abs(F).max(axis=0)
        F = F / np.where(spread > 0, spread, 1.0)
    signed = (F.multiply(y[:, None]) if sparse.issparse(F) else F * y[:, None]).T
    rows = [signed] + ([y[None, :]] if intercept else []) + [np.ones((1, len(y)))]
    left = sparse.vstack([sparse.csr_array(r) for r in rows]) if sparse.issparse(signed) else np.vstack(rows)
    right = np.zeros(left.shape[0])
    right[-1] = 2.0
    found = linprog(np.zeros(len(y)), A_eq=left, b_eq=right, bounds=(0, None), method="highs-ds")
    if found.x is None:
        return np.arange(0)
    return np.flatnonzero(found.x > 1e-9)
