"""Factor analysis: a few latent factors explain the correlations of columns with independent noise.

    x = mu + L'z + e,     z ~ N(0, I_k),     e ~ N(0, Psi),  Psi diagonal                                        (1)

mu is the mean; L and Psi maximise the likelihood, which depends on the rows only through their covariance matrix. One
pass computes it, followed by Newton's method (`factors/likelihood.py`) or expectation-maximisation
(`factors/expectation.py`) on this matrix. A row is transformed to the posterior mean of its factors.
"""

from __future__ import annotations

import functools
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.callback import with_callbacks
from sklearn.exceptions import ConvergenceWarning

from summula import em
from summula.core.data.chunks import Chunk
from summula.core.data.layout.blocks import aligned, product
from summula.core.docstrings import inherit_docs
from summula.core.errors import AccuracyWarning, ParameterError, warn
from summula.core.estimator.input.argument_values import numbers_in
from summula.core.estimator.parameters import Allowed, array_like, boolean, integer, none, one_of, random_state, real
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.core.numerics.statistics import Gram
from summula.decomposition.factors.certificate import FactorCertificate, judged
from summula.decomposition.factors.expectation import FactorModel, Factors
from summula.decomposition.factors.likelihood import FactorFit, loadings_at, maximize, start
from summula.decomposition.factors.rotation import rotated
from summula.decomposition.factors.sums import Data, read, spread_of
from summula.decomposition.latent import Gaussian, LatentVariables, check_weight
from summula.decomposition.principal.axes import Problem, oriented
from summula.decomposition.principal.solver import sum_products

__all__ = ["FactorAnalysis"]

Array = NDArray[Any]

_SMALLEST = 1e-12  # noise variance of a constant column, as in scikit-learn
_LOWER = 1e-8  # relative noise variance below which it counts as zero
_AT_BOUND = 1e-6  # log distance from the smallest noise variance within which a value counts as being at the bound
_UNIT = {"float64": 1e-11, "float32": 1e-4}


