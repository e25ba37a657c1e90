"""The compiled loops of dynamic programming: backups of a range of states.

Transitions are a CSR matrix with the row s A + a for action a in state s. An unavailable action has reward -inf.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.compilation.compile import internal_kernel, kernel

__all__ = ["back_up", "back_up_in_place", "back_up_policy", "warmup"]

Array = NDArray[np.float64]
Indices = NDArray[np.uint32]


@internal_kernel
def _q_value(s: int, a: int, P: Any, r: Array, gamma: float, V: Array) -> float:
    """Return r(s, a) + gamma sum P V."""
    starts, successors, probabilities = P
    row = s * np.uint64(len(r) // len(V)) + a
    total = 0.0
    for k in range(np.uint64(starts[row]), np.uint64(starts[row + np.uint64(1)])):
        total += probabilities[k] * V[successors[k]]
    return float(r[row] + gamma * total)


@internal_kernel
def _best_action(s: int, P: Any, r: Array, gamma: float, V: Array) -> tuple[float, int]:
    """Return max_a r(s, a) + gamma sum P V, and its first maximiser."""
    best, chosen = -np.inf, 0
    for a in range(np.uint64(len(r) // len(V))):
        q = _q_value(s, a, P, r, gamma, V)
        if q > best:
            best, chosen = q, int(a)
    return best, chosen


@internal_kernel
def _find_change(states: tuple[int, int], V: Array, TV: Array, change: Array) -> None:
    """Write the smallest and the largest TV - V of some states."""
    low, high = np.inf, -np.inf
    for s in range(np.uint64(states[0]), np.uint64(states[1])):
        low, high = min(low, TV[s] - V[s]), max(high, TV[s] - V[s])
    change[0], change[1] = low, high


@kernel
def back_up(
    states: tuple[int, int], P: Any, r: Array, gamma: float, V: Array, TV: Array, policy: Any, change: Array
) -> None:
    """TV(s) = max_a r(s, a) + gamma sum P V with its first maximiser, and the range of TV - V, for some states."""
    for s in range(np.uint64(states[0]), np.uint64(states[1])):
        TV[s], policy[s] = _best_action(s, P, r, gamma, V)
    _find_change(states, V, TV, change)


@kernel
def back_up_policy(
    states: tuple[int, int], P: Any, r: Array, gamma: float, V: Array, TV: Array, policy: Any, change: Array
) -> None:
    """TV(s) = r(s, pi(s)) + gamma sum P V, and the range of TV - V, for some states."""
    for s in range(np.uint64(states[0]), np.uint64(states[1])):
        TV[s] = _q_value(s, np.uint64(policy[s]), P, r, gamma, V)
    _find_change(states, V, TV, change)


@kernel
def back_up_in_place(order: Any, P: Any, r: Array, gamma: float, V: Array, policy: Any, change: Array) -> None:
    """Replace V(s) by max_a r(s, a) + gamma sum P V, state by state in the given order; widen the range of changes."""
    for i in range(len(order)):
        s = np.uint64(order[i])
        best, chosen = _best_action(s, P, r, gamma, V)
        change[0], change[1] = min(change[0], best - V[s]), max(change[1], best - V[s])
        V[s] = best
        policy[s] = chosen


def warmup() -> None:
    """Compile the kernels."""
    P = (np.arange(2, dtype=np.int64), np.zeros(1, np.uint32), np.ones(1))
    r, V, TV, policy, change = np.zeros(1), np.zeros(1), np.zeros(1), np.zeros(1, np.int64), np.zeros(2)
    back_up((0, 1), P, r, 0.5, V, TV, policy, change)
    back_up_policy((0, 1), P, r, 0.5, V, TV, policy, change)
    back_up_in_place(np.zeros(1, np.int64), P, r, 0.5, V, policy, change)
