"""Processes that end, without discount (stochastic shortest paths).

With gamma = 1 a value is a finite sum if the process ends with probability 1; a policy for which it does, from every
state, is called proper. V* is the supremum over proper policies. For a proper policy, N = 1 + P_pi N is the expected
number of steps, and if L <= T_pi L, or U >= T U, then repeating the backups shows

    L <= V^pi <= V* <= U,    where T_pi^k L increases to V^pi, and T_pi^k U, at most U, converges to V^pi for every
                             proper policy                                                                         (1)

Policy iteration starts from a proper policy, the one that ends soonest. A strict improvement is proper, too, unless it
earns a positive reward forever, and then V* is infinite (Bertsekas and Tsitsiklis 1991). For the last policy, with
V = V^pi up to rounding,

    L = V - epsilon N,    U = V + epsilon N if that satisfies T U <= U, else V* of the rewards r + epsilon         (2)

epsilon exceeds the rounding errors of Bellman's equation, so both inequalities hold in exact arithmetic. If a policy
has a cycle with zero reward, there is no such epsilon: U = V + epsilon N then holds up to rounding only.

References: Bertsekas and Tsitsiklis, Mathematics of Operations Research 16 (1991), 580-595.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from summula.core.engine.threads import solving
from summula.core.errors import DataError, ParameterError
from summula.mdp.process import Process
from summula.mdp.results import MDPSolution
from summula.mdp.solvers.bounds import POLICY_ITERATION, Backups, Clock, Interrupted, Stop, assembled
from summula.mdp.solvers.evaluation import PolicyValue

__all__ = ["approximate", "evaluate", "policy_iteration", "proper", "value_iteration", "without_absorbing"]

Array = NDArray[np.float64]
Actions = NDArray[np.int64]

_DENSE = 1_000  # number of states up to which a dense LU decomposition is used
_MOST_STEPS = 1e12  # expected number of steps above which the linear system is singular up to rounding
_SOON = 0.999
_ACCURACY = 1e-13  # tolerance of GMRES, relative to the rewards
_RESTART = 40
_SWEEPS = 300
_CYCLES = 5
_EPS = float(np.finfo(np.float64).eps)


class _Value(NamedTuple):
    """A proper policy: its values, the expected number of steps, and the largest error of Bellman's equation."""

    V: Array
    N: Array
    residual: float


# ------------------------------------------------------------------------------------------------------------- policies


