"""Chunks and parts: one global grid, and rows in the form requested by a statistic."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from summula.core.data.chunks import Part, chunk_rows_for, part_rows_for
from summula.core.data.layout.stored_rows import SparseRows
from summula.core.data.sources import MemorySource
from summula.core.engine.engine import engine

F64, F32 = np.dtype(np.float64), np.dtype(np.float32)


def source(n=100, d=3, *, rows=None, dtype=F64):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) if rows is None else rows
    return MemorySource(X, rng.normal(size=(n, 1)), rng.random(n), dtype)


# ---------------------------------------------------------------------------------------------------------------- plan


@given(n=st.integers(1, 400), d=st.integers(1, 5), chunk_rows=st.none() | st.integers(1, 50))
def test_parts_lie_on_the_grid_and_cover_every_row_once(n, d, chunk_rows):
    parts = source(n, d).plan(chunk_rows)
    chunks = [chunk for part in parts for chunk in part.chunks()]
    rows = parts[0].chunk_rows
    assert chunk_rows is None or rows == chunk_rows
    assert [part.start % rows for part in parts] == [0] * len(parts)
    assert [chunk.start % rows for chunk in chunks] == [0] * len(chunks)
    assert [len(chunk) for chunk in chunks[:-1]] == [rows] * (len(chunks) - 1)
    assert [row for chunk in chunks for row in range(chunk.start, chunk.stop)] == list(range(n))
    assert sum(map(len, parts)) == n


def test_parts_of_long_data_hold_several_chunks():
    long = MemorySource(np.zeros((1_000_000, 10)), None, None, F64)
    parts = long.plan()
    assert len(parts) > 1
    assert all(len(part) % part.chunk_rows == 0 for part in parts[:-1])
    assert len({len(part) for part in parts[:-1]}) == 1
    assert len(list(parts[0].chunks())) > 1


@pytest.mark.parametrize("chunk_rows", [None, 7])
def test_the_plan_does_not_see_the_workers(monkeypatch, chunk_rows):
    def cuts():
        return [(p.start, p.stop, p.chunk_rows) for p in source(200_000, 4).plan(chunk_rows)]

    before = cuts()
    for cap in ("1", "3"):
        monkeypatch.setenv("SUMMULA_NUM_THREADS", cap)
        assert cuts() == before
    for where, options in [("serial", {}), ("threads", {"n_jobs": 2})]:
        with engine(where, **options):
            assert cuts() == before


@given(st.floats(0, 1e7))
def test_chunks_are_a_power_of_two_that_fits_the_cache(width):
    rows = chunk_rows_for(width)
    assert 1024 <= rows <= 65536
    assert rows.bit_count() == 1
    assert rows == 1024 or rows * width <= 2**18


@given(st.integers(1, 10_000), st.floats(0, 1e5), st.integers(1, 10_000), st.integers(1, 10**9))
def test_a_part_is_whole_chunks(chunk_rows, width, n_features, n_rows):
    rows = part_rows_for(chunk_rows, width, n_features, n_rows)
    assert rows >= chunk_rows
    assert rows % chunk_rows == 0


@pytest.mark.parametrize("n", [40_000, 100_000, 1_000_000])
def test_threads_get_equal_shares_of_the_rows(n):
    parts = source(n, rows=np.zeros((n, 50))).plan()
    assert len(parts) >= 8
    assert max(map(len, parts)) <= n / 8


def test_parts_of_wide_data_are_large_beside_their_products():
    (only,) = source(6_000, rows=np.zeros((6_000, 4_000))).plan()
    assert len(list(only.chunks())) > 1


def test_a_pickled_part_carries_its_own_rows_only():
    whole = source(10_000, 20)
    part = Part(whole, 160, 176, 8, 16)
    sent = pickle.dumps(part)
    assert len(sent) < 20_000
    there = pickle.loads(sent)
    for a, b in zip(part.chunks(), there.chunks(), strict=True):
        assert (a.start, a.stop) == (b.start, b.stop)
        assert np.array_equal(a.X, b.X)
        assert np.array_equal(a.y, b.y)
        assert np.array_equal(a.weight, b.weight)


@pytest.mark.parametrize("form", ["columns", "csr"])
def test_a_pickled_part_of_columns_or_sparse_rows_does_too(form):
    X = np.random.default_rng(0).normal(size=(5000, 6))
    rows = tuple(X.T.copy()) if form == "columns" else sparse.csr_array(X)
    whole = source(5000, 6, rows=rows)
    part = Part(whole, 1000, 1016, 8, 16)
    sent = pickle.dumps(part)
    assert len(sent) < 8_000
    got = np.vstack([chunk.dense() for chunk in pickle.loads(sent).chunks()])
    assert np.array_equal(got, X[1000:1016])


# -------------------------------------------------------------------------------------------------------------- chunks


def forms(X):
    return {
        "C": np.ascontiguousarray(X),
        "F": np.asfortranarray(X),
        "strided": np.repeat(X, 2, axis=0)[::2],
        "reversed": X[::-1].copy()[::-1],
        "columns": tuple(X.T),
        "mixed": tuple(column.astype(np.float32) if j == 0 else column for j, column in enumerate(X.T)),
        "integers": X.astype(np.int64),
        "csr": sparse.csr_array(X),
        "csr_matrix": sparse.csr_matrix(X),
    }


WHOLE = np.random.default_rng(0).integers(-4, 5, size=(9, 3)).astype(float)


@pytest.mark.parametrize("form", forms(WHOLE))
@pytest.mark.parametrize("dtype", [F64, F32])
def test_a_chunk_gives_its_rows_in_every_form(form, dtype):
    chunk = MemorySource(forms(WHOLE)[form], None, None, dtype).chunk(2, 7)
    assert len(chunk) == 5
    assert chunk.n_features == 3
    assert chunk.is_sparse == form.startswith("csr")
    assert np.array_equal(chunk.dense(), WHOLE[2:7])
    assert chunk.dense(np.float32).dtype == np.float32
    if chunk.is_sparse:
        assert np.array_equal(chunk.X.toarray(), WHOLE[2:7])
        return
    assert chunk.X.dtype == dtype
    assert np.array_equal(chunk.X, WHOLE[2:7])
    for order in "CF":
        out = np.empty((5, 3), dtype, order=order)
        assert chunk.write(out) is out
        assert np.array_equal(out, WHOLE[2:7])
        shift = np.array([1, 2, 3], dtype)
        assert np.array_equal(chunk.write(out, shift), WHOLE[2:7] - shift)


@pytest.mark.parametrize("form", forms(WHOLE))
@pytest.mark.parametrize("index", [slice(1, 4), slice(0, 0), np.array([4, 0, 0, 2])], ids=str)
def test_some_rows_of_a_chunk_are_a_chunk(form, index):
    y, weight = np.arange(18.0).reshape(9, 2), np.arange(9.0)
    chunk = MemorySource(forms(WHOLE)[form], y, weight, F64).chunk(2, 7)
    some = chunk.take(index)
    assert len(some) == len(WHOLE[2:7][index])
    assert np.array_equal(some.dense(), WHOLE[2:7][index])
    assert np.array_equal(some.y, y[2:7][index])
    assert np.array_equal(some.weight, weight[2:7][index])


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_rows_of_an_array_are_not_copied(order):
    X = np.asarray(WHOLE, order=order)
    chunk = MemorySource(X, None, None, F64).chunk(2, 7)
    assert np.shares_memory(chunk.X, X)
    assert chunk.order == order


@pytest.mark.parametrize("dtype", [F64, F32])
def test_blocks_have_one_layout_whatever_the_source(dtype):
    for X in forms(WHOLE).values():
        chunk = MemorySource(X, None, None, dtype).chunk(0, 9)
        for block in (chunk.block(), chunk.block(origin=np.zeros(3)), chunk.blank(3)):
            assert block.flags.c_contiguous
            assert block.dtype == dtype
            assert block.ctypes.data % 64 == 0
        assert np.array_equal(chunk.block(), WHOLE.astype(dtype))
        assert np.array_equal(chunk.block(np.float64, np.arange(3.0)), WHOLE.astype(dtype) - np.arange(3.0))


def test_targets_and_weights_have_one_layout_too():
    pairs = np.arange(40.0).reshape(20, 2)
    for y, weight in (
        (pairs[:, :1], pairs[:, 1]),
        (np.asfortranarray(pairs), pairs[::-1, 0]),
        (pairs.astype(">f8"), pairs[:, 0]),
    ):
        chunk = MemorySource(np.zeros((20, 1)), y, weight, F64).chunk(3, 20)
        assert np.array_equal(chunk.y, y[3:])
        assert np.array_equal(chunk.weight, weight[3:])
        for values in (chunk.y, chunk.weight):
            assert values.flags.c_contiguous
            assert values.dtype.isnative
            assert values.ctypes.data % 16 == 0


def test_reading_a_chunk_leaves_the_data_alone():
    for X in forms(WHOLE).values():
        chunk = MemorySource(X, None, None, F64).chunk(0, 9)
        if not chunk.is_sparse:
            chunk.write(np.empty((9, 3)), np.ones(3))
        assert np.array_equal(chunk.dense(), WHOLE)


# --------------------------------------------------------------------------------------------------------- sparse rows


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_sparse_rows_share_the_memory_of_the_matrix(index):
    X = sparse.random_array((40, 7), density=0.3, format="csr", rng=np.random.default_rng(0))
    X = sparse.csr_array((X.data, X.indices.astype(index), X.indptr.astype(index)), shape=X.shape)
    rows = SparseRows(X, 10, 25)
    assert rows.shape == (15, 7)
    for ours, theirs in [(rows.data, X.data), (rows.indices, X.indices), (rows.indptr, X.indptr)]:
        assert np.shares_memory(ours, theirs)
    assert np.array_equal(rows.csr().toarray(), X.toarray()[10:25])


def test_the_rows_between_two_ends_are_those_of_the_matrix():
    X = sparse.random_array((40, 7), density=0.3, format="csr", rng=np.random.default_rng(0))
    rows, dense = SparseRows(X, 10, 25), X.toarray()
    for i in range(15):
        row = np.zeros(7)
        ends = slice(rows.indptr[i], rows.indptr[i + 1])
        row[rows.indices[ends]] = rows.data[ends]
        assert np.array_equal(row, dense[10 + i])


def test_rows_without_stored_values():
    X = sparse.csr_array((5, 3))
    chunk = MemorySource(X, None, None, F64).chunk(1, 4)
    assert np.array_equal(chunk.dense(), np.zeros((3, 3)))


def test_what_is_made_of_few_rows_is_made_once():
    few, many = source(100).chunk(0, 100), source(100_000).chunk(0, 100_000)
    assert few.kept("sums", lambda: few.rows.sum(axis=0)) is few.kept("sums", lambda: None)
    assert few.kept("other", lambda: 1) == 1
    assert many.kept("sums", lambda: many.rows.sum(axis=0)) is not many.kept("sums", lambda: many.rows.sum(axis=0))
