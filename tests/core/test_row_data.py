"""Per-row data (targets, weights, codes, offsets, groups) are passed with the rows through every source."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal
from pyarrow import parquet

import summula
from summula.core.data.cache import CachedSource
from summula.core.data.chunks import ROW_DATA
from summula.core.data.labels import Labels, group_codes, group_numbers
from summula.core.data.sources import MemorySource
from summula.core.errors import DataError
from summula.core.estimator.input.validation import as_source
from summula.core.estimator.run import Run, Unnamed

N = 1_000
rng = np.random.default_rng(2)
X = rng.normal(size=(N, 2))
WORDS = rng.choice(["b", "c", "a"], N)
OFFSET, WEIGHT, TOWN = rng.normal(size=N), rng.random(N), rng.choice(["Bonn", "Kiel", "Ulm"], N)
CODES = np.unique(WORDS, return_inverse=True)[1]


@pytest.fixture
def files(tmp_path):
    columns = {"x": X[:, 0], "z": X[:, 1], "word": WORDS, "offset": OFFSET, "weight": WEIGHT, "town": TOWN}
    parquet.write_table(pa.table(columns), tmp_path / "rows.parquet", row_group_size=170)
    return summula.scan(tmp_path / "rows.parquet")


def source_of_files(files):
    few = files.select(["x", "z", "word", "offset", "weight"])
    source = as_source(Unnamed(), few, "word", "weight", needs_y=True, labels=Labels("the model"), offset="offset")
    source.table = files
    return source.with_groups("town")


def memory():
    return MemorySource(
        X, X[:, :1], WEIGHT, X.dtype, codes=CODES.astype(np.int32), offset=OFFSET, groups=group_codes(TOWN)
    )


def gathered(source, chunk_rows=130):
    parts = source.plan(chunk_rows)
    chunks = [chunk for part in parts for chunk in part.chunks()]
    return {name: np.concatenate([chunk.row_data[name] for chunk in chunks]) for name in chunks[0].row_data}


def test_chunks_and_parts_of_memory_carry_everything():
    expected = {name: getattr(memory(), name) for name in ROW_DATA}
    found = gathered(memory())
    sent = pickle.loads(pickle.dumps(memory().plan(130)[-1]))
    last = next(iter(sent.chunks()))
    for name in ROW_DATA:
        assert_array_equal(found[name], expected[name], err_msg=name)
        assert_array_equal(last.row_data[name], expected[name][last.start : last.stop], err_msg=name)


@pytest.mark.parametrize("index", [slice(3, 9), np.array([5, 1, 1, 700])], ids=["slice", "places"])
def test_some_rows_of_a_chunk_keep_theirs(index):
    some = memory().chunk(0, N).take(index)
    for name in ROW_DATA:
        assert_array_equal(getattr(some, name), getattr(memory(), name)[index], err_msg=name)


def test_leading_rows_keep_theirs():
    few = Run(Unnamed(), memory()).leading(50).source
    for name in ROW_DATA:
        assert_array_equal(getattr(few, name), getattr(memory(), name)[:50], err_msg=name)


def test_the_target_is_the_codes_of_labels_or_the_first_column():
    chunk = memory().chunk(10, 20)
    assert_array_equal(chunk.target, CODES[10:20])
    assert chunk.target.dtype == np.float64
    numbers = MemorySource(X, X, None, X.dtype).chunk(10, 20)
    assert_array_equal(numbers.target, X[10:20, 0])


def test_files_give_codes_offsets_and_groups(files):
    source = source_of_files(files)
    assert (source.n_targets, source.labelled, source.shifted, source.grouped) == (0, True, True, True)
    found = gathered(source)
    assert found.keys() == {"weight", "codes", "offset", "groups"}
    assert found["codes"].dtype == np.int32
    assert_array_equal(found["codes"], CODES)
    assert_array_equal(found["offset"], OFFSET)
    assert_array_equal(found["weight"], WEIGHT)
    assert found["groups"].dtype == np.int64
    by_number, by_town = np.unique(found["groups"], return_inverse=True)[1], group_codes(TOWN)
    assert len(set(zip(by_number, by_town, strict=True))) == 3  # the same partition of the rows


def test_the_scratch_file_gives_back_what_it_was_given(files, tmp_path):
    source = source_of_files(files)
    cached = CachedSource(source, str(tmp_path), scattered=True)
    first, again = gathered(cached), gathered(cached)
    assert cached._has(0, N)
    for name, values in gathered(source).items():
        assert again[name].dtype == values.dtype
        assert_array_equal(first[name], values, err_msg=name)
        assert_array_equal(again[name], values, err_msg=name)
    cached.release()


def test_dask_blocks_give_codes():
    da = pytest.importorskip("dask.array")
    labels = Labels("the model")
    lazy = da.from_array(X, chunks=(333, 2))
    source = as_source(Unnamed(), lazy, da.from_array(WORDS, chunks=400), needs_y=True, labels=labels)
    found = gathered(source)
    assert found["codes"].dtype == np.int32
    assert_array_equal(found["codes"], CODES)
    source.release()


def test_an_offset_that_is_missing_in_a_file_is_named(tmp_path):
    columns = {"x": X[:, 0], "y": np.ones(N), "log_time": np.where(np.arange(N) == 7, np.nan, OFFSET)}
    parquet.write_table(pa.table(columns), tmp_path / "rows.parquet")
    from summula.linear_model import PoissonRegressor

    with pytest.raises(DataError, match=r"The offset has 1 missing value \(NaN; first at row 7\)"):
        PoissonRegressor().fit(summula.scan(tmp_path / "rows.parquet"), "y", offset="log_time")


@pytest.mark.parametrize(
    "groups", [np.array([3.5, np.nan]), np.array(["a", None], object), np.array([1.0, float("nan")], object)]
)
def test_a_missing_group_is_located(groups):
    with pytest.raises(DataError, match="The group of row 1 is missing"):
        group_codes(groups)
    if groups.dtype != object or groups[1] is None:
        with pytest.raises(DataError, match="The group of row 101 is missing"):
            group_numbers(groups, 100)
