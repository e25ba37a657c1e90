"""Decision trees: the tree by definition, scikit-learn's tree, pruning, categories, missing values, bad input."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import tree as theirs
from sklearn.datasets import load_iris
from sklearn.utils.estimator_checks import check_estimator

import summula
from summula.core.errors import DataError, ParameterError
from summula.ensemble import ExtraTreesRegressor, RandomForestRegressor
from summula.tree import DecisionTreeClassifier, DecisionTreeRegressor
from summula.tree.exact.grow_kernels import keep_rows
from tests.reference import decision_trees as plain

CLASSES, NUMBERS = ("gini", "entropy"), ("squared_error", "absolute_error", "poisson")


def rows(n=400, d=5, seed=0, missing=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(np.float32).astype(float)
    target = np.exp(X[:, 0] + X[:, 1] ** 2 - 1 + 0.3 * rng.normal(size=n))
    X[rng.random((n, d)) < missing] = np.nan
    return X, target


def labels(target, classes=3):
    return np.digitize(target, np.quantile(target, np.arange(1, classes) / classes))


def model_of(criterion, **options):
    kind = DecisionTreeClassifier if criterion in CLASSES else DecisionTreeRegressor
    return kind(criterion=criterion, random_state=0, **options)


def their_model_of(criterion, **options):
    kind = theirs.DecisionTreeClassifier if criterion in CLASSES else theirs.DecisionTreeRegressor
    return kind(criterion=criterion, random_state=0, **options)


def nested(model, node=0):
    nodes = model._nodes
    if nodes.column[node] < 0:
        return None
    child = nodes.child[node]
    return int(nodes.column[node]), float(nodes.threshold[node]), nested(model, child), nested(model, child + 1)


def same_tree(ours, peer):
    """Walk down both trees; where two splits are equally good they may differ, and below them everything may."""
    nodes, other, equal, ties = ours._nodes, peer.tree_, 0, 0
    weight, stack = other.weighted_n_node_samples, [(0, 0)]
    while stack:
        a, b = stack.pop()
        assert nodes.rows[a] == other.n_node_samples[b]
        np.testing.assert_allclose(ours._impurity[a], other.impurity[b], rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(ours._values[a], other.value[b].ravel(), rtol=1e-9, atol=1e-12)
        left, right = other.children_left[b], other.children_right[b]
        assert (nodes.column[a] < 0) == (left < 0)
        if left < 0:
            continue
        inside = weight[left] * other.impurity[left] + weight[right] * other.impurity[right]
        improvement = (weight[b] * other.impurity[b] - inside) / weight[0]
        np.testing.assert_allclose(nodes.gain[a], improvement, rtol=1e-6, atol=1e-8)
        if nodes.column[a] != other.feature[b] or not np.isclose(nodes.threshold[a], other.threshold[b], rtol=1e-6):
            ties += 1
            continue
        equal += 1
        stack += [(nodes.child[a], left), (nodes.child[a] + 1, right)]
    assert equal > ties


# ---------------------------------------------------------------------------------------------------------- the tree


@pytest.mark.parametrize("criterion", CLASSES + NUMBERS)
def test_the_tree_is_that_of_the_definition(criterion):
    X, target = rows(60, 3, seed=1)
    y = labels(target) if criterion in CLASSES else target
    w = np.random.default_rng(0).uniform(0.5, 2.0, 60)
    model = model_of(criterion, max_depth=2, min_samples_leaf=4).fit(X, y, w)

    def compare(ours, expected):
        assert (ours is None) == (expected is None)
        if ours is not None:
            assert ours[0] == expected[0]
            assert ours[1] == pytest.approx(expected[1])
            compare(ours[2], expected[2])
            compare(ours[3], expected[3])

    compare(nested(model), plain.grow(X, y, w, criterion, 2, 4))


@pytest.mark.parametrize("criterion", CLASSES + NUMBERS)
@pytest.mark.parametrize(
    "options",
    [
        {"max_depth": 4},
        {"min_samples_leaf": 15},
        {"max_leaf_nodes": 12},
        {"min_impurity_decrease": 0.01, "min_samples_split": 0.1},
        {"min_weight_fraction_leaf": 0.05, "max_depth": 5},
    ],
    ids=str,
)
def test_the_tree_is_that_of_scikit_learn(criterion, options):
    X, target = rows()
    y = labels(target) if criterion in CLASSES else target
    rng = np.random.default_rng(0)
    for weight in (None, rng.integers(0, 3, len(y)) + 0.5, rng.integers(0, 3, len(y)).astype(float)):
        same_tree(
            model_of(criterion, **options).fit(X, y, weight), their_model_of(criterion, **options).fit(X, y, weight)
        )


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error", "absolute_error"])
def test_missing_values_go_where_they_help_as_in_scikit_learn(criterion):
    X, target = rows(missing=0.1)
    X[:, 2] = np.where(target > np.median(target), np.nan, X[:, 2])
    y = labels(target) if criterion in CLASSES else target
    options = {"max_depth": 4, "min_samples_leaf": 5}
    ours, peer = model_of(criterion, **options).fit(X, y), their_model_of(criterion, **options).fit(X, y)
    same_tree(ours, peer)


def test_iris_to_the_last_leaf():
    X, y = load_iris(return_X_y=True)
    model = DecisionTreeClassifier().fit(X, y)
    assert model.score(X, y) == 1.0
    assert model.get_n_leaves() <= 9
    np.testing.assert_allclose(model.feature_importances_.sum(), 1.0)


def test_drawn_columns_and_thresholds_depend_on_the_seed_alone():
    X, target = rows()
    for options in ({"max_features": "sqrt"}, {"splitter": "random"}, {"max_features": 2, "splitter": "random"}):
        first, again, other = (
            DecisionTreeRegressor(**options, max_depth=4, random_state=seed).fit(X, target).predict(X)
            for seed in (1, 1, 2)
        )
        np.testing.assert_array_equal(first, again)
        assert (first != other).any()
    shallow = [DecisionTreeRegressor(splitter="random", max_depth=1, random_state=k).fit(X, target) for k in range(20)]
    assert len({float(model._nodes.threshold[0]) for model in shallow}) > 15


def test_a_column_that_never_varies_is_not_counted_among_those_drawn():
    X, target = rows(d=2)
    X = np.column_stack([np.zeros((len(X), 9)), X[:, 0]])
    assert DecisionTreeRegressor(max_features=1, max_depth=3, random_state=0).fit(X, target).get_depth() == 3


# ----------------------------------------------------------------------------------------------------------- pruning


@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
def test_pruning_is_that_of_scikit_learn(criterion):
    X, target = rows(300)
    y = labels(target) if criterion in CLASSES else target
    ours = model_of(criterion, min_samples_leaf=5)
    peer = their_model_of(criterion, min_samples_leaf=5)
    path, expected = ours.cost_complexity_pruning_path(X, y), peer.cost_complexity_pruning_path(X, y)
    np.testing.assert_allclose(path.ccp_alphas[-12:], expected.ccp_alphas[-12:], rtol=1e-8)
    np.testing.assert_allclose(path.impurities[-12:], expected.impurities[-12:], rtol=1e-8)
    for alpha in (path.ccp_alphas[-4] + path.ccp_alphas[-5]) / 2, path.ccp_alphas[-8] * 1.0001:
        ours, peer = (model.set_params(ccp_alpha=alpha).fit(X, y) for model in (ours, peer))
        assert ours.get_n_leaves() == peer.get_n_leaves()
        np.testing.assert_allclose(ours.predict(X), peer.predict(X))
    assert ours.set_params(ccp_alpha=1e9).fit(X, y).get_n_leaves() == 1


# -------------------------------------------------------------------------------------------------------- categories


def frame(n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"colour": rng.choice(list("abcdefgh"), n), "size": rng.normal(size=n)})
    return X, X["colour"].isin(list("beh")).to_numpy() * 3.0 + X["size"].to_numpy() * 0.5


@pytest.mark.parametrize("criterion", NUMBERS)
def test_one_split_separates_any_set_of_categories(criterion):
    X, target = frame()
    model = DecisionTreeRegressor(criterion=criterion, max_depth=1).fit(X, target - target.min())
    assert model.rules().startswith("if colour in {'a', 'c', 'd', 'f', 'g'}")


def test_categories_of_several_classes_and_unknown_ones():
    X, target = frame()
    y = np.where(X["colour"].isin(["a", "d"]), "x", np.where(X["colour"].isin(["b", "h"]), "y", "z"))
    model = DecisionTreeClassifier(max_depth=2).fit(X, y)
    assert model.score(X, y) == 1.0
    new = pd.DataFrame({"colour": ["unseen", None], "size": [0.0, 0.0]})
    assert model.predict(new)[0] == model.predict(new)[1]


# ------------------------------------------------------------------------------------------------------ what it shows


def test_rules_predict_what_the_tree_predicts():
    X, target = rows(200, 3)
    text = DecisionTreeRegressor(max_depth=3, min_samples_leaf=10).fit(X, target).rules(decimals=17)
    model = DecisionTreeRegressor(max_depth=3, min_samples_leaf=10).fit(X, target)

    def follow(x):
        depth = 0
        for line in text.splitlines():
            indent = (len(line) - len(line.lstrip())) // 4
            if indent != depth:
                continue
            condition, outcome = line.strip()[3:].split(":")
            if eval(condition.replace(" or is missing", ""), {"x": x}):
                if outcome:
                    return float(outcome.split("(")[0])
                depth += 1
        raise AssertionError(text)

    np.testing.assert_allclose([follow(x) for x in X[:50]], model.predict(X[:50]), rtol=1e-14)


def test_explanations_add_up_to_predictions():
    X, target = rows(200, 3)
    for model, predicted in (
        (DecisionTreeRegressor(max_depth=4).fit(X, target), "predict"),
        (DecisionTreeClassifier(max_depth=4).fit(X, labels(target)), "predict_proba"),
    ):
        found = model.explain(X[:20])
        total = found.values.sum(axis=1) + found.base_values
        np.testing.assert_allclose(total, getattr(model, predicted)(X[:20]), atol=1e-12)


def test_paths_end_in_the_leaf_and_begin_at_the_root():
    X, target = rows(100, 3)
    model = DecisionTreeRegressor(max_depth=4).fit(X, target)
    path, leaves = model.decision_path(X).toarray(), model.apply(X)
    stored = sparse.csr_array(X)
    np.testing.assert_array_equal(model.tree_.apply(stored), leaves)
    np.testing.assert_array_equal(model.tree_.decision_path(stored).toarray(), path)
    assert (path[:, 0] == 1).all()
    assert (path[np.arange(100), leaves] == 1).all()
    np.testing.assert_array_equal(path.sum(axis=1), model._depths()[leaves] + 1)


def test_sparse_rows_are_explained_like_dense_ones():
    X, target = rows(60, 3)
    X[X < 0] = 0.0
    model = DecisionTreeRegressor(max_depth=3).fit(X, target)
    np.testing.assert_array_equal(model.explain(sparse.csr_array(X)).values, model.explain(X).values)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_sparse_rows_instead_of_text_are_refused():
    X, target = rows(60, 2)
    frame = pd.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 0, "yes", "no")})
    model = DecisionTreeRegressor(max_depth=3, categorical_features="from_dtype").fit(frame, target)
    for given in (X, sparse.csr_array(X)):
        with pytest.raises(DataError, match="contains numbers, but was text"):
            model.predict(given)


def test_a_plot_has_a_box_per_node():
    X, target = rows(100, 3)
    model = DecisionTreeClassifier(max_depth=2).fit(X, labels(target))
    ax = model.plot()
    assert len(ax.texts) == len(model._impurity)
    assert len(model.plot(max_depth=1).texts) == 3
    assert "class" in ax.texts[0].get_text()


# ---------------------------------------------------------------------------------------------- promises and bad input


@pytest.mark.parametrize("model", [DecisionTreeClassifier(), DecisionTreeRegressor()], ids=str)
def test_scikit_learn_finds_nothing_wrong(model):
    check_estimator(model)


@pytest.mark.parametrize("kind", [DecisionTreeClassifier, DecisionTreeRegressor])
def test_saved_and_pickled_models_predict_the_same(kind, tmp_path):
    X, target = frame()
    y = labels(target) if kind is DecisionTreeClassifier else target
    model = kind(min_samples_leaf=5).fit(X, y)
    summula.save(model, tmp_path / "tree")
    for copy in (summula.load(tmp_path / "tree"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(copy.predict(X), model.predict(X))
        assert copy.rules() == model.rules()


def test_weights_are_repetitions():
    X, target = rows(150)
    weight = np.random.default_rng(0).integers(0, 4, 150)
    for model, y in (
        (DecisionTreeClassifier(max_depth=4), labels(target)),
        (DecisionTreeRegressor(max_depth=4), target),
    ):
        weighted = model.fit(X, y, weight).predict(X)
        repeated = model.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight)).predict(X)
        np.testing.assert_allclose(weighted, repeated)


def test_class_weights_are_weights_of_rows():
    X, target = rows(200)
    y = labels(target, 2)
    by_class = DecisionTreeClassifier(max_depth=3, class_weight={0: 3.0}).fit(X, y)
    by_row = DecisionTreeClassifier(max_depth=3).fit(X, y, np.where(y == 0, 3.0, 1.0))
    np.testing.assert_array_equal(by_class.predict_proba(X), by_row.predict_proba(X))
    balanced = DecisionTreeClassifier(max_depth=1, class_weight="balanced").fit(X, (target > np.quantile(target, 0.9)))
    np.testing.assert_allclose(balanced._values[0], [0.5, 0.5])


def test_degenerate_data():
    one = DecisionTreeClassifier().fit([[1.0], [2.0]], ["a", "a"])
    assert one.predict([[3.0]]).tolist() == ["a"]
    assert one.predict_proba([[3.0]]).tolist() == [[1.0]]
    assert DecisionTreeRegressor().fit([[1.0], [2.0]], [5.0, 5.0]).rules() == "5 (2 rows)"
    X = np.column_stack([np.full(6, np.nan), np.arange(6.0)])
    assert DecisionTreeRegressor().fit(X, X[:, 1]).predict(X).tolist() == X[:, 1].tolist()
    huge = np.array([[-np.inf], [0.0], [np.inf], [1e308]])
    assert DecisionTreeRegressor().fit(huge, [1, 2, 3, 4]).predict(huge).tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("model", "y", "error", "words"),
    [
        (DecisionTreeRegressor(max_features=9), None, ParameterError, "max_features=9"),
        (DecisionTreeRegressor(criterion="gini"), None, ParameterError, "criterion"),
        (DecisionTreeRegressor(criterion="poisson"), [-1.0, 1.0, 2.0], DataError, "negative"),
        (DecisionTreeRegressor(), [np.nan, 1.0, 2.0], DataError, "first at row 0"),
        (DecisionTreeClassifier(class_weight={"z": 1.0}), ["a", "b", "b"], ParameterError, "z"),
    ],
    ids=str,
)
def test_bad_input_is_named(model, y, error, words):
    with pytest.raises(error, match=words):
        model.fit(np.arange(6.0).reshape(3, 2), [1.0, 2.0, 3.0] if y is None else y)


def test_a_stream_is_sent_to_histogram_boosting(tmp_path):
    X, target = rows(50, 2)
    path = tmp_path / "rows.parquet"
    pd.DataFrame(X, columns=["a", "b"]).assign(y=target).to_parquet(path)
    with pytest.raises(DataError, match="HistGradientBoostingRegressor"):
        DecisionTreeRegressor().fit(summula.scan(path), "y")


# ----------------------------------------------------------------------------------------------------- monotone columns


@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error", "poisson"])
def test_predictions_follow_monotone_columns(criterion):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 3))
    y = np.exp(0.3 * X[:, 0] - 0.5 * X[:, 1] + 0.7 * rng.normal(size=300))
    model = DecisionTreeRegressor(criterion=criterion, monotonic_cst=[1, -1, 0]).fit(X, y)
    free = DecisionTreeRegressor(criterion=criterion).fit(X, y)
    steps = np.linspace(-2, 2, 40)
    for j, sign in ((0, 1), (1, -1)):
        moved = np.repeat(X[:50, None], len(steps), axis=1)
        moved[:, :, j] = steps
        change = sign * np.diff(model.predict(moved.reshape(-1, 3)).reshape(50, -1), axis=1)
        assert (change >= 0).all()
        assert (np.diff(free.predict(moved.reshape(-1, 3)).reshape(50, -1), axis=1) * sign < 0).any()


@pytest.mark.parametrize("max_leaf_nodes", [None, 12])
def test_monotone_columns_as_in_scikit_learn(max_leaf_nodes):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(400, 4)).astype(np.float32)
    y = X @ [1.0, -1.0, 0.5, 0.0] + rng.normal(size=400)
    options = {"monotonic_cst": [1, -1, 0, 1], "max_depth": 5, "max_leaf_nodes": max_leaf_nodes, "random_state": 0}
    expected = theirs.DecisionTreeRegressor(**options).fit(X, y).predict(X)
    np.testing.assert_allclose(DecisionTreeRegressor(**options).fit(X, y).predict(X), expected, rtol=1e-10)
    expected = theirs.DecisionTreeClassifier(**options).fit(X, y > 0).predict_proba(X)
    ours = DecisionTreeClassifier(**options).fit(X, y > 0)
    np.testing.assert_allclose(ours.predict_proba(X), expected, rtol=1e-10)


def test_monotone_columns_of_several_classes_are_refused():
    X = np.arange(9.0)[:, None]
    with pytest.raises(ParameterError, match="not supported with multiclass"):
        DecisionTreeClassifier(monotonic_cst=[1]).fit(X, np.arange(9) // 3)


def test_the_tree_reads_as_scikit_learns():
    X, y = load_iris(return_X_y=True)
    ours = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    model = theirs.DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y).tree_
    tree = ours.tree_
    for name in ("node_count", "n_leaves", "max_depth"):
        assert getattr(tree, name) == getattr(model, name), name
    assert tree.children_left[0] == 1
    assert sorted(tree.n_node_samples) == sorted(model.n_node_samples)
    np.testing.assert_allclose(tree.predict(X)[:, 0], ours.predict_proba(X))
    np.testing.assert_array_equal(tree.apply(X), ours.apply(X))


def test_leaves_of_equal_targets_predict_them_exactly():
    y = np.repeat([0.0, 1.0, 2.0], [17, 17, 16])
    X = np.arange(50.0)[:, None]
    assert (DecisionTreeRegressor().fit(X, y).predict(X) == y).all()


def test_rows_are_kept_in_the_order_of_each_column():
    rng = np.random.default_rng(7)
    orders, keep = np.argsort(rng.normal(size=(3, 40)), axis=1).astype(np.uint32), rng.random(40) < 0.4
    out = np.zeros((4, keep.sum()), np.uint32)
    keep_rows(orders, keep, out)
    np.testing.assert_array_equal(out[:3], [order[keep[order]] for order in orders])


@pytest.mark.parametrize("factor", [0.5, 1.0, 3.0, 1e-9, 1e9])
def test_nodes_of_equal_targets_are_leaves(factor: float) -> None:
    # The mean of these targets has no exact binary form, so that impurities of pure nodes are not exactly 0.
    rng = np.random.default_rng(3)
    X = rng.normal(size=(100, 4))
    y = factor * np.where(rng.random(100) < 0.46, -1.0, 1.0)
    tree = DecisionTreeRegressor(max_depth=4).fit(X, y).tree_
    assert (tree.impurity[tree.children_left >= 0] > 0.1 * factor**2 / 100).all()
    assert (tree.impurity[np.abs(tree.value.reshape(-1)) > factor * (1 - 1e-9)] == 0.0).all()


@pytest.mark.parametrize("model", [DecisionTreeRegressor, RandomForestRegressor, ExtraTreesRegressor])
def test_friedman_mse_is_squared_error(model):
    with pytest.warns(FutureWarning, match="friedman_mse"):
        made = model(criterion="friedman_mse")
    assert made.criterion == "squared_error"


def test_rules_of_arrays_of_text_show_the_text():
    X, y = np.array([["a"], ["b"], ["c"]] * 4, dtype=object), [0, 1, 0] * 4
    rules = DecisionTreeClassifier(categorical_features=[0]).fit(X, y).rules()
    assert "x[0] in {'a', 'c'}" in rules
    assert "x[0] in {'b'}" in rules
