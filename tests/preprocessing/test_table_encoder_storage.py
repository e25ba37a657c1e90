"""A table encoder gives the same result for any storage, partition and weighting of the rows.

Why it is not in tests/contract/registry.py: the cases there are fitted on matrices of numbers, and compare all fitted
attributes after taking the names of columns away. The encoder's one fitted attribute is its plan, which is made of
names, kinds and levels, and what it is for (text, dates, missing values) no matrix of numbers has. So the same
promises are tested here, on a table that has all of it: arrays, frames, files and Dask collections give the same bits
on any number of threads; weights are repetitions; what is saved encodes alike; errors leave nothing half-fitted.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet
from sklearn.base import clone

import summula
from summula.core.errors import DataError
from summula.linear_model import LogisticRegression
from summula.preprocessing import TableEncoder, TableModel
from summula.preprocessing import table_encoder_blocks as grid

ROWS = 1_234


def table(rows: int = ROWS) -> pa.Table:
    """Numbers, whole numbers, text, a boolean, days; a tenth is missing, and all of the first rows of one column."""
    rng = np.random.default_rng(5)

    def gaps(values: Any) -> pa.Array:
        return pa.array(values, mask=rng.random(rows) < 0.1)

    late = np.array(["x", "y"], object)[rng.integers(0, 2, rows)]
    return pa.table(
        {
            "amount": gaps(rng.normal(1e4, 3.0, rows)),
            "n": rng.integers(0, 50, rows),
            "town": gaps(np.array(["Bern", "Basel", "Chur", "Zug"], object)[rng.integers(0, 4, rows)]),
            "member": gaps(rng.random(rows) < 0.5),
            "since": gaps(np.datetime64("2021-01-01", "us") + rng.integers(0, 10**14, rows).astype("m8[us]")),
            "late": pa.array(late, mask=np.arange(rows) < rows // 2),
        }
    )


def weights(rows: int = ROWS) -> np.ndarray:
    return np.random.default_rng(6).integers(0, 4, rows).astype(float)


def pandas_of(rows: pa.Table) -> pd.DataFrame:
    return rows.to_pandas(types_mapper={pa.bool_(): pd.BooleanDtype()}.get)


FRAMES = {
    "pandas": pandas_of,
    "polars": lambda t: pl.from_arrow(t),
    "pyarrow, in pieces": lambda t: pa.concat_tables([t.slice(0, 100), t.slice(100)]),
    "objects": lambda t: pandas_of(t).astype({"town": object, "late": object}),
}


def _files(rows: pa.Table, folder: Path) -> Any:
    parquet.write_table(rows.slice(0, 77), folder / "a.parquet")
    parquet.write_table(rows.slice(77), folder / "b.parquet", row_group_size=123)
    return summula.scan(folder)


def _csv(rows: pa.Table, folder: Path) -> Any:
    csv.write_csv(rows, folder / "t.csv")
    return summula.scan(folder / "t.csv")


def _arrow(rows: pa.Table, folder: Path) -> Any:
    feather.write_feather(rows, folder / "t.arrow", chunksize=99)
    return summula.scan(folder / "t.arrow")


STREAMS = {"Parquet": _files, "CSV": _csv, "Arrow": _arrow}


def dask_of(rows: pa.Table, partitions: int) -> Any:
    dd = pytest.importorskip("dask.dataframe")
    return dd.from_pandas(pandas_of(rows), npartitions=partitions, sort=False)


@pytest.fixture(params=[64, 1_000, 1 << 15], ids=lambda rows: f"blocks of {rows}")
def blocks_of(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Several grids; the second does not divide the rows, on the third one block has them all."""
    import summula.preprocessing.table_encoder_dask as dask_grid

    monkeypatch.setattr(grid, "BLOCK_ROWS", request.param)
    monkeypatch.setattr(dask_grid, "BLOCK_ROWS", request.param)
    return int(request.param)


