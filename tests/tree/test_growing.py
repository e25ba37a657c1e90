"""Trees grown in one call are those grown node by node, on any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

from summula.ensemble.quantising import quantised
from summula.tree import growing
from summula.tree.nodes import Bins, Rules
from summula.tree.split_kernels import Columns


def grown(n, rules, *, flat, n_jobs, monkeypatch, small):
    """A tree on columns with missing values, categories and one that is monotone."""
    rng = np.random.default_rng(n)
    bins = rng.integers(0, 40, (n, 6)).astype(np.uint8)
    bins[rng.random(bins.shape) < 0.05] = 255
    effect = np.sin(bins[:, 0] / 4.0) + (bins[:, 1] % 3) + 0.02 * bins[:, 2] + rng.normal(size=n)
    g, h = (-effect + effect.mean()).astype(np.float32), rng.random(n).astype(np.float32)
    h = h[:0] if flat else h
    columns = Columns(np.full(6, 40), np.array([0, 1, 0, 0, 0, 0]), np.array([0, 0, 1, 0, 0, 0]))
    monkeypatch.setattr(growing, "_SMALL", small)
    grower = growing.Grower(Bins.of(bins), columns, rules, n_jobs)
    tops = (float(np.abs(g).max()), float(h.max()) if len(h) else 0.0)
    tree = None
    for number in range(2):  # the second finds the space that the first has left
        tree = grower.grow(quantised(g, h, tops, (7, number), np.empty(n, np.int64), 1))
    return tree


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("n", [40, 3_000, 50_000])
@pytest.mark.parametrize(
    "rules",
    [
        Rules(max_leaves=31),
        Rules(max_leaves=8, max_depth=3, l2=1.0),
        Rules(max_leaves=255, min_rows=1, min_gain=0.5),
        Rules(max_leaves=2),
    ],
)
def test_a_tree_in_one_call_is_the_tree_node_by_node(n, rules, flat, monkeypatch):
    one = grown(n, rules, flat=flat, n_jobs=1, monkeypatch=monkeypatch, small=10**9)
    other = grown(n, rules, flat=flat, n_jobs=2, monkeypatch=monkeypatch, small=0)
    assert len(one.tree) > 1 or n == 40
    for name in ("column", "bin", "missing_left", "child", "value", "gain", "count", "weight", "depth"):
        np.testing.assert_array_equal(getattr(one.tree, name), getattr(other.tree, name), err_msg=name)
    assert one.tree.lefts.keys() == other.tree.lefts.keys()
    np.testing.assert_array_equal(one.starts, other.starts)
    for a, b in zip(one.starts[:-1], one.starts[1:], strict=True):
        np.testing.assert_array_equal(np.sort(one.rows[a:b]), np.sort(other.rows[a:b]))


def test_where_every_leaf_is_split_the_order_does_not_matter(monkeypatch):
    some = grown(3_000, Rules(max_leaves=None), flat=False, n_jobs=2, monkeypatch=monkeypatch, small=0)
    many = grown(3_000, Rules(max_leaves=900), flat=False, n_jobs=2, monkeypatch=monkeypatch, small=0)
    assert len(some.tree) == len(many.tree)
    np.testing.assert_array_equal(np.sort(some.tree.value), np.sort(many.tree.value))
    np.testing.assert_array_equal(some.starts, many.starts)


def test_a_gain_that_is_rounding_is_none(monkeypatch):
    n = 2_000
    bins = np.random.default_rng(0).integers(0, 200, (n, 4)).astype(np.uint8)
    g, h = np.full(n, -0.3, np.float32), np.full(n, 0.21, np.float32)
    slopes = quantised(g, h, (0.3, 0.21), (0, 0), np.empty(n, np.int64), 1)
    columns = Columns(np.full(4, 200), np.zeros(4, np.int64), np.zeros(4, np.int64))
    for small in (0, 10**9):
        monkeypatch.setattr(growing, "_SMALL", small)
        assert len(growing.Grower(Bins.of(bins), columns, Rules(), 1).grow(slopes).tree) == 1
