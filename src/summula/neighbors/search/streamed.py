"""The search among training rows in files or Dask collections, which are not loaded into memory.

With the rows in consecutive blocks B_1, ..., B_m, and N_k(x, B) the k rows of B that are nearest to x, nearest first,

    N_k(x) = the first k of N_k(x, B_1), ..., N_k(x, B_m), sorted by distance, equal distances by row number       (1)

A block is a step of the grid of rows, about 16 MB. It is read, indexed, searched for all queries, and discarded,
leaving k rows per query. Merging such results is associative, so blocks are searched on all threads, or on the workers
of a cluster. Ranking values have the same bits as those of an index of all rows, and so do the results.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from numpy.typing import NDArray
from scipy import sparse

from summula.core.data.chunks import Chunk, Part
from summula.core.data.layout.blocks import empty_block
from summula.core.data.sources import Source
from summula.core.engine.engine import Engine, ThreadEngine, check_watch
from summula.core.engine.threads import inside_pool
from summula.core.errors import ParameterError
from summula.neighbors.search.base import MetricIndex, Neighbors
from summula.neighbors.search.indexes import index_rows
from summula.neighbors.search.metrics import Metric, PairwiseMetric
from summula.neighbors.search.streamed_rows import StreamedRows

__all__ = ["StreamedIndex", "check_streams"]

Array = NDArray[Any]

_MOST_NEIGHBORS = 2**21  # queries times k in one pass over the training rows: about 32 MB per result
_SEARCHED = 4_096  # queries between checks for interrupts
_LEAST_QUERIES = 64  # minimum number of queries worth a separate pass


def check_streams(metric: Metric | PairwiseMetric) -> None:
    """Raise if a metric needs all training rows in memory."""
    if isinstance(metric, Metric):
        return
    if isinstance(metric.what, str) and metric.what == "precomputed":
        raise ParameterError(
            "metric='precomputed' needs the distances of all training rows in memory: pass an array, or fit the "
            "rows themselves with the metric that the distances are computed by."
        )
    if metric.needs_all_rows:
        option, of = ("V", "variances") if metric.what == "seuclidean" else ("VI", "inverse covariance matrix")
        raise ParameterError(
            f"metric={metric.what!r} does not compute the {of} of training rows in files or Dask collections: pass "
            f"metric_params={{{option!r}: ...}}, or fit rows in memory."
        )


@dataclass(frozen=True)
class StreamedIndex(MetricIndex):
    """Index of training rows that are read in every search.

    Attributes
    ----------
    metric : Metric or PairwiseMetric
        Metric with the scale for all rows.
    rows : StreamedRows
    algorithm : str
    n_jobs : int, optional
    """

    rows: StreamedRows
    algorithm: str
    n_jobs: int | None = None

    @classmethod
    def build(
        cls, rows: StreamedRows, metric: Metric | PairwiseMetric, algorithm: str, n_jobs: int | None
    ) -> StreamedIndex:
        """Return the index for the parameters of a model."""
        check_streams(metric)
        scaled = metric.scaled_to(rows.largest) if isinstance(metric, Metric) else metric
        return cls(scaled, rows, algorithm, n_jobs)

    def check(self, source: Source) -> None:
        """Raise if the options of the metric do not match the rows."""
        index_rows(_stacked(source.chunk(0, 1), (), 1), self.metric, self.algorithm)

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        """Number of rows."""
        return self.rows.shape[0]

    def search(self, X: Any, k: int) -> Neighbors:
        """Merge the nearest rows of all blocks, equation (1): one pass over the rows for many queries."""
        step = max(_LEAST_QUERIES, _MOST_NEIGHBORS // k)
        with self.rows.opened() as source:
            engine = source.engine()
            parts = source.plan(engine.chunk_rows)
            found = [self._pass(X[a : a + step], k, engine, parts) for a in range(0, X.shape[0], step)]
        return Neighbors.stacked(found)

    def _pass(self, X: Any, k: int, engine: Engine, parts: list[Part]) -> Neighbors:
        """Search all parts for some queries."""
        find = functools.partial(_nearest_of_part, self.metric, self.algorithm, k)
        slices = self._slices(X, engine, parts)
        if len(slices) > 1:  # too few parts to occupy all threads: each thread reads all parts for some queries
            of_queries = functools.partial(_nearest_of_parts, find, k, parts)
            return Neighbors.stacked(list(engine.map_ordered(of_queries, slices, n_jobs=self.n_jobs)))
        merge = functools.partial(_merged, k)
        found: Neighbors = engine.map_reduce(functools.partial(find, X), parts, merge, n_jobs=self.n_jobs)
        return found

    def _slices(self, X: Any, engine: Engine, parts: list[Part]) -> list[Any]:
        n = X.shape[0]
        threads = engine.threads(self.n_jobs) if isinstance(engine, ThreadEngine) and not inside_pool() else 1
        if len(parts) >= threads or n < 2 * _LEAST_QUERIES:
            return [X]
        step = max(_LEAST_QUERIES, -(-n // threads))
        return [X[a : a + step] for a in range(0, n, step)]


def _merged(k: int, earlier: Neighbors, later: Neighbors) -> Neighbors:
    return earlier.merged(later, k)


def _first(k: int, found: Iterable[Neighbors]) -> Neighbors:
    """Return the k nearest rows of consecutive blocks, equation (1)."""
    return functools.reduce(functools.partial(_merged, k), found)


def _nearest_of_parts(find: Callable[[Any, Part], Neighbors], k: int, parts: Sequence[Part], X: Any) -> Neighbors:
    return _first(k, (find(X, part) for part in parts))


def _nearest_of_part(metric: Metric | PairwiseMetric, algorithm: str, k: int, X: Any, part: Part) -> Neighbors:
    """Return the k nearest rows of a part, by their numbers among all rows."""
    return _first(k, _nearest_of_blocks(metric, algorithm, k, X, part))


def _nearest_of_blocks(
    metric: Metric | PairwiseMetric, algorithm: str, k: int, X: Any, part: Part
) -> Iterator[Neighbors]:
    """Yield the nearest rows of every block of a part."""
    for chunks in part.by_step():
        chunk = next(chunks)
        first, end = chunk.start, min((chunk.start // part.step + 1) * part.step, part.stop)
        index = index_rows(_stacked(chunk, chunks, end - first), metric, algorithm)
        del chunk
        found = []
        for a in range(0, X.shape[0], _SEARCHED):
            check_watch()
            found.append(index.search(X[a : a + _SEARCHED], min(k, index.n_rows)))
        values, rows = Neighbors.stacked(found)
        yield Neighbors(values, rows + first)


def _stacked(first: Chunk, others: Iterable[Chunk], rows: int) -> Any:
    """Return the first `rows` rows of consecutive chunks as one block, or CSR matrix."""
    if first.is_sparse:
        return sparse.csr_matrix(sparse.vstack([first.X, *(chunk.X for chunk in others)], format="csr"))
    if len(first) == rows:
        return first.block()
    out = empty_block(rows, first.n_features, first.dtype)
    for chunk in chain([first], others):
        at = chunk.start - first.start
        chunk.write(out[at : at + len(chunk)])
    return out
