"""Blocks that are multiplied, and products of whole matrices: one layout and one order of summation for all sources."""

from __future__ import annotations

import numpy as np
import pytest

from summula.core.data.chunks import Chunk
from summula.core.data.layout import column_kernels  # noqa: F401  (loads the compiler: columns are copied by the kernel)
from summula.core.data.layout.blocks import aligned, empty_block, inner, is_canonical, product, write_columns
from summula.core.data.layout.fixed_order import (
    _row_products,
    column_squares,
    gathered_columns,
    in_one_order,
    products_of_columns,
    row_products,
    transposed_product,
)

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (7, 5), (1_000, 3)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.longdouble])
def test_an_empty_block_is_aligned_and_its_own(shape, dtype):
    blocks = [empty_block(*shape, dtype) for _ in range(5)]
    for block in blocks:
        assert block.shape == shape
        assert block.dtype == dtype
        assert block.size == 0 or is_canonical(block)
        block[...] = 1.0
    assert not np.may_share_memory(blocks[0], blocks[1]) or blocks[0].size == 0


def test_aligning_copies_only_what_lies_otherwise():
    block = empty_block(9, 4)
    block[...] = RNG.normal(size=(9, 4))
    assert aligned(block) is block
    for other in (np.asfortranarray(block), block[:, 1:], block[1:, :], block[::2], block.astype(">f8")):
        copy = aligned(other, np.float64)
        assert copy is not other
        assert is_canonical(copy, np.float64)
        assert np.array_equal(copy, other)


@pytest.mark.parametrize("d", [1, 2, 17, 40])
@pytest.mark.parametrize("n", [1, 15, 16, 17, 5_000])
def test_columns_are_written_as_numpy_writes_them(n, d):
    X, shift = RNG.normal(size=(n, d)), RNG.normal(size=d)
    wide = RNG.normal(size=(2 * n, 3 * d))
    wide[::2, 1::3] = X
    ways = [
        X,
        np.asfortranarray(X),
        wide[::2, 1::3],
        X[::-1].copy()[::-1],
        tuple(X.T.copy()),
        tuple(X.T),
        X.astype(np.float32),
    ]
    for columns in ways:
        expected = (np.column_stack(columns) if isinstance(columns, tuple) else columns) - shift
        for out in (empty_block(n, d), empty_block(n, d + 2)[:, 1:-1], np.empty((n, d), order="F")):
            write_columns(columns, shift, out)
            assert np.array_equal(out, expected)


@pytest.mark.parametrize("d", [1, 3, 4, 8, 12, 29])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_columns_of_either_precision_are_written_as_numpy_writes_them(d, dtype):
    n = 10_003
    X, shift = RNG.normal(size=(n, d)).astype(dtype), RNG.normal(size=d)
    spread = np.repeat(np.asfortranarray(X), 2, axis=0)[::2]
    for columns in (X, np.asfortranarray(X), spread, tuple(X.T.copy()), X[::-1].copy()[::-1]):
        for less in (shift.astype(dtype), shift):  # np.subtract rounds the difference once, for any dtype of the shift
            for out in (empty_block(n, d, dtype), empty_block(n, d + 2, dtype)[:, 1:-1]):
                write_columns(columns, less, out)
                assert np.array_equal(out, (X - less).astype(dtype))


def test_products_with_vectors_and_matrices():
    A, B = RNG.normal(size=(50, 6)), RNG.normal(size=(6, 12))[:, ::4]
    np.testing.assert_allclose(product(aligned(A), B), A @ B, rtol=1e-13)
    np.testing.assert_allclose(product(aligned(A).T, A[:, 0]), A.T @ A[:, 0], rtol=1e-13)
    assert inner(A[:, 0], A[:, 1]) == pytest.approx(float(A[:, 0] @ A[:, 1]), rel=1e-13)


# ----------------------------------------------------------------------------------------- products of whole matrices


