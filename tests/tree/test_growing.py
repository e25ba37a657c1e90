"""Trees are the same on any number of threads, and whatever room there is at first."""

from __future__ import annotations

import numpy as np
import pytest

from summula.core.engine import threads
from summula.core.engine.random import stream_key
from summula.ensemble.quantising import quantised
from summula.tree import growing
from summula.tree.nodes import Bins, Rules
from summula.tree.split_kernels import Columns


def grown(n, rules, *, flat=False, members=1, monkeypatch, both=True, few=64):
    """A tree on columns with missing values, categories and one that is monotone."""
    rng = np.random.default_rng(n)
    bins = rng.integers(0, 40, (n, 6)).astype(np.uint8)
    bins[rng.random(bins.shape) < 0.05] = 255
    effect = np.sin(bins[:, 0] / 4.0) + (bins[:, 1] % 3) + 0.02 * bins[:, 2] + rng.normal(size=n)
    g, h = (-effect + effect.mean()).astype(np.float32), rng.random(n).astype(np.float32)
    h = h[:0] if flat else h
    columns = Columns(np.full(6, 40), np.array([0, 1, 0, 0, 0, 0]), np.array([0, 0, 1, 0, 0, 0]))
    monkeypatch.setattr(growing, "_TINY", 0)
    monkeypatch.setattr(growing, "_SMALL", 0)
    monkeypatch.setattr(growing, "_FEW", few)
    monkeypatch.setattr(threads, "_cpu_count", lambda: 5)
    grower = growing.Grower(Bins.of(bins, both=both), columns, rules, members)
    assert grower.threads == grower._members == members
    tops = (float(np.abs(g).max()), float(h.max()) if len(h) else 0.0)
    tree = None
    for number in range(2):  # the second finds the space that the first has left
        tree = grower.grow(quantised(g, h, tops, 700 + number, np.empty(n, np.int64), 1), key=3 + number)
    return tree


def assert_same(one, other):
    for name in ("column", "bin", "missing_left", "child", "value", "gain", "count", "weight", "depth"):
        np.testing.assert_array_equal(getattr(one.tree, name), getattr(other.tree, name), err_msg=name)
    assert one.tree.lefts.keys() == other.tree.lefts.keys()
    for node, left in one.tree.lefts.items():
        np.testing.assert_array_equal(left, other.tree.lefts[node])
    np.testing.assert_array_equal(one.starts, other.starts)
    np.testing.assert_array_equal(one.rows, other.rows)


CASES = [
    Rules(max_leaves=31),
    Rules(max_leaves=8, max_depth=3, l2=1.0),
    Rules(max_leaves=255, min_rows=1, min_gain=0.5),
    Rules(max_leaves=2),
    Rules(max_leaves=None, min_rows=10),
    Rules(groups=(frozenset({0, 1}), frozenset({1, 2, 3}), frozenset({4, 5}))),
    Rules(share=0.4),
]


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("n", [40, 3_000, 50_000])
@pytest.mark.parametrize("rules", CASES)
@pytest.mark.parametrize("members", [2, 5])
def test_a_team_grows_the_tree_of_one_thread(n, rules, flat, members, monkeypatch):
    one = grown(n, rules, flat=flat, monkeypatch=monkeypatch)
    assert len(one.tree) > 1 or n == 40
    assert_same(one, grown(n, rules, flat=flat, members=members, monkeypatch=monkeypatch))


@pytest.mark.parametrize("rules", CASES)
def test_neither_the_order_of_bins_nor_the_room_at_first_matters(rules, monkeypatch):
    one = grown(50_000, rules, monkeypatch=monkeypatch)
    assert_same(one, grown(50_000, rules, both=False, few=2, members=2, monkeypatch=monkeypatch))


def test_on_a_path_only_columns_of_a_group_meet(monkeypatch):
    groups = (frozenset({0, 1}), frozenset({1, 2, 3}), frozenset({4, 5}))
    tree = grown(3_000, Rules(groups=groups), monkeypatch=monkeypatch).tree
    paths = {0: frozenset()}
    for node in range(len(tree)):
        if tree.column[node] >= 0:
            used = paths[node] | {int(tree.column[node])}
            paths[int(tree.child[node])] = paths[int(tree.child[node]) + 1] = used
    assert all(any(used <= group for group in groups) for used in paths.values())
    assert max(map(len, paths.values())) > 1


