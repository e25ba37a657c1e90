"""The compiled sums over CSR rows against plain NumPy; whole numbers, so that equality is exact."""

from __future__ import annotations

import functools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from summula.core.data.sources import MemorySource
from summula.linear_model.least_squares import sparse_kernels
from summula.linear_model.least_squares.sparse_least_squares import ColumnSums, NormalProduct
from tests.reference import sparse_sums

F64 = np.dtype(np.float64)


@st.composite
def tables(draw):
    """X as CSR (some rows and columns empty), weights or none, targets and coefficients; and the rows used."""
    n, d, t = draw(st.integers(1, 9)), draw(st.integers(1, 6)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    X = rng.integers(-4, 5, (n, d)) * (rng.random((n, d)) < draw(st.sampled_from([0.0, 0.4, 1.0])))
    dtype, index = draw(st.sampled_from([np.float64, np.float32])), draw(st.sampled_from([np.int32, np.int64]))
    Z = sparse.csr_array(X.astype(dtype))
    Z = sparse.csr_array((Z.data, Z.indices.astype(index), Z.indptr.astype(index)), shape=Z.shape)
    w = rng.integers(0, 4, n).astype(float) if draw(st.booleans()) else None
    first = draw(st.integers(0, n - 1))
    rows = slice(first, draw(st.integers(first + 1, n)))
    return Z, w, rng.integers(-5, 6, (n, t)).astype(float), rng.integers(-3, 4, (d, t)).astype(float), rows


def arrays(Z, rows):
    return Z.indptr[rows.start : rows.stop + 1], Z.indices, Z.data


def weights(w, rows):
    return np.empty(0) if w is None else w[rows]


def ones(w, n):
    return np.ones(n) if w is None else w


@settings(max_examples=60, deadline=None)
@given(tables())
def test_normal_product(table):
    Z, w, _, V, rows = table
    out = np.arange(float(Z.shape[1]))
    sparse_kernels.normal_product(*arrays(Z, rows), weights(w, rows), V[:, 0].copy(), out)
    X = Z.toarray().astype(float)
    want = sparse_sums.normal_product(X[rows], ones(w, len(X))[rows], V[:, 0])
    np.testing.assert_array_equal(out, np.arange(float(Z.shape[1])) + want)


@settings(max_examples=60, deadline=None)
@given(tables())
def test_column_sums(table):
    Z, w, Y, _, rows = table
    out = np.ones((Z.shape[1], 2 + Y.shape[1]))
    sparse_kernels.column_sums(*arrays(Z, rows), weights(w, rows), Y[rows], out)
    X = Z.toarray().astype(float)
    np.testing.assert_array_equal(out, 1 + sparse_sums.column_sums(X[rows], ones(w, len(X))[rows], Y[rows]))


@settings(max_examples=60, deadline=None)
@given(tables())
def test_residual_sums(table):
    Z, w, Y, V, rows = table
    got, slope = Y[rows].copy(), np.ones(V.shape)
    sparse_kernels.residual_sums(*arrays(Z, rows), weights(w, rows), got, V, slope)
    X = Z.toarray().astype(float)
    residual, want = sparse_sums.residual_sums(X[rows], ones(w, len(X))[rows], Y[rows], V)
    np.testing.assert_array_equal(got, residual)
    np.testing.assert_array_equal(slope, 1 + want)


@settings(max_examples=30, deadline=None)
@given(tables())
def test_the_statistics_made_of_them_add_up(table):
    Z, w, Y, V, _ = table
    source = MemorySource(Z, Y, w, F64)
    X, n = Z.toarray().astype(float), Z.shape[0]
    chunks = [source.chunk(i, min(i + 2, n)) for i in range(0, n, 2)]
    product = added([NormalProduct.map(chunk, (np.zeros(len(V)), V[:, 0].copy())) for chunk in chunks])
    sums = added([ColumnSums.map(chunk, np.zeros(X.shape[1] + Y.shape[1])) for chunk in chunks])
    u = ones(w, n)
    np.testing.assert_array_equal(product.value, sparse_sums.normal_product(X, u, V[:, 0]))
    total, square, *cross = sparse_sums.column_sums(X, u, Y).T
    np.testing.assert_array_equal(sums.total, total)
    np.testing.assert_array_equal(sums.square, square)
    np.testing.assert_array_equal(sums.cross, np.transpose(cross))
    np.testing.assert_array_equal(sums.y_total, u @ Y)
    np.testing.assert_array_equal(sums.y_square, u @ Y**2)
    assert sums.weight == u.sum()


def added(statistics):
    return functools.reduce(type(statistics[0]).merge, statistics)


def test_warmup_compiles_every_kernel():
    sparse_kernels.warmup()
    for name in set(sparse_kernels.__all__) - {"warmup"}:
        assert getattr(sparse_kernels, name).signatures, name
