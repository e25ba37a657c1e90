"""The search of a model for the nearest training rows, in memory, in files or in a Dask collection."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from summula.core.data.chunks import Chunk
from summula.core.data.sources import MemorySource, Source
from summula.core.engine.engine import SerialEngine, local_engine
from summula.core.errors import ParameterError
from summula.core.estimator.rows import RowFunction, RowwiseEstimator, concatenated, map_chunks, map_part
from summula.core.estimator.run import Run
from summula.neighbors.search.base import Neighbors, SearchIndex
from summula.neighbors.search.index_cache import cached_index
from summula.neighbors.search.indexes import build_index
from summula.neighbors.search.metrics import Metric, PairwiseMetric, chosen_metric, is_between_0_and_1
from summula.neighbors.search.pairwise import GivenIndex
from summula.neighbors.search.streamed import StreamedIndex
from summula.neighbors.search.streamed_rows import StreamedRows

__all__ = ["NeighborSearch", "in_memory", "packed_neighbors"]

Array = NDArray[Any]

_FEW = 2**16  # training rows times queries up to which no threads are used
_PARTS = 16
_MOST_QUERIES = 8_192
_LEAST_QUERIES = 256
_PASS_VALUES = 2**23  # size of the queries per pass over training rows in files: 64 MB
_PASS_QUERIES = 2**16


def _rows_of(is_sparse: bool, chunk: Chunk) -> Any:
    """Return the rows of a chunk in the format of the training rows."""
    if is_sparse:
        return sparse.csr_matrix(chunk.X)
    return chunk.block(np.float64)


def _without_self(found: Neighbors, own: Array) -> Neighbors:
    """Remove the row itself from its k + 1 neighbours, or the last one if it is not among them."""
    is_own = found.rows == own[:, None]
    is_own[~is_own.any(axis=1), -1] = True
    shape = (len(own), found.rows.shape[1] - 1)
    return Neighbors(found.values[~is_own].reshape(shape), found.rows[~is_own].reshape(shape))


def _find(index: SearchIndex, is_sparse: bool, k: int, own: bool, chunk: Chunk) -> Neighbors:
    """Return the k nearest rows of each row of a chunk; with `own` these are training rows, which are excluded."""
    X = _rows_of(chunk.is_sparse if isinstance(index, GivenIndex) else is_sparse, chunk)
    found = index.nearest(X, k + 1 if own else k)
    return _without_self(found, np.arange(chunk.start, chunk.stop)) if own else found


def packed_neighbors(find: Callable[[Chunk], Neighbors], chunk: Chunk) -> Array:
    """Return distances and row numbers as one array, as required by the engine."""
    found = find(chunk)
    return np.hstack([found.values, found.rows.astype(np.float64)])


def in_memory(results: Any) -> Array:
    """Return results, or batches of them, as one array."""
    return results if isinstance(results, np.ndarray) else concatenated(list(results))


class NeighborSearch(RowwiseEstimator):
    """Base class of models that search their training rows, `_fit_X`, with the current parameters."""

    n_samples_fit_: int
    metric: Any
    metric_params: Any
    p: float
    algorithm: str
    n_jobs: int | None
    _fit_X: Any

    @property
    def _allows_nan(self) -> bool:  # type: ignore[override]
        """Return whether the metric supports missing values."""
        return isinstance(self.metric, str) and self.metric == "nan_euclidean"

    def _search_index(self, *, has_new_rows: bool = False) -> SearchIndex:
        """Return the index of the training rows for the current parameters."""
        if self._is_streamed:
            return self._streamed_index()
        settings = (self._fit_X, self.metric, self.p, self.metric_params, self.algorithm)
        return cached_index(self, settings, functools.partial(self._built_index, has_new_rows))

    def _built_index(self, has_new_rows: bool) -> SearchIndex:
        X = self._fit_X
        if not has_new_rows:
            self._check_missing(np.isnan(X.data if sparse.issparse(X) else X).any())
        rows = X if sparse.issparse(X) else np.ascontiguousarray(X)
        return build_index(rows, self._metric(), self._index_algorithm)

    def _streamed_index(self) -> StreamedIndex:
        self._check_missing(self._fit_X.has_missing)
        return StreamedIndex.build(self._fit_X, self._metric(), self._index_algorithm, self.n_jobs)

    def _check_missing(self, has_missing: Any) -> None:
        """Raise if the metric of a fitted model was replaced by one that does not support missing values."""
        if has_missing and not self._allows_nan:
            raise ParameterError(
                f"The training rows have missing values, which metric={self.metric!r} does not support."
            )

    def _metric(self) -> Metric | PairwiseMetric:
        return chosen_metric(self.metric, float(self.p), self.metric_params, self.n_features_in_)

    @property
    def _index_algorithm(self) -> str:
        return "brute" if is_between_0_and_1(self.metric, self.p, self.metric_params) else self.algorithm

    @property
    def _is_streamed(self) -> bool:
        """Whether the training rows are in files or a Dask collection."""
        return isinstance(self._fit_X, StreamedRows)

    # ---------------------------------------------------------------------------------------------------------- queries

    def _finder(self, k: int, own: bool) -> Callable[[Chunk], Neighbors]:
        """Return a picklable function that finds the neighbours of a chunk of rows."""
        X = self._fit_X
        is_sparse = X.source.is_sparse if self._is_streamed else sparse.issparse(X)
        return functools.partial(_find, self._search_index(), is_sparse, k, own)

    @contextmanager
    def _training_source(self) -> Iterator[Source]:
        """Return the training rows as queries."""
        X = self._fit_X
        if not self._is_streamed:
            yield MemorySource(X, None, None, np.dtype(X.dtype))
            return
        with X.opened() as source:
            yield source

    @contextmanager
    def _queries(self, X: Any) -> Iterator[Source]:
        """Return the queries as a source, also those of files and collections."""
        source = self._reading(X)
        try:
            yield source
        finally:
            source.release()

    def _map_rows(self, compute: RowFunction, source: Source, finish: Callable[[Array], Array] | None = None) -> Any:
        """Search for many rows on all threads; the results do not depend on the partition of the rows."""
        if self._is_streamed:
            batches = self._searched_batches(compute, source, finish)
            return batches if source.streams else in_memory(batches)
        n = source.n_rows
        if source.streams or n * self.n_samples_fit_ <= _FEW:
            return super()._map_rows(compute, source, finish)
        engine = local_engine()
        step = engine.chunk_rows or int(np.clip(-(-n // _PARTS), _LEAST_QUERIES, _MOST_QUERIES))
        task, parts = functools.partial(map_part, compute, finish, self._allows_nan), source.plan(step)
        with closing(engine.map_ordered(task, parts, n_jobs=self.n_jobs)) as values:
            return concatenated([value for part in values for value in self._accepted(part, source)])

    @property
    def _pass_rows(self) -> int:
        """Return the number of queries per pass over training rows in files."""
        return int(np.clip(_PASS_VALUES // self.n_features_in_, _LEAST_QUERIES, _PASS_QUERIES))

    def _searched_batches(
        self, compute: RowFunction, source: Source, finish: Callable[[Array], Array] | None
    ) -> Iterator[Array]:
        """Yield the results in large batches, each of which takes a pass over training rows in files."""
        for part in source.plan(self._pass_rows):
            for chunk in part.chunks():
                yield concatenated(self._accepted(map_chunks(compute, finish, self._allows_nan, (chunk,)), source))

    @contextmanager
    def _evaluating(self, X: Any, y: Any = None, sample_weight: Any = None, **options: Any) -> Iterator[Run]:
        """Evaluate in large batches if each takes a pass over training rows in files."""
        with super()._evaluating(X, y, sample_weight, **options) as run:
            if self._is_streamed:
                run.engine = SerialEngine(chunk_rows=self._pass_rows)  # threads are used within each batch
                run.use(run.source)
            yield run
