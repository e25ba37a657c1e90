"""Bayesian logistic regression: the mode, the posterior against grids, the evidence, calibrated predictions."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import special

import summula
from summula import DataError, ParameterError
from summula.linear_model import BayesianLogisticRegression, LogisticRegression


def data(n=80, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 0.5
    y = (rng.random(n) < special.expit(X @ np.linspace(1.0, -1.0, d))).astype(int)
    return X, y


def grid_posterior(X, y, scale, points):
    """P(y = 1) at some points and the posterior means, by brute force over intercept and one slope."""
    b, v = np.meshgrid(np.linspace(-6, 6, 301), np.linspace(-8, 8, 401), indexing="ij")
    log_p = -(v**2) / (2 * scale**2)
    for x, label in zip(X[:, 0], y, strict=True):
        log_p = log_p + special.log_expit((1 if label else -1) * (b + v * x))
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    return np.array([(p * special.expit(b + v * x)).sum() for x in points]), (p * b).sum(), (p * v).sum()


def test_the_mode_is_penalised_logistic_regression():
    X, y = data()
    model = BayesianLogisticRegression(prior_scale=2.0).fit(X, y)
    other = LogisticRegression(C=4.0, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-6)
    np.testing.assert_allclose(model.intercept_, other.intercept_, rtol=1e-6)
    assert model.certificate_.verify(X, y)


def test_the_covariance_is_the_inverse_curvature():
    X, y = data(d=3)
    model = BayesianLogisticRegression(prior_scale=1.5).fit(X, y)
    Z = np.column_stack([np.ones(len(y)), X])
    p = special.expit(Z @ np.append(model.intercept_, model.coef_))
    H = Z.T @ (Z * (p * (1 - p))[:, None]) + np.diag([0.0, *np.full(3, 1 / 1.5**2)])
    np.testing.assert_allclose(model.posterior_covariance(), np.linalg.inv(H), rtol=1e-6)
    ends = model.credible_intervals(0.9)
    np.testing.assert_allclose(ends.mean(axis=1), np.append(model.intercept_, model.coef_), rtol=1e-9)
    np.testing.assert_allclose(np.diff(ends)[:, 0], 2 * 1.6448536 * np.sqrt(np.diag(np.linalg.inv(H))), rtol=1e-6)


def test_probit_is_near_the_gaussian_integral():
    X, y = data()
    model = BayesianLogisticRegression(prior_scale=3.0).fit(X, y)
    Z = np.column_stack([np.ones(len(y)), X])
    mean, spread = Z @ np.append(model.intercept_, model.coef_), np.sqrt((Z @ model.posterior_covariance() * Z).sum(1))
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    exact = special.expit(mean[:, None] + spread[:, None] * nodes) @ weights / weights.sum()
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], exact, atol=0.02)


@pytest.mark.parametrize("n", [6, 60])
def test_sampling_is_the_true_posterior(n):
    X, y = data(n, 1, seed=3)
    points = np.array([-2.0, 0.0, 1.0, 4.0])
    expected, _, slope = grid_posterior(X, y, 1.5, points)
    model = BayesianLogisticRegression(1.5, predictive="sampling", n_samples=40_000, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(points[:, None])[:, 1], expected, atol=0.01)
    assert model.effective_samples_ > 10_000
    low, high = model.credible_intervals(0.95)[1]
    assert low < slope < high


def test_doubt_grows_away_from_the_data():
    X, y = data(30, 1)
    sure = BayesianLogisticRegression(5.0, predictive="map").fit(X, y)
    doubtful = BayesianLogisticRegression(5.0).fit(X, y)
    far = np.array([[30.0], [-30.0]])
    assert (np.abs(doubtful.predict_proba(far)[:, 1] - 0.5) < np.abs(sure.predict_proba(far)[:, 1] - 0.5)).all()
    np.testing.assert_array_equal(doubtful.predict(X), sure.predict(X))
    np.testing.assert_allclose(doubtful.predict_proba(X).sum(axis=1), 1.0)


def test_the_evidence_chooses_a_scale():
    X, y = data(300, 5)
    found = BayesianLogisticRegression("evidence").fit(X, y)
    s = found.prior_scale_
    for other in (s / 1.3, s * 1.3):
        assert BayesianLogisticRegression(other).fit(X, y).log_evidence_ < found.log_evidence_
    assert found.log_evidence_ == pytest.approx(BayesianLogisticRegression(s).fit(X, y).log_evidence_, rel=1e-8)


def test_storage_seeds_and_pickles(tmp_path):
    X, y = data(500, 3)
    words = np.where(y == 1, "yes", "no")
    model = BayesianLogisticRegression(predictive="sampling", n_samples=200, random_state=7).fit(X, words)
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=words)
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=90)
    by_file = BayesianLogisticRegression(predictive="sampling", n_samples=200, random_state=7)
    by_file.fit(summula.scan(tmp_path / "rows.parquet"), "y")
    np.testing.assert_array_equal(by_file.coef_, model.coef_)
    np.testing.assert_allclose(by_file.predict_proba(frame.drop(columns="y")), model.predict_proba(X), rtol=1e-9)
    assert set(model.predict(X)) <= {"yes", "no"}
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), model.predict_proba(X))
    summula.save(model, tmp_path / "m.summula")
    np.testing.assert_array_equal(summula.load(tmp_path / "m.summula").predict_proba(X), model.predict_proba(X))
    assert model.score(X, words) == pytest.approx((model.predict(X) == words).mean())


def test_weights_are_repetitions():
    X, y = data()
    w = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = BayesianLogisticRegression().fit(X, y, w)
    repeated = BayesianLogisticRegression().fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-5)
    np.testing.assert_allclose(weighted.posterior_covariance(), repeated.posterior_covariance(), rtol=1e-5)


def test_a_tolerance_whose_square_overflows_stops_at_once():
    X, y = data()
    assert len(BayesianLogisticRegression(tol=1e300).fit(X, y).predict(X)) == len(y)


def test_bad_input():
    X, y = data()
    with pytest.raises(DataError, match="needs two classes, but y has 3"):
        BayesianLogisticRegression().fit(X, np.arange(len(y)) % 3)
    for scale in (-1.0, 1e-300, 1e300):
        with pytest.raises(ParameterError, match="prior_scale"):
            BayesianLogisticRegression(prior_scale=scale).fit(X, y)
    with pytest.raises(ParameterError, match="at most 50 columns"):
        BayesianLogisticRegression(predictive="sampling").fit(np.random.default_rng(0).normal(size=(80, 60)), y)
    with pytest.raises(ParameterError, match="level"):
        BayesianLogisticRegression().fit(X, y).credible_intervals(1.5)


def test_scores_are_log_odds_of_the_averaged_probabilities():
    X, y = data()
    model = BayesianLogisticRegression().fit(X, y)
    p = model.predict_proba(X)
    np.testing.assert_allclose(model.decision_function(X), np.log(p[:, 1] / p[:, 0]), rtol=1e-10)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), p, rtol=1e-14)


def test_predictions_go_to_a_file(tmp_path):
    X, y = data()
    model = BayesianLogisticRegression().fit(X, y)
    assert (
        model.predict_to(X, tmp_path / "labels.csv") == model.predict_to(X, tmp_path / "shares.csv", proba=True) == 80
    )
    np.testing.assert_array_equal(pd.read_csv(tmp_path / "labels.csv")["prediction"], model.predict(X))
    np.testing.assert_allclose(pd.read_csv(tmp_path / "shares.csv")[["0", "1"]], model.predict_proba(X))
