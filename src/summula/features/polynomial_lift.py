"""Polynomial features: all monomials up to a degree, without the constant.

Monomials have indices j1 <= j2 <= ... <= jm (j1 < j2 < ... for interactions only) and are ordered by degree m, then
lexicographically. So with T(m, j) the block of degree-m monomials whose first index is at least j,

    T(m, j) = [ x_j T(m-1, j),  T(m, j+1) ]         (x_j T(m-1, j+1) for interactions only)                     (1)

and T(m-1, j) is a trailing part of the block of degree m-1: each block is computed as d products of a column and such a
part.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations, combinations_with_replacement
from math import comb
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from summula.core.data.chunks import Chunk
from summula.core.docstrings import inherit_docs
from summula.core.estimator.parameters import Allowed, boolean, integer, none
from summula.core.model_files import schema
from summula.features.lift import Lift, monomial_name

__all__ = ["PolynomialLift", "lift", "monomials", "n_monomials"]

Array = NDArray[Any]


_MOST = 2**63
_FEW = 64  # with more columns and a higher degree than this there are more than 2**63 monomials


def n_monomials(n_features: int, degree: int, *, interaction_only: bool = False) -> int:
    """Return the number of monomials of degree 1 to `degree`, at most 2**63."""
    if min(n_features, degree) > _FEW:
        return _MOST
    if interaction_only:
        count = sum(comb(n_features, m) for m in range(1, min(degree, n_features) + 1))
    else:
        count = comb(n_features + degree, degree) - 1
    return min(count, _MOST)


def monomials(n_features: int, degree: int, *, interaction_only: bool = False) -> Iterator[tuple[int, ...]]:
    """Return an iterator over the index tuples of the monomials, in order."""
    choose = combinations if interaction_only else combinations_with_replacement
    highest = min(degree, n_features) if interaction_only else degree
    return chain.from_iterable(choose(range(n_features), m) for m in range(1, highest + 1))


@np.errstate(over="ignore", invalid="ignore")
def lift(X: Array, degree: int, out: Array, *, interaction_only: bool = False) -> Array:
    """Write the monomials of the rows of X into `out` by equation (1)."""
    d = X.shape[1]
    out[:, :d] = X
    # starts[j]: where the block T(m - 1, j) begins; its end is `stop`.
    starts, stop = list(range(d + 1)), d
    highest = min(degree, d) if interaction_only else degree
    for _ in range(2, highest + 1):
        new_starts, position = [], stop
        for j in range(d):
            new_starts.append(position)
            tail = out[:, starts[min(j + int(interaction_only), d)] : stop]
            np.multiply(tail, X[:, j : j + 1], out=out[:, position : position + tail.shape[1]])
            position += tail.shape[1]
        starts, stop = [*new_starts, position], position
    return out


@inherit_docs()
@schema.saved()
class PolynomialLift(Lift):
    """Generate all monomials of the features up to a degree, without the constant.

    Parameters
    ----------
    degree : int, default=2
        Maximum degree.
    interaction_only : bool, default=False
        Whether to use only products of distinct features.

    Attributes
    ----------
    powers_ : ndarray of shape (n_output_features_, n_features_in_)
        Exponent of each feature in each monomial.

    Examples
    --------
    >>> from summula.features import PolynomialLift
    >>> lift = PolynomialLift(degree=2).fit([[2.0, 3.0]])
    >>> lift.transform([[2.0, 3.0]])
    array([[2., 3., 4., 6., 9.]])
    >>> list(lift.get_feature_names_out())
    ['x0', 'x1', 'x0^2', 'x0 x1', 'x1^2']
    """

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "degree": (integer(1),),
        "interaction_only": (boolean,),
        "n_jobs": (none, integer()),
    }

    def __init__(self, degree: int = 2, *, interaction_only: bool = False, n_jobs: int | None = None) -> None:
        self.degree = degree
        self.interaction_only = interaction_only
        self.n_jobs = n_jobs

    def _n_lifted(self, n_features: int) -> int:
        return n_monomials(n_features, self.degree, interaction_only=self.interaction_only)

    def _too_many(self, n: int, d: int) -> str:
        return f"degree={self.degree} with {d} columns gives {n} monomials; reduce the degree."

    @property
    def powers_(self) -> NDArray[np.int64]:
        """The exponent of each feature in each monomial."""
        check_is_fitted(self)
        return np.array([np.bincount(term, minlength=self.n_features_in_) for term in self._terms()])

    def _terms(self) -> Iterator[tuple[int, ...]]:
        return monomials(self.n_features_in_, self.degree, interaction_only=self.interaction_only)

    def _names(self, names: list[str]) -> list[str]:
        return [monomial_name(term, names) for term in self._terms()]

    def _write_rows(self, chunk: Chunk, out: Array) -> None:
        lift(chunk.X, self.degree, out, interaction_only=self.interaction_only)

    def _transform_sparse(self, X: Any) -> Any:
        from summula.features.sparse_lift import lift_sparse

        return lift_sparse(X, self.degree, self.n_output_features_, self.interaction_only)
