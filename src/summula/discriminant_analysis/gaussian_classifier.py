"""Base class of discriminant analysis: sums by class, priors, covariances and their shrinkage."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from sklearn.utils.metaestimators import available_if

from summula.core.errors import DataError, ParameterError, warn
from summula.core.estimator.additive import AdditiveClassifier
from summula.core.estimator.certificates import SAVED_CERTIFICATE, StatisticCertificate
from summula.core.estimator.classifier import ComparedClassifier, GenerativeClassifier, class_priors
from summula.core.estimator.parameters import Allowed, array_like, none, one_of, real
from summula.core.estimator.priors import Priors
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.core.numerics.grouped import Grouped
from summula.discriminant_analysis.class_grams import ClassFourthPowers, ClassGrams
from summula.discriminant_analysis.gaussian_fits import CovarianceRule, deviations
from summula.stats.covariance import COVARIANCES, ledoit_wolf_share

__all__ = ["PARAMETERS", "GaussianClassifier", "whitening"]

Array = NDArray[np.float64]

_EPS = np.finfo(np.float64).eps

PARAMETERS: dict[str, tuple[Allowed, ...]] = {
    "priors": (none, array_like),
    "shrinkage": (none, one_of("auto"), real(0.0, 1.0)),
    "covariance": (one_of(*COVARIANCES),),
    "tol": (real(0.0),),
}


def _is_additive(model: Any) -> bool:
    if model.shrinkage == "auto":
        raise ParameterError(
            "shrinkage='auto' looks at the rows a second time, about means that further rows would move; fit again on "
            "all rows, or give shrinkage as a number."
        )
    return True


@schema.state(
    means_=schema.Array("float64", "n_classes", "n_features"),
    priors_=schema.Array("float64", "n_classes", low=0.0),
    _shares=schema.Array("float64", "n_classes") | None,
    certificate_=SAVED_CERTIFICATE,
)
class GaussianClassifier(ComparedClassifier, GenerativeClassifier, AdditiveClassifier):
    """Classes by normal distributions; subclasses have `priors`, `covariance` and `shrinkage`.

    Parameters
    ----------
    priors : array-like of shape (n_classes,), optional
        Probabilities of the classes; by default their shares of the rows.
    covariance_estimator : None, default=None
        For compatibility with scikit-learn; other estimators of covariances are not supported.

    Attributes
    ----------
    means_ : ndarray of shape (n_classes, n_features)
    priors_, classes_ : ndarray of shape (n_classes,)
    """

    _accepts_sparse = False
    _statistic = ClassGrams

    priors: Any
    covariance: str
    shrinkage: Any
    priors_: Array
    _shares: Array | None

    def _sums_of(self, run: Run) -> ClassGrams:
        """Sums of one pass; with Ledoit-Wolf shrinkage a second one about the means of the first."""
        sums: ClassGrams = super()._sums_of(run)
        self._shares = None
        if self.shrinkage == "auto":
            scale = deviations(sums)
            fourth = run.sum(Grouped(ClassFourthPowers, len(self.classes_)), (sums.mean, scale))
            self._shares = np.zeros(len(self.classes_))
            for k in np.flatnonzero(sums.weight > 0):
                correlation = sums.scatter[k] / sums.weight[k] / np.outer(scale[k], scale[k])
                self._shares[k] = ledoit_wolf_share(correlation, float(fourth.total[k]), float(sums.weight[k]))
        return sums

    partial_fit = available_if(_is_additive)(AdditiveClassifier.partial_fit)
    forget = available_if(_is_additive)(AdditiveClassifier.forget)
    merge = available_if(_is_additive)(AdditiveClassifier.merge)

    def _rule(self, ridge: float = 0.0) -> CovarianceRule:
        """Return the rule that turns sums into covariances."""
        shares = self._shares
        if shares is None and self.shrinkage is not None:
            shares = np.full(len(self.classes_), float(self.shrinkage))
        return CovarianceRule(self.covariance, shares, self.shrinkage == "auto", float(ridge))

    def _certify(self, fit: Any, sums: ClassGrams) -> None:
        self.certificate_ = StatisticCertificate.of(fit, sums, kind="exact", classes=self.classes_)

    def _fitted_priors(self) -> Priors:
        return Priors(self.priors_, self.priors is None)

    def _checked(self, sums: ClassGrams) -> Array:
        """Priors of the classes; refuses what no model follows from."""
        rows = int(sums.count.sum())
        if rows <= len(self.classes_) and rows < 2:
            raise DataError(f"{type(self).__name__} needs at least two rows; there is {rows}.")
        priors = self.priors
        if priors is None:
            return np.asarray(sums.weight / sums.weight.sum())
        given = np.asarray(priors, np.float64)
        if given.shape == sums.weight.shape and (given < 0).any():
            raise ParameterError("priors must be non-negative")
        if given.shape == sums.weight.shape and not np.isclose(given.sum(), 1.0):
            warn(f"The priors do not sum to 1 but to {given.sum():.6g}. Renormalizing", UserWarning)
            return np.asarray(given / given.sum())
        return np.array(class_priors(self, sums.weight))  # a copy: the parameter may change afterwards


def whitening(S: Array, tol: float) -> tuple[Array, float]:
    """A with A'SA = I on the directions in which S varies, and the logarithm of the determinant of S there.

    Columns are standardised first, so that their units make no difference to the rank.
    """
    variance = np.diag(S)
    scale = np.where(variance > 0, np.sqrt(np.maximum(variance, 0.0)), 1.0)
    values, U = linalg.eigh(S / np.outer(scale, scale))
    kept = values > max(tol**2, len(S) * _EPS)
    A = (U[:, kept] / np.sqrt(values[kept])) / scale[:, None]
    some = variance > 0
    return np.ascontiguousarray(A), float(np.log(values[kept]).sum() + 2 * np.log(scale[some]).sum())
