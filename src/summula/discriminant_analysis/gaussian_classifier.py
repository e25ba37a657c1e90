"""Base class of discriminant analysis: sums by class, priors, covariances and their shrinkage."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if

from summula.core.errors import DataError, ParameterError, warn
from summula.core.estimator.additive import AdditiveClassifier
from summula.core.estimator.certificates import SAVED_CERTIFICATE, StatisticCertificate
from summula.core.estimator.classifier import ComparedClassifier, GenerativeClassifier, class_priors
from summula.core.estimator.input.argument_values import numbers_in
from summula.core.estimator.input.finiteness import raise_if_products_overflow
from summula.core.estimator.parameters import Allowed, array_like, none, one_of, real
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.core.numerics.grouped import Grouped
from summula.core.numerics.priors import Priors
from summula.discriminant_analysis.class_grams import ClassFourthPowers, ClassGrams
from summula.discriminant_analysis.gaussian_fits import CovarianceRule, deviations
from summula.stats.covariance import COVARIANCE_NAMES, covariance_form, ledoit_wolf_share

__all__ = ["PARAMETERS", "GaussianClassifier", "least_eigenvalue", "whitening"]

Array = NDArray[np.float64]

_EPS = np.finfo(np.float64).eps
_LARGEST_TOL = 1e150  # whose square does not overflow

PARAMETERS: dict[str, tuple[Allowed, ...]] = {
    "priors": (none, array_like),
    "shrinkage": (none, one_of("auto"), real(0.0, 1.0)),
    "covariance": (one_of(*COVARIANCE_NAMES),),
    "tol": (real(0.0),),
    "covariance_estimator": (none, Allowed(lambda value: hasattr(value, "fit"), "an object with a fit method")),
}


def _is_additive(model: Any) -> bool:
    if model.shrinkage == "auto":
        raise ParameterError(
            "shrinkage='auto' needs a second pass over the rows, centred at means that "
            "further rows would change; fit again on all rows, or pass shrinkage as a number."
        )
    if model.covariance_estimator is not None:
        raise ParameterError("covariance_estimator needs all rows of a class at once; fit again on all rows.")
    return True


@schema.state(
    means_=schema.Array("float64", "n_classes", "n_features"),
    priors_=schema.Array("float64", "n_classes", low=0.0),
    _shares=schema.Array("float64", "n_classes") | None,
    _given=schema.Maybe(schema.Array("float64", "n_classes", "n_features", "n_features")),
    certificate_=SAVED_CERTIFICATE,
)
class GaussianClassifier(ComparedClassifier, GenerativeClassifier, AdditiveClassifier):
    """Base class of classifiers with normal distributions; subclasses have `priors`, `covariance`, `shrinkage`.

    Parameters
    ----------
    priors : array-like of shape (n_classes,), optional
        Class probabilities; by default the class proportions.
    covariance_estimator : object with `fit` and `covariance_`, optional
        Estimator of the covariance of each class from its rows, such as `sklearn.covariance.OAS()`, instead of the
        sums. Needs the rows in memory, without weights, and cannot be combined with `shrinkage` or `solver="svd"`.

    Attributes
    ----------
    means_ : ndarray of shape (n_classes, n_features)
    priors_, classes_ : ndarray of shape (n_classes,)
    """

    _accepts_sparse = False
    _statistic = ClassGrams
    _standardises = True
    _no_svd: ClassVar[str]

    priors: Any
    covariance: str
    shrinkage: Any
    solver: str
    covariance_estimator: Any
    priors_: Array
    _shares: Array | None
    _given: Array | None = None

    def _sums_of(self, run: Run) -> ClassGrams:
        """Compute the sums in one pass; Ledoit-Wolf shrinkage needs a second one about the means of the first."""
        if self.covariance_estimator is not None:
            self._check_estimator(run)
        sums: ClassGrams = super()._sums_of(run)
        self._shares = None
        self.__dict__.pop("_given", None)
        if self.covariance_estimator is not None:
            self._given = self._estimated(run)
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
        """Return the rule that converts sums to covariances."""
        shares = self._shares
        if shares is None and self.shrinkage is not None:
            shares = np.full(len(self.classes_), float(self.shrinkage))
        return CovarianceRule(
            covariance_form(self.covariance), shares, self.shrinkage == "auto", float(ridge), self._given
        )

    def _check_estimator(self, run: Run) -> None:
        """Raise if `covariance_estimator` cannot be used."""
        if self.shrinkage is not None:
            raise ParameterError(
                "covariance_estimator and shrinkage parameters are not None. Only one of the two can be set."
            )
        if self.solver == "svd":
            raise ParameterError(self._no_svd)
        if run.source.streams:
            raise DataError(
                f"{type(self).__name__} with covariance_estimator needs its rows in memory, but X is in files or a "
                "Dask collection: use shrinkage='auto', or pass an array with a subset of the rows."
            )

    def _estimated(self, run: Run) -> Array:
        """Return the covariance of each class by `covariance_estimator`; the identity for classes without rows."""
        chunk = run.source.chunk(0, run.source.n_rows)
        if chunk.weight is not None:
            raise ParameterError(
                "covariance_estimator does not support weights: omit sample_weight, or use shrinkage='auto'."
            )
        assert chunk.codes is not None
        X, d = chunk.block(np.float64), chunk.n_features
        found = np.tile(np.eye(d), (len(self.classes_), 1, 1))
        for k in np.unique(chunk.codes).tolist():
            estimator = clone(self.covariance_estimator, safe=False)
            estimator.fit(X[chunk.codes == k])
            S = getattr(estimator, "covariance_", None)
            if S is None or np.shape(S) != (d, d):
                raise ParameterError(
                    f"{type(estimator).__name__} has no attribute covariance_ of shape ({d}, {d}) after fit: "
                    "pass an estimator such as sklearn.covariance.OAS() as covariance_estimator."
                )
            found[k] = S
        return found

    def _certify(self, fit: Any, sums: ClassGrams) -> None:
        certificate = StatisticCertificate.of(fit, sums, kind="exact", classes=self.classes_)
        relative = fit.rounding(sums) / max(abs(certificate.primal), np.finfo(np.float64).tiny)
        self.certificate_ = replace(certificate, unit=max(certificate.unit, relative))

    def _fitted_priors(self) -> Priors:
        return Priors(self.priors_, self.priors is None)

    def _checked(self, sums: ClassGrams) -> Array:
        """Return the priors of the classes; raise if no model can be fitted."""
        rows = int(sums.count.sum())
        if rows <= len(self.classes_) and rows < 2:
            raise DataError(f"{type(self).__name__} needs at least two rows; there is {rows}.")
        raise_if_products_overflow(sums.products)
        priors = self.priors
        if priors is None:
            return np.asarray(sums.weight / sums.weight.sum())
        given = numbers_in("priors", priors)
        if given.shape == sums.weight.shape and (given < 0).any():
            raise ParameterError("priors must be non-negative")
        if given.shape == sums.weight.shape and not np.isclose(given.sum(), 1.0):
            warn(f"The priors do not sum to 1 but to {given.sum():.6g}. Renormalizing", UserWarning)
            return np.asarray(given / given.sum())
        return np.array(class_priors(self, sums.weight))  # a copy: the parameter may change afterwards


def least_eigenvalue(tol: float, columns: int) -> float:
    """Return the variance of standardised columns below which a direction counts as constant."""
    return float(max(min(tol, _LARGEST_TOL) ** 2, columns * _EPS))


def whitening(S: Array, tol: float) -> tuple[Array, float]:
    """Return A with A'SA = I on the range of S, and the logarithm of the pseudo-determinant of S.

    Columns are standardised first, so that the rank does not depend on their units.
    """
    variance = np.diag(S)
    scale = np.where(variance > 0, np.sqrt(np.maximum(variance, 0.0)), 1.0)
    values, U = linalg.eigh(S / np.outer(scale, scale))
    kept = values > least_eigenvalue(tol, len(S))
    A = (U[:, kept] / np.sqrt(values[kept])) / scale[:, None]
    some = variance > 0
    return np.ascontiguousarray(A), float(np.log(values[kept]).sum() + 2 * np.log(scale[some]).sum())
