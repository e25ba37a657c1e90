"""k-means: k centres with the smallest sum of squared distances of the rows to their nearest centres.

    minimise over c_1, ..., c_k     J(c) = sum over rows i of w_i min_a |x_i - c_a|^2                                (1)

Lloyd's algorithm assigns rows to centres and moves centres to the means of their rows, in turn; J falls with every
pass. It ends in a local minimum, so where it begins (`seeding`) and how often it is run (`n_init`) matter. Every
pass is a sum over rows (`passes`), the loop is in `lloyd`, and a lower bound on J of any centres in `certificate`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.callback import with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from summula.cluster.certificate import KMeansCertificate, Scatter, spectral_bound
from summula.cluster.lloyd import Clustering, Stopping, labels_of, lloyd
from summula.cluster.passes import Centres, ClusterSums, LloydPass, assign, chunk_rows, writeable
from summula.cluster.seeding import k_means_parallel, k_means_plus_plus, random_rows
from summula.core.data.blocks import empty_block
from summula.core.data.chunks import Chunk
from summula.core.data.sources import MemorySource
from summula.core.engine.random import stream_key
from summula.core.errors import DataError, ParameterError, warn
from summula.core.estimator.clusterer import Clusterer
from summula.core.estimator.parameters import (
    Allowed,
    array_like,
    boolean,
    integer,
    none,
    one_of,
    random_state,
    real,
)
from summula.core.estimator.run import Run
from summula.core.estimator.validation import raise_if_overflowing
from summula.core.model_files import schema
from summula.core.numerics.statistics import Moments

__all__ = ["KMeans"]

Array = NDArray[Any]

_SPECTRAL_COLUMNS = 128  # up to which the products of all columns cost little beside the passes of a fit
_INITS = ("k-means++", "k-means||", "random")

function = Allowed(callable, "a callable")


class Spread(NamedTuple):
    """What is known of the rows before the first pass."""

    origin: Array
    variance: float  # mean over the columns
    bound: Callable[[int], float]  # on the inertia of so many centres


class CentreModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Clusterer):
    """What follows from centres: the nearest one of each row, distances, inertia."""

    cluster_centers_: Array
    _n_threads: int  # scikit-learn's tests set it; nothing reads it

    @property
    def _n_features_out(self) -> int:
        return int(self.cluster_centers_.shape[0])

    def _centres(self) -> Centres:
        values = np.asarray(self.cluster_centers_, np.float64)
        return Centres.of(values, values.mean(axis=0))

    def predict(self, X: Any) -> Any:
        """The nearest centre of each row; of several equally near the first.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,), int32; batches for a scan, a Dask array for a Dask collection
        """
        check_is_fitted(self)
        return self._by_row(X, functools.partial(_nearest, self._centres()), _labels)

    def transform(self, X: Any) -> Any:
        """The distance of each row to each centre.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_clusters); batches for a scan, a Dask array for a Dask collection
        """
        check_is_fitted(self)
        return self._by_row(X, self._distances)

    def _distances(self, chunk: Chunk) -> Array:
        from summula.cluster.k_means_kernels import squared_distances

        X, C = chunk_rows(chunk), writeable(np.asarray(self.cluster_centers_, np.float64))
        if chunk.is_sparse:
            squares = np.asarray(X.multiply(X).sum(axis=1), np.float64).ravel()[:, None]
            D = np.maximum(squares + (np.einsum("kj,kj->k", C, C) - 2.0 * (X @ C.T)), 0.0)
        else:
            D = np.empty((len(chunk), len(C)))
            squared_distances(X, C, D)
        return np.asarray(np.sqrt(D), chunk.dtype)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the inertia of the rows: the larger the better.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)
        y : ignored
        sample_weight : array-like of shape (n_samples,), or name of a column of X, optional

        Returns
        -------
        float
        """
        check_is_fitted(self)
        source = self._source(X, None, sample_weight, needs_y=False)
        try:
            run = Run(self, source, quiet=True)
            inertia = run.sum(ClusterSums, LloydPass(self._centres()), "score").inertia
            if not np.isfinite(inertia):
                run.raise_if_not_finite()
        finally:
            source.release()
        return -inertia

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:  # type: ignore[override]
        """Fit, and give the cluster of each row.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)
        y : ignored
        sample_weight : array-like of shape (n_samples,), or name of a column of X, optional

        Returns
        -------
        ndarray of shape (n_samples,), int32; for a scan or a Dask collection as `predict`
        """
        self.fit(X, sample_weight=sample_weight)
        in_memory = getattr(self, "labels_", None) is not None and not self._streamed
        return self.labels_ if in_memory else self.predict(X)

    def _seed(self) -> int:
        if isinstance(self.random_state, np.random.Generator):
            return int(self.random_state.integers(2**32 - 1))
        return int(check_random_state(self.random_state).randint(np.iinfo(np.uint32).max, dtype="u8"))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _nearest(centres: Centres, chunk: Chunk) -> Array:
    """Label and D of each row: D shows whether there are values that are not finite."""
    out, labels = np.empty((len(chunk), 2)), np.full(len(chunk), -1, np.int32)
    own = np.empty(len(chunk))
    assign(chunk_rows(chunk), centres, labels, own, np.empty((len(chunk), 0), np.float32))
    out[:, 0], out[:, 1] = labels, own
    return out


