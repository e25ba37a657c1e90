"""Certificates of linear and quadratic discriminant analysis: the objective of means and covariances.

With the weight W_k of class k, its mean c_k, the covariance T of the data (constrained and shrunk as requested), a
model's means m_k, and A with A A' its inverse covariance on the directions in which rows vary,

    J = 1/2 sum_k W_k [r log 2 pi - log |A'A| + tr(A'TA) + ||A'(c_k - m_k)||^2]                                 (1)

is minimised, among matrices A of the same range, by A'TA = I and m_k = c_k. Others are above the minimum by

    1/2 sum_k W_k [tr B - r - log |B| + ||A'(c_k - m_k)||^2],   B = A'TA                                        (2)

Without shrinkage (1) is the negative log-likelihood of the rows, given their classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from summula.core.model_files import schema
from summula.core.numerics.priors import Priors
from summula.discriminant_analysis.class_grams import ClassGrams
from summula.stats.covariance import COVARIANCES, constrained, shrunk

__all__ = ["CovarianceRule", "LinearFit", "QuadraticFit", "deviations", "triangular"]

Array = NDArray[np.float64]

_ROUNDINGS = 8.0  # of an entry of S, which is summed over blocks
_TINY = np.finfo(np.float64).tiny
_MEANS = schema.Array("float64", "n_classes", "n_features")
_PRIORS = schema.Object(Priors, n_classes="n_classes")


def deviations(sums: ClassGrams) -> Array:
    """Return standard deviations by class, 1 for constant columns; columns are standardised before shrinkage."""
    weight = np.where(sums.weight > 0, sums.weight, 1.0)
    variance = np.diagonal(sums.scatter, axis1=1, axis2=2) / weight[:, None]
    return np.where(variance > 0, np.sqrt(np.maximum(variance, 0.0)), 1.0)


@schema.saved(
    form=schema.Text(*COVARIANCES),
    shares=schema.Array("float64", "n_classes", low=0.0, high=1.0) | None,
    standardised=schema.Flag(),
    ridge=schema.Real(0.0, 1.0),
    given=schema.Maybe(schema.Array("float64", "n_classes", "n_features", "n_features") | None),
)
@dataclass(frozen=True)
class CovarianceRule:
    """Rule that converts sums to covariances.

    Attributes
    ----------
    form : {"full", "diag", "spherical"}
    shares : ndarray of shape (n_classes,) or None
        Weight of a multiple of the identity in the covariance of each class; None does not shrink.
    standardised : bool
        Whether columns are standardised before shrinkage.
    ridge : float
        Weight of the identity in the separate covariance of each class, applied last.
    given : ndarray of shape (n_classes, n_features, n_features) or None
        Covariances estimated from the rows of each class, instead of from sums.
    """

    form: str
    shares: Array | None = None
    standardised: bool = False
    ridge: float = 0.0
    given: Array | None = None

    def by_class(self, sums: ClassGrams) -> Array:
        """Return the covariance of each class, divided by its weight and shrunk, shape (n_classes, d, d)."""
        if self.given is not None:
            return self.given
        weight = np.where(sums.weight > 0, sums.weight, 1.0)
        S = np.asarray(sums.scatter / weight[:, None, None])
        if self.shares is None:
            return S
        scale = deviations(sums) if self.standardised else np.ones(sums.origin.shape)
        both = scale[:, :, None] * scale[:, None, :]
        return np.stack([shrunk(one, s) for one, s in zip(S / both, self.shares.tolist(), strict=True)]) * both

    def pooled(self, sums: ClassGrams, average: Array | None) -> Array:
        """Return one covariance for all classes, averaged by their weights or by the priors `average`."""
        by = sums.weight / sums.weight.sum() if average is None else average
        return constrained(np.einsum("k,kij->ij", by, self.by_class(sums)), self.form)

    def separate(self, sums: ClassGrams) -> Array:
        """Return a separate covariance for each class."""
        S = self.by_class(sums)
        if self.form != "full":
            S = np.stack([constrained(one, self.form) for one in S])
        return (1 - self.ridge) * S + self.ridge * np.eye(S.shape[1]) if self.ridge else S


def triangular(A: Array) -> Array:
    """Return the unique lower triangular matrix with the same A A' and a non-negative diagonal."""
    R = linalg.qr(A.T, mode="r")[0][: A.shape[1]]
    return np.ascontiguousarray((R * np.where(np.diag(R) < 0, -1.0, 1.0)[:, None]).T)


