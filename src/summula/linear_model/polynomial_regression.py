"""Polynomial regression: least squares on all monomials x^a, |a| <= p, solved in a well-conditioned basis.

Powers of raw columns are nearly collinear. So the columns are first centred and scaled, t = (x - c) / h, with c the
mean and h two standard deviations, the problem is solved in the monomials of t, and the solution is expanded exactly by

    t^a = prod_j ((x_j - c_j) / h_j)^a_j = sum_{k <= a} prod_j binom(a_j, k_j) (-c_j)^(a_j - k_j) / h_j^a_j  x^k     (1)

Both bases span the same functions, so fit, residuals and statistics are the same up to rounding. Without an intercept
c = 0, since centring x would introduce a constant.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from math import comb
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.callback import with_callbacks

from summula.core.data.chunks import Chunk
from summula.core.data.layout.blocks import aligned, product
from summula.core.data.sources import MappedSource, Source
from summula.core.docstrings import inherit_docs
from summula.core.estimator.certificates import check_width
from summula.core.estimator.input.finiteness import raise_if_overflowing, raise_if_underflowing
from summula.core.estimator.parameters import Allowed, boolean, integer, none, real
from summula.core.estimator.rows import RowFunction
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.core.numerics.statistics import Gram, Moments
from summula.features.lift import monomial_name
from summula.features.polynomial_lift import PolynomialLift, lift, monomials, n_monomials
from summula.linear_model.least_squares.certificate import LeastSquaresCertificate
from summula.linear_model.least_squares.inference import Names
from summula.linear_model.least_squares.model import Given, LeastSquaresModel
from summula.linear_model.least_squares.problem import Fit, Problem

__all__ = ["PolynomialRegression"]

Array = NDArray[Any]

_EXTENDED_TERMS = 300  # maximum number of terms for which (1) is computed in extended precision


def _scaled_lift(X: Array, centre: Array, scale: Array, degree: int, interaction_only: bool) -> Array:
    """Return the monomials of t = (x - c) / h."""
    t = (X - centre.astype(X.dtype)) / scale.astype(X.dtype)
    n = n_monomials(X.shape[1], degree, interaction_only=interaction_only)
    return lift(t, degree, np.empty((len(X), n), X.dtype), interaction_only=interaction_only)


def _lifted(source: Source, centre: Array, scale: Array, degree: int, interaction_only: bool) -> MappedSource:
    fn = functools.partial(_scaled_lift, centre=centre, scale=scale, degree=degree, interaction_only=interaction_only)
    return MappedSource(source, fn, n_monomials(source.n_features, degree, interaction_only=interaction_only))


@schema.saved(
    centre=schema.Array("float64", "n_columns"),
    scale_x=schema.Array("float64", "n_columns"),
    degree=schema.Integer(1),
    interaction_only=schema.Flag(),
)
@dataclass(frozen=True)
class PolynomialCertificate(LeastSquaresCertificate):
    """Certificate of a polynomial fit, in terms of the monomials of t = (x - centre) / scale_x."""

    centre: Array
    scale_x: Array
    degree: int
    interaction_only: bool

    def _source(self, X: Any, y: Any, sample_weight: Any) -> Source:
        base = super()._source(X, y, sample_weight)
        check_width(base, len(self.centre))
        return _lifted(base, self.centre, self.scale_x, self.degree, self.interaction_only)


@inherit_docs(PolynomialLift)
@schema.saved(
    certificate_=schema.Object(
        PolynomialCertificate, n_columns="n_features", n_features="n_terms", n_targets="n_targets"
    ),
    _centre=schema.Array("float64", "n_features"),
    _scale=schema.Array("float64", "n_features"),
)
class PolynomialRegression(LeastSquaresModel):
    """Polynomial regression: least squares on all monomials of the features up to a degree.

    Attributes
    ----------
    coef_ : ndarray of shape (n_terms,) or (n_targets, n_terms)
        Coefficients of the monomials of x, in the order of `powers_`.
    powers_ : ndarray of shape (n_terms, n_features)
        Exponent of each feature in each monomial.
    certificate_ : PolynomialCertificate

    Examples
    --------
    >>> import numpy as np
    >>> from summula.linear_model import PolynomialRegression
    >>> x = np.linspace(0.0, 3.0, 7)[:, None]
    >>> model = PolynomialRegression(degree=2).fit(x, 1 + 2 * x[:, 0] - 3 * x[:, 0] ** 2)
    >>> model.intercept_.round(9), model.coef_.round(9)
    (np.float64(1.0), array([ 2., -3.]))
    """

    _accepts_sparse = False
    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "degree": (integer(1),),
        "interaction_only": (boolean,),
        "fit_intercept": (boolean,),
        "n_jobs": (none, integer()),
        "max_time": (none, real(0.0)),
    }

    def __init__(
        self,
        degree: int = 2,
        *,
        interaction_only: bool = False,
        fit_intercept: bool = True,
        n_jobs: int | None = None,
        max_time: float | None = None,
    ) -> None:
        self.degree = degree
        self.interaction_only = interaction_only
        self.fit_intercept = fit_intercept
        self.n_jobs = n_jobs
        self.max_time = max_time

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> PolynomialRegression:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, frame} of shape (n_samples, n_features)
            Training data.
        """
        with self._fitting(X, y, sample_weight) as run:
            self._centre, self._scale = self._frame_of_reference(run)
            run.use(self._lift_of(run.source))
            self._solved(run, X, y, sample_weight)
        return self

    def _term_count(self, n_features: int) -> int:
        return n_monomials(n_features, self.degree, interaction_only=self.interaction_only)

    def _lift_of(self, source: Source) -> MappedSource:
        return _lifted(source, self._centre, self._scale, self.degree, self.interaction_only)

    def _sums_of(self, run: Run) -> Gram:
        run.use(self._lift_of(run.source))
        return super()._sums_of(run)

    def _paired(self, other: Any) -> tuple[Gram, Gram]:
        """Return the sums of both fits in the monomials of this one, converted by (1) for the affine map t2 -> t1."""
        own, new = super()._paired(other)
        t = len(self._fit.rss)
        # The other model's t is (t - c) / h for this model's t; the matrix of (1) for these c and h converts monomials.
        shift, stretch = (self._centre - other._centre) / other._scale, self._scale / other._scale
        M = _expansion(self.powers_, shift, stretch).T
        offset = np.concatenate([M[1:, 0], np.zeros(t)]).astype(np.float64)
        return own, new.transformed(_with_targets(M[1:, 1:].astype(np.float64), t), offset)

    def _frame_of_reference(self, run: Run) -> tuple[Array, Array]:
        """Return c and h of equation (1)."""
        moments = run.sum(Moments, run.origin()[: run.source.n_features], "mean and spread")
        raise_if_overflowing(run.source, moments.square)
        varies = (moments.square > 0).astype(np.float64)  # a spread with few digits is as good
        raise_if_underflowing(run.source, varies, moments.total)
        centre = moments.mean if self.fit_intercept else np.zeros(run.source.n_features)
        spread = np.sqrt(moments.variance + (0.0 if self.fit_intercept else moments.mean**2))
        return centre, np.where(spread > 0, 2 * spread, 1.0)

    def _returned_in(self, dtype: Any) -> Any:
        return np.float64  # predictions use the coefficients of the scaled monomials

    def _name_results(self, given: Given, problem: Problem, fit: Fit) -> None:
        """Convert the coefficients from t to x, and complete the certificate."""
        super()._name_results(given, problem, fit)
        basis = self._basis()
        first = np.vstack([fit.intercept if self.fit_intercept else np.zeros_like(fit.rss), fit.coef])
        expanded = np.asarray(basis @ first.astype(basis.dtype), dtype=np.float64)
        intercept, coef = expanded[0].astype(given.dtype), expanded[1:].T.astype(given.dtype)
        self.coef_ = coef[0] if given.one_target else coef
        self.intercept_ = (intercept[0] if given.one_target else intercept) if self.fit_intercept else 0.0
        self.certificate_ = PolynomialCertificate(
            **vars(self.certificate_),
            centre=self._centre,
            scale_x=self._scale,
            degree=self.degree,
            interaction_only=self.interaction_only,
        )

    @property
    def powers_(self) -> NDArray[np.int64]:
        """Exponent of each feature in each monomial."""
        terms = monomials(self.n_features_in_, self.degree, interaction_only=self.interaction_only)
        return np.array([np.bincount(term, minlength=self.n_features_in_) for term in terms])

    def _basis(self) -> Array:
        """Return the matrix of (1), which maps (intercept, coefficients) in t to those in x."""
        return _expansion(self.powers_, self._centre, self._scale)

    def _column_label(self, run: Run, j: int) -> str:
        return repr(self._names().terms[j])

    def _names(self) -> Names:
        names = super()._names()
        terms = monomials(self.n_features_in_, self.degree, interaction_only=self.interaction_only)
        return Names(names.model, tuple(monomial_name(t, list(names.terms)) for t in terms), *_rest(names))

    def _row_function(self) -> RowFunction:
        lift = functools.partial(
            _scaled_lift,
            centre=self._centre,
            scale=self._scale,
            degree=self.degree,
            interaction_only=self.interaction_only,
        )
        intercept = self._fit.intercept if self.fit_intercept else np.zeros(1)
        one = np.ndim(self.coef_) == 1
        return functools.partial(_values, lift, self._fit.coef, intercept, np.asarray(self.coef_).dtype, one)

    def _fitted_columns(self, source: Source) -> Source:
        return _lifted(source, self._centre, self._scale, self.degree, self.interaction_only)


