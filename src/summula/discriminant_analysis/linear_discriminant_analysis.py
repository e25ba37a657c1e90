"""Linear discriminant analysis: normal classes with a shared covariance, and Fisher's discriminant directions.

With class means m_k, priors pi_k, m = sum_k pi_k m_k, the pooled covariance S, and A with A'SA = I,

    log P(x, k) = q(x) + log pi_k + (m_k - m)' A A' (x - m) - 1/2 ||A'(m_k - m)||^2                             (1)
    q(x) = -1/2 [d log 2 pi + log |S| + ||A'(x - m)||^2]                                                        (2)

(2) is the same for all classes, so decisions are linear in x, and the posterior of two classes is a logistic function.
The directions are those in which the means, once rows are whitened by A, differ most:

    scalings = A V,   V the right singular vectors of the rows sqrt(pi_k) A'(m_k - m)                           (3)

S is the scatter about the class means divided by n, the maximum likelihood estimate. If priors are given,
`solver="lsqr"` and `"eigen"`, shrinkage and `covariance_estimator` average the covariances of the classes by these.
Directions in which classes do not vary, as with more columns than rows, are excluded from A.

Reference: Hastie, Tibshirani, Friedman, The Elements of Statistical Learning, section 4.3.
"""

from __future__ import annotations

import functools
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, special
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import check_is_fitted

from summula.core.data.chunks import Chunk
from summula.core.data.layout.blocks import product
from summula.core.docstrings import inherit_docs
from summula.core.errors import DataError, ParameterError
from summula.core.estimator.parameters import Allowed, boolean, integer, none, one_of
from summula.core.estimator.transformer import Transformer
from summula.core.model_files import schema
from summula.discriminant_analysis.class_grams import ClassGrams
from summula.discriminant_analysis.gaussian_classifier import PARAMETERS, GaussianClassifier, whitening
from summula.discriminant_analysis.gaussian_fits import LinearFit, triangular

__all__ = ["LinearDiscriminantAnalysis"]

Array = NDArray[np.float64]

_EPS = np.finfo(np.float64).eps


