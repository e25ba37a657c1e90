"""Gaussian naive Bayes: closed forms by hand, scikit-learn's model, smoothing, priors, and rows class by class."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.naive_bayes import GaussianNB as Rival

import summula
from summula.naive_bayes import GaussianNB

# Sex from height (feet), weight (pounds) and foot size (inches): the worked example of Wikipedia, "Naive Bayes classifier".
PEOPLE = np.array([[6.0, 180, 12], [5.92, 190, 11], [5.58, 170, 12], [5.92, 165, 10],
                   [5.0, 100, 6], [5.5, 150, 8], [5.42, 130, 7], [5.75, 150, 9]])  # fmt: skip
SEX = np.repeat(["male", "female"], 4)


def test_means_and_variances_of_a_published_example() -> None:
    """The published example uses unbiased variances: those of the model times 4 / 3."""
    model = GaussianNB(var_smoothing=0.0).fit(PEOPLE, SEX)
    assert model.classes_.tolist() == ["female", "male"]
    assert_allclose(model.theta_, [[5.4175, 132.5, 7.5], [5.855, 176.25, 11.25]])
    assert_allclose(model.var_ * 4 / 3, [[9.7225e-2, 5.5833e2, 1.6667], [3.5033e-2, 1.2292e2, 9.1667e-1]], rtol=1e-4)
    assert model.predict([[6.0, 130.0, 8.0]]).tolist() == ["female"]


def test_the_joint_density_is_the_product_of_normal_densities() -> None:
    model = GaussianNB(priors=[0.25, 0.75]).fit(PEOPLE, SEX)
    row = np.array([6.0, 130.0, 8.0])
    expected = [
        np.log(prior) + stats.norm.logpdf(row, mean, np.sqrt(var)).sum()
        for prior, mean, var in zip([0.25, 0.75], model.theta_, model.var_, strict=True)
    ]
    assert_allclose(model.predict_joint_log_proba([row])[0], expected, rtol=1e-12)
    assert_allclose(model.predict_log_proba([row])[0], expected - np.logaddexp(*expected), rtol=1e-12, atol=1e-14)
    assert_allclose(model.score_samples([row]), np.logaddexp(*expected), rtol=1e-12)


def data(n: int = 2_000, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, n)
    X = rng.normal(size=(n, 5)) * (1 + y[:, None]) + 2.0 * y[:, None] * [1, 0, -1, 0, 0.5]
    return X, y, rng.integers(1, 4, n).astype(float)


@pytest.mark.parametrize("options", [{}, {"var_smoothing": 0.01}, {"priors": [0.1, 0.2, 0.3, 0.4]}], ids=str)
def test_it_is_scikit_learns_model(options: dict[str, Any]) -> None:
    X, y, weight = data()
    ours, theirs = GaussianNB(**options).fit(X, y), Rival(**options).fit(X, y)
    for name in ("theta_", "var_", "class_count_", "class_prior_", "epsilon_"):
        assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-12, atol=1e-14, err_msg=name)
    assert_allclose(ours.predict_joint_log_proba(X), theirs.predict_joint_log_proba(X), rtol=1e-11)
    assert_array_equal(ours.predict(X), theirs.predict(X))
    weighted = Rival(**options, var_smoothing=0.0) if not options else Rival(**options)
    expected = weighted.fit(X, y, weight)
    found = GaussianNB(**weighted.get_params()).fit(X, y, weight)
    assert_allclose(found.theta_, expected.theta_, rtol=1e-12, atol=1e-14)
    # (scikit-learn smooths by the unweighted variance.)
    assert_allclose(found.var_ - found.epsilon_, expected.var_ - expected.epsilon_, rtol=1e-10)


def test_parts_are_added_as_scikit_learn_adds_them() -> None:
    X, y, weight = data()
    ours, theirs = GaussianNB(var_smoothing=0.0), Rival(var_smoothing=0.0)
    for rows in (slice(300), slice(300, 700), slice(700, None)):
        for model in (ours, theirs):
            model.partial_fit(X[rows], y[rows], classes=range(5), sample_weight=weight[rows])
    assert_allclose(ours.theta_[:4], theirs.theta_[:4], rtol=1e-12, atol=1e-13)
    assert_allclose(ours.var_[:4], theirs.var_[:4], rtol=1e-11)
    assert ours.class_count_[4] == 0
    assert not ours.predict_proba(X)[:, 4].any()


def test_a_constant_feature_decides_where_nothing_is_smoothed() -> None:
    X = np.array([[0.0, 1.0], [0.0, 2.0], [1.0, 1.0], [1.0, 2.5]])
    model = GaussianNB(var_smoothing=0.0).fit(X, [0, 0, 1, 1])
    assert_array_equal(model.predict_proba([[0.0, 1.5], [1.0, 1.5]]), [[1.0, 0.0], [0.0, 1.0]])


def test_a_prior_of_zero_excludes_a_class() -> None:
    X, y, _ = data()
    model = GaussianNB(priors=[0.0, 0.5, 0.25, 0.25]).fit(X, y)
    assert 0 not in model.predict(X)
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize(
    ("priors", "words"),
    [
        ([0.5, 0.5], "Number of priors must match number of classes"),
        ([0.5, 0.5, 0.5, 0.5], "The sum of the priors should be 1"),
        ([-0.5, 0.5, 0.5, 0.5], "Priors must be non-negative"),
    ],
)
def test_bad_priors_are_refused(priors: list[float], words: str) -> None:
    X, y, _ = data(100)
    with pytest.raises(summula.ParameterError, match=words):
        GaussianNB(priors=priors).fit(X, y)


def test_the_certificate_is_that_of_the_likelihood() -> None:
    X, y, weight = data()
    model = GaussianNB().fit(X, y, weight)
    likelihood = weight @ model.predict_joint_log_proba(X)[np.arange(len(y)), y]
    smoothing = weight @ (model.epsilon_ / model.var_[y]).sum(axis=1) / 2
    assert model.certificate_.primal == pytest.approx(smoothing - likelihood, rel=1e-12)
    assert model.certificate_.verify(X, y, weight)
    assert not model.certificate_.verify(X + 0.01, y, weight)


def with_gaps() -> tuple[Any, Any]:
    """Rows with a fifth of the values, and all values of one row, missing."""
    X, y, _ = data()
    X = np.array(X)
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    X[0] = np.nan
    return X, y


def test_missing_values_are_left_out_of_their_columns() -> None:
    X, y = with_gaps()
    model = GaussianNB(var_smoothing=0.0).fit(X, y)
    for k in range(4):
        assert_allclose(model.theta_[k], np.nanmean(X[y == k], axis=0), rtol=1e-12)
        assert_allclose(model.var_[k], np.nanvar(X[y == k], axis=0), rtol=1e-12)
    assert_array_equal(model.class_count_, np.bincount(y))
    assert model.certificate_.verify(X, y)


def test_missing_values_are_integrated_out_of_densities() -> None:
    X, y = with_gaps()
    model = GaussianNB().fit(X, y)
    expected = np.tile(np.log(model.class_prior_), (len(X), 1))
    for k in range(4):
        logs = stats.norm(model.theta_[k], np.sqrt(model.var_[k])).logpdf(X)
        expected[:, k] += np.nansum(logs, axis=1)
    assert_allclose(model.predict_joint_log_proba(X), expected, rtol=1e-10)
    assert_allclose(model.predict_proba(X[:1])[0], model.class_prior_, rtol=1e-12)


def test_a_column_missing_throughout_a_class_tells_nothing_about_it() -> None:
    X, y = with_gaps()
    X[y == 2, 1] = np.nan
    model = GaussianNB(var_smoothing=0.0).fit(X, y)
    assert model.theta_[2, 1] == pytest.approx(np.nanmean(X[:, 1]))
    assert model.var_[2, 1] == pytest.approx(np.nanvar(X[:, 1]))


def test_infinities_are_still_refused_in_the_fit_and_after() -> None:
    X, y = with_gaps()
    model = GaussianNB().fit(X, y)
    X[3, 1] = -np.inf
    with pytest.raises(summula.DataError, match="Column 1 has 1 infinite value"):
        GaussianNB().fit(X, y)
    with pytest.raises(summula.DataError, match="Column 1 has 1 infinite value"):
        model.predict(X)


def test_its_file_is_short() -> None:
    assert len(Path(str(sys.modules[GaussianNB.__module__].__file__)).read_text(encoding="utf-8").splitlines()) <= 120


def test_the_objective_is_that_of_the_rounded_means() -> None:
    """At 1e15 means have no digits below 0.125: the objective rises, and the gap contains the cost."""
    rng = np.random.default_rng(0)
    rows, y = rng.normal(size=(60, 3)) + 1e15, np.arange(60) % 2
    certificate = (model := GaussianNB().fit(rows, y)).certificate_
    away = (rows - model.theta_[y]) ** 2 + model.epsilon_  # (differences of close numbers are exact)
    value = (np.log(2 * np.pi * model.var_[y]) + away / model.var_[y]).sum() / 2 + 60 * np.log(2)
    assert_allclose(certificate.primal, value, rtol=1e-12)
    assert certificate.gap > 1e-3
    assert certificate.verify(rows, y)
