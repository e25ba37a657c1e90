"""Text of files: dictionary-encoded columns are read as codes and words, and encoded like text in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

import summula
from summula.preprocessing import TableEncoder
from summula.preprocessing.table_encoder_blocks import texts_with_places

ROWS = 70_000  # more than two blocks


@pytest.fixture(scope="module")
def table() -> Any:
    rng = np.random.default_rng(0)
    words = np.array(["red", "green", "blue", "Zürich", ""], object)[rng.integers(0, 5, ROWS)]
    words[ROWS // 2 :] = np.where(words[ROWS // 2 :] == "red", "late", words[ROWS // 2 :])  # in later rows only
    words[rng.random(ROWS) < 0.1] = None
    days = np.datetime_as_string(np.datetime64("2024-01-01") + rng.integers(0, 400, ROWS)).astype(object)
    days[rng.random(ROWS) < 0.1] = None
    return pa.table({"word": words, "day": days, "x": rng.normal(size=ROWS)})


STORED = {
    "one.parquet": {},
    "groups.parquet": {"row_group_size": 9_000},
    "plain.parquet": {"use_dictionary": False},
    "overflow.parquet": {"dictionary_pagesize_limit": 20, "row_group_size": 30_000},
}


@pytest.mark.parametrize("name", [*STORED, "plain.arrow", "coded.arrow"])
@pytest.mark.parametrize("categories", ["codes", "indicators"])
def test_files_are_encoded_as_frames_are(name: str, categories: str, table: Any, tmp_path: Path) -> None:
    if name.endswith("parquet"):
        parquet.write_table(table, tmp_path / name, **STORED[name])
    else:
        word = table["word"].dictionary_encode() if name == "coded.arrow" else table["word"]
        feather.write_feather(table.set_column(0, "word", word), tmp_path / name)
    encoder = TableEncoder(categories=categories).fit(table.slice(0, 1_000))
    found = np.concatenate(list(encoder.transform(summula.scan(tmp_path / name))))
    np.testing.assert_array_equal(found, encoder.transform(table))


def test_words_of_other_rows_are_left_out() -> None:
    coded = pa.DictionaryArray.from_arrays(pa.array([2, None, 0, 2], pa.int8()), pa.array(["a", "b", "c"]))
    words, places = texts_with_places(coded)
    assert words == ["a", "c"]
    assert places.tolist() == [1, -1, 0, 1]


def test_a_missing_word_is_a_missing_value() -> None:
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, 1], pa.int8()), pa.array(["a", None]))
    words, places = texts_with_places(coded)
    assert [None if place < 0 else words[place] for place in places] == ["a", None, "a", None]


def test_more_words_than_rows() -> None:
    coded = pa.DictionaryArray.from_arrays(pa.array([7, 3]), pa.array([f"w{j}" for j in range(9)]))
    words, places = texts_with_places(coded)
    assert [words[place] for place in places] == ["w7", "w3"]
