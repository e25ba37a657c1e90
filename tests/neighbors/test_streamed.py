"""Nearest neighbours of training rows in files and Dask collections: the same bits as in memory, in bounded memory."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline

import summula
from summula.core.engine.engine import ThreadEngine
from summula.neighbors import KNeighborsClassifier, KNeighborsRegressor
from summula.neighbors.search import streamed
from summula.preprocessing import StandardScaler
from tests.neighbors.stream_pairs import QUERIES, assert_same, features, pair, scanned, table
from tests.reference.nearest import nearest_rows

Array = Any

# ------------------------------------------------------------------------------------------------------- the same bits


@pytest.mark.parametrize("engine", ["threads", "serial"])
@pytest.mark.parametrize("rows", [None, 3, 64, 301])
@pytest.mark.parametrize("name", ["ties", "many columns", "single"])
def test_neighbours_are_those_of_memory_to_the_bit(
    name: str, rows: int | None, engine: str, small_parts: Any, tmp_path: Path
) -> None:
    frame = table(name)
    expected, _ = pair(frame, tmp_path)
    with small_parts(rows, engine):
        model = pair(frame, tmp_path)[1]
        assert_same(expected.kneighbors(features(frame)), model.kneighbors(features(frame)))
        np.testing.assert_array_equal(expected.predict(features(frame)), model.predict(features(frame)))


def test_ties_across_blocks_go_to_the_smaller_row_number(small_parts: Any, tmp_path: Path) -> None:
    frame = table("ties")
    X = features(frame, None).to_numpy()
    wanted = nearest_rows(X, X[:50], 40)
    for rows in (1, 7, 50):
        with small_parts(rows):
            model = pair(frame, tmp_path)[1]
            assert_same(wanted, model.kneighbors(features(frame, 50), 40))  # k is larger than a block
    assert_same(wanted, model.kneighbors(features(frame, 50), 40))


METRICS: dict[str, tuple[str, dict[str, Any]]] = {
    "manhattan": ("ties", {"p": 1}),
    "chebyshev": ("ties", {"metric": "chebyshev"}),
    "power": ("normal", {"p": 3}),
    "power below 1": ("normal", {"p": 0.5, "algorithm": "brute"}),
    "weighted": ("normal", {"metric_params": {"w": [1.0, 0.0, 2.0, 3.0]}}),
    "cosine": ("ties", {"metric": "cosine"}),
    "hamming": ("ties", {"metric": "hamming"}),
    "haversine": ("two columns", {"metric": "haversine"}),
    "canberra": ("normal", {"metric": "canberra"}),
    "jaccard": ("ties", {"metric": "jaccard"}),
    "seuclidean": ("normal", {"metric": "seuclidean", "metric_params": {"V": [1.0, 2.0, 3.0, 4.0]}}),
    "mahalanobis": ("normal", {"metric": "mahalanobis", "metric_params": {"VI": np.eye(4) + 0.1}}),
    "nan_euclidean": ("missing", {"metric": "nan_euclidean"}),
    "function": ("normal", {"metric": lambda x, z: float(np.abs(x - z).max())}),
    "magnitudes": ("magnitudes", {}),
    "tree": ("ties", {"algorithm": "kd_tree"}),
    "weights": ("ties", {"weights": "distance"}),
}


@pytest.mark.parametrize("metric", METRICS)
def test_every_metric(metric: str, small_parts: Any, tmp_path: Path) -> None:
    name, options = METRICS[metric]
    frame = table(name, 150 if metric == "function" else 700)
    few = features(frame, 30).dropna(how="all")
    with small_parts(64):
        expected, model = pair(frame, tmp_path, **options)
        assert_same(expected.kneighbors(few), model.kneighbors(few))
        np.testing.assert_array_equal(expected.predict(few), model.predict(few))


def test_classes(small_parts: Any, tmp_path: Path) -> None:
    frame = table()
    with small_parts(64):
        expected, model = pair(frame, tmp_path, KNeighborsClassifier, weights="distance")
    assert_same([expected.classes_, expected._y], [model.classes_, model._y])
    assert_same([expected.predict_proba(features(frame))], [model.predict_proba(features(frame))])
    assert_same([expected.predict(features(frame))], [model.predict(features(frame))])
    rows = frame.drop(columns="y")
    assert model.score(rows, "c") == expected.score(rows, "c")
    assert model.score(scanned(rows, tmp_path / ".."), "c") == expected.score(rows, "c")


def test_training_rows_are_not_their_own_neighbours(small_parts: Any, tmp_path: Path) -> None:
    frame = table(rows=300)
    expected, model = pair(frame, tmp_path)
    with small_parts(50):
        assert_same(expected.kneighbors(), model.kneighbors())
        assert_same([expected.predict(None)], [model.predict(None)])
        assert_same([expected.loo_curve(8)], [model.loo_curve(8)])
        assert (expected.kneighbors_graph(mode="distance") != model.kneighbors_graph(mode="distance")).nnz == 0


# ------------------------------------------------------------------------------------------------------------- queries


def test_a_pass_serves_many_queries(few_queries: list[int], tmp_path: Path) -> None:
    frame = table()
    expected, model = pair(frame, tmp_path)
    np.testing.assert_array_equal(model.predict(features(frame, None)), expected.predict(features(frame, None)))
    assert few_queries == [256, 256, 188]
    few_queries.clear()
    queries = scanned(features(frame, None), tmp_path / "..", 100)
    batches = model.predict(queries)
    assert isinstance(batches, Iterator)
    np.testing.assert_array_equal(np.concatenate(list(batches)), expected.predict(features(frame, None)))
    assert few_queries == [256, 256, 188]
    few_queries.clear()
    assert model.score(model._fit_X.source.table, "y") == pytest.approx(
        expected.score(frame.drop(columns="c"), "y"), rel=1e-12
    )
    assert few_queries == [256, 256, 188]


def test_many_neighbours_take_further_passes(
    few_queries: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streamed, "_MOST_NEIGHBORS", 1_000)
    frame = table()
    expected, model = pair(frame, tmp_path)
    assert_same(expected.kneighbors(features(frame), 10), model.kneighbors(features(frame), 10))
    assert few_queries == [100, 20]


def test_one_part_is_searched_on_all_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of one row group cannot be divided, but queries can."""
    sizes = []
    search = streamed._nearest_of_part
    monkeypatch.setattr(
        streamed, "_nearest_of_part", lambda *given: sizes.append((given[3].shape[0], given[4])) or search(*given)
    )
    frame = table("normal")
    expected, _ = pair(frame, tmp_path)
    model = KNeighborsRegressor().fit(scanned(frame.drop(columns="c"), tmp_path, 10_000), "y")
    monkeypatch.setattr(ThreadEngine, "threads", lambda self, n_jobs=None: 3)
    np.testing.assert_array_equal(model.predict(features(frame, 300)), expected.predict(features(frame, 300)))
    assert [n for n, _ in sizes] == [100, 100, 100]


