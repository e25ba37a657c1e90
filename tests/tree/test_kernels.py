"""Compiled loops of trees against plain ones; sums of integers, so that equality is exact."""

from __future__ import annotations

import numpy as np
import pytest

from summula.core.engine.worker_group import LINE
from summula.tree.columns.binning_kernels import EDGES, bin_codes, bin_values
from summula.tree.growing import histogram_kernels, leaf_kernels, partition_kernels, split_kernels
from summula.tree.growing.histogram_kernels import Packing, TreeInputs
from summula.tree.growing.leaf_kernels import LeafParameters, LeafRows
from summula.tree.growing.records import NEWTON_SUMS, PARAMETERS, feature_table, node_dtype, split_dtype
from summula.tree.growing.split_kernels import Search, SplitInputs
from tests.reference import boosting as plain

IDLE = np.zeros((2, LINE), np.int64)  # the table of a worker group of one


def parameters(gradient_unit=1.0, hessian_unit=1.0, l2=0.0, min_rows=1, min_hessian=1e-3):
    record = np.zeros(1, PARAMETERS)
    for name, value in locals().copy().items():
        if name != "record":
            record[name] = value
    return record


def accumulated(bins, rows, packed, packing, histogram, table=IDLE):
    """Sum rows into a histogram, all features at once; return it, and the scratch that must be zero again."""
    block = np.zeros((histogram_kernels.BLOCK, 256), np.int64)
    inputs = TreeInputs(bins, packed, packing)
    histogram_kernels.accumulate(inputs, rows, 0, bins.shape[1], block, histogram, table)
    return histogram, block


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
    packing, both = Packing.of(count_bits, bits), packed(g, h, count_bits, bits)
    sums, block = accumulated(bins, rows, both, packing, np.ones((3, 768), np.int64))
    expected = plain.histogram(bins, rows, g, h)
    np.testing.assert_array_equal(sums.reshape(3, 256, 3), expected)
    assert not block.any()
    if len(rows) <= packing.count_mask:
        sums, _ = accumulated(bins, rows, both, packing, np.ones((3, 256), np.int64))
        np.testing.assert_array_equal(np.stack(histogram_kernels.unpack.py_func(sums, packing), -1), expected)


def test_a_cancelled_group_sums_no_further_rows():
    cancelled, n = IDLE.copy(), 40_000
    cancelled[-1] = 1
    bins, rows, both = np.zeros((n, 1), np.uint8), np.arange(n, dtype=np.uint32), np.ones(n, np.int64)
    sums, _ = accumulated(bins, rows, both, Packing.of(14, 9), np.ones((1, 768), np.int64), cancelled)
    assert not sums.any()


@pytest.mark.parametrize("bits", [9, 0])
@pytest.mark.parametrize(("whole", "part"), [(900, 300), (1_100, 300), (1_100, 90), (2_500, 1_200)])
def test_the_rest_of_a_histogram_is_that_of_the_other_rows(whole, part, bits):
    rng, packing = np.random.default_rng(whole + part), Packing.of(10, bits)  # up to 1,023 rows are packed
    bins, g = rng.integers(0, 256, (whole, 3)).astype(np.uint8), rng.integers(-4095, 4096, whole)
    h = rng.integers(0, 512, whole) if bits else np.ones(whole, np.int64)
    rows = rng.permutation(whole).astype(np.uint32)

    def summed(rows):
        width = 256 if len(rows) <= packing.count_mask else 768
        return accumulated(bins, rows, packed(g, h, 10, bits), packing, np.zeros((3, width), np.int64))[0]

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


def search(split, goes_left, d):
    return Search(split, goes_left, np.ones(d, np.uint8), np.zeros(256, np.int64), np.zeros((4, 256)))


