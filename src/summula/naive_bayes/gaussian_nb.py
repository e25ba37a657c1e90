"""Gaussian naive Bayes: given the class, the features of a row are independent normal variables.

With W_k the weight of class k and W that of all rows,

    pi_k = W_k / W                                                                                              (1)
    log P(x, k) = log pi_k + log p(x | k),   p(x | k) of `normal_columns`                                       (2)

(1), with the means and variances of `normal_columns`, minimises the negative log-likelihood of rows and classes,

    - sum_k W_k log pi_k + J,   J the objective of the columns, with every variance increased by eps            (3)

A missing value is excluded from the sums of its column, and from (2), which marginalises over it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.estimator.additive import AdditiveClassifier
from summula.core.estimator.certificates import SAVED_CERTIFICATE, StatisticCertificate
from summula.core.estimator.classifier import GenerativeClassifier, class_priors
from summula.core.estimator.parameters import Parameters, array_like, none, real
from summula.core.model_files import schema
from summula.core.numerics.priors import Priors
from summula.naive_bayes.normal_columns import ClassMoments, NormalColumns

__all__ = ["GaussianFit", "GaussianNB"]

Array = NDArray[Any]
_BY_CLASS, _TABLE = schema.Array("float64", "n_classes", low=0.0), schema.Array("float64", "n_classes", "n_features")


@schema.saved(columns=schema.Object(NormalColumns, n_classes="n_classes", n_normal="n_features"),
              priors=schema.Object(Priors, n_classes="n_classes"))  # fmt: skip
@dataclass(frozen=True)
class GaussianFit:
    """The parameters of a model, and its objective (3)."""

    columns: NormalColumns
    priors: Priors
    statistic: ClassVar = ClassMoments

    def objective(self, sums: ClassMoments) -> tuple[float, float]:
        """Return (3) and its suboptimality."""
        return self.priors.added(self.columns.objective(sums.moments), sums.weight)


@schema.saved(class_count_=_BY_CLASS, class_prior_=_BY_CLASS, theta_=_TABLE, var_=_TABLE, epsilon_=schema.Real(0.0),
              certificate_=SAVED_CERTIFICATE)  # fmt: skip
class GaussianNB(AdditiveClassifier, GenerativeClassifier):
    """Naive Bayes for normally distributed features; missing values are ignored.

    Parameters
    ----------
    priors : array-like of shape (n_classes,), optional
        Class probabilities, in the order of `classes_`; by default the class proportions.
    var_smoothing : float, default=1e-9
        Fraction of the largest variance of all features that is added to every variance.

    Attributes
    ----------
    classes_, class_count_, class_prior_ : ndarray of shape (n_classes,)
        Label, weight of the training rows, and probability of each class; a class without rows is never predicted.
    theta_, var_ : ndarray of shape (n_classes, n_features)
        Mean and variance of each feature in each class.
    epsilon_ : float
        Value added to the variances.
    certificate_ : StatisticCertificate
        The objective (3) and its suboptimality.

    References
    ----------
    Hastie, Tibshirani, Friedman, The Elements of Statistical Learning, section 6.6.3.

    Examples
    --------
    >>> from summula.naive_bayes import GaussianNB
    >>> GaussianNB().fit([[-2.0], [-1.0], [1.0], [2.0]], ["low", "low", "high", "high"]).predict([[-0.8], [0.1]])
    array(['low', 'high'], dtype='<U4')
    """

    _accepts_sparse, _allows_nan, _statistic = False, True, ClassMoments
    _parameters: ClassVar[Parameters] = {"priors": (none, array_like), "var_smoothing": (real(0.0),)}

    def __init__(self, *, priors: Any = None, var_smoothing: float = 1e-9) -> None:
        self.priors, self.var_smoothing = priors, var_smoothing

    def _solve(self, sums: ClassMoments) -> None:
        self.class_count_, self.class_prior_ = sums.weight, class_priors(self, sums.weight)
        columns = NormalColumns.of(sums.moments, self.var_smoothing)
        self.theta_, self.var_, self.epsilon_ = columns.theta, columns.var, columns.eps
        fit = GaussianFit(columns, Priors(self.class_prior_, self.priors is None))
        self.certificate_ = StatisticCertificate.of(fit, sums, kind="exact", classes=self.classes_)

    def _log_joint(self, chunk: Chunk) -> Array:
        X, joint = chunk.block(np.float64), np.full((len(chunk), len(self.classes_)), -np.inf)
        columns = NormalColumns(self.theta_, self.var_, self.epsilon_)
        for k in np.flatnonzero(self.class_count_):
            joint[:, k] = np.log(self.class_prior_[k]) + columns.log_density(X, k)  # (2)
        return joint
