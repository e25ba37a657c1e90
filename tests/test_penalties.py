"""Penalties: proximal steps, subdifferentials and conjugates against their definitions."""

from __future__ import annotations

import numpy as np
import pytest

from summula.optimize.solvers.l1_kernels import survey
from summula.penalties import Penalty
from summula.penalties.kernels import proximal_step

PENALTIES = [
    Penalty(0.7),
    Penalty(0.7, 0.4),
    Penalty(0.0, 0.4),
    Penalty(0.7, 0.0, positive=True),
    Penalty(0.7, 0.4, positive=True),
]
GRID = np.linspace(-6, 6, 120_001)


def values(penalty, x):
    allowed = np.where((x < 0) & penalty.positive, np.inf, 0.0)
    return penalty.l1 * np.abs(x) + penalty.l2 / 2 * x**2 + allowed


def prox(penalty, z, curvature=1.0):
    return np.array([proximal_step(one, penalty.l1, curvature + penalty.l2, penalty.positive) for one in z])


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("z", [-3.0, -0.8, -0.2, 0.0, 0.5, 0.7, 2.5])
def test_the_proximal_step_is_the_minimiser(penalty, z):
    curvature = 1.3
    best = GRID[np.argmin(curvature / 2 * GRID**2 - z * GRID + values(penalty, GRID))]
    assert prox(penalty, np.array([z]), curvature)[0] == pytest.approx(best, abs=1e-4)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_the_distance_is_zero_exactly_at_minimisers(penalty):
    z = np.array([-3.0, -0.8, -0.2, 0.0, 0.5, 0.7, 2.5])
    x = prox(penalty, z)
    np.testing.assert_allclose(penalty.distance(x, z - x), 0.0, atol=1e-15)
    assert (penalty.distance(x + 0.1, z - x - 0.1) > 0.09).all()


@pytest.mark.parametrize("penalty", PENALTIES)
def test_the_distance_is_that_of_the_compiled_survey(penalty):
    rng = np.random.default_rng(0)
    v = np.where(rng.random(20) < 0.5, 0.0, rng.normal(size=20))
    v = np.abs(v) if penalty.positive else v
    g, wrong = rng.normal(size=20), np.empty(20)
    survey(v, g, g, 1.0, *penalty, wrong)
    np.testing.assert_allclose(wrong, penalty.distance(v, g), rtol=1e-15)


@pytest.mark.parametrize("penalty", [p for p in PENALTIES if p.l2])
@pytest.mark.parametrize("g", [-2.0, -0.6, 0.0, 0.6, 1.5])
def test_the_conjugate_is_the_largest_g_v_minus_p(penalty, g):
    assert penalty.conjugate(np.array([g])) == pytest.approx(float((g * GRID - values(penalty, GRID)).max()), abs=1e-7)


def test_without_l2_the_conjugate_is_zero_or_infinite():
    assert Penalty(0.7).conjugate(np.array([0.7, -0.7])) == 0.0
    assert Penalty(0.7).conjugate(np.array([0.7, -0.71])) == np.inf


@pytest.mark.parametrize("penalty", PENALTIES)
def test_the_scaled_slope_is_feasible(penalty):
    slope = np.array([-2.0, 0.3, 1.9])
    t = penalty.dual_scale(slope)
    assert penalty.steepness(t * slope).max() <= penalty.l1 * (1 + 1e-15)
    assert penalty.dual_scale(slope / 10) == (1.0 if penalty.l1 else 0.0)


@pytest.mark.parametrize("penalty", [Penalty(0.7), Penalty(0.7, 0.4)])
def test_the_gap_of_a_quadratic_bounds_its_suboptimality(penalty):
    rng = np.random.default_rng(1)
    z = rng.normal(size=8) * 2
    best = prox(penalty, z)

    def objective(v):
        return float(((v - z) ** 2).sum()) / 2 + penalty.value(v)

    for share in (0.0, 0.5, 1.0):
        v = share * best
        g = z - v  # minus the slope of the datafit; its conjugate term is (1 - t)^2 / 2 |g|^2
        gap, _ = penalty.gap(v, g, lambda t, g=g: (1 - t) ** 2 / 2 * float(g @ g))
        assert objective(v) - objective(best) <= gap + 1e-12
    assert gap == pytest.approx(0.0, abs=1e-12)


def test_values_and_shares():
    v = np.array([[1.0, -2.0], [0.0, 3.0]])
    assert Penalty(0.5, 2.0).value(v) == 3.0 + 14.0
    assert Penalty(0.5).l1_increase(v, -v) == -3.0
    assert Penalty.of_ratio(4.0, 0.25) == Penalty(1.0, 3.0)
    assert Penalty(1.0, 3.0).divided(2.0) == Penalty(0.5, 1.5)
    assert Penalty(0.0, 1.0).is_smooth
    assert not Penalty(0.1).is_smooth
    assert Penalty(0.0).is_zero
