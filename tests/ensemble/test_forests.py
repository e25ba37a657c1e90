"""Forests: against exact trees, a plain reference, held-out rows and scikit-learn; sizes, threads, intervals."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import ensemble as theirs

import summula
from summula.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from summula.tree import DecisionTreeClassifier, DecisionTreeRegressor

FORESTS = (RandomForestClassifier, RandomForestRegressor, ExtraTreesClassifier, ExtraTreesRegressor)
ONE: dict[str, Any] = {"n_estimators": 1, "bootstrap": False, "max_features": None}


def _data(n: int = 400, d: int = 5, seed: int = 0, values: int = 0) -> tuple[Any, Any, Any]:
    """Rows, numbers and three classes; with `values`, the maximum number of different values per column."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    if values:
        X = np.round(X * values / 8)
    z = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=n)
    return X, z, np.digitize(z, [-0.5, 0.7])


def _target(cls: Any, z: Any, y: Any) -> Any:
    return y if "Classifier" in cls.__name__ else z


def _shape(tree: Any) -> list[Any]:
    """Return the splits and row counts of a tree, from the root, left before right."""
    nodes, found, below = tree._nodes, [], [0]
    while below:
        node = below.pop()
        found.append((int(nodes.column[node]), int(nodes.rows[node]), *tree._values[node].round(9)))
        if nodes.column[node] >= 0:
            below += [int(nodes.child[node]) + 1, int(nodes.child[node])]
    return found


# ------------------------------------------------------------------------------------------------------------ trees


@pytest.mark.parametrize(
    "criterion",
    [
        *("gini", "gini of two", "entropy", "entropy of two", "squared_error", "poisson"),
        *("gini, missing", "gini of two, missing", "squared_error, missing"),  # (entropies tie but for rounding)
    ],
)
def test_one_tree_without_draws_is_the_exact_tree(criterion: str) -> None:
    """Columns of up to 200 values have a bin for each: the splits are those of the exact tree, node by node."""
    X, z, y = _data(200)
    if criterion.endswith(", missing"):
        criterion = criterion.removesuffix(", missing")
        X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    if criterion.endswith("of two"):
        criterion, y = criterion.split()[0], (z > 0.2).astype(int)
    is_class = criterion in ("gini", "entropy")
    forest = RandomForestClassifier if is_class else RandomForestRegressor
    exact = DecisionTreeClassifier if is_class else DecisionTreeRegressor
    t = y if is_class else z - z.min() + 0.1
    limits: dict[str, Any] = {"criterion": criterion, "min_samples_leaf": 5, "random_state": 0}
    one = forest(**ONE, **limits).fit(X, t)
    tree = exact(**limits).fit(X, t)
    assert _shape(one.estimators_[0]) == _shape(tree)
    np.testing.assert_allclose(one.feature_importances_, tree.feature_importances_, atol=1e-6)
    np.testing.assert_allclose(sorted(one.estimators_[0]._impurity), sorted(tree._impurity), atol=1e-6)


@pytest.mark.parametrize("cls", FORESTS)
@pytest.mark.parametrize("splits", ["bins", "exact"])
def test_predictions_are_the_mean_over_the_trees(cls: Any, splits: str) -> None:
    X, z, y = _data(150)
    X[::9, 1] = np.nan
    model = cls(5, random_state=1, splits=splits, min_samples_leaf=2).fit(X, _target(cls, z, y))
    classes = "Classifier" in cls.__name__
    by_tree = [tree.predict_proba(X) if classes else tree.predict(X) for tree in model.estimators_]
    ours = model.predict_proba(X) if classes else model.predict(X)
    np.testing.assert_allclose(ours, np.mean(by_tree, axis=0), rtol=1e-12, atol=1e-12)
    leaves = np.column_stack([tree.apply(X) for tree in model.estimators_])
    np.testing.assert_array_equal(model.apply(X), leaves)
    paths, starts = model.decision_path(X)
    assert paths.shape == (150, starts[-1])
    assert model.estimator_.get_params() == model.estimators_[0].get_params()
    assert not hasattr(model.estimator_, "n_features_in_")
    np.testing.assert_array_equal(paths[:, : starts[1]].toarray(), model.estimators_[0].decision_path(X).toarray())


