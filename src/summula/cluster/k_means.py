"""k-means: k centres that minimise the sum of squared distances of the rows to their nearest centres.

    minimise over c_1, ..., c_k     J(c) = sum over rows i of w_i min_a |x_i - c_a|^2                                (1)

Lloyd's algorithm alternates between assigning rows to centres and moving centres to the means of their rows; J
decreases with every pass. It converges to a local minimum, so the initial centres (`seeding`) and the number of runs
(`n_init`) matter. Every pass is a sum over rows (`passes`), the loop is in `lloyd`, and a lower bound on J for any
centres in `certificate`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.callback import with_callbacks
from sklearn.exceptions import ConvergenceWarning

from summula.cluster.centre_model import CentreModel
from summula.cluster.certificate import KMeansCertificate, Scatter, spectral_bound
from summula.cluster.lloyd import Clustering, Stopping, labels_of, lloyd
from summula.cluster.passes import are_few
from summula.cluster.seeding import k_means_parallel, k_means_plus_plus, random_rows
from summula.cluster.selection import elbow
from summula.core.compilation.background import expect_kernels
from summula.core.data.chunks import chunk_rows_for
from summula.core.data.layout.blocks import empty_block
from summula.core.data.sources import MemorySource
from summula.core.data.sparse_format import as_dense
from summula.core.docstrings import inherit_docs
from summula.core.engine.random import draw_seed, stream_key
from summula.core.errors import DataError, ParameterError, warn
from summula.core.estimator.input.argument_values import is_choice, numbers_in
from summula.core.estimator.input.finiteness import raise_if_overflowing, raise_if_underflowing
from summula.core.estimator.parameters import Allowed, array_like, boolean, integer, none, one_of, random_state, real
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.core.numerics.statistics import Moments

__all__ = ["KMeans"]

Array = NDArray[Any]

_SPECTRAL_COLUMNS = 128  # number of columns up to which their products cost little in a fit
_WIDE_ROWS, _WIDE_ELEMENTS, _LEAST_CHUNKS = 4_096, 2**21, 16  # limits of chunks with many columns
_INITS = ("k-means++", "k-means||", "random")

function = Allowed(callable, "a callable")


PARAMETERS: dict[str, tuple[Allowed, ...]] = {
    "n_clusters": (integer(1),),
    "init": (one_of(*_INITS), function, array_like),
    "n_init": (one_of("auto"), integer(1, 10_000)),
    "max_iter": (integer(1),),
    "tol": (real(0.0),),
    "verbose": (integer(0), boolean),
    "random_state": (random_state,),
    "copy_x": (boolean,),
    "algorithm": (one_of("lloyd", "elkan"),),
    "n_jobs": (none, integer()),
    "max_time": (none, real(0.0)),
}


class Spread(NamedTuple):
    """Statistics of the rows before the first pass."""

    origin: Array
    variance: float  # mean over the columns
    bound: Callable[[int], float]  # lower bound on the inertia for a number of centres


@inherit_docs()
@schema.saved(
    schema.nonempty("n_clusters"),
    cluster_centers_=schema.Array("float", "n_clusters", "n_features"),
    labels_=schema.Maybe(schema.Array("int32", "n_rows", low=0, below="n_clusters")),
    inertia_=schema.Real(0.0),
    n_iter_=schema.Integer(1),
    converged_=schema.Flag(),
    trace_=schema.Items(schema.Real(0.0)),
    certificate_=schema.Object(KMeansCertificate, n_clusters="n_clusters", n_features="n_features"),
    selection_=schema.Maybe(schema.Dict(schema.Integer(1), schema.Items(schema.Real()))),
    _streamed=schema.Flag(),
)
class KMeans(CentreModel):
    """k-means clustering.

    Parameters
    ----------
    init : {"k-means++", "k-means||", "random"}, callable or array-like of shape (n_clusters, n_features), \