def by_rows(X, r):
    """Equation (1) of `fixed_order.py`."""
    sums = np.zeros((4, X.shape[1]))
    for i, (x, by) in enumerate(zip(X.astype(np.float64), r, strict=True)):
        sums[i % 4] += x * by
    return (sums[0] + sums[1]) + (sums[2] + sums[3])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (3, 9), (5, 7), (64, 8), (38, 2_501), (1_100, 2_000)])
def test_both_orders_have_the_bits_of_the_four_sums(shape, dtype):
    X, r = RNG.normal(size=shape).astype(dtype), RNG.normal(size=shape[0])
    expected = by_rows(X, r)
    strided = np.repeat(X, 2, axis=1)[:, ::2]
    squares = by_rows(np.square(X.astype(np.float64)), r)
    for kept in (X, np.asfortranarray(X), in_one_order(strided)):
        assert np.array_equal(transposed_product(kept, r), expected)
        assert np.array_equal(column_squares(kept, r), squares)
        assert np.array_equal(transposed_product(kept, r[:, None]), expected[:, None])
        assert np.array_equal(row_products(kept.T, r), expected)
        assert np.array_equal(_row_products(kept.T, r), expected)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_several_vectors_and_squares_have_the_same_bits_in_both_orders(dtype):
    X, R, w = RNG.normal(size=(301, 1_500)).astype(dtype), RNG.normal(size=(301, 3)), RNG.random(301)
    rounding = {"rtol": 1e-10 if dtype == np.float64 else 1e-3, "atol": 1e-9 if dtype == np.float64 else 1e-3}
    for function, given, expected in (
        (transposed_product, R, X.T.astype(float) @ R),
        (column_squares, w, np.square(X.T.astype(float)) @ w),
    ):
        first = function(X, given)
        assert np.array_equal(first, function(np.asfortranarray(X), given))
        np.testing.assert_allclose(first, expected, **rounding)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("n", "count"), [(1, 1), (13, 4), (1_003, 300)])
def test_gathered_columns_are_those_of_numpy(n, count, dtype):
    X, shift = RNG.normal(size=(n, 350)).astype(dtype), RNG.normal(size=count)
    columns = RNG.permutation(350)[:count]
    for kept in (X, np.asfortranarray(X)):
        out = empty_block(count, n)
        gathered_columns(kept, columns, shift, out)
        assert np.array_equal(out, (X[:, columns] - shift).T)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("repeated", "more"), [(0, 1), (0, 700), (5, 3), (257, 300), (600, 256)])
def test_products_of_columns_are_those_of_numpy(repeated, more, weighted):
    A = aligned(RNG.normal(size=(repeated + more, 40)))
    B = aligned(A[repeated:] * RNG.random(40) if weighted else A[repeated:])
    np.testing.assert_allclose(products_of_columns(A, B, repeated), A @ B.T, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("d", [1, 3, 8, 50, 131])
def test_long_products_of_a_chunk_have_the_bits_of_the_four_sums(d, dtype):
    n = 2**18 // d + 3
    X, v = RNG.normal(size=(n, d)).astype(dtype), RNG.normal(size=d)
    below = np.asfortranarray(np.vstack([X, X]))[5 : 5 + n]
    below[:] = X
    for rows in (X, np.asfortranarray(X), below, tuple(X.T.copy()), np.repeat(X, 2, axis=1)[:, ::2]):
        chunk = Chunk(rows, None, None, 0, n, np.dtype(dtype))
        assert np.array_equal(chunk.times(v), by_rows(X.T, v))
        assert np.array_equal(chunk.times(v[:, None]), by_rows(X.T, v)[:, None])


def test_a_contiguous_matrix_is_not_copied():
    X = RNG.normal(size=(6, 5))
    assert in_one_order(X) is X
    assert in_one_order(X.T) is not None
    assert np.shares_memory(in_one_order(X.T), X)
    assert in_one_order(X[:, ::2]).flags.c_contiguous
