"""Forms of transitions and rewards, bad input, trajectories and models estimated from them."""

import pickle
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import summula
from summula import DataError, ParameterError
from summula.mdp import MDP, LinearDynamics, Trajectories, TransitionCounts, discounted_return, learn
from tests.reference import markov


def test_every_form_of_the_transitions_is_the_same_process():
    rng = np.random.default_rng(0)
    P, r = markov.random_process(rng)
    S, A, _ = P.shape
    R = rng.normal(size=P.shape)
    forms = [P, P.tolist(), [sparse.csr_matrix(P[:, a]) for a in range(A)], sparse.coo_matrix(P.reshape(S * A, S))]
    for form in forms:
        assert_allclose(MDP(form, r, 0.9).transitions.toarray()[r.ravel() > -np.inf], P[r > -np.inf], rtol=1e-15)
    expected = (P * R).sum(axis=2)
    for rewards in (R, [sparse.csr_matrix(R[:, a]) for a in range(A)], sparse.csr_matrix(R.reshape(S * A, S))):
        assert_allclose(MDP(forms[2], rewards, 0.9).rewards, expected, rtol=1e-13)


def test_rewards_of_states_count_when_a_state_is_left():
    P, r = markov.random_process(np.random.default_rng(1))
    R = np.random.default_rng(2).normal(size=12)
    V = MDP(P, R, 0.9).solve(tol=1e-10).values
    # V(s) = R(s) + gamma max_a sum P V
    assert_allclose(V, R + 0.9 * (P @ V).max(axis=1), atol=1e-9)


def test_the_arguments_are_not_modified():
    P, r = markov.random_process(np.random.default_rng(1))
    stored = sparse.csr_matrix(P.reshape(-1, 12)) * (1 + 1e-8)
    kept, rewards = stored.copy(), r.copy()
    MDP(stored, r, 0.9)
    assert_array_equal(stored.data, kept.data)
    assert_array_equal(r, rewards)


TWO = np.array([[[0.5, 0.5], [1.0, 0.0]], [[0.0, 1.0], [0.5, 0.5]]])


@pytest.mark.parametrize(
    ("transitions", "rewards", "options", "message"),
    [
        (TWO[:, :1] * 0.9, [0, 0], {}, r"action 0 in state 0 sum to 0.9, not to 1 \(2 of 2 rows do not\)"),
        (np.where(TWO == 1, 1.1, TWO), [0, 0], {}, "action 1 in state 0 sum to 1.1"),
        (np.array([[[1.5, -0.5]], [[0, 1]]]), [0, 0], {}, "probability of state 1 after action 0 in state 0 is -0.5"),
        (np.array([[[1, 0]], [[np.nan, 1]]]), [0, 0], {}, "after action 0 in state 1 is nan"),
        (TWO[0], [0, 0], {}, r"shape \(2, 2\); it must be S x A x S"),
        (np.ones((3, 2, 2)) / 2, [0, 0], {}, "np.swapaxes"),
        (TWO, [0, 0, 0], {}, r"rewards has shape \(3,\); it must be \(2,\), \(2, 2\) or \(2, 2, 2\)"),
        (TWO, [[0, np.nan], [0, 0]], {}, "reward of action 1 in state 0 is nan"),
        (TWO, [[0, 0], [-np.inf, -np.inf]], {}, "State 1 has no available action"),
        (TWO, [0, 0], {"available": [[1, 1], [1, 1]]}, "must be a bool array"),
        (TWO, [0, 0], {"termination": [0.0, 0.2]}, "sum to 1 and termination 0.2"),
        (TWO, [0, 0], {"termination": [0.0, 2.0]}, "must be a probability"),
        ("abc", [0, 0], {}, "transitions is not an array of numbers"),
    ],
)
def test_bad_processes_are_located(transitions, rewards, options, message):
    with pytest.raises(DataError, match=message):
        MDP(transitions, rewards, 0.9, **options)


