"""Quadratic functions and their minima in closed form.

    f(x) = 1/2 x'Px + q'x + r                                                                                      (1)

with P symmetric. If P is positive semidefinite and q lies in its range, the minimum is at x = -P^+ q (the shortest of
all minima) and

    min f = r - 1/2 q'P^+ q                                                                                        (2)

Otherwise f is unbounded below: it decreases along an eigenvector with a negative eigenvalue, or along the component of
-q outside the range of P, where the curvature is zero.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.data.sparse_format import as_dense
from summula.core.errors import DataError, ParameterError
from summula.optimize.problems.objective import vector

__all__ = ["Lowest", "Quadratic", "check_convex", "symmetric"]

Array = NDArray[np.float64]

_RANK = 1e-10  # eigenvalues below this, relative to the largest, count as zero


class Lowest(NamedTuple):
    """The infimum of a quadratic: minimiser and value, or a direction along which it is unbounded."""

    x: Array
    value: float
    ray: Array | None


class Quadratic:
    """The function 1/2 x'Px + q'x + r; without P the linear function q'x + r.

    If all functions of a `Problem` have this form, its dual is computed exactly.

    Parameters
    ----------
    P : array of shape (d, d), or None
        Symmetric matrix; None means zero.
    q : array of shape (d,), optional
        Zero by default.
    r : float, default=0.0

    Examples
    --------
    >>> from summula.optimize import Quadratic
    >>> f = Quadratic([[2.0, 0.0], [0.0, 2.0]], [-2.0, 0.0], 1.0)
    >>> float(f([1.0, 2.0])), f.gradient([1.0, 2.0]).tolist()
    (4.0, [0.0, 4.0])
    """

    def __init__(self, P: Any, q: Any = None, r: float = 0.0) -> None:
        if P is None and q is None:
            raise ParameterError("Quadratic needs at least one of P and q.")
        if P is None:
            self.q = vector(q, "q", "Quadratic")
            self.P = np.zeros((self.q.size, self.q.size))
        else:
            self.P = symmetric(P, "P")
            self.q = np.zeros(len(self.P)) if q is None else vector(q, "q", "Quadratic")
        if self.q.size != len(self.P):
            raise DataError(f"P has {len(self.P)} rows but q has {self.q.size} entries; they must agree.")
        self.r = float(r)

    def __call__(self, x: Any) -> float:
        x = np.asarray(x, np.float64)
        return float(x @ self.P @ x / 2 + self.q @ x + self.r)

    def gradient(self, x: Any) -> Array:
        """Px + q."""
        return np.asarray(self.P @ np.asarray(x, np.float64) + self.q)

    def __repr__(self) -> str:
        return f"Quadratic(P={self.P.tolist()}, q={self.q.tolist()}, r={self.r})"

    def lowest(self) -> Lowest:
        """The infimum, by (2)."""
        values, vectors = np.linalg.eigh(self.P)
        # Rounding errors of orthogonal transformations are relative to the largest entry.
        bent = np.abs(values) > _RANK * max(float(np.abs(values).max()), 1e-300)
        slope = vectors.T @ self.q
        flat = ~bent & (np.abs(slope) > _RANK * max(float(np.abs(self.q).max()), 1e-300))
        down = bent & (values < 0)
        if down.any() or flat.any():
            ray = vectors[:, int(np.argmax(down))] if down.any() else -vectors[:, flat] @ slope[flat]
            ray = ray if self.q @ ray <= 0 else -ray
            return Lowest(np.full(len(self.q), np.nan), -np.inf, ray / np.abs(ray).max())
        x = -vectors[:, bent] @ (slope[bent] / values[bent])
        return Lowest(x, self.r + float(self.q @ x) / 2, None)


def symmetric(P: Any, name: str) -> Array:
    """P as a symmetric array of finite numbers."""
    given = as_dense(P, name)
    try:
        matrix = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{name} is not numeric; pass a square array of numbers.") from None
    if matrix.ndim == 0:
        matrix = matrix.reshape(1, 1)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise DataError(f"{name} has shape {matrix.shape}; a square matrix is needed.")
    if not np.isfinite(matrix).all():
        row, column = np.argwhere(~np.isfinite(matrix))[0]
        raise DataError(f"{name} is missing or infinite at row {row}, column {column}; all entries must be finite.")
    apart = np.abs(matrix - matrix.T)
    if apart.max() > 1e-8 * np.abs(matrix).max():
        row, column = np.unravel_index(int(np.argmax(apart)), apart.shape)
        raise DataError(
            f"{name} is not symmetric (rows and columns {row} and {column} differ); pass (P + P')/2, which has the "
            "same values of x'Px."
        )
    return (matrix + matrix.T) / 2


def check_convex(P: Array, function: str) -> None:
    """Raise if a matrix is not positive semidefinite."""
    values = np.linalg.eigvalsh(P)
    if values[0] < -_RANK * max(float(np.abs(values).max()), 1e-300):
        raise ParameterError(
            f"P has the negative eigenvalue {values[0]:.6g}, so the problem is not convex and {function} cannot "
            f"guarantee a global minimum; pass a positive semidefinite P (such as P + {-values[0]:.6g} I), or find a "
            "local minimum with constrained_minimum."
        )
