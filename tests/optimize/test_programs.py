"""Linear and quadratic programs: textbook solutions, KKT conditions, irreducible conflicts, rays, Clarabel and SciPy."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy import optimize, sparse

from summula import DataError, ParameterError
from summula.optimize import linear_program, quadratic_program


def kkt(found, slope, G=None, h=None, A=None, b=None, low=-np.inf, high=np.inf):
    """The largest violation of the optimality conditions."""
    x, m, d = found.x, found.multipliers, len(found.x)
    G, h = (np.zeros((0, d)), np.zeros(0)) if G is None else (np.asarray(G, float), np.asarray(h, float))
    A, b = (np.zeros((0, d)), np.zeros(0)) if A is None else (np.asarray(A, float), np.asarray(b, float))
    low, high = np.broadcast_to(low, d), np.broadcast_to(high, d)
    stationary = slope + G.T @ m.inequalities + A.T @ m.equalities - m.lower + m.upper
    below, above = np.isfinite(low), np.isfinite(high)
    parts = [
        np.abs(stationary),
        np.maximum(G @ x - h, 0),
        np.abs(A @ x - b),
        np.maximum(low - x, 0),
        np.maximum(x - high, 0),
        np.maximum(-np.concatenate([m.inequalities, m.lower, m.upper]), 0),
        np.abs(m.inequalities * (G @ x - h)),
        np.abs(m.lower[below] * (x - low)[below]),
        np.abs(m.upper[above] * (high - x)[above]),
        np.abs(m.lower[~below]),
        np.abs(m.upper[~above]),
    ]
    return max(part.max(initial=0.0) for part in parts)


# ---------------------------------------------------------------------------------------------------- linear programs


@pytest.mark.parametrize("method", ["auto", "simplex", "interior_point"])
def test_a_textbook_example(method):
    # Hillier and Lieberman, the Wyndor Glass Co.: 2 and 6 batches, prices 0, 3/2, 1.
    G, h = [[1, 0], [0, 2], [3, 2]], [4, 12, 18]
    found = linear_program([-3, -5], G, h, bounds=(0, None), method=method)
    assert (found.status, found.converged) == ("optimal", True)
    np.testing.assert_allclose(found.x, [2, 6], atol=1e-9)
    np.testing.assert_allclose(found.multipliers.inequalities, [0, 1.5, 1], atol=1e-9)
    assert found.value == pytest.approx(-36)
    assert found.active == (1, 2)
    assert found.active_bounds == ()
    assert found.gap <= 1e-9
    assert kkt(found, np.array([-3.0, -5.0]), G, h, low=0.0) < 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_random_programs_fulfil_the_optimality_conditions(seed):
    rng = np.random.default_rng(seed)
    d = 5
    G, A, inside = rng.normal(size=(8, d)), rng.normal(size=(2, d)), rng.uniform(0.2, 0.8, size=d)
    h, b, c = G @ inside + rng.uniform(0, 1, size=8), A @ inside, rng.normal(size=d)
    found = linear_program(c, G, h, A, b, bounds=(0, 1))
    theirs = optimize.linprog(c, G, h, A, b, bounds=(0, 1))
    assert found.value == pytest.approx(theirs.fun, abs=1e-9)
    assert kkt(found, c, G, h, A, b, 0.0, 1.0) < 1e-8
    assert found.gap < 1e-8
    # A vertex: as many constraints hold with equality as there are variables.
    assert len(found.active) + len(found.active_bounds) + 2 >= d


def test_multipliers_are_prices():
    G, h, c = np.array([[1.0, 0], [0, 2], [3, 2]]), np.array([4.0, 12, 18]), [-3.0, -5.0]
    found = linear_program(c, G, h, bounds=(0, None))
    for i, price in enumerate(found.multipliers.inequalities):
        relaxed = linear_program(c, G, h + 0.01 * (np.arange(3) == i), bounds=(0, None))
        assert found.value - relaxed.value == pytest.approx(0.01 * price, abs=1e-9)


def test_free_variables_are_the_default():
    assert linear_program([1.0], [[-1.0]], [5.0]).x.tolist() == [-5.0]


def test_sparse_constraints():
    G, h = sparse.csr_array(-np.eye(3)), np.array([1.0, 2.0, 3.0])
    found = linear_program(np.ones(3), G, h)
    np.testing.assert_allclose(found.x, -h)


def test_no_lower_bound():
    found = linear_program([-1.0, -1.0], [[1.0, -1.0]], [2.0], bounds=(0, None))
    assert (found.status, found.converged, found.value) == ("unbounded", False, -np.inf)
    assert np.all(np.array([1.0, -1.0]) @ found.x <= 2.0)
    # The ray stays feasible and falls.
    assert (found.ray >= 0).all()
    assert np.array([1.0, -1.0]) @ found.ray <= 1e-12
    assert found.ray.sum() > 0
    assert "unbounded below along" in found.message


def feasible(G, h, A, b, bounds):
    found = optimize.linprog(
        np.zeros(len(bounds)),
        G if len(G) else None,
        h if len(G) else None,
        A if len(A) else None,
        b if len(A) else None,
        bounds,
    )
    return found.status == 0


@pytest.mark.parametrize("seed", range(12))
def test_a_conflict_is_real_and_every_member_is_needed(seed):
    rng = np.random.default_rng(seed)
    d = 3
    G, h = rng.normal(size=(25, d)), rng.normal(size=25) - 0.5
    A, b = rng.normal(size=(1, d)), rng.normal(size=1)
    found = linear_program(rng.normal(size=d), G, h, A, b, bounds=[(-1, 1)] * d)
    if feasible(G, h, A, b, [(-1, 1)] * d):
        assert found.status == "optimal"
        return
    assert found.status == "infeasible"
    assert 1 < len(found.conflict) <= d + 1

    def left(names):
        rows = [i for i in range(25) if f"inequality {i}" in names]
        on = [0] if "equality 0" in names else []
        low = [-1 if f"the lower bound of x{j}" in names else None for j in range(d)]
        high = [1 if f"the upper bound of x{j}" in names else None for j in range(d)]
        return feasible(G[rows], h[rows], A[on], b[on], list(zip(low, high, strict=True)))

    assert not left(found.conflict)
    assert all(left(set(found.conflict) - {name}) for name in found.conflict)
    assert all(name in found.message for name in found.conflict)


def test_conflicts_are_described():
    assert linear_program([0.0], [[0.0]], [-1.0]).message == "No x satisfies inequality 0; relax or remove it."
    found = linear_program([0.0, 0.0], A_eq=[[1.0, 1.0], [1.0, 1.0]], b_eq=[1.0, 2.0])
    assert found.conflict == ("equality 0", "equality 1")
    found = linear_program([0.0, 0.0], A_eq=[[1.0, 1.0]], b_eq=[-3.0], bounds=[(0, None), (-2, None)])
    assert found.conflict == ("equality 0", "the lower bound of x0", "the lower bound of x1")
    assert np.isnan(found.x).all()
    assert found.multipliers is None


# -------------------------------------------------------------------------------------------------- quadratic programs


def test_hand_solved_kkt():
    # Nocedal and Wright, example 16.4: (1.4, 1.7), only the first of five constraints active.
    P, q = 2 * np.eye(2), np.array([-2.0, -5.0])
    G = -np.array([[1.0, -2], [-1, -2], [-1, 2], [1, 0], [0, 1]])
    h = np.array([2.0, 6, 2, 0, 0])
    found = quadratic_program(P, q, G, h)
    np.testing.assert_allclose(found.x, [1.4, 1.7], atol=1e-12)
    np.testing.assert_allclose(found.multipliers.inequalities, [0.8, 0, 0, 0, 0], atol=1e-12)
    assert found.active == (0,)
    assert found.status == "optimal"
    assert found.gap < 1e-12


def test_an_equality_by_hand():
    # min x^2 + y^2 with x + y = 1: (1/2, 1/2), nu = -1.
    found = quadratic_program(2 * np.eye(2), np.zeros(2), A=[[1.0, 1.0]], b=[1.0])
    np.testing.assert_allclose(found.x, [0.5, 0.5], atol=1e-14)
    np.testing.assert_allclose(found.multipliers.equalities, [-1.0], atol=1e-13)


def test_example_of_nocedal_and_wright_16_2():
    P = np.array([[6.0, 2, 1], [2, 5, 2], [1, 2, 4]])
    found = quadratic_program(P, [-8.0, -3, -3], A=[[1, 0, 1], [0, 1, 1]], b=[3.0, 0])
    np.testing.assert_allclose(found.x, [2, -1, 1], atol=1e-12)
    np.testing.assert_allclose(found.multipliers.equalities, [-3, 2], atol=1e-12)  # SciPy's sign is opposite


def random_program(seed, d=6, m=10, rank=6):
    rng = np.random.default_rng(seed)
    B = rng.normal(size=(rank, d))
    G, A, inside = rng.normal(size=(m, d)), rng.normal(size=(2, d)), rng.uniform(-0.5, 0.5, size=d)
    return B.T @ B, rng.normal(size=d) * 3, G, G @ inside + rng.uniform(0, 1, size=m), A, A @ inside


@pytest.mark.parametrize("rank", [6, 3])
@pytest.mark.parametrize("seed", range(6))
def test_random_quadratic_programs(seed, rank):
    P, q, G, h, A, b = random_program(seed, rank=rank)
    found = quadratic_program(P, q, G, h, A, b, bounds=(-1, 1))
    assert found.status == "optimal"
    assert kkt(found, P @ found.x + q, G, h, A, b, -1.0, 1.0) < 1e-8
    assert found.gap < 1e-7
    theirs = optimize.minimize(
        lambda x: x @ P @ x / 2 + q @ x,
        np.zeros(6),
        jac=lambda x: P @ x + q,
        method="trust-constr",
        constraints=[optimize.LinearConstraint(G, -np.inf, h), optimize.LinearConstraint(A, b, b)],
        bounds=[(-1, 1)] * 6,
        options={"gtol": 1e-10, "xtol": 1e-12, "maxiter": 2000},
    )
    assert found.value <= theirs.fun + 1e-6


def test_permutations_and_scales_of_the_constraints_do_not_matter():
    P, q, G, h, A, b = random_program(1)
    one = quadratic_program(P, q, G, h, A, b)
    order, size = np.random.default_rng(0).permutation(10), np.geomspace(0.1, 10, 10)
    other = quadratic_program(P, q, (G * size[:, None])[order], (h * size)[order], -A, -b)
    np.testing.assert_allclose(other.x, one.x, atol=1e-8)
    np.testing.assert_allclose(other.multipliers.inequalities, (one.multipliers.inequalities / size)[order], atol=1e-7)
    np.testing.assert_allclose(other.multipliers.equalities, -one.multipliers.equalities, atol=1e-7)


def test_without_constraints_it_is_a_linear_system():
    P, q = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([1.0, -1.0])
    found = quadratic_program(P, q)
    np.testing.assert_allclose(found.x, -np.linalg.solve(P, q))
    unbounded = quadratic_program(np.diag([1.0, 0.0]), [0.0, 1.0])
    assert unbounded.status == "unbounded"
    np.testing.assert_allclose(unbounded.ray, [0.0, -1.0], atol=1e-12)


def test_a_quadratic_without_lower_bound():
    # Flat along (1, -1), and q falls along it.
    found = quadratic_program([[1.0, 1.0], [1.0, 1.0]], [1.0, 0.0], G=[[0.0, -1.0]], h=[0.0])
    assert found.status == "unbounded"
    np.testing.assert_allclose(found.ray, [-1.0, 1.0], atol=1e-9)


def test_an_infeasible_quadratic_program_names_its_conflict():
    found = quadratic_program(np.eye(2), [0.0, 0.0], G=[[1.0, 1.0], [1.0, 0.0], [-1.0, -1.0]], h=[-1.0, 9.0, -2.0])
    assert found.status == "infeasible"
    assert found.conflict == ("inequality 0", "inequality 2")


def test_an_indefinite_matrix_is_refused():
    with pytest.raises(ParameterError, match=r"negative eigenvalue -2, .* not convex .*P \+ 2 I"):
        quadratic_program(np.diag([1.0, -2.0]), [0.0, 0.0], bounds=(0, 1))
    # Rounding does not make a matrix indefinite.
    B = np.random.default_rng(0).normal(size=(2, 5)) * 1e4
    assert quadratic_program(B.T @ B, np.zeros(5), bounds=(0, 1)).status == "optimal"


def test_the_hard_margin_of_two_points():
    # Points (2, 0) and (0, 0): w = (1, 0), b = -1; both are support vectors.
    X, y = np.array([[2.0, 0.0], [0.0, 0.0]]), np.array([1.0, -1.0])
    found = quadratic_program(
        np.diag([1.0, 1.0, 0.0]), np.zeros(3), -y[:, None] * np.column_stack([X, np.ones(2)]), -np.ones(2)
    )
    np.testing.assert_allclose(found.x, [1, 0, -1], atol=1e-9)
    assert found.active == (0, 1)
    np.testing.assert_allclose(found.multipliers.inequalities, [0.5, 0.5], atol=1e-9)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: linear_program([1.0], [[1.0]]), ParameterError, "A_ub without b_ub"),
        (lambda: linear_program([1.0], [[1.0, 2.0]], [1.0]), DataError, "one column per variable"),
        (lambda: linear_program([1.0], [[1.0]], [1.0, 2.0]), DataError, "A_ub has 1 rows but b_ub has 2"),
        (lambda: linear_program([1.0], [[np.nan]], [1.0]), DataError, "A_ub has a missing or infinite entry"),
        (lambda: linear_program([np.inf]), DataError, "c is missing or infinite at index 0"),
        (lambda: linear_program([1.0], bounds=[(0, 1), (0, 1), (0, 1)]), DataError, "bounds has 3 pairs"),
        (lambda: linear_program([1.0], bounds=(2, 1)), ParameterError, "low <= high"),
        (lambda: linear_program([1.0], method="ellipsoid"), ParameterError, "'simplex'"),
        (lambda: quadratic_program([[1.0, 2.0]], [1.0]), DataError, "square matrix"),
        (lambda: quadratic_program(np.eye(2), [1.0]), DataError, "P has 2 rows but q has 1"),
        (lambda: quadratic_program([["a"]], [1.0]), DataError, "is not numeric"),
        (lambda: quadratic_program(np.eye(2), [1.0, 1.0], A=[[1.0, 1.0]]), ParameterError, "A without b"),
    ],
)
def test_sentences(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_clarabel_is_loaded_by_the_first_program_only():
    import subprocess

    code = (
        "import sys, summula.optimize as o; o.linear_program, o.quadratic_program; sys.exit('clarabel' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
