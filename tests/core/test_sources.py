"""Sources: one interface to arrays, frames, sparse matrices and lifted rows, shared rather than copied."""

from __future__ import annotations

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from summula.core.data.frames import frame_library, is_frame, pop_columns
from summula.core.data.sources import MappedSource, MemorySource
from summula.core.errors import DataError
from summula.core.estimator.input.validation import as_source
from summula.linear_model import LinearRegression

F64, F32 = np.dtype(np.float64), np.dtype(np.float32)


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(12, 3))


@pytest.fixture
def columns(X):
    return {"a": X[:, 0].copy(), "b": X[:, 1].copy(), "c": X[:, 2].copy()}


def source_of(X, y=None, sample_weight=None, **options):
    options.setdefault("needs_y", y is not None)
    return as_source(LinearRegression(), X, y, sample_weight, **options)


def everything(source):
    return source.chunk(0, source.n_rows).dense()


# -------------------------------------------------------------------------------------------------------------- arrays


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_float_arrays_are_taken_as_they_are(X, order, dtype):
    X = np.asarray(X, dtype, order=order)
    source = source_of(X)
    assert np.shares_memory(source.rows, X)
    assert source.dtype == dtype
    assert (source.n_rows, source.n_features, source.n_targets) == (12, 3, 0)
    assert source.width == 3
    assert not source.is_sparse
    assert not source.weighted


def test_memory_maps_are_not_read_into_memory(X, tmp_path):
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    source = source_of(mapped)
    assert np.shares_memory(source.rows, mapped)
    assert np.array_equal(everything(source), X)


def test_lists_and_whole_numbers_become_floats():
    source = source_of([[1, 2], [3, 4]], [5, 6])
    assert source.dtype == np.float64
    assert np.array_equal(everything(source), [[1, 2], [3, 4]])
    assert source.y.dtype == np.float64
    assert source.y.shape == (2, 1)


def test_targets_and_weights_become_columns(X):
    one = source_of(X, np.arange(12.0), 2.0)
    assert (one.n_targets, one.one_target, one.y.shape) == (1, True, (12, 1))
    assert np.array_equal(one.weight, np.full(12, 2.0))
    two = source_of(X, np.ones((12, 2)))
    assert (two.n_targets, two.one_target) == (2, False)
    assert source_of(X, np.ones((12, 1))).one_target is False


def test_rows_have_global_numbers(X):
    source = MemorySource(X, X[:, :1], X[:, 0], F64)
    chunk = source.chunk(3, 8)
    assert (chunk.start, chunk.stop) == (3, 8)
    assert np.array_equal(chunk.X, X[3:8])
    assert np.array_equal(chunk.y, X[3:8, :1])
    assert np.array_equal(chunk.weight, X[3:8, 0])
    held = source.only(4, 10)
    assert held.n_rows == 6
    assert np.array_equal(held.chunk(5, 7).X, X[5:7])
    assert np.array_equal(held.only(5, 9).chunk(6, 8).y, X[6:8, :1])


def test_columns_are_called_by_name_or_number(X):
    assert MemorySource(X, None, None, F64, ("a", "b", "c")).column(1) == "Column 'b'"
    assert MemorySource(X, None, None, F64).column(1) == "Column 1"


# -------------------------------------------------------------------------------------------------------------- sparse


@pytest.mark.parametrize("form", ["csr", "csc"])
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
def test_sparse_matrices(X, form, kind):
    Z = kind(np.where(X > 0, X, 0)).asformat(form)
    source = source_of(Z)
    assert source.is_sparse
    assert source.width == pytest.approx(Z.nnz / 12)
    assert np.array_equal(everything(source), Z.toarray())
    if form == "csr":
        assert np.shares_memory(source.rows.data, Z.data)


def test_sparse_rows_held_alone(X):
    Z = sparse.csr_array(np.where(X > 0, X, 0))
    held = MemorySource(Z, None, None, F64).only(4, 9)
    assert held.rows.shape == (5, 3)
    assert np.array_equal(held.chunk(5, 8).dense(), Z.toarray()[5:8])


# -------------------------------------------------------------------------------------------------------------- frames


def test_every_library_gives_the_same_rows(constructor, columns, X):
    frame = constructor(columns)
    source = source_of(frame, np.arange(12.0))
    assert np.array_equal(everything(source), X)
    assert source.names == ("a", "b", "c")
    assert source.dtype == np.float64


def test_polars_columns_are_shared(columns):
    frame = pl.DataFrame(columns)
    rows = source_of(frame).rows
    for name, column in zip("abc", rows, strict=True):
        assert np.shares_memory(column, frame[name].to_numpy())


def test_pyarrow_columns_are_shared(columns):
    table = pa.table(columns)
    rows = source_of(table).rows
    for name, column in zip("abc", rows, strict=True):
        assert np.shares_memory(column, table[name].chunk(0).to_numpy())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_pandas_block_is_shared(X, dtype):
    block = X.astype(dtype)
    frame = pd.DataFrame(block, columns=list("abc"), copy=False)
    source = source_of(frame)
    assert np.shares_memory(source.rows, frame.to_numpy())
    assert source.dtype == dtype


