"""Compiled exponentials against NumPy's and SciPy's, one row at a time."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from summula.core.numerics.exponential_kernels import exp2
from summula.core.numerics.exponentials import FAR, exponential, sigmoid

ULP = np.finfo(np.float64).eps
rng = np.random.default_rng(0)
X = np.concatenate([np.linspace(-600, 600, 20_001), rng.normal(size=20_000), 1e-12 * rng.normal(size=99), [0.0, -0.0]])


def test_exponential_is_that_of_numpy() -> None:
    np.testing.assert_allclose(exponential(X), np.exp(X), rtol=3 * ULP)
    np.testing.assert_allclose(exponential(X, -0.5), np.exp(-0.5 * X), rtol=3 * ULP)


def test_powers_of_two_are_accurate_to_an_ulp() -> None:
    t = np.concatenate([np.linspace(-1_022, 1_023, 20_001), rng.normal(size=2_000), [0.0, -1.0, 0.5]])
    values = np.array([exp2(v) for v in t])
    exact = np.exp2(t.astype(np.longdouble))
    assert (np.abs(values - exact) <= 1.5 * np.spacing(exact.astype(np.float64))).all()
    np.testing.assert_array_equal([exp2(float(k)) for k in range(-1_022, 1_024)], np.ldexp(1.0, range(-1_022, 1_024)))
    assert exp2(-1_023.0) == 0.0


def test_sigmoid_is_that_of_scipy_in_both_tails() -> None:
    p, spread, tail = sigmoid(X)
    np.testing.assert_allclose(p, special.expit(X), rtol=4 * ULP)
    np.testing.assert_allclose(spread, special.expit(X) * special.expit(-X), rtol=6 * ULP)
    np.testing.assert_allclose(tail, np.log1p(np.exp(-np.abs(X))), rtol=6 * ULP)


def test_far_out_they_stop_and_a_missing_value_stays_one() -> None:
    far = np.array([-np.inf, -1e8, 1e8, np.inf, np.nan])
    with np.errstate(all="raise"):
        e, s = exponential(far), sigmoid(far)
    np.testing.assert_allclose(e[:4], np.exp([-FAR, -FAR, FAR, FAR]), rtol=3 * ULP)
    np.testing.assert_allclose(exponential(far, 2.0, 50.0)[:4], np.exp([-100, -100, 100, 100]), rtol=3 * ULP)
    np.testing.assert_allclose(s.p[:4], [0, 0, 1, 1], atol=1e-200)
    np.testing.assert_allclose(s.tail[:4], 0, atol=1e-200)
    assert np.isnan([e[4], s.p[4], s.spread[4], s.tail[4]]).all()


@pytest.mark.parametrize(
    "x", [X[::2], X.astype(np.float32), np.arange(-3, 4), np.zeros(0)], ids=["every second", "float32", "int", "none"]
)
def test_any_array_is_taken(x: np.ndarray) -> None:
    np.testing.assert_allclose(exponential(x), np.exp(x.astype(np.float64)), rtol=3 * ULP)
    np.testing.assert_allclose(sigmoid(x).p, special.expit(x.astype(np.float64)), rtol=4 * ULP)
