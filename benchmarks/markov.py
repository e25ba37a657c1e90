"""Markov decision processes."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from benchmarks.workload import Contender, FitWorkload, Quality

SUCCESSORS = 8
DISCOUNT = 0.99
TOLERANCE = 1e-6


class Problem(NamedTuple):
    """Transitions of shape (S A, S), rewards of shape (S, A), and the optimal values."""

    transitions: Any
    rewards: np.ndarray
    values: np.ndarray


def random_graph(states: int, actions: int) -> Problem:
    """Each action leads to eight random states."""
    rng = np.random.default_rng(0)
    rows = states * actions
    p = rng.random((rows, SUCCESSORS))
    p /= p.sum(axis=1, keepdims=True)
    after = rng.integers(0, states, rows * SUCCESSORS)
    P = sparse.csr_matrix((p.ravel(), after, np.arange(0, rows * SUCCESSORS + 1, SUCCESSORS)), (rows, states))
    P.sum_duplicates()
    return _solved(P, rng.random((states, actions)))


def grid_world(states: int, actions: int) -> Problem:
    """Moves in four directions on a square grid, which succeed with probability 0.8; rewards are random."""
    rng = np.random.default_rng(0)
    side = int(np.sqrt(states))
    S = side * side
    i, j = np.divmod(np.arange(S), side)
    moves = [(-1, 0), (0, 1), (1, 0), (0, -1)]
    after = [np.clip(i + a, 0, side - 1) * side + np.clip(j + b, 0, side - 1) for a, b in moves]
    parts = []
    for a in range(actions):
        for turn, p in ((0, 0.8), (1, 0.1), (3, 0.1)):
            place = (np.arange(S) * actions + a, after[(a + turn) % 4])
            parts.append(sparse.csr_matrix((np.full(S, p), place), (S * actions, S)))
    P = sum(parts[1:], parts[0])
    return _solved(P, np.repeat(rng.random((S, 1)) ** 8, actions, axis=1))


def _solved(P: Any, r: np.ndarray) -> Problem:
    """The problem with its optimal values, by value iteration to rounding error (relative bounds, in NumPy)."""
    V, far = np.zeros(P.shape[1]), DISCOUNT / (1.0 - DISCOUNT)
    for _ in range(100_000):
        TV = (r + DISCOUNT * (P @ V).reshape(r.shape)).max(axis=1)
        b = TV - V
        V = TV
        if far * np.ptp(b) <= 1e-3 * TOLERANCE:
            break
    return Problem(P, r, V + far * 0.5 * (b.min() + b.max()))


def largest_error(problem: Problem, values: np.ndarray) -> float:
    """Largest distance from the optimal values."""
    return float(np.abs(values - problem.values).max())


def _summula() -> Callable[[Problem], np.ndarray]:
    from summula.mdp import MDP

    return lambda problem: MDP(problem.transitions, problem.rewards, DISCOUNT).solve(tol=TOLERANCE).values


def _quantecon() -> Callable[[Problem], np.ndarray]:
    from quantecon.markov import DiscreteDP

    def work(problem: Problem) -> np.ndarray:
        S, A = problem.rewards.shape
        states, actions = np.divmod(np.arange(S * A), A)
        model = DiscreteDP(problem.rewards.ravel(), problem.transitions, DISCOUNT, states, actions)
        return model.solve(method="modified_policy_iteration", epsilon=TOLERANCE).v

    return work


def _workload(
    name: str, title: str, states: int, quick_states: int, make_data: Callable[[int, int], Problem], rounds: int
) -> FitWorkload:
    return FitWorkload(
        name=f"mdp-{name}",
        title=f"MDP.solve, {title}, discount 0.99, tol 1e-6",
        shape=(states, 4),
        quick_shape=(quick_states, 4),
        make_data=make_data,
        contenders=(Contender("summula", _summula), Contender("QuantEcon, modified policy iteration", _quantecon)),
        quality=Quality(largest_error, "error", tolerance=TOLERANCE),
        rounds=rounds,
    )


WORKLOADS = (
    _workload("random", "8 random successors", 100_000, 2_000, random_graph, rounds=7),
    _workload("grid", "grid world", 40_000, 900, grid_world, rounds=3),
)
