"""Ridge for many alphas from one factorisation.

Let S = Xc'W Xc and s = Xc'W yc (centred columns when there is an intercept), a0 the smallest alpha, F any matrix with
F F' = (S + a0 I)^-1, and F'F = Z diag(mu) Z'. Then T = F Z makes both quadratic forms diagonal,

    T'(S + a0 I) T = I,          T'T = diag(mu)                                                              (1)

and every alpha costs a product, not a factorisation:

    (S + alpha I)^-1 = T diag(1 / (1 + (alpha - a0) mu)) T'                                                    (2)
    v(alpha) = T diag(1 / (1 + (alpha - a0) mu)) g,          g = T's                                           (3)

F comes from the Cholesky factor of the scaled Gram matrix, or, where products have lost too many digits, from an
orthogonal factor of the rows; both are invariant to the units of the columns, unlike an eigendecomposition of S.
Rounding in mu changes (2) by about eps (alpha - a0) max mu when F'F is formed, by eps times the root of that when the
singular values of F are taken; an alpha so far above a0 that this matters gets a factorisation of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from summula.core.numerics.statistics import Gram, triangle
from summula.linear_model.least_squares.normal_equations import ScaledCholesky, among, live_columns, scaled_cholesky
from summula.linear_model.least_squares.orthogonal import solve_factor
from summula.linear_model.least_squares.problem import Problem

__all__ = ["ACCURATE", "FactorSystem", "GramSystem", "Path", "RidgeSystem", "coefficients", "paths"]

Array = NDArray[np.float64]

_FORMED = 1e4  # (alpha - a0) max mu up to which F'F is formed
_REACH = 1e12  # (alpha - a0) max mu up to which one factorisation is shared
ACCURATE = 1e4  # condition number of scaled columns up to which the Gram matrix chooses alphas: errors of 1e-8


class Path(NamedTuple):
    """Solution (3) for some of the alphas.

    Attributes
    ----------
    T : ndarray of shape (n_features, rank)
    g : ndarray of shape (rank, n_targets)
    shrink : ndarray of shape (rank, len(places))
        1 / (1 + (alpha - a0) mu), one column per alpha.
    places : ndarray of int
        Indices of these alphas.
    """

    T: Array
    g: Array
    shrink: Array
    places: NDArray[np.intp]

    def coef(self) -> Array:
        """Return v(alpha), shape (n_features, n_targets, len(places))."""
        scaled = self.g[:, :, None] * self.shrink[:, None, :]
        rank, *shape = scaled.shape  # the rank may be 0
        return (self.T @ scaled.reshape(rank, math.prod(shape))).reshape(len(self.T), *shape)


class RidgeSystem(Protocol):
    """Normal equations of some rows, as needed by (1) to (3).

    Columns and targets are centred at `mean`, the origin of the sums when there is no intercept.
    """

    @property
    def mean(self) -> Array:
        """Centres of the columns."""

    @property
    def weight(self) -> float:
        """The sum of the weights."""

    def half_inverse(self, alpha: float) -> Array:
        """Return F with F F' = (S + alpha I)^-1, or the pseudo-inverse if the matrix is singular."""

    def project(self, T: Array) -> Array:
        """Return T's."""


