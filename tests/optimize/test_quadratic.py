"""Conjugate gradients: the minimiser in at most d steps, of minimum norm if it is not unique."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from summula.optimize.solvers.quadratic import minimise_quadratic


def problem(d=8, kappa=100.0, seed=0):
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.normal(size=(d, d)))
    return Q @ np.diag(np.geomspace(1, kappa, d)) @ Q.T, rng.normal(size=d)


@given(st.integers(1, 12), st.integers(0, 1000))
def test_it_solves_the_system(d, seed):
    H, b = problem(d, seed=seed)
    answer = minimise_quadratic(lambda v: H @ v, b, tolerance=1e-12)
    np.testing.assert_allclose(answer.x, np.linalg.solve(H, b), rtol=1e-8, atol=1e-10)
    assert answer.converged
    assert answer.status == "converged"
    assert answer.value == pytest.approx(-0.5 * b @ np.linalg.solve(H, b), rel=1e-10)


def test_exact_arithmetic_would_take_d_steps():
    H, b = problem(6, 10.0)
    answer = minimise_quadratic(lambda v: H @ v, b, tolerance=1e-8)
    assert answer.n_steps <= 6


def test_the_trace_is_the_relative_gradient_of_each_step():
    H, b = problem()
    points = []
    answer = minimise_quadratic(lambda v: H @ v, b, on_step=lambda x, g: points.append((x.copy(), g.copy())))
    assert len(answer.trace) == answer.n_steps + 1
    assert answer.trace[0] == 1
    for x, g in points:
        np.testing.assert_allclose(g, b - H @ x, atol=1e-12)
    sizes = [np.linalg.norm(b - H @ x) / np.linalg.norm(b) for x, _ in points]
    np.testing.assert_allclose(answer.trace[1:], sizes, rtol=1e-5, atol=1e-14)
    assert answer.trace[-1] <= 1e-10


def test_the_objective_falls_at_every_step():
    H, b = problem(20, 1e4)
    values = []
    minimise_quadratic(lambda v: H @ v, b, on_step=lambda x, g: values.append(0.5 * x @ H @ x - b @ x))
    # Near the end steps are as small as rounding.
    assert all(later <= before + 1e-13 * abs(before) for before, later in itertools.pairwise(values))


def test_with_a_singular_matrix_the_shortest_answer_is_found():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(5, 12))
    b = A.T @ rng.normal(size=5)
    answer = minimise_quadratic(lambda v: A.T @ (A @ v), b, tolerance=1e-12)
    np.testing.assert_allclose(answer.x, np.linalg.pinv(A.T @ A, rcond=1e-10) @ b, rtol=1e-8, atol=1e-10)


def test_a_scaling_undoes_bad_units():
    H, b = problem(20, 10.0)
    s = np.geomspace(1e-5, 1e5, 20)
    G, c = H * np.outer(s, s), b * s
    plain = minimise_quadratic(lambda v: G @ v, c, max_steps=200)
    scaled = minimise_quadratic(lambda v: G @ v, c, scale=np.diag(G).copy(), max_steps=200)
    assert scaled.converged
    assert scaled.n_steps < 60
    assert not plain.converged
    np.testing.assert_allclose(scaled.x * s, np.linalg.solve(H, b), rtol=1e-6)


def test_no_gradient_no_step():
    answer = minimise_quadratic(lambda v: v, np.zeros(3))
    assert answer.converged
    assert answer.n_steps == 0
    assert not answer.x.any()


def test_too_few_steps():
    H, b = problem(30, 1e6)
    answer = minimise_quadratic(lambda v: H @ v, b, max_steps=3)
    assert (answer.status, answer.converged, answer.n_steps) == ("max_iter", False, 3)
    assert answer.value < 0


def test_a_callback_stops_it():
    H, b = problem(30, 1e6)
    calls = []
    answer = minimise_quadratic(lambda v: H @ v, b, on_step=lambda x, g: calls.append(1) or len(calls) == 2)
    assert (answer.status, answer.n_steps) == ("stopped", 2)
    assert not answer.converged


def test_a_slope_without_curvature_is_a_breakdown():
    answer = minimise_quadratic(lambda v: 0 * v, np.ones(3))
    assert answer.status == "breakdown"
    assert not answer.converged


def test_it_leaves_its_arguments_alone():
    H, b = problem()
    before = b.copy()
    minimise_quadratic(lambda v: H @ v, b, scale=np.ones(8))
    assert np.array_equal(b, before)
