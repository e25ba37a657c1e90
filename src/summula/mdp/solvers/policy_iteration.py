"""Policy iteration (Howard 1960), and backward induction for a finite horizon.

    V^pi from (I - gamma P_pi) V = r_pi,        pi(s) := argmax_a [ r(s, a) + gamma sum_s' P(s' | s, a) V^pi(s') ]   (1)

Each policy is at least as good as the previous one in every state, and no policy occurs twice, so (1) terminates.
Actions are changed only if the gain exceeds rounding errors; otherwise ties could cause an infinite loop.

    V_H = terminal values,      V_t(s) = max_a [ r(s, a) + gamma sum_s' P(s' | s, a) V_{t+1}(s') ]                  (2)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.mdp.results import HorizonSolution, MDPSolution
from summula.mdp.solvers.bounds import POLICY_ITERATION, Backup, Backups, Interrupted, Stop, finish, stopped
from summula.mdp.solvers.evaluation import evaluate

__all__ = ["backward_induction", "policy_iteration"]

Array = NDArray[np.float64]


def policy_iteration(backups: Backups, policy: Any, V: Array, stop: Stop, method: str) -> MDPSolution:
    """Solve by (1) from a policy, or from the greedy policy for V."""
    process = backups.process
    trace: list[float] = []
    rows = np.arange(process.n_states)
    if policy is None:
        policy = backups.best(V).policy
    last: tuple[Array, Backup] | None = None
    try:
        while True:
            found = evaluate(process, policy, method, 0.1 * stop.tol, V)
            V, q = found.values, found.q_values
            backup = backups.best(V)
            last = V, backup
            bounds = backups.bounds(V, backup)
            trace.append(bounds.gap)
            kept = q[rows, policy] >= backup.TV - found.gap * (1.0 - process.gamma)
            settled = bool(kept.all())
            status = stopped(trace, bounds, stop) or ("stalled" if settled else "")
            if status:
                return finish(backups, V, backup, status, trace, stop, POLICY_ITERATION)
            policy = np.where(kept, policy, backup.policy)
    except KeyboardInterrupt:
        if last is None:
            raise
        raise Interrupted(finish(backups, *last, "interrupted", trace, stop, POLICY_ITERATION)) from None


def backward_induction(backups: Backups, horizon: int, terminal: Array) -> HorizonSolution:
    """Solve the finite horizon by (2)."""
    S = backups.process.n_states
    values, policy = np.empty((horizon + 1, S)), np.empty((horizon, S), np.int64)
    values[horizon] = terminal
    for t in range(horizon - 1, -1, -1):
        policy[t] = backups.best(values[t + 1], values[t]).policy
    return HorizonSolution(values, policy)