def _values(lift: Any, coef: Array, intercept: Array, dtype: Any, one: bool, chunk: Chunk) -> Array:
    """Evaluate the polynomial at the rows of a chunk."""
    result = (product(aligned(lift(chunk.block(np.float64))), coef) + intercept).astype(dtype)
    return np.asarray(result[:, 0] if one else result)


def _expansion(powers: NDArray[np.int64], centre: Array, scale: Array) -> Array:
    """Return the coefficients of (1): entry (k, a) is that of x^k in t^a, the constant first."""
    powers = np.vstack([np.zeros((1, powers.shape[1]), np.int64), powers])
    degree = int(powers.max())  # of a single feature
    number = np.longdouble if len(powers) <= _EXTENDED_TERMS else np.float64
    matrix = np.ones((len(powers), len(powers)), number)
    for a, c, h in zip(powers.T, centre.astype(number), scale.astype(number), strict=True):
        table = np.zeros((degree + 1, degree + 1), number)
        for power in range(degree + 1):
            for k in range(power + 1):
                table[k, power] = comb(power, k) * (-c) ** (power - k) / h**power
        matrix *= table[np.ix_(a, a)]
    return matrix


def _with_targets(M: Array, t: int) -> Array:
    """Return the block diagonal matrix of the features' matrix and the identity for the targets."""
    whole = np.eye(len(M) + t)
    whole[: len(M), : len(M)] = M
    return whole


def _rest(names: Names) -> tuple[tuple[str, ...], str | None]:
    return names.targets, names.frame_library