def test_errors_of_bad_parameters_give_working_advice():
    with pytest.raises(ParameterError, match=r"number in \[0, 1\]. Got 1.5"):
        MDP(TWO, [0, 1], 1.5)
    mdp = MDP(TWO, [0, 1], 1.0)
    for solve in (mdp.solve, mdp.value_iteration, mdp.policy_iteration, lambda: mdp.evaluate([0, 0])):
        with pytest.raises(ParameterError, match=r"discount below 1.* backward_induction\(horizon\)"):
            solve()
    assert mdp.backward_induction(2).values.shape == (3, 2)
    mdp = MDP(TWO, [[0, 1], [-np.inf, 2]], 0.9)
    with pytest.raises(DataError, match="action 0 in state 1, where it is not available"):
        mdp.evaluate([0, 0])
    with pytest.raises(DataError, match="unavailable action in state 1"):
        mdp.evaluate([[0.5, 0.5], [0.5, 0.5]])
    with pytest.raises(DataError, match="state 0 are not positive numbers that sum to 1"):
        mdp.evaluate([[0.5, 0.4], [0.0, 1.0]])
    with pytest.raises(DataError, match="action 2 in state 0; there are 2 actions"):
        mdp.evaluate([2, 1])
    with pytest.raises(ParameterError, match="each of 0 to 1 occurs"):
        mdp.value_iteration([0, 0])
    with pytest.raises(ParameterError, match="'order' parameter of value_iteration must be"):
        mdp.value_iteration("fast")
    with pytest.raises(ParameterError, match="start must be 2 finite values"):
        mdp.solve(start=[1.0])
    with pytest.raises(ParameterError, match="start must be 2 finite values"):
        mdp.solve(start="zero")
    with pytest.raises(DataError, match="outside of 0 to 1"):
        mdp.simulate(start=2)
    with pytest.raises(ParameterError, match=r"in the range \[0.0, 1.0\]. Got '1' instead"):
        discounted_return([1.0], "1")
    with pytest.raises(DataError, match="shape \\(0, 0, 0\\); it must be S x A x S"):
        MDP(np.zeros((0, 0, 0)), [], 0.9)
    with pytest.raises(DataError, match="pass a list of episodes, also if there is only one"):
        MDP.from_trajectories(([0, 1, 0], [0, 1], [1.0, 2.0]), 0.9)


def test_returns_are_discounted():
    assert discounted_return([1.0, 1.0, 1.0], 0.5) == 1.75
    assert_allclose(discounted_return(np.ones((2, 3)), 1.0), [3.0, 3.0])
    with pytest.raises(ParameterError, match="discount"):
        discounted_return([1.0], 2.0)


@pytest.mark.parametrize("by_table", [False, True])
def test_trials_have_the_value_of_the_policy(by_table):
    rng = np.random.default_rng(3)
    P, _ = markov.random_process(rng, S=6, A=2)
    ends, R = rng.random((6, 2)) * 0.2, rng.normal(size=(6, 2, 6))
    mdp = MDP(P * (1 - ends[..., None]), R, 0.8, termination=ends)
    policy = rng.dirichlet([1, 1], 6) if by_table else rng.integers(0, 2, 6)
    trials = mdp.simulate(policy, start=2, n_episodes=40_000, n_steps=80, random_state=0)
    error = trials.returns.std() / np.sqrt(len(trials))
    assert abs(trials.returns.mean() - mdp.evaluate(policy).values[2]) < 4 * error
    assert trials.terminated.mean() > 0.9
    again = mdp.simulate(policy, start=2, n_episodes=40_000, n_steps=80, random_state=0)
    assert_array_equal(again.states, trials.states)
    states, actions, rewards, ended = next(iter(trials))
    assert len(states) == len(actions) + 1 == len(rewards) + 1 == trials.lengths[0] + 1
    assert_allclose(rewards[: -1 if ended else None], R[states[:-1], actions, states[1:]][: -1 if ended else None])


def test_a_process_that_ends_at_once():
    for rewards in (np.array([1.0, 2.0]), np.zeros((2, 1, 2))):
        mdp = MDP(np.zeros((2, 1, 2)), rewards, 0.9, termination=[1.0, 1.0 - 1e-7])
        trials = mdp.simulate(start=1, n_episodes=3, random_state=0)
        assert trials.lengths.tolist() == [1, 1, 1]
        assert trials.terminated.all()
        assert_allclose(mdp.solve().values, mdp.rewards[:, 0], atol=1e-12)
        assert_allclose(trials.returns, mdp.rewards[1, 0])


def test_trials_never_do_what_has_probability_zero():
    P, r = markov.random_process(np.random.default_rng(4))
    trials = MDP(P, r, 0.9).simulate(n_episodes=200, n_steps=50, random_state=1)
    s, a, after = trials.states[:, :-1], trials.actions, trials.states[:, 1:]
    assert (P[s, a, after] > 0).all()
    assert (r[s, a] > -np.inf).all()


def test_a_process_is_learned_from_many_trials():
    P, r = markov.random_process(np.random.default_rng(5), S=5, A=2)
    r = np.where(r > -np.inf, r, 0.5)
    mdp = MDP(P, r, 0.9)
    trials = mdp.simulate(n_episodes=50, n_steps=2_000, random_state=0)
    found = MDP.from_trajectories(trials, 0.9)
    n = TransitionCounts.of(trials).visits.ravel()[:, None]
    # Standard errors of frequencies.
    p = P.reshape(10, 5)
    assert (np.abs(found.transitions.toarray() - p) < 5 * np.sqrt(p * (1 - p) / n) + 1e-12).all()
    assert_allclose(found.rewards, r, rtol=1e-10)


