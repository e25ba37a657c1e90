"""Trees and forests of several targets: against scikit-learn, and against what follows from the definition."""

import numpy as np
import pytest
import sklearn.ensemble
import sklearn.tree
from sklearn.base import clone

import summula
from summula import ensemble, tree
from summula.core.errors import DataError, ParameterError

N = 400
RNG = np.random.default_rng(7)
X = RNG.normal(size=(N, 5))
Y = np.column_stack([X[:, 0] + X[:, 1] * X[:, 2], X[:, 3] ** 2, X[:, 1]]) + 0.3 * RNG.normal(size=(N, 3))
LABELS = np.column_stack([np.digitize(Y[:, 0], [-1, 0, 1]), Y[:, 1] > 1, np.digitize(Y[:, 2], [0, 1])]).astype(int)
WEIGHT = RNG.uniform(0.5, 2.0, N)
FORESTS = ("RandomForest", "ExtraTrees")


def targets(criterion):
    return np.exp(Y / 2) if criterion == "poisson" else Y


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
@pytest.mark.parametrize("limits", [{"max_depth": 3}, {"max_leaf_nodes": 7}, {"ccp_alpha": 0.02}], ids=str)
@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error", "poisson"])
def test_regression_trees_are_those_of_scikit_learn(criterion, limits, weight):
    y, limits = targets(criterion), {"min_samples_leaf": 15, **limits}  # smaller leaves have splits of equal gain
    ours = tree.DecisionTreeRegressor(criterion=criterion, **limits).fit(X, y, weight)
    theirs = sklearn.tree.DecisionTreeRegressor(criterion=criterion, random_state=0, **limits).fit(X, y, weight)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-9)
    np.testing.assert_allclose(ours.feature_importances_, theirs.feature_importances_, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(np.sort(ours.tree_.impurity), np.sort(theirs.tree_.impurity), rtol=1e-9)
    assert ours.tree_.value.shape == theirs.tree_.value.shape
    assert ours.n_outputs_ == ours.tree_.n_outputs == 3


@pytest.mark.parametrize("class_weight", [None, "balanced", [{0: 2.0}, {1: 3.0}, {2: 0.5}]])
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_classification_trees_are_those_of_scikit_learn(criterion, class_weight):
    options = {"criterion": criterion, "class_weight": class_weight, "max_depth": 3}
    ours = tree.DecisionTreeClassifier(**options).fit(X, LABELS, WEIGHT)
    theirs = sklearn.tree.DecisionTreeClassifier(**options, random_state=0).fit(X, LABELS, WEIGHT)
    for mine, other in zip(ours.predict_proba(X), theirs.predict_proba(X), strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-12)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert [list(c) for c in ours.classes_] == [list(c) for c in theirs.classes_]
    assert ours.n_classes_ == [4, 2, 3]
    np.testing.assert_allclose(np.sort(ours.tree_.impurity), np.sort(theirs.tree_.impurity), atol=1e-12)


def test_equal_targets_give_the_tree_of_one():
    one = tree.DecisionTreeRegressor(max_depth=4).fit(X, Y[:, 0])
    three = tree.DecisionTreeRegressor(max_depth=4).fit(X, np.column_stack([Y[:, 0]] * 3))
    np.testing.assert_array_equal(one.tree_.feature, three.tree_.feature)
    np.testing.assert_array_equal(one.tree_.threshold, three.tree_.threshold)
    np.testing.assert_allclose(three.predict(X), np.column_stack([one.predict(X)] * 3))


@pytest.mark.parametrize("kind", FORESTS)
@pytest.mark.parametrize("splits", ["bins", "exact"])
@pytest.mark.parametrize("criterion", ["squared_error", "poisson"])
def test_forests_predict_the_mean_of_their_trees(kind, splits, criterion):
    forest = getattr(ensemble, f"{kind}Regressor")(
        20, criterion=criterion, splits=splits, random_state=0, bootstrap=True, oob_score=True, min_samples_leaf=3
    )
    y = targets(criterion)
    forest.fit(X, y)
    each = [member.predict(X) for member in forest.estimators_]
    np.testing.assert_allclose(np.mean(each, axis=0), forest.predict(X), rtol=1e-9)
    assert forest.oob_prediction_.shape == y.shape
    interval = forest.infinite_forest_interval(X[:4])
    assert (interval.lower <= forest.predict(X[:4])).all()
    assert interval.upper.shape == (4, 3)
    assert forest.oob_importances(X, y).importances_mean.shape == (5,)


@pytest.mark.parametrize("splits", ["bins", "exact"])
def test_forests_are_as_good_as_those_of_scikit_learn(splits):
    train, test = slice(0, 300), slice(300, None)
    options = {"n_estimators": 60, "random_state": 0}
    ours = ensemble.RandomForestRegressor(splits=splits, **options).fit(X[train], Y[train])
    theirs = sklearn.ensemble.RandomForestRegressor(**options).fit(X[train], Y[train])
    assert ours.score(X[test], Y[test]) > theirs.score(X[test], Y[test]) - 0.04
    ours = ensemble.RandomForestClassifier(splits=splits, **options).fit(X[train], LABELS[train])
    theirs = sklearn.ensemble.RandomForestClassifier(**options).fit(X[train], LABELS[train])
    hits = [(model.predict(X[test]) == LABELS[test]).mean() for model in (ours, theirs)]
    assert hits[0] > hits[1] - 0.05


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB")
@pytest.mark.parametrize("kind", FORESTS)
@pytest.mark.parametrize("class_weight", [None, "balanced", "balanced_subsample"])
def test_forest_probabilities_of_every_target(kind, class_weight):
    forest = getattr(ensemble, f"{kind}Classifier")(
        20,
        random_state=0,
        bootstrap=True,
        class_weight=class_weight,
        oob_score=lambda true, predicted: (true == predicted).mean(),
    ).fit(X, LABELS)
    proba = forest.predict_proba(X)
    assert [p.shape for p in proba] == [(N, 4), (N, 2), (N, 3)]
    for t, p in enumerate(proba):
        np.testing.assert_allclose(p.sum(axis=1), 1.0)
        np.testing.assert_array_equal(forest.classes_[t][p.argmax(axis=1)], forest.predict(X)[:, t])
        each = np.mean([member.predict_proba(X)[t] for member in forest.estimators_], axis=0)
        np.testing.assert_allclose(each, p)
    assert forest.oob_decision_function_.shape == (N, 4, 3)
    assert 0.5 < forest.oob_score_ < 1.0


def test_text_labels_and_frames():
    import pandas as pd

    text = np.array([["low", "high"], ["red", "blue"]])
    labels = np.column_stack([text[0][(Y[:, 0] > 0).astype(int)], text[1][(Y[:, 1] > 1).astype(int)]])
    model = tree.DecisionTreeClassifier(max_depth=3).fit(X, labels)
    frame = tree.DecisionTreeClassifier(max_depth=3).fit(
        pd.DataFrame(X, columns=list("abcde")), pd.DataFrame(labels, columns=["u", "v"])
    )
    assert set(model.predict(X)[:, 1]) == {"red", "blue"}
    np.testing.assert_array_equal(model.predict(X), frame.predict(pd.DataFrame(X, columns=list("abcde"))))
    assert "high (" in model.rules()
    assert "red (" in model.rules()


@pytest.mark.parametrize(
    ("estimator", "y"),
    [
        (tree.DecisionTreeClassifier(max_depth=4), LABELS),
        (tree.DecisionTreeRegressor(max_depth=4), Y),
        (ensemble.RandomForestClassifier(5, random_state=0, oob_score=True), LABELS[:, 1:2] == LABELS[:, :2] % 2),
        (ensemble.RandomForestRegressor(5, random_state=0, oob_score=True), Y),
        (ensemble.ExtraTreesClassifier(5, random_state=0, splits="exact"), LABELS),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB")
def test_saved_models_predict_the_same(estimator, y, tmp_path):
    model = clone(estimator).fit(X, y)
    summula.save(model, tmp_path / "model.summula")
    loaded = summula.load(tmp_path / "model.summula")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.n_outputs_ == y.shape[1]


def test_streams_give_the_forest_of_arrays(tmp_path, monkeypatch):
    import pandas as pd

    table = pd.DataFrame(np.column_stack([X, Y]), columns=[*"abcde", "u", "v", "w"])
    table.to_parquet(tmp_path / "rows.parquet")
    options = {"n_estimators": 4, "random_state": 0, "min_samples_leaf": 2}
    whole = ensemble.RandomForestRegressor(**options).fit(table, ["u", "v", "w"])
    scan = summula.scan(tmp_path / "rows.parquet")
    for memory in (None, "1500"):
        if memory is not None:
            monkeypatch.setenv("SUMMULA_FOREST_MEMORY", memory)
        streamed = ensemble.RandomForestRegressor(**options).fit(scan, ["u", "v", "w"])
        np.testing.assert_array_equal(streamed.predict(table), whole.predict(table))
    with pytest.raises(DataError, match="several targets of rows in memory only"):
        ensemble.RandomForestClassifier(**options).fit(scan, ["u", "v"])


def test_categories_of_several_targets():
    codes = RNG.integers(0, 6, N)
    rows = np.column_stack([codes, RNG.normal(size=N)])
    y = np.column_stack([codes % 2, codes % 3]) + 0.01 * RNG.normal(size=(N, 2))
    for model in (
        tree.DecisionTreeRegressor(max_leaf_nodes=6, categorical_features=[0]),
        ensemble.RandomForestRegressor(
            5, max_leaf_nodes=6, categorical_features=[0], random_state=0, max_features=None
        ),
    ):
        assert model.fit(rows, y).score(rows, y) > 0.99


def test_errors():
    with pytest.raises(ParameterError, match="list of dicts"):
        tree.DecisionTreeClassifier(class_weight={0: 2.0}).fit(X, LABELS)
    with pytest.raises(ParameterError, match="number of elements in class_weight"):
        tree.DecisionTreeClassifier(class_weight=[{0: 2.0}]).fit(X, LABELS)
    with pytest.raises(ParameterError, match="not supported with multiple outputs"):
        tree.DecisionTreeRegressor(monotonic_cst=[1, 0, 0, 0, 0]).fit(X, Y)
    with pytest.raises(ParameterError, match="cannot be used to compute OOB estimates"):
        ensemble.RandomForestClassifier(oob_score=True).fit(X, LABELS)
    bad = Y.copy()
    bad[3, 1] = np.nan
    with pytest.raises(DataError, match="Column 1 of the target y has 1 missing value"):
        tree.DecisionTreeRegressor().fit(X, bad)
    forest = ensemble.RandomForestRegressor(2, warm_start=True).fit(X, Y)
    with pytest.raises(DataError, match="had 3 in the previous fit"):
        forest.set_params(n_estimators=3).fit(X, Y[:, :2])
    forest = ensemble.RandomForestClassifier(2, warm_start=True).fit(X, LABELS[:, 0])
    with pytest.raises(DataError, match="y has 3 targets, but had 1"):
        forest.set_params(n_estimators=3).fit(X, LABELS)
