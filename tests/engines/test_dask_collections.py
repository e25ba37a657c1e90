"""Dask: the same bits for collections and other sources, on any worker."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client
from scipy import sparse
from sklearn.pipeline import make_pipeline

import summula
from summula import DataError
from summula.core.estimator.input.validation import as_source
from summula.engines.dask import DaskEngine
from summula.features import PolynomialLift
from summula.linear_model import LinearRegression, LogisticRegression, PolynomialRegression, Ridge
from summula.preprocessing import StandardScaler
from tests.contract.compare import assert_close, assert_same_bits
from tests.contract.registry import wide_sparse
from tests.engines import slow_work
from tests.engines.clusters import (
    NAMES,
    D,
    N,
    attributes,
    frame_of,
    in_memory_of,
    threads,
    unknown,
    with_empty_partitions,
)

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
