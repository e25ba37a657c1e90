"""Processes that end, with discount 1: published values, linear programming, bounds, and processes without finite values."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

from summula import DataError, ParameterError
from summula.mdp import MDP
from tests.reference import markov


def solvers(mdp):
    yield mdp.solve()
    yield mdp.policy_iteration()
    for order in ("synchronous", "gauss_seidel", "random", np.arange(mdp.n_states)[::-1]):
        yield mdp.value_iteration(order, random_state=0)


def corridor(reward, S=5):
    """Left and right in a corridor; the last room is absorbing."""
    P = np.zeros((S, 2, S))
    for s in range(S - 1):
        P[s, 0, max(s - 1, 0)] = P[s, 1, s + 1] = 1.0
    P[S - 1, :, S - 1] = 1.0
    return MDP(P, np.append(np.full(S - 1, reward), 0.0), 1.0)


def random_episodes(rng, S=30, A=3):
    """Every action may end the process, some of them rarely; rewards of both signs."""
    P, r = markov.random_process(rng, S=S, A=A)
    ends = rng.choice([0.0, 0.05, 0.5], (S, A))
    ends[:, 0] = 0.05
    return P * (1.0 - ends[..., None]), np.where(np.isfinite(r), r, -9.0) - 2.0, ends


def test_the_grid_world_of_russell_and_norvig():
    P, R, ends = markov.grid_world()
    mdp = MDP(P, R, 1.0, termination=ends)
    seen = ~np.isnan(markov.UTILITIES.ravel())
    for found in solvers(mdp):
        assert found.converged
        assert found.gap < 1e-11
        # Artificial Intelligence: A Modern Approach, figure 17.3, without discount
        np.testing.assert_allclose(found.values[seen], markov.UTILITIES.ravel()[seen], atol=5.1e-4)
        assert found.policy.reshape(3, 4)[0, :3].tolist() == [1, 1, 1]
        assert found.policy.reshape(3, 4)[2].tolist() == [0, 3, 3, 3]
        assert found.verify(mdp)
    trials = mdp.simulate(found, start=8, n_episodes=4_000, n_steps=500, random_state=0)
    assert abs(trials.returns.mean() - 0.705) < 4 * trials.returns.std() / 4_000**0.5
    assert not mdp.solve().verify(MDP(P, R + 0.01, 1.0, termination=ends))


@pytest.mark.parametrize("seed", range(3))
def test_linear_programming_agrees(seed):
    P, r, ends = random_episodes(np.random.default_rng(seed))
    S, A = r.shape
    rows = np.repeat(np.eye(S), A, axis=0) - P.reshape(S * A, S)  # minimise sum V, V >= r + P V
    exact = linprog(np.ones(S), -rows, -r.ravel(), bounds=(None, None)).x
    mdp = MDP(P, r, 1.0, termination=ends)
    for found in solvers(mdp):
        np.testing.assert_allclose(found.values, exact, atol=1e-6)
        assert (found.lower <= exact + 1e-9).all()
        assert (exact <= found.upper + 1e-9).all()
        assert found.verify(mdp)
        value = mdp.evaluate(found)
        np.testing.assert_allclose(value.values, found.values, atol=value.gap + found.gap)


def test_many_states_are_solved_sparsely():
    mdp = corridor(-1.0, S=1_200)
    found = mdp.solve()
    np.testing.assert_allclose(found.values, -np.arange(1_199, -1, -1.0), atol=1e-6)
    assert mdp.evaluate(found).method == "sparse"
    assert found.verify(mdp)


def test_random_transitions_are_solved_without_fill_in(monkeypatch):
    rng, S = np.random.default_rng(0), 1_500
    P = sparse.random_array((2 * S, S), density=5 / S, rng=rng, format="csr") + sparse.csr_array(
        (np.full(2 * S, 0.1), (np.arange(2 * S), np.arange(2 * S) // 2)), (2 * S, S)
    )
    P = sparse.csr_matrix(sparse.diags_array(0.9 / P.sum(axis=1)) @ P)
    monkeypatch.setattr(sparse.linalg, "splu", None)
    mdp = MDP(P, rng.normal(size=(S, 2)), 1.0, termination=np.full(S, 0.1))
    found = mdp.solve()
    assert found.converged
    assert found.verify(mdp)


def test_states_that_are_never_left_end_the_process():
    for found in solvers(corridor(-1.0)):
        np.testing.assert_allclose(found.values, [-4, -3, -2, -1, 0], atol=1e-9)
    assert corridor(-1.0).evaluate([1, 1, 1, 1, 0]).values[0] == pytest.approx(-4)
    # Zero-reward cycles: every path to the end is equally good, and the bound holds up to rounding.
    for found in solvers(corridor(0.0)):
        assert found.converged
        assert found.values.tolist() == [0.0] * 5


def test_what_is_infinite_is_refused():
    for solve in (MDP.solve, MDP.policy_iteration, lambda mdp: mdp.value_iteration(max_iter=500)):
        with pytest.raises(ParameterError, match="optimal values are infinite: from state 0 positive rewards"):
            solve(corridor(1.0))
    with pytest.raises(ParameterError, match="with this policy it never does from state 0"):
        corridor(-1.0).evaluate([0, 1, 1, 1, 0])
    with pytest.raises(DataError, match="ends so rarely"):
        MDP([[[1.0 - 1e-14]]], [1.0], 1.0, termination=[1e-14]).solve()
    with pytest.raises(
        ParameterError, match=r"from state 0 it never does.*discount=0.99.*backward_induction\(horizon\)"
    ):
        MDP(np.ones((1, 1, 1)), [1.0], 1.0).solve()


def test_an_early_stop_keeps_a_policy_and_a_lower_bound():
    P, R, ends = markov.grid_world()
    mdp = MDP(P, R, 1.0, termination=ends)
    exact = mdp.solve().values
    for solve in (mdp.policy_iteration, mdp.solve, mdp.value_iteration):
        with pytest.warns(ConvergenceWarning, match="max_iter=1 steps: the policy can still be improved"):
            found = solve(max_iter=1)
        assert (found.lower <= exact).all()
        assert found.verify(mdp)
        assert (found.gap, found.status) == (np.inf, "max_iter")


def test_ctrl_c_keeps_the_best_policy(monkeypatch):
    from summula.mdp.solvers import episodic

    P, R, ends = markov.grid_world()
    mdp = MDP(P, R, 1.0, termination=ends)
    calls, original = [], episodic._improvement

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setattr(episodic, "_improvement", interrupted)
    with pytest.raises(KeyboardInterrupt):
        mdp.solve()
    monkeypatch.undo()
    assert mdp.solution_.status == "interrupted"
    assert mdp.solution_.verify(mdp)
