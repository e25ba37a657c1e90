"""Value iteration, synchronous and asynchronous, and modified policy iteration.

    V := T V   for all states at once (synchronous, Jacobi)                                                       (1)
    V(s) := (T V)(s)   state by state, with the values that are already new (asynchronous, Gauss-Seidel)          (2)
    V := T_pi^m T V,   pi greedy for V (modified policy iteration)                                                 (3)

T_pi is the backup with the actions of a policy: it costs a fraction 1 / A of T. In (3) m is chosen adaptively: sweeps
of T_pi continue until the span of T_pi V - V has decreased to a tenth, at most 100 times. (3) converges from any V,
since adding a constant to V changes no policy, and T V >= V holds for some constant (Puterman, section 6.5). If ten
sweeps do not suffice, the chain of the policy mixes slowly, and BiCGSTAB is used instead. Its steps have no such
guarantee: if the gap does not decrease, they are suspended, each time for longer. All methods stop by the bounds of
`bounds.py`; (2) needs a synchronous backup for these, which is computed when the changes of a sweep, d, are so small
that the span gamma / (1 - gamma) (max d - min d) would satisfy the tolerance.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import ParameterError
from summula.mdp.results import MDPSolution
from summula.mdp.solvers import episodic
from summula.mdp.solvers.bounds import Backup, Backups, Interrupted, Stop, finish, stopped
from summula.mdp.solvers.evaluation import refined

__all__ = ["ORDERS", "check_order", "in_order", "modified", "synchronous", "undiscounted"]

Array = NDArray[np.float64]

ORDERS = ("synchronous", "asynchronous", "gauss_seidel", "random")
_SWEEPS = 100
_FALL = 0.1
_FEW = 10  # number of sweeps sufficient for fast mixing chains
_PATIENCE = 20  # number of steps without a smaller gap after which only sweeps are used temporarily


def synchronous(backups: Backups, V: Array, stop: Stop) -> MDPSolution:
    """Solve by (1)."""
    return _iterate(backups, V, stop, 0, "value iteration, synchronous")


def modified(backups: Backups, V: Array, stop: Stop) -> MDPSolution:
    """Solve by (3)."""
    return _iterate(backups, V, stop, _SWEEPS, "modified policy iteration")


def _iterate(backups: Backups, V: Array, stop: Stop, sweeps: int, method: str) -> MDPSolution:
    trace: list[float] = []
    last: tuple[Array, Backup] | None = None
    extrapolation = _Extrapolation()
    try:
        while True:
            backup = backups.best(V)
            last = V, backup
            bounds = backups.bounds(V, backup)
            trace.append(bounds.gap)
            if status := stopped(trace, bounds, stop):
                return finish(backups, V, backup, status, trace, stop, method)
            V = _evaluated(backups, backup, sweeps, extrapolation.helps(bounds.gap), stop) if sweeps else backup.TV
    except KeyboardInterrupt:
        if last is None:
            raise
        raise Interrupted(finish(backups, *last, "interrupted", trace, stop, method)) from None


class _Extrapolation:
    """Return whether BiCGSTAB may be used: not for 20, 40, ... steps after each 20 steps without a smaller gap."""

    def __init__(self) -> None:
        self._least, self._steps = np.inf, 0
        self._suspended, self._next = 0, _PATIENCE

    def helps(self, gap: float) -> bool:
        """Record the gap of a step."""
        self._steps = 0 if gap < self._least else self._steps + 1
        self._least = min(self._least, gap)
        if self._suspended == 0 and self._steps >= _PATIENCE:
            self._suspended, self._next, self._steps = self._next, 2 * self._next, 0
        self._suspended = max(self._suspended - 1, 0)
        return self._suspended == 0


def _evaluated(backups: Backups, backup: Backup, sweeps: int, extrapolates: bool, stop: Stop) -> Array:
    """Return T_pi^m T V, or an equally good approximation of V^pi; T V itself and its backup are not modified."""
    span = backup.high - backup.low
    enough = max(_FALL * span, 0.1 * stop.tol * (1.0 - backups.gamma))
    now, other = backup.TV, np.empty_like(backup.TV)
    for sweep in range(sweeps):
        step = backups.of_policy(now, backup.policy, other)
        now, other = other, (np.empty_like(other) if sweep == 0 else now)
        if step.high - step.low <= enough or stop.clock.is_over:
            break
        if extrapolates and sweep == _FEW:
            return refined(backups.process, backup.policy, now, enough / (step.high - step.low))
    return now


def in_order(backups: Backups, V: Array, stop: Stop, order: Any, rng: np.random.Generator) -> MDPSolution:
    """Solve by (2), in the order of the states' numbers, in a new random order for each sweep, or in a given one."""
    S, gamma = len(V), backups.gamma
    method = _name(order)
    policy, far = np.empty(S, np.int64), gamma / (1.0 - gamma)
    trace: list[float] = []
    wanted = stop.tol  # span of a sweep, relative to the tolerance, at which the synchronous backup is computed
    try:
        while True:
            low, high = backups.in_place(V, policy, _states(order, S, rng))
            trace.append(2.0 * far * max(abs(low), abs(high)))  # a sweep contracts by gamma, too
            if far * (high - low) <= wanted or len(trace) >= stop.max_iter or stop.clock.is_over:
                backup = backups.best(V)
                bounds = backups.bounds(V, backup)
                trace[-1] = bounds.gap
                if status := stopped(trace, bounds, stop):
                    return finish(backups, V, backup, status, trace, stop, method)
                wanted = 0.5 * far * (high - low)
    except KeyboardInterrupt:
        if not trace:
            raise
        backup = backups.best(V)
        raise Interrupted(finish(backups, V, backup, "interrupted", trace, stop, method)) from None


def undiscounted(backups: Backups, V: Array, stop: Stop, order: Any, rng: np.random.Generator) -> MDPSolution:
    """Solve a process that ends by (1) or (2)."""
    policy = np.empty(len(V), np.int64)

    def sweep(V: Array) -> Array:
        if isinstance(order, str) and order == "synchronous":
            return backups.best(V).TV
        backups.in_place(V, policy, _states(order, len(V), rng))
        return V

    return episodic.value_iteration(backups.process, V, sweep, stop, _name(order))


def _name(order: Any) -> str:
    return f"value iteration, {order if isinstance(order, str) else 'given order'}"


def _states(order: Any, S: int, rng: np.random.Generator) -> Any:
    """Return the states of a sweep."""
    if not isinstance(order, str):
        return order
    return rng.permutation(S) if order == "random" else np.arange(S)


def check_order(order: Any, S: int) -> Any:
    """Return the name of an order, or the numbers of states, all of which must occur."""
    if isinstance(order, str):
        return "gauss_seidel" if order == "asynchronous" else order
    numbers = np.asarray(order)
    kind = numbers.dtype.kind
    if kind not in "iu" or numbers.ndim != 1 or not np.array_equal(np.unique(numbers), np.arange(S)):
        raise ParameterError(
            f"The 'order' parameter of value_iteration must be one of {', '.join(map(repr, ORDERS))}, or state numbers "
            f"in which each of 0 to {S - 1} occurs."
        )
    return numbers.astype(np.int64)
