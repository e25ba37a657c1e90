"""Newton, conjugate gradients and BFGS: textbook functions, roots, saddles, unbounded functions, comparison with SciPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import optimize, special

from summula import DataError, ParameterError
from summula.optimize import bfgs, conjugate_gradient, newton, newton_root
from summula.optimize.problems.objective import Objective, differences


def rosenbrock(x):
    return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2


def rosenbrock_gradient(x):
    return np.array([-2 * (1 - x[0]) - 400 * x[0] * (x[1] - x[0] ** 2), 200 * (x[1] - x[0] ** 2)])


def rosenbrock_hessian(x):
    return np.array([[2 - 400 * (x[1] - 3 * x[0] ** 2), -400 * x[0]], [-400 * x[0], 200.0]])


def logistic(n=200, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.geomspace(1, 10, d)
    y = rng.random(n) < special.expit(X @ rng.normal(size=d))

    def f(w):
        eta = X @ w
        return np.logaddexp(0, eta).sum() - eta[y].sum() + w @ w / 2

    def g(w):
        return X.T @ (special.expit(X @ w) - y) + w

    def H(w):
        p = special.expit(X @ w)
        return X.T @ (X * (p * (1 - p))[:, None]) + np.eye(d)

    return f, g, H, d


MINIMISERS = {
    "newton": newton,
    "conjugate_gradient": conjugate_gradient,
    "bfgs": bfgs,
    "l-bfgs": lambda f, x0, **options: bfgs(f, x0, memory=5, **options),
}
each = pytest.mark.parametrize("minimise", MINIMISERS.values(), ids=MINIMISERS)


def test_differences_are_derivatives():
    x = np.array([0.3, -1.7])
    np.testing.assert_allclose(differences(rosenbrock, x), rosenbrock_gradient(x), rtol=1e-8)
    np.testing.assert_allclose(differences(rosenbrock_gradient, x), rosenbrock_hessian(x), rtol=1e-8)
    of_values = Objective(rosenbrock, x, function="f").hessian(x)
    np.testing.assert_allclose(of_values, rosenbrock_hessian(x), rtol=1e-4)


@each
@pytest.mark.parametrize("x0", [[-1.2, 1.0], [3.0, -2.0], [0.0, 0.0]])
def test_rosenbrock(minimise, x0):
    found = minimise(rosenbrock, x0, gradient=rosenbrock_gradient)
    assert found.status == "converged"
    np.testing.assert_allclose(found.x, [1.0, 1.0], atol=1e-5)
    assert np.linalg.norm(rosenbrock_gradient(found.x)) <= 1e-6
    assert len(found.trace) == len(found.path) == found.n_steps + 1
    assert found.n_steps < 100
    assert all(later <= before + 1e-12 for before, later in itertools.pairwise(found.trace))
    np.testing.assert_array_equal(found.path[0], x0)


@each
def test_a_logistic_loss_against_scipy(minimise):
    f, g, H, d = logistic()
    theirs = optimize.minimize(f, np.zeros(d), jac=g, hess=H, method="trust-exact", options={"gtol": 1e-10})
    found = minimise(f, np.zeros(d), gradient=g)
    assert found.converged
    np.testing.assert_allclose(found.x, theirs.x, atol=1e-6)


@each
def test_many_dimensions_keep_no_path(minimise):
    d = 30
    P = np.diag(np.geomspace(1, 100, d))
    found = minimise(lambda x: x @ P @ x / 2 - x.sum(), np.zeros(d), gradient=lambda x: P @ x - 1)
    assert found.converged
    np.testing.assert_allclose(found.x, 1 / np.diag(P), atol=1e-6)
    assert found.path == ()
    assert len(found.trace) == found.n_steps + 1


@each
def test_no_bottom(minimise):
    found = minimise(lambda x: x[0] - 2 * x[1], [0.0, 0.0], gradient=lambda x: np.array([1.0, -2.0]))
    assert found.status == "unbounded"
    assert not found.converged
    assert "unbounded below" in found.message


@each
def test_at_the_minimum_nothing_is_done(minimise):
    found = minimise(lambda x: x @ x, np.zeros(2), gradient=lambda x: 2 * x)
    assert (found.status, found.n_steps, found.value) == ("converged", 0, 0.0)


@each
def test_too_few_steps_warn(minimise):
    found = minimise(rosenbrock, [-1.2, 1.0], gradient=rosenbrock_gradient, max_steps=2)
    assert found.status == "max_iter"
    assert found.n_steps == 2
    assert "increase max_steps" in found.message


@each
def test_large_values_end_by_rounding(minimise):
    found = minimise(lambda x: 1e12 + x @ x, np.ones(2), gradient=lambda x: 2 * x, tolerance=0.0)
    assert found.status in ("converged", "stalled")
    assert found.value == pytest.approx(1e12)


@each
def test_starts_and_functions_are_checked(minimise):
    with pytest.raises(DataError, match="choose another x0"):
        minimise(lambda x: np.inf, [1.0])
    with pytest.raises(ParameterError, match="'tolerance'"):
        minimise(rosenbrock, [0.0, 0.0], tolerance=-1)
    with pytest.raises(ParameterError, match="'max_steps'"):
        minimise(rosenbrock, [0.0, 0.0], max_steps=0)


# ----------------------------------------------------------------------------------------------------------- newton


def test_a_quadratic_takes_one_step():
    P = np.array([[3.0, 1.0], [1.0, 2.0]])
    found = newton(lambda x: x @ P @ x / 2 - x.sum(), [9.0, -4.0], gradient=lambda x: P @ x - 1, hessian=lambda x: P)
    assert found.n_steps == 1
    np.testing.assert_allclose(found.x, np.linalg.solve(P, [1, 1]), atol=1e-14)


def test_the_error_is_squared_in_each_step():
    found = newton(np.cosh, 0.5, gradient=np.sinh, hessian=np.cosh, tolerance=1e-14)
    # x - tanh(x) = x^3/3 - ...: even cubed.
    for before, later in itertools.pairwise(found.path):
        assert abs(later) <= abs(before) ** 3 / 3 + 1e-15


def test_the_scale_of_the_variables_does_not_matter():
    f, g, H, d = logistic()
    S = np.diag([1e-3, 1.0, 10.0, 1e3])
    one = newton(f, np.zeros(d), gradient=g, hessian=H, tolerance=1e-9)
    other = newton(
        lambda u: f(S @ u),
        np.zeros(d),
        gradient=lambda u: S @ g(S @ u),
        hessian=lambda u: S @ H(S @ u) @ S,
        tolerance=1e-9,
    )
    np.testing.assert_allclose(S @ other.x, one.x, rtol=1e-8)
    assert abs(other.n_steps - one.n_steps) <= 1


def test_indefinite_hessians_are_shifted_with_a_message():
    found = newton(lambda x: x[0] ** 4 - 2 * x[0] ** 2 + x[1] ** 2, [0.1, 1.0])
    np.testing.assert_allclose(np.abs(found.x), [1.0, 0.0], atol=1e-6)
    assert found.status == "converged"
    assert "not positive definite in" in found.message


def test_a_saddle_is_no_minimum():
    found = newton(lambda x: x[1] ** 2 - x[0] ** 2, [0.0, 1.0], gradient=lambda x: np.array([-2 * x[0], 2 * x[1]]))
    assert found.status == "saddle"
    assert not found.converged
    assert "eigenvalue -2" in found.message


def test_fisher_scoring():
    # Probit regression: the expected Hessian differs from the observed one, and leads to the same place.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    s = np.where(rng.random(300) < special.ndtr(X @ [1.0, -0.5, 0.2]), 1.0, -1.0)

    def density(eta):
        return np.exp(-(eta**2) / 2) / np.sqrt(2 * np.pi)

    def f(w):
        return -special.log_ndtr(s * (X @ w)).sum()

    def g(w):
        eta = X @ w
        return -X.T @ (s * density(eta) / special.ndtr(s * eta))

    def information(w):
        eta = X @ w
        return X.T @ (X * (density(eta) ** 2 / (special.ndtr(eta) * special.ndtr(-eta)))[:, None])

    scoring, plain = newton(f, np.zeros(3), gradient=g, hessian=information), newton(f, np.zeros(3), gradient=g)
    assert scoring.converged
    np.testing.assert_allclose(scoring.x, plain.x, atol=1e-8)


def test_flat_directions_are_allowed():
    # A valley x + y = 1: every point of it is a minimum.
    found = newton(lambda x: (x[0] + x[1] - 1) ** 2, [3.0, 0.0], hessian=lambda x: np.full((2, 2), 2.0))
    assert found.converged
    assert found.x.sum() == pytest.approx(1.0, abs=1e-6)


# ------------------------------------------------------------------------------------------- conjugate gradients, BFGS


def test_conjugate_gradients_take_d_steps_on_a_quadratic():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(6, 6))
    P = A @ A.T + np.eye(6)
    found = conjugate_gradient(lambda x: x @ P @ x / 2 - x.sum(), np.zeros(6), gradient=lambda x: P @ x - 1)
    assert found.n_steps <= 7  # one for rounding
    np.testing.assert_allclose(found.x, np.linalg.solve(P, np.ones(6)), atol=1e-6)


def test_bfgs_needs_about_as_many_values_as_scipy():
    calls = {"ours": 0, "theirs": 0}

    def counted(name):
        def g(x):
            calls[name] += 1
            return rosenbrock_gradient(x)

        return g

    bfgs(rosenbrock, [-1.2, 1.0], gradient=counted("ours"))
    optimize.minimize(rosenbrock, [-1.2, 1.0], jac=counted("theirs"), method="BFGS")
    assert calls["ours"] <= 2 * calls["theirs"]


def test_with_memory_for_all_steps_both_forms_of_bfgs_are_the_same():
    f, g, _, d = logistic()
    whole = bfgs(f, np.zeros(d), gradient=g, max_steps=6)
    pairs = bfgs(f, np.zeros(d), gradient=g, max_steps=6, memory=50)
    # The matrix uses its first scale y's/y'y and the pairs use the latest, so only the first two steps agree.
    np.testing.assert_allclose(pairs.path[2], whole.path[2], rtol=1e-10)


def test_limited_memory_against_scipy():
    rng = np.random.default_rng(0)
    scale = np.geomspace(1, 1e3, 100)
    target = rng.normal(size=100)
    f, g = lambda x: np.sum(scale * (x - target) ** 2) / 2, lambda x: scale * (x - target)
    ours = bfgs(f, np.zeros(100), gradient=g, memory=10)
    theirs = optimize.minimize(f, np.zeros(100), jac=g, method="L-BFGS-B", options={"gtol": 1e-6, "ftol": 0.0})
    np.testing.assert_allclose(ours.x, target, atol=1e-6)
    assert ours.n_steps <= 2 * theirs.nit


def test_where_the_function_is_not_defined_steps_are_shortened():
    found = bfgs(lambda x: x - np.log(x), 5.0, gradient=lambda x: 1 - 1 / x)
    assert found.x == pytest.approx(1.0, abs=1e-6)


# ------------------------------------------------------------------------------------------------------------- roots


def test_newtons_own_example():
    # Newton 1669: x^3 - 2x - 5 = 0 near 2.0945514815.
    found = newton_root(lambda x: x**3 - 2 * x - 5, 2.0, derivative=lambda x: 3 * x**2 - 2)
    assert found.x == pytest.approx(2.0945514815423265, rel=1e-14)
    assert found.status == "converged"
    assert isinstance(found.x, float)


def test_digits_double():
    found = newton_root(lambda x: x * x - 2, 1.0, derivative=lambda x: 2 * x, tolerance=1e-15)
    errors = np.abs(np.array(found.path) - np.sqrt(2))
    for before, later in itertools.pairwise(errors):
        assert later <= before**2 / 2 + 1e-15  # e+ = e^2 / (2x), x >= 1


def test_damping_helps_where_plain_steps_run_away():
    # For |x| > 1.39 undamped steps on arctan diverge.
    assert newton_root(np.arctan, 20.0, derivative=lambda x: 1 / (1 + x * x)).x == pytest.approx(0.0, abs=1e-10)


@pytest.mark.parametrize("derivative", [None, lambda x: np.array([[2 * x[0], 2 * x[1]], [1.0, -1.0]])])
def test_two_equations(derivative):
    found = newton_root(lambda x: [x @ x - 1, x[0] - x[1]], [1.0, 0.2], derivative=derivative)
    np.testing.assert_allclose(found.x, np.sqrt([0.5, 0.5]), atol=1e-10)
    assert len(found.trace) == len(found.path)


def test_a_double_root_is_found_slowly():
    found = newton_root(lambda x: (x - 1) ** 2, 2.0, derivative=lambda x: 2 * (x - 1))
    assert found.x == pytest.approx(1.0, abs=2e-5)
    assert found.n_steps > 10


def test_no_root():
    found = newton_root(lambda x: x * x + 1, 3.0)
    assert not found.converged
    assert found.value == pytest.approx(1.0, abs=1e-3)
    assert "no root nearby" in found.message


def test_root_sentences():
    with pytest.raises(DataError, match="1 values for 2 unknowns"):
        newton_root(lambda x: x[0], [1.0, 2.0])
    with pytest.raises(DataError, match="2 by 2"):
        newton_root(lambda x: x, [1.0, 2.0], derivative=lambda x: np.ones(2))
    with pytest.raises(DataError, match="choose another x0"):
        newton_root(lambda x: np.nan, 1.0)
    with pytest.raises(ParameterError, match="must be a function"):
        newton_root(lambda x: x, 1.0, derivative=2.0)
