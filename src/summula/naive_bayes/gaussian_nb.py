"""Gaussian naive Bayes: given the class, the features of a row are independent normal variables.

With W_k the weight of class k, W that of all rows, m_kj and s2_kj the mean and variance of feature j in class k,

    pi_k = W_k / W,   theta_kj = m_kj,   v_kj = s2_kj + eps,   eps = var_smoothing max_j Var(x_j)               (1)
    log P(x, k) = log pi_k - 1/2 sum_j [log(2 pi v_kj) + (x_j - theta_kj)^2 / v_kj]                             (2)

(1) minimises, over pi, theta and v, the negative log-likelihood with every variance widened by eps,

    J = - sum_k W_k log pi_k + 1/2 sum_kj W_k [log(2 pi v_kj) + (s2_kj + eps + (m_kj - theta_kj)^2) / v_kj]     (3)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from summula.core.data.blocks import product, scratch_block
from summula.core.data.chunks import Chunk
from summula.core.estimator.additive import AdditiveClassifier
from summula.core.estimator.certificates import SAVED_CERTIFICATE, StatisticCertificate
from summula.core.estimator.classifier import GenerativeClassifier, class_priors
from summula.core.estimator.parameters import Parameters, array_like, none, real
from summula.core.model_files import schema
from summula.core.numerics.statistics import Moments

__all__ = ["GaussianFit", "GaussianNB"]

Array = NDArray[Any]
_TINY = np.finfo(np.float64).tiny  # the variance of constant features, for which any other value is impossible
_BY_CLASS, _TABLE = schema.Array("float64", "n_classes", low=0.0), schema.Array("float64", "n_classes", "n_features")


@schema.saved(theta=_TABLE, var=_TABLE, prior=_BY_CLASS, eps=schema.Real(0.0), estimated=schema.Flag())
@dataclass(frozen=True)
class GaussianFit:
    """The numbers theta, v, pi and eps of a model; `estimated` says whether pi is (1), or given."""

    theta: Array
    var: Array
    prior: Array
    eps: float
    estimated: bool
    statistic: ClassVar = Moments

    def objective(self, sums: Moments) -> tuple[float, float]:
        """(3), for given pi without its first term, and its distance from the minimum, reached at (1)."""
        some = sums.weight[:, 0] > 0
        W, v, best = sums.weight[some, 0], self.var[some], np.maximum(sums.variance[some] + self.eps, _TINY)
        ratio = (best + (sums.mean[some] - self.theta[some]) ** 2) / v
        value = W @ (np.log(2 * np.pi * v) + ratio).sum(axis=1) / 2
        gap = W @ (ratio - 1 - np.log(best / v)).sum(axis=1) / 2
        if self.estimated:
            value, gap = value - W @ np.log(self.prior[some]), gap + W @ np.log(W / W.sum() / self.prior[some])
        return float(value), float(gap)


@schema.saved(class_count_=_BY_CLASS, class_prior_=_BY_CLASS, theta_=_TABLE, var_=_TABLE, epsilon_=schema.Real(0.0),
              certificate_=SAVED_CERTIFICATE)  # fmt: skip
class GaussianNB(AdditiveClassifier, GenerativeClassifier):
    """Naive Bayes for normally distributed features.

    Parameters
    ----------
    priors : array-like of shape (n_classes,), optional
        Probabilities of the classes, in the order of `classes_`; by default their shares of the rows.
    var_smoothing : float, default=1e-9
        Portion of the largest variance of all features that is added to every variance.

    Attributes
    ----------
    classes_, class_count_, class_prior_ : ndarray of shape (n_classes,)
        Label, weight of the training rows, and probability of each class; a class without rows is never predicted.
    theta_, var_ : ndarray of shape (n_classes, n_features)
        Mean and variance of each feature in each class.
    epsilon_ : float
        What was added to the variances.
    certificate_ : StatisticCertificate
        The objective (3) and its distance from the minimum.

    References
    ----------
    Hastie, Tibshirani, Friedman, The Elements of Statistical Learning, section 6.6.3.

    Examples
    --------
    >>> from summula.naive_bayes import GaussianNB
    >>> GaussianNB().fit([[-2.0], [-1.0], [1.0], [2.0]], ["low", "low", "high", "high"]).predict([[-0.8], [0.1]])
    array(['low', 'high'], dtype='<U4')
    """

    _accepts_sparse, _statistic = False, Moments
    _parameters: ClassVar[Parameters] = {"priors": (none, array_like), "var_smoothing": (real(0.0),)}

    def __init__(self, *, priors: Any = None, var_smoothing: float = 1e-9) -> None:
        self.priors, self.var_smoothing = priors, var_smoothing

    def _solve(self, sums: Moments) -> None:
        W = self.class_count_ = sums.weight[:, 0]
        self.class_prior_ = class_priors(self, W)
        self.theta_, variance = np.nan_to_num(sums.mean), np.nan_to_num(sums.variance)
        spread = W @ (variance + (self.theta_ - W @ self.theta_ / W.sum()) ** 2) / W.sum()
        self.epsilon_ = float(self.var_smoothing * spread.max())
        self.var_ = variance + self.epsilon_  # (1)
        v = np.maximum(self.var_, _TINY)
        fit = GaussianFit(self.theta_, v, self.class_prior_, self.epsilon_, self.priors is None)
        self.certificate_ = StatisticCertificate.of(fit, sums, kind="exact", classes=self.classes_)

    def _log_joint(self, chunk: Chunk) -> Array:
        X, joint = chunk.block(np.float64), np.full((len(chunk), len(self.classes_)), -np.inf)
        away = scratch_block("difference", *X.shape)
        for k in np.flatnonzero(self.class_count_):
            v = np.maximum(self.var_[k], _TINY)
            np.square(np.subtract(X, self.theta_[k], out=away), out=away)
            joint[:, k] = np.log(self.class_prior_[k]) - np.log(2 * np.pi * v).sum() / 2
            joint[:, k] -= product(away, (0.5 / v)[:, None])[:, 0]  # (2)
        return joint
