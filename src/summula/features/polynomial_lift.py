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
from sklearn.callback import with_callbacks
from sklearn.utils.validation import check_is_fitted

from summula.core.data.chunks import Chunk
from summula.core.docstrings import inherit_docs
from summula.core.errors import ParameterError
from summula.core.estimator.parameters import Allowed, boolean, integer, none
from summula.core.estimator.transformer import Transformer
from summula.core.model_files import schema

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


def _counts_monomials(model: Any, sizes: schema.Sizes) -> str | None:
    expected = n_monomials(sizes["n_features"], model.degree, interaction_only=model.interaction_only)
    if model.n_output_features_ != expected:
        return f"n_output_features_ is {model.n_output_features_}, but there are {expected} monomials"
    return None


@inherit_docs()
@schema.saved(
    _counts_monomials,
    n_output_features_=schema.Integer(1, 2**31 - 1),
)
class PolynomialLift(Transformer):
    """Generate all monomials of the features up to a degree, without the constant.

    Parameters
    ----------
    degree : int, default=2
        Maximum degree.
    interaction_only : bool, default=False
        Whether to use only products of distinct features.
    n_jobs : int, optional
        Maximum number of threads; None uses all.

    Attributes
    ----------
    powers_ : ndarray of shape (n_output_features_, n_features_in_)
        Exponent of each feature in each monomial.
    n_output_features_ : int
        Number of monomials.
    n_features_in_, feature_names_in_ : as in scikit-learn

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

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> PolynomialLift:
        """Store the number and names of the features.

        Parameters
        ----------
        y : ignored
        """
        with self._fitting(X, needs_y=False) as run:
            run.raise_if_not_finite()
            d = run.source.n_features
            n = n_monomials(d, self.degree, interaction_only=self.interaction_only)
            if n > np.iinfo(np.int32).max:
                raise ParameterError(f"degree={self.degree} with {d} columns gives {n} monomials; reduce the degree.")
            self.n_output_features_ = n
        return self

    @property
    def powers_(self) -> NDArray[np.int64]:
        """The exponent of each feature in each monomial."""
        check_is_fitted(self)
        terms = monomials(self.n_features_in_, self.degree, interaction_only=self.interaction_only)
        return np.array([np.bincount(term, minlength=self.n_features_in_) for term in terms])

    def _n_outputs(self) -> int:
        return int(self.n_output_features_)

    def _write_rows(self, chunk: Chunk, out: Array) -> None:
        lift(chunk.X, self.degree, out, interaction_only=self.interaction_only)

    def _transform_sparse(self, X: Any) -> Any:
        from summula.features.sparse_lift import lift_sparse

        return lift_sparse(X, self.degree, self.n_output_features_, self.interaction_only)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the monomials, such as "x0^2 x1"."""
        check_is_fitted(self)
        names = _input_names(self, input_features)
        terms = monomials(self.n_features_in_, self.degree, interaction_only=self.interaction_only)
        return np.array([_monomial_name(term, names) for term in terms], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _input_names(estimator: Any, given: Any) -> list[str]:
    known = getattr(estimator, "feature_names_in_", None)
    if given is None:
        return [f"x{j}" for j in range(estimator.n_features_in_)] if known is None else [str(n) for n in known]
    names = [str(name) for name in given]
    if len(names) != estimator.n_features_in_:
        raise ValueError(
            f"input_features should have length equal to number of features ({estimator.n_features_in_}), "
            f"got {len(names)}"
        )
    if known is not None and names != [str(n) for n in known]:
        raise ValueError("input_features is not equal to feature_names_in_")
    return names


def _monomial_name(term: tuple[int, ...], names: list[str]) -> str:
    powers = [(j, term.count(j)) for j in dict.fromkeys(term)]
    return " ".join(names[j] if power == 1 else f"{names[j]}^{power}" for j, power in powers)
