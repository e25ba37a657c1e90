"""Nearest neighbours of the same rows in the same metric."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from benchmarks.mixtures import rows_in_memory, stream_workload
from benchmarks.streams import Files
from benchmarks.workload import Contender, FitWorkload, Quality

NEIGHBORS = 5
CHECKED = 200  # queries
STREAM_QUERIES = 10_000


class Rows(NamedTuple):
    """Training rows and queries."""

    X: Any
    queries: Any


def normal_rows(rows: int, columns: int, share: float, dtype: Any) -> Rows:
    """Independent normal columns, and queries from the same distribution."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns)).astype(dtype)
    return Rows(X, rng.standard_normal((max(int(rows * share), CHECKED), columns)).astype(dtype))


def sparse_rows(rows: int, columns: int, share: float) -> Rows:
    """Rows like texts: 50 values each, in columns of which a few are frequent."""
    rng = np.random.default_rng(0)

    def draw(n: int) -> Any:
        indices = np.minimum(columns - 1, (columns ** rng.random((n, 50)) - 1).astype(int))
        X = sparse.csr_matrix((rng.random(50 * n), indices.ravel(), np.arange(0, 50 * n + 1, 50)), (n, columns))
        X.sum_duplicates()
        return X

    return Rows(draw(rows), draw(max(int(rows * share), CHECKED)))


def _fit(module: str, **options: Any) -> Callable[[], Callable[[Rows], Any]]:
    def load() -> Callable[[Rows], Any]:
        found = import_module(module).KNeighborsRegressor

        def work(data: Rows) -> Any:
            model = found(NEIGHBORS, **options).fit(data.X, np.zeros(data.X.shape[0]))
            return model.kneighbors(data.queries)[0]

        return work

    return load


def _scipy() -> Callable[[Rows], Any]:
    from scipy.spatial import cKDTree

    return lambda data: cKDTree(data.X).query(data.queries, NEIGHBORS, workers=-1)[0]


def _faiss() -> Callable[[Rows], Any]:
    import faiss

    def work(data: Rows) -> Any:
        index = faiss.IndexFlatL2(data.X.shape[1])
        index.add(data.X)
        return np.sqrt(np.maximum(index.search(data.queries, NEIGHBORS)[0], 0.0))

    return work


def error(data: Rows, distances: Any) -> float:
    """The largest relative error of the distances of some queries."""
    some = data.queries[:CHECKED].astype(np.float64)
    worst = 0.0
    for query, found in zip(some, np.asarray(distances), strict=False):
        true = np.sqrt(np.sort(((data.X - query) ** 2).sum(axis=1))[:NEIGHBORS])
        worst = max(worst, float((np.abs(found - true) / true).max()))
    return worst


def sparse_error(data: Rows, distances: Any) -> float:
    """The same for sparse rows."""
    X, some = data.X, data.queries[:CHECKED]
    squares = (some @ X.T).toarray() * -2.0
    squares += np.asarray(some.multiply(some).sum(axis=1)).reshape(-1, 1)
    squares += np.asarray(X.multiply(X).sum(axis=1)).reshape(1, -1)
    true = np.sqrt(np.sort(squares, axis=1)[:, :NEIGHBORS])
    return float((np.abs(np.asarray(distances)[:CHECKED] - true) / true).max())


def _search_files(in_memory: bool) -> Callable[[], Callable[[Files], Any]]:
    """Search in files, or in the same rows in memory; the last column is the target."""

    def load() -> Callable[[Files], Any]:
        import pyarrow as pa

        import summula
        from summula.neighbors import KNeighborsRegressor

        def work(files: Files) -> Any:
            *features, target = summula.scan(files.paths).columns
            queries = np.random.default_rng(3).normal(0.0, 2.0, (STREAM_QUERIES, len(features)))
            model = KNeighborsRegressor(NEIGHBORS)
            if in_memory:
                X = rows_in_memory(files)
                return model.fit(X[:, :-1], X[:, -1]).kneighbors(queries)[0]
            named = pa.table(dict(zip(features, queries.T, strict=True)))
            return model.fit(summula.scan(files.paths), target).kneighbors(named)[0]

        return work

    return load


OURS = Contender("summula", _fit("summula.neighbors"))
PEERS = (
    Contender("scikit-learn", _fit("sklearn.neighbors", n_jobs=-1)),
    Contender("intelex", _fit("sklearnex.neighbors", n_jobs=-1)),
)


def _dense(
    name: str, title: str, shape: tuple[int, int], share: float, dtype: type, peer: Contender, tolerance: float
) -> FitWorkload:
    make_data, quality = partial(normal_rows, share=share, dtype=dtype), Quality(error, "error", tolerance)
    quick_shape = (2_000, min(shape[1], 32))
    title = f"5 nearest neighbours, {title}"
    return FitWorkload(f"neighbours-{name}", title, shape, quick_shape, make_data, (OURS, *PEERS, peer), quality, 3)


_TREE, _BRUTE = Contender("SciPy cKDTree", _scipy), Contender("FAISS", _faiss)

WORKLOADS = (
    _dense("few-columns", "50,000 queries", (200_000, 6), 0.25, np.float64, _TREE, 1e-6),
    _dense("many-columns", "10,000 queries, float32", (50_000, 128), 0.2, np.float32, _BRUTE, 1e-4),
    FitWorkload(
        name="neighbours-sparse",
        title="5 nearest neighbours of sparse rows with 50 values, 2,000 queries",
        shape=(20_000, 50_000),
        quick_shape=(2_000, 5_000),
        make_data=partial(sparse_rows, share=0.1),
        contenders=(OURS, PEERS[0]),
        quality=Quality(sparse_error, "error", tolerance=1e-6),
        rounds=3,
    ),
    stream_workload(
        "neighbours",
        "5 nearest neighbours, 10,000 queries",
        _search_files,
        lambda files, distances: float(np.sum(distances)),
    ),
)
