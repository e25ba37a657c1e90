"""Tables of mixed columns: kinds, levels, missing values, and the same results from frames and files."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import summula
from summula.core.errors import DataError, ParameterError
from summula.preprocessing import TableEncoder
from summula.preprocessing.table_encoder_blocks import BLOCK_ROWS
from summula.preprocessing.table_encoder_sums import ColumnSums


@parametrize_with_checks([TableEncoder(), TableEncoder(categories="codes")])
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def columns() -> dict[str, list[Any]]:
    day = datetime.date(2024, 2, 28)
    return {
        "age": [30.0, None, 50.0, 40.0],
        "town": ["Bern", "Basel", None, "Bern"],
        "member": [True, False, True, True],
        "since": [day, None, day + datetime.timedelta(2), day + datetime.timedelta(1)],
        "country": ["CH"] * 4,
    }


NAMES = ["age", "age[missing]", "town[Basel]", "town[missing]", "member"]
NAMES += ["since[day]", "since[month]", "since[weekday]", "since[missing]"]


def test_every_kind_of_column_by_hand() -> None:
    encoder = TableEncoder().fit(pa.table(columns()))
    assert encoder.get_feature_names_out().tolist() == NAMES
    assert encoder.dropped_ == {"country": "all values are the same"}
    X = encoder.transform(pa.table(columns()))
    assert X[:, 0].tolist() == [30.0, 40.0, 50.0, 40.0]  # the mean of those there are
    assert X[:, 1].tolist() == [0, 1, 0, 0]
    assert X[:, 2].tolist() == [0, 1, 0, 0]  # Bern is more frequent: the reference
    assert X[:, 3].tolist() == [0, 0, 1, 0]
    assert X[:, 4].tolist() == [1, 0, 1, 1]
    day = (datetime.date(2024, 2, 28) - datetime.date(1970, 1, 1)).days
    assert X[:, 5].tolist() == [day, day + 1, day + 2, day + 1]
    assert X[:, 6].tolist() == [2, 2, 3, 2]  # the year 2024 has a 29th of February
    assert X[:, 7].tolist() == [2, 3, 4, 3]  # Wednesday, Thursday, Friday; Monday is 0
    assert X[:, 8].tolist() == [0, 1, 0, 0]


def test_trees_get_codes_and_missing_values() -> None:
    encoder = TableEncoder(categories="codes").fit(pa.table(columns()))
    X = encoder.transform(pa.table(columns()))
    names = encoder.get_feature_names_out().tolist()
    assert names == ["age", "town", "member", "since[day]", "since[month]", "since[weekday]"]
    assert encoder.categorical_features_ == [1]
    assert np.array_equal(X[:, 0], [30.0, np.nan, 50.0, 40.0], equal_nan=True)
    assert np.array_equal(X[:, 1], [0, 1, np.nan, 0], equal_nan=True)
    assert np.isnan(X[1, 3:]).all()


def test_standardised_numbers_have_mean_0_and_variance_1() -> None:
    rng = np.random.default_rng(0)
    table = pa.table({"a": rng.normal(7.0, 3.0, 500), "b": rng.integers(0, 2, 500), "c": rng.gamma(2.0, 1e6, 500)})
    X = TableEncoder(standardize=True).fit_transform(table)
    assert np.abs(X[:, [0, 2]].mean(axis=0)).max() < 1e-12
    assert np.allclose(X[:, [0, 2]].std(axis=0), 1.0, rtol=1e-12)
    assert set(X[:, 1]) == {0.0, 1.0}


def test_frames_of_every_library_give_the_same(constructor: Any) -> None:
    given = {"age": [30.0, np.nan, 50.0, 41.5], "town": ["Bern", "Basel", None, "Bern"], "n": [1, 2, 3, 3]}
    encoder = TableEncoder().fit(constructor(given))
    assert encoder.get_feature_names_out().tolist() == ["age", "age[missing]", "town[Basel]", "town[missing]", "n"]
    X = encoder.transform(constructor(given))
    assert X.tolist() == [[30, 0, 0, 0, 1], [40.5, 1, 1, 0, 2], [50, 0, 0, 1, 3], [41.5, 0, 0, 0, 3]]


def large_table() -> Any:
    rng = np.random.default_rng(1)
    n = 2 * BLOCK_ROWS + 1_234
    towns = np.array(["Bern", "Basel", "Chur", None], object)[rng.choice(4, n, p=[0.5, 0.3, 0.15, 0.05])]
    numbers = rng.normal(1e6, 1.0, n)
    start = datetime.datetime(2020, 1, 1)
    moments = [start + datetime.timedelta(hours=int(h)) for h in rng.integers(0, 9_000, n)]
    return pa.table(
        {
            "x": pa.array(numbers, mask=rng.random(n) < 0.1),
            "town": pa.array(towns, pa.string()),
            "when": pa.array(moments, pa.timestamp("us")),
            "k": rng.integers(0, 5, n),
        }
    )


@pytest.mark.parametrize("ending", ["parquet", "arrow", "csv"])
def test_files_give_the_bits_of_the_frame(ending: str, tmp_path: Path) -> None:
    table, path = large_table(), tmp_path / f"rows.{ending}"
    {"parquet": parquet.write_table, "arrow": feather.write_feather, "csv": csv.write_csv}[ending](table, path)
    encoder, streamed = TableEncoder().fit(table), TableEncoder().fit(summula.scan(path))
    assert streamed.get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()
    assert "when[hour]" in encoder.get_feature_names_out()
    assert streamed.columns_ == encoder.columns_
    batches = list(streamed.transform(summula.scan(path)))
    assert len(batches) == 3
    assert np.array_equal(np.concatenate(batches), encoder.transform(table))


def test_threads_do_not_change_a_bit() -> None:
    table = large_table()
    with summula.engine("serial"):
        one = TableEncoder().fit(table)
    assert one.columns_ == TableEncoder().fit(table).columns_


def test_sums_of_parts_add_to_those_of_the_whole() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(1e8, 1.0, 5_000)
    x[rng.random(5_000) < 0.1] = np.nan
    whole = ColumnSums.of(x, "x", 0)
    parts = ColumnSums.of(x[:700], "x", 0).merge(ColumnSums.of(x[700:], "x", 700))
    assert (parts.rows, parts.missing, parts.low, parts.high) == (whole.rows, whole.missing, whole.low, whole.high)
    assert parts.mean == pytest.approx(np.nanmean(x), rel=1e-15)
    # Squares about the mean keep their digits although the numbers are 1e8: (1) does not subtract large sums.
    assert parts.spread == pytest.approx(np.nanstd(x), rel=1e-9)
    assert np.array_equal(parts.hashes, whole.hashes)


def test_different_values_are_counted_to_a_few_percent() -> None:
    rng = np.random.default_rng(3)
    few = ColumnSums.of(rng.integers(0, 700, 50_000).astype(float), "x", 0)
    many = ColumnSums.of(rng.integers(0, 20_000, 100_000).astype(float), "x", 0)
    assert few.distinct == 700  # fewer than are stored: exact
    # The relative standard error is about 1 / sqrt(1,024) = 3.1 %; nearly all of the 20,000 are drawn.
    assert abs(many.distinct / (20_000 * (1 - np.exp(-5.0))) - 1) < 0.1


@pytest.mark.parametrize(
    ("values", "why"),
    [
        (list(range(1, 101)), "identifier"),
        ([f"user-{i}" for i in range(100)], "identifier"),
        ([1_000_003 * i for i in range(100)], None),
        ([None] * 100, "missing"),
        (["a"] * 100, "same"),
        (np.linspace(0.0, 1.0, 100).tolist(), None),
    ],
)
def test_identifiers_and_constants_are_dropped_with_a_remark(values: list[Any], why: str | None) -> None:
    table = pa.table({"c": pa.array(values), "x": [0.0, 1.0] * 50})
    encoder = TableEncoder().fit(table)
    assert (why is None) == (not encoder.dropped_)
    assert why is None or why in encoder.dropped_["c"]
    if why in ("identifier", "same"):
        assert not clone(encoder).set_params(drop=False).fit(table).dropped_


def test_a_column_called_id_is_an_identifier_when_it_tells_rows_apart() -> None:
    numbers = [1_000_003 * i for i in range(100)]
    table = pa.table({"patient_id": numbers, "humid": numbers, "x": [0.0, 1.0] * 50})
    assert list(TableEncoder().fit(table).dropped_) == ["patient_id"]


def test_rare_levels_share_one_and_unknown_ones_join_them() -> None:
    words = ["a"] * 5 + ["b"] * 4 + ["c", "d"]
    encoder = TableEncoder(max_levels=2).fit(pa.table({"w": words}))
    assert encoder.get_feature_names_out().tolist() == ["w[b]", "w[other]"]
    assert encoder.transform(pa.table({"w": ["a", "b", "c", "zzz"]})).tolist() == [[0, 0], [1, 0], [0, 1], [0, 1]]


def test_unknown_levels_are_nothing_or_an_error() -> None:
    table, new = pa.table({"w": ["a", "a", "b"]}), pa.table({"w": ["b", "zzz"]})
    assert TableEncoder().fit(table).transform(new).tolist() == [[1], [0]]
    assert np.isnan(TableEncoder(categories="codes").fit(table).transform(new)[1, 0])
    with pytest.raises(DataError, match="Column 'w' is 'zzz' at row 1, which is not among its 2 levels"):
        TableEncoder(unknown="error").fit(table).transform(new)


def test_columns_may_come_in_another_order_and_with_others() -> None:
    table = pa.table(columns())
    encoder = TableEncoder().fit(table)
    shuffled = table.select(["since", "member", "town", "age"]).append_column("more", pa.array([1, 2, 3, 4]))
    assert np.array_equal(encoder.transform(shuffled), encoder.transform(table))


def test_errors_of_tables_are_described() -> None:
    encoder = TableEncoder().fit(pa.table(columns()))
    with pytest.raises(DataError, match="The table has no column 'town', which the training data had: add it"):
        encoder.transform(pa.table(columns()).drop_columns(["town"]))
    text = pa.table(columns()).set_column(0, "age", pa.array(["30", None, "n/a", "1"]))
    with pytest.raises(DataError, match="Column 'age' had numbers in the training data but is 'n/a' at row 2"):
        encoder.transform(text)
    numbers = pa.table(columns()).set_column(1, "town", pa.array([None, 2.0, 3.0, 4.0]))
    with pytest.raises(DataError, match="Column 'town' had text in the training data but is 2.0 at row 1"):
        encoder.transform(numbers)
    words = pa.table(columns()).set_column(3, "since", pa.array([None, "2024-01-01", "soon", "never"]))
    with pytest.raises(DataError, match="Column 'since' had dates in the training data but is 'soon' at row 2"):
        encoder.transform(words)
    with pytest.raises(DataError, match="Column 'x' is infinite at row 1"):
        TableEncoder().fit(pa.table({"x": [1.0, np.inf]}))
    with pytest.raises(ParameterError, match="The 'categories' parameter of TableEncoder must be"):
        TableEncoder(categories="dummies").fit(pa.table(columns()))


def test_a_failed_fit_leaves_the_encoder_as_it_was() -> None:
    encoder = TableEncoder()
    with pytest.raises(DataError, match="All columns were dropped"):
        encoder.fit(pa.table({"x": [1.0, 1.0]}))
    assert vars(encoder) == vars(TableEncoder())


def test_each_reason_for_dropping_columns_is_named() -> None:
    same = {f"same{j}": [1.0] * 30 for j in range(5)}
    table = pa.table({"key": [f"k{i}" for i in range(30)], **same, "none": pa.nulls(30, pa.float64())})
    message = (
        r"\('key': .*; 'same0', 'same1', 'same2' and 2 more: all values are the same; 'none': all values are missing\)"
    )
    with pytest.raises(DataError, match=message):
        TableEncoder().fit(table)


def test_columns_that_are_all_missing_now_may_be_of_any_type() -> None:
    encoder = TableEncoder().fit(pa.table(columns()))
    empty = pa.table({name: pa.nulls(2, pa.float64()) for name in columns()})
    assert encoder.transform(empty)[:, [1, 3, 8]].all()


def test_text_that_spells_dates_is_dates() -> None:
    words = ["2024-01-31", "2024-02-01 06:30", None, "2023-12-31T23:59:59"]
    encoder = TableEncoder().fit(pa.table({"t": words}))
    names = encoder.get_feature_names_out().tolist()
    assert names == ["t[day]", "t[month]", "t[weekday]", "t[hour]", "t[missing]"]
    assert encoder.transform(pa.table({"t": words}))[[0, 1, 3], 3].tolist() == [0, 6, 23]
    almost = TableEncoder().fit(pa.table({"t": ["2024-02-31", "2024-02-01", "2024-02-01"]}))
    assert almost.columns_[0].kind == "category"  # there is no such day


def test_names_reach_the_coefficients_of_a_pipeline() -> None:
    from sklearn.pipeline import make_pipeline

    from summula.linear_model import Ridge

    penguins = summula.datasets.load("penguins").drop_null()
    X, y = penguins.drop_columns(["body_mass_g"]), penguins["body_mass_g"].to_numpy()
    model = make_pipeline(TableEncoder().set_output(transform="pandas"), Ridge()).fit(X, y)
    assert "species[Gentoo]" in model[-1].feature_names_in_
    assert model.score(X, y) > 0.85


def test_saved_and_loaded_it_encodes_to_the_bit(tmp_path: Path) -> None:
    penguins = summula.datasets.load("penguins")
    encoder = TableEncoder(standardize=True).fit(penguins)
    summula.save(encoder, tmp_path / "encoder.summula")
    again = summula.load(tmp_path / "encoder.summula")
    assert again.columns_ == encoder.columns_
    assert np.array_equal(again.transform(penguins), encoder.transform(penguins))
