"""Constrained minima against hand-solved conditions of Karush, Kuhn and Tucker; duals in closed form; duality."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize

from summula import DataError, ParameterError
from summula.optimize import (
    KKT,
    Multipliers,
    Problem,
    Quadratic,
    check_duality,
    constrained_minimum,
    dual_function,
    kkt_residuals,
    quadratic_program,
)

# ------------------------------------------------------------------------------------------------- solved by hand

BY_HAND = {
    # name: (problem, x0, x, lambda, nu)
    "equality": (
        # The longest x + y on the unit circle: (1, 1)/sqrt 2, nu = 1/sqrt 2.
        Problem(lambda x: -x[0] - x[1], equalities=[lambda x: x @ x - 1]),
        [1.0, 0.2],
        np.sqrt([0.5, 0.5]),
        [],
        np.sqrt([0.5]),
    ),
    "active inequality": (
        # min (x - 2)^2 + y^2 in the unit disc: (1, 0), 2 (x - 2) + 2 l x = 0 gives l = 1.
        Problem(lambda x: (x[0] - 2) ** 2 + x[1] ** 2, inequalities=[lambda x: x @ x - 1]),
        [0.0, 0.5],
        [1.0, 0.0],
        [1.0],
        [],
    ),
    "idle inequality": (
        Problem(lambda x: (x[0] - 0.2) ** 2 + x[1] ** 2, inequalities=[lambda x: x @ x - 1]),
        [0.9, 0.1],
        [0.2, 0.0],
        [0.0],
        [],
    ),
    "both": (
        # Boyd and Vandenberghe, exercise 5.1: min x^2 + 1 with (x - 2)(x - 4) <= 0: x = 2, l = 2.
        Problem(lambda x: x[0] ** 2 + 1, inequalities=[lambda x: (x[0] - 2) * (x[0] - 4)]),
        [3.0],
        [2.0],
        [2.0],
        [],
    ),
    "several": (
        # min x^2 + y^2 + z^2 with x + y + z = 3 and z >= 2: (1/2, 1/2, 2), nu = -1, l = 2z + nu = 3.
        Problem(
            lambda x: x @ x, equalities=lambda x: x.sum() - 3, inequalities=[lambda x: 2 - x[2], lambda x: x[0] - 9]
        ),
        [0.0, 0.0, 0.0],
        [0.5, 0.5, 2.0],
        [3.0, 0.0],
        [-1.0],
    ),
    "entropy": (
        # The distribution of most entropy on four places is even: log p + 1 + nu = 0.
        Problem(lambda p: np.sum(p * np.log(p)), equalities=[lambda p: p.sum() - 1], gradient=lambda p: np.log(p) + 1),
        [0.1, 0.2, 0.3, 0.4],
        np.full(4, 0.25),
        [],
        [np.log(4) - 1],
    ),
}


@pytest.mark.parametrize(("problem", "x0", "x", "lambda_", "nu"), BY_HAND.values(), ids=BY_HAND)
def test_by_hand(problem, x0, x, lambda_, nu):
    found = constrained_minimum(problem, x0)
    assert found.status == "converged", found.message
    np.testing.assert_allclose(found.x, x, atol=1e-5)
    np.testing.assert_allclose(found.multipliers.inequalities, lambda_, atol=1e-4)
    np.testing.assert_allclose(found.multipliers.equalities, nu, atol=1e-4)
    assert found.active == tuple(np.flatnonzero(np.asarray(lambda_) > 0))
    assert max(kkt_residuals(problem, found.x, found.multipliers)) < 1e-4
    assert max(kkt_residuals(problem, x, (lambda_, nu))) < 1e-8
    assert len(found.trace) == len(found.path) == found.n_steps + 1


def test_multipliers_are_prices():
    def minimum(relaxed):
        return constrained_minimum(
            Problem(lambda x: (x[0] - 2) ** 2 + x[1] ** 2, inequalities=[lambda x: x @ x - 1 - relaxed]), [0.0, 0.5]
        )

    h = 1e-3
    slope = (minimum(h).value - minimum(-h).value) / (2 * h)
    assert -slope == pytest.approx(minimum(0.0).multipliers.inequalities[0], abs=1e-4)


def test_gradients_given_and_not_agree():
    f, g, h = (
        lambda x: np.exp(x[0]) + x[1] ** 2,
        lambda x: np.array([x[0] - x[1], -x[0] - 1]),
        lambda x: x[0] + 2 * x[1] - 1,
    )
    plain = constrained_minimum(Problem(f, h, g), [0.0, 0.0])
    given = constrained_minimum(
        Problem(
            f,
            h,
            g,
            gradient=lambda x: np.array([np.exp(x[0]), 2 * x[1]]),
            equality_gradients=[lambda x: np.array([1.0, 2.0])],
            inequality_gradients=[lambda x: np.array([[1.0, -1.0], [-1.0, 0.0]])],
        ),
        [0.0, 0.0],
    )
    np.testing.assert_allclose(plain.x, given.x, atol=1e-6)
    np.testing.assert_allclose(plain.multipliers.inequalities, given.multipliers.inequalities, atol=1e-5)
    assert len(given.multipliers.inequalities) == 2


def test_the_same_as_a_quadratic_program():
    rng = np.random.default_rng(0)
    B = rng.normal(size=(4, 4))
    P, q, G, h = B @ B.T + np.eye(4), rng.normal(size=4), rng.normal(size=(5, 4)), rng.uniform(-0.2, 1, size=5)
    program = quadratic_program(P, q, G, h)
    problem = Problem(Quadratic(P, q), inequalities=[Quadratic(None, a, -c) for a, c in zip(G, h, strict=True)])
    found = constrained_minimum(problem, np.zeros(4))
    np.testing.assert_allclose(found.x, program.x, atol=1e-6)
    np.testing.assert_allclose(found.multipliers.inequalities, program.multipliers.inequalities, atol=1e-5)
    assert found.active == program.active
    # All functions are quadratic: the gap is the exact dual's.
    assert 0 <= found.gap < 1e-8
    assert max(kkt_residuals(problem, program.x, program.multipliers[:2])) < 1e-10


def test_against_trust_constr():
    f = lambda x: (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2  # noqa: E731
    found = constrained_minimum(Problem(f, inequalities=[lambda x: x @ x - 1]), [0.0, 0.0])
    theirs = optimize.minimize(
        f, [0.0, 0.0], method="trust-constr", constraints=[optimize.NonlinearConstraint(lambda x: x @ x, -np.inf, 1)]
    )
    np.testing.assert_allclose(found.x, theirs.x, atol=1e-3)
    assert found.status == "converged"


def test_without_constraints():
    found = constrained_minimum(Problem(lambda x: (x[0] - 1) ** 2), [5.0])
    assert found.status == "converged"
    assert found.x == pytest.approx([1.0], abs=1e-6)
    assert found.multipliers.inequalities.size == 0


# ------------------------------------------------------------------------------------------- where there is none


def test_infeasible():
    problem = Problem(lambda x: x @ x, inequalities=[lambda x: x[0] + 1, lambda x: 1 - x[0], lambda x: x[1] - 5])
    found = constrained_minimum(problem, [0.3, 0.0])
    assert (found.status, found.converged) == ("infeasible", False)
    assert found.conflict == ("inequality 0", "inequality 1")
    assert "inequality 0, inequality 1 are violated by up to 1" in found.message
    assert found.multipliers is None


def test_an_infeasible_start_is_no_obstacle():
    found = constrained_minimum(Problem(lambda x: x[0], inequalities=[lambda x: x @ x - 1]), [30.0, 40.0])
    np.testing.assert_allclose(found.x, [-1.0, 0.0], atol=1e-4)


@pytest.mark.parametrize(
    "problem",
    [
        Problem(lambda x: x[0] - x[1]),
        Problem(lambda x: -x[0], inequalities=[lambda x: x[1] - 1]),
        Problem(lambda x: -(x[0] ** 2), equalities=[lambda x: x[1]]),
    ],
)
def test_unbounded(problem):
    found = constrained_minimum(problem, [0.5, 0.0])
    assert (found.status, found.value) == ("unbounded", -np.inf)
    assert "unbounded below" in found.message


def test_a_point_without_multipliers_raises():
    # x^2 <= 0 leaves x = 0 only, where its gradient is zero: no price makes the Lagrangian of f = x stationary.
    found = constrained_minimum(Problem(lambda x: x[0], inequalities=[lambda x: x[0] ** 2]), [1.0])
    assert not found.converged
    assert "No finite multipliers" in found.message
    assert abs(found.x[0]) < 2e-3


# ----------------------------------------------------------------------------------------------------------- duals


def test_the_dual_of_a_textbook_example():
    # Boyd and Vandenberghe, exercise 5.1: the dual of min x^2 + 1, (x - 2)(x - 4) <= 0 is -9 l^2/(1 + l) + 1 + 8 l.
    exact = Problem(Quadratic([[2.0]], [0.0], 1.0), inequalities=[Quadratic([[2.0]], [-6.0], 8.0)])
    by_search = Problem(lambda x: x[0] ** 2 + 1, inequalities=[lambda x: (x[0] - 2) * (x[0] - 4)])
    for problem in (exact, by_search):
        dual = dual_function(problem, [0.0])
        for price in (0.0, 0.5, 2.0, 7.0):
            assert dual([price]) == pytest.approx(-9 * price**2 / (1 + price) + 1 + 8 * price, abs=1e-8)
        assert dual([2.0]) == pytest.approx(5.0, abs=1e-8)
    assert dual_function(exact).is_exact
    assert not dual_function(by_search, [0.0]).is_exact


def test_the_dual_of_least_norm():
    # min x'x with Ax = b has the dual -nu'AA'nu / 4 - b'nu (Boyd and Vandenberghe, 5.1.5).
    rng = np.random.default_rng(0)
    A, b = rng.normal(size=(2, 4)), rng.normal(size=2)
    problem = Problem(Quadratic(2 * np.eye(4)), equalities=[Quadratic(None, a, -c) for a, c in zip(A, b, strict=True)])
    dual = dual_function(problem)
    for nu in rng.normal(size=(5, 2)):
        assert dual(nu=nu) == pytest.approx(-nu @ A @ A.T @ nu / 4 - b @ nu)
    found = check_duality(problem, np.zeros(4))
    assert found.strong
    assert found.primal == pytest.approx(b @ np.linalg.solve(A @ A.T, b), abs=1e-8)


def test_the_dual_of_a_linear_program_is_minus_infinity_almost_everywhere():
    # min -x - 2y with x <= 1, y <= 1: q(l) = -l1 - l2 at l = (1, 2), else -inf.
    problem = Problem(
        Quadratic(None, [-1.0, -2.0]),
        inequalities=[Quadratic(None, [1.0, 0.0], -1.0), Quadratic(None, [0.0, 1.0], -1.0)],
    )
    dual = dual_function(problem)
    assert dual([1.0, 2.0]) == pytest.approx(-3.0)
    assert dual([1.0, 1.9]) == -np.inf
    assert dual.minimiser([0.0, 0.0]).status == "unbounded"
    assert "no bound" in dual.minimiser([0.0, 0.0]).message
    by_search = dual_function(Problem(lambda x: -x[0], inequalities=[lambda x: x[0] - 1]), [0.0])
    assert by_search([0.5]) == -np.inf


@pytest.mark.parametrize("seed", range(5))
def test_weak_duality_and_concavity(seed):
    rng = np.random.default_rng(seed)
    d, m = 3, 4
    matrices = [rng.normal(size=(d, d)) for _ in range(m + 1)]
    # Not convex on purpose: weak duality and concavity need no convexity.
    pieces = [
        Quadratic(A @ A.T + s * np.eye(d), rng.normal(size=d), -1.0)
        for A, s in zip(matrices, [1, 0, -0.5, 0, 0], strict=True)
    ]
    problem = Problem(pieces[0], inequalities=pieces[1:])
    dual = dual_function(problem)
    feasible = [x for x in rng.normal(size=(200, d)) * 0.5 if problem.inequality_values(x).max() <= 0]
    assert feasible
    prices = rng.uniform(0, 1, size=(20, m))
    values = [dual(price) for price in prices]
    assert max(values) <= min(problem.value(x) for x in feasible) + 1e-9
    for a, b in zip(prices[:10], prices[10:], strict=True):
        assert dual((a + b) / 2) >= (dual(a) + dual(b)) / 2 - 1e-9


def test_strong_duality_under_slater():
    found = check_duality(
        Problem(lambda x: np.exp(x[0]) + x[1] ** 2, inequalities=[lambda x: 1 - x[0] - x[1]]), [1.0, 1.0]
    )
    assert found.strong
    assert found.gap <= 1e-6
    assert found.dual <= found.primal + 1e-8


def test_without_convexity_there_may_be_a_gap():
    # min -x^2 on [-1, 1]: p* = -1, and every Lagrangian is unbounded below.
    problem = Problem(Quadratic([[-2.0]]), inequalities=[Quadratic(None, [1.0], -1.0), Quadratic(None, [-1.0], -1.0)])
    found = check_duality(problem, [0.3])
    assert found.primal == pytest.approx(-1.0)
    assert found.dual == -np.inf
    assert not found.strong
    # The same interval as x^2 <= 1 has none: one quadratic constraint is the exception (the S-lemma).
    found = check_duality(Problem(Quadratic([[-2.0]]), inequalities=[Quadratic([[2.0]], r=-1.0)]), [0.3])
    assert found.strong


def test_the_dual_of_a_hard_margin():
    # Max-margin through the origin for (2, 0) and (-1, 0) with labels +, -: w = (1, 0), only the second point holds it.
    X, y = np.array([[2.0, 0.0], [-1.0, 0.0]]), np.array([1.0, -1.0])
    problem = Problem(
        Quadratic(np.eye(2)), inequalities=[Quadratic(None, -t * x, 1.0) for x, t in zip(X, y, strict=True)]
    )
    dual = dual_function(problem)
    K = (y[:, None] * X) @ (y[:, None] * X).T
    for price in np.random.default_rng(0).uniform(0, 1, size=(5, 2)):
        assert dual(price) == pytest.approx(price.sum() - price @ K @ price / 2)
    found = check_duality(problem, [3.0, 1.0])
    np.testing.assert_allclose(found.solution.x, [1.0, 0.0], atol=1e-6)
    np.testing.assert_allclose(found.multipliers.inequalities, [0.0, 1.0], atol=1e-5)


# ------------------------------------------------------------------------------------------------------- residuals


def test_residuals_measure_each_condition():
    problem = Problem(lambda x: x @ x, equalities=[lambda x: x[1] - 3], inequalities=[lambda x: 1 - x[0]])
    assert isinstance(kkt_residuals(problem, [1.0, 3.0], ([2.0], [-6.0])), KKT)
    assert max(kkt_residuals(problem, [1.0, 3.0], Multipliers(np.array([2.0]), np.array([-6.0])))) < 1e-8
    assert kkt_residuals(problem, [1.0, 3.0], ([1.5], [-6.0])).stationarity == pytest.approx(0.5)
    assert kkt_residuals(problem, [0.9, 3.0], ([2.0], [-6.0])).primal == pytest.approx(0.1)
    assert kkt_residuals(problem, [1.0, 3.2], ([2.0], [-6.0])).primal == pytest.approx(0.2)
    assert kkt_residuals(problem, [1.0, 3.0], ([-2.0], [-6.0])).dual == pytest.approx(2.0)
    assert kkt_residuals(problem, [2.0, 3.0], ([2.0], [-6.0])).complementarity == pytest.approx(2.0)


def test_the_lagrangian():
    problem = Problem(lambda x: x @ x, equalities=[lambda x: x[1] - 3], inequalities=[lambda x: 1 - x[0]])
    assert problem.lagrangian([2.0, 1.0], ([3.0], [0.5])) == pytest.approx(5 - 3 - 1)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: Problem(3), ParameterError, "must be functions of x"),
        (lambda: Problem(lambda x: 0, inequalities=[3]), ParameterError, "'inequalities' of Problem"),
        (lambda: Problem(lambda x: 0, inequality_gradients=[None]), ParameterError, "0 inequalities but 1"),
        (lambda: constrained_minimum(lambda x: 0, [1.0]), ParameterError, "needs a Problem, not function"),
        (lambda: constrained_minimum(Problem(lambda x: np.nan), [1.0]), DataError, "choose another x0"),
        (lambda: kkt_residuals(Problem(lambda x: 0), [1.0], ([1.0], [])), DataError, "There are 0 inequalities"),
        (lambda: kkt_residuals(Problem(lambda x: 0), [1.0], 3), ParameterError, "a pair"),
        (lambda: dual_function(Problem(lambda x: 0)), ParameterError, "needs a starting point x0"),
        (lambda: dual_function(3), ParameterError, "needs a Problem"),
        (
            lambda: dual_function(Problem(Quadratic([[1.0]]), inequalities=[Quadratic(None, [1.0])]))([-1.0]),
            ParameterError,
            "multiplier of inequality 0 is -1",
        ),
        (lambda: check_duality(Problem(lambda x: x[0]), [1.0]), DataError, "No minimum of the problem was found"),
        (lambda: Problem(lambda x: x).value(np.ones(2)), DataError, "must return one number"),
        (lambda: Quadratic(None), ParameterError, "at least one of P and q"),
    ],
)
def test_sentences(call, error, words):
    with pytest.raises(error, match=words):
        call()