def test_neighbours_of_rows_in_files(tmp_path: Path) -> None:
    frame = table()
    queries = scanned(features(frame), tmp_path / "..", 50)
    for model in pair(frame, tmp_path):
        assert_same(model.kneighbors(features(frame)), model.kneighbors(queries))
        assert (model.kneighbors_graph(queries) != model.kneighbors_graph(features(frame))).nnz == 0


def test_predictions_are_written_to_a_file(tmp_path: Path) -> None:
    frame = table()
    expected, model = pair(frame, tmp_path, KNeighborsClassifier)
    assert model.predict_to(model._fit_X.source.table, tmp_path / "found.parquet") == len(frame)
    found = pd.read_parquet(tmp_path / "found.parquet")["prediction"]
    np.testing.assert_array_equal(found, expected.predict(features(frame, None)))


def test_a_pipeline_on_files(tmp_path: Path) -> None:
    frame = table("normal").drop(columns="c")
    rows = scanned(frame, tmp_path)
    model = make_pipeline(StandardScaler(), KNeighborsRegressor()).fit(rows, "y")
    expected = make_pipeline(StandardScaler(), KNeighborsRegressor()).fit(frame.drop(columns="y"), frame["y"])
    few = frame.drop(columns="y")[:QUERIES]
    np.testing.assert_array_equal(model.predict(few), expected.predict(few))