def test_counts_add_up():
    P, r = markov.random_process(np.random.default_rng(6))
    trials = list(MDP(P, r, 0.9).simulate(n_episodes=10, n_steps=100, random_state=0))
    whole = TransitionCounts.of(trials, 12, 3)
    first, second = TransitionCounts.of(trials[:4], 12, 3), TransitionCounts.of(trials[4:], 12, 3)
    merged = TransitionCounts.of(trials[:4], 12, 3).merge(second)
    assert_array_equal(merged.counts.toarray(), whole.counts.toarray())
    assert_allclose(merged.reward_sums, whole.reward_sums, atol=1e-12)
    merged.forget(second)
    assert_array_equal(merged.counts.toarray(), first.counts.toarray())
    assert_allclose(merged.reward_sums, first.reward_sums, atol=1e-12)
    with pytest.raises(DataError, match="not all added before"):
        first.forget(whole)
    with pytest.raises(DataError, match="same n_states"):
        first.merge(TransitionCounts(3, 3))


def test_unseen_values():
    trials = [([0, 1, 1], [0, 1], [1.0, 3.0]), ([0, 2], [1], [5.0], True)]
    found = MDP.from_trajectories(trials, 0.9, n_states=4)
    P = found.transitions.toarray().reshape(4, 2, 4)
    assert_allclose(P[0, 0], [0, 1, 0, 0])
    assert_allclose(P[3, 1], 0.25)
    assert found.termination[0, 1] == 1.0  # it ended
    assert P[0, 1].sum() == 0.0
    assert_allclose(found.rewards[0], [1.0, 5.0])
    stay = MDP.from_trajectories(trials, 0.9, n_states=4, unseen="stay", state_rewards=True)
    assert_allclose(stay.transitions.toarray().reshape(4, 2, 4)[3, 1], [0, 0, 0, 1])
    assert_allclose(stay.rewards[0], 3.0)
    closed = MDP.from_trajectories(trials, 0.9, n_states=4, unseen="unavailable")
    assert closed.rewards[1].tolist() == [-np.inf, 3.0]
    with pytest.raises(DataError, match="Episode 0 has 2 states, 2 actions and 2 rewards"):
        MDP.from_trajectories([([0, 1], [0, 0], [1.0, 1.0])], 0.9)
    with pytest.raises(DataError, match="state of transition 0 is 7"):
        MDP.from_trajectories([([7, 1], [0], [1.0])], 0.9, n_states=3)
    with pytest.raises(DataError, match="no trajectories"):
        MDP.from_trajectories([], 0.9)
    with pytest.raises(ParameterError, match="unseen='stay'"):
        TransitionCounts(100_000, 2).mdp(0.9)


class GridWorld:
    """The 4 x 3 world with Gymnasium's methods."""

    class _Space:
        def __init__(self, n):
            self.n = n

    observation_space, action_space = _Space(12), _Space(4)

    def __init__(self):
        self.P, self.R, self.ends = markov.grid_world()

    def reset(self, *, seed=None):
        self.rng, self.s = np.random.default_rng(seed), 8
        return self.s, {}

    def step(self, action):
        reward, ended = self.R[self.s], bool(self.ends[self.s])
        if not ended:
            self.s = int(self.rng.choice(12, p=self.P[self.s, action]))
        return self.s, reward, ended, False, {}


def test_acting_learning_and_planning_finds_a_good_policy():
    learned = learn(GridWorld(), 0.99, n_episodes=300, plan_every=10, random_state=0)
    world = GridWorld()
    mdp = MDP(world.P, world.R, 0.99, termination=world.ends)
    best = mdp.solve().values[8]
    assert mdp.evaluate(learned.policy).values[8] > best - 0.05
    assert learned.returns[-100:].mean() > learned.returns[:20].mean() - 0.5
    assert len(learned.returns) == len(learned.lengths) == 300
    assert learned.counts.visits.sum() == learned.lengths.sum()
    again = learn(GridWorld(), 0.99, n_episodes=300, plan_every=10, random_state=0)
    assert_array_equal(again.returns, learned.returns)
    more = learn(GridWorld(), 0.99, counts=learned.counts, n_episodes=5, random_state=1)
    assert more.counts.visits.sum() == learned.lengths.sum() + more.lengths.sum()


class Space:
    def __init__(self, n, start):
        self.n, self.start = n, start


class Counted:
    """A corridor with rooms numbered from 1 and actions from 3, as allowed by Gymnasium's Discrete(n, start=)."""

    observation_space, action_space = Space(5, 1), Space(2, 3)

    def reset(self, seed=None):
        self.room = 1
        return self.room, {}

    def step(self, action):
        assert action in (3, 4)
        self.room = max(1, self.room + (1 if action == 4 else -1))
        return self.room, float(self.room == 5), self.room == 5, False, {}


