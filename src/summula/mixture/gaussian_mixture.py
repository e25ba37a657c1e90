"""Mixture of normal distributions: p(x) = sum_k pi_k N(x; mu_k, Sigma_k), fitted by expectation-maximisation.

The E-step and M-step are derived in `gaussians.py`, the loop in `summula.em`.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from summula.core.compilation.background import expect_kernels
from summula.core.data.chunks import Chunk
from summula.core.docstrings import inherit_docs
from summula.core.engine.random import draw_seed, stream_key
from summula.core.errors import CollapseWarning, DataError, ParameterError, warn
from summula.core.estimator.input.argument_values import numbers_in
from summula.core.estimator.parameters import Allowed, array_like, boolean, integer, none, one_of, real
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.mixture.base import SHARED_PARAMETERS, STARTS, Mixture, checked_weights
from summula.mixture.gaussian_em import GaussianEM, Given, collapsed_components, precision_factors
from summula.mixture.gaussians import Gaussians, log_joint

__all__ = ["GaussianMixture"]

Array = NDArray[Any]

_SPREADS = (
    schema.Array("float64", "n_components", "n_features", "n_features")
    | schema.Array("float64", "n_features", "n_features")
    | schema.Array("float64", "n_components", "n_features")
    | schema.Array("float64", "n_components")
)
_LARGEST_FACTOR = 1e150  # largest value whose square is finite


def _shapes(model: Any, sizes: schema.Sizes) -> str | None:
    """Check a saved model: shapes match the covariance type, and factors of precisions are triangular."""
    k, d = model.means_.shape
    shape = {"full": (k, d, d), "tied": (d, d), "diag": (k, d), "spherical": (k,)}[model.covariance_type]
    for name in ("covariances_", "precisions_", "precisions_cholesky_"):
        if getattr(model, name).shape != shape:
            return f"{name} must be of shape {shape} for covariance_type={model.covariance_type!r}"
    factor = model.precisions_cholesky_
    if np.abs(factor).max() > _LARGEST_FACTOR:
        return "precisions_cholesky_ has entries whose squares overflow"
    diagonal = np.diagonal(factor, axis1=-2, axis2=-1) if model.covariance_type in ("full", "tied") else factor
    return None if (diagonal > 0).all() else "precisions_cholesky_ must have a positive diagonal"


@inherit_docs()
@schema.saved(
    _shapes,
    means_=schema.Array("float64", "n_components", "n_features"),
    covariances_=_SPREADS,
    precisions_=_SPREADS,
    precisions_cholesky_=_SPREADS,
    collapsed_=schema.Array("int64", "n_collapsed", low=0, below="n_components"),
)
class GaussianMixture(Mixture):
    """Mixture of normal distributions.

    Parameters
    ----------
    n_components : int, default=1
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        One covariance matrix per component, a shared one, one variance per component and column, or one variance per
        component.
    tol : float, default=1e-3
        Stop when a step increases the log-likelihood per row by less than this.
    reg_covar : float, default=1e-6
        Added to the diagonal of the covariances, so that they stay positive definite.
    max_iter : int, default=100
        Maximum number of EM steps.
    n_init : int, default=1
        Number of starts. They share the passes over the rows, and the worse half of them is dropped after 10, 20,
        40, ... steps; a start in which a component collapses is used only if all do.
    init_params : {"kmeans", "k-means++", "random_from_data", "random"}, default="kmeans"
        Initialisation. Rows of a sample (all rows, up to 20,000) are assigned to the nearest of some points, found by
        k-means, drawn by k-means++, or drawn at random, with columns scaled to variance 1; or responsibilities are
        drawn at random.
    weights_init : array-like of shape (n_components,), optional
    means_init : array-like of shape (n_components, n_features), optional
    precisions_init : array-like, optional
        Inverse covariances, in the shape of `precisions_`. Parameters that are not given are initialised from the rows
        nearest to the means.
    verbose, verbose_interval : int
        Ignored; use scikit-learn's callbacks for progress reports.

    Attributes
    ----------
    means_ : ndarray of shape (n_components, n_features)
    covariances_, precisions_, precisions_cholesky_ : ndarray
        Covariances, their inverses, and upper triangular U with U U' the inverse: of shape (n_components, n_features,
        n_features), (n_features, n_features), (n_components, n_features) or (n_components,), by `covariance_type`.
    n_iter_ : int
        Number of EM steps of the best start.
    lower_bound_ : float
        The log-likelihood per row before the last M-step.
    lower_bounds_ : list of float
        The same for each step.
    collapsed_ : ndarray of int
        Components that have collapsed to a point, line or plane, with a variance of `reg_covar` only.

    Notes
    -----
    Missing values (NaN) are supported in `fit` and in predictions. They are assumed to be missing at random: the E-step
    uses their conditional expectations and covariances given the observed values of the row, and the density of a row
    is that of its observed values. Rows without any observed value are ignored.

    References
    ----------
    Bishop, Pattern Recognition and Machine Learning, section 9.2.
    Ghahramani, Jordan (1994), Supervised learning from incomplete data via an EM approach, NIPS 6.

    Examples
    --------
    >>> import numpy as np
    >>> from summula.mixture import GaussianMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0.0, 1.0, (300, 2)), rng.normal([4.0, 0.0], 0.5, (100, 2))])
    >>> X[::10, 1] = np.nan
    >>> model = GaussianMixture(2, random_state=0).fit(X)
    >>> model.weights_.round(2), model.means_[:, 0].round(1)
    (array([0.25, 0.75]), array([ 4. , -0.1]))
    >>> model.predict([[3.5, np.nan], [0.0, 1.0]])
    array([0, 1])
    >>> GaussianMixture(random_state=0).select(X, range(1, 5)).n_components
    2
    """

    _allows_nan = True
    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        **SHARED_PARAMETERS,
        "covariance_type": (one_of("full", "tied", "diag", "spherical"),),
        "reg_covar": (real(0.0),),
        "init_params": (STARTS,),
        "means_init": (none, array_like),
        "precisions_init": (none, array_like),
        "verbose": (boolean, integer(0)),
        "verbose_interval": (integer(1),),
    }

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: str = "full",
        tol: float = 1e-3,
        reg_covar: float = 1e-6,
        max_iter: int = 100,
        n_init: int = 1,
        init_params: str = "kmeans",
        weights_init: ArrayLike | None = None,
        means_init: ArrayLike | None = None,
        precisions_init: ArrayLike | None = None,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        verbose_interval: int = 10,
        n_jobs: int | None = None,
        max_time: float | None = None,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.tol = tol
        self.reg_covar = reg_covar
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.weights_init = weights_init
        self.means_init = means_init
        self.precisions_init = precisions_init
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.n_jobs = n_jobs
        self.max_time = max_time

    def _fit(self, run: Run) -> None:
        if self.covariance_type in ("full", "tied"):  # while the fit compiles its own kernel
            expect_kernels("summula.mixture.kernels:compile_joint")
        super()._fit(run)
        if len(self.collapsed_) and self.max_iter:
            which = ", ".join(map(str, self.collapsed_.tolist()))
            subject = f"Components {which} have" if len(self.collapsed_) > 1 else f"Component {which} has"
            warn(
                f"{subject} collapsed in GaussianMixture: in some direction its variance is only "
                f"reg_covar={self.reg_covar:g}, and the likelihood is not meaningful; use fewer components, a "
                "larger reg_covar, covariance_type='tied', or n_init > 1.",
                CollapseWarning,
            )

    def _model(self, run: Run) -> GaussianEM:
        k, d, kind = self.n_components, run.source.n_features, self.covariance_type
        given = Given(
            None if self.weights_init is None else checked_weights(self.weights_init, k),
            None if self.means_init is None else _checked_means(self.means_init, k, d),
            None if self.precisions_init is None else precision_factors(self.precisions_init, kind, k, d),
        )
        seed, theta = draw_seed(self.random_state), None
        if self._continues():
            theta = self._gaussians()
            if theta.means.shape != (k, d):
                raise ParameterError(
                    f"warm_start continues a fit with means of shape {theta.means.shape}, but this one has "
                    f"{(k, d)}: set warm_start=False."
                )
        seeds = [seed, *(stream_key(seed, j) for j in range(1, self.n_init))]
        return GaussianEM(k, kind, self.reg_covar, self.init_params, given, seeds, theta)

    def _name_parameters(self, theta: Gaussians) -> None:
        self.weights_, self.means_ = theta.weights, theta.means
        self.collapsed_ = collapsed_components(theta, self.reg_covar).astype(np.int64)
        if theta.is_diagonal:
            factors = theta.factors[:, 0] if theta.kind == "spherical" else theta.factors
            self.covariances_, self.precisions_cholesky_ = factors**2, 1.0 / factors
            self.precisions_ = self.precisions_cholesky_**2
            return
        upper = np.ascontiguousarray(theta.inverse_factors.transpose(0, 2, 1))
        covariances, precisions = theta.factors @ theta.factors.transpose(0, 2, 1), upper @ theta.inverse_factors
        shared = theta.kind == "tied"
        self.covariances_ = covariances[0] if shared else covariances
        self.precisions_ = precisions[0] if shared else precisions
        self.precisions_cholesky_ = upper[0] if shared else upper

    def _gaussians(self) -> Gaussians:
        """Return the fitted parameters in the form used by the E-step."""
        return Gaussians.from_precisions(self.covariance_type, self.weights_, self.means_, self.precisions_cholesky_)

    def _log_joint(self, chunk: Chunk) -> Array:
        joint = log_joint(chunk, self._gaussians())
        if not np.isfinite(joint).all() and np.isinf(block := chunk.dense()).any():
            row, j = (int(place[0]) for place in np.nonzero(np.isinf(block)))
            names = getattr(self, "feature_names_in_", None)
            label = f"Column {j}" if names is None else f"Column {str(names[j])!r}"
            raise DataError(
                f"{label} has an infinite value (inf; first at row {chunk.start + row}); GaussianMixture needs finite "
                "data: impute or drop them."
            )
        return joint

    def _n_parameters(self) -> int:
        k, d = self.means_.shape
        spreads = {"full": k * d * (d + 1) // 2, "tied": d * (d + 1) // 2, "diag": k * d, "spherical": k}
        return int(spreads[self.covariance_type] + k * d + k - 1)

    def _draw(self, rng: Any, component: int, size: int) -> Array:
        theta = self._gaussians()
        noise = rng.standard_normal((size, theta.means.shape[1]))
        if theta.is_diagonal:
            return np.asarray(theta.means[component] + noise * theta.factors[component])
        factor = theta.factors[min(component, len(theta.factors) - 1)]
        return np.asarray(theta.means[component] + noise @ factor.T)


def _checked_means(means: Any, k: int, d: int) -> Array:
    values = numbers_in("means_init", means)
    if values.shape != (k, d):
        raise ParameterError(f"The parameter 'means' should have the shape of ({k}, {d}), but got {values.shape}")
    if not np.isfinite(values).all():
        raise ParameterError("The parameter 'means' should be finite; means_init contains NaN or infinities.")
    return values
