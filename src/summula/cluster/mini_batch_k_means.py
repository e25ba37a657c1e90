"""Mini-batch k-means: centres are updated after each small batch of rows.

With the weight v_a of all rows assigned to centre a so far, and the weight W_a and the sum T_a of w (x - c_a) of the
rows of a batch that are nearest to it (`passes`), the update is

    v_a <- v_a + W_a,        c_a <- c_a + T_a / v_a                                                                 (1)

so a centre is the mean of all rows that were nearest to it when processed (Sculley 2010, Web-scale k-means clustering).

A batch consists of sixteen runs of consecutive rows. In every epoch the runs are shuffled; the order depends only on
the seed and the number of rows, so it is the same for arrays, files and collections.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.callback import with_callbacks
from sklearn.exceptions import ConvergenceWarning

from summula.cluster.centre_model import CentreModel
from summula.cluster.k_means import PARAMETERS as K_MEANS_PARAMETERS
from summula.cluster.k_means import (
    check_centres,
    compile_kernels,
    initial_centres,
    rows_in_order,
    spread_of,
    starts_of,
)
from summula.cluster.lloyd import labels_of
from summula.cluster.passes import Centres, ClusterSums, LloydPass
from summula.core.data.chunks import Chunk, Part
from summula.core.data.layout.stored_rows import SparseRows
from summula.core.data.sources import MemorySource
from summula.core.docstrings import inherit_docs
from summula.core.engine.engine import SerialEngine, engine
from summula.core.engine.random import choice, draw_seed, permutation, stream_key, uniform
from summula.core.errors import DataError, ParameterError, warn
from summula.core.estimator.parameters import Allowed, boolean, integer, none, real
from summula.core.estimator.run import Run
from summula.core.model_files import schema

__all__ = ["MiniBatchKMeans"]

Array = NDArray[Any]

_RUNS = 16  # runs of consecutive rows per batch
_SAMPLE, _EPOCH, _REASSIGN = range(3)  # streams of random numbers


@inherit_docs()
@schema.saved(
    schema.nonempty("n_clusters"),
    cluster_centers_=schema.Array("float", "n_clusters", "n_features"),
    labels_=schema.Maybe(schema.Array("int32", "n_rows", low=0, below="n_clusters")),
    inertia_=schema.Maybe(schema.Real(0.0)),
    n_iter_=schema.Maybe(schema.Integer(0)),
    n_steps_=schema.Integer(0),
    _counts=schema.Array("float64", "n_clusters", low=0.0),
    _since=schema.Real(0.0),
    _key=schema.Integer(0),
    _streamed=schema.Flag(),
)
class MiniBatchKMeans(CentreModel):
    """Mini-batch k-means clustering.

    Parameters
    ----------
    init : {"k-means++", "k-means||", "random"}, callable or array-like of shape (n_clusters, n_features), \