def test_spaces_may_start_at_any_number():
    learned = learn(Counted(), 0.9, n_episodes=20, random_state=0)
    assert learned.policy[:4].tolist() == [1, 1, 1, 1]
    assert_allclose(learned.solution.values[:4], [0.729, 0.81, 0.9, 1.0])


def test_environments_of_gymnasium_are_found_by_name():
    """The shortest way along the cliff has 13 steps of reward -1 (Sutton and Barto, example 6.6)."""
    pytest.importorskip("gymnasium")
    learned = learn("CliffWalking-v1", 0.95, n_episodes=50, epsilon=0.3, random_state=0)
    assert learned.solution.values[36] == pytest.approx(-(1 - 0.95**13) / 0.05, rel=1e-9)
    with pytest.raises(ParameterError, match="Gymnasium has no environment 'Cliff-v0'"):
        learn("Cliff-v0", 0.9)


def test_a_process_is_an_environment():
    P, R = markov.toymaker()
    learned = learn(MDP(P, R, 0.9), 0.9, n_episodes=2, max_steps=2_000, epsilon=0.5, random_state=0)
    assert learned.counts.visits.min() > 300
    found = learned.mdp.transitions.toarray()
    assert np.abs(found - P.reshape(4, 2)).max() < 0.12  # 4 standard errors of 300 draws
    assert learned.policy.tolist() == [1, 1]
    by_next_state = np.zeros((2, 1, 2))
    by_next_state[0, 0, 1] = 3.0  # paid for reaching the last state, where the process ends
    short = MDP([[[0.5, 0.5]], [[0.0, 0.0]]], by_next_state, 0.9, termination=[0.0, 1.0])
    found = learn(short, 0.9, n_episodes=50, random_state=0)
    assert found.solution.values[1] == 0.0
    assert_allclose(found.mdp.rewards[0, 0], 3.0 * found.mdp.transitions.toarray()[0, 1])
    closed = MDP([[[1.0], [1.0]]], [[0.0, -np.inf]], 0.9)
    with pytest.raises(ParameterError, match="every action available"):
        learn(closed, 0.9)


def test_without_gymnasium_names_are_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(ParameterError, match="needs Gymnasium: install it with `pip install gymnasium`"):
        learn("FrozenLake-v1", 0.9)


def test_learning_refuses_what_it_cannot_use():
    with pytest.raises(
        ParameterError, match=r"'discount' parameter of learn must be a float in the range \[0.0, 1.0\)"
    ):
        learn(Counted(), 1.0)
    with pytest.raises(ParameterError, match="methods `reset` and `step`"):
        learn(object(), 0.9)
    with pytest.raises(ParameterError, match="counts=TransitionCounts"):
        learn(SimpleNamespace(reset=GridWorld().reset, step=GridWorld().step), 0.9)
    with pytest.raises(ParameterError, match="no parameter 'epsilom'"):
        learn(GridWorld(), 0.9, epsilom=0.1)
    with pytest.raises(DataError, match="outside of 0 to 4"):
        learn(GridWorld(), 0.9, counts=TransitionCounts(5, 4))
    with pytest.raises(DataError, match="pass encode="):
        learn(GridWorld(), 0.9, encode=float)
    assert learn(GridWorld(), 0.9, n_episodes=100, max_time=0.0).returns.shape == (1,)


def test_trajectories_report_their_returns():
    trials = Trajectories(
        np.zeros((1, 3), int), np.zeros((1, 2), int), np.ones((1, 2)), np.array([2]), np.array([False]), 0.5
    )
    assert trials.returns.tolist() == [1.5]


def test_results_are_pickled_not_saved(tmp_path):
    mdp = MDP(TWO, [0, 1], 0.9)
    with pytest.raises(ValueError, match="takes Summula estimators; pickle it"):
        summula.save(mdp, tmp_path / "mdp.summula")
    found = mdp.solve()
    again, solution = pickle.loads(pickle.dumps((mdp, found)))
    assert solution.verify(again)


def _reward(states, actions):
    return -(states[:, 0] ** 2)


def test_simulators_of_learned_dynamics_can_be_pickled():
    rng = np.random.default_rng(0)
    s, a = rng.normal(size=(50, 1)), rng.normal(size=50)
    model = LinearDynamics().fit(s, a, 0.9 * s + a[:, None] + 0.1 * rng.normal(size=(50, 1)))
    simulator = model.simulator(_reward)
    again = pickle.loads(pickle.dumps(simulator))
    one, other = (f(s, a, np.random.default_rng(1)) for f in (simulator, again))
    assert_allclose(one[0], other[0])
