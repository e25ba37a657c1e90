"""The value of a policy: Bellman's linear system.

With P_pi(s, s') = sum_a pi(a | s) P(s' | s, a) and r_pi(s) = sum_a pi(a | s) r(s, a),

    V^pi = r_pi + gamma P_pi V^pi,     so     (I - gamma P_pi) V^pi = r_pi                                         (1)

is solved by a dense LU decomposition, or for more than a thousand states by BiCGSTAB, and if that is slow (slowly
mixing chains) by a sparse LU decomposition or, on request, by GMRES, which needs less memory. For any V, the residual
b = r_pi + gamma P_pi V - V bounds the error as in `bounds.py`:

    V + min b / (1 - gamma)  <=  V^pi  <=  V + max b / (1 - gamma)                                                 (2)

(0 counts in the minimum and maximum if the process can end).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from summula.core.engine.threads import one_blas_thread, solving
from summula.core.errors import DataError
from summula.mdp.process import Process

__all__ = ["PolicyValue", "check_policy", "evaluate", "refined"]

Array = NDArray[np.float64]

_DENSE = 1_000  # number of states up to which a dense LU decomposition is used
_STEPS = 60  # maximum number of BiCGSTAB steps before another method is tried
_RESTART = 40  # number of vectors stored by GMRES
_CYCLES = 1_000
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class PolicyValue:
    """Value of a policy.

    Attributes
    ----------
    values : ndarray of shape (S,)
        Expected discounted return from each state.
    q_values : ndarray of shape (S, A)
        The same with a given first action.
    residual : float
        Largest residual of Bellman's equation.
    gap : float
        The values are within this distance of the policy's true values, rounding errors included.
    method : {"dense", "bicgstab", "sparse", "gmres"}
        How the linear system was solved.
    """

    values: Array
    q_values: Array = field(repr=False)
    residual: float
    gap: float
    method: str


def check_policy(policy: Any, process: Process) -> Array | NDArray[np.int64]:
    """Return a policy as an array of S actions, or as an S x A table of probabilities."""
    S, A = process.n_states, process.n_actions
    given = np.asarray(getattr(policy, "policy", policy))
    available = process.table > -np.inf
    if given.shape == (S,) and given.dtype.kind in "iu":
        outside = np.flatnonzero((given < 0) | (given >= A))
        if len(outside):
            raise DataError(
                f"The policy chooses action {given[outside[0]]} in state {outside[0]}; there are {A} actions."
            )
        chosen = given.astype(np.int64)
        missing = np.flatnonzero(~available[np.arange(S), chosen])
        if len(missing):
            raise DataError(
                f"The policy chooses action {chosen[missing[0]]} in state {missing[0]}, where it is not available."
            )
        return chosen
    if given.shape != (S, A) or given.dtype.kind not in "iufb":
        raise DataError(
            f"A policy must be {S} action numbers or an array of probabilities of shape ({S}, {A}), not shape "
            f"{given.shape} of type {given.dtype}."
        )
    table = given.astype(np.float64)
    wrong = ~((table >= 0).all(axis=1) & (np.abs(table.sum(axis=1) - 1.0) <= 1e-6))
    if wrong.any():
        raise DataError(f"The action probabilities of state {np.argmax(wrong)} are not positive numbers that sum to 1.")
    forbidden = ((table > 0) & ~available).any(axis=1)
    if forbidden.any():
        raise DataError(
            f"The policy has a positive probability of an unavailable action in state {np.argmax(forbidden)}."
        )
    return np.asarray(table / table.sum(axis=1, keepdims=True))


def evaluate(process: Process, policy: Any, method: str, tol: float, start: Array | None = None) -> PolicyValue:
    """Solve (1) for a validated policy; iterative methods start at the given values."""
    P, r = process.chain(policy)
    gamma = process.gamma
    V, used = _solved(P, r, gamma, method, tol, r if start is None else start)
    b = r + gamma * (P @ V) - V
    low, high = float(b.min()), float(b.max())
    if process.may_end:
        low, high = min(low, 0.0), max(high, 0.0)
    terms = int(np.diff(P.indptr).max()) if P.nnz else 0
    size = float(np.abs(r).max()) + 2.0 * float(np.abs(V).max())
    slack = _EPS * (terms + 4) * size / (1.0 - gamma)
    residual = max(-low, high)
    return PolicyValue(V, process.q_values(V), residual, residual / (1.0 - gamma) + slack, used)


def refined(process: Process, policy: Any, V: Array, fall: float) -> Array:
    """Return values of a policy from V, with a residual of (1) that is smaller by a factor if BiCGSTAB succeeds."""
    P, r = process.chain(policy)
    gamma = process.gamma
    residual = r + gamma * (P @ V) - V
    return V + _by_bicgstab(P, gamma, residual, None, fall * float(np.linalg.norm(residual)))[0]


def _by_bicgstab(P: Any, gamma: float, b: Array, start: Array | None, atol: float) -> tuple[Array, bool]:
    """Solve (I - gamma P) x = b, and return whether the norm of the residual is at most `atol`."""
    from scipy.sparse import linalg

    S = len(b)
    matrix = linalg.LinearOperator((S, S), lambda v: v - gamma * (P @ v), dtype=np.float64)
    with one_blas_thread():
        x, failed = linalg.bicgstab(matrix, b, x0=start, rtol=0.0, atol=atol, maxiter=_STEPS)
    return np.asarray(x), failed == 0


def _solved(P: Any, r: Array, gamma: float, method: str, tol: float, start: Array) -> tuple[Array, str]:
    S = len(r)
    if S <= _DENSE and method != "iterative":
        with solving(S):
            return np.linalg.solve(np.eye(S) - gamma * P.toarray(), r), "dense"
    from scipy.sparse import linalg

    atol = tol * (1.0 - gamma)
    if method != "direct":
        V, succeeded = _by_bicgstab(P, gamma, r, start, atol)
        if succeeded:
            return V, "bicgstab"
    matrix = sparse.eye(S, format="csr") - gamma * P
    if method == "iterative":
        V, _ = linalg.gmres(matrix, r, x0=start, rtol=0.0, atol=atol, restart=min(_RESTART, S), maxiter=_CYCLES)
        return np.asarray(V), "gmres"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a format that is not the preferred one
        return np.asarray(linalg.splu(matrix.tocsc()).solve(r)), "sparse"
