"""Backups on the library's threads, and the bounds of MacQueen and Porteus.

The optimal values satisfy Bellman's equation V* = T V*, where

    (T V)(s) = max_a [ r(s, a) + gamma sum_s' P(s' | s, a) V(s') ]                                                 (1)

T is monotone, and T (V + c) = T V + gamma c for a constant c. So with b = T V - V, and pi greedy for V,

    T V + gamma / (1 - gamma) min b  <=  V^pi  <=  V*  <=  T V + gamma / (1 - gamma) max b                         (2)

The gap, gamma / (1 - gamma) (max b - min b), may be small long before V is near V*: a constant error of V cancels. If
the process can end, it does so in a state with V = T V = 0, which counts in the minimum and the maximum. Rounding of
sums of k terms, and of rows that sum to 1 up to rounding, moves both bounds by at most

    eps (k + 4) (max |r| + max |V| + max |T V| + gamma / (1 - gamma) max |b|) / (1 - gamma)                         (3)

References: MacQueen, J. Math. Anal. Appl. 14 (1966), 38-43; Porteus, Management Science 18 (1971), 7-11; Puterman,
Markov Decision Processes (1994), theorem 6.6.3.
"""

from __future__ import annotations

import functools
import itertools
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.engine.engine import ThreadEngine, current_engine
from summula.core.engine.threads import inside_pool, thread_count, together
from summula.core.errors import ParameterError, warn
from summula.mdp.process import Process
from summula.mdp.results import MDPSolution
from summula.mdp.solvers.backup_kernels import back_up, back_up_in_place, back_up_policy

__all__ = [
    *("POLICY_ITERATION", "Backup", "Backups", "Bounds", "Clock", "Interrupted", "Stop"),
    *("assembled", "check_start", "finish", "stopped"),
]

Array = NDArray[np.float64]
Actions = NDArray[np.int64]

POLICY_ITERATION = "policy iteration"

_EPS = float(np.finfo(np.float64).eps)
_MOST_ENTRIES = 1 << 25  # maximum number of transitions per kernel call, so that Ctrl-C takes effect within about 0.1 s
_FEWEST_ENTRIES = 1 << 14  # minimum number of transitions per thread: with fewer, starting a thread takes longer


class Backup(NamedTuple):
    """A backup of all states: T V, a greedy policy, and the smallest and largest difference T V - V."""

    TV: Array
    policy: Actions
    low: float
    high: float


class Bounds(NamedTuple):
    """Return the terms added to T V for the lower and upper bound on V*, and their allowance for rounding."""

    down: float
    up: float
    slack: float

    @property
    def gap(self) -> float:
        """Difference of the bounds."""
        return self.up - self.down


