"""Base class of kernels, and combinations of kernels.

A kernel k(x, z) is an inner product of features, k(x, z) = phi(x)'phi(z). Then every matrix K with K_ij = k(x_i, x_j)
is symmetric and positive semidefinite (Mercer). With kernels k1, k2 and c >= 0

    k1 + k2     has the features of both, concatenated                                                          (1)
    k1 k2       has all products of a feature of k1 and one of k2                                               (2)
    c k1        has the features of k1 times sqrt(c)                                                            (3)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.engine.engine import local_engine
from summula.core.errors import DataError, ParameterError
from summula.core.model_files import schema
from summula.kernels.rows import Rows, far_columns_of, rows_of, rows_of_user

__all__ = ["Custom", "Kernel", "KernelProduct", "KernelSum", "ScaledKernel", "centre_of", "check_range", "gram"]

Array = NDArray[Any]

_BLOCK = 1_024  # rows per block of a kernel matrix


class Kernel(ABC):
    """A function k(x, z) of two rows; called with matrices it returns the matrix of all pairs of rows.

    Subclasses implement `evaluate` and `diagonal`, and `features` if the feature map is finite.
    """

    @property
    def translation_invariant(self) -> bool:
        """Whether k(x + c, z + c) = k(x, z)."""
        return False

    @abstractmethod
    def evaluate(self, A: Rows, B: Rows) -> Array:
        """Return k(a_i, b_j) for all rows of two blocks, as a new array of their dtype."""

    @abstractmethod
    def diagonal(self, A: Rows) -> Array:
        """Return k(a_i, a_i) for all rows of a block."""

    def features(self, X: Any) -> Array:
        """Return the explicit feature map phi, one row of features per row of X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        ndarray of shape (n, D) with phi(X) phi(Z)' = k(X, Z)
        """
        raise ParameterError(
            f"{self!r} has no finite feature map; approximate it by summula.kernel_approximation.Nystroem "
            "(any kernel) or RBFSampler (Gaussian)."
        )

    def __call__(self, X: Any, Z: Any = None) -> Array:
        """Return the kernel matrix of the rows of X and those of Z (X itself by default).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        Z : array-like or sparse matrix of shape (m, d), optional

        Returns
        -------
        ndarray of shape (n, m)
        """
        X = rows_of_user(X)
        other = X if Z is None else rows_of_user(Z)
        if X.shape[1] != other.shape[1]:
            raise DataError(
                f"X has {X.shape[1]} columns and Z has {other.shape[1]}; a kernel needs rows of one length."
            )
        origin = centre_of(self, other)
        A = rows_of(X, origin)
        return gram(self, A) if Z is None else gram(self, A, rows_of(other, origin))

    def __add__(self, other: Any) -> Kernel:
        return KernelSum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Any) -> Kernel:
        if isinstance(other, Kernel):
            return KernelProduct(self, other)
        return ScaledKernel(self, float(other)) if isinstance(other, Real) else NotImplemented

    __rmul__ = __mul__


def centre_of(kernel: Kernel, X: Any, weight: Array | None = None) -> Array | None:
    """Return the origin of rows that minimises rounding in products; None if the kernel is not shift-invariant.

    For CSR rows it is 0 except for columns without zeros that are far from 0; None if there are none. Rows without
    weight are ignored.
    """
    if not kernel.translation_invariant:
        return None
    if hasattr(X, "indptr"):
        return far_columns_of(X, weight)
    if weight is not None and not weight.all():
        X = X[weight > 0]
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.asarray(np.mean(X, axis=0, dtype=np.float64))
        return mean if np.isfinite(mean).all() else np.asarray((np.asarray(X, np.float64) / len(X)).sum(axis=0))


def check_range(kernel: Kernel, rows: Rows) -> None:
    """Raise an error for finite rows at which a kernel has no value in double precision, as their squares overflow."""
    worst = int(np.argmax(rows.squares)) if len(rows) else 0
    if not len(rows) or np.isfinite(rows.squares[worst]):
        return
    row = rows.take(np.array([worst]))
    with np.errstate(over="ignore", invalid="ignore"):
        value, expected = float(kernel.evaluate(row, row)[0, 0]), float(kernel.diagonal(row)[0])
    if not (value == expected and np.isfinite(value)):
        raise DataError(
            f"X has values so large (up to {np.abs(row.dense()).max():.3g} from their mean) that their squares "
            f"overflow in {kernel!r}; scale the columns."
        )


def gram(kernel: Kernel, A: Rows, B: Rows | None = None) -> Array:
    """Return the matrix of all pairs of rows, computed in blocks on the threads of the engine; symmetric without B."""
    other, engine = A if B is None else B, local_engine()
    out = np.empty((len(A), len(other)), A.dtype)

    def fill(start: int) -> None:
        rows = slice(start, min(start + _BLOCK, len(A)))
        mine = A.take(rows)
        for a in range(start if B is None else 0, len(other), _BLOCK):
            columns = slice(a, min(a + _BLOCK, len(other)))
            values = kernel.evaluate(mine, other.take(columns))
            out[rows, columns] = values
            if B is None and a > start:
                out[columns, rows] = values.T

    for _ in engine.map_ordered(fill, range(0, len(A), _BLOCK)):
        pass
    if B is None:
        lower = np.tril_indices(min(_BLOCK, len(A)), -1)
        for start in range(0, len(A), _BLOCK):
            block = out[start : start + _BLOCK, start : start + _BLOCK]
            rows, columns = lower if len(block) == min(_BLOCK, len(A)) else np.tril_indices(len(block), -1)
            block[rows, columns] = block[columns, rows]
        np.fill_diagonal(out, kernel.diagonal(A))
    return out


@dataclass(frozen=True)
class _KernelPair(Kernel):
    """Base class of combinations of two kernels."""

    left: Kernel
    right: Kernel

    @property
    def translation_invariant(self) -> bool:
        return self.left.translation_invariant and self.right.translation_invariant


@schema.saved(left=schema.Object(Kernel), right=schema.Object(Kernel))
@dataclass(frozen=True)
class KernelSum(_KernelPair):
    """The sum k1 + k2, equation (1)."""

    def evaluate(self, A: Rows, B: Rows) -> Array:
        return np.asarray(self.left.evaluate(A, B) + self.right.evaluate(A, B))

    def diagonal(self, A: Rows) -> Array:
        return np.asarray(self.left.diagonal(A) + self.right.diagonal(A))

    def features(self, X: Any) -> Array:
        """Return the features (1)."""
        return np.hstack([self.left.features(X), self.right.features(X)])


@schema.saved(left=schema.Object(Kernel), right=schema.Object(Kernel))
@dataclass(frozen=True)
class KernelProduct(_KernelPair):
    """The product k1 k2, equation (2)."""

    def evaluate(self, A: Rows, B: Rows) -> Array:
        return np.asarray(self.left.evaluate(A, B) * self.right.evaluate(A, B))

    def diagonal(self, A: Rows) -> Array:
        return np.asarray(self.left.diagonal(A) * self.right.diagonal(A))

    def features(self, X: Any) -> Array:
        """Return the features (2)."""
        F, G = self.left.features(X), self.right.features(X)
        return np.asarray(F[:, :, None] * G[:, None, :]).reshape(len(F), -1)


@schema.saved(kernel=schema.Object(Kernel), factor=schema.Real(0.0))
@dataclass(frozen=True)
class ScaledKernel(Kernel):
    """The multiple c k, equation (3)."""

    kernel: Kernel
    factor: float

    def __post_init__(self) -> None:
        if not 0.0 <= self.factor < np.inf:
            raise ParameterError(
                f"A kernel times {self.factor:g} is not a kernel, since its matrices are not positive semidefinite; "
                "scale by a non-negative number."
            )

    @property
    def translation_invariant(self) -> bool:
        return self.kernel.translation_invariant

    def evaluate(self, A: Rows, B: Rows) -> Array:
        values = self.kernel.evaluate(A, B)
        values *= values.dtype.type(self.factor)
        return values

    def diagonal(self, A: Rows) -> Array:
        return np.asarray(self.factor * self.kernel.diagonal(A))

    def features(self, X: Any) -> Array:
        """Return the features (3)."""
        return np.asarray(np.sqrt(self.factor) * self.kernel.features(X))


@dataclass(frozen=True)
class Custom(Kernel):
    """A kernel defined by a function of two matrices, `function(X, Z)`, that returns the matrix of all pairs of rows.

    Models with such a kernel can be pickled if the function can, but cannot be saved to model files.
    """

    function: Callable[[Any, Any], Any]

    def evaluate(self, A: Rows, B: Rows) -> Array:
        found = self.function(A.X, B.X)
        values = np.array(found.toarray() if hasattr(found, "toarray") else found, A.dtype)
        if values.shape != (len(A), len(B)):
            raise DataError(
                f"The kernel function returned shape {values.shape} for {len(A)} and {len(B)} rows; "
                f"it must return the matrix of all pairs, shape {(len(A), len(B))}."
            )
        return values

    def diagonal(self, A: Rows) -> Array:
        return np.array([self.evaluate(A.take(slice(i, i + 1)), A.take(slice(i, i + 1)))[0, 0] for i in range(len(A))])
