"""Bin edges: between few values, at quantiles of many, for arbitrary data."""

from __future__ import annotations

import numpy as np
import pytest

from summula.tree.columns.binning import column_edges, counted, learn_bins


def test_few_values_have_a_bin_each():
    values = np.array([3.0, 1.0, np.nan, 2.0, 3.0])
    np.testing.assert_array_equal(column_edges(values, None, 255), [1.5, 2.5])
    assert len(column_edges(np.full(5, 7.0), None, 255)) == 0
    assert len(column_edges(np.full(5, np.nan), None, 255)) == 0


def test_many_values_share_bins_evenly():
    values = np.random.default_rng(0).permutation(10_000).astype(float)
    edges = column_edges(values, None, 10)
    np.testing.assert_array_equal(np.bincount(np.searchsorted(edges, values)), 1000)


def test_whole_weights_are_repetitions():
    rng = np.random.default_rng(1)
    values, weight = rng.normal(size=900), rng.integers(0, 4, 900)
    repeated = column_edges(np.repeat(values, weight), None, 32)
    np.testing.assert_allclose(column_edges(values, weight.astype(float), 32), repeated, rtol=1e-14)


def test_infinite_values_are_the_outermost():
    edges = column_edges(np.array([-np.inf, 0.0, 1.0, np.inf]), None, 255)
    assert np.isfinite(edges).all()
    np.testing.assert_array_equal(np.searchsorted(edges, [-np.inf, 0.0, 1.0, np.inf]), [0, 1, 2, 3])


def test_adjacent_floats_are_distinguished():
    low = 1.0
    high = np.nextafter(low, 2.0)
    edges = column_edges(np.array([low, high]), None, 255)
    np.testing.assert_array_equal(np.searchsorted(edges, [low, high]), [0, 1])


def test_rare_levels_share_a_bin():
    values = np.concatenate([np.repeat(np.arange(5.0), 10), np.arange(5.0, 12.0)])
    bins = learn_bins(values[:, None], None, {0: counted(values)}, 6)
    out = np.empty((len(values), 1), np.uint8)
    bins.write(values[:, None], out)
    np.testing.assert_array_equal(np.unique(out[:50]), np.arange(5))
    np.testing.assert_array_equal(np.unique(out[50:]), [5])
    assert bins.n_bins[0] == 6


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_a_value_is_below_its_edge(kind, order):
    rng = np.random.default_rng(2)
    X = np.asarray(rng.normal(size=(3_000, 3)), kind, order=order)
    X[::5, 1] = np.nan
    bins = learn_bins(X, None, {}, 40)
    out = np.empty(X.shape, np.uint8)
    bins.write(X, out)
    assert (out[::5, 1] == 255).all()
    for j in range(3):
        there = out[:, j] != 255
        edges, b = bins.edges[j], out[there, j].astype(int)
        assert (X[there, j] <= edges[b]).all()
        assert ((b == 0) | (X[there, j] > edges[np.maximum(b - 1, 0)])).all()