def _per_row(A: Array, T: Array, away: Array) -> tuple[float, float]:
    """Return the brackets of (1) and (2) for one class."""
    z = float((away @ A) @ (away @ A))
    sizes, inverse = np.linalg.eigvalsh(np.stack([A.T @ T @ A, A.T @ A]))
    log_det = np.log(np.maximum(inverse, _TINY)).sum()
    value = A.shape[1] * np.log(2 * np.pi) - log_det + sizes.sum() + z
    return float(value), float((sizes - 1 - np.log(np.maximum(sizes, _TINY))).sum() + z)


def _rounding(A: Array, S: Array, weight: float) -> float:
    """Rounding error of (1): eps times the sum of the variance inflation factors S_jj (AA')_jj is that of log |S|."""
    return float(_ROUNDINGS * np.finfo(np.float64).eps * weight * np.diag(S) @ (A**2).sum(axis=1))


@schema.saved(
    means=_MEANS,
    A=schema.Array("float64", "n_features", "n_kept"),
    priors=_PRIORS,
    rule=schema.Object(CovarianceRule, n_classes="n_classes"),
    average=schema.Array("float64", "n_classes", low=0.0) | None,
)
@dataclass(frozen=True)
class LinearFit:
    """Means by class and the whitening matrix of one covariance; `average` are the priors that weight the classes."""

    means: Array
    A: Array
    priors: Priors
    rule: CovarianceRule
    average: Array | None
    statistic: ClassVar = ClassGrams

    def objective(self, sums: ClassGrams) -> tuple[float, float]:
        """Return (1) including the priors, and its suboptimality."""
        T, some = self.rule.pooled(sums, self.average), np.flatnonzero(sums.weight > 0)
        W, away = sums.weight[some], sums.mean_minus(self.means)[some]
        value, gap = _per_row(self.A, T, np.zeros(len(T)))
        apart = float(W @ ((away @ self.A) ** 2).sum(axis=1))
        n = float(W.sum())
        return self.priors.added(((n * value + apart) / 2, (n * gap + apart) / 2), sums.weight)

    def rounding(self, sums: ClassGrams) -> float:
        """Rounding error of the objective, if columns are nearly collinear."""
        return _rounding(self.A, self.rule.pooled(sums, self.average), float(sums.weight.sum()))


@schema.saved(
    means=_MEANS,
    A=schema.Array("float64", "n_classes", "n_features", "n_features"),
    priors=_PRIORS,
    rule=schema.Object(CovarianceRule, n_classes="n_classes"),
)
@dataclass(frozen=True)
class QuadraticFit:
    """Means and whitening matrices by class."""

    means: Array
    A: Array
    priors: Priors
    rule: CovarianceRule
    statistic: ClassVar = ClassGrams

    def objective(self, sums: ClassGrams) -> tuple[float, float]:
        """Return (1) including the priors, and its suboptimality."""
        value, gap, T, away = 0.0, 0.0, self.rule.separate(sums), sums.mean_minus(self.means)
        for k in np.flatnonzero(sums.weight > 0).tolist():
            one, more = _per_row(self.A[k], T[k], away[k])
            value, gap = value + sums.weight[k] * one / 2, gap + sums.weight[k] * more / 2
        return self.priors.added((float(value), float(gap)), sums.weight)

    def rounding(self, sums: ClassGrams) -> float:
        """Rounding error of the objective, if columns are nearly collinear."""
        return sum(map(_rounding, self.A, self.rule.separate(sums), sums.weight.tolist()))
