"""Principal component analysis: the directions of maximum variance and minimum reconstruction error.

The problem and its solution are derived in `principal/axes.py`; this file selects the solver by the shape of the data,
and sets the fitted attributes.

    rows x -> (x - mean) / scale -> components (z = V a) -> back (x = mean + scale V'z)                         (1)

    explained variance  l_j = s_j / (W - 1),   noise variance  v = mean of the discarded l_j                    (2)
    density             N(mean, D (V' diag(l - v) V + v I) D)                (probabilistic PCA)                 (3)
"""

from __future__ import annotations

import functools
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.callback import with_callbacks
from sklearn.utils.validation import check_is_fitted

from summula.core.data.chunks import Chunk
from summula.core.data.layout.blocks import aligned, product
from summula.core.docstrings import inherit_docs
from summula.core.engine.random import seed_from
from summula.core.errors import DataError, ParameterError
from summula.core.estimator.input.validation import as_source
from summula.core.estimator.parameters import Allowed, boolean, integer, none, one_of, random_state, real
from summula.core.estimator.run import Run, Unnamed
from summula.core.model_files import schema
from summula.core.numerics.statistics import Gram
from summula.decomposition.latent import Gaussian, LatentVariables, check_weight
from summula.decomposition.principal import missing
from summula.decomposition.principal.axes import Axes, Problem, shortened
from summula.decomposition.principal.certificate import SubspaceCertificate
from summula.decomposition.principal.covariance import from_gram
from summula.decomposition.principal.krylov import KrylovOptions
from summula.decomposition.principal.number import chosen, counted
from summula.decomposition.principal.solver import Options, solve, sum_products

__all__ = ["PCA"]

Array = NDArray[Any]

_KRYLOV_TOL = 1e-10
_EM_TOL = 1e-6
_MAX_PASSES = 1_000
_NO_NOISE = 1e-14  # noise variance, relative to the largest variance, used instead of zero

_COMPONENTS = Allowed(
    lambda value: isinstance(value, float | np.floating) and bool(0.0 < value < 1.0), "a float in the range (0.0, 1.0)"
)