@inherit_docs()
@schema.saved(
    xbar_=schema.Array("float64", "n_features"),
    coef_=schema.Array("float64", "n_scores", "n_features"),
    intercept_=schema.Array("float64", "n_scores", finite=False),
    scalings_=schema.Array("float64", "n_features", "n_directions"),
    explained_variance_ratio_=schema.Array("float64", "n_components"),
    covariance_=schema.Maybe(schema.Array("float64", "n_features", "n_features")),
    _coefs=schema.Array("float64", "n_classes", "n_features"),
    _intercepts=schema.Array("float64", "n_classes", finite=False),
    _whitening=schema.Array("float64", "n_features", "n_kept"),
    _log_det=schema.Real(),
    _max_components=schema.Integer(0),
)
class LinearDiscriminantAnalysis(ClassNamePrefixFeaturesOutMixin, Transformer, GaussianClassifier):
    """Linear discriminant analysis: normally distributed classes that share one covariance.

    Parameters
    ----------
    solver : {"auto", "svd", "lsqr", "eigen"}, default="auto"
        With `priors`, "svd" (the same as "auto") pools the rows of all classes for the covariance, and the others
        average the covariances of the classes by these priors, as in scikit-learn. Otherwise there is no difference.
    shrinkage : "auto" or float in [0, 1], optional
        Weight of a multiple of the identity in the covariances of the classes; "auto" uses the Ledoit-Wolf estimate on
        standardised columns. Works with every solver.
    n_components : int, optional
        Number of columns of `transform`, at most min(n_classes - 1, n_features).
    store_covariance : bool, default=False
        Whether to store `covariance_` with solver "svd", too.
    tol : float, default=1e-4
        Directions whose standard deviation within classes, in standardised columns, is at most `tol` are excluded.
    covariance : {"full", "diag", "spherical"}, default="full"
        Whether columns are correlated within classes, independent ("diagonal" is the same), or independent with one
        common variance ("isotropic").

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features), or (1, n_features) for two classes
    intercept_ : ndarray of shape (n_classes,) or (1,)
    covariance_ : ndarray of shape (n_features, n_features)
    xbar_ : ndarray of shape (n_features,)
        Mean of the class means, weighted by the priors.
    scalings_ : ndarray of shape (n_features, n_directions)
        The directions (3), one per column.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Fraction of the between-class variance along each direction.
    certificate_ : StatisticCertificate
        The objective minimised by means, covariance and priors (`gaussian_fits`), and its suboptimality.

    References
    ----------
    Hastie, Tibshirani, Friedman, The Elements of Statistical Learning, section 4.3.

    Examples
    --------
    >>> from summula.discriminant_analysis import LinearDiscriminantAnalysis
    >>> X = [[-1.0, -1.0], [-2.0, -1.0], [-3.0, -2.0], [1.0, 1.0], [2.0, 1.0], [3.0, 2.0]]
    >>> LinearDiscriminantAnalysis().fit(X, [1, 1, 1, 2, 2, 2]).predict([[-0.8, -1.0]])
    array([1])
    """

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        **PARAMETERS,
        "solver": (one_of("auto", "svd", "lsqr", "eigen"),),
        "n_components": (none, integer(1)),
        "store_covariance": (boolean,),
    }
    _no_svd = "covariance estimator is not supported with svd solver. Try another solver."

    def __init__(
        self,
        solver: str = "auto",
        shrinkage: Any = None,
        priors: Any = None,
        n_components: int | None = None,
        store_covariance: bool = False,
        tol: float = 1e-4,
        covariance_estimator: Any = None,
        covariance: str = "full",
    ) -> None:
        self.solver, self.shrinkage, self.priors, self.n_components = solver, shrinkage, priors, n_components
        self.store_covariance, self.tol, self.covariance = store_covariance, tol, covariance
        self.covariance_estimator = covariance_estimator

    def _solve(self, sums: ClassGrams) -> None:
        some = sums.weight > 0
        K = int(some.sum())
        if sums.count.sum() <= K:
            raise DataError(
                f"The number of samples must be more than the number of classes: there are {int(sums.count.sum())} "
                f"rows of {K} classes, which do not determine the covariance within classes; fit more rows."
            )
        self.priors_ = self._checked(sums)
        self.means_, self.xbar_ = sums.mean, self.priors_ @ sums.mean
        pooled = self.solver in ("auto", "svd") and self.shrinkage is None and self.covariance_estimator is None
        rule, average = self._rule(), None if pooled else self.priors_
        S = rule.pooled(sums, average)
        self.__dict__.pop("covariance_", None)
        if self.solver in ("lsqr", "eigen") or self.store_covariance:
            self.covariance_ = S
        A, self._log_det = whitening(S, self.tol)
        self._whitening = A
        away = self.means_ - self.xbar_
        white = away @ A
        with np.errstate(divide="ignore"):
            log_priors = np.log(self.priors_)
        coef = white @ A.T
        intercept = log_priors - 0.5 * (white**2).sum(axis=1) - coef @ self.xbar_  # (1)
        self._name_directions(white)
        self._coefs, self._intercepts = coef, intercept
        two = len(self.classes_) == 2
        with np.errstate(invalid="ignore"):
            self.coef_ = coef[1:] - coef[:1] if two else coef
            self.intercept_ = intercept[1:] - intercept[:1] if two else intercept
        self._certify(LinearFit(self.means_, triangular(A), self._fitted_priors(), rule, average), sums)

    def _name_directions(self, white: Array) -> None:
        """Set the directions (3), and the fraction of between-class variance explained by each."""
        limit = min(len(self.classes_) - 1, len(self.xbar_))
        if self.n_components is not None and self.n_components > limit:
            raise ParameterError(
                f"n_components cannot be larger than min(n_features, n_classes - 1) = {limit}; got {self.n_components}."
            )
        self._max_components = limit if self.n_components is None else int(self.n_components)
        between = np.sqrt(self.priors_)[:, None] * white
        _, singular, Vt = linalg.svd(between, full_matrices=False)
        kept = singular > self.tol * max(singular.max(initial=0.0), _EPS)
        squares = singular**2
        self.scalings_ = self._whitening @ Vt[kept].T
        self.explained_variance_ratio_ = (squares / max(squares.sum(), _EPS))[: self._max_components]

    # ---- results for rows

    def _scores(self, chunk: Chunk) -> Array:
        return np.asarray(chunk.times(self._coefs.T) + self._intercepts)

    def _log_joint(self, chunk: Chunk) -> Array:
        """Return (1) with (2)."""
        A = self._whitening
        z = product(chunk.block(np.float64, self.xbar_), A)
        white = (self.means_ - self.xbar_) @ A
        with np.errstate(divide="ignore"):
            constant = np.log(self.priors_) - 0.5 * (white**2).sum(axis=1)
        q = -0.5 * (A.shape[1] * np.log(2 * np.pi) + self._log_det + (z * z).sum(axis=1))
        return np.asarray(product(z, white.T) + constant + q[:, None])

    def predict_joint_log_proba(self, X: Any) -> Any:
        """Compute the logarithm of the joint density of the row and each class (1).

        Parameters
        ----------
        X : {array-like, frame, scan, Dask collection} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes); batches for a scan
        """
        check_is_fitted(self)
        return self._by_row(X, self._log_joint)

    def score_samples(self, X: Any) -> Any:
        """Compute the log density of each row, marginalised over the classes; small for outliers.

        Only directions that vary within classes are used, if columns are linearly dependent.

        Parameters
        ----------
        X : {array-like, frame, scan, Dask collection} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,); batches for a scan
        """
        check_is_fitted(self)
        return self._by_row(X, self._log_joint, functools.partial(special.logsumexp, axis=1))

    def _n_outputs(self) -> int:
        return int(min(self._max_components, self.scalings_.shape[1]))

    @property
    def _n_features_out(self) -> int:
        return self._n_outputs()

    def _write_rows(self, chunk: Chunk, out: Array) -> None:
        origin = None if self.solver == "eigen" else self.xbar_
        out[...] = product(chunk.block(np.float64, origin), self.scalings_[:, : self._n_outputs()])
