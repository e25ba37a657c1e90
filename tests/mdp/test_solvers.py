"""Values, policies and bounds: published values, linear programming, bounds at every stop, kernels against NumPy."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

import summula
from summula.mdp import MDP
from summula.mdp.solvers import backup_kernels, value_iteration
from tests.reference import markov

ORDERS = ["synchronous", "gauss_seidel", "random"]


def solvers(mdp):
    yield mdp.solve()
    yield mdp.policy_iteration()
    yield mdp.policy_iteration(method="iterative")
    for order in ORDERS:
        yield mdp.value_iteration(order, random_state=0)
    yield mdp.value_iteration(np.r_[np.arange(mdp.n_states), 0][::-1])


def test_a_two_state_closed_form():
    # Staying in state 1 pays 1: V(1) = 1 / (1 - gamma); state 0 goes there with probability p, or stays.
    gamma, p = 0.8, 0.3
    mdp = MDP([[[1 - p, p]], [[0.0, 1.0]]], [0.0, 1.0], gamma)
    expected = [gamma * p / (1 - gamma) / (1 - gamma * (1 - p)), 1 / (1 - gamma)]
    np.testing.assert_allclose(mdp.evaluate([0, 0]).values, expected, rtol=1e-13)
    for found in solvers(mdp):
        np.testing.assert_allclose(found.values, expected, atol=1e-6)


def test_the_toymaker_of_howard():
    P, R = markov.toymaker()
    for found in solvers(MDP(P, R, 0.9)):
        assert found.policy.tolist() == [1, 1]
        np.testing.assert_allclose(found.values, [22.2, 12.3], atol=0.05)  # Howard (1960), chapter 7
    np.testing.assert_allclose(MDP(P, R, 0.9).rewards, [[6, 4], [-3, -5]])


def test_the_toymaker_with_a_finite_horizon():
    P, R = markov.toymaker()
    found = MDP(P, R, 1.0).backward_induction(4)
    # Howard (1960), chapter 3: total expected earnings and decisions with 1 to 4 weeks left.
    np.testing.assert_allclose(
        found.values[::-1][1:], [[6, -3], [8.2, -1.7], [10.22, 0.23], [12.222, 2.223]], atol=1e-12
    )
    assert found.policy[::-1].tolist() == [[0, 0], [1, 1], [1, 1], [1, 1]]


def test_the_taxicab_of_howard():
    P, R, available = markov.taxicab()
    for found in solvers(MDP(P, R, 0.9, available=available)):
        assert found.policy.tolist() == [1, 1, 1]
        np.testing.assert_allclose(found.values, [121.65, 135.31, 122.84], atol=0.01)  # Howard (1960), chapter 7
        assert found.q_values[1, 2] == -np.inf


def test_the_grid_world_of_russell_and_norvig():
    P, R, ends = markov.grid_world()
    mdp = MDP(P, R, 1.0 - 1e-9, termination=ends)
    found = mdp.policy_iteration(tol=1e-3)
    assert found.converged
    seen = ~np.isnan(markov.UTILITIES.ravel())
    np.testing.assert_allclose(found.values[seen], markov.UTILITIES.ravel()[seen], atol=5.1e-4)
    policy = np.where(seen, found.policy, -1).reshape(3, 4)
    assert policy[0, :3].tolist() == [1, 1, 1]
    assert policy[1, [0, 2]].tolist() == [0, 0]
    assert policy[2].tolist() == [0, 3, 3, 3]


@pytest.mark.parametrize("seed", range(3))
def test_every_solver_agrees_with_linear_programming(seed):
    P, r = markov.random_process(np.random.default_rng(seed))
    gamma, kept = 0.95, r > -np.inf
    # min sum V subject to V(s) >= r(s, a) + gamma P V
    rows = gamma * P[kept] - np.eye(len(P))[np.nonzero(kept)[0]]
    expected = linprog(np.ones(len(P)), rows, -r[kept], bounds=(None, None)).x
    for found in solvers(MDP(P, r, gamma)):
        assert found.converged
        assert found.gap <= 1e-6
        np.testing.assert_allclose(found.values, expected, atol=1e-6)
        assert kept[np.arange(len(P)), found.policy].all()


@pytest.mark.parametrize("may_end", [False, True])
@pytest.mark.parametrize("order", [*ORDERS, "solve"])
def test_bounds_hold_wherever_a_solver_stops(order, may_end):
    rng = np.random.default_rng(4)
    P, r = markov.random_process(rng, S=400, A=2, sparse=0.01)
    ends = rng.random(400) * 0.3 if may_end else np.zeros(400)
    mdp = MDP(P * (1 - ends[:, None, None]), r, 0.9, termination=ends)
    exact = mdp.policy_iteration(tol=1e-10).values
    start = rng.normal(size=400) * 20
    for n in (1, 2, 5, 20, 80):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            if order == "solve":
                found = mdp.solve(max_iter=n, start=start)
            else:
                found = mdp.value_iteration(order, max_iter=n, start=start, random_state=0)
        own = mdp.evaluate(found.policy).values
        assert (found.lower <= own + 1e-12).all()
        assert (own <= exact + 1e-9).all()
        assert (exact <= found.upper + 1e-12).all()
        np.testing.assert_allclose(found.upper - found.lower, found.gap, rtol=1e-6, atol=1e-12)
        assert np.abs(found.values - exact).max() <= found.gap / 2 + 1e-12
        assert (found.gap <= 1e-6) == found.converged


def test_the_gap_is_useful():
    # If the start is off by a constant, one backup is sufficient.
    P, r = markov.random_process(np.random.default_rng(0))
    mdp = MDP(P, r, 0.99)
    shifted = mdp.policy_iteration().values + 1000.0
    assert mdp.value_iteration(start=shifted, tol=1e-6).n_steps == 1


def test_kernels_equal_numpy():
    P, r = markov.random_process(np.random.default_rng(1), S=30)
    V = np.random.default_rng(2).normal(size=30)
    stored = sparse.csr_matrix(P.reshape(-1, 30))
    arrays = (stored.indptr.astype(np.int64), stored.indices.astype(np.uint32), stored.data)
    TV, policy, change = np.zeros(30), np.zeros(30, np.int64), np.zeros(2)
    backup_kernels.back_up((0, 30), arrays, r.ravel(), 0.9, V, TV, policy, change)
    expected, chosen = markov.back_up(P, r, 0.9, V)
    np.testing.assert_allclose(TV, expected, rtol=1e-13)
    np.testing.assert_array_equal(policy, chosen)
    np.testing.assert_allclose(change, [(expected - V).min(), (expected - V).max()], rtol=1e-12)
    backup_kernels.back_up_policy((5, 20), arrays, r.ravel(), 0.9, V, TV, np.zeros(30, np.int64), change)
    np.testing.assert_allclose(TV[5:20], markov.back_up_policy(P, r, 0.9, V, np.zeros(30, int))[5:20], rtol=1e-13)
    order, W = np.random.default_rng(3).permutation(30), V.copy()
    change[:] = np.inf, -np.inf
    backup_kernels.back_up_in_place(order, arrays, r.ravel(), 0.9, W, policy, change)
    np.testing.assert_allclose(W, markov.back_up_in_place(P, r, 0.9, V, order), rtol=1e-13)
    np.testing.assert_allclose(change, [(W - V).min(), (W - V).max()], rtol=1e-12)


def test_threads_give_the_same_bits():
    rng = np.random.default_rng(0)
    S, A, k = 4_000, 2, 8
    places = np.sort(rng.integers(0, S, (S * A, k)), axis=1).ravel()
    P = sparse.csr_matrix((np.full(S * A * k, 1 / k), places, np.arange(0, S * A * k + 1, k)), (S * A, S))
    mdp = MDP(P, rng.random((S, A)), 0.95)
    several = mdp.solve()
    with summula.engine("serial"):
        alone = mdp.solve()
    assert several.method == "modified policy iteration"
    np.testing.assert_array_equal(several.values, alone.values)
    np.testing.assert_array_equal(several.policy, alone.policy)
    assert several.trace == alone.trace


@pytest.mark.parametrize("method", ["direct", "iterative", "auto"])
@pytest.mark.parametrize("S", [60, 1_200])
def test_evaluation_solves_the_linear_system(method, S):
    rng = np.random.default_rng(0)
    P, r = markov.random_process(rng, S=S, A=2, sparse=6 / S)
    r = np.where(r > -np.inf, r, 0.0)
    table = rng.dirichlet([1.0, 1.0], S)
    found = MDP(P, r, 0.9).evaluate(table, method=method)
    chain = np.einsum("sa,sat->st", table, P)
    expected = np.linalg.solve(np.eye(S) - 0.9 * chain, (table * r).sum(axis=1))
    np.testing.assert_allclose(found.values, expected, atol=1e-8)
    assert np.abs(found.values - expected).max() <= found.gap + 1e-13 < np.inf
    assert found.residual <= 1e-8
    np.testing.assert_allclose((found.q_values * table).sum(axis=1), expected, atol=1e-7)


def test_a_deterministic_policy_is_a_table_of_ones():
    P, r = markov.random_process(np.random.default_rng(5))
    mdp = MDP(P, r, 0.9)
    policy = mdp.solve().policy
    one = mdp.evaluate(policy).values
    np.testing.assert_allclose(one, mdp.evaluate(np.eye(3)[policy]).values, rtol=1e-12)
    np.testing.assert_allclose(one, mdp.policy_iteration().values, rtol=1e-10)
    np.testing.assert_allclose(mdp.evaluate(mdp.solution_).values, one, rtol=1e-12)


def test_policies_of_policy_iteration_improve():
    P, r = markov.random_process(np.random.default_rng(6), S=40)
    mdp = MDP(P, r, 0.9)
    worst = np.zeros(40, int)
    found = mdp.policy_iteration(worst)
    assert found.n_steps > 1
    assert list(found.trace) == sorted(found.trace, reverse=True)
    assert (found.values >= mdp.evaluate(worst).values - 1e-12).all()


def test_ties_end():
    # All actions are equal: no improvement is possible, regardless of rounding.
    P = np.tile(np.full((7, 1, 7), 1 / 7), (1, 3, 1))
    found = MDP(P, np.full(7, 0.1), 0.999).policy_iteration(np.arange(7) % 3)
    assert found.n_steps == 1
    assert found.converged


def test_limits_are_reported():
    P, r = markov.random_process(np.random.default_rng(7), S=400, sparse=0.02)
    mdp = MDP(P, r, 0.99)
    with pytest.warns(ConvergenceWarning, match="max_iter=2 steps: the policy is within .* increase max_iter"):
        found = mdp.solve(max_iter=2)
    assert (found.status, found.converged, found.n_steps) == ("max_iter", False, 2)
    with pytest.warns(ConvergenceWarning, match="increase max_time"):
        assert mdp.value_iteration("gauss_seidel", max_time=0.0).status == "max_time"
    with pytest.warns(ConvergenceWarning, match="as rounding allows; use a tol of at least"):
        stalled = mdp.value_iteration(tol=1e-16, max_iter=100_000)
    assert stalled.status == "stalled"
    assert stalled.gap < 1e-7
    assert mdp.value_iteration(tol=float(stalled.message.split()[-1].rstrip("."))).converged, "the advice works"


def test_forest_management():
    # The example of pymdptoolbox: wait (0) or cut (1), three ages, a fire with probability 0.1.
    wait, cut = [[0.1, 0.9, 0.0], [0.1, 0.0, 0.9], [0.1, 0.0, 0.9]], [[1.0, 0.0, 0.0]] * 3
    mdp = MDP(np.stack([wait, cut], axis=1), [[0.0, 0.0], [0.0, 1.0], [4.0, 2.0]], 0.9)
    for found in solvers(mdp):
        np.testing.assert_allclose(found.values, [26.244, 29.484, 33.484], atol=1e-6)
        assert found.policy.tolist() == [0, 0, 0]


@pytest.mark.parametrize("solve", [MDP.solve, MDP.policy_iteration, MDP.value_iteration])
def test_bounds_are_verified_without_a_solver(solve):
    P, r = markov.random_process(np.random.default_rng(12), S=40)
    r = np.where(np.isfinite(r), r, -9.0)
    mdp = MDP(P, r, 0.95)
    found = solve(mdp)
    checked = found.verify(mdp)
    assert checked
    assert checked.gap == pytest.approx(found.gap)
    # Bounds of another process, bounds that are too narrow, and a worse policy are rejected.
    assert not found.verify(MDP(P, r + 0.01, 0.95))
    assert not replace(found, upper=found.upper - 1e-5).verify(mdp)
    assert not replace(found, policy=(found.policy + 1) % mdp.n_actions).verify(mdp)
    assert not replace(found, gap=0.0).verify(mdp)
    with pytest.raises(summula.DataError, match="of 40 states, but the process has 2"):
        found.verify(MDP(np.eye(2)[:, None], [0.0, 1.0], 0.9))


def test_a_warm_start_saves_steps():
    P, r = markov.random_process(np.random.default_rng(8), S=400, sparse=0.02)
    mdp = MDP(P, r, 0.99)
    cold = mdp.value_iteration()
    assert mdp.value_iteration(start=cold).n_steps < cold.n_steps / 4


@pytest.mark.parametrize("solve", [MDP.solve, MDP.value_iteration, lambda m: m.value_iteration("gauss_seidel")])
def test_ctrl_c_keeps_the_best_solution(solve, monkeypatch):
    from summula.mdp.solvers.bounds import Backups

    P, r = markov.random_process(np.random.default_rng(9), S=400, sparse=0.02)
    mdp = MDP(P, r, 0.99)
    calls, before = [], Backups.bounds

    def interrupted(self, V, backup):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return before(self, V, backup)

    def interrupted_sweep(self, V, policy, order, original=Backups.in_place):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(self, V, policy, order)

    monkeypatch.setattr(Backups, "bounds", interrupted)
    monkeypatch.setattr(Backups, "in_place", interrupted_sweep)
    with pytest.raises(KeyboardInterrupt):
        solve(mdp)
    monkeypatch.undo()
    found = mdp.solution_
    assert found.status == "interrupted"
    exact = mdp.policy_iteration(tol=1e-9).values
    assert (found.lower <= exact).all()
    assert (exact <= found.upper).all()


def test_relabelling_states_changes_nothing():
    P, r = markov.random_process(np.random.default_rng(10), S=50)
    order = np.random.default_rng(0).permutation(50)
    one, other = MDP(P, r, 0.9).solve(), MDP(P[order][:, :, order], r[order], 0.9).solve()
    np.testing.assert_allclose(other.values, one.values[order], atol=1e-9)


def test_discount_zero_is_greedy():
    P, r = markov.random_process(np.random.default_rng(11))
    found = MDP(P, r, 0.0).solve()
    np.testing.assert_allclose(found.values, r.max(axis=1), atol=1e-12)


def test_a_solution_plots_itself_on_a_grid():
    from matplotlib import pyplot

    stay = np.eye(5)[:, None, :].repeat(4, axis=1)
    found = MDP(stay, [0.0, 1.0, 2.0, 3.0, 9.0], 0.5).solve()
    ax = found.plot((2, 2), hidden=[2], final=[1])
    assert [text.get_text() for text in ax.texts if text.get_text()] == ["0", "2", "6"]
    shown = np.ma.filled(ax.images[0].get_array(), np.nan)
    np.testing.assert_array_equal(shown, [[0, 2], [np.nan, 6]])
    assert summula.plot(found, shape=(2, 2)).images
    assert summula.plot(found, (2, 2)).images, "X is the shape"
    ax = summula.plot(found)  # against the numbers of the states
    assert ax.get_xlabel() == "state"
    np.testing.assert_allclose(
        np.sort(np.vstack([c.get_offsets() for c in ax.collections[1:]])[:, 1]), [0, 2, 4, 6, 18]
    )
    ax = summula.plot(MDP(stay, [0.0, 1.0, 2.0, 3.0, 9.0], 0.5).backward_induction(3))
    assert (ax.get_xlabel(), len(ax.texts)) == ("step", 15)
    with pytest.raises(summula.DataError, match="needs 6 states; there are 5"):
        found.plot((2, 3))
    pyplot.close("all")


def _slow_walk(S=2_000):
    """Return a process on a ring of states, which mixes slowly: two actions walk left or right with noise."""
    rng = np.random.default_rng(3)
    s = np.arange(S)
    P = np.zeros((2, S, 3))
    P[0], P[1] = (0.8, 0.15, 0.05), (0.05, 0.15, 0.8)
    after = np.stack([(s - 1) % S, s, (s + 1) % S], axis=1)
    rows = np.repeat(2 * s, 3)
    matrix = sparse.coo_matrix(
        (
            np.concatenate([P[0].ravel(), P[1].ravel()]),
            (np.concatenate([rows, rows + 1]), np.concatenate([after.ravel()] * 2)),
        ),
        (2 * S, S),
    )
    return MDP(matrix.tocsr(), rng.random(S) ** 8, 0.999)


def test_chains_that_mix_slowly_take_few_steps():
    mdp = _slow_walk()
    solution, exact = mdp.solve(tol=1e-7), mdp.policy_iteration(tol=1e-7)
    assert solution.method == "modified policy iteration"
    assert solution.converged
    assert solution.n_steps < 200  # sweeps alone need 364
    assert np.abs(solution.values - exact.values).max() <= 1e-7


def test_useless_extrapolations_do_not_prevent_convergence(monkeypatch):
    mdp = _slow_walk()
    rng = np.random.default_rng(0)
    monkeypatch.setattr(value_iteration, "refined", lambda process, policy, V, fall: V + rng.normal(size=len(V)))
    solution = mdp.solve(tol=1e-7)
    assert solution.converged
    assert np.abs(solution.values - mdp.policy_iteration(tol=1e-7).values).max() <= 1e-7


def test_asynchronous_is_gauss_seidel():
    P, R = markov.toymaker()
    one, two = (MDP(P, R, 0.9).value_iteration(order) for order in ("asynchronous", "gauss_seidel"))
    np.testing.assert_array_equal(one.values, two.values)
    assert one.n_steps == two.n_steps
