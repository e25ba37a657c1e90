"""Gradient descent and its stochastic form: rates and bounds of the textbook, divergence, seeds, error messages."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from summula import DataError, ParameterError
from summula.optimize import gradient_descent, sgd


def quadratic(d=4, kappa=20.0, seed=0):
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.normal(size=(d, d)))
    P, q = Q @ np.diag(np.geomspace(1, kappa, d)) @ Q.T, rng.normal(size=d)
    P = (P + P.T) / 2
    return P, q, lambda x: x @ P @ x / 2 + q @ x, lambda x: P @ x + q


# ------------------------------------------------------------------------------------------------- gradient descent


@pytest.mark.parametrize("step", [None, "backtracking", "secant", "golden", 0.02])
def test_it_finds_the_minimum_of_a_quadratic(step):
    P, q, f, g = quadratic()
    found = gradient_descent(f, np.ones(4), gradient=g, step=step)
    assert found.status == "converged"
    assert found.converged
    np.testing.assert_allclose(found.x, -np.linalg.solve(P, q), atol=2e-6)
    assert found.value == pytest.approx(-q @ np.linalg.solve(P, q) / 2, abs=1e-10)
    assert np.linalg.norm(g(found.x)) <= 1e-6
    assert len(found.trace) == len(found.path) == found.n_steps + 1
    assert found.trace[0] == f(np.ones(4))
    np.testing.assert_array_equal(found.path[-1], found.x)


@pytest.mark.parametrize("step", ["backtracking", "secant", "golden"])
def test_searches_never_go_up(step):
    _, _, f, g = quadratic()
    trace = gradient_descent(f, np.ones(4), gradient=g, step=step).trace
    assert all(later <= before + 1e-14 for before, later in itertools.pairwise(trace))


def test_a_step_of_one_over_L_has_the_rate_of_the_textbook():
    P, q, f, g = quadratic(kappa=10.0)
    found = gradient_descent(f, np.ones(4), gradient=g, lipschitz=10.0, tolerance=1e-9)
    lowest = -q @ np.linalg.solve(P, q) / 2
    excess = np.array(found.trace) - lowest
    # Nesterov, theorem 2.1.15: each step reduces the error by at least the fraction m/L = 1/10; squared for the value.
    for before, later in itertools.pairwise(excess[excess > 1e-12]):
        assert later <= (1 - 0.1) * before * (1 + 1e-9)
    # And the bound for convex functions, |x0 - x*|^2 L / (2k).
    far = np.sum((np.ones(4) + np.linalg.solve(P, q)) ** 2)
    assert all(excess[k] <= 10.0 * far / (2 * k) for k in range(1, len(excess)))


def test_the_gap_of_a_strongly_convex_function_is_a_bound():
    P, q, f, g = quadratic()
    lowest = -q @ np.linalg.solve(P, q) / 2
    for steps in (1, 3, 10, 30):
        found = gradient_descent(f, np.ones(4), gradient=g, lipschitz=20.0, strong_convexity=1.0, max_steps=steps)
        assert found.value - lowest <= found.gap < 1e3
    assert np.isnan(gradient_descent(f, np.ones(4), gradient=g).gap)


def test_a_step_of_two_over_L_is_refused_with_one_that_is_safe():
    _, _, f, g = quadratic()
    with pytest.raises(ParameterError, match=r"step=0\.1 is not below 2/L = 0\.1.* use step=0\.05 \(1/L\)"):
        gradient_descent(f, np.ones(4), gradient=g, step=0.1, lipschitz=20.0)
    assert gradient_descent(f, np.ones(4), gradient=g, step=0.099, lipschitz=20.0).converged


def test_divergence_is_detected_and_the_error_names_a_safe_step():
    _, _, f, g = quadratic(kappa=20.0)
    found = gradient_descent(f, np.ones(4), gradient=g, step=0.2)
    assert found.status == "diverged"
    assert not found.converged
    assert found.value <= f(np.ones(4))
    assert "2/L = 0.1 descend" in found.message
    assert "1/L = 0.05 is safe" in found.message
    safe = gradient_descent(f, np.ones(4), gradient=g, step=0.05)
    assert safe.converged


@pytest.mark.filterwarnings("error")
def test_divergence_to_infinity_is_silent_but_for_the_message():
    found = gradient_descent(lambda x: x**4, 10.0, gradient=lambda x: 4 * x**3, step=1.0)
    assert found.status == "diverged"
    assert "is safe" in found.message
    assert found.x == 10.0


def test_a_step_size_above_the_limit_warns_without_divergence():
    # sqrt(1 + x^2) has curvature at most 1: a step of 3 oscillates about the minimum forever.
    found = gradient_descent(lambda x: (1 + x * x) ** 0.5, 0.5, gradient=lambda x: x / (1 + x * x) ** 0.5, step=3.0)
    assert found.status == "max_iter"
    assert "is safe" in found.message


def test_numbers_in_numbers_out_and_differences_without_a_gradient():
    found = gradient_descent(lambda x: (x - 2) ** 2 + 1, 0.0)
    assert isinstance(found.x, float)
    assert found.x == pytest.approx(2.0, abs=1e-6)
    P, q, f, _ = quadratic()
    np.testing.assert_allclose(gradient_descent(f, np.ones(4)).x, -np.linalg.solve(P, q), atol=1e-5)


def test_shift_and_rotation_do_not_matter():
    _, _, f, g = quadratic()
    R, _ = np.linalg.qr(np.random.default_rng(5).normal(size=(4, 4)))
    shift, x0 = np.arange(4.0), np.ones(4)
    one = gradient_descent(f, x0, gradient=g, lipschitz=20.0)
    other = gradient_descent(
        lambda z: f(R.T @ z - shift), R @ (x0 + shift), gradient=lambda z: R @ g(R.T @ z - shift), lipschitz=20.0
    )
    assert one.n_steps == pytest.approx(other.n_steps, abs=1)
    np.testing.assert_allclose(R.T @ other.x - shift, one.x, atol=1e-6)


def test_a_wrong_gradient_is_named():
    found = gradient_descent(lambda x: x @ x, np.array([1.0, 2.0]), gradient=lambda x: -2 * x)
    assert found.status == "stalled"
    assert "check the gradient" in found.message


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"step": 0.0}, "'step' parameter of gradient_descent"),
        ({"step": "exact"}, "'backtracking', 'golden', 'secant'"),
        ({"tolerance": -1}, "'tolerance'"),
        ({"max_steps": 0}, "'max_steps'"),
        ({"lipschitz": -1.0}, "'lipschitz'"),
        ({"gradient": 3}, "must be a function of x"),
    ],
)
def test_parameters_are_checked(change, words):
    with pytest.raises(ParameterError, match=words):
        gradient_descent(lambda x: x @ x, np.ones(2), **change)


@pytest.mark.parametrize(
    ("f", "x0", "gradient", "words"),
    [
        (lambda x: x, np.ones(2), None, "needs one number for each x"),
        (lambda x: np.nan, np.ones(2), None, "choose another x0"),
        (lambda x: x @ x, np.ones((2, 2)), None, "flatten it"),
        (lambda x: x @ x, [1.0, np.nan], None, "x0 is missing or infinite at index 1"),
        (lambda x: x @ x, ["a"], None, "is not numeric"),
        (lambda x: x @ x, np.ones(2), lambda x: np.ones(3), "x has 2 entries"),
    ],
)
def test_bad_functions_and_points_get_a_sentence(f, x0, gradient, words):
    with pytest.raises(DataError, match=words):
        gradient_descent(f, x0, gradient=gradient)


# ---------------------------------------------------------------------------------------------------------- stochastic


def least_squares(n=400, d=3, noise=0.1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = X @ np.arange(1.0, d + 1) + noise * rng.normal(size=n)
    return (
        X,
        y,
        lambda w, rows: X[rows].T @ (X[rows] @ w - y[rows]) / len(rows),
        lambda w: np.mean((X @ w - y) ** 2) / 2,
    )


def test_the_same_seed_has_the_same_bits():
    X, y, g, f = least_squares()
    one, two = (sgd(g, len(y), np.zeros(3), batch_size=7, random_state=3) for _ in range(2))
    assert one.x.tobytes() == two.x.tobytes()
    assert (
        sgd(g, len(y), np.zeros(3), batch_size=7, random_state=np.random.default_rng(3)).x.tobytes() == one.x.tobytes()
    )
    assert sgd(g, len(y), np.zeros(3), batch_size=7, random_state=4).x.tobytes() != one.x.tobytes()


def test_one_batch_of_all_rows_is_gradient_descent():
    X, y, g, f = least_squares()
    whole = np.arange(len(y))
    found = sgd(g, len(y), np.zeros(3), step=0.3, batch_size=len(y), epochs=25, random_state=0)
    plain = gradient_descent(f, np.zeros(3), gradient=lambda w: g(w, whole), step=0.3, max_steps=25, tolerance=0.0)
    np.testing.assert_allclose(found.x, plain.path[-1], rtol=1e-12)


@pytest.mark.parametrize("options", [{"schedule": "inverse_scaling", "step": 0.1}, {"averaging": True, "step": 0.02}])
def test_it_comes_near_least_squares(options):
    X, y, g, f = least_squares()
    exact = np.linalg.lstsq(X, y)[0]
    found = sgd(g, len(y), np.zeros(3), batch_size=5, epochs=40, random_state=0, f=f, **options)
    np.testing.assert_allclose(found.x, exact, atol=0.02)
    assert found.value == pytest.approx(f(found.x))
    assert len(found.trace) == len(found.path) == 41
    assert found.n_steps == 40
    assert found.status == "max_iter"


def test_averages_are_less_noisy():
    X, y, g, f = least_squares(noise=2.0)
    exact = np.linalg.lstsq(X, y)[0]
    errors = [
        [
            np.linalg.norm(sgd(g, len(y), exact, step=0.1, epochs=4, averaging=mean, random_state=seed).x - exact)
            for seed in range(10)
        ]
        for mean in (False, True)
    ]
    assert np.mean(errors[1]) < np.mean(errors[0]) / 3


def test_a_step_may_be_a_function_and_sees_every_row_once_an_epoch():
    seen, steps = [], []

    def g(x, rows):
        seen.append(rows)
        return np.zeros(1)

    def step(k):
        steps.append(k)
        return 1.0 / k

    sgd(g, 10, 0.0, step=step, batch_size=4, epochs=2, random_state=0)
    assert [len(rows) for rows in seen] == [4, 4, 2] * 2
    assert sorted(np.concatenate(seen[:3])) == sorted(np.concatenate(seen[3:])) == list(range(10))
    assert steps == [1, 2, 3, 4, 5, 6]


def test_stochastic_divergence():
    X, y, g, f = least_squares()
    found = sgd(g, len(y), np.zeros(3), step=5.0, epochs=3, random_state=0)
    assert found.status == "diverged"
    assert "step smaller than 5" in found.message
    assert np.isfinite(found.x).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"step": -1.0}, "'step'"),
        ({"batch_size": 0}, "'batch_size'"),
        ({"epochs": 1.5}, "'epochs'"),
        ({"schedule": "adam"}, "'constant', 'inverse_scaling'"),
        ({"random_state": "seed"}, "'random_state'"),
    ],
)
def test_stochastic_parameters_are_checked(change, words):
    with pytest.raises(ParameterError, match=words):
        sgd(lambda x, rows: x, 10, 1.0, **change)
    with pytest.raises(DataError, match="mean over the rows"):
        sgd(lambda x, rows: np.ones((len(rows), 3)), 10, np.zeros(3), batch_size=2)
