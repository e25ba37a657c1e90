"""The kernels of the course.

    Linear        x'z
    Polynomial    (gamma x'z + coef0)^degree
    Gaussian      exp(-||x - z||^2 / (2 sigma^2)) = exp(-gamma ||x - z||^2),   gamma = 1 / (2 sigma^2)
    Laplacian     exp(-gamma ||x - z||_1)
    Sigmoid       tanh(gamma x'z + coef0), which is not positive semidefinite in general

The features of a polynomial kernel: with u = (sqrt(gamma) x, sqrt(coef0)) it is (u'v)^p, and by the multinomial theorem

    (u'v)^p = sum over k_1 + ... + k_m = p of  p! / (k_1! ... k_m!)  prod_j u_j^k_j  prod_j v_j^k_j                 (1)

so the features are the monomials of u times the square roots of the multinomial coefficients. In two dimensions
(x'z + 1)^2 has the features (x1^2, sqrt2 x1 x2, sqrt2 x1, x2^2, sqrt2 x2, 1).
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import ParameterError
from summula.core.estimator.input.argument_values import number_or_nan
from summula.core.model_files import schema
from summula.kernels.kernel import Custom, Kernel
from summula.kernels.rows import Rows, rows_of_user

__all__ = ["Gaussian", "Laplacian", "Linear", "Polynomial", "Sigmoid", "as_kernel"]

Array = NDArray[Any]

_MOST_FEATURES = 1_000_000  # maximum number of features of an explicit map
_LONG = 1e6  # gamma (|x|^2 + |z|^2) above which products lose digits of gamma |x - z|^2
_LOST = 1e-12  # their rounding error, relative to that sum
_VANISHES = 700.0  # exponent at which a Gaussian is 0


def _check(name: str, value: float) -> None:
    number = number_or_nan(value)
    if not (np.isfinite(number) and number >= 0):
        raise ParameterError(f"{name} of a kernel must be 0 or more, got {value!r}.")


@schema.saved()
@dataclass(frozen=True)
class Linear(Kernel):
    """k(x, z) = x'z.

    Examples
    --------
    >>> from summula.kernels import Linear
    >>> Linear()([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """

    def evaluate(self, A: Rows, B: Rows) -> Array:
        return A.products(B)

    def diagonal(self, A: Rows) -> Array:
        return A.squares

    def features(self, X: Any) -> Array:
        """Return X."""
        X = rows_of_user(X)
        return np.asarray(X.toarray() if hasattr(X, "indptr") else X)


@schema.saved(degree=schema.Integer(1), coef0=schema.Real(0.0), gamma=schema.Real(0.0))
@dataclass(frozen=True)
class Polynomial(Kernel):
    """k(x, z) = (gamma x'z + coef0)^degree.

    Parameters
    ----------
    degree : int, default=2
    coef0 : float, default=1.0
        Non-negative.
    gamma : float, default=1.0
        0 or more.

    Examples
    --------
    >>> from summula.kernels import Polynomial
    >>> k = Polynomial(2)
    >>> k([[1.0, 2.0]], [[3.0, 4.0]])
    array([[144.]])
    >>> float((k.features([[1.0, 2.0]]) @ k.features([[3.0, 4.0]]).T).round(9)[0, 0])
    144.0
    """

    degree: int = 2
    coef0: float = 1.0
    gamma: float = 1.0

    def __post_init__(self) -> None:
        if not (number_or_nan(self.degree) >= 1 and float(self.degree).is_integer()):
            raise ParameterError(f"The degree of a polynomial kernel must be a positive integer, got {self.degree!r}.")
        _check("coef0", self.coef0)
        _check("gamma", self.gamma)

    def evaluate(self, A: Rows, B: Rows) -> Array:
        from summula.kernels.loops import powers

        P = A.products(B)
        powers(P, float(self.gamma), float(self.coef0), int(self.degree))
        return P

    def diagonal(self, A: Rows) -> Array:
        return np.asarray((self.gamma * A.squares + self.coef0) ** int(self.degree))

    def features(self, X: Any) -> Array:
        """Return the monomials of equation (1)."""
        X = Linear().features(X)
        m, degree = X.shape[1] + (self.coef0 > 0), int(self.degree)
        if math.comb(m + degree - 1, degree) > _MOST_FEATURES:
            raise ParameterError(
                f"{self!r} has {math.comb(m + degree - 1, degree)} features for {X.shape[1]} columns, more than "
                f"{_MOST_FEATURES}; use the kernel itself, or summula.kernel_approximation.PolynomialCountSketch."
            )
        U = np.column_stack([np.sqrt(self.gamma) * X, *([np.full(len(X), np.sqrt(self.coef0))] * (self.coef0 > 0))])
        columns = []
        for chosen in combinations_with_replacement(range(m), degree):
            ways = math.factorial(degree) // math.prod(math.factorial(k) for k in Counter(chosen).values())
            columns.append(np.sqrt(ways) * U[:, chosen].prod(axis=1))
        return np.column_stack(columns)


@schema.saved(sigma=schema.Real(0.0, finite=False), gamma=schema.Real(0.0) | None)
@dataclass(frozen=True)
class Gaussian(Kernel):
    """k(x, z) = exp(-||x - z||^2 / (2 sigma^2)).

    Parameters
    ----------
    sigma : float, default=1.0
        Width of the kernel; positive.
    gamma : float, optional
        scikit-learn's parameter, 1 / (2 sigma^2); replaces sigma.

    Examples
    --------
    >>> from summula.kernels import Gaussian
    >>> Gaussian(2.0)([[0.0]], [[0.0], [2.0]]).round(4)
    array([[1.    , 0.6065]])
    """

    sigma: float = 1.0
    gamma: float | None = None

    def __post_init__(self) -> None:
        if self.gamma is not None:
            _check("gamma", self.gamma)
        elif not (
            1e-150 <= number_or_nan(self.sigma) <= 1e150 or self.sigma == np.inf
        ):  # its square has to be a number
            raise ParameterError(
                f"sigma of a Gaussian kernel must be positive, from 1e-150 to 1e150, got {self.sigma!r}."
            )

    @property
    def rate(self) -> float:
        """gamma = 1 / (2 sigma^2)."""
        return float(self.gamma) if self.gamma is not None else 0.5 / float(self.sigma) ** 2

    @property
    def translation_invariant(self) -> bool:
        return True

    def evaluate(self, A: Rows, B: Rows) -> Array:
        from summula.kernels.loops import gaussian

        P = A.products(B)
        near = self._near_pairs(P, A, B)
        gaussian(P, A.squares, B.squares, self.rate)
        if near is not None:
            P[near] = np.exp(-self.rate * A.distances(B, *near))
        return P

    def _near_pairs(self, P: Array, A: Rows, B: Rows) -> tuple[Array, Array] | None:
        """Return the pairs of rows so long, and so near each other, that products lose digits of their distance."""
        longest = float(A.squares.max(initial=0.0)) + float(B.squares.max(initial=0.0))
        if self.rate * longest <= _LONG or P.dtype != np.float64:
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            lengths = self.rate * np.add.outer(A.squares, B.squares)
            near = (lengths > _LONG) & (lengths - 2.0 * self.rate * P < _VANISHES + _LOST * lengths)
        rows, columns = np.nonzero(near)
        return rows, columns

    def diagonal(self, A: Rows) -> Array:
        return np.ones(len(A), A.dtype)


@schema.saved(gamma=schema.Real(0.0))
@dataclass(frozen=True)
class Laplacian(Kernel):
    """k(x, z) = exp(-gamma ||x - z||_1).

    Parameters
    ----------
    gamma : float, default=1.0
        0 or more.
    """

    gamma: float = 1.0

    def __post_init__(self) -> None:
        _check("gamma", self.gamma)

    @property
    def translation_invariant(self) -> bool:
        return True

    def evaluate(self, A: Rows, B: Rows) -> Array:
        from summula.kernels.loops import absolute_differences, exponentials

        D = np.empty((len(A), len(B)))
        absolute_differences(A.dense().astype(np.float64, copy=False), B.dense().astype(np.float64, copy=False), D)
        exponentials(D, float(self.gamma))
        return D.astype(A.dtype, copy=False)

    def diagonal(self, A: Rows) -> Array:
        return np.ones(len(A), A.dtype)


@schema.saved(gamma=schema.Real(0.0), coef0=schema.Real())
@dataclass(frozen=True)
class Sigmoid(Kernel):
    """k(x, z) = tanh(gamma x'z + coef0), which is often not positive semidefinite (see `is_mercer`).

    Parameters
    ----------
    gamma : float, default=1.0
    coef0 : float, default=0.0
    """

    gamma: float = 1.0
    coef0: float = 0.0

    def __post_init__(self) -> None:
        _check("gamma", self.gamma)

    def evaluate(self, A: Rows, B: Rows) -> Array:
        P = A.products(B)
        P *= P.dtype.type(self.gamma)
        P += P.dtype.type(self.coef0)
        return np.asarray(np.tanh(P, out=P))

    def diagonal(self, A: Rows) -> Array:
        return np.asarray(np.tanh(self.gamma * A.squares + self.coef0))


def as_kernel(kernel: Any, *, gamma: float, coef0: float, degree: int) -> Kernel:
    """Return a kernel by scikit-learn's name, with its parameters; kernels and functions of (X, Z) are unchanged.

    Kernels available only in scikit-learn (cosine, chi2, additive_chi2) are evaluated by `sklearn.metrics.pairwise`.
    """
    if isinstance(kernel, Kernel):
        return kernel
    if callable(kernel):
        return Custom(kernel)
    if kernel == "linear":
        return Linear()
    if kernel in ("poly", "polynomial"):
        if degree == int(degree) and degree >= 1 and coef0 >= 0:
            return Polynomial(int(degree), float(coef0), float(gamma))
        return Custom(_AnyPolynomial(float(gamma), float(coef0), float(degree)))
    if kernel == "rbf":
        return Gaussian(gamma=float(gamma))
    if kernel == "laplacian":
        return Laplacian(float(gamma))
    if kernel == "sigmoid":
        return Sigmoid(float(gamma), float(coef0))
    from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

    return Custom(PAIRWISE_KERNEL_FUNCTIONS[kernel])


class _AnyPolynomial:
    """(gamma x'z + coef0)^degree for degree 0, fractions and negative coef0, which may not be kernels."""

    def __init__(self, gamma: float, coef0: float, degree: float) -> None:
        self.gamma, self.coef0, self.degree = gamma, coef0, degree

    def __call__(self, X: Any, Z: Any) -> Array:
        P = X @ Z.T
        return np.asarray((self.gamma * (P.toarray() if hasattr(P, "toarray") else P) + self.coef0) ** self.degree)
