"""Boosted trees against hand computations, repeated rows, and other libraries on real tables and extreme targets."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import ensemble as rival
from sklearn.metrics import mean_absolute_error, mean_squared_error

from summula.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from tests.data import rival_cases

# ----------------------------------------------------------------------------------------------- first trees by hand


@pytest.mark.parametrize(("low", "left"), [(False, 0), (True, 1)])
def test_missing_values_go_to_the_side_that_gains_most(low, left):
    X = np.array([[1.0], [1.0], [2.0], [2.0], [np.nan], [np.nan]])
    y = np.array([0.0, 0.0, 4.0, 4.0, *([0.0, 0.0] if low else [4.0, 4.0])])
    model = HistGradientBoostingRegressor(max_iter=1, max_leaf_nodes=2, min_samples_leaf=1, learning_rate=1.0)
    model.fit(X, y)
    # Two rows against four, of which the mean is 8/3 or 4/3: G = 16/3 on both sides, and G^2/2 + G^2/4 = 64/3.
    assert model._nodes.gain[0] == pytest.approx(64 / 3, rel=1e-6)
    assert model._nodes.missing_left[0] == left
    np.testing.assert_allclose(model.predict(X), y, atol=1e-6)


def test_categories_are_split_into_the_best_two_sets():
    X = np.repeat([0.0, 1.0, 2.0], 12)[:, None]
    y = np.where(X[:, 0] == 1.0, 5.0, 1.0)
    model = HistGradientBoostingRegressor(
        max_iter=1, max_leaf_nodes=2, min_samples_leaf=1, learning_rate=1.0, categorical_features=[0]
    ).fit(X, y)
    # The mean is 7/3: G = 12 (7/3 - 5) = -32 for the level in the middle, 32 for the others: 32^2/12 + 32^2/24 = 128.
    assert model._nodes.gain[0] == pytest.approx(128.0, rel=1e-6)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-6)


def test_missing_is_a_level_among_categories():
    X = np.repeat([0.0, 1.0, np.nan], 12)[:, None]
    y = np.where(np.isnan(X[:, 0]), 5.0, 1.0)
    model = HistGradientBoostingRegressor(max_iter=1, max_leaf_nodes=2, learning_rate=1.0, categorical_features=[0])
    model.set_params(min_samples_leaf=1).fit(X, y)
    assert model._nodes.gain[0] == pytest.approx(128.0, rel=1e-6)
    np.testing.assert_allclose(model.predict([[0.0], [1.0], [np.nan], [7.0]]), [1.0, 1.0, 5.0, 5.0], atol=1e-6)


def test_three_classes_take_a_newton_step_each():
    X, y = np.repeat([0.0, 1.0, 2.0], 4)[:, None], np.repeat(["a", "b", "c"], 4)
    model = HistGradientBoostingClassifier(max_iter=1, max_leaf_nodes=3, min_samples_leaf=1).fit(X, y)
    # All shares are 1/3, so g = 1/3 - [y = k], h = 2/9; rows of the class get (2/3) / (2/9) = 3, others -3/2; times 0.1.
    expected = np.where(np.eye(3) == 1.0, 0.3, -0.15)
    np.testing.assert_allclose(model.decision_function([[0.0], [1.0], [2.0]]), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        # The mean is 2. Poisson: g = 2 - y, h = 2. Gamma: g = 1 - y/2, h = y/2.
        ("poisson", [2 * np.exp(-0.5), 2 * np.exp(0.5)]),
        ("gamma", [2 * np.exp(-1.0), 2 * np.exp(1 / 3)]),
        # The median of all and then of each side.
        ("absolute_error", [1.0, 3.0]),
    ],
)
def test_other_losses_take_the_steps_of_their_table(loss, expected):
    X = np.repeat([0.0, 1.0], 3)[:, None]
    model = HistGradientBoostingRegressor(loss, max_iter=1, min_samples_leaf=1, learning_rate=1.0)
    model.fit(X, np.repeat([1.0, 3.0], 3))
    np.testing.assert_allclose(model.predict([[0.0], [1.0]]), expected, rtol=1e-6)


def test_the_second_tree_is_grown_for_what_the_first_left():
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0.0, 0.0, 8.0, 16.0])
    options = {"max_leaf_nodes": 2, "min_samples_leaf": 1, "learning_rate": 0.5}
    model = HistGradientBoostingRegressor(max_iter=2, **options).fit(X, y)
    # Mean 6. First split after 1: means of what is left -6 and 6, halved: left are -3, -3, -1, 7. Second split after 2:
    # means -7/3 and 7, halved.
    np.testing.assert_allclose(model.predict(X), [3 - 7 / 6, 3 - 7 / 6, 9 - 7 / 6, 9 + 7 / 2], rtol=1e-6)


# ------------------------------------------------------------------------------------------------------- repetitions


@pytest.mark.parametrize("classes", [0, 2, 3])
@pytest.mark.parametrize("columns", ["few values", "many values", "categories"])
def test_whole_weights_are_repetitions(classes, columns):
    rng = np.random.default_rng(5)  # (no two gains are within their rounding)
    levels = {"few values": 12, "categories": 3}.get(columns)
    X = rng.normal(size=(500, 3)) if levels is None else rng.integers(0, levels, (500, 3)).astype(float)
    X[::9, 1] = np.nan
    f = X[:, 0] * 0.3 - np.nan_to_num(X[:, 1]) * 0.2 + rng.normal(size=500)
    weight = rng.integers(0, 4, 500)
    kind = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    y = np.digitize(f, np.quantile(f, np.arange(1, classes) / classes)) if classes else f
    # Large leaves: the limits on row counts (at least one, ten per category) are not active.
    options = {"max_iter": 5, "max_leaf_nodes": 5, "min_samples_leaf": 1, "random_state": 0}
    options["categorical_features"] = [0] if columns == "categories" else None
    weighted = kind(**options).fit(X, y, sample_weight=weight)
    repeated = kind(**options).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_array_equal(weighted._bins.edges, repeated._bins.edges)
    out = [m.decision_function(X) if classes else m.predict(X) for m in (weighted, repeated)]
    np.testing.assert_allclose(*out, rtol=1e-4, atol=1e-4)


def test_rows_of_no_weight_are_not_there():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(400, 3))
    y, wild = X[:, 0] + 0.1 * rng.normal(size=400), np.arange(400) % 5 == 0
    X[wild] = 1e6 * rng.normal(size=(80, 3))
    options = {"max_iter": 10, "max_leaf_nodes": 6, "min_samples_leaf": 1}
    there = HistGradientBoostingRegressor(**options).fit(X, np.where(wild, 1e3, y), sample_weight=1.0 - wild)
    absent = HistGradientBoostingRegressor(**options).fit(X[~wild], y[~wild])
    np.testing.assert_allclose(there.predict(X[~wild]), absent.predict(X[~wild]), rtol=1e-4, atol=1e-4)


# ------------------------------------------------------------------------------------------------------- heavy tails


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
def test_cauchy_targets_are_learnt_as_well_as_by_scikit_learn(loss):
    ratios = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(1_500, 4))
        f = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2])
        y = f + 0.3 * rng.standard_cauchy(1_500)
        options = {"loss": loss, "max_iter": 25, "max_leaf_nodes": 15, "random_state": 0}
        score = mean_squared_error if loss == "squared_error" else mean_absolute_error
        ours = HistGradientBoostingRegressor(**options).fit(X, y)
        theirs = rival.HistGradientBoostingRegressor(**options).fit(X, y)
        assert score(y, ours.predict(X)) < 1.03 * score(y, theirs.predict(X))
        ratios.append(np.median(np.abs(ours.predict(X) - f)) / np.median(np.abs(theirs.predict(X) - f)))
    # From one set of rows to the next the ratio moves by more than this.
    assert np.mean(ratios) < 1.05


# ------------------------------------------------------------------------------------------------------- real tables


@pytest.mark.parametrize("name", rival_cases.TABLES)
def test_real_tables_are_learnt_as_well_as_by_lightgbm(name):
    X, y, loss = rival_cases.table(name)
    other = rival_cases.answer("lightgbm", name, *rival_cases.codes(X, y))
    options = {"max_iter": 30, "max_leaf_nodes": 8, "random_state": 0}
    if loss == "log_loss":
        ours = HistGradientBoostingClassifier(**options)
    else:
        ours = HistGradientBoostingRegressor(loss, **options)
    mine = np.mean(list(rival_cases.losses_of_folds(ours, X, y, loss)))
    # Folds differ by far more; a twentieth is what another seed, or the order of equal gains, may make.
    assert mine < 1.05 * other + 0.005
