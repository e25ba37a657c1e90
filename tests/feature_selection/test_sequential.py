"""Sequential feature selection: the same subsets as scikit-learn's, from one pass."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
import sklearn.feature_selection
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, cross_val_score
from sklearn.utils.estimator_checks import check_estimator

from summula.core.errors import ParameterError
from summula.feature_selection import SequentialFeatureSelector
from summula.feature_selection.subset_scores import subset_scores
from summula.linear_model import LinearRegression, Ridge
from summula.naive_bayes import GaussianNB

X, Y = load_diabetes(return_X_y=True)


@pytest.mark.parametrize("scoring", [None, "neg_mean_squared_error", "neg_root_mean_squared_error"])
@pytest.mark.parametrize("model", [LinearRegression(), Ridge(0.3), LinearRegression(fit_intercept=False)], ids=str)
def test_scores_of_subsets_are_those_of_cross_validation(model, scoring):
    A, y = X[:, :5] * [1.0, 1e4, 1e-3, 1.0, 1.0] + 3.0, Y
    splits = list(KFold(4, shuffle=True, random_state=0).split(A))
    score = subset_scores(model, A, y, scoring, splits)
    for size in (1, 2, 5):
        subsets = np.array(list(itertools.combinations(range(5), size)))
        found = score(subsets)
        peer = [cross_val_score(model, A[:, one], y, cv=splits, scoring=scoring).mean() for one in subsets]
        np.testing.assert_allclose(found, peer, rtol=1e-7)


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("wanted", [3, 0.5, "auto"])
def test_subsets_are_those_of_scikit_learn(direction, wanted):
    options = {"n_features_to_select": wanted, "direction": direction}
    ours = SequentialFeatureSelector(LinearRegression(), **options).fit(X, Y)
    theirs = sklearn.feature_selection.SequentialFeatureSelector(LinearRegression(), **options).fit(X, Y)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    assert ours.n_features_to_select_ == theirs.n_features_to_select_


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_best_subset_of_the_whole_search(direction):
    search = SequentialFeatureSelector(LinearRegression(), n_features_to_select="best", direction=direction).fit(X, Y)
    scores, subsets = [], []
    for step in range(1, len(search.order_) + 1):
        mask = np.zeros(10, bool)
        mask[search.order_[:step]] = True
        mask = mask if direction == "forward" else ~mask
        if mask.any():
            subsets.append(mask)
            scores.append(cross_val_score(LinearRegression(), X[:, mask], Y, cv=5).mean())
    if direction == "backward":
        subsets.insert(0, np.ones(10, bool))
        scores.insert(0, cross_val_score(LinearRegression(), X, Y, cv=5).mean())
    np.testing.assert_allclose(search.scores_, scores, rtol=1e-8)
    np.testing.assert_array_equal(search.support_, subsets[int(np.argmax(scores))])
    assert 1 < search.n_features_to_select_ < 10


def test_tol_stops_the_search():
    options = {"tol": 0.01, "n_features_to_select": "auto"}
    ours = SequentialFeatureSelector(LinearRegression(), **options).fit(X, Y)
    theirs = sklearn.feature_selection.SequentialFeatureSelector(LinearRegression(), **options).fit(X, Y)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    assert (np.diff(ours.scores_) >= 0.01).all()


def test_collinear_columns_and_perfect_fits_are_fitted_one_by_one():
    doubled = np.hstack([X[:, :3], X[:, :1]])
    splits = list(KFold(3).split(X))
    assert subset_scores(LinearRegression(), doubled, Y, None, splits) is None
    search = SequentialFeatureSelector(LinearRegression(), n_features_to_select=2, cv=3).fit(doubled, Y)
    assert search.support_.sum() == 2
    exact = SequentialFeatureSelector(LinearRegression(), n_features_to_select="best", cv=3).fit(X, X[:, 2] * 2.0)
    assert exact.order_[0] == 2
    assert exact.scores_[0] == pytest.approx(1.0)


@pytest.mark.parametrize("model", [GaussianNB(), LogisticRegression(max_iter=500)], ids=lambda m: type(m).__name__)
def test_other_estimators(model):
    A, labels = load_iris(return_X_y=True)
    ours = SequentialFeatureSelector(model, n_features_to_select=2, cv=3).fit(A, labels)
    theirs = sklearn.feature_selection.SequentialFeatureSelector(model, n_features_to_select=2, cv=3).fit(A, labels)
    np.testing.assert_array_equal(ours.support_, theirs.support_)


def test_frames():
    frame = pd.DataFrame(X, columns=list("abcdefghij"))
    search = SequentialFeatureSelector(LinearRegression(), n_features_to_select=2).fit(frame, pd.Series(Y))
    assert search.get_feature_names_out().tolist() == ["c", "i"]
    assert search.set_output(transform="pandas").transform(frame).columns.tolist() == ["c", "i"]


def test_scikit_learn_checks():
    check_estimator(SequentialFeatureSelector(LinearRegression(), n_features_to_select=1, cv=2))


@pytest.mark.parametrize(
    ("options", "words"),
    [({"n_features_to_select": 10}, "must be < n_features"), ({"n_features_to_select": "most"}, "'auto', 'best'"),
     ({"direction": "up"}, "'forward', 'backward'"), ({"tol": -1.0}, "strictly positive"),
     ({"tol": "a"}, "None or a float")],
)  # fmt: skip
def test_bad_options(options, words):
    with pytest.raises(ParameterError, match=words):
        SequentialFeatureSelector(LinearRegression(), **options).fit(X, Y)
