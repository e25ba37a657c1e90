"""AdaBoost: the algorithm by definition, scikit-learn's results, the bound on the training error, bad input."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.ensemble
from sklearn.neighbors import KNeighborsClassifier

import summula
from summula.core.errors import DataError, ParameterError
from summula.ensemble import AdaBoostClassifier, GradientBoostingClassifier
from summula.linear_model import LogisticRegression
from summula.tree import DecisionTreeClassifier
from tests.reference import ada_boost as plain

classes = pytest.mark.parametrize("k", [2, 3])


def rows(n=300, d=4, k=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(np.float32).astype(float)
    score = X[:, 0] + X[:, 1] ** 2 + 0.7 * rng.normal(size=n)
    return X, np.searchsorted(np.quantile(score, np.arange(1, k) / k), score)


@classes
def test_weights_and_votes_are_those_of_the_definition(k):
    X, y = rows(60, 2, k)
    votes, alphas, errors = plain.votes(X, y, k, 6)
    model = AdaBoostClassifier(n_estimators=6).fit(X, y)
    np.testing.assert_allclose(model.estimator_weights_, alphas, rtol=1e-12)
    np.testing.assert_allclose(model.estimator_errors_, errors, rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X), votes.argmax(axis=1))


@classes
@pytest.mark.parametrize("depth", [1, 2])
def test_scikit_learns_scores(k, depth):
    X, y = rows(k=k)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    ours = AdaBoostClassifier(DecisionTreeClassifier(max_depth=depth), n_estimators=12, learning_rate=0.8)
    base = sklearn.tree.DecisionTreeClassifier(max_depth=depth)
    theirs = sklearn.ensemble.AdaBoostClassifier(base, n_estimators=12, learning_rate=0.8, random_state=0)
    ours.fit(X, y, weight)
    theirs.fit(X, y, weight)
    np.testing.assert_allclose(ours.estimator_weights_, theirs.estimator_weights_, rtol=1e-9)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-12)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-12)
    np.testing.assert_allclose(ours.feature_importances_, theirs.feature_importances_, atol=1e-12)
    for a, b in zip(ours.staged_predict_proba(X), theirs.staged_predict_proba(X), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)


def test_the_bound_is_the_product_of_the_normalisers():
    X, y = rows()
    model = AdaBoostClassifier(n_estimators=30).fit(X, y)
    e, a = model.estimator_errors_, model.estimator_weights_
    product = np.prod((1 - e) * np.exp(-a / 2) + e * np.exp(a / 2))
    certificate = model.certificate_
    assert certificate.bound == pytest.approx(product, rel=1e-10)
    assert product == pytest.approx(np.prod(2 * np.sqrt(e * (1 - e))), rel=1e-10)
    assert certificate.training_error == pytest.approx(1 - model.score(X, y))
    assert certificate.training_error <= certificate.bound
    assert "by the product bound" in str(certificate)


@classes
def test_margins_measure_confidence_of_the_vote(k):
    X, y = rows(k=k)
    model = AdaBoostClassifier(n_estimators=10).fit(X, y)
    margins = model.certificate_.margins
    assert (np.diff(margins) >= 0).all()
    assert margins[0] >= -1
    assert margins[-1] <= 1
    assert np.mean(margins <= 0) == pytest.approx(model.certificate_.training_error, abs=0.02)


def test_the_certificate_is_checked_on_the_data():
    X, y = rows()
    weight = np.arange(len(y)) % 3.0
    certificate = AdaBoostClassifier(n_estimators=10).fit(X, y, weight).certificate_
    assert certificate.verify(X, y, weight)
    assert not certificate.verify(X, y)
    assert not certificate.verify(X[::-1], y, weight)


def test_any_classifier_with_weights_is_boosted(tmp_path):
    X, y = rows()
    labels = np.array(["no", "yes"])[y]
    model = AdaBoostClassifier(LogisticRegression(C=0.1), n_estimators=4).fit(X, labels)
    assert all(isinstance(learner, LogisticRegression) for learner in model.estimators_)
    assert model.certificate_.verify(X, labels)
    assert not hasattr(model, "feature_importances_")
    *_, last = model.staged_predict(X)
    np.testing.assert_array_equal(last, model.predict(X))
    summula.save(model, tmp_path / "model.safetensors")
    np.testing.assert_array_equal(summula.load(tmp_path / "model.safetensors").predict_proba(X), model.predict_proba(X))


def test_learners_as_estimators():
    X, y = rows()
    model = AdaBoostClassifier(n_estimators=3).fit(X, y)
    votes = sum(a * (t.predict(X) == 1) for a, t in zip(model.estimator_weights_, model.estimators_, strict=True))
    share = votes / model.estimator_weights_.sum()
    np.testing.assert_allclose(model.decision_function(X), 2 * (2 * share - 1), atol=1e-12)
    assert model.estimators_[0].get_depth() == 1


def test_a_perfect_learner_ends_the_rounds():
    X = np.arange(10.0)[:, None]
    model = AdaBoostClassifier().fit(X, X[:, 0] > 4)
    assert len(model.estimators_) == 1
    assert model.estimator_weights_.tolist() == [1.0]
    assert model.certificate_.training_error == 0.0


def test_weights_that_overflow_end_the_rounds():
    X, y = rows(k=3)
    with pytest.warns(UserWarning, match="reached infinite values"):
        model = AdaBoostClassifier(n_estimators=30, learning_rate=1000.0).fit(X, y)
    assert len(model.estimators_) < 30


def test_bad_input():
    X, y = rows(40)
    with pytest.raises(ParameterError, match="KNeighborsClassifier doesn't support sample_weight"):
        AdaBoostClassifier(KNeighborsClassifier()).fit(X, y)
    with pytest.raises(DataError, match="worse than random"):
        AdaBoostClassifier().fit(np.zeros((4, 1)), [0, 1, 0, 1])
    one = AdaBoostClassifier().fit(X, np.zeros(40))
    np.testing.assert_array_equal(one.predict_proba(X), np.ones((40, 1)))
    np.testing.assert_array_equal(one.predict(X), np.zeros(40))


def test_trees_without_splits_have_importances_of_zero():
    X, _ = rows(20)
    np.testing.assert_array_equal(
        AdaBoostClassifier(n_estimators=2).fit(X, np.zeros(20)).feature_importances_, np.zeros(4)
    )


@pytest.mark.parametrize("model", [AdaBoostClassifier(n_estimators=3), GradientBoostingClassifier(n_estimators=3)])
def test_a_model_is_the_sequence_of_its_learners(model):
    X, y = rows(k=2)
    model.fit(X, y)
    assert len(model) == len(list(model)) == 3
    last = np.ravel(np.asarray(model[-1], object))[0]
    np.testing.assert_array_equal(last.predict(X), np.ravel(np.asarray(list(model)[2], object))[0].predict(X))
