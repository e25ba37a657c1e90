"""Baselines: weighted quantiles, classes drawn at random, one class, and targets that are not finite."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import summula
from summula.core.errors import DataError, ParameterError
from summula.dummy import DummyClassifier, DummyRegressor
from summula.ensemble import GradientBoostingClassifier


def test_weighted_quantiles_are_those_of_repeated_rows() -> None:
    y, weight = np.array([5.0, 1.0, 4.0, 2.0, 9.0]), np.array([1, 2, 0, 3, 1])
    X = np.zeros((5, 1))
    for q in (0.0, 0.3, 0.5, 1.0):
        model = DummyRegressor(strategy="quantile", quantile=q).fit(X, y, weight)
        expected = np.quantile(np.repeat(y, weight), q, method="averaged_inverted_cdf")
        assert model.constant_[0, 0] == expected


def test_numbers_of_classes_and_targets_are_known_after_the_fit() -> None:
    X = np.zeros((3, 1))
    model = DummyClassifier().fit(X, ["a", "b", "b"])
    assert (model.n_classes_, model.n_outputs_, DummyRegressor().fit(X, [1.0, 2.0, 3.0]).n_outputs_) == (2, 1, 1)
    with pytest.raises(NotFittedError):
        _ = DummyClassifier().n_classes_


@pytest.mark.parametrize("strategy", ["stratified", "uniform"])
def test_classes_are_drawn_for_each_row(strategy: str) -> None:
    X, y = np.zeros((20_000, 1)), np.repeat(["a", "b", "c"], [2_000, 6_000, 12_000])
    model = DummyClassifier(strategy=strategy, random_state=3).fit(X, y)
    shares = np.array([0.1, 0.3, 0.6]) if strategy == "stratified" else np.full(3, 1 / 3)
    found = model.predict(X)
    frequencies = [(found == label).mean() for label in model.classes_]
    np.testing.assert_allclose(frequencies, shares, atol=5 * np.sqrt(0.25 / len(X)))  # five standard deviations
    if strategy == "stratified":
        assert (model.classes_[model.predict_proba(X).argmax(axis=1)] == found).all()
        assert np.unique(model.predict_proba(X)).tolist() == [0.0, 1.0]
    else:
        np.testing.assert_allclose(model.predict_proba(X), 1 / 3)
    assert (model.predict(X) == found).all()
    with summula.engine("serial", chunk_rows=700):
        assert (model.predict(X) == found).all()
    assert (model.set_params(random_state=4).predict(X) != found).any()


def test_a_single_class_is_predicted() -> None:
    for strategy in ("prior", "most_frequent", "stratified", "uniform"):
        model = DummyClassifier(strategy=strategy).fit(np.zeros((3, 1)), ["a", "a", "a"])
        assert model.predict(np.zeros((2, 1))).tolist() == ["a", "a"]
        assert model.predict_proba(np.zeros((2, 1))).tolist() == [[1.0], [1.0]]


def test_boosting_starts_from_classes_drawn_for_each_row() -> None:
    X, y = np.arange(200.0)[:, None], np.arange(200) % 2
    init = DummyClassifier(strategy="stratified", random_state=0)
    model = GradientBoostingClassifier(init=init, n_estimators=1, max_depth=1).fit(X, y)
    assert len(np.unique(model.decision_function(X) > 0)) == 2


@pytest.mark.parametrize("strategy", ["mean", "median"])
def test_targets_that_are_not_finite_are_located(strategy: str) -> None:
    with pytest.raises(DataError, match=r"The target y has 1 missing value \(NaN; first at row 1\)"):
        DummyRegressor(strategy=strategy).fit(np.zeros((3, 1)), [0.0, np.nan, 2.0])


@pytest.mark.parametrize("constant", [None, "c", ["a"], np.array(["a", "b"])])
def test_a_constant_that_is_no_class_is_named_by_every_method(constant: object) -> None:
    """A parameter may have been changed after the fit, or in a file."""
    model = DummyClassifier(strategy="constant", constant="b").fit([[0.0], [1.0]], ["a", "b"])
    assert model.predict([[2.0]]).tolist() == ["b"]
    model.set_params(constant=constant)
    for call in (lambda: model.predict([[2.0]]), lambda: model.fit([[0.0], [1.0]], ["a", "b"])):
        with pytest.raises(ParameterError, match="is not a class of the target; choose from"):
            call()
