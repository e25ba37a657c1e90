"""Quadratic discriminant analysis: normal classes, each with a separate covariance.

With the mean m_k, the prior pi_k and the covariance S_k = R_k diag(s_k) R_k' of class k,

    log P(x, k) = log pi_k - 1/2 [d log 2 pi + sum_j log s_kj + sum_j (r_kj'(x - m_k))^2 / s_kj]                (1)

so the boundary between two classes is a quadric. Columns are standardised internally, so that their units have no
effect. S_k is the scatter of the class divided by n_k, the maximum likelihood estimate.
`reg_param` shrinks its eigenvalues towards 1:  s <- (1 - reg_param) s + reg_param.

Reference: Hastie, Tibshirani, Friedman, The Elements of Statistical Learning, section 4.3.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from summula.core.data.chunks import Chunk
from summula.core.data.layout.blocks import product
from summula.core.docstrings import inherit_docs
from summula.core.errors import DataError
from summula.core.estimator.parameters import Allowed, boolean, one_of, real
from summula.core.model_files import schema
from summula.discriminant_analysis.class_grams import ClassGrams
from summula.discriminant_analysis.gaussian_classifier import PARAMETERS, GaussianClassifier, least_eigenvalue
from summula.discriminant_analysis.gaussian_fits import QuadraticFit

__all__ = ["QuadraticDiscriminantAnalysis", "SingularCovarianceError"]

Array = NDArray[np.float64]

_EPS = np.finfo(np.float64).eps


class SingularCovarianceError(DataError, linalg.LinAlgError):
    """Raised if the rows of a class lie in a hyperplane, so that their covariance is singular."""


@inherit_docs()
@schema.saved(
    _covariances=schema.Array("float64", "n_classes", "n_features", "n_features"),
    covariance_=schema.Maybe(schema.Items(schema.Array("float64", "n_features", "n_features"), "n_classes")),
    _whitenings=schema.Array("float64", "n_classes", "n_features", "n_features"),
    _log_dets=schema.Array("float64", "n_classes"),
)
class QuadraticDiscriminantAnalysis(GaussianClassifier):
    """Quadratic discriminant analysis: normally distributed classes, each with its own covariance.

    Parameters
    ----------
    solver : {"auto", "svd", "eigen"}, default="auto"
        For compatibility with scikit-learn; it does not affect the result.
    shrinkage : "auto" or float in [0, 1], optional
        Weight of a multiple of the identity in each covariance; "auto" uses the Ledoit-Wolf estimate on standardised
        columns. Allows classes with fewer rows than columns.
    reg_param : float in [0, 1], default=0.0
        Shrinkage of the eigenvalues of each covariance towards 1.
    store_covariance : bool, default=False
        Whether to store `covariance_`.
    tol : float, default=1e-4
        A covariance with a standard deviation of at most `tol` in some direction, in standardised columns, is singular.
    covariance : {"full", "diag", "spherical"}, default="full"
        Whether columns are correlated within a class, independent ("diagonal" is the same), or independent with one
        common variance ("isotropic").

    Attributes
    ----------
    rotations_ : list of ndarray of shape (n_features, n_features)
        Axes of the ellipsoids of each class, one per column.
    scalings_ : list of ndarray of shape (n_features,)
        Variances along these axes.
    covariance_ : list of ndarray of shape (n_features, n_features)
    certificate_ : StatisticCertificate
        The objective minimised by means, covariances and priors (`gaussian_fits`), and its suboptimality.

    References
    ----------
    Hastie, Tibshirani, Friedman, The Elements of Statistical Learning, section 4.3.

    Examples
    --------
    >>> from summula.discriminant_analysis import QuadraticDiscriminantAnalysis
    >>> X = [[-1.0, -1.0], [-2.0, -1.0], [-3.0, -2.0], [1.0, 1.0], [2.0, 1.0], [3.0, 2.0]]
    >>> QuadraticDiscriminantAnalysis().fit(X, [1, 1, 1, 2, 2, 2]).predict([[-0.8, -1.0]])
    array([1])
    """

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        **PARAMETERS,
        "solver": (one_of("auto", "svd", "eigen"),),
        "reg_param": (real(0.0, 1.0),),
        "store_covariance": (boolean,),
    }
    _no_svd = "covariance_estimator is not supported with solver='svd'. Try solver='eigen' instead."

    def __init__(
        self,
        *,
        solver: str = "auto",
        shrinkage: Any = None,
        priors: Any = None,
        reg_param: float = 0.0,
        store_covariance: bool = False,
        tol: float = 1e-4,
        covariance_estimator: Any = None,
        covariance: str = "full",
    ) -> None:
        self.solver, self.shrinkage, self.priors, self.reg_param = solver, shrinkage, priors, reg_param
        self.store_covariance, self.tol, self.covariance = store_covariance, tol, covariance
        self.covariance_estimator = covariance_estimator

    def _solve(self, sums: ClassGrams) -> None:
        for k in np.flatnonzero(sums.count == 1).tolist():
            raise DataError(
                f"y has only 1 sample in class {self.classes_[k]}, but a covariance needs two: fit more rows of it, or "
                "use LinearDiscriminantAnalysis."
            )
        self.priors_, self.means_ = self._checked(sums), sums.mean
        rule, d = self._rule(self.reg_param), self.means_.shape[1]
        covariances = rule.separate(sums)
        self._covariances = np.tile(np.eye(d), (len(self.classes_), 1, 1))
        self._whitenings, self._log_dets = np.zeros_like(self._covariances), np.zeros(len(self.classes_))
        for k in np.flatnonzero(sums.weight > 0).tolist():
            S = self._covariances[k] = covariances[k]
            scale = np.sqrt(np.maximum(np.diag(S), 0.0))
            self._check_rank(k, S, scale)
            L = np.linalg.cholesky(S / (scale[:, None] * scale))
            self._whitenings[k] = linalg.lapack.dtrtrs(L, np.diag(1 / scale), lower=1)[0].T
            self._log_dets[k] = 2 * (np.log(np.diag(L)).sum() + np.log(scale).sum())
        self.__dict__.pop("covariance_", None)
        if self.store_covariance:
            self.covariance_ = list(self._covariances)
        self._certify(QuadraticFit(self.means_, self._whitenings, self._fitted_priors(), rule), sums)

    @property
    def scalings_(self) -> list[Array]:
        """Variances along the axes of each class, largest first."""
        return [np.maximum(linalg.eigvalsh(S)[::-1], 0.0) for S in self._covariances]

    @property
    def rotations_(self) -> list[Array]:
        """Axes of the ellipsoids of each class, one per column."""
        axes = [linalg.eigh(S)[1][:, ::-1] for S in self._covariances]
        # The sign of an axis is such that its largest coordinate is positive.
        return [R * np.sign(R[np.abs(R).argmax(axis=0), np.arange(R.shape[1])]) for R in axes]

    def _check_rank(self, k: int, S: Array, scale: Array) -> None:
        """Raise for a singular covariance, independent of the units; `scale` contains the standard deviations."""
        constant = np.flatnonzero(scale == 0)
        if not len(constant):
            least = np.linalg.eigvalsh(S / (scale[:, None] * scale))[0]
            if least > least_eigenvalue(self.tol, len(S)):
                return
        names = getattr(self, "feature_names_in_", np.arange(len(S)))[constant[:3]].tolist()
        cause = (
            f"columns {names} are constant in it"
            if names
            else "columns are linear combinations of others, or there are too few rows"
        )
        way = "When using `solver='svd'` increase reg_param" if self.solver == "svd" else "Increase reg_param"
        form = "" if names else " or covariance='diag'"  # which does not help with constant columns
        raise SingularCovarianceError(
            f"The covariance matrix of class {self.classes_[k]} is not full rank. {way}, use shrinkage='auto'{form}, "
            f"or drop columns: {cause}."
        )

    def _log_joint(self, chunk: Chunk) -> Array:
        joint = np.full((len(chunk), len(self.classes_)), -np.inf)
        for k in np.flatnonzero(self.priors_ > 0):
            z = product(chunk.block(np.float64, self.means_[k]), self._whitenings[k])
            constant = np.log(self.priors_[k]) - 0.5 * (z.shape[1] * np.log(2 * np.pi) + self._log_dets[k])
            joint[:, k] = constant - 0.5 * (z * z).sum(axis=1)  # (1)
        return joint

    def _decisions(self, chunk: Chunk) -> Array:
        """Return log joint densities without the constant d/2 log 2 pi."""
        return np.asarray(self._log_joint(chunk) + 0.5 * self.n_features_in_ * np.log(2 * np.pi))