def test_float32_columns_stay_float32_only_together(constructor, columns):
    short = {name: column.astype(np.float32) for name, column in columns.items()}
    assert source_of(constructor(short)).dtype == np.float32
    assert source_of(constructor(columns | {"a": short["a"]})).dtype == np.float64


def test_whole_numbers_and_booleans_are_numbers(constructor):
    frame = constructor({"i": np.arange(3), "u": np.arange(3).astype(np.uint8), "b": np.array([True, False, True])})
    assert np.array_equal(everything(source_of(frame)), [[0, 0, 1], [1, 1, 0], [2, 2, 1]])


def test_nulls_are_missing_values(constructor):
    frame = constructor({"a": [1.0, None, 3.0], "b": [True, None, False]})
    np.testing.assert_array_equal(everything(source_of(frame)), [[1, 1], [np.nan, np.nan], [3, 0]])


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "boolean"])
def test_nullable_pandas_columns(dtype):
    frame = pd.DataFrame({"a": pd.array([1, 0, None], dtype=dtype), "b": [1.0, 2.0, 3.0]})
    np.testing.assert_array_equal(everything(source_of(frame)), [[1, 1], [0, 2], [np.nan, 3]])


def test_pandas_sparse_columns_become_csr(X):
    frame = pd.DataFrame.sparse.from_spmatrix(sparse.csr_array(np.where(X > 0, X, 0)), columns=list("abc"))
    source = source_of(frame)
    assert source.is_sparse
    assert np.array_equal(everything(source), np.where(X > 0, X, 0))


def test_a_column_named_as_the_target_is_no_feature(constructor, columns):
    source = source_of(constructor(columns), "b")
    assert source.names == ("a", "c")
    assert source.target_names == ("b",)
    assert np.array_equal(source.y[:, 0], columns["b"])


def test_weights_named_as_a_column(constructor, columns):
    source = source_of(constructor(columns | {"w": np.arange(12)}), ["a", "b"], "w", needs_y=True)
    assert source.names == ("c",)
    assert source.target_names == ("a", "b")
    assert np.array_equal(source.weight, np.arange(12))
    assert source.weight.dtype == np.float64


def test_an_unknown_column_gets_the_nearest_name(constructor, columns):
    frame = constructor({"height": columns["a"], "weight": columns["b"]})
    with pytest.raises(DataError, match="'wieght'; did you mean 'weight'"):
        source_of(frame, "wieght", needs_y=True)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_are_recognised(library):
    made = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[library]({"a": [1.0]})
    assert is_frame(made)
    assert frame_library(made) == library


def test_what_is_no_frame(X):
    assert not any(map(is_frame, (X, X.tolist(), (1, 2), sparse.csr_array(X), pd.Series([1.0]), None, "a")))


def test_popped_columns_leave_the_frame_of_the_caller_whole(constructor, columns):
    frame = constructor(columns)
    rest, popped = pop_columns(frame, ["b"])
    assert np.array_equal(popped[0].to_numpy(), columns["b"])
    assert nw.from_native(rest).columns == ["a", "c"]
    assert nw.from_native(frame).columns == ["a", "b", "c"]


# -------------------------------------------------------------------------------------------------------- lifted rows


def squares(block):
    return np.hstack([block, block**2])


def test_a_mapped_source_is_the_function_of_each_chunk(X):
    base = MemorySource(X, X[:, :1], X[:, 0], F64, ("a", "b", "c"), ("y",))
    mapped = MappedSource(base, squares, 6)
    assert (mapped.n_rows, mapped.n_features, mapped.n_targets, mapped.width) == (12, 6, 1, 6.0)
    assert (mapped.target_names, mapped.names, mapped.weighted) == (("y",), None, True)
    got = [chunk for part in mapped.plan(5) for chunk in part.chunks()]
    assert np.array_equal(np.vstack([chunk.X for chunk in got]), squares(X))
    assert np.array_equal(np.vstack([chunk.y for chunk in got]), X[:, :1])
    assert [(chunk.start, chunk.stop) for chunk in got] == [(0, 5), (5, 10), (10, 12)]


def test_a_mapped_source_of_columns_sparse_rows_and_float32(X):
    for rows in (tuple(X.T), sparse.csr_array(X)):
        mapped = MappedSource(MemorySource(rows, None, None, F64), squares, 6)
        assert not mapped.is_sparse
        assert np.array_equal(mapped.chunk(3, 9).X, squares(X)[3:9])
    short = X.astype(np.float32)
    mapped = MappedSource(MemorySource(short, None, None, F32), squares, 6)
    assert mapped.chunk(0, 4).X.dtype == np.float32


def test_a_mapped_source_holds_rows_alone_under_their_numbers(X):
    mapped = MappedSource(MemorySource(X, None, None, F64), squares, 6).only(4, 10)
    assert np.array_equal(mapped.chunk(5, 7).X, squares(X)[5:7])