def _best_first_split(X: Any, y: Any, weight: Any) -> tuple[int, float]:
    """The column and the Gini score of the best split of all rows, by trying every threshold."""
    best = (-1, -np.inf)
    for j in range(X.shape[1]):
        for t in np.unique(X[:, j])[:-1]:
            left, score = X[:, j] <= t, 0.0
            for side in (left, ~left):
                shares = np.bincount(y[side], weight[side])
                score += (shares**2).sum() / shares.sum()
            if score > best[1] + 1e-9:
                best = (j, score)
    return best


def test_the_root_of_a_bootstrapped_tree_is_the_best_split_of_its_sample() -> None:
    X, _, y = _data(120, values=20)
    model = RandomForestClassifier(6, max_depth=1, max_features=None, random_state=3).fit(X, y)
    for tree, drawn in zip(model.estimators_, model.estimators_samples_, strict=True):
        counts = np.bincount(drawn, minlength=120)
        rows = counts > 0
        column, score = _best_first_split(X[rows], y[rows], counts[rows].astype(float))
        assert tree._nodes.column[0] == column
        parent = (np.bincount(y, counts) ** 2).sum() / 120
        np.testing.assert_allclose(tree._nodes.gain[0], (score - parent) / 120, rtol=1e-6)


def test_weights_without_bootstrap_equal_repetitions() -> None:
    X, z, _ = _data(150, values=20)
    times = np.random.default_rng(2).integers(1, 4, 150)
    weighted = RandomForestRegressor(**ONE, min_weight_fraction_leaf=0.03).fit(X, z, sample_weight=times)
    repeated = RandomForestRegressor(**ONE, min_weight_fraction_leaf=0.03).fit(X.repeat(times, 0), z.repeat(times))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-10)


# ------------------------------------------------------------------------------------------------------ as a whole


@pytest.mark.parametrize("cls", FORESTS)
def test_the_forest_does_not_depend_on_threads(cls: Any) -> None:
    X, z, y = _data(300)
    t = _target(cls, z, y)
    drawn: dict[str, Any] = {"bootstrap": True, "max_samples": 90, "oob_score": True}
    one, two = (cls(30, random_state=5, n_jobs=jobs, **drawn).fit(X, t) for jobs in (1, 2))
    assert one.oob_score_ == two.oob_score_
    for name in ("is_inner", "column", "bin", "flags", "gain", "values", "rows"):
        np.testing.assert_array_equal(getattr(one._trees, name), getattr(two._trees, name))


@pytest.mark.parametrize("cls", FORESTS)
def test_warm_start_gives_the_forest_of_one_fit(cls: Any) -> None:
    X, z, y = _data(200)
    t = _target(cls, z, y)
    whole = cls(6, random_state=0).fit(X, t)
    grown = cls(2, random_state=0, warm_start=True).fit(X, t).set_params(n_estimators=6).fit(X, t)
    np.testing.assert_array_equal(whole.predict(X), grown.predict(X))
    with pytest.raises(summula.ParameterError, match="n_estimators=3"):
        grown.set_params(n_estimators=3).fit(X, t)


@pytest.mark.parametrize("name", ["RandomForest", "ExtraTrees"])
@pytest.mark.parametrize("kind", ["Classifier", "Regressor"])
def test_as_accurate_as_scikit_learn_and_a_quarter_as_large(name: str, kind: str) -> None:
    X, z, y = _data(4_000, 8)
    t = y if kind == "Classifier" else z
    options: dict[str, Any] = {"n_estimators": 40, "min_samples_leaf": 2, "random_state": 0}
    ours = globals()[name + kind](**options).fit(X[:2_000], t[:2_000])
    other = getattr(theirs, name + kind)(**options, n_jobs=1).fit(X[:2_000], t[:2_000])
    assert ours.score(X[2_000:], t[2_000:]) > other.score(X[2_000:], t[2_000:]) - 0.012
    assert len(pickle.dumps(ours)) < len(pickle.dumps(other)) / 4


