"""Rows scored by evaluating every node reach the same leaves as by traversal."""

from __future__ import annotations

import numpy as np
import pytest

from summula.ensemble import HistGradientBoostingClassifier
from summula.tree.prediction.predictor_kernels import add_scores
from summula.tree.prediction.scoring_kernels import Questions


def model(leaves, classes, n=3_000):
    rng = np.random.default_rng(leaves)
    X = rng.normal(size=(n, 5))
    X[:, 4] = rng.integers(0, 30, n)
    X[rng.random(X.shape) < 0.1] = np.nan
    effect = np.nan_to_num(X[:, 0] * X[:, 1]) + np.nan_to_num(X[:, 4] % 4) + rng.normal(size=n)
    y = np.digitize(effect, np.quantile(effect, np.arange(1, classes) / classes))
    fitted = HistGradientBoostingClassifier(
        max_iter=7, max_leaf_nodes=leaves, min_samples_leaf=3, categorical_features=[4], early_stopping=False
    )
    return fitted.fit(X, y), X


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(("leaves", "classes"), [(2, 2), (31, 2), (32, 3), (33, 2), (64, 2), (65, 2), (200, 3)])
def test_scores_equal_those_of_traversal(leaves, classes, kind, order):
    fitted, X = model(leaves, classes)
    nodes, rows = fitted._nodes, np.array(fitted._bins.with_bins(X).astype(kind), order=order)
    width = 1 if classes == 2 else classes
    down, asked = np.zeros((len(X), width)), np.zeros((len(X), width))
    add_scores(rows, nodes, 0, nodes.n_trees, down)
    nodes.add_scores(rows, asked)
    np.testing.assert_array_equal(asked, down)
    inner = Questions.of(nodes, np.dtype(kind))
    assert (inner is None) == (int(np.diff(nodes.roots).max()) > 127)
    for few in (0, 1, 49, 300):
        some = np.zeros((few, width))
        nodes.add_scores(rows[:few], some)
        np.testing.assert_array_equal(some, down[:few])


def test_thresholds_between_singles_send_them_where_doubles_go():
    X = np.repeat(np.float32([1.0, np.nextafter(np.float32(1.0), np.float32(2.0))]), 200)[:, None]
    fitted = HistGradientBoostingClassifier(max_iter=3).fit(X, np.repeat([0, 1], 200))
    np.testing.assert_array_equal(fitted.decision_function(X), fitted.decision_function(X.astype(np.float64)))
    np.testing.assert_array_equal(fitted.predict(X), np.repeat([0, 1], 200))