default="k-means++"
        Initial centres. "k-means++" draws rows one by one, far from each other; "k-means||" draws them in a few
        passes, for files and clusters; "random" draws rows; a callable is called with (X, n_clusters, random_state).
    n_init : "auto" or int, default="auto"
        Number of runs, of which the best is kept; "auto" is 10 for "random" and callables, else 1.
    max_iter : int, default=300
        Maximum number of passes per run.
    tol : float, default=1e-4
        Tolerance for the sum of squared steps of the centres, relative to the mean variance of the columns.
    copy_x : bool, default=True
        Ignored; X is never overwritten.
    algorithm : {"lloyd", "elkan"}, default="lloyd"
        Number of distance bounds stored per row in memory: one per ten centres ("lloyd"), or one per centre ("elkan").
        It does not affect the result.
    max_time : float, optional
        Time limit in seconds, after which the best centres so far are kept.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
    labels_ : ndarray of shape (n_samples,), int32
        The nearest centre of each row; also for files, at four bytes per row.
    inertia_ : float
        The weighted sum of squared distances of the rows to their nearest centres.
    n_iter_ : int
        Number of passes of the best run.
    converged_ : bool
        Whether it stopped before `max_iter`, because labels did not change or by `tol`.
    trace_ : tuple of float
        Inertia in each pass, which never increases.
    certificate_ : KMeansCertificate
        The inertia and a bound on its suboptimality; `verify(X)` recomputes both. For more than 128 columns the bound
        is computed by `verify` only, since it would take longer than the fit.
    selection_ : dict
        Inertia and silhouette for each number of clusters, for models returned by `select`.
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
    >>> model.inertia_, round(model.certificate_.dual, 6)  # no two centres can do better than the dual
    (16.0, 16.0)
    """

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = PARAMETERS

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
        """Compute the centres.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)
        y : ignored
        sample_weight : array-like of shape (n_samples,), or name of a column of X, optional
            Sample weights; a weight of 3 is equivalent to repeating the row three times.

        Returns
        -------
        self
        """
        with self._fitting(X, None, sample_weight, needs_y=False) as run:
            compile_kernels(run, self.n_clusters)
            rows_in_order(run, passes=self.max_iter)
            widen_chunks(run)
            spread = spread_of(run)
            check_centres(self, run)
            if self.algorithm == "elkan" and self.n_clusters == 1:
                warn(
                    "algorithm='elkan' doesn't make sense for a single cluster. Using 'lloyd' instead.", RuntimeWarning
                )
            self._streamed = run.source.streams
            self._fit_best(run, spread)
        return self

    def select(
        self,
        X: Any,
        n_clusters: Iterable[int] = range(2, 11),
        *,
        sample_weight: Any = None,
        criterion: str = "silhouette",
    ) -> KMeans:
        """Fit different numbers of clusters and return the best model.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)
        n_clusters : iterable of int, default=range(2, 11)
            Numbers of clusters to try.
        sample_weight : array-like of shape (n_samples,), or name of a column of X, optional
        criterion : {"silhouette", "elbow"}, default="silhouette"
            Select the largest mean silhouette of a sample, or the elbow of the inertia.

        Returns
        -------
        KMeans
            A new fitted model; its `selection_` has inertia and silhouette for each number of clusters.
        """
        if not is_choice(criterion, ("silhouette", "elbow")):
            raise ParameterError(f"criterion must be 'silhouette' or 'elbow'; got {criterion!r}.")
        models = {
            int(k): clone(self).set_params(n_clusters=int(k)).fit(X, sample_weight=sample_weight) for k in n_clusters
        }
        if not models:
            raise ParameterError("n_clusters is empty: pass the numbers of clusters to try, for example range(2, 11).")
        table = {k: (model.inertia_, model.silhouette(X, sample_weight)) for k, model in models.items()}
        by_silhouette = max(table, key=lambda k: (table[k][1], -k))
        chosen = elbow({k: J for k, (J, _) in table.items()}) if criterion == "elbow" else by_silhouette
        best: KMeans = models[chosen]
        best.selection_ = table
        return best

    def _fit_best(self, run: Run, spread: Spread) -> None:
        """Run the algorithm `n_init` times, and keep the best result."""
        stopping = Stopping(self.max_iter, self.tol * spread.variance)
        bounds = "centres" if self.algorithm == "elkan" else "groups"
        seed, best = draw_seed(self.random_state), None
        for k in range(starts_of(self)):
            start = initial_centres(self, run, stream_key(seed, k), spread.origin)

            def keep(found: Clustering, best: Clustering | None = best) -> None:
                kept = found if best is None or found.inertia < best.inertia else best
                run.offer(lambda: self._name(kept, spread, run))

            found = lloyd(run, start, stopping, spread.origin, bounds=bounds, after_pass=keep)
            best = found if best is None or found.inertia < best.inertia else best
        assert best is not None
        if best.labels is None:
            best = best._replace(labels=labels_of(run, best.centres, spread.origin))
        self._name(best, spread, run)
        _warn_of(self, best)

    def _name(self, found: Clustering, spread: Spread, run: Run) -> None:
        dtype = run.source.dtype
        self.cluster_centers_ = found.centres.astype(dtype)
        if found.labels is not None:
            self.labels_ = found.labels
        self.inertia_, self.n_iter_, self.trace_ = found.inertia, found.n_iter, found.trace
        self.converged_ = found.converged
        bound = spread.bound(len(found.centres))
        self.certificate_ = KMeansCertificate.of(found.centres, found.inertia, bound, dtype)


def compile_kernels(run: Run, n_clusters: int) -> None:
    """Compile the largest kernel, if needed, while a second process compiles the others.

    Not needed for few rows.
    """
    source = run.source
    if source.is_sparse or run.is_remote or are_few(source.n_rows, n_clusters, source.n_features):
        return
    from summula.cluster.score_kernels import assign_rows, compile_assignment

    if not assign_rows.signatures:
        expect_kernels(f"summula.cluster.seeding_kernels:compile_passes:{run.source.dtype.name}")
        compile_assignment(run.source.dtype)


def widen_chunks(run: Run) -> None:
    """Use larger chunks of narrow rows: a call per chunk takes as long as some hundred rows."""
    source = run.source
    if source.is_sparse or run.engine.chunk_rows is not None:
        return
    wanted = min(_WIDE_ROWS, _WIDE_ELEMENTS / max(source.width, 1.0), source.n_rows / _LEAST_CHUNKS)
    rows = int(2 ** np.floor(np.log2(max(wanted, 1.0))))
    if rows > chunk_rows_for(source.width):
        run.parts = source.plan(rows)


def rows_in_order(run: Run, *, scattered: bool = False, passes: int = 1) -> None:
    """Convert rows in memory to C order, and cache decoded rows of files, for many passes."""
    source = run.source
    if not isinstance(source, MemorySource):
        run.keep_rows(scattered=scattered, passes=passes)
        return
    rows = source.rows
    plain = isinstance(rows, np.ndarray) and rows.flags.c_contiguous and rows.dtype == source.dtype
    if source.is_sparse or plain or run.is_remote:
        return
    block = empty_block(source.n_rows, source.n_features, source.dtype)
    for _ in run.each(lambda part: [c.write(block[c.start : c.stop]) for c in part.chunks()], "copy"):
        pass
    run.use(MemorySource(block, None, source.weight, source.dtype, source.names))


@np.errstate(over="ignore", invalid="ignore")
def spread_of(run: Run) -> Spread:
    """Return origin and variance of the rows, and, for few columns, the lower bound on the inertia."""
    origin, d = run.origin(), run.source.n_features
    if d <= _SPECTRAL_COLUMNS:
        scatter = run.sum(Scatter, origin, "spread")
        S = scatter.centred()
        if not np.isfinite(S).all():
            run.raise_if_not_finite()
            raise_if_overflowing(run.source, np.diagonal(scatter.products))
        squares = np.diagonal(scatter.products)
        raise_if_underflowing(run.source, squares, scatter.total, each=False, dtype=run.source.dtype)
        variance = float(np.diagonal(S).mean() / scatter.weight)
        return Spread(origin, variance, functools.partial(spectral_bound, scatter))
    moments = run.sum(Moments, origin, "spread")
    if not np.isfinite(moments.square).all() or (moments.count < run.source.n_rows).any():
        run.raise_if_not_finite()
        raise_if_overflowing(run.source, moments.square)
    raise_if_underflowing(run.source, moments.square, moments.total, each=False)
    return Spread(origin, float(moments.variance.mean()), lambda k: 0.0)


def check_centres(model: Any, run: Run) -> None:
    """Raise for more clusters than rows, and for centres of the wrong shape."""
    n, k = run.source.n_rows, model.n_clusters
    if n < k:
        raise DataError(f"n_samples={n} should be >= n_clusters={k}: use fewer clusters.")
    if not isinstance(model.init, str) and not callable(model.init):
        _check_shape(_given_centres(model.init).shape, k, run.source.n_features)


def _check_shape(shape: tuple[int, ...], k: int, d: int) -> None:
    if len(shape) != 2 or shape[0] != k:
        raise DataError(f"The shape of the initial centers {shape} does not match the number of clusters {k}.")
    if shape[1] != d:
        raise DataError(
            f"The shape of the initial centers {shape} does not match the number of features of the data {d}."
        )


def _given_centres(init: Any) -> Array:
    return numbers_in("init", as_dense(init, "init"))


def starts_of(model: Any, many: int = 10) -> int:
    """Return the number of starts; "auto" is `many` if the initial centres are drawn at random."""
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
    return 1 if model.init in ("k-means++", "k-means||") else many


def initial_centres(model: Any, run: Run, seed: int, origin: Array) -> Array:
    """Return the initial centres, according to the parameter `init`."""
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
        values = _given_centres(centres)
        _check_shape(values.shape, k, run.source.n_features)
    else:
        values = _given_centres(init)
    if not np.isfinite(values).all():
        raise DataError("Some of the initial centers are NaN or infinite; pass finite ones.")
    return values


def _warn_of(model: KMeans, found: Clustering) -> None:
    assert found.labels is not None
    distinct = len(np.unique(found.labels))
    if distinct < model.n_clusters:
        warn(
            f"Number of distinct clusters ({distinct}) found smaller than n_clusters ({model.n_clusters}). Possibly "
            "due to duplicate points in X.",
            ConvergenceWarning,
        )