def _labels(found: Array) -> Array:
    return found[:, 0].astype(np.int32)


@schema.saved(
    n_features_in_=schema.Integer(1, size="n_features"),
    cluster_centers_=schema.Array("float", "n_clusters", "n_features"),
    labels_=schema.Maybe(schema.Array("int32", "n_rows", low=0)),
    inertia_=schema.Real(0.0),
    n_iter_=schema.Integer(1),
    trace_=schema.Items(schema.Real(0.0)),
    certificate_=schema.Object(KMeansCertificate, n_clusters="n_clusters", n_features="n_features"),
    _streamed=schema.Flag(),
)
class KMeans(CentreModel):
    """k-means clustering.

    Parameters
    ----------
    n_clusters : int, default=8
    init : {"k-means++", "k-means||", "random"}, callable or array-like of shape (n_clusters, n_features), \
default="k-means++"
        Where to begin. "k-means++" draws rows one by one, far from each other; "k-means||" draws them in a few
        passes, for files and clusters; "random" draws rows; a callable is given (X, n_clusters, random_state).
    n_init : "auto" or int, default="auto"
        How often to begin anew, keeping the best; "auto" is 10 for "random" and callables, else 1.
    max_iter : int, default=300
        Most passes of one run.
    tol : float, default=1e-4
        A run stops when the squared steps of the centres add up to at most this share of the mean variance of the
        columns.
    verbose : int, default=0
        For compatibility; use scikit-learn's callbacks for progress.
    random_state : int, Generator, RandomState or None, default=None
    copy_x : bool, default=True
        For compatibility; the rows are never changed.
    algorithm : {"lloyd", "elkan"}, default="lloyd"
        How many bounds on distances are kept of each row in memory: one per ten centres, or ("elkan") one per centre.
        The result is the same.
    n_jobs : int, optional
        Maximum number of threads; None uses all.
    max_time : float, optional
        Seconds after which a fit stops with the best centres so far.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
    labels_ : ndarray of shape (n_samples,), int32
        The nearest centre of each row; of files too, at four bytes per row.
    inertia_ : float
        The weighted sum of squared distances of the rows to their nearest centres.
    n_iter_ : int
        Passes of the best run.
    trace_ : tuple of float
        The inertia of each of them: it never rises.
    certificate_ : KMeansCertificate
        The inertia, and how far it is at most above the least: `verify(X)` recomputes both. For more than 128
        columns the bound is left to `verify`, since it would take longer than the fit.
    n_features_in_, feature_names_in_ : as in scikit-learn

    References
    ----------
    Lloyd (1982), Least squares quantization in PCM. Arthur and Vassilvitskii (2007), k-means++.

    Examples
    --------
    >>> import numpy as np
    >>> from summula.cluster import KMeans
    >>> X = np.array([[1.0, 2.0], [1.0, 4.0], [1.0, 0.0], [10.0, 2.0], [10.0, 4.0], [10.0, 0.0]])
    >>> model = KMeans(n_clusters=2, random_state=0).fit(X)
    >>> model.cluster_centers_[model.predict([[0.0, 0.0], [12.0, 3.0]])]
    array([[ 1.,  2.],
           [10.,  2.]])
    >>> model.inertia_, model.certificate_.dual.round(6)  # no two centres can do better than the dual
    (16.0, 16.0)
    """

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "n_clusters": (integer(1),),
        "init": (one_of(*_INITS), function, array_like),
        "n_init": (one_of("auto"), integer(1)),
        "max_iter": (integer(1),),
        "tol": (real(0.0),),
        "verbose": (integer(0), boolean),
        "random_state": (random_state,),
        "copy_x": (boolean,),
        "algorithm": (one_of("lloyd", "elkan"),),
        "n_jobs": (none, integer()),
        "max_time": (none, real(0.0)),
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "k-means++",
        n_init: Any = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        verbose: int = 0,
        random_state: Any = None,
        copy_x: bool = True,
        algorithm: str = "lloyd",
        n_jobs: int | None = None,
        max_time: float | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.copy_x = copy_x
        self.algorithm = algorithm
        self.n_jobs = n_jobs
        self.max_time = max_time

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KMeans:
        """Find the centres.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)
        y : ignored
        sample_weight : array-like of shape (n_samples,), or name of a column of X, optional
            Weights; a weight of 3 counts as the row three times.

        Returns
        -------
        self
        """
        with self._fitting(X, None, sample_weight, needs_y=False) as run:
            _in_rows(run)
            spread = spread_of(run)
            check_centres(self, run)
            self._streamed = run.source.streams
            self._fit_best(run, spread, X)
        return self

    def _fit_best(self, run: Run, spread: Spread, X: Any) -> None:
        """Run the algorithm as often as asked for, and keep the best."""
        stopping = Stopping(self.max_iter, self.tol * spread.variance)
        bounds = "centres" if self.algorithm == "elkan" else "groups"
        seed, best = self._seed(), None
        for k in range(starts_of(self)):
            start = initial_centres(self, run, X, stream_key(seed, k), spread.origin)

            def keep(found: Clustering, best: Clustering | None = best) -> None:
                kept = found if best is None or found.inertia < best.inertia else best
                run.offer(lambda: self._name(kept, spread, run))

            found = lloyd(run, start, stopping, spread.origin, bounds=bounds, after_pass=keep)
            best = found if best is None or found.inertia < best.inertia else best
        assert best is not None
        if best.labels is None:
            best = best._replace(labels=labels_of(run, best.centres, spread.origin))
        self._name(best, spread, run)
        _warn_of(self, best, stopping)

    def _name(self, found: Clustering, spread: Spread, run: Run) -> None:
        dtype = run.source.dtype
        self.cluster_centers_ = found.centres.astype(dtype)
        if found.labels is not None:
            self.labels_ = found.labels
        self.inertia_, self.n_iter_, self.trace_ = found.inertia, found.n_iter, found.trace
        bound = spread.bound(len(found.centres))
        self.certificate_ = KMeansCertificate.of(found.centres, found.inertia, bound, dtype)