default="k-means++"
        Initial centres, as in `KMeans`; drawn from `init_size` rows.
    max_iter : int, default=100
        Maximum number of epochs (passes over the rows).
    batch_size : int, default=1024
        Number of rows per batch.
    compute_labels : bool, default=True
        Whether to compute `labels_` and `inertia_` of all rows at the end of a fit, and of the batch in `partial_fit`.
    tol : float, default=0.0
        Tolerance for the smoothed squared steps of the centres, relative to the mean variance of the columns.
    max_no_improvement : int or None, default=10
        Number of consecutive batches without an improvement of the smoothed inertia after which to stop.
    init_size : int, optional
        Number of rows from which the initial centres are drawn; by default three batches, and at least three rows per
        cluster.
    n_init : "auto" or int, default="auto"
        Number of initialisations, of which the one with the smallest inertia on the sample is used; "auto" is 3 for
        "random" and callables, else 1.
    reassignment_ratio : float, default=0.01
        Centres with less than this fraction of the weight of the heaviest are occasionally moved to random rows.
    max_time : float, optional
        Time limit in seconds, after which the current centres are kept.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
    labels_ : ndarray of shape (n_samples,), int32
    inertia_ : float
        Both only with `compute_labels`, and not if the fit was interrupted.
    n_iter_ : int
        Number of epochs started.
    n_steps_ : int
        Number of batches processed.
    n_features_in_, feature_names_in_ : as in scikit-learn

    Examples
    --------
    >>> import numpy as np
    >>> from summula.cluster import MiniBatchKMeans
    >>> X = np.random.default_rng(0).normal(size=(600, 2)) + np.repeat([[0.0, 0.0], [9.0, 9.0]], 300, axis=0)
    >>> model = MiniBatchKMeans(2, batch_size=64, random_state=0).fit(X)
    >>> sorted(model.cluster_centers_.round().astype(int).tolist())
    [[0, 0], [9, 9]]
    """

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        **{name: K_MEANS_PARAMETERS[name] for name in K_MEANS_PARAMETERS if name not in ("copy_x", "algorithm")},
        "batch_size": (integer(1),),
        "compute_labels": (boolean,),
        "max_no_improvement": (none, integer(0)),
        "init_size": (none, integer(1)),
        "reassignment_ratio": (real(0.0),),
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "k-means++",
        max_iter: int = 100,
        batch_size: int = 1024,
        verbose: int = 0,
        compute_labels: bool = True,
        random_state: Any = None,
        tol: float = 0.0,
        max_no_improvement: int | None = 10,
        init_size: int | None = None,
        n_init: Any = "auto",
        reassignment_ratio: float = 0.01,
        n_jobs: int | None = None,
        max_time: float | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.verbose = verbose
        self.compute_labels = compute_labels
        self.random_state = random_state
        self.tol = tol
        self.max_no_improvement = max_no_improvement
        self.init_size = init_size
        self.n_init = n_init
        self.reassignment_ratio = reassignment_ratio
        self.n_jobs = n_jobs
        self.max_time = max_time

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MiniBatchKMeans:
        """Compute the centres."""
        with self._fitting(X, None, sample_weight, needs_y=False) as run:
            compile_kernels(run, self.n_clusters)
            rows_in_order(run, scattered=True)
            spread = spread_of(run)
            check_centres(self, run)
            self._streamed = run.source.streams
            self._begin(run, spread.origin)
            run.offer(lambda: None)
            self._learn(run, spread.origin, self.tol * spread.variance)
            self._label(run, spread.origin)
        return self

    @with_callbacks
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MiniBatchKMeans:
        """Update the centres by one batch; the first call also draws the initial centres.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)
        y : ignored
        sample_weight : array-like of shape (n_samples,), or name of a column of X, optional

        Returns
        -------
        self
        """
        first = not hasattr(self, "cluster_centers_")
        with self._fitting(X, None, sample_weight, needs_y=False, reset=first) as run:
            if run.source.streams:
                raise ParameterError(
                    "partial_fit needs rows in memory: use fit for files, which reads them in batches."
                )
            rows_in_order(run)
            origin = spread_of(run).origin
            if first:
                check_centres(self, run)
                self._streamed = False
                self._begin(run, origin)
            self._step(run.source.chunk(0, run.source.n_rows), origin)
            self._label(run, origin)
        return self

    def _label(self, run: Run, origin: Array) -> None:
        """Compute the labels and the inertia of the rows, if `compute_labels`."""
        if self.compute_labels:
            self.labels_ = labels_of(run, self.cluster_centers_.astype(np.float64), origin)
            self.inertia_ = run.sum(ClusterSums, LloydPass(Centres.of(self.cluster_centers_, origin))).inertia

    def _begin(self, run: Run, origin: Array) -> None:
        """Draw centres from some rows."""
        self._key, self._since, self.n_steps_ = draw_seed(self.random_state), 0.0, 0
        sample = _sample(run, self._init_size(run.source.n_rows), stream_key(self._key, _SAMPLE))
        best = np.inf
        with engine(SerialEngine()):
            few = Run(self, sample, quiet=True)
            for k in range(starts_of(self, 3)):
                start = initial_centres(self, few, stream_key(self._key, (_SAMPLE, k)), origin)
                inertia = few.sum(ClusterSums, LloydPass(Centres.of(start, origin))).inertia
                if inertia < best:
                    best, self.cluster_centers_ = inertia, start.astype(sample.dtype)
        if not np.isfinite(best):
            raise DataError(
                "Squared distances from rows to the initial centres exceed the largest float64; divide the columns, "
                "and centres that are given, by a constant first."
            )
        self._counts = np.zeros(self.n_clusters)

    def _init_size(self, n: int) -> int:
        size = self.init_size or max(3 * self.batch_size, 3 * self.n_clusters)
        if size < self.n_clusters:
            message = (
                f"init_size={size} should be larger than n_clusters={self.n_clusters}; three rows per cluster are used."
            )
            warn(message, RuntimeWarning)
            size = 3 * self.n_clusters
        return min(size, n)

    def _learn(self, run: Run, origin: Array, tolerance: float) -> None:
        """Process batches until the smoothed inertia no longer decreases."""
        n = run.source.n_rows
        share = min(2.0 * self.batch_size / (n + 1), 1.0)
        smooth, step, least, waiting = np.nan, np.nan, np.inf, 0
        for epoch in range(self.max_iter):
            self.n_iter_ = epoch + 1
            for batch in _batches(run, self.batch_size, stream_key(self._key, (_EPOCH, epoch))):
                mean, moved = self._step(batch, origin)
                if self.n_steps_ == 1:  # the first batch resembles the initial centres
                    continue
                smooth = mean if np.isnan(smooth) else smooth * (1 - share) + mean * share
                step = moved if np.isnan(step) else step * (1 - share) + moved * share
                waiting = 0 if smooth < least else waiting + 1
                least = min(least, smooth)
                patient = self.max_no_improvement is None or waiting < self.max_no_improvement
                if not patient or (self.tol > 0 and step <= tolerance):
                    return
            if run.step("epoch"):
                return
        if self.max_no_improvement is not None or self.tol > 0:
            warn(
                f"MiniBatchKMeans reached max_iter={self.max_iter} epochs while the inertia of "
                "batches was still decreasing; increase max_iter.",
                ConvergenceWarning,
            )

    def _step(self, batch: Chunk, origin: Array) -> tuple[float, float]:
        """Update the centres by (1); return the mean inertia of the batch, and the squared steps."""
        before = np.asarray(self.cluster_centers_, np.float64)
        sums = ClusterSums.map(batch, LloydPass(Centres.of(before, origin)))
        counts = self._counts + sums.weight
        now = before + sums.total / np.where(counts > 0, counts, 1.0)[:, None]
        self.n_steps_ += 1
        self._since += len(batch)
        if self._since >= 10 * self.n_clusters and self.reassignment_ratio > 0:
            self._since = 0.0
            now, counts = self._reassigned(batch, now, counts)
        self.cluster_centers_, self._counts = now.astype(self.cluster_centers_.dtype), counts
        return sums.inertia / max(float(sums.weight.sum()), 1e-300), float(((now - before) ** 2).sum())

    def _reassigned(self, batch: Chunk, centres: Array, counts: Array) -> tuple[Array, Array]:
        """Move centres with very few rows to random rows of the batch, as in scikit-learn."""
        light = np.flatnonzero(counts < self.reassignment_ratio * counts.max())
        light = light[np.argsort(counts[light], kind="stable")][: len(batch) // 2]
        if not len(light):
            return centres, counts
        key = stream_key(self._key, (_REASSIGN, self.n_steps_))
        w = np.ones(len(batch)) if batch.weight is None else batch.weight
        with np.errstate(divide="ignore"):
            times = -np.log1p(-uniform(key, len(batch))) / w
        rows = np.argsort(times, kind="stable")[: len(light)]
        centres, counts = centres.copy(), counts.copy()
        centres[light] = batch.take(rows).dense()
        kept = np.setdiff1d(np.arange(len(counts)), light)
        counts[light] = counts[kept].min() if len(kept) else counts.max()
        return centres, counts


def _sample(run: Run, size: int, key: int) -> MemorySource:
    """Return some of the rows, in order."""
    chosen = choice(key, run.source.n_rows, size)
    return MemorySource.of_chunk(_gathered(run, [(int(a), int(a) + 1) for a in chosen]), run.source)


def _batches(run: Run, size: int, key: int) -> Iterator[Chunk]:
    """Yield the rows of an epoch, batch by batch."""
    n = run.source.n_rows
    stretch = max(1, min(size, n) // _RUNS)
    order = permutation(key, -(-n // stretch))
    count = max(1, size // stretch)
    for first in range(0, len(order), count):
        yield _gathered(run, [(int(k) * stretch, min((int(k) + 1) * stretch, n)) for k in order[first : first + count]])


def _gathered(run: Run, runs: list[tuple[int, int]]) -> Chunk:
    """Return several runs of rows as one chunk."""
    source = run.source
    if isinstance(source, MemorySource):
        rows = np.concatenate([np.arange(a, b) for a, b in runs])
        return source.chunk(0, source.n_rows).take(rows)
    part = run.parts[0]
    parts = [Part(source, a, b, b - a, part.step) for a, b in runs]
    with closing(run.engine.map_ordered(_read, parts, n_jobs=run.n_jobs)) as results:
        read = list(results)
    weight = None if read[0][1] is None else np.concatenate([w for _, w in read])
    if hasattr(read[0][0], "indptr"):
        from scipy.sparse import vstack

        X = vstack([x for x, _ in read], format="csr")
        return Chunk(SparseRows(X, 0, X.shape[0]), None, weight, 0, X.shape[0], source.dtype)
    X = np.concatenate([x for x, _ in read])
    return Chunk(X, None, weight, 0, len(X), source.dtype)


def _read(part: Part) -> tuple[Any, Array | None]:
    """Return the rows of a run of consecutive rows, and their weights."""
    (chunk,) = part.chunks()
    rows = chunk.X if chunk.is_sparse else chunk.write(np.empty((len(chunk), chunk.n_features), chunk.dtype))
    return rows, chunk.weight
