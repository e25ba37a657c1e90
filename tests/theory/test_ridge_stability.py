"""The stability bound of ridge regression: by hand, as an inverse, against a simulation, and its conditions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from summula.core.errors import DataError, ParameterError
from summula.linear_model import Ridge
from summula.theory import ridge_stability


def test_by_hand() -> None:
    # 150 * 4 / 0.01 = 60,000 rows; lambda = 0.1 / 12; alpha = 2 lambda m = 1,000.
    bound = ridge_stability(2.0, epsilon=0.1)
    assert bound.n_samples == 60_000
    assert bound.lambda_ == pytest.approx(0.1 / 12)
    assert bound.alpha == pytest.approx(1_000)
    assert not bound.vacuous
    back = ridge_stability(2.0, n_samples=60_000)
    assert back.epsilon == pytest.approx(0.1)
    assert back.alpha == pytest.approx(bound.alpha)
    assert ridge_stability(1.0, n_samples=500).vacuous


def test_alpha_is_the_closed_form_of_the_halved_loss() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, (400, 3))
    y = X @ [1.0, -0.5, 0.2]
    bound = ridge_stability(1.2, n_samples=400)
    closed = np.linalg.solve(X.T @ X + 2 * bound.lambda_ * 400 * np.eye(3), X.T @ y)
    np.testing.assert_allclose(Ridge(alpha=bound.alpha, fit_intercept=False).fit(X, y).coef_, closed, rtol=1e-12)


def test_expected_error_stays_within_epsilon_of_the_best() -> None:
    # x uniform on the axes' unit vectors: L(v) = mean_j 1/2 E (v_j - y)^2, known for every v.
    rng, d = np.random.default_rng(1), 20
    truth = np.where(np.arange(d) % 2, 0.3, -0.3)
    B = float(np.linalg.norm(truth))
    bound = ridge_stability(B, epsilon=0.4)
    noise = 0.7  # y = truth_j + or - 0.7, so |y| <= 1
    errors = []
    for _ in range(40):
        axis, sign = rng.integers(0, d, bound.n_samples), rng.choice([-1.0, 1.0], bound.n_samples)
        X, y = np.eye(d)[axis], truth[axis] + noise * sign
        bound.check(X, y)
        w = Ridge(alpha=bound.alpha, fit_intercept=False).fit(X, y).coef_
        errors.append(0.5 * float(np.mean((w - truth) ** 2)) + 0.5 * noise**2)
    least = 0.5 * noise**2
    excess = np.array(errors) - least
    assert excess.mean() + 3 * excess.std() / np.sqrt(len(excess)) <= bound.epsilon
    assert excess.mean() > 1e-3  # the penalty costs something, so that a wrong scale of alpha would show


def test_conditions() -> None:
    bound = ridge_stability(0.1, epsilon=0.9)
    assert bound.n_samples == 2
    X, y = np.array([[1.0, 0.0], [0.6, 0.8]]), np.array([1.0, -1.0])
    bound.check(X, y)
    bound.check(sparse.csr_array(X), y)
    with pytest.raises(DataError, match=r"\|\|x\|\| <= 1.*row 1"):
        bound.check(X * [[1.0], [2.0]], y)
    with pytest.raises(DataError, match=r"\|\|x\|\| <= 1"):
        bound.check(sparse.csr_array(X * 2), y)
    with pytest.raises(DataError, match=r"\|y\| <= 1.*row 0"):
        bound.check(X, y * [3.0, 1.0])
    with pytest.raises(DataError, match="row 1"):
        bound.check([[0.0, 0.0], [np.nan, 0.0]], y)
    with pytest.raises(DataError, match="needs 2 rows"):
        bound.check(X[:1], y[:1])
    with pytest.raises(DataError, match="one value per row"):
        bound.check(X, y[:1])


def test_bad_parameters() -> None:
    for B in (0.0, -1.0, np.inf, np.nan, True, 1e200, 1e-200):
        with pytest.raises(ParameterError, match="B must be"):
            ridge_stability(B, epsilon=0.1)
    for epsilon in (0.0, 1.0, np.nan, 1e-200):
        with pytest.raises(ParameterError, match="epsilon must be"):
            ridge_stability(1.0, epsilon=epsilon)
    for n in (0, 2.5, True):
        with pytest.raises(ParameterError, match="n_samples must be"):
            ridge_stability(1.0, n_samples=n)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="more than 150 are needed"):
        ridge_stability(1.0, n_samples=150)
    with pytest.raises(ParameterError, match="exactly one"):
        ridge_stability(1.0)
    with pytest.raises(ParameterError, match="exactly one"):
        ridge_stability(1.0, epsilon=0.1, n_samples=100)