def _in_rows(run: Run) -> None:
    """Keep rows that are in memory in C order, and those of files decoded: there are many passes."""
    source = run.source
    if not isinstance(source, MemorySource):
        run.keep_rows()
        return
    rows = source.rows
    if source.is_sparse or (isinstance(rows, np.ndarray) and rows.flags.c_contiguous and rows.dtype == source.dtype):
        return
    block = empty_block(source.n_rows, source.n_features, source.dtype)
    for _ in run.each(lambda part: [c.write(block[c.start : c.stop]) for c in part.chunks()], "copy"):
        pass
    run.use(MemorySource(block, None, source.weight, source.dtype, source.names))


@np.errstate(over="ignore", invalid="ignore")
def spread_of(run: Run) -> Spread:
    """Origin and variance of the rows, and, where there are few columns, the lower bound on the inertia."""
    origin, d = run.origin(), run.source.n_features
    if d <= _SPECTRAL_COLUMNS:
        scatter = run.sum(Scatter, origin, "spread")
        S = scatter.centred()
        if not np.isfinite(S).all():
            run.raise_if_not_finite()
            raise_if_overflowing(run.source, np.diagonal(scatter.products))
        variance = float(np.diagonal(S).mean() / scatter.weight)
        return Spread(origin, variance, functools.partial(spectral_bound, scatter))
    moments = run.sum(Moments, origin, "spread")
    if not np.isfinite(moments.square).all() or (moments.count < run.source.n_rows).any():
        run.raise_if_not_finite()
        raise_if_overflowing(run.source, moments.square)
    return Spread(origin, float(moments.variance.mean()), lambda k: 0.0)