def found_split(sums, features, limits, bounds=(-np.inf, np.inf)):
    """Return the best split of a node with this histogram, found on wide and on packed sums alike."""
    nodes, total, limit = np.zeros(1, node_dtype(NEWTON_SUMS)), sums[0].sum(axis=0), limits[0]
    node, d = nodes[0], len(sums)
    node["sums"] = tuple(total)
    node["value"] = -limit["gradient_unit"] * total[0] / (limit["hessian_unit"] * total[1] + limit["l2"] + 1e-15)
    node["lower"], node["upper"] = bounds
    inputs, found = SplitInputs.of(features, limits, Packing.of(14, 9)), []
    for histogram in (sums.reshape(d, 768), packed_sums(sums)):
        split, goes_left = np.zeros(1, split_dtype(NEWTON_SUMS)), np.zeros(256, np.uint8)
        split["gain"] = -1.0
        split_kernels.find_best_split(histogram, 0, d, inputs, node, search(split[0], goes_left, d))
        found.append((split[0], goes_left))
    (wide, flags), (narrow, again) = found
    assert narrow["gain"] == pytest.approx(wide["gain"], rel=1e-12)
    for name in ("feature", "bin", "missing_left", "left"):
        assert narrow[name] == wide[name]
    np.testing.assert_array_equal(again, flags)
    return wide, flags


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
        features = feature_table(np.full(4, 6), np.zeros(4), np.zeros(4))
        split, left = found_split(sums, features, parameters(l2=l2, min_rows=5))
        assert split["gain"] == pytest.approx(plain.best_gain(sums, [6] * 4, l2, 5, 1e-3), rel=1e-9)
        goes = left[bins[:, split["feature"]]] == 1
        assert split["left"].tolist() == (g[goes].sum(), h[goes].sum(), goes.sum())


@pytest.mark.parametrize("l2", [0.0, 3.0])
@pytest.mark.parametrize("bits", [9, 0])
@pytest.mark.parametrize("n", [60, 300, 5_000])
def test_features_passed_over_have_no_better_split(n, bits, l2):
    rng, packing, d = np.random.default_rng(n + bits), Packing.of(13, bits), 30
    inputs = SplitInputs.of(
        feature_table(np.full(d, 255), np.zeros(d), np.zeros(d)),
        parameters(1e-3, 1e-2 if bits else 1.0, l2, min_rows=5),
        packing,
    )
    for _ in range(20):
        bins = rng.integers(0, 255, (n, d)).astype(np.uint8)
        bins[rng.random((n, d)) < 0.1] = 255
        signal = (bins[:, rng.integers(d)] > 100) * rng.integers(0, 300)
        g, h = rng.integers(-900, 900, n) + signal, rng.integers(1, 512, n) if bits else np.ones(n, np.int64)
        rows, zeros = np.arange(n, dtype=np.uint32), np.zeros((d, 256), np.int64)
        sums, _ = accumulated(bins, rows, packed(g, h, 13, bits), packing, zeros)
        nodes = np.zeros(1, node_dtype(NEWTON_SUMS))
        split_kernels.set_root(sums, inputs, nodes[0])
        assert nodes["sums"].tolist() == [(g.sum(), h.sum(), n)]

        def best(first, last):
            split, flags = np.zeros(1, split_dtype(NEWTON_SUMS)), np.zeros(256, np.uint8)
            split["gain"] = -1.0
            given = sums, first, last, inputs, nodes[0]  # noqa: B023
            split_kernels.find_best_split(*given, search(split[0], flags, d))
            return split[0]

        each = [best(f, f + 1) for f in range(d)]
        assert best(0, d) == each[int(np.argmax([split["gain"] for split in each]))]


def test_categories_are_split_as_by_trying_all_subsets():
    rng = np.random.default_rng(6)
    for _ in range(20):
        bins = rng.integers(0, 7, (700, 1)).astype(np.uint8)
        g, h = rng.integers(-9, 10, 700) + 3 * bins[:, 0].astype(int) % 5, np.full(700, 1)
        sums = plain.histogram(bins, np.arange(700), g, h)
        split, left = found_split(sums, feature_table([7], [1], [0]), parameters())
        # The order is smoothed, so that it may miss the best by a little.
        assert split["gain"] >= 0.97 * plain.best_subset_gain(sums[0, :7], 0.0)
        goes = left[bins[:, 0]] == 1
        assert split["left"].tolist() == (g[goes].sum(), h[goes].sum(), goes.sum())


