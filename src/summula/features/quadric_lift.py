"""Lifting maps under which hyperplanes correspond to quadrics: ellipsoids, paraboloids, hyperboloids, cones.

    phi(x) = (x_1, ..., x_d, x_1^2, ..., x_d^2)                              with axes along the coordinates    (1)
    phi(x) = (x_1, ..., x_d, x_1^2, x_1 x_2, ..., x_1 x_d, x_2^2, ..., x_d^2)             any quadric           (2)

(2) has d (d + 3) / 2 columns, in the order of `PolynomialLift` with degree 2.
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from summula.core.data.chunks import Chunk
from summula.core.docstrings import inherit_docs
from summula.core.estimator.parameters import Allowed, boolean, integer, none
from summula.core.model_files import schema
from summula.features.lift import Lift, monomial_name, own_rows
from summula.features.polynomial_lift import lift, n_monomials

__all__ = ["QuadricLift"]

Array = NDArray[Any]


@inherit_docs()
@schema.saved()
class QuadricLift(Lift):
    """Append squares, and products of pairs, so that linear models have quadrics as their boundaries.

    Parameters
    ----------
    axis_aligned : bool, default=False
        Whether to append squares only: the axes of the quadrics are then parallel to those of the coordinates.

    Examples
    --------
    >>> from summula.features import QuadricLift
    >>> QuadricLift().fit_transform([[2.0, 3.0]])
    array([[2., 3., 4., 6., 9.]])
    >>> lift = QuadricLift(axis_aligned=True)
    >>> lift.fit_transform([[2.0, 3.0]])
    array([[2., 3., 4., 9.]])
    >>> [float(x) for x in lift.matrix([0.0, 0.0, 1.0, 4.0]).diagonal()]  # x0^2 + 4 x1^2
    [1.0, 4.0]
    """

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "axis_aligned": (boolean,),
        "n_jobs": (none, integer()),
    }

    def __init__(self, *, axis_aligned: bool = False, n_jobs: int | None = None) -> None:
        self.axis_aligned = axis_aligned
        self.n_jobs = n_jobs

    def _n_lifted(self, n_features: int) -> int:
        return 2 * n_features if self.axis_aligned else n_monomials(n_features, 2)

    def _pairs(self) -> list[tuple[int, ...]]:
        """Indices of the factors of the quadratic columns."""
        d = range(self.n_features_in_)
        return [(j, j) for j in d] if self.axis_aligned else list(combinations_with_replacement(d, 2))

    def _names(self, names: list[str]) -> list[str]:
        return [*names, *(monomial_name(pair, names) for pair in self._pairs())]

    def _write_rows(self, chunk: Chunk, out: Array) -> None:
        if not self.axis_aligned:
            lift(chunk.X, 2, out)
            return
        d = chunk.n_features
        out[:, :d] = chunk.X
        with np.errstate(over="ignore"):
            np.square(out[:, :d], out=out[:, d:])

    def _transform_sparse(self, X: Any) -> Any:
        if self.axis_aligned:
            X = own_rows(X)
            with np.errstate(over="ignore"):
                return type(X)(sparse.hstack([X, X.power(2)], format="csr"))
        from summula.features.sparse_lift import lift_sparse

        return lift_sparse(X, 2, self.n_output_features_, False)

    def matrix(self, coef: Any) -> NDArray[np.float64]:
        """Return the symmetric matrix A with which the score of a linear model of lifted rows is x'Ax + v'x + b.

        The signs of its eigenvalues determine the kind of quadric: all equal for ellipsoids, mixed for hyperboloids.

        Parameters
        ----------
        coef : array-like of shape (n_output_features_,) or (1, n_output_features_)
            `coef_` of the model; v is its first part, b the intercept.
        """
        w, d = self._coefficients(coef), self.n_features_in_
        A = np.zeros((d, d))
        rows, columns = np.array(self._pairs()).T
        A[rows, columns] = w[d:]
        return (A + A.T) / 2