def test_of_a_share_of_columns_each_is_drawn_as_often(monkeypatch):
    n = 4_000
    bins = np.random.default_rng(0).integers(0, 50, (n, 10)).astype(np.uint8)
    g = np.random.default_rng(1).normal(size=n).astype(np.float32)
    columns = Columns(np.full(10, 50), np.zeros(10, np.int64), np.zeros(10, np.int64))
    grower = growing.Grower(Bins.of(bins), columns, Rules(max_leaves=2, share=0.3), 1)
    slopes = quantised(g, g[:0], (float(np.abs(g).max()), 0.0), 7, np.empty(n, np.int64), 1)
    used = [int(grower.grow(slopes, stream_key(0, k)).tree.column[0]) for k in range(300)]
    order = np.argsort(np.bincount(used, minlength=10))[::-1]
    # The best of three drawn from ten: the best of all 3 times of 10, the next 7/30, then 7/40 ...
    assert np.bincount(used, minlength=10)[order[0]] == pytest.approx(90, abs=30)
    assert len(set(used)) >= 6


def test_where_every_leaf_is_split_the_order_does_not_matter(monkeypatch):
    some = grown(3_000, Rules(max_leaves=None), members=2, monkeypatch=monkeypatch)
    many = grown(3_000, Rules(max_leaves=900), members=2, monkeypatch=monkeypatch)
    assert len(some.tree) == len(many.tree)
    np.testing.assert_array_equal(np.sort(some.tree.value), np.sort(many.tree.value))
    np.testing.assert_array_equal(some.starts, many.starts)


def test_small_trees_are_the_same_by_a_team_that_stays_and_by_one(monkeypatch):
    rng, n = np.random.default_rng(3), 3_000
    bins, columns = rng.integers(0, 40, (n, 6)).astype(np.uint8), Columns(np.full(6, 40), *np.zeros((2, 6), np.int64))
    g, h = rng.normal(size=n).astype(np.float32), rng.random(n).astype(np.float32)
    tops, trees = (float(np.abs(g).max()), float(h.max())), []
    monkeypatch.setattr(growing, "_TINY", 0)
    monkeypatch.setattr(threads, "_cpu_count", lambda: 3)
    for members in (1, 3):
        grower, packed = growing.Grower(Bins.of(bins), columns, Rules(), members), np.empty(n, np.int64)
        assert (grower.threads, grower._members) == (1, members)
        trees.append([grower.grow(quantised(g, h, tops, 700 + k, packed, 1)).tree for k in range(22)])
        assert set(grower._teams) == {1, members}
    for one, other in zip(*trees, strict=True):
        np.testing.assert_array_equal(one.column, other.column)
        np.testing.assert_array_equal(one.value, other.value)


@pytest.mark.parametrize("team_wins", [False, True])
def test_the_faster_way_is_taken_and_tried_again(team_wins):
    pace, ways = growing._Pace(always=False), []
    for _ in range(80):
        ways.append(pace.wants_team())
        pace.note(1.0 if ways[-1] == team_wins else 2.0)
    trial = [True, True, False, False]
    assert ways == trial + [team_wins] * 12 + trial + [team_wins] * 44 + trial + [team_wins] * 12
    always = growing._Pace(always=True)
    for _ in range(80):
        assert always.wants_team()
        always.note(1.0)


def test_a_cancelled_grower_stops_at_the_next_node(monkeypatch):
    rng, n = np.random.default_rng(3), 3_000
    bins, columns = rng.integers(0, 40, (n, 6)).astype(np.uint8), Columns(np.full(6, 40), *np.zeros((2, 6), np.int64))
    g = rng.normal(size=n).astype(np.float32)
    slopes = quantised(g, g[:0], (float(np.abs(g).max()), 0.0), 7, np.empty(n, np.int64), 1)
    monkeypatch.setattr(growing, "_LONG", 0)
    grower = growing.Grower(Bins.of(bins), columns, Rules(), 1)
    assert grower.is_long
    assert len(grower.grow(slopes).tree) == 61
    grower.cancel()
    with pytest.raises(RuntimeError, match="cancelled"):
        grower.grow(slopes)
    assert grower._room.state[growing.COUNT] == 1


def test_a_gain_that_is_rounding_is_none():
    n = 2_000
    bins = np.random.default_rng(0).integers(0, 200, (n, 4)).astype(np.uint8)
    g, h = np.full(n, -0.3, np.float32), np.full(n, 0.21, np.float32)
    slopes = quantised(g, h, (0.3, 0.21), 7, np.empty(n, np.int64), 1)
    columns = Columns(np.full(4, 200), np.zeros(4, np.int64), np.zeros(4, np.int64))
    assert len(growing.Grower(Bins.of(bins), columns, Rules(), 1).grow(slopes).tree) == 1
