"""Shapley values against all subsets of columns, and their sum; partial dependence; importances by name."""

from __future__ import annotations

from itertools import combinations
from math import factorial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import is_classifier

from summula.core.errors import DataError
from summula.ensemble import (
    AdaBoostClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from summula.tree import DecisionTreeClassifier, DecisionTreeRegressor


def rows(n=300):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    X[::6, 1] = np.nan
    X[:, 3] = rng.integers(0, 5, n)
    return X, X[:, 0] * np.nan_to_num(X[:, 1]) + X[:, 2] + (X[:, 3] % 2)


def expected(x, known, nodes, node):
    """The mean of a tree if only some columns of a row are known."""
    j = nodes.column[node]
    if j < 0:
        return nodes.value[node]
    child = nodes.child[node]
    if j in known:
        if np.isnan(x[j]):
            left = nodes.missing_left[node]
        elif nodes.category[node] >= 0:
            left = nodes.lefts[nodes.category[node], int(x[j])]
        else:
            left = x[j] <= nodes.threshold[node]
        return expected(x, known, nodes, child + (0 if left else 1))
    sides = [expected(x, known, nodes, child + side) * nodes.rows[child + side] for side in (0, 1)]
    return sum(sides) / nodes.rows[node]


def shapley(x, model, d, roots=None):
    nodes = model._nodes
    roots = nodes.roots[:-1] if roots is None else roots
    phi = np.zeros(d)
    for j in range(d):
        others = [k for k in range(d) if k != j]
        for size in range(d):
            weight = factorial(size) * factorial(d - 1 - size) / factorial(d)
            for known in combinations(others, size):
                for root in roots:
                    phi[j] += weight * (expected(x, {*known, j}, nodes, root) - expected(x, known, nodes, root))
    return phi


def test_values_are_those_of_all_subsets():
    X, y = rows()
    options = {"max_iter": 3, "max_leaf_nodes": 8, "min_samples_leaf": 5, "categorical_features": [3]}
    model = HistGradientBoostingRegressor(**options).fit(X, y)
    found = model.explain(X[:8])
    binned = model._bins.with_bins(X[:8])
    for k in range(8):
        np.testing.assert_allclose(found.values[k], shapley(binned[k], model, 4), rtol=1e-9, atol=1e-12)


def test_values_of_classes_categories_and_missing_values_are_those_of_all_subsets():
    X, y = rows()
    X[::5, 3] = np.nan
    X[:, 3] *= 10.0
    options = {"max_iter": 2, "max_leaf_nodes": 6, "min_samples_leaf": 5, "categorical_features": [3]}
    model = HistGradientBoostingClassifier(**options).fit(X, np.digitize(y, [-1.0, 1.0]))
    given = X[:6].copy()
    given[1, 3], given[2, 0], given[3] = 77.0, np.nan, np.nan  # an unknown level, and a row of missing values
    assert (model._nodes.category >= 0).any()
    found, binned = model.explain(given), model._bins.with_bins(given)
    for k in range(3):
        trees = model._nodes.roots[:-1][k::3]
        for row in range(6):
            expected_values = shapley(binned[row], model, 4, trees)
            np.testing.assert_allclose(found.values[row, :, k], expected_values, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.base_values + found.values.sum(axis=1), model.decision_function(given), atol=1e-9)


def test_they_add_up_to_the_score():
    X, y = rows()
    model = HistGradientBoostingRegressor(max_iter=30).fit(X, y)
    found = model.explain(X)
    np.testing.assert_allclose(found.base_values + found.values.sum(axis=1), model.predict(X), rtol=1e-9, atol=1e-9)
    assert found.base_values[0] == pytest.approx(model.predict(X).mean(), abs=1e-9)
    several = HistGradientBoostingClassifier(max_iter=5).fit(X, np.digitize(y, [-1.0, 1.0]))
    found = several.explain(X)
    assert found.values.shape == (300, 4, 3)
    np.testing.assert_allclose(found.base_values + found.values.sum(axis=1), several.decision_function(X), atol=1e-9)


def test_partial_dependence_follows_a_line():
    X, y = rows()
    model = HistGradientBoostingRegressor().fit(X, y)
    along = model.partial_dependence(X, 2, points=9)
    assert along.individual.shape == (300, 9)
    assert np.corrcoef(along.grid, along.average)[0, 1] > 0.9
    from sklearn.inspection import partial_dependence

    theirs = partial_dependence(model, X, [2], custom_values={2: along.grid}, method="brute")
    np.testing.assert_allclose(theirs["average"][0], along.average)
    with pytest.raises(DataError, match="no column 'z'"):
        model.partial_dependence(X, "z")


def test_pictures_are_drawn():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    X, y = rows()
    model = HistGradientBoostingRegressor(max_iter=5).fit(X, y)
    found = model.explain(X[:20])
    drawn = [found.plot(), found.plot(row=3), model.partial_dependence(X, 0).plot()]
    assert len(drawn[0].patches) == 4
    with pytest.raises(DataError, match="row=99 is out of range"):
        found.plot(row=99)
    pyplot.close("all")


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeRegressor(max_depth=4),
        DecisionTreeClassifier(max_depth=4),
        RandomForestRegressor(n_estimators=5, random_state=0),
        RandomForestClassifier(n_estimators=5, random_state=0),
        GradientBoostingRegressor(n_estimators=5, random_state=0),
        AdaBoostClassifier(n_estimators=5, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_importances_by_name_are_the_shares_of_the_columns(model: Any) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 3))
    y = X[:, 2] + 0.3 * X[:, 0] > 0
    model.fit(pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]}), y if is_classifier(model) else y.astype(float))
    found = model.importances()
    assert next(iter(found)) == "c"
    assert list(found.values()) == sorted(found.values(), reverse=True)
    assert [found[name] for name in "abc"] == model.feature_importances_.tolist()
    model.fit(X, y if is_classifier(model) else y.astype(float))
    assert sorted(model.importances()) == ["x0", "x1", "x2"]
