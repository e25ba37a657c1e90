"""Compiled loops of trees against plain ones; sums are of whole numbers, so that equality is exact."""

from __future__ import annotations

import numpy as np
import pytest

from summula.core.engine.worker_group import LINE
from summula.tree import histogram_kernels, partition_kernels, split_kernels
from summula.tree.binning_kernels import EDGES, bin_codes, bin_values
from summula.tree.histogram_kernels import Packing
from summula.tree.split_kernels import Columns, Limits
from tests.reference import boosting as plain

IDLE = np.zeros((2, LINE), np.int64)  # the table of a worker group of one


def packed(g, h, count_bits, bits):
    return ((g << (2 * count_bits + bits)) + (h << count_bits) + 1) if bits else (g << count_bits) + 1


@pytest.mark.parametrize(("count_bits", "bits"), [(14, 9), (14, 0), (5, 9)])
@pytest.mark.parametrize("n", [1, 31, 40_000])
def test_a_histogram_is_that_of_plain_sums(n, count_bits, bits):
    rng = np.random.default_rng(n)
    bins = rng.integers(0, 256, (n, 3)).astype(np.uint8)
    g = rng.integers(-4095, 4096, n)
    h = rng.integers(0, 512, n) if bits else np.ones(n, np.int64)
    rows = np.sort(rng.choice(n, -(-n // 3), replace=False)).astype(np.uint32)
    space, sums = np.zeros((3, 256), np.int64), np.zeros((3, 768), np.int64)
    packing, both = Packing.of(count_bits, bits), packed(g, h, count_bits, bits)
    histogram_kernels.accumulate(bins, rows, both, 0, 3, packing, space, sums, IDLE)
    expected = plain.histogram(bins, rows, g, h)
    np.testing.assert_array_equal(sums.reshape(3, 256, 3), expected)
    assert not space.any()
    if len(rows) <= packing.mask:
        narrow = np.zeros((3, 256), np.int64)
        histogram_kernels.accumulate(bins, rows, both, 0, 3, packing, space, narrow, IDLE)
        np.testing.assert_array_equal(np.stack(histogram_kernels.unpacked.py_func(narrow, packing), -1), expected)


def test_a_cancelled_group_sums_no_further_rows():
    cancelled, sums, n = IDLE.copy(), np.zeros((1, 768), np.int64), 40_000
    cancelled[-1] = 1
    bins, rows, both = np.zeros((n, 1), np.uint8), np.arange(n, dtype=np.uint32), np.ones(n, np.int64)
    packing, space = Packing.of(14, 9), np.zeros((1, 256), np.int64)
    histogram_kernels.accumulate(bins, rows, both, 0, 1, packing, space, sums, cancelled)
    assert not sums.any()


@pytest.mark.parametrize("bits", [9, 0])
@pytest.mark.parametrize(("whole", "part"), [(900, 300), (1_100, 300), (1_100, 90), (2_500, 1_200)])
def test_the_rest_of_a_histogram_is_that_of_the_other_rows(whole, part, bits):
    rng, packing = np.random.default_rng(whole + part), Packing.of(10, bits)  # up to 1,023 rows are packed
    bins, g = rng.integers(0, 256, (whole, 3)).astype(np.uint8), rng.integers(-4095, 4096, whole)
    h = rng.integers(0, 512, whole) if bits else np.ones(whole, np.int64)
    rows = rng.permutation(whole).astype(np.uint32)

    def summed(rows):
        shape = (3, 256) if len(rows) <= packing.mask else (3, 768)
        sums = np.zeros(shape, np.int64)
        histogram_kernels.accumulate(
            bins, rows, packed(g, h, 10, bits), 0, 3, packing, np.zeros((3, 256), np.int64), sums, IDLE
        )
        return sums

    expected = summed(rows[part:])
    rest = np.zeros_like(expected)
    histogram_kernels.subtract(summed(rows), summed(rows[:part]), rest, 0, 3, packing)
    np.testing.assert_array_equal(rest, expected)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_bins_are_those_of_a_search(kind):
    rng = np.random.default_rng(0)
    edges = np.sort(rng.normal(size=254))
    values = np.concatenate([rng.normal(size=500), edges, [np.nan, np.inf, -np.inf]]).astype(kind)
    room, out = np.full(EDGES, np.inf), np.zeros((len(values), 2), np.uint8)
    room[:254] = edges
    bin_values(values, room, out[:, 1])
    np.testing.assert_array_equal(out[:, 1], plain.bins_of(values.astype(float), edges))
    levels, codes = np.array([-1.0, 2.0, 7.0]), np.array([0, 1, 2], np.uint8)
    bin_codes(np.array([7.0, 3.0, np.nan, -1.0, 9.0], kind), levels, codes, out[:5, 0])
    np.testing.assert_array_equal(out[:5, 0], [2, 255, 255, 0, 255])
    bin_codes(np.array([2.0, 1.0, 0.5, -0.0], kind), np.array([0.0, 1.0, 2.0]), codes, out[:4, 0])
    np.testing.assert_array_equal(out[:4, 0], [2, 1, 255, 0])


def found_split(sums, columns, limits, bounds=(-np.inf, np.inf)):
    total = sums[0].sum(axis=0)
    value = -limits.gradient_unit * total[0] / (limits.curvature_unit * total[1] + limits.l2 + 1e-15)
    found, left = np.zeros(6, np.int64), np.zeros(256, np.uint8)
    allowed = np.ones(len(sums), np.uint8)
    node = np.array([value, *bounds])
    given = len(sums), columns, allowed, total, node, limits, Packing.of(14, 9), -1.0
    gain = split_kernels.best_split(sums.reshape(len(sums), 768), 0, *given, found, left)
    narrow, again, flags = packed_sums(sums), found.copy(), left.copy()
    assert split_kernels.best_split(narrow, 0, *given, again, flags) == pytest.approx(gain, rel=1e-12)
    np.testing.assert_array_equal(again, found)
    np.testing.assert_array_equal(flags, left)
    return gain, found, left


def packed_sums(sums):
    return (sums[..., 0] << 37) + (sums[..., 1] << 14) + sums[..., 2]


@pytest.mark.parametrize("l2", [0.0, 3.0])
@pytest.mark.parametrize("missing", [False, True])
def test_the_best_split_is_that_of_all(l2, missing):
    rng = np.random.default_rng(5)
    for _ in range(20):
        bins = rng.integers(0, 6, (60, 4)).astype(np.uint8)
        if missing:
            bins[rng.random((60, 4)) < 0.2] = 255
        g, h = rng.integers(-9, 10, 60), rng.integers(1, 5, 60)
        sums = plain.histogram(bins, np.arange(60), g, h)
        columns = Columns(np.full(4, 6), np.zeros(4, np.int64), np.zeros(4, np.int64))
        gain, found, left = found_split(sums, columns, Limits(1.0, 1.0, l2, 5, 1e-3))
        assert gain == pytest.approx(plain.best_gain(sums, [6] * 4, l2, 5, 1e-3), rel=1e-9)
        goes = left[bins[:, found[0]]] == 1
        assert found[3:].tolist() == [g[goes].sum(), h[goes].sum(), goes.sum()]


@pytest.mark.parametrize("l2", [0.0, 3.0])
@pytest.mark.parametrize("bits", [9, 0])
@pytest.mark.parametrize("n", [60, 300, 5_000])
def test_columns_passed_over_have_no_better_split(n, bits, l2):
    rng, packing, d = np.random.default_rng(n + bits), Packing.of(13, bits), 30
    limits = Limits(1e-3, 1e-2 if bits else 1.0, l2, 5, 1e-3)
    for _ in range(20):
        bins = rng.integers(0, 255, (n, d)).astype(np.uint8)
        bins[rng.random((n, d)) < 0.1] = 255
        signal = (bins[:, rng.integers(d)] > 100) * rng.integers(0, 300)
        g, h = rng.integers(-900, 900, n) + signal, rng.integers(1, 512, n) if bits else np.ones(n, np.int64)
        sums, space = np.zeros((d, 256), np.int64), np.zeros((24, 256), np.int64)
        rows = np.arange(n, dtype=np.uint32)
        histogram_kernels.accumulate(bins, rows, packed(g, h, 13, bits), 0, d, packing, space, sums, IDLE)
        columns = Columns(np.full(d, 255), np.zeros(d, np.int64), np.zeros(d, np.int64))
        total, node = np.array([g.sum(), h.sum(), n]), np.zeros(3)
        split_kernels.whole(sums, packing, limits, total.copy(), node)

        def best(first, last):
            found, left = np.zeros(6, np.int64), np.zeros(256, np.uint8)
            given = sums, first, last, columns, np.ones(d, np.uint8), total, node, limits, packing  # noqa: B023
            return split_kernels.best_split(*given, -1.0, found, left), found

        each = [best(f, f + 1) for f in range(d)]
        gain, found = best(0, d)
        assert gain == max(one for one, _ in each)
        np.testing.assert_array_equal(found, each[int(np.argmax([one for one, _ in each]))][1])


def test_categories_are_split_as_by_trying_all_subsets():
    rng = np.random.default_rng(6)
    for _ in range(20):
        bins = rng.integers(0, 7, (700, 1)).astype(np.uint8)
        g, h = rng.integers(-9, 10, 700) + 3 * bins[:, 0].astype(int) % 5, np.full(700, 1)
        sums = plain.histogram(bins, np.arange(700), g, h)
        columns = Columns(np.array([7]), np.array([1]), np.array([0]))
        gain, found, left = found_split(sums, columns, Limits(1.0, 1.0, 0.0, 1, 1e-3))
        # The order is smoothed, so that it may miss the best by a little.
        assert gain >= 0.97 * plain.best_subset_gain(sums[0, :7], 0.0)
        goes = left[bins[:, 0]] == 1
        assert found[3:].tolist() == [g[goes].sum(), h[goes].sum(), goes.sum()]


def test_one_side_has_at_most_32_categories():
    bins = np.repeat(np.arange(200, dtype=np.uint8), 30)[:, None]
    g, h = np.where(bins[:, 0] % 2 == 0, -1, 1), np.ones(6000, np.int64)
    sums = plain.histogram(bins, np.arange(6000), g, h)
    limits, columns = Limits(1.0, 1.0, 0.0, 1, 1e-3), Columns(np.array([200]), np.array([1]), np.array([0]))
    _, found, left = found_split(sums, columns, limits)
    assert left.sum() == 32
    assert len(set(np.flatnonzero(left) % 2)) == 1
    assert found[5] == 32 * 30


def test_a_monotone_column_is_not_split_the_wrong_way():
    bins = np.repeat(np.arange(4), 10).astype(np.uint8)[:, None]
    g = np.repeat([3, 1, -1, -3], 10)  # the best values rise
    sums = plain.histogram(bins, np.arange(40), g, np.ones(40, np.int64))
    limits = Limits(1.0, 1.0, 0.0, 1, 1e-3)
    up, down = (Columns(np.array([4]), np.array([0]), np.array([sign])) for sign in (1, -1))
    assert found_split(sums, up, limits)[0] > 0
    assert found_split(sums, down, limits)[0] < 0


def test_rows_are_sorted_in_two_and_keep_their_order():
    rng = np.random.default_rng(1)
    bins, left = rng.integers(0, 256, 1000).astype(np.uint8), (rng.random(256) < 0.4).astype(np.uint8)
    rows = np.sort(rng.choice(1000, 600, replace=False)).astype(np.uint32)
    given, spare = rows.copy(), np.empty(600, np.uint32)
    goes = left[bins[given]] == 1
    for table, stride in ((bins, 1), (np.repeat(bins, 3), 3)):
        rows = given.copy()
        count = partition_kernels.scatter(rows, table, stride, left, 100, 600, spare)
        assert count == goes[100:].sum()
        partition_kernels.gather(rows, spare, 100, 600, count, 100, 100 + count)
        np.testing.assert_array_equal(
            rows, np.concatenate([given[:100], given[100:][goes[100:]], given[100:][~goes[100:]]])
        )


def test_leaf_sums_do_not_depend_on_the_order():
    rng = np.random.default_rng(2)
    g, h = rng.normal(size=900).astype(np.float32), rng.random(900).astype(np.float32)
    rows, unit = np.arange(900, dtype=np.uint32), 2.0**45
    starts, sums = np.array([0, 300, 900]), np.zeros((3, 2, 2))
    partition_kernels.leaf_sums(rows, starts, 0, 2, g, h, unit, sums[0])
    order = np.concatenate([rows[:300][::-1], rows[300:][::-1]])
    partition_kernels.leaf_sums(order, starts, 0, 2, g, h, unit, sums[1])
    np.testing.assert_array_equal(sums[1], sums[0])
    expected = [[v[a:b].sum(dtype=float) for v in (g, h)] for a, b in ((0, 300), (300, 900))]
    np.testing.assert_allclose(sums[0], expected, rtol=1e-12)
    partition_kernels.leaf_sums(rows, starts, 0, 2, g, h[:0], unit, sums[2])
    np.testing.assert_array_equal(sums[2], np.stack([sums[0, :, 0], [300, 600]], -1))
