"""Base class of models that average the targets of the nearest training rows.

With N_k(x) the k training rows nearest to x, and weights w_i(x) of them,

    f(x) = sum_{i in N_k(x)} w_i y_i / sum_{i in N_k(x)} w_i                                                       (1)

For classes, y_i is the indicator of each class, and f(x) their shares. Weights are 1, or the inverse distance 1 / d_i;
if some d_i = 0, rows at distance 0 have weight 1 and all others 0.

Of equally distant training rows the one with the smaller number counts as nearer, so N_k(x) is unique.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any, ClassVar, Self
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.callback import with_callbacks

from summula.core.data.chunks import Chunk
from summula.core.data.sources import MemorySource, Source
from summula.core.engine.engine import local_engine
from summula.core.errors import DataError, ParameterError, warn
from summula.core.estimator.estimator import Estimator
from summula.core.estimator.input.validation import check_fitted
from summula.core.estimator.parameters import Allowed, integer, mapping, none, one_of, real
from summula.core.estimator.rows import RowFunction, RowwiseEstimator, _joined, _map_part
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.neighbors.leave_one_out import LeaveOneOutCurve
from summula.neighbors.search.base import Neighbors, SearchIndex
from summula.neighbors.search.indexes import build_index
from summula.neighbors.search.metrics import METRIC_NAMES, chosen_metric, is_between_0_and_1, is_distance_metric
from summula.neighbors.search.pairwise import GivenIndex, check_distances

__all__ = ["KNeighborsModel"]

Array = NDArray[Any]

_FEW = 2**16  # training rows times queries that are searched without threads
_PARTS = 16
_MOST_QUERIES = 8_192
_LEAST_QUERIES = 256


@dataclass(frozen=True, eq=False)
class _BuiltIndex:
    """An index beside what it was made from."""

    settings: tuple[Any, ...]
    index: SearchIndex

    def is_made_from(self, settings: tuple[Any, ...]) -> bool:
        return all(a is b for a, b in zip(self.settings, settings, strict=True))


# The index of each model, and by the identity of the training rows, which copies of a model share. Loaded models make
# theirs when they need it.
_indexes: WeakKeyDictionary[Any, _BuiltIndex] = WeakKeyDictionary()
_indexes_of_rows: WeakValueDictionary[int, _BuiltIndex] = WeakValueDictionary()

_function = Allowed(callable, "a callable")
_PARAMETERS: dict[str, tuple[Allowed, ...]] = {
    "n_neighbors": (integer(1),),
    "weights": (one_of("uniform", "distance"), _function, none),
    "algorithm": (one_of("auto", "ball_tree", "kd_tree", "brute"),),
    "leaf_size": (integer(1),),
    "p": (real(0.0, open_low=True),),
    "metric": (one_of(*METRIC_NAMES), _function, Allowed(is_distance_metric, "a DistanceMetric")),
    "metric_params": (none, mapping),
    "n_jobs": (none, integer()),
}


def _rows_of(is_sparse: bool, chunk: Chunk) -> Any:
    """Return the rows of a chunk in the format of the training rows."""
    if is_sparse:
        return sparse.csr_matrix(chunk.X)
    return chunk.block(np.float64)


def _without_self(found: Neighbors, own: Array) -> Neighbors:
    """Leave out of k + 1 neighbours the row itself, or if it is not among them the last."""
    is_own = found.rows == own[:, None]
    is_own[~is_own.any(axis=1), -1] = True
    shape = (len(own), found.rows.shape[1] - 1)
    return Neighbors(found.values[~is_own].reshape(shape), found.rows[~is_own].reshape(shape))


def _find(index: SearchIndex, is_sparse: bool, k: int, own: bool, chunk: Chunk) -> Neighbors:
    """Return the k nearest rows of each row of a chunk; with `own` these are training rows, which do not count."""
    X = _rows_of(chunk.is_sparse if isinstance(index, GivenIndex) else is_sparse, chunk)
    found = index.nearest(X, k + 1 if own else k)
    return _without_self(found, np.arange(chunk.start, chunk.stop)) if own else found


def _packed(find: Callable[[Chunk], Neighbors], chunk: Chunk) -> Array:
    """Return distances, then row numbers: what the engine hands over is one array."""
    found = find(chunk)
    return np.hstack([found.values, found.rows.astype(np.float64)])


def _averaged(find: Callable[[Chunk], Neighbors], average: Callable[[Neighbors], Array], chunk: Chunk) -> Array:
    found = find(chunk)
    values = average(found)
    values[np.isnan(found.values[:, 0])] = np.nan  # of rows that are refused
    return values


def _refuse_missing_target(y: Array | None, name: str) -> None:
    """Raise if a target is missing, also where rows may have missing values."""
    if y is None:
        return
    bad = np.flatnonzero(np.isnan(y.reshape(len(y), -1)).any(axis=1))
    if len(bad):
        raise DataError(
            f"The target y is missing in {len(bad)} rows (NaN; first at row {bad[0]}); {name} needs complete targets: "
            "impute or drop them."
        )


def _rows_are_sound(model: Any, sizes: schema.Sizes) -> str | None:
    X = model._fit_X
    values = X.data if sparse.issparse(X) else X
    if np.isinf(values).any() or (np.isnan(values).any() and not model._allows_nan):
        return "_fit_X has values that are not finite"
    if model.metric == "precomputed" and X.shape[0] != X.shape[1]:
        return "_fit_X is no square matrix of distances"
    if model.metric == "precomputed" and ((X.data if sparse.issparse(X) else X) < 0).any():
        return "_fit_X has negative distances"
    return None


@schema.state(
    _rows_are_sound,
    _fit_X=schema.Array("float", "n_rows", "n_features", finite=False) | schema.Sparse("n_rows", "n_features"),
    n_samples_fit_=schema.Integer(1, size="n_rows"),
)
class KNeighborsModel(LeaveOneOutCurve, RowwiseEstimator):
    """Models of the k nearest training rows.

    Parameters
    ----------
    n_neighbors : int, default=5
        Number k of neighbours.
    weights : {"uniform", "distance"}, callable or None, default="uniform"
        Weights of the neighbours: equal, inverse distances, or a function from an array of distances to one of weights.
    algorithm : {"auto", "ball_tree", "kd_tree", "brute"}, default="auto"
        A speed hint: a k-d tree (also for "ball_tree"), or all rows. "auto" takes a tree up to 15 columns where it
        skips enough rows. The answer is the same.
    leaf_size : int, default=30
        For compatibility: leaves have 32 rows.
    p : float, default=2
        Power of the Minkowski distance; below 1 it is not a metric, and algorithm="brute" is needed.
    metric : str or callable, default="minkowski"
        "minkowski", "euclidean", "sqeuclidean", "manhattan", "chebyshev", "cosine", "hamming", "braycurtis",
        "canberra", "correlation", "mahalanobis", "seuclidean", "haversine" (latitude and longitude in radians),
        "nan_euclidean" (over the columns in which both rows have a value), for boolean columns "dice", "jaccard",
        "rogerstanimoto", "russellrao", "sokalsneath", "yule", a function of two rows, a DistanceMetric object of
        scikit-learn, or "precomputed": distances, of which a sparse matrix may store some. Columns in large units
        decide the distance: scale them, as in make_pipeline(StandardScaler(), ...).
    metric_params : dict, optional
        Further arguments of the metric: `p` and `w` (weights of the columns) of "minkowski", `V` (variances) of
        "seuclidean", `V` (covariance) or `VI` (its inverse) of "mahalanobis", those of a function. Variances are by
        default those of the training rows.
    n_jobs : int, optional
        Maximum number of threads; None uses all.

    Attributes
    ----------
    n_samples_fit_ : int
        Number of training rows. They are kept in memory; `predict` takes files and Dask collections.
    """

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = _PARAMETERS
    n_samples_fit_: int
    _fit_X: Any
    _y: Array

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        weights: Any = "uniform",
        algorithm: str = "auto",
        leaf_size: int = 30,
        p: float = 2,
        metric: Any = "minkowski",
        metric_params: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.algorithm = algorithm
        self.leaf_size = leaf_size
        self.p = p
        self.metric = metric
        self.metric_params = metric_params
        self.n_jobs = n_jobs

    # ---------------------------------------------------------------------------------------------------------- fitting

    @with_callbacks
    def fit(self, X: Any, y: Any) -> Self:
        """Keep the training rows, and index them for the search.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)
            Or with metric="precomputed" the distances of shape (n_samples, n_samples).
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), or names of columns of X
            Numbers for regression, class labels of any kind for classification.

        Returns
        -------
        self
        """
        with self._fitting(X, y) as run:
            self._y = self._targets(self._keep_rows(run), run.source.one_target)
        return self

    def _targets(self, chunk: Chunk, one_target: bool) -> Array:
        """Return the targets of the training rows as they are kept."""
        raise NotImplementedError

    @property
    def _allows_nan(self) -> bool:  # type: ignore[override]
        """Whether the metric leaves out missing values."""
        return isinstance(self.metric, str) and self.metric == "nan_euclidean"

    def _check_memory(self, source: Source) -> None:
        """Only `fit` keeps rows; results for files are computed batch by batch."""

    def _keep_rows(self, run: Run) -> Chunk:
        """Store the training rows and build the index; return them with their targets."""
        Estimator._check_memory(self, run.source)
        chunk = run.source.chunk(0, run.source.n_rows)
        if chunk.is_sparse:
            X = sparse.csr_matrix(chunk.X, copy=True)
            X.sum_duplicates()
            values = X.data
        else:
            values = X = np.array(chunk.block())
        if not np.isfinite(values).all() or (chunk.y is not None and not np.isfinite(chunk.y).all()):
            run.raise_if_not_finite()
            _refuse_missing_target(chunk.y, type(self).__name__)
        if self.metric == "precomputed" and X.shape[0] != X.shape[1]:
            raise DataError(
                f"Precomputed matrix must be a square matrix. Input is a {X.shape[0]}x{X.shape[1]} matrix: "
                "pass the distances between all training rows."
            )
        if self.metric == "precomputed":
            check_distances(X)
        self._check_algorithm()
        self._fit_X, self.n_samples_fit_ = X, int(X.shape[0])
        self._search_index(has_new_rows=True)
        return chunk

    def _check_algorithm(self) -> None:
        if not is_between_0_and_1(self.metric, self.p, self.metric_params) or self.algorithm == "brute":
            return
        if self.algorithm == "auto":
            warn(
                "Mind that for 0 < p < 1, Minkowski metrics are not distance metrics. Continuing the execution with "
                "`algorithm='brute'`; set it to silence this warning.",
                UserWarning,
            )
            return
        raise ParameterError(
            f'algorithm="{self.algorithm}" does not support 0 < p < 1 for the Minkowski metric. To resolve this '
            'problem either set p >= 1 or algorithm="brute".'
        )

    def _search_index(self, *, has_new_rows: bool = False) -> SearchIndex:
        """Return the index of the training rows for the parameters as they are now."""
        settings = (self._fit_X, self.metric, self.p, self.metric_params, self.algorithm)
        known = _indexes.get(self) or _indexes_of_rows.get(id(self._fit_X))
        if known is None or not known.is_made_from(settings):
            X = self._fit_X
            if not has_new_rows and not self._allows_nan and np.isnan(X.data if sparse.issparse(X) else X).any():
                raise ParameterError(
                    f"The training rows have missing values, which metric={self.metric!r} does not take."
                )
            metric = chosen_metric(self.metric, float(self.p), self.metric_params, int(X.shape[1]))
            is_brute = is_between_0_and_1(self.metric, self.p, self.metric_params)
            rows = X if sparse.issparse(X) else np.ascontiguousarray(X)
            known = _BuiltIndex(settings, build_index(rows, metric, "brute" if is_brute else self.algorithm))
        if _indexes.get(self) is not known:
            _indexes[self] = _indexes_of_rows[id(self._fit_X)] = known
        return known.index

    @property
    def effective_metric_(self) -> Any:
        """The metric; of "minkowski" the name of its special case."""
        check_fitted(self)
        if self.metric != "minkowski":
            return self.metric
        power = (self.metric_params or {}).get("p", self.p)
        if (self.metric_params or {}).get("w") is not None:
            return "minkowski"
        return {1: "manhattan", 2: "euclidean", np.inf: "chebyshev"}.get(power, "minkowski")

    @property
    def effective_metric_params_(self) -> dict[str, Any]:
        """The arguments of the metric: `metric_params`, and `p` of "minkowski"."""
        params = dict(self.metric_params or {})
        return {"p": self.p, **params} if self.effective_metric_ == "minkowski" else params

    # ------------------------------------------------------------------------------------------------------- neighbours

    def kneighbors(self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True) -> Any:
        """Find the nearest training rows.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features), optional
            By default the training rows, each of which is not its own neighbour.
        n_neighbors : int, optional
            Number of neighbours, by default that of the constructor.
        return_distance : bool, default=True

        Returns
        -------
        distances : ndarray of shape (n_samples, n_neighbors)
            From near to far; only with `return_distance`.
        indices : ndarray of shape (n_samples, n_neighbors)
            Numbers of the training rows; of equally distant ones the smallest numbers come first.
        """
        check_fitted(self)
        found = self._neighbors(X, self._checked_k(n_neighbors))
        return (found.values, found.rows) if return_distance else found.rows

    def kneighbors_graph(self, X: Any = None, n_neighbors: int | None = None, mode: str = "connectivity") -> Any:
        """Return the graph from rows to their neighbours as a sparse matrix.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features), optional
            By default the training rows, each of which is not its own neighbour.
        n_neighbors : int, optional
        mode : {"connectivity", "distance"}, default="connectivity"
            Whether edges have the value 1, or the distance.

        Returns
        -------
        CSR matrix of shape (n_samples, n_samples_fit)
        """
        check_fitted(self)
        if mode not in ("connectivity", "distance"):
            raise ParameterError(
                f'Unsupported mode, must be one of "connectivity", or "distance" but got "{mode}" instead.'
            )
        distances, rows = self.kneighbors(X, n_neighbors)
        n, k = rows.shape
        data = np.ones(n * k) if mode == "connectivity" else distances.reshape(-1)
        return sparse.csr_matrix((data, rows.reshape(-1), np.arange(0, n * k + 1, k)), shape=(n, self.n_samples_fit_))

    def _checked_k(self, n_neighbors: Any) -> int:
        k = self.n_neighbors if n_neighbors is None else n_neighbors
        if isinstance(k, bool | np.bool_) or not isinstance(k, int | np.integer):
            raise TypeError(f"n_neighbors does not take {type(k)} value, enter integer value")
        if k <= 0:
            raise ParameterError(f"Expected n_neighbors > 0. Got {k}")
        return int(k)

    def _check_count(self, k: int, own: bool, queries: Any = None) -> None:
        """Raise if there are fewer training rows than neighbours."""
        n = self.n_samples_fit_
        if k <= n - own:
            return
        sign = "<" if own else "<="
        end = "" if queries is None else f", n_samples = {queries}"
        raise ParameterError(
            f"Expected n_neighbors {sign} n_samples_fit, but n_neighbors = {k}, n_samples_fit = {n}{end}: set "
            f"n_neighbors to {max(n - own, 1)} or less, or fit more rows."
        )

    def _finder(self, k: int, own: bool) -> Callable[[Chunk], Neighbors]:
        """Return a picklable function that finds the neighbours of a chunk of rows."""
        return functools.partial(_find, self._search_index(), sparse.issparse(self._fit_X), k, own)

    def _neighbors(self, X: Any, k: int) -> Neighbors:
        own = X is None
        source = self._training_source() if own else self._in_memory(X, "kneighbors")
        self._check_count(k, own, source.n_rows)
        packed = self._map_rows(functools.partial(_packed, self._finder(k, own)), source)
        return Neighbors(np.ascontiguousarray(packed[:, :k]), packed[:, k:].astype(np.int64))

    def _training_source(self) -> MemorySource:
        X = self._fit_X
        return MemorySource(X, None, None, np.dtype(X.dtype))

    # ---------------------------------------------------------------------------------------------------------- results

    def _average(self) -> Callable[[Neighbors], Array]:
        """Return a picklable function from neighbours to results, equation (1)."""
        raise NotImplementedError

    def _row_function(self) -> RowFunction:
        """Return the function of a chunk that averages the targets of its neighbours."""
        return self._averages(own=False)

    def _averages(self, *, own: bool) -> RowFunction:
        k = self._checked_k(None)
        self._check_count(k, own)
        return functools.partial(_averaged, self._finder(k, own), self._average())

    def _by_row(self, X: Any, compute: RowFunction, finish: Callable[[Array], Array] | None = None) -> Any:
        """Apply `compute` to the rows; those of None are the training rows, which are not their own neighbours."""
        if X is None:
            return self._map_rows(self._averages(own=True), self._training_source(), finish)
        return super()._by_row(X, compute, finish)

    def _map_rows(self, compute: RowFunction, source: Source, finish: Callable[[Array], Array] | None = None) -> Any:
        """Search for many rows on all threads; the results do not depend on how rows are divided."""
        n = source.n_rows
        if source.streams or n * self.n_samples_fit_ <= _FEW:
            return super()._map_rows(compute, source, finish)
        engine = local_engine()
        step = engine.chunk_rows or int(np.clip(-(-n // _PARTS), _LEAST_QUERIES, _MOST_QUERIES))
        task, parts = functools.partial(_map_part, compute, finish, self._allows_nan), source.plan(step)
        with closing(engine.map_ordered(task, parts, n_jobs=self.n_jobs)) as values:
            return _joined([value for part in values for value in self._accepted(part, source)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.metric, str) and self.metric == "precomputed"
        tags.target_tags.multi_output = True
        return tags
