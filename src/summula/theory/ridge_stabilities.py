"""Stability of ridge regression: regularisation limits how far the expected error exceeds that of the best predictor.

Rows satisfy ||x|| <= 1 and targets |y| <= 1 with probability 1. For the halved squared loss and m independent rows,
ridge regression without an intercept minimises

    (1/m) sum_i 1/2 (w'x_i - y_i)^2 + lambda ||w||^2,         w = (X'X + 2 lambda m I)^-1 X'y                    (1)

Replacing a single row changes w little, the less the larger lambda m is, so that the error on the sample is close to
the true error L(w) = E 1/2 (w'x - y)^2. For every B > 0 and epsilon between 0 and 1,

    m >= 150 B^2 / epsilon^2 and lambda = epsilon / (3 B^2)  imply
    E L(w) <= min over ||v|| <= B of L(v) + epsilon                                                              (2)

where the expectation is over samples. `Ridge(alpha)` minimises ||Xw - y||^2 + alpha ||w||^2, which is (1) for

    alpha = 2 lambda m                                                                                           (3)

Shalev-Shwartz and Ben-David (2014), Understanding Machine Learning, corollary 13.11.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from summula.core.data.sparse_format import check_sparse
from summula.core.errors import DataError, ParameterError

__all__ = ["RidgeStability", "ridge_stability"]

_FACTOR = 150.0
_SMALLEST = 1e-75  # B and epsilon whose squares, and the number of rows, are far from the limits of floats
_SLACK = 1e-9  # norms of rows that were scaled to 1 may exceed it by rounding


@dataclass(frozen=True)
class RidgeStability:
    """The guarantee (2) and the regularisation it requires.

    Attributes
    ----------
    B : float
        Largest norm of the coefficients that ridge regression is compared with.
    n_samples : int
        Number of rows.
    epsilon : float
        Bound on the expected excess error, in units of the halved squared loss.
    lambda_ : float
        Regularisation in (1).
    alpha : float
        The same as the parameter `alpha` of `Ridge(alpha, fit_intercept=False)` fitted to `n_samples` rows.
    vacuous : bool
        Whether the coefficients 0 meet the bound, because epsilon is at least 1/2.
    """

    B: float
    n_samples: int
    epsilon: float
    lambda_: float
    alpha: float

    @property
    def vacuous(self) -> bool:
        return self.epsilon >= 0.5

    def check(self, X: Any, y: Any) -> None:
        """Raise DataError if a row has ||x|| > 1 or |y| > 1, or if the number of rows is too small.

        Passing is necessary, not sufficient: (2) requires bounded rows of the distribution, not only of the sample.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Targets.
        """
        check_sparse(X)
        rows: Any = sparse.csr_array(X) if sparse.issparse(X) else np.asarray(X, np.float64)
        targets = np.asarray(y, np.float64)
        if rows.ndim != 2 or targets.shape != rows.shape[:1]:
            raise DataError(
                f"X needs two dimensions and y one value per row; got shapes {rows.shape} and {targets.shape}."
            )
        if rows.shape[0] < self.n_samples:
            raise DataError(
                f"The bound with epsilon={self.epsilon:.4g} needs {self.n_samples} rows; X has {rows.shape[0]}: call "
                f"ridge_stability(B={self.B:.4g}, n_samples={rows.shape[0]}) for the bound of these."
            )
        squares = rows.multiply(rows).sum(axis=1) if sparse.issparse(rows) else np.einsum("ij,ij->i", rows, rows)
        _raise_if_large("||x||", np.sqrt(np.asarray(squares).reshape(-1)), "divide X by it (B grows by that factor)")
        _raise_if_large("|y|", np.abs(targets), "divide y by it (epsilon is then in units of its square)")


def ridge_stability(B: float, *, epsilon: float | None = None, n_samples: int | None = None) -> RidgeStability:
    """Return the guarantee (2) of ridge regression for a given error or a given number of rows.

    Parameters
    ----------
    B : float
        Largest norm of the coefficients to compete with.
    epsilon : float, default=None
        Expected excess error to guarantee, between 0 and 1; determines the number of rows.
    n_samples : int, default=None
        Number of rows; determines epsilon. Pass exactly one of `epsilon` and `n_samples`.

    Returns
    -------
    RidgeStability
        Number of rows, epsilon, lambda and the `alpha` of `Ridge`; `check(X, y)` tests the conditions on a sample.

    Examples
    --------
    >>> from summula.theory import ridge_stability
    >>> bound = ridge_stability(B=2.0, epsilon=0.1)
    >>> bound.n_samples, round(bound.lambda_, 5), round(bound.alpha, 1)
    (60000, 0.00833, 1000.0)
    >>> round(ridge_stability(B=2.0, n_samples=60_000).epsilon, 4)
    0.1
    """
    if isinstance(B, bool) or not isinstance(B, float | int | np.number) or not _SMALLEST <= B <= 1 / _SMALLEST:
        raise ParameterError(f"B must be a number between {_SMALLEST:g} and {1 / _SMALLEST:g}; got {B!r}.")
    if (epsilon is None) == (n_samples is None):
        raise ParameterError("Pass exactly one of epsilon and n_samples.")
    if epsilon is not None:
        if not isinstance(epsilon, float | int | np.number) or not _SMALLEST <= epsilon < 1:
            raise ParameterError(f"epsilon must be in the range (0, 1), and at least {_SMALLEST:g}; got {epsilon!r}.")
        needed = _FACTOR * (B / epsilon) ** 2
        m = max(1, math.ceil(needed * (1 - 1e-12)))  # (a whole number may come out larger by rounding)
    else:
        assert n_samples is not None
        number = isinstance(n_samples, float | int | np.number) and not isinstance(n_samples, bool)
        if not number or not 1 <= n_samples < math.inf or int(n_samples) != n_samples:
            raise ParameterError(f"n_samples must be an int >= 1; got {n_samples!r}.")
        m, epsilon = int(n_samples), B * math.sqrt(_FACTOR / n_samples)
        if epsilon >= 1:
            raise ParameterError(
                f"n_samples={m} rows guarantee nothing for B={B:.4g}: "
                f"more than {math.floor(_FACTOR * B**2)} are needed."
            )
    lambda_ = epsilon / (3 * B**2)
    return RidgeStability(float(B), m, float(epsilon), lambda_, 2 * lambda_ * m)


def _raise_if_large(what: str, sizes: Any, cure: str) -> None:
    """Raise for a size above 1 or one that is missing."""
    bad = ~(sizes <= 1 + _SLACK)
    if not bad.any():
        return
    worst = int(np.argmax(np.where(np.isnan(sizes), np.inf, sizes)))
    raise DataError(
        f"The stability bound needs {what} <= 1; {int(bad.sum())} rows exceed it, the largest is {sizes[worst]:.6g} "
        f"in row {worst}: {cure}."
    )