def without_absorbing(process: Process) -> Process:
    """Return the process with absorbing states without rewards as ends of the process."""
    S, A = process.n_states, process.n_actions
    rows = np.arange(S * A)
    available = process.r > -np.inf
    stays = np.asarray(process.P[rows, rows // A]).ravel() >= 1.0 - 1e-12
    final = ((stays & (process.r == 0.0)) | ~available).reshape(S, A).all(axis=1)
    if process.rewards is not None:
        entries = np.repeat(rows, np.diff(process.P.indptr))
        final &= np.bincount(entries // A, process.rewards != 0.0, S) == 0
    if not final.any():
        return process
    ends = np.repeat(final, A) & available
    P = sparse.csr_matrix(sparse.diags(np.where(ends, 0.0, 1.0)) @ process.P)
    P.eliminate_zeros()
    return replace(process, P=P, ending=np.where(ends, 1.0, process.ending), rewards=None)


def proper(process: Process, policy: Any) -> NDArray[np.bool_]:
    """Return the states from which the process ends with positive probability; all of them for a proper policy."""
    S = process.n_states
    P = process.chain(policy)[0]
    weights = np.eye(process.n_actions)[policy] if policy.ndim == 1 else policy
    ends = (weights * process.ending.reshape(S, -1)).sum(axis=1)
    return _reached(sparse.csr_matrix(P), ends)[0]


def _reached(P: Any, ends: Array) -> tuple[NDArray[np.bool_], Any]:
    """Search backwards from the end; return the states found, and the next state on a shortest path (S for the end)."""
    from scipy.sparse import csgraph

    S = P.shape[1]
    entries = P.tocoo()
    from_end = np.flatnonzero(ends > 0)
    places = (np.r_[entries.col, np.full(len(from_end), S)], np.r_[entries.row, from_end])
    graph = sparse.csr_matrix((np.ones(len(places[0])), places), (S + 1, S + 1))
    order, before = csgraph.breadth_first_order(graph, S, directed=True)
    found = np.zeros(S + 1, bool)
    found[order] = True
    return found[:S], before[:S]


def _check_can_end(process: Process) -> Actions:
    """Return a policy that moves along shortest paths to the end with positive probability, which may be tiny."""
    S, A = process.n_states, process.n_actions
    P, rows = process.P, np.repeat(np.arange(S * A), np.diff(process.P.indptr))
    graph = sparse.csr_matrix((P.data, (rows // A, P.indices)), (S, S))
    found, after = _reached(graph, process.ending.reshape(S, A).max(axis=1))
    if not found.all():
        raise ParameterError(
            f"With discount 1 the process has to end, but from state {int(np.argmin(found))} it never does. Use a "
            "discount below 1, MDP(..., discount=0.99); pass termination=; or use backward_induction(horizon) for a "
            "finite number of steps."
        )
    nearer = P.indices == after[rows // A]
    policy = process.ending.reshape(S, A).argmax(axis=1)
    states, first = np.unique(rows[nearer] // A, return_index=True)
    policy[states] = rows[nearer][first] % A
    return np.asarray(policy, np.int64)


def _some_proper_policy(process: Process) -> Actions:
    """Return a policy that ends soon: with the largest E[0.999^T], T the number of steps."""
    from summula.mdp.solvers.value_iteration import modified

    along_paths = _check_can_end(process)
    rewards = np.where(process.r > -np.inf, process.ending, -np.inf)
    soon = replace(process, r=rewards, gamma=_SOON, rewards=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        policy = modified(Backups(soon), np.zeros(process.n_states), Stop(1e-9, 1_000, Clock(None))).policy
    return policy if proper(process, policy).all() else along_paths


# ------------------------------------------------------------------------------------------------------------- solving


def _value(process: Process, policy: Any, start: _Value | None = None) -> _Value:
    """Solve (I - P_pi) (V, N) = (r_pi, 1) for a proper policy; GMRES starts at the values of another one."""
    P, r = process.chain(policy)
    S = len(r)
    right = np.column_stack([r, np.ones(S)])
    if S <= _DENSE:
        with solving(S):
            V, N = np.linalg.solve(np.eye(S) - P.toarray(), right).T
    else:
        near = right if start is None else np.column_stack([start.V, start.N])
        V, N = _solved_sparsely(sparse.csr_matrix(sparse.eye(S) - P), right, near).T
    N = 1.001 * N  # so that N >= 1 + P N in spite of rounding
    if not (np.isfinite(N).all() and N.max() < _MOST_STEPS and (N - P @ N >= 1.0).all()):
        s = int(np.argmax(np.where(np.isfinite(N), np.abs(N), np.inf)))
        raise DataError(
            f"From state {s} the process ends so rarely that its values cannot be computed with discount 1: use a "
            "discount below 1."
        )
    return _Value(V, N, float(np.abs(r + P @ V - V).max()))


def _solved_sparsely(matrix: Any, right: Array, near: Array) -> Array:
    """Solve by GMRES, or by a sparse LU decomposition if that is slow (long corridors)."""
    from scipy.sparse import linalg

    columns = []
    for b, x0 in zip(right.T, near.T, strict=True):
        x, failed = linalg.gmres(matrix, b, x0=x0, rtol=_ACCURACY, restart=_RESTART, maxiter=_CYCLES)
        if failed:
            return np.asarray(linalg.splu(matrix.tocsc()).solve(right))
        columns.append(x)
    return np.column_stack(columns)


def _rounding(process: Process, V: Array) -> float:
    """Return a bound on the rounding errors of a backup of V."""
    terms = int(np.diff(process.P.indptr).max(initial=0))
    rewards = np.abs(process.r[process.r > -np.inf]).max()
    return float(_EPS * (terms + 4) * (rewards + 2.0 * np.abs(V).max()))


def _value_if_it_ends(process: Process, policy: Actions) -> _Value | None:
    """Return the value of a policy, or None if it is not proper, or ends too rarely."""
    try:
        return _value(process, policy) if proper(process, policy).all() else None
    except DataError:
        return None


def evaluate(process: Process, policy: Any) -> PolicyValue:
    """Return the value of a checked policy, with a bound on its error."""
    process = without_absorbing(process)
    ends = proper(process, policy)
    if not ends.all():
        raise ParameterError(
            f"With discount 1 the process has to end, but with this policy it never does from state "
            f"{int(np.argmin(ends))}. Use a discount below 1, MDP(..., discount=0.99), or backward_induction(horizon) "
            "for a finite number of steps."
        )
    value = _value(process, policy)
    gap = (value.residual + _rounding(process, value.V)) * float(value.N.max())
    method = "dense" if process.n_states <= _DENSE else "sparse"
    return PolicyValue(value.V, process.q_values(value.V), value.residual, gap, method)


def policy_iteration(
    process: Process, policy: Any, V: Array, stop: Stop, method: str = POLICY_ITERATION, done: int = 0
) -> MDPSolution:
    """Solve from a policy, or from the greedy one for V; from one that ends soon if it may never end."""
    process = without_absorbing(process)
    given = process.q_values(V).argmax(axis=1) if policy is None else policy
    value = _value_if_it_ends(process, given)
    policy = _some_proper_policy(process) if value is None else given
    last: Any = None
    steps = done
    try:
        while True:
            value = _value(process, policy, value) if last is not None or value is None else value
            last, steps = (policy, value), steps + (method == POLICY_ITERATION)
            better = _improvement(process, policy, value)
            status = "max_iter" if steps - done >= stop.max_iter else "max_time" if stop.clock.is_over else ""
            if better is None or status:
                return _finished(process, policy, value, better is None, status, steps, stop, method)
            policy = better
    except KeyboardInterrupt:
        if last is None:
            raise
        policy, value = last
        raise Interrupted(_finished(process, policy, value, False, "interrupted", steps, stop, method)) from None


def _improvement(process: Process, policy: Actions, value: _Value) -> Actions | None:
    """Return the policy with strictly better actions, or None if there are none."""
    q, rows = process.q_values(value.V), np.arange(process.n_states)
    TV = q.max(axis=1)
    better = q[rows, policy] + value.residual + 2.0 * _rounding(process, value.V) < TV
    if not better.any():
        return None
    policy = np.where(better, q.argmax(axis=1), policy)
    ends = proper(process, policy)
    if not ends.all():
        raise ParameterError(
            f"With discount 1 the optimal values are infinite: from state {int(np.argmin(ends))} positive rewards can "
            "be collected forever. Use a discount below 1, MDP(..., discount=0.99), or backward_induction(horizon) for "
            "a finite number of steps."
        )
    return policy


def approximate(backups: Backups, V: Array, stop: Stop) -> Array:
    """Return V after sweeps V := T V, which are cheaper than the linear systems of policy iteration they replace."""
    for _ in range(_SWEEPS):
        before, V = V, backups.best(V).TV
        if float(np.abs(V - before).max()) <= 1e-6 * float(np.abs(V).max()) or stop.clock.is_over:
            break
    return V


def value_iteration(process: Process, V: Array, sweep: Any, stop: Stop, method: str) -> MDPSolution:
    """Solve by sweeps V := T V until V hardly changes; the bounds are those of the greedy policy."""
    ended, steps, status = without_absorbing(process), 0, ""
    _check_can_end(ended)
    try:
        while not status:
            before = V.copy()
            V, steps = sweep(V), steps + 1
            if float(np.abs(V - before).max()) <= max(1e-3 * stop.tol, 4.0 * _rounding(ended, V)):
                return policy_iteration(process, None, V, stop, method, steps)
            status = "max_iter" if steps >= stop.max_iter else "max_time" if stop.clock.is_over else ""
    except KeyboardInterrupt:
        raise Interrupted(_stopped_early(ended, V, "interrupted", steps, stop, method)) from None
    return _stopped_early(ended, V, status, steps, stop, method)


def _stopped_early(process: Process, V: Array, status: str, steps: int, stop: Stop, method: str) -> MDPSolution:
    policy = process.q_values(V).argmax(axis=1)
    value = _value_if_it_ends(process, policy)
    if value is None:
        policy = _some_proper_policy(process)
        value = _value(process, policy)
    settled = _improvement(process, policy, value) is None
    return _finished(process, policy, value, settled, status, steps, stop, method)


# -------------------------------------------------------------------------------------------------------------- bounds


def _finished(
    process: Process, policy: Actions, value: _Value, settled: bool, status: str, steps: int, stop: Stop, method: str
) -> MDPSolution:
    """Return the solution with the bounds (2); without an upper one for a policy that can still be improved."""
    epsilon = 2.0 * value.residual + 6.0 * _rounding(process, value.V)
    lower, upper = value.V - epsilon * value.N, np.full_like(value.V, np.inf)
    if settled:
        upper = _upper(process, policy, value, epsilon)
    gap = float((upper - lower).max())
    if settled or gap <= stop.tol:
        status = "converged" if gap <= stop.tol else status or "stalled"
    return assembled(process, (value.V, policy, lower, upper, gap), status, (gap,) * min(steps, 1), steps, stop, method)


def _upper(process: Process, policy: Actions, value: _Value, epsilon: float) -> Array:
    near = np.asarray(value.V + epsilon * value.N)
    if _is_above(process, near):
        return near
    raised = replace(process, r=process.r + epsilon)
    try:
        for _ in range(100):
            above = _value(raised, policy, value)
            better = _improvement(raised, policy, above)
            if better is None:
                return above.V if _is_above(process, above.V) else near
            policy = better
    except (DataError, ParameterError):
        pass  # zero-reward cycles: there is no such bound
    return near


def _is_above(process: Process, U: Array) -> bool:
    return bool((process.q_values(U).max(axis=1) <= U - _rounding(process, U)).all())