class Backups:
    """The backups of a process."""

    def __init__(self, process: Process) -> None:
        P = process.P
        self.process, self.gamma = process, process.gamma
        self._arrays = (P.indptr.astype(np.int64), P.indices.astype(np.int32).view(np.uint32), P.data)
        finite = process.r[process.r > -np.inf]
        self._largest_reward = float(np.abs(finite).max())
        self._terms = int(np.diff(P.indptr).max())
        self._may_end = process.may_end
        self._ranges = self._cut()

    def _cut(self) -> list[list[tuple[int, int]]]:
        """Ranges of states with about equally many transitions, in rounds of one range per thread."""
        now, S = current_engine(), self.process.n_states
        threads = thread_count(now.n_jobs) if isinstance(now, ThreadEngine) and not inside_pool() else 1
        entries = len(self._arrays[2])
        threads = max(1, min(threads, entries // _FEWEST_ENTRIES))
        count = threads * max(1, -(-entries // (threads * _MOST_ENTRIES)))
        before = self._arrays[0][:: self.process.n_actions]
        cuts = np.searchsorted(before, np.linspace(0, entries, count + 1)[1:-1])
        edges = [0, *cuts.tolist(), S]
        ranges = [(a, b) for a, b in itertools.pairwise(edges) if a < b]
        return [ranges[i : i + threads] for i in range(0, len(ranges), threads)]

    def best(self, V: Array, out: Array | None = None) -> Backup:
        """Return the backup (1) of V."""
        policy = np.empty(len(V), np.int64)
        return self._run(back_up, V, np.empty_like(V) if out is None else out, policy)

    def of_policy(self, V: Array, policy: Actions, out: Array) -> Backup:
        """Return the backup of V with the actions of a policy."""
        return self._run(back_up_policy, V, out, policy)

    def _run(self, loop: Any, V: Array, TV: Array, policy: Actions) -> Backup:
        low, high = np.inf, -np.inf
        r, gamma = self.process.r, self.gamma
        for ranges in self._ranges:
            changes = np.empty((len(ranges), 8))  # a cache line for each thread
            calls = [
                functools.partial(loop, states, self._arrays, r, gamma, V, TV, policy, change)
                for states, change in zip(ranges, changes, strict=True)
            ]
            together(calls)
            low, high = min(low, float(changes[:, 0].min())), max(high, float(changes[:, 1].max()))
        return Backup(TV, policy, low, high)

    def in_place(self, V: Array, policy: Actions, order: Actions) -> tuple[float, float]:
        """Back up V state by state; return the smallest and largest change."""
        change = np.array([np.inf, -np.inf])
        per_state = max(1, len(self._arrays[2]) // len(V))
        size = max(1, _MOST_ENTRIES // per_state)
        for start in range(0, len(order), size):
            block = order[start : start + size]
            back_up_in_place(block, self._arrays, self.process.r, self.gamma, V, policy, change)
        return float(change[0]), float(change[1])

    def bounds(self, V: Array, backup: Backup) -> Bounds:
        """Return the terms added to T V for the lower and upper bound (2), widened by (3)."""
        low, high = (min(backup.low, 0.0), max(backup.high, 0.0)) if self._may_end else (backup.low, backup.high)
        far = self.gamma / (1.0 - self.gamma)
        size = self._largest_reward + float(np.abs(V).max()) + float(np.abs(backup.TV).max())
        size += far * max(abs(low), abs(high))
        slack = _EPS * (self._terms + 4) * size / (1.0 - self.gamma)  # (3)
        return Bounds(far * low - slack, far * high + slack, slack)


class Interrupted(Exception):
    """Ctrl-C; carries the best solution so far."""

    def __init__(self, solution: MDPSolution) -> None:
        super().__init__()
        self.solution = solution


class Clock:
    """The time limit of a solver."""

    def __init__(self, max_time: float | None) -> None:
        self.max_time = max_time
        self._end = np.inf if max_time is None else time.monotonic() + max_time

    @property
    def is_over(self) -> bool:
        """Whether the time limit is exceeded."""
        return time.monotonic() > self._end


@dataclass(frozen=True)
class Stop:
    """Stopping criteria of a solver."""

    tol: float
    max_iter: int
    clock: Clock


def stopped(trace: list[float], bounds: Bounds, stop: Stop) -> str:
    """Return the status if a solver stops with these bounds, else an empty string."""
    if bounds.gap <= stop.tol:
        return "converged"
    if bounds.gap <= 3.0 * bounds.slack:
        return "stalled"
    if len(trace) >= stop.max_iter:
        return "max_iter"
    return "max_time" if stop.clock.is_over else ""


def finish(
    backups: Backups, V: Array, backup: Backup, status: str, trace: list[float], stop: Stop, method: str
) -> MDPSolution:
    """Return the solution at the last backup of V; warn if it did not converge."""
    bounds = backups.bounds(V, backup)
    (down, up, _), gap = bounds, bounds.gap
    if method == POLICY_ITERATION:  # exact values of the policy before the last improvement
        values = np.clip(V, backup.TV + down, backup.TV + up)
    else:
        values = backup.TV + 0.5 * (down + up)
    found = values, backup.policy, backup.TV + down, backup.TV + up, gap
    return assembled(backups.process, found, status, tuple(trace), len(trace), stop, method)


def assembled(
    process: Process,
    found: tuple[Any, ...],
    status: str,
    trace: tuple[float, ...],
    n_steps: int,
    stop: Stop,
    method: str,
) -> MDPSolution:
    """Return a solution from values, policy, bounds and gap; warn if it did not converge."""
    values, policy, lower, upper, gap = found
    message = _message(status, gap, stop)
    if status in ("max_iter", "max_time", "stalled"):
        from sklearn.exceptions import ConvergenceWarning

        warn(f"{method}: {message}", ConvergenceWarning)
    q = process.q_values(values)
    return MDPSolution(
        values, policy, q, lower, upper, gap, status, gap <= stop.tol, n_steps, trace, method, message, process.gamma
    )


def _message(status: str, gap: float, stop: Stop) -> str:
    known = f"the policy is within {gap:.3g} of optimal, above tol={stop.tol:g}"
    if gap == np.inf:
        known = "the policy can still be improved"
    return {
        "max_iter": f"stopped after max_iter={stop.max_iter} steps: {known}; increase max_iter.",
        "max_time": f"stopped after max_time={stop.clock.max_time} s: {known}; increase max_time.",
        "stalled": f"{known}, which is as close as rounding allows; use a tol of at least {2.0 * gap:.1g}.",
        "interrupted": f"interrupted: {known}.",
    }.get(status, "")


def check_start(start: Any, n_states: int) -> Array:
    """Return the initial values: a new array of shape (S,)."""
    if start is None:
        return np.zeros(n_states)
    try:
        given = np.array(start.values if isinstance(start, MDPSolution) else start, np.float64)
    except (TypeError, ValueError):
        given = np.empty(0)
    if given.shape != (n_states,) or not np.isfinite(given).all():
        raise ParameterError(f"start must be {n_states} finite values, or an earlier solution of that many states.")
    return given