@dataclass(frozen=True)
class GramSystem:
    """The system from a Gram matrix; constant columns are left out of S and get the coefficient 0."""

    mean: Array
    weight: float
    alive: NDArray[np.bool_]
    S: Array
    s: Array
    loss: float
    _factors: dict[float, ScaledCholesky | None] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, gram: Gram, d: int, fit_intercept: bool) -> GramSystem:
        """The system of the rows summed in `gram`."""
        S = gram.centred() if fit_intercept else gram.products
        alive = live_columns(gram, S, fit_intercept, d)
        Sxx = among(S[:d, :d], alive)
        # Centring multiplies the rounding error of the products by this factor, like a larger condition number.
        loss = float((gram.products.diagonal()[:d][alive] / Sxx.diagonal()).max(initial=1.0))
        mean = gram.mean if fit_intercept else gram.origin
        return cls(mean, gram.weight, alive, Sxx, S[:d, d:][alive], loss)

    def accurate(self, alpha: float) -> bool:
        """Whether the products are accurate enough for this alpha and all larger ones."""
        return self.condition(alpha) <= ACCURATE

    def condition(self, alpha: float) -> float:
        """Condition number of the scaled columns, times the loss of digits by centring; infinite without a factor."""
        factor = self._factor(alpha)
        return np.inf if factor is None else factor.kappa * math.sqrt(self.loss)

    def _factor(self, alpha: float) -> ScaledCholesky | None:
        if alpha not in self._factors:
            none = ScaledCholesky(np.eye(0), np.empty(0), 1.0)
            self._factors[alpha] = scaled_cholesky(self.S, alpha) if len(self.S) else none
        return self._factors[alpha]

    def half_inverse(self, alpha: float) -> Array:
        """Return F from the Cholesky factor of the scaled matrix."""
        factor = self._factor(alpha)
        some = self._pseudo_inverse(alpha) if factor is None else factor.half_inverse() if len(self.S) else self.S
        F = np.zeros((len(self.alive), some.shape[1]))
        F[self.alive] = some
        return F

    def _pseudo_inverse(self, alpha: float) -> Array:
        """Return F if rounding has made S + alpha I indefinite, so that it has no Cholesky factor."""
        H = self.S + alpha * np.eye(len(self.S))
        scale = np.sqrt(np.diag(H))
        values, vectors = np.linalg.eigh(H / scale / scale[:, None])
        kept = values > 4 * len(H) * float(np.finfo(np.float64).eps) * values[-1]
        return np.asarray(vectors[:, kept] / np.sqrt(values[kept]) / scale[:, None])

    def project(self, T: Array) -> Array:
        """Return T's."""
        return T[self.alive].T @ self.s


@dataclass(frozen=True)
class FactorSystem:
    """The system from rows (1, x - o, y - o), or any rows R with the same R'R: S = A'A and s = A'B."""

    mean: Array
    weight: float
    count: int
    A: Array
    B: Array

    @classmethod
    def of(cls, rows: Array, count: int, origin: Array, d: int, fit_intercept: bool) -> FactorSystem:
        """The system of weighted rows that were shifted by `origin`; their first column is the root of the weight."""
        weight = float(rows[:, 0] @ rows[:, 0])
        if not fit_intercept:
            R = triangle(rows[:, 1:])
            return cls(origin, weight, count, R[:, :d], R[:, d:])
        R = triangle(rows)  # the constant column comes first: its row of R contains the means, the rest is centred
        return cls(origin + R[0, 1:] / R[0, 0], weight, count, R[1:, 1 : d + 1], R[1:, d + 1 :])

    def half_inverse(self, alpha: float) -> Array:
        """Return F by orthogonal transformations of the factor."""
        d = self.A.shape[1]
        if not len(self.A):
            return np.zeros((d, 0))
        removed = np.sqrt(self.weight) * np.abs(self.mean[:d])
        problem = Problem(True, np.array([alpha]), False)
        return solve_factor(self.A, np.zeros((len(self.A), 1)), problem, self.count, removed).half_inverse

    def project(self, T: Array) -> Array:
        """Return T's."""
        return (self.A @ T).T @ self.B


def paths(system: RidgeSystem, alphas: Array) -> Iterator[Path]:
    """Return (3) for all alphas, as one path unless they are very far apart."""
    left = np.argsort(alphas, kind="stable")
    while len(left):
        above = alphas[left] - alphas[left[0]]
        F = system.half_inverse(float(alphas[left[0]]))
        T, mu = _diagonalised(F, float(above[-1]))
        near = above * mu.max(initial=0.0) <= _REACH
        shrink = 1.0 / (1.0 + np.outer(mu, above[near]))
        yield Path(T, system.project(T), shrink, left[near])
        left = left[~near]


def _diagonalised(F: Array, most: float) -> tuple[Array, Array]:
    """Return T and mu of (1); `most` is the largest alpha - a0."""
    if most * float((F * F).sum()) <= _FORMED:
        mu, Z = np.linalg.eigh(F.T @ F)
        return F @ Z, np.maximum(mu, 0.0)
    P, sigma, _ = np.linalg.svd(F, full_matrices=False)
    return P * sigma, sigma**2


def coefficients(system: RidgeSystem, alphas: Array, n_targets: int) -> Array:
    """Return v(alpha) for every alpha, shape (n_features, n_targets, n_alphas)."""
    coef: Array | None = None
    for path in paths(system, alphas):
        some = path.coef()
        if coef is None:
            coef = np.empty((len(some), n_targets, len(alphas)))
        coef[:, :, path.places] = some
    assert coef is not None, "there is at least one alpha"
    return coef