def test_out_of_bag_error_is_that_of_held_out_rows() -> None:
    X, z, y = _data(6_000)
    for cls, t in ((RandomForestClassifier, y), (RandomForestRegressor, z)):
        model = cls(40, min_samples_leaf=3, oob_score=True, random_state=0).fit(X[:3_000], t[:3_000])
        assert abs(model.oob_score_ - model.score(X[3_000:], t[3_000:])) < 0.03
    np.testing.assert_allclose(model.oob_prediction_[:9], _out_of_bag(model, X, 9), rtol=1e-12)
    by_function = RandomForestRegressor(40, oob_score=lambda a, b: float(np.abs(a - b).max()), random_state=0)
    by_function.fit(X[:300], z[:300])
    assert by_function.oob_score_ == np.abs(z[:300] - by_function.oob_prediction_).max()


def _out_of_bag(model: Any, X: Any, n: int) -> Any:
    seen = [[] for _ in range(n)]  # type: list[list[float]]
    for tree, drawn in zip(model.estimators_, model.estimators_samples_, strict=True):
        for i in np.setdiff1d(np.arange(n), drawn):
            seen[i].append(float(tree.predict(X[i : i + 1])[0]))
    return [np.mean(values) for values in seen]


def test_out_of_bag_importances_do_not_favour_columns_of_many_values() -> None:
    """For a binary target that depends on one binary column, the decrease of impurity is biased (Strobl 2007)."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 2, 600), rng.normal(size=600)])
    y = np.where(rng.random(600) < 0.25, 1 - X[:, 0], X[:, 0])
    model = RandomForestClassifier(60, random_state=0, max_features=1).fit(X, y)
    found = model.oob_importances(X, y)
    assert model.feature_importances_[1] > 0.5
    assert found.importances_mean[0] > 0.1
    assert abs(found.importances_mean[1]) < 0.05
    assert found.importances.shape == (2, 60)
    with pytest.raises(summula.DataError, match="pass the training data"):
        model.oob_importances(X[:50], y[:50])


@pytest.mark.parametrize("cls", [RandomForestClassifier, RandomForestRegressor])
def test_intervals_cover_the_forest_of_many_trees(cls: Any) -> None:
    X, z, y = _data(200)
    t, new = _target(cls, z, y), _data(60, seed=9)[0]
    limit = cls(600, max_depth=3, random_state=99).fit(X, t)
    goal = limit.predict_proba(new) if cls is RandomForestClassifier else limit.predict(new)
    covered = []
    for seed in range(20):
        low, high = cls(25, max_depth=3, random_state=seed).fit(X, t).infinite_forest_interval(new, confidence=0.9)
        covered.append((low <= goal) & (goal <= high))
    # Of 20 forests, with dependent rows: at least the nominal coverage, minus three standard errors of 20 draws.
    assert np.mean(covered) > (0.9 if cls is RandomForestClassifier else 0.9 - 3 * np.sqrt(0.09 / 20) / 2)


# ------------------------------------------------------------------------------------------------------ kinds of data


def test_categories_missing_values_and_sparse_rows() -> None:
    rng = np.random.default_rng(4)
    town = rng.choice(["Bonn", "Köln", "Ulm", "Jena"], 300)
    size = np.where(rng.random(300) < 0.2, np.nan, rng.normal(size=300))
    X = pd.DataFrame({"town": town, "size": size})
    y = np.isin(town, ["Bonn", "Ulm"]) ^ np.isnan(size)
    for splits in ("bins", "exact"):
        model = RandomForestClassifier(20, random_state=0, splits=splits, max_features=None).fit(X, y)
        assert model.score(X, y) == 1.0
    dense = np.where(rng.random((200, 6)) < 0.3, rng.normal(size=(200, 6)), 0.0)
    z = dense[:, 0] - dense[:, 3]
    a, b = (ExtraTreesRegressor(5, random_state=0).fit(rows, z) for rows in (dense, sparse.csc_matrix(dense)))
    np.testing.assert_array_equal(a.predict(dense), b.predict(sparse.csr_matrix(dense)))


@pytest.mark.parametrize("cls", [RandomForestClassifier, ExtraTreesRegressor])
def test_monotonic_constraints_hold(cls: Any) -> None:
    X, z, _ = _data(400)
    t = z > 0 if cls is RandomForestClassifier else z
    model = cls(10, random_state=0, monotonic_cst=[1, 0, -1, 0, 0]).fit(X, t)
    rows = np.tile(X[:20, None, :], (1, 30, 1))
    for j, sign in ((0, 1), (2, -1)):
        moved = rows.copy()
        moved[:, :, j] = np.linspace(-3, 3, 30)
        flat = moved.reshape(-1, 5)
        shown = model.predict_proba(flat)[:, 1] if cls is RandomForestClassifier else model.predict(flat)
        assert (sign * np.diff(shown.reshape(20, 30), axis=1) >= -1e-9).all()


def test_class_weights_and_pruning() -> None:
    X, z, _ = _data(500)
    y = z > 1.5
    plain, heavy, balanced, by_tree = (
        RandomForestClassifier(20, random_state=0, min_samples_leaf=20, class_weight=weight).fit(X, y)
        for weight in (None, {True: 10.0}, "balanced", "balanced_subsample")
    )
    for model in (heavy, balanced, by_tree):
        assert model.predict(X).sum() > plain.predict(X).sum()
    full, pruned = (RandomForestRegressor(5, random_state=0, ccp_alpha=a).fit(X, z) for a in (0.0, 0.05))
    assert len(pruned._trees.is_inner) < len(full._trees.is_inner) / 4
    assert pruned.score(X, z) > 0.3


# --------------------------------------------------------------------------------------------------------- bad input


def test_bad_input_gets_one_sentence(tmp_path: Any) -> None:
    X, z, _ = _data(60)
    with pytest.raises(summula.ParameterError, match="max_features=9 is larger than the number of columns, 5"):
        RandomForestRegressor(2, max_features=9).fit(X, z)
    with pytest.raises(summula.ParameterError, match="bootstrap=False"):
        RandomForestRegressor(2, bootstrap=False, max_samples=0.5).fit(X, z)
    with pytest.raises(summula.ParameterError, match="only available if bootstrap=True"):
        ExtraTreesRegressor(2, oob_score=True).fit(X, z)
    with pytest.raises(summula.ParameterError, match="multiclass"):
        RandomForestClassifier(2, monotonic_cst=[1, 0, 0, 0, 0]).fit(X, np.arange(60) % 3)
    with pytest.raises(summula.DataError, match="negative"):
        RandomForestRegressor(2, criterion="poisson").fit(X, z)
    frame = pd.DataFrame(X, columns=list("abcde")).assign(z=z)
    frame.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(summula.DataError, match="use splits='bins'"):
        RandomForestRegressor(2, splits="exact").fit(summula.scan(tmp_path / "rows.parquet"), "z")


def test_one_class_constant_targets_and_columns_without_values() -> None:
    X = np.full((30, 2), np.nan)
    X[:, 0] = np.arange(30)
    assert RandomForestRegressor(3).fit(X, np.full(30, 7.25)).predict(X[:2]).tolist() == [7.25, 7.25]
    assert RandomForestClassifier(3).fit(X, ["a"] * 30).predict(X[:2]).tolist() == ["a", "a"]
    model = ExtraTreesRegressor(3, random_state=0).fit(X, X[:, 0])
    assert model.feature_importances_.tolist() == [1.0, 0.0]
    np.testing.assert_array_equal(model.predict(X), X[:, 0])


def test_a_forest_is_a_sequence_of_its_trees() -> None:
    X, z, _ = _data()
    model = RandomForestRegressor(3, random_state=0).fit(X, z)
    assert len(model) == 3
    values = [tree.predict(X) for tree in model]
    np.testing.assert_array_equal(values[-1], model[-1].predict(X))
    np.testing.assert_allclose(np.mean(values, axis=0), model.predict(X), rtol=1e-12)
    with pytest.raises(IndexError):
        model[3]
