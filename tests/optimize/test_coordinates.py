"""Coordinate descent: the Gauss-Seidel method, bounds against SciPy, gaps, functions, error messages."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import optimize

from summula import DataError, ParameterError
from summula.optimize import Quadratic, coordinate_descent


def problem(d=6, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(d, d))
    return A @ A.T + 0.5 * np.eye(d), rng.normal(size=d)


def test_it_solves_the_system():
    P, q = problem()
    found = coordinate_descent((P, q), tolerance=1e-12)
    assert found.status == "converged"
    np.testing.assert_allclose(found.x, -np.linalg.solve(P, q), atol=1e-9)
    assert 0 <= found.gap <= 1e-12
    assert all(later <= before + 1e-14 for before, later in itertools.pairwise(found.trace))
    assert len(found.trace) == found.n_steps + 1
    assert len(found.path) == 6 * found.n_steps + 1


def test_sweeps_are_those_of_gauss_and_seidel():
    P, q = problem(4)
    found = coordinate_descent((P, q), np.ones(4), max_sweeps=3)
    x, lower = np.ones(4), np.tril(P)
    for _ in range(3):
        x = np.linalg.solve(lower, -q - (P - lower) @ x)
    np.testing.assert_allclose(found.x, x, rtol=1e-10)
    assert found.status == "max_iter"


def test_the_gap_without_bounds_is_exact():
    P, q = problem()
    lowest = -q @ np.linalg.solve(P, q) / 2
    for sweeps in (1, 2, 5):
        found = coordinate_descent((P, q), max_sweeps=sweeps)
        assert found.gap == pytest.approx(found.value - lowest, rel=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_bounds_against_least_squares_within_bounds(seed):
    rng = np.random.default_rng(seed)
    A, b = rng.normal(size=(20, 6)), rng.normal(size=20) * 3
    theirs = optimize.lsq_linear(A, b, bounds=(-0.2, 0.3), tol=1e-14)
    found = coordinate_descent((A.T @ A, -A.T @ b), bounds=(-0.2, 0.3), tolerance=1e-12)
    np.testing.assert_allclose(found.x, theirs.x, atol=1e-7)
    assert 0 <= found.gap <= 1e-9
    early = coordinate_descent((A.T @ A, -A.T @ b), bounds=(-0.2, 0.3), max_sweeps=1)
    assert early.value - found.value <= early.gap < np.inf


def test_a_singular_quadratic_has_many_minima_and_one_value():
    found = coordinate_descent(([[1.0, 1.0], [1.0, 1.0]], [-1.0, -1.0]))
    assert found.x.sum() == pytest.approx(1.0)
    assert found.value == pytest.approx(-0.5)


def test_no_bottom_and_a_bound_that_makes_one():
    P, q = np.diag([1.0, 0.0]), [0.0, -1.0]
    assert coordinate_descent((P, q)).status == "unbounded"
    assert coordinate_descent((P, q), bounds=[None, (0, 4)]).x.tolist() == [0.0, 4.0]


def test_functions_are_searched_along_axes():
    found = coordinate_descent(lambda x: np.cosh(x[0] - 1) + (x[1] + 2) ** 2 + 0.3 * x[0] * x[1], [0.0, 0.0])
    theirs = optimize.minimize(lambda x: np.cosh(x[0] - 1) + (x[1] + 2) ** 2 + 0.3 * x[0] * x[1], [0.0, 0.0], tol=1e-10)
    assert found.converged
    np.testing.assert_allclose(found.x, theirs.x, atol=1e-5)
    # Every move is along one axis.
    assert all(np.count_nonzero(b - a) <= 1 for a, b in itertools.pairwise(found.path))


def test_kinks_along_the_axes_are_no_obstacle():
    # A lasso in two variables: the minimum is at the soft threshold.
    found = coordinate_descent(lambda x: (x[0] - 3) ** 2 / 2 + (x[1] - 0.5) ** 2 / 2 + np.abs(x).sum(), [1.0, 1.0])
    np.testing.assert_allclose(found.x, [2.0, 0.0], atol=1e-6)


def test_the_order_of_variables_does_not_change_the_minimum():
    P, q = problem()
    order = np.random.default_rng(1).permutation(6)
    one = coordinate_descent((P, q), tolerance=1e-12).x
    other = coordinate_descent((P[np.ix_(order, order)], q[order]), tolerance=1e-12).x
    np.testing.assert_allclose(other, one[order], atol=1e-9)


def test_sentences():
    with pytest.raises(ParameterError, match="negative eigenvalue -1, so the problem is not convex"):
        coordinate_descent((np.diag([1.0, -1.0]), [0.0, 0.0]))
    with pytest.raises(DataError, match=r"not symmetric .* \(P \+ P'\)/2"):
        coordinate_descent(([[1.0, 2.0], [0.0, 1.0]], [0.0, 0.0]))
    with pytest.raises(DataError, match="P has 2 rows but q has 3"):
        coordinate_descent((np.eye(2), np.ones(3)))
    with pytest.raises(DataError, match="x0 has 3 entries and q has 2"):
        coordinate_descent((np.eye(2), np.ones(2)), np.ones(3))
    with pytest.raises(ParameterError, match="needs a starting point x0"):
        coordinate_descent(lambda x: x @ x)
    with pytest.raises(ParameterError, match="quadratics"):
        coordinate_descent(lambda x: x @ x, [1.0], bounds=(0, 1))
    with pytest.raises(ParameterError, match="low <= high"):
        coordinate_descent((np.eye(2), np.ones(2)), bounds=(1, 0))


# -------------------------------------------------------------------------------------------------- quadratics


def test_lowest_value_of_a_quadratic():
    P, q = problem()
    lowest = Quadratic(P, q, 3.0).lowest()
    np.testing.assert_allclose(lowest.x, -np.linalg.solve(P, q), atol=1e-10)
    assert lowest.value == pytest.approx(3.0 - q @ np.linalg.solve(P, q) / 2)
    flat = Quadratic(np.full((2, 2), 1.0), [1.0, 1.0]).lowest()
    np.testing.assert_allclose(flat.x, [-0.5, -0.5])


@pytest.mark.parametrize(
    "f", [Quadratic(None, [1.0, -2.0]), Quadratic(np.diag([1.0, 0.0]), [0.0, 1.0]), Quadratic(np.diag([1.0, -1.0]))]
)
def test_a_quadratic_without_a_bottom_has_a_ray(f):
    lowest = f.lowest()
    assert lowest.value == -np.inf
    assert f(1e6 * lowest.ray) < f(1e3 * lowest.ray) < f(np.zeros(2))
