"""Compatibility with scikit-learn's histogram boosting: stopping, scorers, validation rows, forms of
parameters, limits of trees; and one-sentence errors.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, get_scorer
from sklearn.model_selection import cross_val_score, train_test_split

from summula.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from summula.ensemble.histogram.stopping import should_stop
from summula.tree.columns.constraints import interaction_groups
from tests.faults.sentences import one_sentence


def rows(n=300, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, 0] + 0.5 * X[:, 1] + 0.3 * rng.normal(size=n)


# ---------------------------------------------------------------------------------------------------------- stopping


@pytest.mark.parametrize(
    ("scores", "patience", "tol", "expected"),
    [
        ([], 1, 0.001, False),
        ([2.0] * 5, 5, 0.001, False),  # not enough scores yet
        ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 5, 4.999, False),  # the last is better by 5
        ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 5, 5.0, True),
        ([1.0, 9.0, 1.0, 1.0, 1.0], 3, 0.0, True),  # the best is longer ago
        ([1.0] * 6, 5, 0.0, True),
    ],
)
def test_it_stops_when_none_of_the_last_scores_is_better(scores, patience, tol, expected):
    assert should_stop(scores, patience, tol) is expected


def test_rows_to_stop_by_turn_early_stopping_on_unless_it_is_off():
    X, y = rows()
    model = HistGradientBoostingRegressor(max_iter=5).fit(X, y, X_val=X[:50], y_val=y[:50])
    assert model.do_early_stopping_
    assert len(model.validation_score_) == len(model.train_score_) == 6
    alone = HistGradientBoostingRegressor(max_iter=5).fit(X, y)
    assert not alone.do_early_stopping_
    assert len(alone.train_score_) == len(alone.validation_score_) == 0
    np.testing.assert_array_equal(alone.predict(X), model.predict(X))


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_held_out_are_those_scikit_learn_would_hold_out(weighted):
    X, y = rows()
    weight = np.random.default_rng(1).random(len(y)) if weighted else np.ones(len(y))
    given = {"sample_weight": weight} if weighted else {}
    held = HistGradientBoostingRegressor(early_stopping=True, validation_fraction=0.4, max_iter=15, random_state=3)
    held.fit(X, y, **given)
    seed = np.random.RandomState(3).randint(np.iinfo(np.uint32).max, dtype="u8")
    train, test = train_test_split(np.arange(len(y)), test_size=0.4, random_state=seed)
    other = HistGradientBoostingRegressor(max_iter=15, random_state=3)
    other.fit(X[train], y[train], weight[train], X_val=X[test], y_val=y[test], sample_weight_val=weight[test])
    assert other.n_iter_ == held.n_iter_
    np.testing.assert_allclose(other.validation_score_, held.validation_score_, rtol=1e-12)


def test_bins_come_from_the_rows_that_are_learnt_from():
    X, y = rows(100)
    model = HistGradientBoostingRegressor(early_stopping=True, validation_fraction=0.2, max_iter=1).fit(X, y)
    assert (model._bins.n_bins == 80).all()


@pytest.mark.parametrize("classes", [2, 3])
def test_a_callable_scorer_is_given_bins_and_may_ask_for_some_of_the_rows(classes):
    X, y = rows()
    labels = np.array(["a", "b", "c"])[np.digitize(y, [0.0] if classes == 2 else [-0.5, 0.5])]
    seen = []

    def score(model, X, y):
        assert X.dtype == np.uint8
        assert X.shape[1] == 4
        np.testing.assert_array_equal(model.predict_proba(X[::3]), model.predict_proba(X)[::3])
        np.testing.assert_array_equal(model.predict(X[:7]), model.predict(X)[:7])
        seen.append(len(X))
        return accuracy_score(y, model.predict(X))

    model = HistGradientBoostingClassifier(early_stopping=True, scoring=score, max_iter=2, random_state=0)
    model.fit(X, labels)
    assert seen == [270, 30] * 3  # before the first and after each iteration
    by_name = HistGradientBoostingClassifier(early_stopping=True, scoring="accuracy", max_iter=2, random_state=0)
    np.testing.assert_array_equal(by_name.fit(X, labels).validation_score_, model.validation_score_)


def test_weights_reach_the_scorer():
    X, y = rows()
    weights = []

    def score(model, X, y, sample_weight=None):
        weights.append(sample_weight)
        return get_scorer("r2")(model, X, y, sample_weight=sample_weight)

    model = HistGradientBoostingRegressor(early_stopping=True, scoring=score, max_iter=2, random_state=0)
    model.fit(X, y, sample_weight=np.arange(300.0))
    assert [len(w) for w in weights] == [270, 30] * 3
    assert set(np.concatenate(weights[:2])) == set(range(300))


def test_a_callback_stops_with_the_trees_so_far():
    from sklearn.callback import FitCallback

    class Enough(FitCallback):
        def setup(self, *given, **options): ...
        def teardown(self, *given, **options): ...
        def on_fit_task_begin(self, *given, **options): ...
        def on_fit_task_end(self, *given, **options):
            return True

    X, y = rows()
    model = HistGradientBoostingRegressor(max_iter=50).set_callbacks(Enough()).fit(X, y)
    assert model.n_iter_ < 50
    assert len(model.predict(X)) == 300


# -------------------------------------------------------------------------------------------------------------- trees


def test_depth_and_leaves_are_limited_together():
    X, y = rows()
    model = HistGradientBoostingRegressor(max_iter=1, max_depth=2, max_leaf_nodes=3).fit(X, y)
    assert len(np.unique(model.apply(X))) == 3
    assert len(np.unique(HistGradientBoostingRegressor(max_iter=1, max_depth=2).fit(X, y).apply(X))) == 4
    assert len(np.unique(HistGradientBoostingRegressor(max_iter=1, max_leaf_nodes=None).fit(X, y).apply(X))) > 6


def test_a_category_needs_one_split_where_its_numbers_need_several():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.random(2_000), rng.integers(0, 6, 2_000)])
    y = X[:, 1] % 2 == 0
    one = HistGradientBoostingClassifier(max_iter=1, max_depth=1, categorical_features=[1])
    assert cross_val_score(one, X, y, cv=3).mean() == 1.0
    plain = HistGradientBoostingClassifier(max_iter=1, max_depth=3, categorical_features=None)
    assert cross_val_score(plain, X, y, cv=3).mean() < 0.95


def test_a_constant_target_grows_no_trees():
    X, _ = rows()
    model = HistGradientBoostingRegressor(max_iter=4).fit(X, np.full(300, 2.5))
    assert (model._nodes.column == -1).all()
    np.testing.assert_array_equal(model.predict(X), 2.5)


@pytest.mark.parametrize(
    ("given", "d", "expected"),
    [
        (None, 9, None),
        ("pairwise", 1, ({0},)),
        ("pairwise", 3, ({0, 1}, {0, 2}, {1, 2})),
        ("no_interactions", 2, ({0}, {1})),
        ([(1, 0), [5, 1]], 6, ({0, 1}, {1, 5}, {2, 3, 4})),  # columns in no group form another one
        ([], 3, ({0, 1, 2},)),
        ([{0, 1}, {1, 2}, {0, 2}], 3, ({0, 1}, {1, 2}, {0, 2})),
    ],
)
def test_groups_that_may_interact(given, d, expected):
    assert interaction_groups(given, d) == expected


def test_overlapping_groups_still_keep_their_columns_apart():
    X, _ = rows(600, 3)
    y = X[:, 0] * X[:, 2] + X[:, 1]
    model = HistGradientBoostingRegressor(max_iter=20, interaction_cst=[{0, 1}, {1, 2}]).fit(X, y)
    base, a, b, both = np.zeros((4, 3))
    a[0] = both[0] = b[2] = both[2] = 1.0
    at = model.predict([base, a, b, both])
    assert at[3] - at[1] == pytest.approx(at[2] - at[0], abs=1e-9)


@pytest.mark.parametrize("given", [[1, 0, -1, 0], np.array([1.0, 0.0, -1.0, 0.0]), {"a": 1, "c": -1}])
def test_monotone_columns_in_any_form_are_the_same(given):
    pandas = pytest.importorskip("pandas")
    X, y = rows()
    frame = pandas.DataFrame(X, columns=list("abcd"))
    options = {"max_iter": 5, "random_state": 0}
    expected = HistGradientBoostingRegressor(monotonic_cst=(1, 0, -1, 0), **options).fit(frame, y)
    model = HistGradientBoostingRegressor(monotonic_cst=given, **options).fit(frame, y)
    np.testing.assert_array_equal(model.predict(frame), expected.predict(frame))


# ------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"monotonic_cst": [1, 0, 0, 0], "categorical_features": [0]}, "Categorical features cannot have monotonic"),
        ({"monotonic_cst": {"a": 1}}, "pass monotonic_cst as an integer array"),
        ({"monotonic_cst": [0, 0, 3, 0]}, "array-like of -1, 0 or 1"),
        ({"monotonic_cst": [0, 0, 0]}, "X has 4 features"),
        ({"interaction_cst": [0, 1]}, "a sequence of tuples or lists"),
        ({"interaction_cst": [[0, 4]]}, "[0, n_features - 1] = [0, 3]"),
        ({"interaction_cst": [[-1, 0]]}, "[0, n_features - 1] = [0, 3]"),
        ({"interaction_cst": [[0, True]]}, "integer indices"),
        ({"interaction_cst": [["a", "b"]]}, "integer indices"),
        ({"categorical_features": [-1]}, "in [0, n_features - 1]"),
        ({"categorical_features": [True, False]}, "must have shape (n_features,)"),
        ({"categorical_features": ["a"]}, "without feature names"),
        ({"categorical_features": [0.5]}, "array-like of bool, int or str"),
        ({"max_features": 1}, "float in the range (0.0, 1.0]"),
        ({"validation_fraction": 300, "early_stopping": True}, "change validation_fraction"),
        ({"loss": "quantile"}, "quantile between 0 and 1"),
        ({"loss": "quantile", "quantile": 1.0}, "quantile between 0 and 1"),
        ({"scoring": "nothing", "early_stopping": True}, "'nothing' is not a valid scoring value"),
    ],
    ids=lambda given: str(given) if isinstance(given, dict) else "",
)
def test_impossible_parameters_raise(options, words):
    X, y = rows()
    with pytest.raises(ValueError, match=re.escape(words)) as caught:
        HistGradientBoostingRegressor(max_iter=2, **options).fit(np.round(X), y)
    if not {"scoring", "max_features"} & set(options):  # scikit-learn's message
        one_sentence(caught.value)


def test_impossible_targets_raise():
    X, y = rows()
    for loss, target, words in (
        ("squared_error", 1e200 * y, "rescale it"),
        ("squared_error", np.where(y > 1, np.inf, y), "infinite value"),
        ("squared_error", np.where(y > 1, np.nan, y), "missing value"),
        ("poisson", y, "non-negative y and sum(y) > 0"),
        ("poisson", np.zeros(300), "non-negative y and sum(y) > 0"),
        ("gamma", np.abs(y) * (y > 0), "strictly positive y"),
    ):
        with pytest.raises(ValueError, match=re.escape(words)) as caught:
            HistGradientBoostingRegressor(loss).fit(X, target)
        one_sentence(caught.value)
    with pytest.raises(ValueError, match="use a regressor"):
        HistGradientBoostingClassifier().fit(X, y)


def test_invalid_validation_rows_raise():
    X, y = rows()
    with pytest.raises(ValueError, match="X has 3 features, but HistGradientBoostingRegressor is expecting 4"):
        HistGradientBoostingRegressor().fit(X, y, X_val=X[:, :3], y_val=y)
    with pytest.raises(ValueError, match="y_val was not provided"):
        HistGradientBoostingRegressor().fit(X, y, X_val=X)
    with pytest.raises(ValueError, match="early_stopping should be"):
        HistGradientBoostingRegressor(early_stopping=False).fit(X, y, X_val=X, y_val=y)
    labels = np.where(y > 0, "a", "b")
    with pytest.raises(ValueError, match="contains 'z' at row 0, which is not one of the 2 classes"):
        HistGradientBoostingClassifier().fit(X, labels, X_val=X, y_val=np.full(300, "z"))


@pytest.mark.parametrize("value", [np.nan, 3.0, np.inf])
def test_columns_without_news_do_no_harm(value):
    X, y = rows()
    idle = np.column_stack([X, np.full(300, value)])
    model, expected = (HistGradientBoostingRegressor(max_iter=5).fit(given, y) for given in (idle, X))
    np.testing.assert_array_equal(model.predict(idle), expected.predict(X))
    assert model.feature_importances_[4] == 0.0
