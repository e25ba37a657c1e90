"""L1 quadratics: closed forms, optimality conditions, a valid gap, paths, and the kernel against its reference."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from summula.linear_model.l1.column_quadratic import ColumnQuadratic
from summula.optimize.solvers.l1_kernels import FaceScratch, face_steps, survey, sweep
from summula.optimize.solvers.l1_path import l1_path
from summula.optimize.solvers.l1_quadratic import GramQuadratic, judged, minimise_l1, newton_on_face
from summula.penalties import Penalty

PENALTIES = [Penalty(0.1), Penalty(0.1, 0.2), Penalty(0.05, 0.0, True), Penalty(0.05, 0.1, True)]


def problem(n, d, seed=0, shared=0.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + shared * rng.standard_normal((n, 1))
    y = X[:, : min(d, 6)] @ rng.standard_normal(min(d, 6)) + rng.standard_normal(n)
    return X, y


def gram(X, y):
    n = len(y)
    return GramQuadratic(X.T @ X / n, X.T @ y / n, float(y @ y / n))


def objective(X, y, v, penalty):
    r = y - X @ v
    return r @ r / (2 * len(y)) + penalty.l1 * np.abs(v).sum() + penalty.l2 / 2 * v @ v


def dual(X, y, v, penalty):
    """The dual objective at the residual, of the rows and of the L2 penalty, scaled to be feasible."""
    n, s = len(y), X.T @ (y - X @ v) / len(y) - penalty.l2 * v
    t = min(1.0, penalty.l1 / (s if penalty.positive else np.abs(s)).max())
    r = t * (y - X @ v)
    return (r @ y - r @ r / 2) / n - penalty.l2 / 2 * t**2 * v @ v


def soft(z, a):
    return np.sign(z) * np.maximum(np.abs(z) - a, 0)


def test_orthonormal_columns_have_a_closed_form():
    Q, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((50, 12)))
    X = Q * np.sqrt(50)
    y = X @ np.linspace(-2, 2, 12) + 0.1 * np.random.default_rng(1).standard_normal(50)
    z = X.T @ y / 50
    for penalty in PENALTIES[:2]:
        solution = minimise_l1(gram(X, y), penalty)
        np.testing.assert_allclose(solution.v, soft(z, penalty.l1) / (1 + penalty.l2), atol=1e-12)
    solution = minimise_l1(gram(X, y), PENALTIES[2])
    np.testing.assert_allclose(solution.v, np.maximum(z - 0.05, 0), atol=1e-12)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize(("n", "d", "shared"), [(200, 30, 0.0), (60, 200, 0.0), (80, 150, 3.0)])
def test_optimality_conditions(n, d, shared, penalty):
    X, y = problem(n, d, shared=shared)
    for quadratic in (gram(X, y), ColumnQuadratic(X, y, None, False)):
        solution = minimise_l1(quadratic, penalty, tolerance=1e-13)
        assert solution.converged
        g = X.T @ (y - X @ solution.v) / n - penalty.l2 * solution.v
        used = solution.v != 0
        np.testing.assert_allclose(g[used], penalty.l1 * np.sign(solution.v[used]), atol=1e-8)
        assert ((g[~used] if penalty.positive else np.abs(g[~used])) <= penalty.l1 + 1e-8).all()
        assert not penalty.positive or (solution.v >= 0).all()
        np.testing.assert_allclose(solution.value, objective(X, y, solution.v, penalty), rtol=1e-10)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_the_gap_bounds_the_distance(penalty):
    X, y = problem(50, 80)
    quadratic = gram(X, y)
    best = minimise_l1(quadratic, penalty, tolerance=1e-14).value
    rng = np.random.default_rng(0)
    for scale in (1e-6, 1e-3, 1.0):
        v = scale * np.abs(rng.standard_normal(80)) * (rng.random(80) < 0.3)
        value, gap, _ = judged(v, quadratic.slope(v, np.flatnonzero(v)), quadratic, penalty)
        assert value - best <= gap * (1 + 1e-9) + 1e-13 < np.inf
        np.testing.assert_allclose(value, objective(X, y, v, penalty), rtol=1e-10)


def test_the_callback_receives_improving_points_and_can_stop():
    X, y = problem(100, 600)
    quadratic, penalty, told = gram(X, y), Penalty(0.01), []
    best = minimise_l1(quadratic, penalty, on_round=lambda here: bool(told.append(here)))
    values = [here.value for here in told]
    assert len(values) > 1
    assert values == sorted(values, reverse=True)
    assert all(0 <= here.value - best.value <= here.gap < np.inf for here in told)
    stopped = minimise_l1(quadratic, penalty, on_round=lambda here: True)
    np.testing.assert_array_equal(stopped.v, told[0].v)
    assert not stopped.converged


@pytest.mark.parametrize("quadratic_of", [gram, lambda X, y: ColumnQuadratic(X, y, None, False)])
def test_a_path_is_its_points(quadratic_of):
    X, y = problem(60, 90)
    quadratic = quadratic_of(X, y)
    top = np.abs(quadratic.q).max()
    penalties = [Penalty(a) for a in np.geomspace(top, top / 100, 25)]
    path = l1_path(quadratic, penalties, tolerance=1e-12)
    assert not path[0].v.any()
    for penalty, solution in zip(penalties, path, strict=True):
        alone = minimise_l1(quadratic_of(X, y), penalty, tolerance=1e-12)
        np.testing.assert_allclose(solution.value, alone.value, rtol=1e-10)
        np.testing.assert_allclose(solution.v, alone.v, atol=1e-5)
        assert solution.gap <= 1e-12 * quadratic.c


def test_columns_on_demand_are_the_gram_matrix():
    rng = np.random.default_rng(0)
    X, y = problem(40, 25)
    X, w = X + 3, rng.integers(1, 4, 40).astype(float)
    lazy = ColumnQuadratic(X, y, w, True)
    Xc, yc = X - w @ X / w.sum(), y - w @ y / w.sum()
    G = Xc.T @ (Xc * w[:, None]) / w.sum()
    np.testing.assert_allclose(lazy.q, Xc.T @ (w * yc) / w.sum(), atol=1e-12)
    for columns in ([3, 1, 7], [1, 20, 3, 0], [7]):
        columns = np.array(columns)
        np.testing.assert_allclose(lazy.block(columns), G[np.ix_(columns, columns)], atol=1e-12)
    v = np.zeros(25)
    v[[1, 24]] = 1.0, -2.0
    np.testing.assert_allclose(lazy.slope(v, np.array([1, 24])), lazy.q - G @ v, atol=1e-12)


def test_constant_and_repeated_columns():
    X, y = problem(50, 6)
    X = np.column_stack([X, X[:, 0], np.ones(50), np.zeros(50)])
    solution = minimise_l1(ColumnQuadratic(X, y, None, True), Penalty(0.05))
    assert solution.converged
    assert not solution.v[-2:].any()
    alone = minimise_l1(ColumnQuadratic(X[:, :6], y, None, True), Penalty(0.05))
    np.testing.assert_allclose(solution.value, alone.value, rtol=1e-9)


def test_more_columns_than_rows_and_hardly_a_penalty():
    X, y = problem(15, 40)
    for quadratic in (gram(X, y), ColumnQuadratic(X, y, None, True)):
        solution = minimise_l1(quadratic, Penalty(1e-5), max_sweeps=500)
        assert solution.converged
        assert np.count_nonzero(solution.v) <= 15


@pytest.mark.parametrize("penalty", PENALTIES)
def test_the_kernels_against_plain_loops(penalty):
    X, y = problem(30, 8)
    quadratic = gram(X, y)
    G, v, g = quadratic.G, np.zeros(8), quadratic.q.copy()
    sweep(G, g, v, *penalty, 3, 0.0)
    w = np.zeros(8)
    for _ in range(3):
        for j in range(8):
            z = quadratic.q[j] - G[j] @ w + G[j, j] * w[j]
            w[j] = soft(z, penalty.l1) / (G[j, j] + penalty.l2)
            w[j] = max(w[j], 0.0) if penalty.positive else w[j]
    np.testing.assert_allclose(v, w, atol=1e-13)
    np.testing.assert_allclose(g, quadratic.q - G @ v, atol=1e-13)
    wrong = np.empty(8)
    value, gap = survey(v, g, quadratic.q, quadratic.c, *penalty, wrong)
    np.testing.assert_allclose(value, objective(X, y, v, penalty), rtol=1e-12)
    np.testing.assert_allclose(gap, value - dual(X, y, v, penalty), atol=1e-13)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_sweeps_over_sparse_columns_are_those_over_dense_ones(penalty):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 6)) * (rng.random((40, 6)) < 0.4)
    y, w = rng.standard_normal(40), rng.integers(1, 4, 40).astype(float)
    lazy = ColumnQuadratic(sparse.csc_array(X), y, w, True)
    columns = np.array([4, 0, 2, 5])
    v = np.zeros(4)
    sweeps, _ = lazy.descend(columns, v, penalty, 0.0, 5)
    G, q = lazy.block(columns), lazy.q[columns]
    dense, g = np.zeros(4), q.copy()
    sweep(G, g, dense, *penalty, sweeps, 0.0)
    np.testing.assert_allclose(v, dense, atol=1e-12)


def test_sparse_columns_that_nearly_depend_on_each_other_still_converge():
    rng = np.random.default_rng(0)
    base = rng.standard_normal((200, 5)) * (rng.random((200, 5)) < 0.5)
    X = np.repeat(base, 4, axis=1) + 1e-3 * rng.standard_normal((200, 20)) * (rng.random((200, 20)) < 0.5)
    y = X[:, 0] - X[:, 9] + 0.1 * rng.standard_normal(200)
    solution = minimise_l1(ColumnQuadratic(sparse.csc_array(X), y, None, True), Penalty(0.001), tolerance=1e-12)
    dense = minimise_l1(ColumnQuadratic(X, y, None, True), Penalty(0.001), tolerance=1e-12)
    assert solution.converged
    np.testing.assert_allclose(solution.value, dense.value, rtol=1e-10)


@pytest.mark.parametrize("penalty", [*PENALTIES, Penalty(1e-3)])
@pytest.mark.parametrize("copies", [0, 3])
@pytest.mark.parametrize("seed", range(5))
def test_compiled_steps_on_a_face_are_those_by_lapack(penalty, copies, seed):
    rng = np.random.default_rng(seed)
    X, y = problem(30, 9)
    X = np.column_stack([X, X[:, :copies] + X[:, 1 : 1 + copies]])  # dependent on others
    quadratic = gram(X, y)
    d = X.shape[1]
    start = np.abs(rng.standard_normal(d)) if penalty.positive else rng.standard_normal(d)
    start[rng.random(d) < 0.3] = 0.0
    plain, compiled = start.copy(), start.copy()
    reached = newton_on_face(quadratic.G, quadratic.q, plain, penalty, 30)
    assert (
        face_steps(quadratic.G, quadratic.q, compiled, penalty.l1, penalty.l2, 30, 1e-13, FaceScratch.of(d)) == reached
    )
    used = compiled != 0
    slope = quadratic.slope(compiled, np.flatnonzero(used)) - penalty.l2 * compiled - penalty.l1 * np.sign(compiled)
    np.testing.assert_allclose(slope[used], 0.0, atol=1e-10)
    assert objective(X, y, compiled, penalty) < objective(X, y, start, penalty)
    if not copies:  # if dependent columns reach 0 together, rounding decides which leaves first
        np.testing.assert_array_equal(compiled != 0, plain != 0)
        np.testing.assert_allclose(compiled, plain, rtol=1e-9, atol=1e-12)
