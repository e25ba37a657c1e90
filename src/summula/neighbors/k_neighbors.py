"""Base class of models that average the targets of the nearest training rows.

With N_k(x) the k training rows nearest to x, and weights w_i(x) of them,

    f(x) = sum_{i in N_k(x)} w_i y_i / sum_{i in N_k(x)} w_i                                                       (1)

For classes, y_i is the indicator of each class, and f(x) their proportions. Weights are 1, or the inverse distance 1 /
d_i; if some d_i = 0, rows at distance 0 have weight 1 and all others 0.

Ties are broken by row number (smaller is nearer), so N_k(x) is unique.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.callback import with_callbacks

from summula.core.data.chunks import Chunk
from summula.core.errors import DataError, ParameterError, warn
from summula.core.estimator.input.validation import check_fitted
from summula.core.estimator.parameters import Allowed, integer, mapping, none, one_of, real
from summula.core.estimator.rows import RowFunction
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.neighbors.leave_one_out import LeaveOneOutCurve
from summula.neighbors.neighbor_search import NeighborSearch, in_memory, packed_neighbors
from summula.neighbors.search.base import Neighbors
from summula.neighbors.search.metrics import METRIC_NAMES, is_between_0_and_1, is_distance_metric
from summula.neighbors.search.pairwise import check_distances
from summula.neighbors.search.streamed import check_streams
from summula.neighbors.search.streamed_rows import StreamedRows, survey

__all__ = ["KNeighborsModel"]

Array = NDArray[Any]

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


def _averaged(find: Callable[[Chunk], Neighbors], average: Callable[[Neighbors], Array], chunk: Chunk) -> Array:
    found = find(chunk)
    values = average(found)
    values[np.isnan(found.values[:, 0])] = np.nan  # for rows that are rejected
    return values


def _raise_if_target_missing(y: Array | None, name: str) -> None:
    """Raise if a target is missing, even if rows may have missing values."""
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
        return "_fit_X is not a square matrix of distances"
    if model.metric == "precomputed" and ((X.data if sparse.issparse(X) else X) < 0).any():
        return "_fit_X has negative distances"
    return None


@schema.state(
    _rows_are_sound,
    _fit_X=schema.Array("float", "n_rows", "n_features", finite=False) | schema.Sparse("n_rows", "n_features"),
    n_samples_fit_=schema.Integer(1, size="n_rows"),
)
class KNeighborsModel(LeaveOneOutCurve, NeighborSearch):
    """Base class of models of the k nearest training rows.

    Parameters
    ----------
    n_neighbors : int, default=5
        Number k of neighbours.
    weights : {"uniform", "distance"}, callable or None, default="uniform"
        Weights of the neighbours: equal, inverse distances, or a function from an array of distances to one of weights.
    algorithm : {"auto", "ball_tree", "kd_tree", "brute"}, default="auto"
        Search algorithm, which affects speed only: a k-d tree (also for "ball_tree"), or all rows. "auto" uses a tree
        for up to 15 columns if it skips enough rows.
    leaf_size : int, default=30
        Ignored; leaves have 32 rows.
    p : float, default=2
        Power of the Minkowski distance; below 1 it is not a metric, and algorithm="brute" is required.
    metric : str or callable, default="minkowski"
        "minkowski", "euclidean", "sqeuclidean", "manhattan", "chebyshev", "cosine", "hamming", "braycurtis",
        "canberra", "correlation", "mahalanobis", "seuclidean", "haversine" (latitude and longitude in radians),
        "nan_euclidean" (over the columns in which both rows have a value), for boolean columns "dice", "jaccard",
        "rogerstanimoto", "russellrao", "sokalsneath", "yule", a function of two rows, a DistanceMetric object of
        scikit-learn, or "precomputed": distances, possibly sparse. Columns with large values dominate the distance:
        scale them, as in make_pipeline(StandardScaler(), ...).
    metric_params : dict, optional
        Additional arguments of the metric: `p` and `w` (weights of the columns) for "minkowski", `V` (variances) for
        "seuclidean", `V` (covariance) or `VI` (its inverse) for "mahalanobis", or those of a function. Variances are
        by default those of the training rows.

    Attributes
    ----------
    n_samples_fit_ : int
        Number of training rows. Those of arrays and frames are stored in memory. Those of files and Dask collections
        are read again in every search, once per tens of thousands of queries; the files must not change.
    """

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = _PARAMETERS
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
        """Store the training rows, and build the search index.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)
            Training data, or with metric="precomputed" the distances of shape (n_samples, n_samples), in memory. Rows
            of files and Dask collections are not loaded: one pass validates them and collects the targets.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), or names of columns of X
            Numbers for regression, class labels of any type for classification.

        Returns
        -------
        self
        """
        with self._fitting(X, y) as run:
            targets = self._keep_description(run, X) if run.source.streams else self._keep_rows(run)
            self._y = self._targets(targets, run.source.one_target)
        return self

    def _targets(self, chunk: Chunk, one_target: bool) -> Array:
        """Return the targets of the training rows in the form in which they are stored."""
        raise NotImplementedError

    def _keep_description(self, run: Run, X: Any) -> Chunk:
        """Read rows of files or collections once; store their location, and return their targets."""
        check_streams(self._metric())
        name, found = type(self).__name__, survey(run)
        if not found.is_finite:
            run.raise_if_not_finite()
            _raise_if_target_missing(found.targets.y, name)
        self._check_algorithm()
        features = self._reading(X)
        features.release()
        self._fit_X = StreamedRows(features, found.largest, not found.is_finite, name)
        self.n_samples_fit_ = run.source.n_rows
        self._streamed_index().check(run.source)
        return found.targets

    def _keep_rows(self, run: Run) -> Chunk:
        """Store the training rows and build the index; return them with their targets."""
        chunk = run.source.chunk(0, run.source.n_rows)
        if chunk.is_sparse:
            X = sparse.csr_matrix(chunk.X, copy=True)
            X.sum_duplicates()
            values = X.data
        else:
            values = X = np.array(chunk.block())
        if not np.isfinite(values).all() or (chunk.y is not None and not np.isfinite(chunk.y).all()):
            run.raise_if_not_finite()
            _raise_if_target_missing(chunk.y, type(self).__name__)
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

    @property
    def effective_metric_(self) -> Any:
        """The metric; for "minkowski" the name of its special case."""
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
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features), optional
            By default the training rows, which are not considered their own neighbours.
        n_neighbors : int, optional
            Number of neighbours; by default that of the constructor.
        return_distance : bool, default=True

        Returns
        -------
        distances : ndarray of shape (n_samples, n_neighbors)
            Increasing distances; only with `return_distance`.
        indices : ndarray of shape (n_samples, n_neighbors)
            Numbers of the training rows; ties are ordered by row number.
        """
        check_fitted(self)
        found = self._neighbors(X, self._checked_k(n_neighbors))
        return (found.values, found.rows) if return_distance else found.rows

    def kneighbors_graph(self, X: Any = None, n_neighbors: int | None = None, mode: str = "connectivity") -> Any:
        """Return the graph from rows to their neighbours as a sparse matrix.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features), optional
            By default the training rows, which are not considered their own neighbours.
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

    def _neighbors(self, X: Any, k: int) -> Neighbors:
        own = X is None
        with self._training_source() if own else self._queries(X) as source:
            self._check_count(k, own, source.n_rows)
            packed = in_memory(self._map_rows(functools.partial(packed_neighbors, self._finder(k, own)), source))
        return Neighbors(np.ascontiguousarray(packed[:, :k]), packed[:, k:].astype(np.int64))

    # ---------------------------------------------------------------------------------------------------------- results

    def _average(self) -> Callable[[Neighbors], Array]:
        """Return a picklable function from neighbours to results, equation (1)."""
        raise NotImplementedError

    def _row_function(self) -> RowFunction:
        """Return the function that averages the targets of the neighbours of a chunk."""
        return self._averages(own=False)

    def _averages(self, *, own: bool) -> RowFunction:
        k = self._checked_k(None)
        self._check_count(k, own)
        return functools.partial(_averaged, self._finder(k, own), self._average())

    def _by_row(self, X: Any, compute: RowFunction, finish: Callable[[Array], Array] | None = None) -> Any:
        """Apply `compute` to the rows; None means the training rows, which are not their own neighbours."""
        if X is not None:
            return super()._by_row(X, compute, finish)
        with self._training_source() as source:
            return in_memory(self._map_rows(self._averages(own=True), source, finish))

    def _example_model(self) -> Any:
        """Return a model with few rows in place of one whose rows are in files."""
        if not self._is_streamed:
            return self
        copied = copy.copy(self)
        k, d = self._checked_k(None), self.n_features_in_
        self._check_count(k, own=False)
        copied._fit_X = np.arange(float(k * d)).reshape(k, d)
        return copied

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.metric, str) and self.metric == "precomputed"
        tags.target_tags.multi_output = True
        return tags
