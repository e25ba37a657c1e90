"""The perceptron: hand computations, its mistake bound, inseparable data, its certificate."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import sklearn.linear_model as theirs
from hypothesis import assume, given
from hypothesis import strategies as st

from summula.linear_model import Perceptron
from summula.losses import perceptron_risk

CORNERS = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])


def separable(seed: int, n: int = 40, d: int = 3, margin: float = 0.1) -> tuple[Any, Any]:
    """Rows at least `margin` away from a random hyperplane."""
    rng = np.random.default_rng(seed)
    u, b = rng.normal(size=d), rng.normal() / 2
    X = rng.normal(size=(4 * n, d))
    distance = (X @ u + b) / np.linalg.norm(u)
    X = X[np.abs(distance) > margin][:n]
    return X, (X @ u + b > 0).astype(int)


def test_four_points_by_hand() -> None:
    """Without an intercept, eta = 1. Signs -, -, +, + for (1, 2), (2, 1), (-1, 0), (0, -1); w = 0 is wrong everywhere.

    (1, 2): w = (-1, -2). (2, 1): score -4, right. (-1, 0): score 1, right. (0, -1): score 2, right. Then all right.
    """
    X = np.array([[1.0, 2.0], [2.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    model = Perceptron(shuffle=False, fit_intercept=False).fit(X, [0, 0, 1, 1])
    np.testing.assert_array_equal(model.coef_, [[-1.0, -2.0]])
    assert model.mistakes_ == 1
    np.testing.assert_array_equal(model.mistakes_per_epoch_, [1, 0])
    assert model.n_iter_ == 2
    certificate = model.certificate_
    assert certificate.separated
    # The nearest row is (-1, 0): score 1, |w| = sqrt 5; the farthest has |x|^2 = 5.
    np.testing.assert_allclose(certificate.functional_margin, [1.0])
    np.testing.assert_allclose(certificate.geometric_margin, [1 / np.sqrt(5)])
    assert certificate.radius == pytest.approx(np.sqrt(5))
    np.testing.assert_allclose(certificate.mistake_bound, [25.0])


def test_and_by_hand() -> None:
    """The steps of the textbook example, with an intercept, in the order 00, 01, 10, 11 (label +1 for 11 alone)."""
    w, mistakes = np.zeros(3), []
    X, y = np.column_stack([CORNERS, np.ones(4)]), np.array([-1, -1, -1, 1])
    while not mistakes or mistakes[-1]:
        mistakes.append(0)
        for x, label in zip(X, y, strict=True):
            if label * (w @ x) <= 0:
                w, mistakes[-1] = w + label * x, mistakes[-1] + 1
    model = Perceptron(shuffle=False).fit(CORNERS, y)
    np.testing.assert_array_equal([*model.coef_[0], *model.intercept_], w)
    np.testing.assert_array_equal(model.mistakes_per_epoch_, mistakes)
    assert model.mistakes_ == sum(mistakes)


def test_a_row_on_the_hyperplane_is_wrong() -> None:
    """With < in place of <= the weights would never leave 0."""
    model = Perceptron(fit_intercept=False).fit(np.array([[1.0], [-1.0]]), [1, 0])
    np.testing.assert_array_equal(model.coef_, [[1.0]])
    never = Perceptron(fit_intercept=False, max_iter=3, tol=None).fit(np.array([[0.0], [1.0]]), [0, 1])
    np.testing.assert_array_equal(never.mistakes_per_epoch_ >= 1, [True] * 3)
    assert not never.certificate_.separated


@given(seed=st.integers(0, 10**6), intercept=st.booleans(), eta0=st.sampled_from([0.1, 1.0, 7.0]))
def test_the_mistake_bound_holds(seed: int, intercept: bool, eta0: float) -> None:
    X, y = separable(seed, d=2 + seed % 4)
    assume(0 < y.sum() < len(y))
    if not intercept:
        X = np.column_stack([X, np.ones(len(X))])
    model = Perceptron(fit_intercept=intercept, eta0=eta0, random_state=seed, tol=None, max_iter=100_000).fit(X, y)
    certificate = model.certificate_
    assert certificate.separated
    assert certificate.bound_applies
    assert certificate.bound_holds
    assert model.mistakes_ <= certificate.mistake_bound[0]
    assert model.mistakes_per_epoch_[-1] == 0
    assert model.score(X, y) == 1.0
    assert certificate.verify(X, y)
    extended = np.column_stack([X, np.full(len(X), float(intercept))])
    w = np.append(model.coef_[0], model.intercept_[0])
    distances = (2 * y - 1) * (extended @ w) / np.linalg.norm(w)
    assert certificate.geometric_margin[0] == pytest.approx(distances.min())
    assert certificate.radius == pytest.approx(np.linalg.norm(extended, axis=1).max())


def test_the_length_of_a_step_changes_the_length_of_the_weights_only() -> None:
    X, y = separable(3)
    one, two = (Perceptron(eta0=eta0).fit(X, y) for eta0 in (1.0, 2.0))
    np.testing.assert_allclose(two.coef_, 2 * one.coef_, rtol=1e-12)
    assert one.mistakes_ == two.mistakes_


@pytest.mark.parametrize("batch", [False, True])
def test_exclusive_or_is_not_separable(batch: bool) -> None:
    labels = [0, 1, 1, 0]
    model = Perceptron(batch=batch).fit(CORNERS, labels)
    certificate = model.certificate_
    assert not certificate.separated
    assert np.isinf(certificate.mistake_bound).all()
    assert str(certificate).startswith("not separated: risk ")
    assert certificate.verify(CORNERS, labels)
    strict = Perceptron(batch=batch, require_separation=True, max_iter=50)
    with pytest.raises(ValueError, match="No hyperplane that separates the classes was found in 50 epochs"):
        strict.fit(CORNERS, labels)
    assert not hasattr(strict, "coef_")


def test_products_of_columns_separate_it() -> None:
    X = np.column_stack([CORNERS, CORNERS[:, 0] * CORNERS[:, 1]])
    model = Perceptron(require_separation=True).fit(X, [0, 1, 1, 0])
    assert model.certificate_.separated
    assert str(model.certificate_).startswith("separated: geometric margin ")


def test_the_batch_rule_is_descent_on_the_risk() -> None:
    """From a point without rows on the hyperplane, one epoch is one step down the slope."""
    X, y = separable(5)
    w, b = np.array([0.3, -0.2, 0.5]), 0.1
    model = Perceptron(batch=True, max_iter=1, tol=None, eta0=0.01).fit(X, y, coef_init=w, intercept_init=b)
    risk, slope = perceptron_risk(np.append(w, b), np.column_stack([X, np.ones(len(X))]), 2 * y - 1, gradient=True)
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), np.append(w, b) - 0.01 * slope, rtol=1e-12)
    assert risk > 0
    assert not model.certificate_.bound_applies


def test_the_batch_rule_separates() -> None:
    X, y = separable(6)
    model = Perceptron(batch=True, require_separation=True).fit(X, y)
    assert model.score(X, y) == 1.0
    assert model.mistakes_per_epoch_[-1] == 0


def test_several_classes_have_a_bound_each() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = 6 * np.array([[0.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])[y] + rng.normal(size=(90, 2))
    model = Perceptron(tol=None).fit(X, y)
    certificate = model.certificate_
    assert certificate.separated
    assert certificate.mistakes.shape == certificate.mistake_bound.shape == (3,)
    assert certificate.mistakes.sum() == model.mistakes_ == model.mistakes_per_epoch_.sum()
    assert certificate.bound_holds
    assert certificate.verify(X, y)


def test_a_false_certificate_is_not_verified() -> None:
    X, y = separable(8)
    certificate = Perceptron(require_separation=True).fit(X, y).certificate_
    assert certificate.verify(X, y)
    assert not certificate.verify(X, 1 - y)
    for change in (
        {"coef": -certificate.coef},
        {"separated": False},
        {"geometric_margin": 2 * certificate.geometric_margin},
        {"radius": 2 * certificate.radius},
        {"primal": 1.0},
    ):
        assert not dataclasses.replace(certificate, **change).verify(X, y)


def test_the_bound_is_claimed_for_plain_steps_only() -> None:
    X, y = separable(9)
    assert Perceptron().fit(X, y).certificate_.bound_applies
    assert not Perceptron(class_weight="balanced").fit(X, y).certificate_.bound_applies
    assert Perceptron().fit(X, y, sample_weight=np.ones(len(X))).certificate_.bound_applies
    assert not Perceptron().fit(X, y, sample_weight=1.0 + y).certificate_.bound_applies
    assert not Perceptron().fit(X, y, coef_init=np.ones(3)).certificate_.bound_applies
    assert not Perceptron(penalty="l2").fit(X, y).certificate_.bound_applies


@pytest.mark.parametrize("settings", [{}, {"penalty": "l2"}, {"penalty": "l1"}, {"class_weight": "balanced"}])
def test_in_the_same_order_the_weights_are_scikit_learns(settings: dict[str, Any]) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 4))
    y = np.digitize(X @ rng.normal(size=4) + rng.normal(size=300), [-1.0, 1.0])
    given = {"shuffle": False, "max_iter": 5, "tol": None} | settings
    model, expected = Perceptron(**given).fit(X, y), theirs.Perceptron(**given).fit(X, y)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.intercept_, expected.intercept_, rtol=1e-12)


def test_parts_add_their_mistakes() -> None:
    X, y = separable(2)
    model = Perceptron(shuffle=False)
    counts = [model.partial_fit(X, y, classes=[0, 1]).mistakes_ for _ in range(3)]
    assert counts == sorted(counts)
    assert len(model.mistakes_per_epoch_) == 3


@pytest.mark.parametrize("name", ["batch", "require_separation"])
def test_settings_that_do_not_go_together(name: str) -> None:
    X, y = separable(1)
    with pytest.raises(ValueError, match=f"{name}=True cannot be combined with a penalty"):
        Perceptron(penalty="l2", **{name: True}).fit(X, y)
    with pytest.raises(ValueError, match=f"{name}=True cannot be combined with early_stopping"):
        Perceptron(early_stopping=True, **{name: True}).fit(X, y)


# ------------------------------------------------------------------------------------------------------------ the risk


def test_the_risk_and_its_slope() -> None:
    X, y = separable(4)
    w, signs = np.array([0.4, -0.1, 0.2]), 2 * y - 1
    value, slope = perceptron_risk(w, X, signs, gradient=True)
    assert value == perceptron_risk(w, X, signs) == pytest.approx(np.maximum(-signs * (X @ w), 0).sum())
    h = 1e-7
    numeric = [
        (perceptron_risk(w + h * e, X, signs) - perceptron_risk(w - h * e, X, signs)) / (2 * h) for e in np.eye(3)
    ]
    np.testing.assert_allclose(slope, numeric, rtol=1e-6)


def test_the_risk_at_zero_is_zero_and_its_slope_is_not() -> None:
    value, slope = perceptron_risk(np.zeros(2), CORNERS, [-1, -1, -1, 1], gradient=True)
    assert value == 0.0
    np.testing.assert_array_equal(slope, [0.0, 0.0])  # rows 01 and 10 against 11
    value, slope = perceptron_risk(np.zeros(2), CORNERS, [1, 1, 1, 1], gradient=True)
    np.testing.assert_array_equal(slope, [-2.0, -2.0])


def test_the_risk_wants_signs() -> None:
    with pytest.raises(ValueError, match="labels -1 and 1"):
        perceptron_risk(np.zeros(2), CORNERS, [0, 1, 1, 0])
    with pytest.raises(ValueError, match="one weight per column"):
        perceptron_risk(np.zeros(3), CORNERS, [1, 1, 1, 1])
