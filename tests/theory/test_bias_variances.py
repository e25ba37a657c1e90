"""The bias-variance decomposition: against closed forms of least squares, and its own identities."""

from __future__ import annotations

import math

import numpy as np
import pytest

from summula.core.errors import DataError, ParameterError
from summula.dummy import DummyRegressor
from summula.ensemble import RandomForestRegressor
from summula.linear_model import LinearRegression, LogisticRegression
from summula.theory import bias_variance

SIGMA = 0.5
DESIGN = np.random.default_rng(1).normal(size=(40, 3))


def truth(X):
    return X[:, 0] + X[:, 1] ** 2


def at_design(rng):
    """New noise at fixed rows: bias and variance of least squares are known."""
    return DESIGN, truth(DESIGN) + rng.normal(0.0, SIGMA, len(DESIGN))


def fresh(rng):
    X = rng.normal(size=(60, 3))
    return X, truth(X) + rng.normal(0.0, SIGMA, 60)


def test_least_squares_at_fixed_rows():
    """With the hat matrix H: variance = sigma^2 tr(H) / n, bias^2 = |(I - H) t|^2 / n."""
    A = np.column_stack([np.ones(len(DESIGN)), DESIGN])
    H = A @ np.linalg.pinv(A)
    t = truth(DESIGN)
    found = bias_variance(LinearRegression(), at_design, truth, n_fits=2_000, random_state=0)
    assert abs(found.variance - SIGMA**2 * 4 / 40) < 4 * found.variance_se
    assert abs(found.bias_squared - ((t - H @ t) ** 2).mean()) < 4 * found.bias_squared_se
    assert abs(found.noise - SIGMA**2) < 4 * found.noise_se
    np.testing.assert_allclose(found.mean_prediction, H @ t, atol=5 * SIGMA / math.sqrt(2_000))
    np.testing.assert_allclose(found.prediction_variance, SIGMA**2 * np.diag(H), rtol=0.25)
    # The standard errors are those of the theory, too: variance is a mean of chi-square variables.
    assert found.variance_se == pytest.approx(SIGMA**2 / 40 * math.sqrt(2 * 4 / 2_000), rel=0.1)


def test_the_mean_of_y_has_its_textbook_variance():
    found = bias_variance(DummyRegressor(), fresh, truth, n_fits=1_500, random_state=0)
    assert abs(found.variance - (1.0 + 2.0 + SIGMA**2) / 60) < 4 * found.variance_se
    t = truth(found.X)
    assert abs(found.bias_squared - ((t - 1.0) ** 2).mean()) < 4 * found.bias_squared_se


def test_the_parts_add_up_exactly():
    found = bias_variance(LinearRegression(), fresh, truth, n_fits=20, random_state=3)
    t = truth(found.X)
    recombined = ((found.mean_prediction - t) ** 2).mean() + found.prediction_variance.mean() * 19 / 20
    assert found.bias_squared + found.variance == pytest.approx(recombined, rel=1e-12)


def test_the_sum_is_the_error_on_new_rows():
    found = bias_variance(LinearRegression(), fresh, truth, n_fits=300, random_state=0, test=fresh_many())
    total = found.bias_squared + found.variance + found.noise
    assert total == pytest.approx(found.error, rel=0.03)


def fresh_many():
    rng = np.random.default_rng(99)
    X = rng.normal(size=(20_000, 3))
    return X, truth(X) + rng.normal(0.0, SIGMA, 20_000)


def test_bias_zero_is_estimated_without_bias():
    """A model that contains the truth: the uncorrected estimate would be variance / n_fits on average."""

    def line(rng):
        return DESIGN, DESIGN[:, 0] + rng.normal(0.0, SIGMA, len(DESIGN))

    found = [bias_variance(LinearRegression(), line, lambda X: X[:, 0], n_fits=5, random_state=k) for k in range(200)]
    values = np.array([one.bias_squared for one in found])
    assert abs(values.mean()) < 4 * values.std() / math.sqrt(len(values))
    assert np.mean([one.variance for one in found]) / 5 > 4 * values.std() / math.sqrt(len(values)), "it would show"


def test_the_jackknife_is_that_of_explicit_refits():
    found = bias_variance(LinearRegression(), at_design, truth, n_fits=6, random_state=0)
    seeds = _samples(0, 6)
    F = np.array([LinearRegression().fit(*at_design(rng)).predict(found.X) for rng in seeds])
    np.testing.assert_allclose(F.mean(axis=0), found.mean_prediction, rtol=1e-12)
    t, variances, biases = truth(found.X), [], []
    for r in range(6):
        kept = np.delete(F, r, axis=0)
        variances.append(kept.var(axis=0, ddof=1).mean())
        biases.append(((kept.mean(axis=0) - t) ** 2).mean() - variances[-1] / 5)
    for values, se in ((variances, found.variance_se), (biases, found.bias_squared_se)):
        assert se == pytest.approx(math.sqrt(5 / 6 * np.sum((np.array(values) - np.mean(values)) ** 2)), rel=1e-9)


def _samples(random_state, n):
    from summula.core.engine.random import draw_seed

    seed = draw_seed(random_state)
    return [np.random.default_rng([seed, r]) for r in range(1, n + 1)]


def test_without_the_truth_noise_is_part_of_the_bias():
    with_truth = bias_variance(LinearRegression(), fresh, truth, n_fits=30, random_state=0)
    without = bias_variance(LinearRegression(), fresh, n_fits=30, random_state=0)
    assert without.noise == 0.0
    assert without.variance == with_truth.variance
    assert without.bias_squared + without.variance == pytest.approx(without.error, rel=1e-12)


def test_the_same_seed_gives_the_same_numbers_and_the_estimator_stays_as_it_was():
    model = RandomForestRegressor(n_estimators=3, random_state=0)
    one, other = (bias_variance(model, fresh, truth, n_fits=4, random_state=7) for _ in range(2))
    assert one.variance == other.variance
    assert not hasattr(model, "n_features_in_")
    assert "squared error" in str(one)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"estimator": LogisticRegression()}, ParameterError, "predicts classes"),
        ({"estimator": 3}, ParameterError, "needs an estimator and a function"),
        ({"sampler": DESIGN}, ParameterError, "needs an estimator and a function"),
        ({"sampler": lambda: fresh(None)}, ParameterError, "needs an estimator and a function"),
        ({"n_fits": 2}, ParameterError, "n_fits must be an int >= 3; got 2"),
        ({"sampler": lambda rng: DESIGN}, DataError, "a tuple of X and y; got ndarray"),
        ({"truth": lambda X: 0.0}, DataError, r"truth\(X\) must contain 60 numbers, one per row"),
        ({"truth": lambda X: np.full(60, np.nan)}, DataError, r"truth\(X\) is nan at row 0"),
        ({"sampler": lambda rng: (DESIGN, ["a"] * 40)}, DataError, "y of the test rows must contain numbers"),
    ],
)
def test_bad_input(changes, error, message):
    given = {"estimator": LinearRegression(), "sampler": fresh, "truth": truth, "n_fits": 3} | changes
    with pytest.raises(error, match=message):
        bias_variance(**given, random_state=0)
