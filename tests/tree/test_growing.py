"""Trees are the same on any number of threads, and for any memory allocated at first."""

from __future__ import annotations

import numpy as np
import pytest

from summula.core.engine import threads
from summula.core.engine.random import stream_key
from summula.ensemble.histogram.quantising import quantise
from summula.tree.growing import grower as growing
from summula.tree.growing.leaf_values import NewtonLeaves
from summula.tree.growing.nodes import BinnedRows, TreeParameters
from summula.tree.growing.records import feature_table


def grown(n, parameters, *, flat=False, members=1, monkeypatch, copies=True, first_leaves=64):
    """A tree on features with missing values, categories and one that is monotone."""
    rng = np.random.default_rng(n)
    bins = rng.integers(0, 40, (n, 6)).astype(np.uint8)
    bins[rng.random(bins.shape) < 0.05] = 255
    effect = np.sin(bins[:, 0] / 4.0) + (bins[:, 1] % 3) + 0.02 * bins[:, 2] + rng.normal(size=n)
    g, h = (-effect + effect.mean()).astype(np.float32), rng.random(n).astype(np.float32)
    h = h[:0] if flat else h
    features = feature_table(np.full(6, 40), np.array([0, 1, 0, 0, 0, 0]), np.array([0, 0, 1, 0, 0, 0]))
    monkeypatch.setattr(growing, "_TINY", 0)
    monkeypatch.setattr(growing, "_SMALL", 0)
    monkeypatch.setattr(growing, "_FIRST_LEAVES", first_leaves)
    monkeypatch.setattr(threads, "_cpu_count", lambda: 5)
    grower = growing.Grower(BinnedRows.of(bins, copies=copies), features, parameters, members)
    assert grower.threads == grower._members == members
    tops = (float(np.abs(g).max()), float(h.max()) if len(h) else 0.0)
    tree = None
    for number in range(2):  # the second finds the counters that the first has left
        gradients = quantise(g, h, tops, 700 + number, np.empty(n, np.int64), 1)
        tree = grower.grow(gradients, key=3 + number)
        NewtonLeaves(parameters.l2, parameters.learning_rate).set_values(tree, gradients)
    return tree


def assert_same(one, other):
    for name in ("feature", "bin", "missing_left", "left_child", "value", "gain", "count", "weight", "depth"):
        np.testing.assert_array_equal(getattr(one.tree, name), getattr(other.tree, name), err_msg=name)
    assert one.tree.goes_left.keys() == other.tree.goes_left.keys()
    for node, left in one.tree.goes_left.items():
        np.testing.assert_array_equal(left, other.tree.goes_left[node])
    for name in ("leaves", "starts", "rows"):
        np.testing.assert_array_equal(getattr(one.leaf_rows, name), getattr(other.leaf_rows, name))


CASES = [
    TreeParameters(max_leaves=31),
    TreeParameters(max_leaves=8, max_depth=3, l2=1.0),
    TreeParameters(max_leaves=255, min_rows=1, min_gain=0.5),
    TreeParameters(max_leaves=2),
    TreeParameters(max_leaves=None, min_rows=10),
    TreeParameters(interaction_groups=(frozenset({0, 1}), frozenset({1, 2, 3}), frozenset({4, 5}))),
    TreeParameters(feature_fraction=0.4),
]


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize(("members", "n"), [(2, 40), (2, 50_000), (5, 40), (5, 3_000)])
@pytest.mark.parametrize("parameters", CASES)
def test_a_worker_group_grows_the_tree_of_one_thread(n, parameters, flat, members, monkeypatch):
    one = grown(n, parameters, flat=flat, monkeypatch=monkeypatch)
    assert len(one.tree) >= 3  # a split
    assert_same(one, grown(n, parameters, flat=flat, members=members, monkeypatch=monkeypatch))


@pytest.mark.parametrize("parameters", CASES)
def test_neither_the_order_of_bins_nor_the_memory_at_first_matters(parameters, monkeypatch):
    one = grown(50_000, parameters, monkeypatch=monkeypatch)
    assert_same(one, grown(50_000, parameters, copies=False, first_leaves=2, members=2, monkeypatch=monkeypatch))


def test_a_path_uses_features_of_one_interaction_group(monkeypatch):
    groups = (frozenset({0, 1}), frozenset({1, 2, 3}), frozenset({4, 5}))
    tree = grown(3_000, TreeParameters(interaction_groups=groups), monkeypatch=monkeypatch).tree
    paths = {0: frozenset()}
    for node in range(len(tree)):
        if tree.feature[node] >= 0:
            used = paths[node] | {int(tree.feature[node])}
            paths[int(tree.left_child[node])] = paths[int(tree.left_child[node]) + 1] = used
    assert all(any(used <= group for group in groups) for used in paths.values())
    assert max(map(len, paths.values())) > 1