@inherit_docs()
@schema.saved(
    components_=schema.Array("float", "n_components", "n_features"),
    explained_variance_=schema.Array("float", "n_components", low=0.0),
    explained_variance_ratio_=schema.Array("float", "n_components", low=0.0),
    singular_values_=schema.Array("float", "n_components", low=0.0),
    mean_=schema.Array("float64", "n_features"),
    scale_=schema.Array("float64", "n_features", low=0.0) | None,
    noise_variance_=schema.Real(0.0),
    distortion_=schema.Real(0.0),
    n_components_=schema.Integer(0, size="n_components"),
    n_samples_=schema.Real(0.0),
    n_iter_=schema.Integer(0),
    solver_=schema.Text("covariance", "qr", "gram", "svd", "krylov", "em"),
    certificate_=schema.Object(SubspaceCertificate, n_features="n_features") | None,
    _sums=schema.Object(Gram, n_columns="n_features") | None,
    _weighted=schema.Flag(),
    _dtype=schema.Text("float64", "float32"),
)
class PCA(LatentVariables):
    """Principal component analysis.

    Parameters
    ----------
    n_components : int, float, "mle" or None, default=None
        Number of components; a fraction of the variance (0 < n_components < 1) to explain; "mle": by Minka's evidence;
        None: all, min(n_samples, n_features).
    whiten : bool, default=False
        Whether to divide transformed columns by their standard deviation.
    svd_solver : {"auto", "full", "covariance_eigh", "arpack", "randomized"}, default="auto"
        Affects speed only; every solver converges to the same solution.
    tol : float, default=0.0
        Tolerance of iterative solvers: for the residual of a component, relative to its eigenvalue (0: 1e-10), and for
        the increase of the log-likelihood per row in an EM step (0: 1e-6).
    iterated_power : int or "auto", default="auto"
        Ignored; for compatibility with scikit-learn.
    n_oversamples : int, default=10
        Number of columns of the random block in addition to `n_components`.
    power_iteration_normalizer : {"auto", "QR", "LU", "none"}, default="auto"
        Ignored; for compatibility with scikit-learn.
    random_state : int, Generator, RandomState or None, default=None
        Seed for the random block.
    center : bool, default=True
        Whether to subtract the mean.
    scale : bool, default=False
        Whether to divide columns by their standard deviation (without centring, by their root mean square).
    max_distortion : float, optional
        Use the smallest number of components with at most this distortion, instead of `n_components`.
    max_iter : int, optional
        Maximum number of passes over the rows of iterative solvers; None means 1000.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Principal axes, by decreasing variance; the largest entry of each is positive.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (n_components,)
        Variance along each axis (divisor W - 1, with W the sum of the weights; W without centring), and its fraction of
        the total.
    singular_values_ : ndarray of shape (n_components,)
        Norms of the columns of projected rows.
    scale_ : ndarray of shape (n_features,), or None
        Divisors of the columns.
    distortion_ : float
        Sum over rows of the squared distance to their projection: W times the sum of the discarded eigenvalues of the
        covariance matrix (with divisor W). In units of `scale_`.
    noise_variance_ : float
        Mean of the discarded variances.
    n_components_ : int
        Number of components.
    n_samples_ : int, or float with weights
        Number of rows, or the sum of the weights.
    n_iter_ : int
        Number of passes over the rows, or EM steps, of iterative solvers; 1 for others.
    solver_ : {"covariance", "qr", "gram", "svd", "krylov", "em"}
        Solver used: the covariance matrix; singular values of the triangular factor; the matrix of products of rows, or
        singular values, for more columns than rows; a block Krylov method; EM for missing values.
    certificate_ : SubspaceCertificate, or None where values were missing
        The distortion and a bound on its suboptimality.

    References
    ----------
    Jolliffe, Principal Component Analysis, 2nd edition. Tipping and Bishop (1999), Probabilistic principal component
    analysis, JRSS B 61.

    Examples
    --------
    >>> import numpy as np
    >>> from summula.decomposition import PCA
    >>> X = np.array([[-1.0, -1], [-2, -1], [-3, -2], [1, 1], [2, 1], [3, 2]])
    >>> pca = PCA(n_components=1).fit(X)
    >>> pca.explained_variance_ratio_.round(4), round(pca.distortion_, 4)
    (array([0.9924]), 0.3023)
    >>> back = pca.inverse_transform(pca.transform(X))
    >>> bool(np.isclose(((X - back) ** 2).sum(), pca.distortion_))
    True
    """

    _allows_nan = True
    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "n_components": (integer(0), _COMPONENTS, one_of("mle"), none),
        "copy": (boolean,),
        "whiten": (boolean,),
        "svd_solver": (one_of("auto", "full", "covariance_eigh", "arpack", "randomized"),),
        "tol": (real(0.0),),
        "iterated_power": (one_of("auto"), integer(0)),
        "n_oversamples": (integer(1),),
        "power_iteration_normalizer": (one_of("auto", "QR", "LU", "none"),),
        "random_state": (random_state,),
        "center": (boolean,),
        "scale": (boolean,),
        "max_distortion": (none, real(0.0)),
        "max_iter": (none, integer(1)),
        "max_time": (none, real(0.0)),
    }

    def __init__(
        self,
        n_components: int | float | str | None = None,
        *,
        copy: bool = True,
        whiten: bool = False,
        svd_solver: str = "auto",
        tol: float = 0.0,
        iterated_power: int | str = "auto",
        n_oversamples: int = 10,
        power_iteration_normalizer: str = "auto",
        random_state: Any = None,
        center: bool = True,
        scale: bool = False,
        max_distortion: float | None = None,
        max_iter: int | None = None,
        max_time: float | None = None,
    ) -> None:
        self.n_components = n_components
        self.copy = copy
        self.whiten = whiten
        self.svd_solver = svd_solver
        self.tol = tol
        self.iterated_power = iterated_power
        self.n_oversamples = n_oversamples
        self.power_iteration_normalizer = power_iteration_normalizer
        self.random_state = random_state
        self.center = center
        self.scale = scale
        self.max_distortion = max_distortion
        self.max_iter = max_iter
        self.max_time = max_time

    # ------------------------------------------------------------------------------------------------------- fitting

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> PCA:
        """Compute the principal axes.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)
            Training data; missing values (NaN) are assumed to be missing at random.
        y : ignored
        sample_weight : array-like of shape (n_samples,), or name of a column of X, optional
            Sample weights; a weight of 3 is equivalent to repeating the row three times.
        """
        with self._fitting(X, None, sample_weight, needs_y=False) as run:
            self._weighted, self._dtype = run.source.weighted, run.source.dtype.name
            self._check_rows(run.source.n_rows, float(run.source.n_rows))
            wanted = self._count(run.source.n_rows)
            self._sums = None

            def offer(axes: Axes) -> None:
                run.offer(functools.partial(self._name, axes))

            axes, self._sums = solve(run, self._problem, self._options(wanted), offer)
            self._name(axes)
        return self

    @property
    def _problem(self) -> Problem:
        return Problem(bool(self.center), bool(self.scale))

    def _options(self, wanted: int | None) -> Options:
        passes = _MAX_PASSES if self.max_iter is None else int(self.max_iter)
        seed = 0 if self.random_state is None else seed_from(self.random_state)
        krylov = KrylovOptions(self.n_oversamples, seed, self.tol or _KRYLOV_TOL, passes)
        return Options(wanted, self.svd_solver, krylov, self.tol or _EM_TOL, passes)

    def _count(self, n: int) -> int | None:
        """Return the number of components if it is given, or None if it depends on the eigenvalues."""
        if self.max_distortion is None:
            return counted(self.n_components, n, self.n_features_in_, self.svd_solver)
        if self.n_components is not None:
            raise ParameterError("n_components and max_distortion cannot be combined; pass only one of them.")
        return None

    def _sums_of(self, run: Run) -> Gram:
        sums = sum_products(run, self._problem)
        if np.isnan(sums.total).any():
            raise DataError(
                "Rows with missing values cannot be added to a model or removed from it; fit again on all rows."
            )
        return sums

    def _use_sums(self, sums: Gram, weighted: bool) -> None:
        self._keep_sums(sums, weighted)
        unit = float(np.finfo(self._dtype).eps)
        self._name(from_gram(sums, self._problem, self._count(sums.count), unit))

    def _check_rows(self, count: int, weight: float) -> None:
        """Raise for rows without variance: a single row, or weights that sum to at most 1."""
        if self.center:
            check_weight("PCA", count, weight)

    def _name(self, axes: Axes) -> None:
        """Set the fitted attributes; eigenvalues of S are converted to variances (2)."""
        wanted = self._count(axes.count)
        k = chosen(axes, self.n_components, self.max_distortion) if wanted is None else wanted
        self._check_rows(axes.count, axes.weight)
        divisor = axes.weight - 1 if self.center else axes.weight
        values, dtype = axes.values[:k], self._dtype
        self.n_samples_ = float(axes.weight) if self._weighted else int(axes.count)
        self.n_components_, self.n_iter_ = int(k), int(axes.n_iter)
        self.mean_, self.scale_ = axes.mean, axes.scale if self.scale else None
        self.components_ = axes.vectors[:k].astype(dtype)
        self.explained_variance_ = (values / divisor).astype(dtype)
        self.explained_variance_ratio_ = (values / (axes.total or 1.0)).astype(dtype)
        self.singular_values_ = np.sqrt(values).astype(dtype)
        self.distortion_ = axes.distortion(k)
        # As in scikit-learn, repetitions of a row count if there are fewer rows than columns.
        left = (len(axes.mean) if axes.solver == "em" else min(axes.weight, len(axes.mean))) - k
        self.noise_variance_ = self.distortion_ / divisor / left if left > 0 else 0.0
        self.solver_ = axes.solver
        kept = axes if k == len(axes.vectors) else shortened(axes, k)
        self.certificate_ = None if axes.solver == "em" else SubspaceCertificate.of(kept, bool(self.center), dtype)

    # ------------------------------------------------------------------------------------------------ transformation

    def _shift_and_axes(self, dtype: Any) -> tuple[Array, Array, Array]:
        """Return the mean in this dtype, the matrix, shape (d, k), by which centred rows are multiplied, and the
        correction for the rounding of the mean.
        """
        B = np.asarray(self.components_, np.float64).T
        if self.scale_ is not None:
            B = B / self.scale_[:, None]
        if self.whiten:
            B = B / _deviations(self.explained_variance_)
        shift = self.mean_.astype(dtype)
        return shift, np.ascontiguousarray(B, dtype), (self.mean_ - shift) @ B

    def _write_rows(self, chunk: Chunk, out: Array) -> None:
        shift, B, rest = self._shift_and_axes(chunk.dtype)
        with np.errstate(invalid="ignore", over="ignore"):  # rows with values that are not finite are processed next
            out[...] = product(chunk.block(origin=shift), B) - rest.astype(chunk.dtype)
        odd = np.flatnonzero(~np.isfinite(out).all(axis=1))
        if len(odd):
            out[odd] = self._odd_rows(chunk.take(odd).block(np.float64))

    def _odd_rows(self, rows: Array) -> Array:
        """Transform rows with missing values, replaced by their conditional expectations; infinities propagate."""
        _, B, _ = self._shift_and_axes(np.float64)
        infinite = np.asarray(np.isinf(rows).any(axis=1))
        filled = missing.completed(np.where(infinite[:, None], 0.0, rows), self._latent())
        return np.where(infinite[:, None], np.inf, product(aligned(filled - self.mean_), B))

    def _latent(self) -> missing.Latent:
        """Return the model (3) in units of the scale; zero noise is replaced by a negligible one."""
        scale = np.ones(len(self.mean_)) if self.scale_ is None else self.scale_
        variance = np.asarray(self.explained_variance_, np.float64)
        least = _NO_NOISE * float(variance.max(initial=0.0)) + np.finfo(np.float64).tiny
        # With all axes, any noise below the smallest variance gives the same covariance matrix.
        noise = float(variance.min()) / 2 if len(variance) == len(scale) else self.noise_variance_
        v = max(noise, least)
        loadings = np.sqrt(np.maximum(variance - v, 0.0))[:, None] * self.components_
        return missing.Latent(self.mean_ / scale, loadings, v, scale, bool(self.center))

    def _transform_sparse(self, X: Any) -> Array:
        _, B, _ = self._shift_and_axes(np.float64)
        out = np.asarray(X @ B.astype(X.dtype) - self.mean_ @ B, X.dtype)
        odd = np.flatnonzero(~np.isfinite(out).all(axis=1))
        if len(odd):
            out[odd] = self._odd_rows(aligned(X[odd].toarray(), np.float64))
        return out

    def inverse_transform(self, X: Any) -> Any:
        """Map components back to rows: x = mean + scale V'z.

        Parameters
        ----------
        X : {array-like, frame, scan, Dask collection} of shape (n_samples, n_components)

        Returns
        -------
        ndarray of shape (n_samples, n_features); batches for a scan, a Dask array for a Dask collection
        """
        check_is_fitted(self)
        source = as_source(Unnamed(), X, needs_y=False, accept_sparse=False)
        if source.n_features != self.n_components_:
            raise DataError(f"X has {source.n_features} columns, but there are {self.n_components_} components.")
        back = np.asarray(self.components_, np.float64)
        if self.whiten:
            back = back * _deviations(self.explained_variance_)[:, None]
        if self.scale_ is not None:
            back = back * self.scale_
        return self._map_rows(functools.partial(_affine, back, self.mean_), source)

    # ------------------------------------------------------------------------------------------------------- density

    def _gaussian(self) -> Gaussian:
        """Return the density (3)."""
        latent = self._latent()
        psi = latent.noise * latent.scale**2
        return Gaussian(self.mean_, latent.loadings * latent.scale, psi)

    def _log_density(self, chunk: Chunk) -> Array:
        rows = chunk.block(np.float64)
        if np.isnan(rows).any():
            return missing.log_density(rows, self._latent())
        return self._gaussian().log_density(aligned(rows - self.mean_))


def _deviations(variance: Array) -> Array:
    """Return standard deviations as divisors; zeros are replaced by the smallest positive number."""
    deviation = np.sqrt(np.asarray(variance, np.float64))
    return np.asarray(np.maximum(deviation, np.finfo(variance.dtype).eps))


def _affine(B: Array, origin: Array, chunk: Chunk) -> Array:
    """Return the rows of a chunk times B, plus an origin."""
    return np.asarray(product(chunk.block(), B.astype(chunk.dtype)) + origin.astype(chunk.dtype))
