"""Columns of categories as factors: the same fit as indicator columns written out, from frames and files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import summula
from summula import DataError
from summula.linear_model import GeneralizedLinearRegressor


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    n = 9_000
    frame = pd.DataFrame(
        {
            "a": rng.standard_normal(n) + 3,
            "region": rng.choice(["west", "east", "north", "south"], n),
            "b": 1e3 * rng.standard_normal(n),
            "kind": pd.Categorical(rng.choice([3, 5, 9], n)),
        }
    )
    effect = frame["region"].map({"east": 0.0, "north": 0.5, "south": -0.2, "west": 0.1}).to_numpy(float)
    eta = 0.3 * (frame["a"] - 3) + effect + 0.05 * frame["kind"].astype(float)
    frame["y"] = rng.poisson(np.exp(eta)).astype(float)
    frame["w"] = rng.integers(0, 4, n).astype(float)
    return frame


def written_out(frame):
    features = frame.drop(columns=["y", "w"], errors="ignore")
    return pd.get_dummies(features, columns=["region", "kind"], drop_first=True).astype(float)


@pytest.mark.parametrize("alpha", [0.0, 0.1])
@pytest.mark.parametrize("family", ["poisson", "normal"])
def test_factors_are_indicators(table, alpha, family):
    model = GeneralizedLinearRegressor(family, alpha=alpha).fit(table, "y", sample_weight="w")
    plain = GeneralizedLinearRegressor(family, alpha=alpha).fit(written_out(table), table["y"], table["w"])
    levels = ("region[north]", "region[south]", "region[west]", "kind[5]", "kind[9]")
    assert model.coef_names_ == ("a", "b", *levels)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(model.intercept_, plain.intercept_, rtol=1e-8)
    np.testing.assert_allclose(model.predict(table), plain.predict(written_out(table)), rtol=1e-9)
    assert model.factor_levels_ == {"region": ("east", "north", "south", "west"), "kind": (3, 5, 9)}
    assert model.certificate_.verify(table, "y", "w")
    np.testing.assert_allclose(model.score(table, "y"), plain.score(written_out(table), table["y"]), rtol=1e-9)


def test_every_frame_and_file_gives_the_same_bits(table, tmp_path):
    table = table.astype({"kind": str})
    expected = GeneralizedLinearRegressor("poisson").fit(table, "y")
    table.to_parquet(tmp_path / "rows.parquet", row_group_size=2_000)
    table.astype({"region": "category"}).to_parquet(tmp_path / "coded.parquet", row_group_size=3_000)
    for given in (
        table.astype({"region": "category"}),
        pl.from_pandas(table),
        pl.from_pandas(table).with_columns(pl.col("region").cast(pl.Categorical)),
        pa.Table.from_pandas(table),
        summula.scan(tmp_path / "rows.parquet"),
        summula.scan(tmp_path / "coded.parquet"),
    ):
        model = GeneralizedLinearRegressor("poisson").fit(given, "y")
        np.testing.assert_array_equal(model.coef_, expected.coef_)
        assert model.coef_names_ == expected.coef_names_
        assert model.factor_levels_ == expected.factor_levels_
    batches = np.concatenate(list(expected.predict(summula.scan(tmp_path / "rows.parquet"))))
    np.testing.assert_allclose(batches, expected.predict(table), rtol=1e-14)


def test_threads_and_chunks(table):
    expected = GeneralizedLinearRegressor("poisson").fit(table, "y").coef_
    with summula.engine("threads", n_jobs=1):
        np.testing.assert_array_equal(GeneralizedLinearRegressor("poisson").fit(table, "y").coef_, expected)
    with summula.engine("threads", chunk_rows=512):
        np.testing.assert_allclose(GeneralizedLinearRegressor("poisson").fit(table, "y").coef_, expected, rtol=1e-9)


def test_weights_are_repetitions(table):
    some = table.head(600)
    model = GeneralizedLinearRegressor("poisson").fit(some, "y", sample_weight="w")
    rows = some.loc[np.repeat(some.index, some["w"].astype(int))]
    repeated = GeneralizedLinearRegressor("poisson").fit(rows.drop(columns="w"), "y")
    np.testing.assert_allclose(model.coef_, repeated.coef_, rtol=1e-7, atol=1e-12)


def test_what_cannot_be(table):
    model = GeneralizedLinearRegressor("poisson").fit(table, "y")
    with pytest.raises(DataError, match="'region' contains 'Oz' at row 0, which is not one of its 4 levels"):
        model.predict(table.assign(region="Oz"))
    with pytest.raises(DataError, match="'region' has a missing value at row 2"):
        GeneralizedLinearRegressor("poisson").fit(table.assign(region=["a", "b", None] * 3_000), "y")
    with pytest.raises(DataError, match="'region' is constant, with the single value 'a'"):
        GeneralizedLinearRegressor("poisson").fit(table.assign(region="a"), "y")
    with pytest.raises(DataError, match="'b' contains categories such as 'q', but contained numbers"):
        model.predict(table.assign(b="q"))


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_numbers_are_not_taken_for_codes_of_categories(table, tmp_path):
    """Kernels add to the column that a code numbers: one out of range crashed the process."""
    model = GeneralizedLinearRegressor("poisson").fit(table, "y")
    message = (
        "'region' contains numbers, but contained categories such as 'east' when the model was fitted; pass a frame"
    )
    features, y = table.drop(columns="y"), table["y"]
    numbers = features.assign(region=1e9)
    with pytest.raises(DataError, match=message):
        model.predict(numbers)
    with pytest.raises(DataError, match=message):
        model.score(numbers, y)
    with pytest.raises(DataError, match=message):
        model.predict(features.assign(region=1.0, kind=2.0).to_numpy())
    with pytest.raises(DataError, match="'kind' contains numbers, but contained categories such as 3"):
        model.predict(features.astype({"kind": int}))
    model = GeneralizedLinearRegressor("poisson").fit(table.drop(columns="kind"), "y")
    for value in (1e9, -1.0, np.nan, 4.0):
        numbers.drop(columns="kind").assign(region=value).to_parquet(tmp_path / "rows.parquet")
        with pytest.raises(DataError, match=message):
            list(model.predict(summula.scan(tmp_path / "rows.parquet")))


def test_saving(table, tmp_path):
    model = GeneralizedLinearRegressor("poisson").fit(table.astype({"kind": str}), "y")
    summula.save(model, tmp_path / "model.summula")
    loaded = summula.load(tmp_path / "model.summula")
    np.testing.assert_array_equal(
        loaded.predict(table.astype({"kind": str})), model.predict(table.astype({"kind": str}))
    )


@pytest.mark.parametrize("kind", ["text", "category"])
def test_dask_frames(table, kind):
    dd = pytest.importorskip("dask.dataframe")
    table = table.astype({"kind": str})
    given = table if kind == "text" else table.astype({"region": "category"})
    expected = GeneralizedLinearRegressor("poisson").fit(table, "y", sample_weight="w")
    frame = dd.from_pandas(given, npartitions=5)
    model = GeneralizedLinearRegressor("poisson").fit(frame, "y", sample_weight="w")
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    assert model.coef_names_ == expected.coef_names_
    lazy = model.predict(frame.drop(columns=["y", "w"]))
    np.testing.assert_allclose(lazy.compute(), expected.predict(table), rtol=1e-13)
