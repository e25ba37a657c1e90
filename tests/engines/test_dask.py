"""Dask: the same bits on any worker, also if workers fail; lazy predictions."""

from __future__ import annotations

import _thread
import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, Future, LocalCluster
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.pipeline import make_pipeline

import summula
from summula import ClusterError, DataError, ParameterError, TimeLimitError
from summula.core.data import chunks
from summula.core.engine.engine import Engine, SerialEngine, ThreadEngine, watched
from summula.core.estimator.input.validation import as_source
from summula.core.estimator.run import Run
from summula.engines.dask import DaskEngine
from summula.engines.dask_memory import keeping_freed_memory
from summula.features import PolynomialLift
from summula.linear_model import LinearRegression, LogisticRegression, PolynomialRegression, Ridge
from summula.preprocessing import StandardScaler
from tests.contract.compare import assert_close, assert_same_bits, fitted_attributes, without_names
from tests.contract.registry import wide_sparse
from tests.engines import slow_work
from tests.engines.slow_work import Gate
from tests.processes import TIMEOUT, run

N, D = 5_003, 4
NAMES = [f"column {j}" for j in range(D)]


@pytest.fixture(scope="module")
def data() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(2.0, 1.0, (N, D))
    return X, X @ rng.normal(size=D) + rng.normal(size=N), rng.integers(0, 3, N).astype(float)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of one chunk, so that small data make many of them."""
    monkeypatch.setattr(chunks, "_PART_ELEMENTS", 1)


@pytest.fixture
def client(dask_client: Client) -> Iterator[Client]:
    """The cluster, with both workers; no data may remain on it afterwards."""
    dask_client.wait_for_workers(2, timeout=TIMEOUT)
    yield dask_client
    assert_nothing_left(dask_client)


def assert_nothing_left(client: Client) -> None:
    until = time.monotonic() + TIMEOUT
    while (left := client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks))) and (
        time.monotonic() < until
    ):
        time.sleep(0.05)
    assert not left


def in_memory_of(client: Client, n: int) -> list[Any]:
    """Return the keys on the cluster, once there are n of them; released ones disappear with a delay."""
    for _ in range(6_000):
        held = [key for keys in client.has_what().values() for key in keys]
        if len(held) == n:
            break
        time.sleep(0.05)
    assert len(held) == n
    return held


def attributes(model: Any) -> dict[str, Any]:
    return without_names(fitted_attributes(model))


def unknown(collection: Any) -> Any:
    """Return the same array with unknown block lengths."""
    known = tuple((float("nan"),) * len(collection.chunks[0]) if k == 0 else c for k, c in enumerate(collection.chunks))
    return da.Array(collection.dask, collection.name, known, meta=collection._meta)


def with_empty_partitions(frame: pd.DataFrame | pd.Series, *ends: int) -> Any:
    """A dataframe in partitions that end at these rows; two ends alike make an empty one."""
    lines = [0, *ends, len(frame)]
    parts = [frame.iloc[a:b] for a, b in zip(lines, lines[1:], strict=False)]
    return dd.from_map(lambda k: parts[k], range(len(parts)), meta=frame.iloc[:0])


def frame_of(X: Any, y: Any, w: Any) -> pd.DataFrame:
    return pd.DataFrame(X, columns=NAMES).assign(y=y, w=w)


@pytest.fixture(params=["threads", "cluster"])
def place(request: pytest.FixtureRequest, dask_client: Client) -> Iterator[str]:
    """Where a fit on collections is computed: in threads, or by a client given to engine()."""
    if request.param == "threads":
        with summula.engine("threads", chunk_rows=300):
            yield request.param
        return
    dask_client.wait_for_workers(2, timeout=TIMEOUT)
    with summula.engine(dask_client, chunk_rows=300):
        yield request.param
    assert_nothing_left(dask_client)


def threads() -> Any:
    return summula.engine("threads", chunk_rows=300)


# -------------------------------------------------------------------------------------------------------- collections

Collections = Callable[[Any, Any, Any], tuple[Any, Any, Any]]

COLLECTIONS: dict[str, Collections] = {
    "array": lambda X, y, w: (da.from_array(X, chunks=(700, D)), da.from_array(y, chunks=700), None),
    "array, weights": lambda X, y, w: (da.from_array(X, chunks=(700, D)), da.from_array(y, chunks=700),
                                       da.from_array(w, chunks=700)),
    "array, other blocks": lambda X, y, w: (da.from_array(X, chunks=(700, 3)), da.from_array(y, chunks=1_111),
                                            da.from_array(w, chunks=90)),
    "array, one block": lambda X, y, w: (da.from_array(X, chunks=-1), da.from_array(y, chunks=-1), None),
    "array, small blocks": lambda X, y, w: (da.from_array(X, chunks=(101, D)), da.from_array(y, chunks=101), None),
    "array, unknown lengths": lambda X, y, w: (unknown(da.from_array(X, chunks=(700, D))),
                                               unknown(da.from_array(y, chunks=800)),
                                               unknown(da.from_array(w, chunks=900))),
    "array, y and weights in memory": lambda X, y, w: (da.from_array(X, chunks=(700, D)), y, w),
    "array, y of several columns": lambda X, y, w: (da.from_array(X, chunks=(700, D)),
                                                    da.from_array(np.column_stack([y, w]), chunks=(600, 1)), None),
    "frame": lambda X, y, w: (dd.from_pandas(frame_of(X, y, w)[NAMES], npartitions=6),
                              dd.from_pandas(pd.Series(y), npartitions=3), None),
    "frame, column names": lambda X, y, w: (dd.from_pandas(frame_of(X, y, w), npartitions=6), "y", "w"),
    "frame, list of names": lambda X, y, w: (dd.from_pandas(frame_of(X, y, w), npartitions=6), ["w", "y"], None),
    "frame, empty partitions": lambda X, y, w: (with_empty_partitions(frame_of(X, y, w), 0, 10, 10, 2_000, N), "y", "w"),
    "frame, empty partitions of y": lambda X, y, w: (with_empty_partitions(frame_of(X, y, w)[NAMES], 600, 2_000),
                                                     with_empty_partitions(pd.Series(y), 0, 300, 300),
                                                     with_empty_partitions(pd.Series(w), 5)),
    "frame, persisted": lambda X, y, w: (dd.from_pandas(frame_of(X, y, w), npartitions=6).persist(), "y", "w"),
    "array, persisted": lambda X, y, w: (*dask.persist(da.from_array(X, chunks=(700, D)), da.from_array(y, chunks=700)),
                                         None),
}  # fmt: skip


def in_memory(X: Any, y: Any, w: Any, given_y: Any, given_w: Any) -> tuple[Any, Any, Any]:
    """Return the collections as arrays."""
    if isinstance(given_y, list):
        y = np.column_stack([w, y])
    elif getattr(given_y, "ndim", 1) == 2:
        y = np.column_stack([y, w])
    return X, y, None if given_w is None else w


@pytest.mark.parametrize("make", COLLECTIONS.values(), ids=COLLECTIONS.keys())
def test_collections_give_the_bits_of_arrays(make: Collections, place: str, data: Any) -> None:
    given = make(*data)
    X, y, w = in_memory(*data, *given[1:])
    with threads():
        expected = LinearRegression().fit(X, y, w)
    model = LinearRegression().fit(*given)
    assert_same_bits(attributes(expected), attributes(model))
    assert hasattr(model, "feature_names_in_") == (not isinstance(given[0], da.Array))


@pytest.mark.parametrize(
    "kind", ["array, other blocks", "frame, empty partitions", "frame, persisted", "array, persisted"]
)
def test_the_client_that_dask_uses_computes_collections(kind: str, client: Client, data: Any) -> None:
    with client.as_current():
        given = COLLECTIONS[kind](*data)
        assert isinstance(as_source(LinearRegression(), *given, needs_y=True).engine(), DaskEngine)
        model = LinearRegression().fit(*given)
    X, y, w = in_memory(*data, *given[1:])
    assert_same_bits(attributes(LinearRegression().fit(X, y, w)), attributes(model))


MODELS = [
    Ridge(alpha=0.1), LinearRegression(positive=True), LinearRegression(fit_intercept=False),
    PolynomialRegression(degree=3), StandardScaler(), PolynomialLift(),
]  # fmt: skip


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_every_estimator_gives_the_bits_of_arrays(model: Any, place: str, data: Any) -> None:
    X, y, _ = data
    with threads():
        expected = attributes(model.fit(X, y))
    assert_same_bits(expected, attributes(model.fit(da.from_array(X, chunks=(700, 3)), da.from_array(y, chunks=700))))


def test_several_passes_over_one_collection_load_it_once(client: Client, data: Any, tmp_path: Any) -> None:
    X, y, _ = data

    def noted(block: Any) -> Any:
        if len(block):
            open(tmp_path / f"{block[0, 0]}-{time.time_ns()}", "w").close()
        return block

    blocks = da.from_array(X, chunks=(700, D)).map_blocks(noted, meta=X[:0])
    with summula.engine(client, chunk_rows=300):
        expected, model = LinearRegression().fit(X, y), LinearRegression().fit(blocks, da.from_array(y, chunks=700))
    assert_same_bits(attributes(expected), attributes(model))
    assert len(list(tmp_path.iterdir())) == 8


def test_passes_over_some_of_the_rows_leave_the_others(client: Client, data: Any) -> None:
    source = as_source(LinearRegression(), da.from_array(data[0], chunks=(700, D)), needs_y=False)
    parts, engine = source.plan(300), DaskEngine(client)
    try:
        for some in (parts[:3], parts[:3], parts[:3], parts, parts, parts[2:5], parts[2:5], parts[2:5], parts):
            sums = list(engine.map_ordered(slow_work.column_sums, some))
            np.testing.assert_allclose(sums, [data[0][part.start : part.stop].sum(axis=0) for part in some])
        assert {key.partition("-")[0] for key in in_memory_of(client, len(parts))} == {"make_rows"}
    finally:
        source.release()


def test_sparse_blocks_are_solved_by_conjugate_gradients(place: str) -> None:
    X, y = wide_sparse()
    blocks = da.from_array(X, chunks=(900, X.shape[1]), asarray=False)
    with threads():
        expected = Ridge().fit(X, y)
    model = Ridge().fit(blocks, da.from_array(y, chunks=1_000))
    assert_same_bits(attributes(expected), attributes(model))
    assert_close(expected.predict(X), model.predict(blocks).compute())
    with pytest.raises((TypeError, DataError), match="[Ss]parse"):
        PolynomialRegression().fit(blocks, y)


LABELS: dict[str, Callable[[Any], Any]] = {
    "array": lambda y: da.from_array(y, chunks=700),
    "array of one column": lambda y: da.from_array(y[:, None], chunks=(700, 1)),
    "series": lambda y: with_empty_partitions(pd.Series(y), 0, 300, 300),
    "text": lambda y: dd.from_pandas(pd.Series(np.where(y > 0, "more", "less")), npartitions=3),
}


@pytest.mark.parametrize("make", LABELS.values(), ids=LABELS.keys())
def test_labels_are_found_where_the_fit_computes(make: Any, place: str, data: Any, dask_client: Client) -> None:
    X, y = data[0], (data[1] > data[1].mean()).astype(int)
    given = make(y)
    if place == "cluster":
        given = dask_client.persist(given)  # no other worker can compute it now
    with threads():
        expected = LogisticRegression().fit(X, y)
    model = LogisticRegression().fit(da.from_array(X, chunks=(700, D)), given)
    assert_same_bits(expected.coef_, model.coef_)
    assert list(model.classes_) in ([0, 1], ["less", "more"])


def test_single_precision_is_kept(place: str, data: Any) -> None:
    X, y = data[0].astype(np.float32), data[1].astype(np.float32)
    with threads():
        expected = Ridge().fit(X, y)
    model = Ridge().fit(da.from_array(X, chunks=(700, D)), da.from_array(y, chunks=800))
    assert_same_bits(attributes(expected), attributes(model))
    assert model.coef_.dtype == np.float32


def test_whole_numbers_and_booleans_are_numbers(place: str, data: Any) -> None:
    frame = pd.DataFrame({"a": np.arange(N) % 11, "b": np.arange(N) % 3 == 0, "c": data[0][:, 0].astype(np.float32)})
    with threads():
        expected = LinearRegression().fit(frame, data[1])
    model = LinearRegression().fit(dd.from_pandas(frame, npartitions=5), data[1])
    assert_same_bits(attributes(expected), attributes(model))


def test_certificate_and_robust_errors_read_collections_again(place: str, data: Any) -> None:
    X, y, _ = data
    given = da.from_array(X, chunks=(700, D)), da.from_array(y, chunks=700)
    model, expected = LinearRegression().fit(*given), LinearRegression().fit(X, y)
    assert model.certificate_.verify(*given)
    assert_close(expected.summary(cov="HC3").std_error, model.summary(cov="HC3").std_error)


def test_a_pipeline_stays_lazy_between_its_steps(place: str, data: Any) -> None:
    X, y, _ = data
    given = dd.from_pandas(pd.DataFrame(X, columns=NAMES), npartitions=4)
    model, expected = make_pipeline(StandardScaler(), Ridge()), make_pipeline(StandardScaler(), Ridge())
    predicted = model.fit(given, da.from_array(y, chunks=600)).predict(given)
    assert isinstance(predicted, da.Array)
    assert_close(expected.fit(X, y).predict(X), predicted.compute())


def test_without_a_client_a_pass_computes_every_block_once(data: Any) -> None:
    X, _, _ = data
    computed: list[float] = []

    def noted(block: Any) -> Any:
        computed.append(block[0, 0] if len(block) else 0.0)
        return block

    blocks = da.from_array(X, chunks=(700, D)).map_blocks(noted, meta=X[:0])
    with summula.engine("threads", chunk_rows=300):
        StandardScaler().fit(blocks)
    assert len(set(computed)) == 8
    assert len(computed) <= 8 + 1  # the first once more, for the origin


# ------------------------------------------------------------------------------------------- any source on a cluster


@pytest.fixture
def files(tmp_path: Any, data: Any) -> Any:
    X, y, w = data
    for k, rows in enumerate((slice(0, 2_000), slice(2_000, None))):
        frame_of(X[rows], y[rows], w[rows]).to_parquet(tmp_path / f"{k}.parquet", row_group_size=333)
    return summula.scan(str(tmp_path / "*.parquet"))


SOURCES: dict[str, Callable[[Any, Any, Any, Any], tuple[Any, Any, Any]]] = {
    "array": lambda X, y, w, files: (X, y, w),
    "Fortran order": lambda X, y, w, files: (np.asfortranarray(X), y, w),
    "pandas": lambda X, y, w, files: (frame_of(X, y, w), "y", "w"),
    "sparse": lambda X, y, w, files: (sparse.csr_array(X * (X > 2)), y, w),
    "scan": lambda X, y, w, files: (files, "y", "w"),
}


@pytest.mark.parametrize(
    "model", [LinearRegression(), PolynomialRegression(), StandardScaler(with_mean=False)], ids=repr
)
@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES.keys())
def test_a_cluster_gives_the_bits_of_threads(make: Any, model: Any, client: Client, data: Any, files: Any) -> None:
    X, y, w = make(*data, files)
    if sparse.issparse(X) and isinstance(model, PolynomialRegression):
        pytest.skip("takes no sparse data")
    with summula.engine("threads", chunk_rows=300):
        expected = attributes(model.fit(X, y, w))
    with summula.engine(client, chunk_rows=300) as engine:
        assert isinstance(engine, DaskEngine)
        assert_same_bits(expected, attributes(model.fit(X, y, w)))


def test_conjugate_gradients_on_a_cluster_give_the_bits_of_threads(client: Client) -> None:
    X, y = wide_sparse()
    with summula.engine("threads", chunk_rows=1_000):
        expected = Ridge().fit(X, y)
    with summula.engine(client, chunk_rows=1_000):
        assert_same_bits(attributes(expected), attributes(Ridge().fit(X, y)))


def test_what_goes_with_a_row_is_computed_on_a_cluster_too(client: Client, data: Any, files: Any) -> None:
    X, y, _ = data
    model, scaler = LinearRegression().fit(frame_of(*data), "y", sample_weight="w"), StandardScaler().fit(X)
    with summula.engine("threads", chunk_rows=300):
        expected = model.predict(pd.DataFrame(X, columns=NAMES)), scaler.transform(X)
    with summula.engine(client, chunk_rows=300):
        assert_same_bits(expected[1], scaler.transform(X))
        # Products of row-major and of column-major blocks with a vector may differ in the last place.
        assert_close(expected[0], model.predict(pd.DataFrame(X, columns=NAMES)))
        assert_close(expected[0], np.concatenate(list(model.predict(files))))


def test_missing_values_are_named_with_their_row(client: Client, data: Any) -> None:
    X, y, _ = data
    X = X.copy()
    X[4_321, 2] = np.nan
    with summula.engine(client, chunk_rows=300):
        for given in (X, da.from_array(X, chunks=(700, D))):
            with pytest.raises(DataError, match=r"Column 2 has 1 missing value \(NaN; first at row 4321\)"):
                LinearRegression().fit(given, y)


# -------------------------------------------------------------------------------------------------------- the engine


def parts_of(X: Any, rows: int = 300) -> list[Any]:
    return as_source(LinearRegression(), X, needs_y=False).plan(rows)


def test_values_come_in_order_and_sums_by_position(client: Client) -> None:
    engine = DaskEngine(client)
    assert isinstance(engine, Engine)
    assert list(engine.map_ordered(slow_work.square, range(50))) == [k * k for k in range(50)]
    assert list(engine.map_ordered(slow_work.square, [])) == []
    expected = SerialEngine().map_reduce(str, range(13), lambda a, b: f"({a}{b})")
    ticks: list[int] = []
    assert engine.map_reduce(str, range(13), lambda a, b: f"({a}{b})", on_part=lambda: ticks.append(1)) == expected
    assert len(ticks) == 13


@pytest.mark.parametrize(("n_jobs", "most"), [(None, 8), (-1, 8), (1, 1), (3, 3), (99, 8)])
def test_few_tasks_are_sent_ahead(
    n_jobs: int | None, most: int, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent, send = [0], Client.map

    def counted(self: Client, *args: Any, **options: Any) -> Any:
        futures = send(self, *args, **options)
        sent[0] += len(futures)
        return futures

    monkeypatch.setattr(Client, "map", counted)
    taken = 0
    for _ in DaskEngine(client).map_ordered(slow_work.square, range(40), n_jobs=n_jobs):
        assert sent[0] - taken <= 2 * most  # running tasks, and those just submitted
        taken += 1
    assert taken == sent[0] == 40


def test_a_large_function_is_sent_once(client: Client, data: Any) -> None:
    weights = np.arange(400_000.0)

    def weighed(part: Any) -> float:
        return float(weights[part.start])

    assert list(DaskEngine(client).map_ordered(weighed, parts_of(data[0]))) == list(range(0, N, 300))


def test_a_part_carries_its_own_rows_without_a_warning(client: Client) -> None:
    X = np.ones((70_000, 40))  # parts of 11 MB: more than Dask likes to see in a graph
    with summula.engine(client, chunk_rows=35_000):
        assert StandardScaler().fit(X).n_samples_seen_ == 70_000


@pytest.mark.parametrize(
    ("options", "message"),
    [({"chunk_rows": 0}, "chunk_rows"), ({"retries": -1}, "retries"), ({"retries": 1.5}, "retries"),
     ({"worker_timeout": 0}, "worker_timeout"), ({"rows": 3}, "no option 'rows'")],
)  # fmt: skip
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], message: str, client: Client) -> None:
    with pytest.raises(ParameterError, match=message), summula.engine(client, **options):
        pass


def test_a_cluster_is_not_a_client(client: Client) -> None:
    with pytest.raises(ParameterError, match=r"Client\(cluster\)"), summula.engine(client.cluster):
        pass


def test_a_choice_of_threads_holds_for_collections_on_a_cluster(client: Client, data: Any) -> None:
    with client.as_current():
        X = da.from_array(data[0], chunks=(700, D)).persist()
        with summula.engine("threads", chunk_rows=300):
            expected, model = StandardScaler().fit(data[0]), StandardScaler().fit(X)
            assert isinstance(as_source(StandardScaler(), X, needs_y=False).engine(), ThreadEngine)
        assert_same_bits(attributes(expected), attributes(model))
        del X


# ----------------------------------------------------------------------------------------------------- lazy predictions


def test_predictions_are_put_off(data: Any) -> None:
    X, y, _ = data
    computed: list[int] = []

    def noted(block: Any) -> Any:
        computed.append(len(block))
        return block

    model = LinearRegression().fit(X, y)
    lazy = da.from_array(X, chunks=(700, 3)).map_blocks(noted, meta=X[:0])
    predicted = model.predict(lazy)
    assert isinstance(predicted, da.Array)
    assert predicted.chunks == (lazy.chunks[0],)
    assert predicted.dtype == np.float64
    assert not computed
    expected = model.predict(X)
    model.fit(X, -y)  # earlier lazy predictions use the model at that time
    assert_close(expected, predicted.compute())
    assert computed


def test_several_targets_and_transformed_rows_have_their_width(data: Any) -> None:
    X, y, _ = data
    lazy = da.from_array(X, chunks=(700, D))
    assert_close(
        Ridge().fit(X, np.column_stack([y, -y])).predict(X),
        (predicted := Ridge().fit(X, np.column_stack([y, -y])).predict(lazy)).compute(),
    )
    assert predicted.shape == (N, 2)
    for transformer in (StandardScaler().fit(X), PolynomialLift().fit(X)):
        made = transformer.transform(lazy)
        assert made.shape == transformer.transform(X).shape
        assert made.chunks[0] == lazy.chunks[0]
        assert_same_bits(transformer.transform(X), made.compute())
    scaler = StandardScaler().fit(X)
    assert_same_bits(scaler.inverse_transform(X), scaler.inverse_transform(lazy).compute())
    assert StandardScaler().fit(X.astype(np.float32)).transform(lazy.astype(np.float32)).dtype == np.float32


def test_frames_are_predicted_by_the_names_of_their_columns(data: Any) -> None:
    whole = frame_of(*data)
    model = LinearRegression().fit(with_empty_partitions(whole, 0, 100, 100), "y", sample_weight="w")
    expected = model.predict(whole[NAMES])
    for frame in (whole, whole[NAMES]):  # target and weight are ignored
        predicted = model.predict(with_empty_partitions(frame, 700, 700, 2_000))
        assert isinstance(predicted, da.Array)
        assert_close(expected, predicted.compute())
    with pytest.raises(ValueError, match="feature names"):
        model.predict(dd.from_pandas(whole[NAMES].rename(columns={NAMES[0]: "other"}), npartitions=2))
    with pytest.raises(ValueError, match="features"):
        LinearRegression().fit(data[0], data[1]).predict(da.ones((10, D + 1)))
    with pytest.raises(NotFittedError):
        LinearRegression().predict(da.ones((10, D)))


def test_a_missing_value_raises_when_a_prediction_is_computed(data: Any) -> None:
    X = data[0].copy()
    model = LinearRegression().fit(X, data[1])
    X[1_500, 1] = np.nan
    predicted = model.predict(da.from_array(X, chunks=(700, D)))
    with pytest.raises(DataError, match=r"Column 1 has 1 missing value .*row 100.*block 2"):
        predicted.compute()


def test_predictions_are_written_block_by_block(place: str, data: Any, tmp_path: Any) -> None:
    X, y, _ = data
    model, path = LinearRegression().fit(X, y), tmp_path / "predicted.parquet"
    assert model.predict_to(unknown(da.from_array(X, chunks=(700, D))), path) == N
    assert_close(model.predict(X), pd.read_parquet(path)["prediction"].to_numpy())


# ------------------------------------------------------------------------------------------------------- bad collections


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda X, y: (da.from_array(X[:, 0], chunks=700), y), "X is a Dask Array; .* two-dimensional"),
        (lambda X, y: (da.from_array(X, chunks=(700, D)), y[:-1]), f"X has {N} rows and y has {N - 1}"),
        (lambda X, y: (da.from_array(X, chunks=(700, D)), da.from_array(y[1:], chunks=70)), f"y has {N - 1}"),
        (lambda X, y: (da.from_array(X, chunks=(700, D)), None), "requires y to be passed"),
        (lambda X, y: (da.from_array(X, chunks=(700, D)), "y"), "is a column name"),
        (lambda X, y: (da.from_array(X, chunks=(700, D)), y, "w"), "is a column name"),
        (lambda X, y: (da.from_array(X, chunks=(700, D)), y, da.ones(7, chunks=2)), "one weight per row"),
        (lambda X, y: (da.from_array(X, chunks=(700, D)), y, da.ones((N, 2), chunks=700)), "must be 1D"),
        (lambda X, y: (da.from_array(X, chunks=(700, D)), y, da.from_array(np.arange(N) - 4.0, chunks=700)), "-4 at row 0"),
        (lambda X, y: (da.from_array(X + 0j, chunks=(700, D)), y), "Complex"),
        (lambda X, y: (dd.from_pandas(pd.DataFrame(X).iloc[:0], npartitions=1), y[:0]), "no rows"),
        (lambda X, y: (dd.from_pandas(pd.DataFrame(X, columns=NAMES), npartitions=2), "colum 1"), "did you mean 'column 1'"),
        (lambda X, y: (dd.from_pandas(pd.DataFrame({"a": ["x"] * N, "b": y}), npartitions=2), "b"), "'a' is constant"),
        (lambda X, y: (dd.from_pandas(pd.DataFrame({"a": pd.date_range("2000", periods=N)}), npartitions=2), y), "dates"),
        (lambda X, y: (dask.delayed(X), y), "X is a Dask DelayedLeaf; .* two-dimensional"),
    ],
)  # fmt: skip
def test_bad_collections_get_one_clear_sentence(make: Any, message: str, data: Any) -> None:
    model = LinearRegression()
    with pytest.raises(DataError, match=message):
        model.fit(*make(*data[:2]))
    assert not fitted_attributes(model)


def test_names_of_features_are_checked_like_those_of_frames(data: Any) -> None:
    frame = pd.DataFrame(data[0], columns=NAMES)
    model = StandardScaler().partial_fit(dd.from_pandas(frame, npartitions=2))
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(dd.from_pandas(frame.rename(columns=str.upper), npartitions=2))
    model.partial_fit(dd.from_pandas(frame, npartitions=3))
    assert model.n_samples_seen_ == 2 * N


def test_text_in_a_block_is_named_with_its_row(client: Client, data: Any) -> None:
    cells = np.array(data[0], dtype=object)
    cells[1_234, 1] = "many"
    with (
        summula.engine(client, chunk_rows=300),
        pytest.raises(DataError, match="rows 900 to .*Column 1 contains 'many' at row 334.*from row 900"),
    ):
        LinearRegression().fit(da.from_array(cells, chunks=(700, D)), data[1])


# --------------------------------------------------------------------------------------------------------------- faults


@pytest.mark.parametrize(
    "error",
    [DataError("it is odd"), ZeroDivisionError("it is odd"), TimeoutError("it is odd"), KeyboardInterrupt("it is odd"),
     MemoryError("it is odd"), LookupError("it is odd")],
    ids=lambda error: type(error).__name__,
)  # fmt: skip
def test_an_error_keeps_its_type_and_names_its_rows(error: BaseException, client: Client, data: Any) -> None:
    engine = DaskEngine(client)
    with pytest.raises(type(error), match=r"^rows 600 to 900: it is odd$"):
        list(engine.map_ordered(slow_work.Fragile(error, 600), parts_of(data[0])))


def test_an_error_of_an_unusual_type_has_a_clear_message(client: Client, data: Any) -> None:
    broken = slow_work.Fragile(slow_work.Peculiar(7, "here"), 600)
    with pytest.raises(RuntimeError, match=r"^rows 600 to 900: Peculiar: \(7, 'here'\)$"):
        list(DaskEngine(client).map_ordered(broken, parts_of(data[0])))


@pytest.mark.parametrize(("error", "tries"), [(OSError("a moment"), 3), (DataError("for good"), 1)])
def test_what_may_pass_is_tried_again(error: Exception, tries: int, client: Client, data: Any, tmp_path: Any) -> None:
    broken = slow_work.Fragile(error, 600, str(tmp_path))
    with pytest.raises(type(error), match="rows 600 to 900"):
        list(DaskEngine(client, retries=2).map_ordered(broken, parts_of(data[0])))
    assert len(os.listdir(tmp_path)) == tries


def test_valid_input_prints_nothing(client: Client, data: Any, tmp_path: Any) -> None:
    broken = slow_work.Fragile(OSError("a moment"), 600, str(tmp_path), times=2)
    values = list(DaskEngine(client).map_ordered(broken, parts_of(data[0])))
    assert values == [slow_work.part_range(part) for part in parts_of(data[0])]


def test_an_error_while_loading_a_block_names_the_rows(client: Client, data: Any) -> None:
    def load(block: Any, block_id: Any = None) -> Any:
        if block_id == (3, 0):
            raise FileNotFoundError("no such file: b3")
        return block

    X = da.from_array(data[0], chunks=(700, D)).map_blocks(load, meta=data[0][:0])
    model = LinearRegression()
    with (
        summula.engine(client, chunk_rows=300),
        pytest.raises(FileNotFoundError, match="rows 2100 to .*no such file: b3"),
    ):
        model.fit(X, data[1])
    assert not fitted_attributes(model)


@contextmanager
def when_reached(gate: Gate, act: Callable[[], Any], *, opens: bool = True) -> Iterator[None]:
    """Do something from another thread when work waits at a gate, which `opens` then, or at the end."""

    def watch() -> None:
        gate.wait_for("reached")
        act()
        if opens:
            gate.open()

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        gate.open()
        watcher.join()


def kill_one_worker(client: Client) -> None:
    os.kill(min(client.run(os.getpid).values()), signal.SIGKILL)


def held(X: Any, gate: Gate, rows: int = 700) -> Any:
    """The rows in blocks that wait at a gate."""
    return da.from_array(X, chunks=(rows, D)).map_blocks(gate.block, meta=X[:0])


@pytest.fixture
def gate(tmp_path: Any) -> Gate:
    return Gate(tmp_path)


@pytest.mark.slow
def test_a_worker_killed_during_a_fit_does_not_change_the_result(client: Client, data: Any, gate: Gate) -> None:
    X, y, _ = data
    pids = set(client.run(os.getpid).values())
    with summula.engine(client, chunk_rows=300):
        expected = PolynomialRegression().fit(X, y)
        with when_reached(gate, lambda: kill_one_worker(client)):
            model = PolynomialRegression().fit(held(X, gate), da.from_array(y, chunks=700))
    assert_same_bits(attributes(expected), attributes(model))
    client.wait_for_workers(2, timeout=TIMEOUT)
    assert set(client.run(os.getpid).values()) != pids


@pytest.mark.slow
def test_a_worker_killed_while_it_computes_parts_of_an_array_does_not_change_the_result(
    client: Client, data: Any, gate: Gate
) -> None:
    pids, parts = set(client.run(os.getpid).values()), parts_of(data[0], 500)
    with when_reached(gate, lambda: kill_one_worker(client)):
        values = list(DaskEngine(client).map_ordered(gate, parts))
    assert values == [(part.start, part.stop) for part in parts]
    client.wait_for_workers(2, timeout=TIMEOUT)
    assert set(client.run(os.getpid).values()) != pids


@pytest.mark.slow
def test_a_part_that_kills_its_workers_is_given_up(client: Client, data: Any) -> None:
    client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 0))
    try:
        with pytest.raises(ClusterError, match=r"rows \d+ to \d+: the workers .* died"):
            list(DaskEngine(client, retries=0).map_ordered(slow_work.Deadly(600), parts_of(data[0])))
    finally:
        client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 3))
        client.wait_for_workers(2, timeout=TIMEOUT)


@pytest.fixture
def own_client() -> Iterator[Client]:
    """A cluster in this process, to be broken."""
    with (
        LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def lose_workers(client: Client) -> None:
    client.cluster.scale(0)


def test_all_workers_lost_is_an_error(own_client: Client, data: Any, gate: Gate) -> None:
    model = LinearRegression()
    with (
        summula.engine(own_client, chunk_rows=300, worker_timeout=1.0),
        when_reached(gate, lambda: lose_workers(own_client), opens=False),
        pytest.raises(ClusterError, match="no workers for 1 s"),
    ):
        model.fit(held(data[0], gate), data[1])
    assert not fitted_attributes(model)


def test_a_cluster_lost_in_an_iteration_leaves_the_best_model(
    own_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = wide_sparse()
    steps, step = [0], Run.step

    def counted(self: Run, task: str = "iteration") -> bool:
        steps[0] += 1
        if steps[0] == 5:
            lose_workers(own_client)
        return step(self, task)

    monkeypatch.setattr(Run, "step", counted)
    model = Ridge()
    with (
        summula.engine(own_client, chunk_rows=1_000, worker_timeout=0.5),
        pytest.raises(ClusterError, match="no workers"),
    ):
        model.fit(X, y)
    assert model.certificate_.verify(X, y)
    assert ((y - model.predict(X)) ** 2).sum() < ((y - y.mean()) ** 2).sum()


@pytest.mark.parametrize("how", ["cluster", "client"])
def test_a_scheduler_closed_in_mid_fit_is_a_clear_error(how: str, own_client: Client, data: Any, tmp_path: Any) -> None:
    model, gate = LinearRegression(), Gate(tmp_path, pause=0.5)  # a cluster that is closed waits for its tasks
    close = own_client.cluster.close if how == "cluster" else own_client.close
    with (
        summula.engine(own_client, chunk_rows=300),
        when_reached(gate, close, opens=False),
        pytest.raises(ClusterError, match="closed or lost"),
    ):
        model.fit(held(data[0], gate, rows=100), data[1])
    assert not fitted_attributes(model)
    with summula.engine(own_client), pytest.raises(ClusterError, match="closed or lost"):
        model.fit(*data[:2])


def test_cancelled_tasks_are_a_clear_error(own_client: Client, data: Any, tmp_path: Any) -> None:
    gate, parts = Gate(tmp_path, row=1_500), parts_of(data[0])
    values = DaskEngine(own_client).map_ordered(gate, parts)
    try:
        next(values)
        gate.wait_for("reached")
        own_client.cancel([Future(key, own_client) for key in list(own_client.futures)])
        with pytest.raises(ClusterError, match="cancelled"):
            list(values)
    finally:
        gate.open()


def test_ctrl_c_ends_a_fit_and_its_tasks(client: Client, data: Any, gate: Gate) -> None:
    model = LinearRegression()
    with summula.engine(client, chunk_rows=300), when_reached(gate, _thread.interrupt_main, opens=False):
        with pytest.raises(KeyboardInterrupt):
            model.fit(held(data[0], gate), data[1])
        assert not gate.has("passed"), "the fit ended although tasks were under way"
    assert not fitted_attributes(model)
    assert_nothing_left(client)
    with summula.engine(client, chunk_rows=300):
        model.fit(*data[:2])


@pytest.mark.parametrize("known", [True, False], ids=["computed", "counted"])
def test_max_time_holds_while_rows_are(known: bool, client: Client, data: Any, gate: Gate) -> None:
    blocks = held(data[0], gate)
    try:
        with summula.engine(client, chunk_rows=300), pytest.raises(TimeLimitError, match="max_time=0.5"):
            LinearRegression(max_time=0.5).fit(blocks if known else unknown(blocks), data[1])
        assert not gate.has("passed"), "the fit ended although tasks were under way"
    finally:
        gate.open()


def test_max_time_keeps_the_best_model(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = wide_sparse()
    steps, step = [0], Run.step

    def counted(self: Run, task: str = "iteration") -> bool:
        steps[0] += 1
        if steps[0] == 5:
            self._deadline = 0.0
        return step(self, task)

    monkeypatch.setattr(Run, "step", counted)
    with summula.engine(client, chunk_rows=1_000), pytest.warns(ConvergenceWarning, match="max_time"):
        model = Ridge(max_time=60.0).fit(X, y)
    assert model.certificate_.verify(X, y)


# ------------------------------------------------------------------------------------------------------- inside workers


def test_a_fit_inside_a_worker_keeps_to_its_thread(client: Client) -> None:
    threads, told, pool = client.submit(slow_work.environment_of_a_fit, 50_000, pure=False).result(timeout=TIMEOUT)
    assert (threads, told) == (1, "1")
    assert pool == 0


def test_a_local_cluster_leaves_this_process_its_threads() -> None:
    told, ours, theirs = run("""
    import json, os
    import summula
    from distributed import Client, LocalCluster

    def count(processors):
        from summula.core.engine import threads

        threads._cpu_count = lambda: processors
        return threads.thread_count()

    options = dict(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0")
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        print(json.dumps([os.environ["OMP_NUM_THREADS"], count(8), client.submit(count, 8).result()]))
    """)
    assert told == "1", "what Dask leaves behind; without it there is no need for a copy of the environment"
    assert (ours, theirs) == (8, 1)


def test_a_fit_inside_a_worker_may_use_the_cluster(own_client: Client) -> None:
    # As many tasks as there are threads, each waiting for others.
    futures = own_client.map(slow_work.fit_a_collection, [600, 700, 800], pure=False)
    for coef in own_client.gather(futures):
        np.testing.assert_allclose(coef, [1, 0, 0, 0], atol=1e-12)


@pytest.mark.parametrize("fit", [slow_work.fit_a_collection, slow_work.fit_by_engine])
def test_a_fit_inside_a_worker_waits_for_the_connection(
    fit: Any, own_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The client of a worker is created by the first task that requests it, and reused by the second.
    connect = Client._ensure_connected

    async def slowly(self: Client, timeout: Any = None) -> None:
        await asyncio.sleep(0.5)
        await connect(self, timeout=timeout)

    monkeypatch.setattr(Client, "_ensure_connected", slowly)
    futures = own_client.map(fit, [600, 700], pure=False)
    for coef in own_client.gather(futures):
        np.testing.assert_allclose(coef, [1, 0, 0, 0], atol=1e-12)


def test_a_fit_that_ends_in_mid_transfer_takes_nothing_from_another(
    own_client: Client, data: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Concurrent requests of one client are one request to distributed.
    engine, parts = DaskEngine(own_client), parts_of(data[0], 1_000)
    transfer, gather, left, asked = Client._gather_remote, Client.gather, threading.Event(), []

    async def slowly(self: Client, *args: Any) -> Any:
        while not left.is_set():
            await asyncio.sleep(0.01)
        return await transfer(self, *args)

    def counted(self: Client, *args: Any, **options: Any) -> Any:
        asked.append(threading.current_thread())
        return gather(self, *args, **options)

    def stop() -> None:
        if len(asked) > 1:  # the other fit waits for the same request
            raise TimeLimitError("no time left")

    def impatient() -> None:
        try:
            with pytest.raises(TimeLimitError), watched(stop):
                list(engine.map_ordered(slow_work.part_range, parts))
        finally:
            left.set()

    monkeypatch.setattr(Client, "_gather_remote", slowly)
    monkeypatch.setattr(Client, "gather", counted)
    other = threading.Thread(target=impatient)
    other.start()
    while not asked:
        time.sleep(0.01)
    values = list(engine.map_ordered(slow_work.part_range, parts))
    other.join()
    assert values == [(part.start, part.stop) for part in parts]


def test_waiting_for_tasks_does_not_change_what_dask_uses(own_client: Client, data: Any) -> None:
    before = dask.config.get("scheduler", None)

    def scheduler(part: Any) -> Any:
        time.sleep(0.2)  # the engine waits meanwhile
        return dask.config.get("scheduler", None)

    assert list(DaskEngine(own_client).map_ordered(scheduler, parts_of(data[0], 2_000))) == [before] * 3


def test_blas_has_one_thread_in_a_task(own_client: Client, data: Any) -> None:
    from threadpoolctl import threadpool_info

    def threads(part: Any) -> set[int]:
        return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}

    assert list(DaskEngine(own_client).map_ordered(threads, parts_of(data[0], 2_000))) == [{1}] * 3


def test_memory_is_kept_in_a_task_only(monkeypatch: pytest.MonkeyPatch) -> None:
    from summula.engines import dask_memory

    settings: list[int] = []
    monkeypatch.setattr(dask_memory, "_set", lambda trim, mmap: settings.append(trim))
    monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_", raising=False)
    with keeping_freed_memory():
        pass
    assert settings == []
    monkeypatch.setattr(dask_memory, "_trim_setting", lambda: 65_536)
    with keeping_freed_memory(), keeping_freed_memory():
        assert settings == [dask_memory._KEPT]
    assert settings == [dask_memory._KEPT, 65_536]


def test_the_measured_size_of_rows_is_that_of_their_arrays(data: Any) -> None:
    from dask.sizeof import sizeof

    X, y, w = data
    for rows, size in [(X, X.nbytes), (tuple(X.T), X.nbytes), (pd.DataFrame(X), X.nbytes)]:
        source = as_source(LinearRegression(), pd.DataFrame(np.column_stack(rows)) if isinstance(rows, tuple) else rows,
                           y, w, needs_y=True)  # fmt: skip
        assert sizeof(source) == size + y.nbytes + w.nbytes
    csr = sparse.csr_array(X)
    source = as_source(LinearRegression(), csr, y, needs_y=True)
    assert sizeof(source) == csr.data.nbytes + csr.indices.nbytes + csr.indptr.nbytes + y.nbytes
