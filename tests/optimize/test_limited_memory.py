"""Limited-memory BFGS: the compact form against the two-loop recursion, and minima known in closed form."""

from __future__ import annotations

import numpy as np
import pytest

from summula.optimize.solvers.limited_memory import _Pairs, lbfgs


class Scaled:
    """Variables divided by a scale."""

    def __init__(self, scale):
        self.scale = scale

    def solve(self, u):
        return u / self.scale

    def solve_transposed(self, g):
        return g / self.scale


def two_loops(pairs, g):
    """-B g by the recursion of Nocedal (1980)."""
    q, steps = g.copy(), []
    for s, y in reversed(pairs):
        a = s @ q / (s @ y)
        steps.append(a)
        q -= a * y
    s, y = pairs[-1]
    q *= s @ y / (y @ y)
    for (s, y), a in zip(pairs, reversed(steps), strict=True):
        q += (a - y @ q / (s @ y)) * s
    return -q


@pytest.mark.parametrize("count", [1, 3, 4, 11])
def test_the_compact_form_is_the_recursion(count):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(30, 12))
    H, pairs, all_pairs = A.T @ A, _Pairs(4, 12), []
    for _ in range(count):
        s = rng.normal(size=12)
        pairs.push(s, H @ s)
        all_pairs.append((s, H @ s))
    g = rng.normal(size=12)
    np.testing.assert_allclose(pairs.direction(g), two_loops(all_pairs[-4:], g), rtol=1e-9)


def test_pairs_without_curvature_are_left_out():
    pairs = _Pairs(3, 2)
    pairs.push(np.array([1.0, 0.0]), np.array([-1.0, 0.0]))
    pairs.push(np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    assert pairs.direction(np.array([1.0, 2.0])).tolist() == [-1.0, -2.0]


@pytest.mark.parametrize("scale", [np.ones(50), np.sqrt(np.geomspace(1, 1e2, 50))])
def test_a_quadratic_is_minimised_where_its_gradient_is_zero(scale):
    rng = np.random.default_rng(1)
    weights, target = np.geomspace(1, 1e2, 50), rng.normal(size=50)

    def evaluate(x):
        return float(weights @ (x - target) ** 2) / 2, weights * (x - target)

    found = lbfgs(evaluate, np.zeros(50), Scaled(scale), enough=lambda x, value, g: bool(np.abs(g).max() < 1e-9))
    assert found.status == "converged"
    np.testing.assert_allclose(found.x, target, atol=1e-9)
    assert (np.diff(found.trace) <= 0).all()
    assert found.n_steps == len(found.trace) - 1
    if scale[-1] > 1:  # the variables are round: one step suffices
        assert found.n_steps == 1


def test_where_the_function_is_not_finite_steps_are_shortened():
    def evaluate(x):
        with np.errstate(invalid="ignore", divide="ignore"):
            value = float((x - np.log(x)).sum())
        return (value if (x > 0).all() else np.inf), 1 - 1 / x

    found = lbfgs(
        evaluate, np.array([0.05, 3.0]), Scaled(np.ones(2)), enough=lambda x, v, g: bool(np.abs(g).max() < 1e-10)
    )
    np.testing.assert_allclose(found.x, 1.0, atol=1e-9)


def test_it_stops_at_the_largest_number_of_steps_and_where_rounding_stops_it():
    def evaluate(x):
        return float(np.cosh(x).sum()), np.sinh(x)

    start = np.array([3.0, -2.0, 1.0])
    few = lbfgs(evaluate, start, Scaled(np.ones(3)), enough=lambda *given: False, max_steps=2)
    assert (few.status, few.n_steps, few.converged) == ("max_iter", 2, False)
    whole = lbfgs(evaluate, start, Scaled(np.ones(3)), enough=lambda *given: False)
    assert whole.status in ("stalled", "converged")
    np.testing.assert_allclose(whole.x, 0.0, atol=1e-6)