# --------------------------------------------------------------------------------------------------------------- Dask


def test_collections(tmp_path: Path) -> None:
    dd = pytest.importorskip("dask.dataframe")
    frame = table()
    expected, _ = pair(frame, tmp_path, KNeighborsClassifier)
    rows = dd.from_pandas(frame.drop(columns="y"), npartitions=5)
    model = KNeighborsClassifier().fit(rows, "c")
    few = features(frame)
    for one in (model, pickle.loads(pickle.dumps(model))):
        assert_same(expected.kneighbors(few), one.kneighbors(few))
        assert_same([expected.predict_proba(few)], [one.predict_proba(few)])
    assert_same(expected.kneighbors(), model.kneighbors())
    assert_same(expected.kneighbors(features(frame, None)), model.kneighbors(rows))
    assert model.score(rows, "c") == expected.score(frame.drop(columns="y"), "c")
    np.testing.assert_array_equal(np.asarray(model.predict(rows)), expected.predict(features(frame, None)))


def test_sparse_collections() -> None:
    da = pytest.importorskip("dask.array")
    rng = np.random.default_rng(1)
    X = sparse.random(400, 30, 0.2, format="csr", random_state=rng)
    y = rng.normal(size=400)
    lazy = da.from_array(np.asarray(X.todense()), chunks=(90, 30)).map_blocks(sparse.csr_matrix)
    for options in ({}, {"metric": "cosine"}):
        expected, model = (KNeighborsRegressor(**options).fit(rows, y) for rows in (X, lazy))
        assert_same(expected.kneighbors(X[:50]), model.kneighbors(X[:50]))


def test_predictions_of_collections_are_lazy(few_queries: list[int]) -> None:
    da = pytest.importorskip("dask.array")
    X, y = features(table(), None).to_numpy(), table()["y"].to_numpy()
    model = KNeighborsRegressor().fit(da.from_array(X, chunks=(200, 4)), y)
    lazy = model.predict(da.from_array(X, chunks=(350, 4)))
    assert few_queries == [], "the form of the result takes no pass"
    np.testing.assert_array_equal(np.asarray(lazy), KNeighborsRegressor().fit(X, y).predict(X))


def test_a_cluster_searches_files_and_collections(dask_client: Any, tmp_path: Path) -> None:
    import dask.array as da

    frame = table().drop(columns="c")
    X, y = frame.drop(columns="y").to_numpy(), frame["y"].to_numpy()
    expected = KNeighborsRegressor().fit(X, y)
    with summula.engine(dask_client, chunk_rows=100):
        in_files = KNeighborsRegressor().fit(scanned(frame, tmp_path), "y")
        collected = KNeighborsRegressor().fit(da.from_array(X, chunks=(150, 4)), y)
        few = frame.drop(columns="y")[:QUERIES]
        assert_same(expected.kneighbors(X[:QUERIES]), in_files.kneighbors(few))
        assert_same(expected.kneighbors(X[:QUERIES]), collected.kneighbors(X[:QUERIES]))
    # Each is used without the cluster, too, and by tasks of the cluster that search for their own rows.
    assert_same(expected.kneighbors(X[:QUERIES]), collected.kneighbors(X[:QUERIES]))
    lazy = collected.predict(da.from_array(X, chunks=(350, 4)))
    np.testing.assert_array_equal(dask_client.compute(lazy, sync=True), expected.predict(X))
