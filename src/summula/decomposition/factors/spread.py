"""Data of factor analysis: the covariance matrix S, by its leading eigenvectors in units of the noise.

For noise variances psi, with S* = Psi^-1/2 S Psi^-1/2,

    S* u_m = theta_m u_m,       theta_1 >= theta_2 >= ...                                                       (1)

S is a matrix of pairs of columns, or, with more columns than rows, given by the rows themselves: S = A'A with A of
shape (n, d). Then the eigenvectors of the smaller matrix A* A*' give those of S* (equation 1 of
`principal/gathered.py`). Columns are divided by their standard deviations, so that S has a unit diagonal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from summula.core.data.layout.blocks import aligned, product
from summula.core.engine.threads import solving

__all__ = ["Eigen", "Spread", "of_matrix", "of_rows"]

Array = NDArray[np.float64]


class Eigen(NamedTuple):
    """Eigenvalues theta, descending, and eigenvectors u as columns: all, or the leading ones."""

    values: Array
    vectors: Array


class Spread(NamedTuple):
    """The covariance matrix of standardised columns, as a matrix or by rows A, and their scales.

    Attributes
    ----------
    matrix : ndarray of shape (d, d), or None
    rows : ndarray of shape (n, d), or None
    variance : ndarray of shape (d,)
        Variances of the columns; constant columns are excluded from `matrix` and `rows`.
    varies : ndarray of bool of shape (d,)
        The columns that are not constant.
    weight : float
        Sum of the weights of the rows.
    """

    matrix: Array | None
    rows: Array | None
    variance: Array
    varies: NDArray[np.bool_]
    weight: float

    @property
    def size(self) -> int:
        """Number of non-constant columns."""
        return int(self.varies.sum()) if self.matrix is None else len(self.matrix)

    def eigen(self, psi: Array, wanted: int | None) -> Eigen:
        """Return the leading eigenvectors (1), or all."""
        root = np.sqrt(psi)
        with solving(self.size):
            if self.matrix is None:
                assert self.rows is not None
                return _of_rows(aligned(self.rows / root), self.size if wanted is None else wanted)
            scaled = self.matrix / root / root[:, None]
            d = self.size
            if wanted is None or wanted > d // 4 or d <= 64:
                values, vectors = np.linalg.eigh(scaled)
            elif wanted == 0:
                return Eigen(np.empty(0), np.empty((d, 0)))
            else:
                values, vectors = linalg.eigh(scaled, subset_by_index=[d - wanted, d - 1], check_finite=False)
        values, vectors = values[::-1], vectors[:, ::-1]
        return Eigen(values, vectors) if wanted is None else Eigen(values[:wanted], vectors[:, :wanted])

    def times(self, B: Array) -> Array:
        """Return S B."""
        if self.matrix is not None:
            return np.asarray(self.matrix @ B)
        assert self.rows is not None
        return product(self.rows.T, product(self.rows, B))


def _of_rows(A: Array, wanted: int) -> Eigen:
    values, U = np.linalg.eigh(product(A, aligned(A.T)))
    values, U = np.maximum(values[::-1][:wanted], 0.0), U[:, ::-1][:, :wanted]
    vectors = product(A.T, aligned(U)) / np.sqrt(np.where(values > 0, values, 1.0))
    return Eigen(values, vectors)


def of_matrix(S: Array, weight: float, nothing: Array) -> Spread:
    """Return the spread of a covariance matrix; variances of at most `nothing` count as zero."""
    variance = np.maximum(np.diag(S), 0.0)
    varies = variance > nothing
    root = np.sqrt(variance[varies])
    return Spread(S[np.ix_(varies, varies)] / root / root[:, None], None, variance, varies, weight)


def of_rows(A: Array, weight: float, nothing: Array) -> Spread:
    """Return the spread of centred rows A, multiplied by the roots of their weights."""
    variance = np.square(A).sum(axis=0) / weight
    varies = variance > nothing
    return Spread(None, aligned(A[:, varies] / np.sqrt(weight * variance[varies])), variance, varies, weight)