def test_one_side_has_at_most_32_categories():
    bins = np.repeat(np.arange(200, dtype=np.uint8), 30)[:, None]
    g, h = np.where(bins[:, 0] % 2 == 0, -1, 1), np.ones(6000, np.int64)
    sums = plain.histogram(bins, np.arange(6000), g, h)
    split, left = found_split(sums, feature_table([200], [1], [0]), parameters())
    assert left.sum() == 32
    assert len(set(np.flatnonzero(left) % 2)) == 1
    assert split["left"]["count"] == 32 * 30


def test_splits_respect_monotonicity():
    bins = np.repeat(np.arange(4), 10).astype(np.uint8)[:, None]
    g = np.repeat([3, 1, -1, -3], 10)  # the best values rise
    sums = plain.histogram(bins, np.arange(40), g, np.ones(40, np.int64))
    up, down = (found_split(sums, feature_table([4], [0], [sign]), parameters())[0] for sign in (1, -1))
    assert up["gain"] > 0
    assert down["gain"] < 0


def test_children_share_the_sums_of_their_parent_and_meet_halfway_at_a_monotone_split():
    inputs = SplitInputs.of(
        feature_table([4, 4, 4], np.zeros(3), [0, 1, -1]), parameters(0.5, 0.25, 1.0), Packing.of(14, 9)
    )
    for feature, monotone in ((0, 0), (1, 1), (2, -1)):
        nodes = np.zeros(3, node_dtype(NEWTON_SUMS))
        node, left, right = nodes
        node["sums"], node["lower"], node["upper"] = (10, 40, 8), -2.0, 2.0
        node["split"]["feature"], node["split"]["left"] = feature, (-6, 16, 3)
        split_kernels.set_children(node, inputs, left, right)
        assert left["sums"].tolist() == (-6, 16, 3)
        assert right["sums"].tolist() == (16, 24, 5)
        assert [left["weight"], right["weight"]] == [4.0, 6.0]
        assert [left["value"], right["value"]] == [pytest.approx(3 / 5), pytest.approx(-8 / 7)]
        middle = (left["value"] + right["value"]) / 2
        low, high = (left, right) if monotone > 0 else (right, left)
        assert [low["lower"], low["upper"]] == [-2.0, middle if monotone else 2.0]
        assert [high["lower"], high["upper"]] == [middle if monotone else -2.0, 2.0]


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


def test_leaf_values_do_not_depend_on_the_order_of_rows():
    rng = np.random.default_rng(2)
    g, h = rng.normal(size=900).astype(np.float32), rng.random(900).astype(np.float32)
    rows, starts, leaves = np.arange(900, dtype=np.uint32), np.array([0, 300, 900]), np.array([4, 2])
    nodes = np.zeros(5, node_dtype(NEWTON_SUMS))
    nodes["lower"], nodes["upper"] = -np.inf, np.inf
    reverse = np.concatenate([rows[:300][::-1], rows[300:][::-1]])

    def values(rows, hessians):
        out = np.zeros((3, 5))
        given = LeafRows(leaves, starts, rows), 0, 2, g, hessians, LeafParameters(2.0**45, 0.5, 0.1), nodes
        leaf_kernels.set_newton_values(*given, out)
        return out[[0, 2]][:, leaves]

    np.testing.assert_array_equal(values(rows, h), values(reverse, h))
    sums = np.array([[v[a:b].sum(dtype=float) for a, b in ((0, 300), (300, 900))] for v in (g, h)])
    np.testing.assert_allclose(values(rows, h), [-0.1 * sums[0] / (sums[1] + 0.5), sums[1]], rtol=1e-12)
    np.testing.assert_allclose(values(rows, h[:0]), [-0.1 * sums[0] / np.array([300.5, 600.5]), [300, 600]], rtol=1e-12)
    nodes["lower"][4] = nodes["upper"][4] = 2.0
    assert values(rows, h)[0, 0] == pytest.approx(0.2)