@inherit_docs()
@schema.saved(
    components_=schema.Array("float", "n_components", "n_features"),
    noise_variance_=schema.Array("float", "n_features", low=0.0),
    mean_=schema.Array("float64", "n_features"),
    loglike_=schema.Items(schema.Real()),
    n_iter_=schema.Integer(0),
    heywood_=schema.Array("int64", "n_heywood", low=0, below="n_features"),
    certificate_=schema.Object(FactorCertificate, n_features="n_features"),
    _sums=schema.Object(Gram, n_columns="n_features") | None,
    _weighted=schema.Flag(),
    _dtype=schema.Text("float64", "float32"),
)
class FactorAnalysis(LatentVariables):
    """Factor analysis by maximum likelihood.

    Parameters
    ----------
    n_components : int, optional
        Number of factors; None uses the number of columns.
    tol : float, default=1e-2
        Tolerance for the remaining increase of the log-likelihood of all rows (Newton's method), or for its increase in
        a step.
    max_iter : int, default=1000
        Maximum number of steps.
    noise_variance_init : array-like of shape (n_features,), optional
        Initial noise variances.
    svd_method : {"randomized", "lapack"}, default="randomized"
        Ignored, as is `iterated_power`: eigenvectors are exact.
    iterated_power : int, default=3
    rotation : {"varimax", "quartimax"}, optional
        Rotation of the factors to simple structure.
    random_state : int, Generator, RandomState or None, default=0
        Ignored; the fit is deterministic.
    method : {"ml", "em"}, default="ml"
        Newton's method on the noise variances, or expectation-maximisation, which needs many more steps.
    min_noise : float, optional
        Smallest noise variance, relative to the variance of its column; None means 1e-8.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Loadings L.
    noise_variance_ : ndarray of shape (n_features,)
        The diagonal of Psi.
    loglike_ : list of float
        Log-likelihood of the rows after each step.
    n_iter_ : int
        Number of steps.
    heywood_ : ndarray of int
        Columns whose noise variance is at its lower bound (Heywood cases), for which a warning is issued.
    certificate_ : FactorCertificate
        The negative log-likelihood, and its decrease by one EM step.
    References ---------- Jöreskog (1967), Some contributions to maximum likelihood factor analysis, Psychometrika 32.
    Barber, Bayesian Reasoning and Machine Learning, chapter 21. Rubin and Thayer (1982), EM algorithms for ML factor
    analysis, Psychometrika 47.

    Examples
    --------
    >>> import numpy as np
    >>> from summula.decomposition import FactorAnalysis
    >>> rng = np.random.default_rng(0)
    >>> z, noise = rng.normal(size=(500, 1)), rng.normal(size=(500, 4))
    >>> X = z @ [[2.0, -1.0, 1.0, 0.5]] + noise * [1.0, 0.5, 0.8, 1.0]
    >>> fa = FactorAnalysis(n_components=1).fit(X)
    >>> fa.components_.round(1), fa.noise_variance_.round(1)
    (array([[ 2.1, -1. ,  1.1,  0.5]]), array([1. , 0.2, 0.7, 1. ]))
    """

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "n_components": (integer(0), none),
        "tol": (real(0.0),),
        "copy": (boolean,),
        "max_iter": (integer(1),),
        "noise_variance_init": (array_like, none),
        "svd_method": (one_of("randomized", "lapack"),),
        "iterated_power": (integer(0),),
        "rotation": (one_of("varimax", "quartimax"), none),
        "random_state": (random_state,),
        "method": (one_of("ml", "em"),),
        "min_noise": (none, real(0.0, 1.0, open_low=True)),
        "max_time": (none, real(0.0)),
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        tol: float = 1e-2,
        copy: bool = True,
        max_iter: int = 1_000,
        noise_variance_init: Any = None,
        svd_method: str = "randomized",
        iterated_power: int = 3,
        rotation: str | None = None,
        random_state: Any = 0,
        method: str = "ml",
        min_noise: float | None = None,
        max_time: float | None = None,
    ) -> None:
        self.n_components = n_components
        self.tol = tol
        self.copy = copy
        self.max_iter = max_iter
        self.noise_variance_init = noise_variance_init
        self.svd_method = svd_method
        self.iterated_power = iterated_power
        self.rotation = rotation
        self.random_state = random_state
        self.method = method
        self.min_noise = min_noise
        self.max_time = max_time

    # ------------------------------------------------------------------------------------------------------- fitting

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> FactorAnalysis:
        """Fit loadings and noise variances.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)
            Training data.
        y : ignored
        sample_weight : array-like of shape (n_samples,), or name of a column of X, optional
            Sample weights; a weight of 3 is equivalent to repeating the row three times.
        """
        with self._fitting(X, None, sample_weight, needs_y=False) as run:
            self._weighted, self._dtype = run.source.weighted, run.source.dtype.name
            data = read(run)
            self._sums = data.sums
            self._solve_data(data, run)
        return self

    def _sums_of(self, run: Run) -> Gram:
        return sum_products(run, Problem(center=True, scale=False), each=True)

    def _use_sums(self, sums: Gram, weighted: bool) -> None:
        self._keep_sums(sums, weighted)
        self._solve_data(spread_of(sums, float(np.finfo(self._dtype).eps)), None)

    def _solve_data(self, data: Data, run: Run | None) -> None:
        """Maximise the likelihood, set the fitted attributes, and warn about Heywood cases."""
        check_weight("FactorAnalysis", data.count, data.spread.weight)
        k, d = self._n_factors(), data.spread.size
        psi = self._first_noise(data, min(k, d))
        fit = self._by_em if self.method == "em" else self._by_newton
        found = fit(data, min(k, d), psi, run)
        self._name(data, found)
        if not found.converged:
            warn(
                f"FactorAnalysis did not converge in {self.max_iter} steps (log-likelihood "
                f"{self.loglike_[-1]:.8g}, an EM step gains {self.certificate_.gap:.2g}; tolerance {self.tol:g}): "
                "increase max_iter, or tol.",
                ConvergenceWarning,
            )
        if len(self.heywood_):
            warn(
                f"The noise variance of {self._column_names()} tends to 0 (a Heywood case), and is bounded below by "
                f"{self._lower:g} of the variance: the factors explain all of it. "
                "Use fewer factors, or more rows.",
                AccuracyWarning,
            )

    @property
    def _lower(self) -> float:
        return _LOWER if self.min_noise is None else float(self.min_noise)

    def _n_factors(self) -> int:
        d = self.n_features_in_
        if self.n_components is not None and self.n_components > d:
            raise ParameterError(f"n_components={self.n_components} must be at most the number of columns, {d}.")
        return d if self.n_components is None else int(self.n_components)

    def _first_noise(self, data: Data, k: int) -> Array:
        """Return the initial noise variances of standardised columns."""
        if self.noise_variance_init is None:
            return start(data.spread, k)
        given = numbers_in("noise_variance_init", self.noise_variance_init).ravel()
        if len(given) != self.n_features_in_ or not (np.isfinite(given).all() and (given > 0).all()):
            raise ParameterError(
                f"noise_variance_init must be {self.n_features_in_} positive numbers, one for each column of X."
            )
        varies = data.spread.varies
        return np.asarray(given[varies] / data.spread.variance[varies])

    def _by_newton(self, data: Data, k: int, psi: Array, run: Run | None) -> FactorFit:
        def on_step(psi: Array, trace: tuple[float, ...]) -> bool:
            if run is None:
                return False
            run.offer(functools.partial(assign, psi, trace))
            return run.step()

        def assign(psi: Array, trace: tuple[float, ...]) -> None:
            self._name(data, FactorFit(psi, loadings_at(data.spread, psi, k), trace, len(trace), True))

        return maximize(data.spread, k, psi, lower=self._lower, tol=self.tol, max_iter=self.max_iter, on_step=on_step)

    def _by_em(self, data: Data, k: int, psi: Array, run: Run | None) -> FactorFit:
        spread = data.spread
        model = FactorModel(spread, Factors(loadings_at(spread, psi, k), psi), self._lower)

        def result(solution: Any) -> FactorFit:
            trace = tuple(spread.weight * value + model.constant for value in solution.trace)
            done = solution.status != "max_iter"
            return FactorFit(solution.x.psi, solution.x.loadings, trace, solution.n_steps, done)

        solution = em.fit(
            model,
            [[0.0]] if run is None else run,  # the sums are known, so no rows are read
            tol=self.tol / spread.weight,
            max_iter=self.max_iter,
            assign=None if run is None else lambda found: self._name(data, result(found)),
        )
        return result(solution)

    def _name(self, data: Data, fit: FactorFit) -> None:
        """Set the fitted attributes, in the units of the columns; constant columns have zero loadings."""
        spread, k = data.spread, self._n_factors()
        varies, dtype = spread.varies, self._dtype
        loadings, psi = np.zeros((k, len(varies))), np.full(len(varies), _SMALLEST)
        loadings[: len(fit.loadings), varies] = fit.loadings * np.sqrt(spread.variance[varies])
        psi[varies] = fit.psi * spread.variance[varies]
        if self.rotation is not None and k:
            loadings = rotated(loadings, self.rotation)
        deviation = np.where(varies, np.sqrt(spread.variance), 1.0)
        loadings = oriented(loadings / deviation) * deviation  # signs are independent of units
        primal, gain = judged(data.about, Factors(loadings, psi), self._lower)
        size = spread.weight * len(psi)
        self.certificate_ = FactorCertificate(
            "stationary", primal, gain, data.mean, loadings, psi, self._lower, _UNIT[dtype], size
        )
        still = spread.weight / 2 * np.log(2 * np.pi * _SMALLEST) * (~varies).sum()
        self.mean_, self.components_, self.noise_variance_ = data.mean, loadings.astype(dtype), psi.astype(dtype)
        self.loglike_, self.n_iter_ = [float(value - still) for value in fit.trace], int(fit.n_iter)
        at_bound = np.flatnonzero(varies)[np.log(fit.psi / self._lower) < _AT_BOUND]
        self.heywood_ = at_bound.astype(np.int64)

    def _column_names(self) -> str:
        names = getattr(self, "feature_names_in_", None)
        shown = [repr(str(names[j])) if names is not None else str(j) for j in self.heywood_[:5]]
        more = len(self.heywood_) - len(shown)
        words = ", ".join(shown) + (f" and {more} more" if more else "")
        return f"column {words}" if len(self.heywood_) == 1 else f"columns {words}"

    # --------------------------------------------------------------------------------------------- using the model

    def _gaussian(self) -> Gaussian:
        components, psi = (np.asarray(one, np.float64) for one in (self.components_, self.noise_variance_))
        return Gaussian(self.mean_, components, psi)

    def _write_rows(self, chunk: Chunk, out: Array) -> None:
        to_z, _ = self._gaussian().posterior()
        shift = self.mean_.astype(chunk.dtype)
        rest = (self.mean_ - shift) @ to_z
        with np.errstate(invalid="ignore", over="ignore"):  # values that are not finite are located afterwards
            out[...] = product(chunk.block(origin=shift), np.ascontiguousarray(to_z, chunk.dtype)) - rest

    def _transform_sparse(self, X: Any) -> Array:
        to_z, _ = self._gaussian().posterior()
        return np.asarray(X @ to_z.astype(X.dtype) - self.mean_ @ to_z, X.dtype)

    def _log_density(self, chunk: Chunk) -> Array:
        return self._gaussian().log_density(aligned(chunk.block(np.float64) - self.mean_))
