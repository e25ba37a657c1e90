"""The value of a policy: Bellman's linear system.

With P_pi(s, s') = sum_a pi(a | s) P(s' | s, a) and r_pi(s) = sum_a pi(a | s) r(s, a),

    V^pi = r_pi + gamma P_pi V^pi,     so     (I - gamma P_pi) V^pi = r_pi                                         (1)

is solved by an LU decomposition (dense, or sparse where fill-in is moderate) or by GMRES. For any V, the residual
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

from summula.core.engine.threads import solving
from summula.core.errors import DataError
from summula.mdp.process import Process

__all__ = ["PolicyValue", "check_policy", "evaluate"]

Array = NDArray[np.float64]

_DENSE = 1_000  # states up to which the matrix is decomposed as a dense one
_RESTART = 40  # vectors that GMRES keeps
_CYCLES = 5  # before a decomposition is tried instead
_MOST_CYCLES = 1_000
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class PolicyValue:
    """Value of a policy.

    Attributes
    ----------
    values : ndarray of shape (S,)
        Expected discounted payoff from each state.
    q_values : ndarray of shape (S, A)
        The same with a given first action.
    residual : float
        Largest residual of Bellman's equation.
    gap : float
        The values are within this distance of the policy's true values, rounding errors included.
    method : {"dense", "sparse", "gmres"}
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


def chain(process: Process, policy: Any) -> tuple[Any, Array]:
    """Return P_pi and r_pi of a checked policy."""
    S, A = process.n_states, process.n_actions
    if policy.ndim == 1:
        rows = np.arange(S) * A + policy
        return process.P[rows], process.r[rows]
    weights = sparse.csr_matrix((policy.ravel(), np.arange(S * A), np.arange(0, S * A + 1, A)), (S, S * A))
    return weights @ process.P, (policy * np.where(policy > 0, process.table, 0.0)).sum(axis=1)


def evaluate(process: Process, policy: Any, method: str, tol: float, start: Array | None = None) -> PolicyValue:
    """Solve (1) for a checked policy; GMRES starts at the given values."""
    P, r = chain(process, policy)
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


def _solved(P: Any, r: Array, gamma: float, method: str, tol: float, start: Array) -> tuple[Array, str]:
    S = len(r)
    if S <= _DENSE and method != "iterative":
        with solving(S):
            return np.linalg.solve(np.eye(S) - gamma * P.toarray(), r), "dense"
    from scipy.sparse import linalg

    matrix = sparse.eye(S, format="csr") - gamma * P
    if method != "direct":
        cycles = _MOST_CYCLES if method == "iterative" else _CYCLES
        V, failed = linalg.gmres(
            matrix, r, x0=start, rtol=0.0, atol=tol * (1.0 - gamma), restart=min(_RESTART, S), maxiter=cycles
        )
        if not failed or method == "iterative":
            return np.asarray(V), "gmres"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a format that is not the preferred one
        return np.asarray(linalg.splu(matrix.tocsc()).solve(r)), "sparse"
