"""Blocks with more columns than rows are encoded at once; the result is that of column by column, bit for bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from summula.certification.fingerprints import row_hashes
from summula.core.data.joined_texts import joined_texts
from summula.core.errors import DataError
from summula.preprocessing import TableEncoder
from summula.preprocessing.table_encoder_blocks import texts_with_places
from summula.preprocessing.table_encoder_sums import ColumnSums

RNG = np.random.default_rng(0)
COLUMNS = {f"v{j}": np.where(RNG.random(200) < 0.1 * (j % 3), np.nan, RNG.normal(j, 2, 200)) for j in range(40)}
WORDS = np.array(["red", "green", "blue", "2.5", "", None], object)
TEXTS = {f"t{j}": pa.array(RNG.choice(WORDS[: 2 + j % 5], 200), pa.string()) for j in range(20)}
TEXTS["many"] = pa.array([f"w{k}" for k in RNG.integers(0, 120, 200)], pa.large_string())
TABLE = pa.table({**COLUMNS, "kind": RNG.choice(["a", "b"], 200), "n": RNG.integers(0, 9, 200), **TEXTS})


@pytest.mark.parametrize("options", [{"standardize": True}, {}, {"categories": "codes"}])
def test_few_rows_are_encoded_as_many_are(options: dict) -> None:
    encoder = TableEncoder(**options).fit(TABLE)
    many, few = encoder.transform(TABLE), encoder.transform(TABLE.slice(0, 7))
    np.testing.assert_array_equal(few, many[:7])
    places = encoder.places()
    assert list(places) == TABLE.column_names
    for name in ("v2", "kind"):
        np.testing.assert_array_equal(encoder.encode_column(name, TABLE[name]), many[:, places[name]])


@pytest.mark.parametrize("options", [{}, {"categories": "codes"}])
def test_texts_of_few_rows_are_summed_as_those_of_single_columns(options: dict) -> None:
    few = TABLE.slice(0, 30).drop_columns("n")
    wide = TableEncoder(drop=False, **options).fit(few)
    alone = [TableEncoder(drop=False, **options).fit(few.select([name])).columns_[0] for name in few.column_names]
    assert wide.columns_ == alone
    coded = few.set_column(few.num_columns - 1, "many", few["many"].dictionary_encode())
    assert TableEncoder(drop=False, **options).fit(coded).columns_ == alone
    np.testing.assert_array_equal(wide.transform(coded), wide.transform(few))


def test_an_unknown_text_is_located() -> None:
    encoder, few = TableEncoder(unknown="error").fit(TABLE), TABLE.slice(0, 5)
    with pytest.raises(DataError, match=r"Column 't3' is 'pink' at row 4"):
        encoder.transform(few.set_column(few.column_names.index("t3"), "t3", [["red", None, "red", "red", "pink"]]))
    missing = few.set_column(few.column_names.index("t3"), "t3", [pa.nulls(5)])
    np.testing.assert_array_equal(
        encoder.transform(missing)[:, encoder.places()["t3"]], encoder.encode_column("t3", pa.nulls(5, pa.string()))
    )


def test_joined_texts_are_those_of_each_column() -> None:
    columns = [TABLE[name].slice(0, 25).combine_chunks().cast(pa.large_string()) for name in TEXTS]
    found = joined_texts(columns)
    for j, column in enumerate(columns):
        words, places = texts_with_places(column)
        assert found.column(j)[0] == words
        np.testing.assert_array_equal(found.column(j)[1], places)
    assert joined_texts([pa.nulls(3, pa.large_string())] * 2).cells().tolist() == [[0, 0, 0], [0, 0, 0]]


def test_an_infinite_value_is_located() -> None:
    encoder = TableEncoder().fit(TABLE)
    few = TABLE.slice(0, 5)
    values = few["v3"].to_numpy().copy()
    values[4] = np.inf
    with pytest.raises(DataError, match=r"Column 'v3' is infinite at row 4"):
        encoder.transform(few.set_column(3, "v3", pa.array(values)))


def test_hashes_of_doubles_do_not_depend_on_the_library() -> None:
    numbers = pa.table(COLUMNS)
    np.testing.assert_array_equal(row_hashes(numbers), row_hashes(numbers.to_pandas()))
    np.testing.assert_array_equal(row_hashes(numbers), row_hashes(np.column_stack(list(COLUMNS.values()))))


def test_hashes_of_wide_tables_are_those_of_their_rows_in_long_ones() -> None:
    some = TABLE.drop_columns("n")
    few = some.slice(0, 30)
    np.testing.assert_array_equal(row_hashes(few), row_hashes(some)[:30])
    np.testing.assert_array_equal(row_hashes(few, TABLE["n"].slice(0, 30)), row_hashes(some, TABLE["n"])[:30])
    np.testing.assert_array_equal(row_hashes(few), row_hashes(few.to_pandas()))
    empty = pa.table({f"e{j}": pa.nulls(3, pa.string()) for j in range(5)})
    assert len(set(row_hashes(empty).tolist())) == 1


@pytest.mark.parametrize("n_rows", [1, 7, 8, 9, 24, 129, 1_500])
@pytest.mark.parametrize("decimals", [0, 9])
def test_numbers_of_wide_blocks_are_summed_as_those_of_single_columns(n_rows: int, decimals: int) -> None:
    values = np.round(np.random.default_rng(n_rows).normal(0, 10, (20, n_rows)), decimals)
    values[3, 0], values[4, 0], values[5, 0] = np.nan, -0.0, 1e200
    with np.errstate(over="ignore", invalid="ignore"):
        found = ColumnSums.of_wide_numbers(values)
    assert [j for j, one in enumerate(found) if one is None] == [3, 5]
    for column, one in zip(values, found, strict=True):
        if one is not None:
            alone = ColumnSums.of(column, "x", 0)
            np.testing.assert_array_equal(one.hashes, alone.hashes)
            empty = np.empty(0, np.uint64)
            assert repr(replace(one, hashes=empty)) == repr(replace(alone, hashes=empty))


@pytest.mark.parametrize("options", [{}, {"categories": "codes"}])
def test_widths_of_plans_count_their_names(options: dict) -> None:
    dates = pa.array(np.array(["2024-01-01", "2024-02-02T12:00", "NaT"], "datetime64[us]").repeat(67)[:200])
    encoder = TableEncoder(drop=False, **options).fit(TABLE.append_column("when", dates))
    for plan in encoder.columns_:
        assert plan.width(True) == len(plan.names(True))
        assert plan.width(False) == len(plan.names(False))
    assert encoder.n_columns_out == len(encoder.get_feature_names_out())