def test_every_feature_is_drawn_equally_often():
    n = 4_000
    bins = np.random.default_rng(0).integers(0, 50, (n, 10)).astype(np.uint8)
    g = np.random.default_rng(1).normal(size=n).astype(np.float32)
    features = feature_table(np.full(10, 50), np.zeros(10, np.int64), np.zeros(10, np.int64))
    grower = growing.Grower(BinnedRows.of(bins), features, TreeParameters(max_leaves=2, feature_fraction=0.3), 1)
    gradients = quantise(g, g[:0], (float(np.abs(g).max()), 0.0), 7, np.empty(n, np.int64), 1)
    used = [int(grower.grow(gradients, stream_key(0, k)).tree.feature[0]) for k in range(300)]
    order = np.argsort(np.bincount(used, minlength=10))[::-1]
    # The best of three drawn from ten: the best of all 3 times of 10, the next 7/30, then 7/40 ...
    assert np.bincount(used, minlength=10)[order[0]] == pytest.approx(90, abs=30)
    assert len(set(used)) >= 6


def test_where_every_leaf_is_split_the_order_does_not_matter(monkeypatch):
    some = grown(3_000, TreeParameters(max_leaves=None), members=2, monkeypatch=monkeypatch)
    many = grown(3_000, TreeParameters(max_leaves=900), members=2, monkeypatch=monkeypatch)
    assert len(some.tree) == len(many.tree)
    np.testing.assert_array_equal(np.sort(some.tree.value), np.sort(many.tree.value))
    np.testing.assert_array_equal(some.leaf_rows.starts, many.leaf_rows.starts)


def test_small_trees_are_the_same_by_a_persistent_group_and_by_one_thread(monkeypatch):
    rng, n = np.random.default_rng(3), 3_000
    bins, features = (
        rng.integers(0, 40, (n, 6)).astype(np.uint8),
        feature_table(np.full(6, 40), *np.zeros((2, 6), np.int64)),
    )
    g, h = rng.normal(size=n).astype(np.float32), rng.random(n).astype(np.float32)
    tops, trees = (float(np.abs(g).max()), float(h.max())), []
    monkeypatch.setattr(growing, "_TINY", 0)
    monkeypatch.setattr(threads, "_cpu_count", lambda: 3)
    for members in (1, 3):
        grower, packed = growing.Grower(BinnedRows.of(bins), features, TreeParameters(), members), np.empty(n, np.int64)
        assert (grower.threads, grower._members) == (1, members)
        trees.append([grower.grow(quantise(g, h, tops, 700 + k, packed, 1)).tree for k in range(22)])
        assert set(grower._worker_groups) == {1, members}
    for one, other in zip(*trees, strict=True):
        np.testing.assert_array_equal(one.feature, other.feature)
        np.testing.assert_array_equal(one.value, other.value)


@pytest.mark.parametrize("group_is_faster", [False, True])
def test_the_faster_method_is_chosen_and_measured_again(group_is_faster):
    timer, ways = growing._GroupTimer(always=False), []
    for _ in range(80):
        ways.append(timer.uses_group())
        timer.record(1.0 if ways[-1] == group_is_faster else 2.0)
    trial = [True, True, False, False]
    assert ways == trial + [group_is_faster] * 12 + trial + [group_is_faster] * 44 + trial + [group_is_faster] * 12
    always = growing._GroupTimer(always=True)
    for _ in range(80):
        assert always.uses_group()
        always.record(1.0)


def test_a_cancelled_grower_stops_at_the_next_node(monkeypatch):
    rng, n = np.random.default_rng(3), 3_000
    bins, features = (
        rng.integers(0, 40, (n, 6)).astype(np.uint8),
        feature_table(np.full(6, 40), *np.zeros((2, 6), np.int64)),
    )
    g = rng.normal(size=n).astype(np.float32)
    gradients = quantise(g, g[:0], (float(np.abs(g).max()), 0.0), 7, np.empty(n, np.int64), 1)
    monkeypatch.setattr(growing, "_LONG", 0)
    grower = growing.Grower(BinnedRows.of(bins), features, TreeParameters(), 1)
    assert grower.is_long
    assert len(grower.grow(gradients).tree) == 61
    grower.cancel()
    with pytest.raises(RuntimeError, match="cancelled"):
        grower.grow(gradients)
    assert grower._context.state["n_nodes"] == 1


def test_a_gain_within_rounding_is_zero():
    n = 2_000
    bins = np.random.default_rng(0).integers(0, 200, (n, 4)).astype(np.uint8)
    g, h = np.full(n, -0.3, np.float32), np.full(n, 0.21, np.float32)
    gradients = quantise(g, h, (0.3, 0.21), 7, np.empty(n, np.int64), 1)
    features = feature_table(np.full(4, 200), np.zeros(4, np.int64), np.zeros(4, np.int64))
    assert len(growing.Grower(BinnedRows.of(bins), features, TreeParameters(), 1).grow(gradients).tree) == 1
