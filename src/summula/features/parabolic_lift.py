"""The parabolic lifting map, under which hyperplanes correspond to spheres.

    phi(x) = (x, |x|^2)                                                                                         (1)

A sphere with centre c and radius r is where |x|^2 - 2 c'x + |c|^2 - r^2 = 0, which is linear in phi(x): rows can be
separated by a sphere, or by a hyperplane, if and only if the lifted rows can be separated by a hyperplane. Conversely,
where v'x + a |x|^2 + b = 0 with a != 0,

    c = -v / (2 a),        r^2 = |c|^2 - b / a                                                                  (2)
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from summula.core.data.chunks import Chunk
from summula.core.docstrings import inherit_docs
from summula.core.errors import ParameterError
from summula.core.estimator.parameters import Allowed, integer, none
from summula.core.model_files import schema
from summula.features.lift import Lift, finite_numbers, own_rows

__all__ = ["ParabolicLift", "Sphere"]

Array = NDArray[Any]


class Sphere(NamedTuple):
    """Decision boundary of a linear model of lifted rows.

    Attributes
    ----------
    center : ndarray of shape (n_features,)
        NaN if the boundary is a hyperplane, which has none.
    radius : float
        Infinite for a hyperplane; NaN if the score has one sign everywhere, so that there is no boundary.
    sign_inside : int
        Sign of the score inside: 1 if the second of two classes, or the larger values, are there, else -1;
        0 for a hyperplane.
    """

    center: NDArray[np.float64]
    radius: float
    sign_inside: int


@inherit_docs()
@schema.saved()
class ParabolicLift(Lift):
    """Append the squared norm of each row, so that linear models have spheres as their boundaries.

    Examples
    --------
    A logistic regression of the lifted rows finds the circle that separates two classes:

    >>> import numpy as np
    >>> from summula.features import ParabolicLift
    >>> from summula.linear_model import LogisticRegression
    >>> X = np.random.default_rng(0).uniform(-2.0, 2.0, (500, 2))
    >>> y = np.linalg.norm(X - [0.5, 0.0], axis=1) < 1.0
    >>> lift = ParabolicLift()
    >>> model = LogisticRegression(C=1e6).fit(lift.fit_transform(X), y)
    >>> sphere = lift.sphere(model.coef_, model.intercept_)
    >>> sphere.center.round(1) + 0.0, round(sphere.radius, 1), sphere.sign_inside
    (array([0.5, 0. ]), 1.0, 1)
    """

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {"n_jobs": (none, integer())}

    def __init__(self, *, n_jobs: int | None = None) -> None:
        self.n_jobs = n_jobs

    def _n_lifted(self, n_features: int) -> int:
        return n_features + 1

    def _names(self, names: list[str]) -> list[str]:
        return [*names, "|x|^2"]

    def _write_rows(self, chunk: Chunk, out: Array) -> None:
        d = chunk.n_features
        out[:, :d] = chunk.X
        total = np.zeros(len(chunk))  # column by column, so that sums do not depend on the memory layout
        with np.errstate(over="ignore"):
            for j in range(d):
                total += np.square(out[:, j], dtype=np.float64)
            out[:, d] = total

    def _transform_sparse(self, X: Any) -> Any:
        X = own_rows(X)
        with np.errstate(over="ignore"):
            norms = np.asarray(X.astype(np.float64).power(2).sum(axis=1), X.dtype)
        column = sparse.csr_array(norms.reshape(-1, 1))
        return type(X)(sparse.hstack([X, column], format="csr"))

    def sphere(self, coef: ArrayLike, intercept: ArrayLike) -> Sphere:
        """Return the sphere on which a linear model of the lifted rows has score 0, by (2).

        Parameters
        ----------
        coef : array-like of shape (n_features + 1,) or (1, n_features + 1)
            `coef_` of the model.
        intercept : float or array-like with one value
            `intercept_` of the model.

        Returns
        -------
        Sphere
        """
        w, b = self._coefficients(coef), finite_numbers(intercept, "intercept")
        if b.size != 1:
            raise ParameterError(f"intercept must be one number; got an array of shape {b.shape}.")
        v, a = w[:-1], float(w[-1])
        if a == 0.0:
            return Sphere(np.full(len(v), np.nan), math.inf if v.any() else math.nan, 0)
        center = v / (-2.0 * a)
        square = float(center @ center) - float(b.ravel()[0]) / a
        return Sphere(center, math.sqrt(square) if square >= 0.0 else math.nan, -1 if a > 0.0 else 1)