def check_centres(model: Any, run: Run) -> None:
    """Refuse more clusters than rows, and centres of another shape."""
    n, k = run.source.n_rows, model.n_clusters
    if n < k:
        raise DataError(f"n_samples={n} should be >= n_clusters={k}: ask for fewer clusters.")
    if not isinstance(model.init, str) and not callable(model.init):
        _check_shape(np.shape(model.init), k, run.source.n_features)


def _check_shape(shape: tuple[int, ...], k: int, d: int) -> None:
    if len(shape) != 2 or shape[0] != k:
        raise DataError(f"The shape of the initial centers {shape} does not match the number of clusters {k}.")
    if shape[1] != d:
        raise DataError(
            f"The shape of the initial centers {shape} does not match the number of features of the data {d}."
        )


def starts_of(model: Any) -> int:
    """How often to begin anew."""
    given = not isinstance(model.init, str) and not callable(model.init)
    if given:
        if model.n_init != "auto" and model.n_init != 1:
            warn(
                "Explicit initial center position passed: performing only one init in "
                f"{type(model).__name__} instead of n_init={model.n_init}.",
                RuntimeWarning,
            )
        return 1
    if model.n_init != "auto":
        return int(model.n_init)
    return 1 if model.init in ("k-means++", "k-means||") else 10


def initial_centres(model: Any, run: Run, X: Any, seed: int, origin: Array) -> Array:
    """The centres to begin with, as the parameter `init` says."""
    k, init = model.n_clusters, model.init
    if isinstance(init, str):
        if init == "k-means++":
            return k_means_plus_plus(run, k, seed)
        return k_means_parallel(run, k, seed, origin) if init == "k-means||" else random_rows(run, k, seed)
    if callable(init):
        if run.source.streams:
            raise ParameterError("init is a callable, which needs the rows in memory: use 'k-means||' or an array.")
        rows = run.source.chunk(0, run.source.n_rows)
        centres = init(rows.X, k, random_state=np.random.RandomState(seed % 2**32))
        _check_shape(np.shape(centres), k, run.source.n_features)
    else:
        centres = init.toarray() if hasattr(init, "toarray") else init
    values = np.array(centres, np.float64)
    if not np.isfinite(values).all():
        raise DataError("Some of the initial centers are NaN or infinite; give finite ones.")
    return values


def _warn_of(model: KMeans, found: Clustering, stopping: Stopping) -> None:
    assert found.labels is not None
    distinct = len(np.unique(found.labels))
    if distinct < model.n_clusters:
        warn(
            f"Number of distinct clusters ({distinct}) found smaller than n_clusters ({model.n_clusters}). Possibly "
            "due to duplicate points in X.",
            ConvergenceWarning,
        )
    elif not found.converged:
        warn(
            f"{type(model).__name__} stopped after max_iter={model.max_iter} passes, when the squared steps of the "
            f"centres still added up to {found.step:.3g}, above the tolerance {stopping.tolerance:.3g}; raise max_iter "
            "or tol.",
            ConvergenceWarning,
        )