def encoders() -> list[TableEncoder]:
    return [TableEncoder(standardize=True), TableEncoder(categories="codes", max_levels=3)]


@pytest.mark.parametrize("keep", FRAMES.values(), ids=FRAMES.keys())
def test_frames_give_the_same_bits(keep: Any, blocks_of: int) -> None:
    rows = table()
    for encoder in encoders():
        expected, model = clone(encoder).fit(rows), clone(encoder).fit(keep(rows))
        assert model.columns_ == expected.columns_
        assert np.array_equal(model.transform(keep(rows)), expected.transform(rows), equal_nan=True)


def both_fitted(encoder: Any, rows: Any, stored: Any) -> tuple[Any, Any]:
    """Return fits to the rows in memory and in storage, which have the same columns."""
    expected, model = clone(encoder).fit(rows), clone(encoder).fit(stored)
    assert model.columns_ == expected.columns_
    assert model.feature_names_in_.tolist() == rows.column_names
    return expected, model


@pytest.mark.parametrize("keep", STREAMS.values(), ids=STREAMS.keys())
def test_files_give_the_same_bits(keep: Any, blocks_of: int, tmp_path: Path) -> None:
    rows = table()
    scan = keep(rows, tmp_path)
    for encoder in encoders():
        expected, model = both_fitted(encoder, rows, scan)
        batches = list(model.transform(scan))
        assert len(batches) == -(-ROWS // blocks_of)
        assert np.array_equal(np.concatenate(batches), expected.transform(rows), equal_nan=True)


@pytest.mark.parametrize("partitions", [1, 4, 40])
def test_dask_dataframes_give_the_same_bits(partitions: int, blocks_of: int) -> None:
    rows = table()
    lazy = dask_of(rows, partitions)
    for encoder in encoders():
        expected, model = both_fitted(encoder, rows, lazy)
        encoded = model.transform(lazy)
        assert type(encoded).__module__.startswith("dask.")
        assert np.array_equal(np.asarray(encoded), expected.transform(rows), equal_nan=True)


def test_dask_arrays_give_the_same_bits(blocks_of: int) -> None:
    da = pytest.importorskip("dask.array")
    X = np.random.default_rng(0).normal(size=(ROWS, 3))
    X[X < -1] = np.nan
    lazy = da.from_array(X, chunks=(100, 2))
    expected, model = TableEncoder().fit(X), TableEncoder().fit(lazy)
    assert model.columns_ == expected.columns_
    assert np.array_equal(np.asarray(model.transform(lazy)), expected.transform(X))
    weighted = TableEncoder().fit(lazy, sample_weight=da.from_array(weights(), chunks=31))
    assert weighted.columns_ == TableEncoder().fit(X, sample_weight=weights()).columns_


def test_a_cluster_gives_the_same_bits(dask_client: Any) -> None:
    rows = table()
    lazy, expected = dask_of(rows, 4), TableEncoder().fit(rows, sample_weight=weights())
    with summula.engine(dask_client):
        model = TableEncoder().fit(lazy, sample_weight=weights())
    encoded = dask_client.compute(model.transform(lazy)).result()
    ran = dask_client.run(lambda dask_worker: sum("_sums_of" in str(key) for key, *_ in dask_worker.state.log))
    assert sum(ran.values()), "sums are computed by the workers"
    assert model.columns_ == expected.columns_
    assert np.array_equal(encoded, expected.transform(rows))


def test_a_model_of_a_table_predicts_collections_lazily() -> None:
    penguins = summula.datasets.load("penguins")
    model = TableModel(TableEncoder(standardize=True), LogisticRegression(), "species").fit(penguins)
    lazy = dask_of(penguins, 3)
    assert model.predict(lazy).compute().tolist() == model.predict(penguins).tolist()
    assert np.allclose(model.predict_proba(lazy).compute(), model.predict_proba(penguins), rtol=1e-13)


def test_threads_give_the_same_bits(blocks_of: int, tmp_path: Path) -> None:
    rows = table()
    scan = _files(rows, tmp_path)
    with summula.engine("serial"):
        one, encoded = (
            TableEncoder().fit(scan, sample_weight=weights()),
            np.concatenate(list(TableEncoder().fit(rows).transform(scan))),
        )
    assert one.columns_ == TableEncoder().fit(rows, sample_weight=weights()).columns_
    assert np.array_equal(encoded, TableEncoder().fit(rows).transform(rows))


# ----------------------------------------------------------------------------------------------------------- weights


def assert_same_plans(a: TableEncoder, b: TableEncoder) -> None:
    """Equal but for the rounding of means."""
    for one, two in zip(a.columns_, b.columns_, strict=True):
        assert (one.name, one.kind, one.levels, one.other, one.missing) == (
            two.name,
            two.kind,
            two.levels,
            two.other,
            two.missing,
        )
        assert one.mean == pytest.approx(two.mean, rel=1e-12)
        assert one.scale == pytest.approx(two.scale, rel=1e-9)


def test_a_weight_is_a_number_of_repetitions(blocks_of: int) -> None:
    rows, weight = table(), weights()
    repeated = rows.take(pa.array(np.repeat(np.arange(ROWS), weight.astype(int))))
    for encoder in encoders():
        assert_same_plans(clone(encoder).fit(rows, sample_weight=weight), clone(encoder).fit(repeated))
        assert_same_plans(clone(encoder).fit(rows, sample_weight=2.5), clone(encoder).fit(rows))


def test_rows_of_weight_0_are_not_there() -> None:
    rows = pa.table({"w": ["rare", "a", "b", "b"], "x": [1e9, 1.0, 2.0, 4.0], "z": [None, 1.0, 2.0, 3.0]})
    encoder = TableEncoder().fit(rows, sample_weight=[0.0, 3.0, 1.0, 1.0])
    assert encoder.get_feature_names_out().tolist() == ["w[b]", "x", "z"]  # a is the most frequent; z has no gap
    assert encoder.columns_[1].mean == pytest.approx((3 * 1 + 2 + 4) / 5)


def test_weights_may_be_a_column(tmp_path: Path, blocks_of: int) -> None:
    rows, weight = table(), weights()
    expected = TableEncoder().fit(rows, sample_weight=weight)
    with_weight = rows.append_column("weight", pa.array(weight))
    kept = [with_weight, pandas_of(with_weight), _files(with_weight, tmp_path), dask_of(with_weight, 5)]
    for X in kept:
        encoder = TableEncoder().fit(X, sample_weight="weight")
        assert encoder.columns_ == expected.columns_
        assert encoder.feature_names_in_.tolist() == rows.column_names
        found = encoder.transform(X)
        found = np.concatenate(list(found)) if hasattr(found, "__next__") else np.asarray(found)
        assert np.array_equal(found, expected.transform(rows))


def test_bad_weights_are_refused_and_nothing_is_half_fitted(tmp_path: Path) -> None:
    rows = table()
    scan = _files(rows, tmp_path)
    bad = [
        (rows, -weights(), "Negative values"),
        (rows, weights()[1:], "one weight per row"),
        (rows, 0.0 * weights(), "All sample weights are zero"),
    ]
    bad += [(rows, "wheight", "no column 'wheight'"), (scan, "town", "is not numeric"), (scan, "n", "")]
    for X, weight, message in bad:
        encoder = TableEncoder()
        if message:
            with pytest.raises(DataError, match=message):
                encoder.fit(X, sample_weight=weight)
            assert vars(encoder) == vars(TableEncoder())
        else:
            encoder.fit(X, sample_weight=weight)


def test_pickled_it_encodes_alike() -> None:
    rows = table()
    encoder = TableEncoder().fit(rows, sample_weight=weights())
    again = pickle.loads(pickle.dumps(encoder))
    assert np.array_equal(again.transform(rows), encoder.transform(rows))
