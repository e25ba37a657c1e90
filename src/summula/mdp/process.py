"""The validated arrays of a Markov decision process.

    S states, A actions, P(s' | s, a), r(s, a) = E[R | s, a], discount gamma

Transitions are stored once, as a CSR matrix with the row s A + a for each pair of a state and an action. The process
may end: with probability e(s, a) there is no next state, and row s A + a sums to 1 - e(s, a).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from summula.core.data.sparse_format import check_sparse
from summula.core.errors import DataError, ParameterError
from summula.core.estimator.input.argument_values import number_or_nan
from summula.core.estimator.parameters import Allowed, real

__all__ = ["BELOW_ONE", "Process", "as_numbers", "check_process"]

Array = NDArray[np.float64]

BELOW_ONE = Allowed(lambda value: real(0.0, 1.0).accepts(value) and value < 1.0, "a float in the range [0.0, 1.0)")

_ROUNDING = 1e-6  # rounding error of probabilities in single precision


@dataclass(frozen=True)
class Process:
    """A validated Markov decision process.

    Attributes
    ----------
    P : csr_matrix of shape (S A, S)
        Probabilities of the next states; rows of unavailable actions are empty.
    r : ndarray of shape (S A,)
        Expected rewards; -inf for unavailable actions.
    gamma : float
    ending : ndarray of shape (S A,)
        Probabilities that the process ends.
    rewards : ndarray or None
        One reward per stored entry of P, if rewards depend on the next state.
    """

    P: Any
    r: Array
    gamma: float
    ending: Array
    rewards: Array | None = None

    @property
    def n_states(self) -> int:
        """Number of states."""
        return int(self.P.shape[1])

    @property
    def n_actions(self) -> int:
        """Number of actions."""
        return len(self.r) // self.n_states

    @property
    def may_end(self) -> bool:
        """Whether the process can end."""
        return bool(self.ending.any())

    @property
    def table(self) -> Array:
        """The expected rewards as a table of shape (S, A)."""
        return self.r.reshape(self.n_states, -1)

    def q_values(self, V: Array) -> Array:
        """Return r(s, a) + gamma sum P(s' | s, a) V(s'), of shape (S, A); -inf for unavailable actions."""
        return np.asarray(self.r + self.gamma * (self.P @ V)).reshape(self.n_states, -1)

    def chain(self, policy: Any) -> tuple[Any, Array]:
        """Return P_pi and r_pi of a validated policy: actions, or a table of their probabilities."""
        S, A = self.n_states, self.n_actions
        if policy.ndim == 1:
            rows = np.arange(S) * A + policy
            return self.P[rows], self.r[rows]
        weights = sparse.csr_matrix((policy.ravel(), np.arange(S * A), np.arange(0, S * A + 1, A)), (S, S * A))
        return weights @ self.P, (policy * np.where(policy > 0, self.table, 0.0)).sum(axis=1)


def check_process(transitions: Any, rewards: Any, discount: Any, available: Any = None, ending: Any = None) -> Process:
    """Return the process defined by the arguments of `MDP`; errors name the invalid state and action."""
    gamma = _discount(discount)
    P = _stacked(transitions, "transitions")
    S, A = P.shape[1], P.shape[0] // P.shape[1]
    r, given = _rewards(rewards, P, S, A)
    r = np.where(_available(available, S, A), r, -np.inf)
    ends = _ending(ending, S, A)
    kept = r > -np.inf
    _check_rows(P, r, ends, S, A)
    sums = np.asarray(P.sum(axis=1)).ravel()
    ends = np.where(sums > 0, ends, 1.0)  # exactly 1 if no other outcome is possible
    share = np.where(kept & (sums > 0), (1.0 - ends) / np.where(sums > 0, sums, 1.0), 0.0)
    entries = np.repeat(share, np.diff(P.indptr))
    P.data = P.data * entries
    nonzero = P.data > 0
    if nonzero.all():
        return Process(P, r, gamma, np.where(kept, ends, 0.0), given)
    # Explicit zeros are removed together with their rewards.
    starts = np.concatenate([[0], np.cumsum(nonzero)])[P.indptr]
    P = sparse.csr_matrix((P.data[nonzero], P.indices[nonzero], starts), P.shape)
    return Process(P, r, gamma, np.where(kept, ends, 0.0), None if given is None else given[nonzero])


def as_numbers(values: Any, name: str) -> Array:
    """Return an array of floats."""
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{name} is not an array of numbers; pass one, with rows of equal length.") from None


def _discount(discount: Any) -> float:
    gamma = number_or_nan(discount)
    if not 0.0 <= gamma <= 1.0:
        raise ParameterError(f"The 'discount' parameter of MDP must be a number in [0, 1]. Got {discount!r} instead.")
    return gamma


def _stacked(given: Any, name: str) -> Any:
    """Return a new CSR matrix of shape (S A, S) without duplicates from any of the accepted forms."""
    for one in given if isinstance(given, list | tuple) else [given]:
        check_sparse(one, name)
    if sparse.issparse(given):
        matrix = sparse.csr_matrix(given, dtype=np.float64, copy=True)
    elif isinstance(given, list | tuple) and given and all(sparse.issparse(one) for one in given):
        shapes = {one.shape for one in given}
        if len(shapes) > 1 or (shape := next(iter(shapes)))[0] != shape[1]:
            raise DataError(f"{name} has matrices of shapes {sorted(shapes)}; pass one S x S matrix for each action.")
        S, A = shape[0], len(given)
        stacked = sparse.csr_matrix(sparse.vstack(given), dtype=np.float64)
        matrix = stacked[(np.arange(A)[None, :] * S + np.arange(S)[:, None]).ravel()]
    else:
        dense = as_numbers(given, name)
        if dense.ndim != 3 or dense.shape[0] != dense.shape[2] or not dense.size:
            hint = f"turn an A x S x S array into it with np.swapaxes({name}, 0, 1)"
            raise DataError(
                f"{name} has shape {dense.shape}; it must be S x A x S (state, action, next state): {hint}."
            )
        matrix = sparse.csr_matrix(dense.reshape(-1, dense.shape[2]))
    if min(matrix.shape) == 0 or matrix.shape[0] % matrix.shape[1]:
        raise DataError(f"{name} has shape {matrix.shape}; it must be (S A) x S with the row s A + a for each pair.")
    matrix.sum_duplicates()
    return matrix


def _rewards(rewards: Any, P: Any, S: int, A: int) -> tuple[Array, Array | None]:
    """Return the expected rewards (S A,), and those of each stored transition if they depend on the next state."""
    several = isinstance(rewards, list | tuple) and len(rewards) > 0 and all(sparse.issparse(one) for one in rewards)
    if sparse.issparse(rewards) or several or np.ndim(rewards) == 3:
        R = _stacked(rewards, "rewards")
        if R.shape != P.shape:
            raise DataError(f"rewards are for {R.shape} transitions, but there are {P.shape}; use the same S and A.")
        rows = np.repeat(np.arange(S * A), np.diff(P.indptr))
        each = np.asarray(R[rows, P.indices]).ravel() if len(rows) else np.zeros(0)
        _check_finite(each, rows, A)
        return np.asarray(np.bincount(rows, each * P.data, S * A), np.float64), each
    given = as_numbers(rewards, "rewards")
    if given.shape not in ((S,), (S, A)):
        raise DataError(f"rewards has shape {given.shape}; it must be ({S},), ({S}, {A}) or ({S}, {A}, {S}).")
    r = np.repeat(given, A) if given.ndim == 1 else given.reshape(-1).copy()
    _check_finite(np.where(r == -np.inf, 0.0, r), np.arange(S * A), A)
    return r, None


def _check_finite(values: Array, rows: Any, A: int) -> None:
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        s, a = divmod(int(rows[bad[0]]), A)
        raise DataError(
            f"The reward of action {a} in state {s} is {values[bad[0]]}; rewards must be finite (or -inf in an S x A "
            "table, for an action that is not available)."
        )


def _available(available: Any, S: int, A: int) -> Any:
    if available is None:
        return True
    mask = np.asarray(available)
    if mask.dtype != bool or mask.shape != (S, A):
        raise DataError(f"available has shape {mask.shape}, type {mask.dtype}; it must be a bool array ({S}, {A}).")
    return mask.ravel()


def _ending(ending: Any, S: int, A: int) -> Array:
    if ending is None:
        return np.zeros(S * A)
    given = as_numbers(ending, "termination")
    if given.shape not in ((S,), (S, A)):
        raise DataError(f"termination has shape {given.shape}; it must be ({S},) or ({S}, {A}).")
    ends = np.repeat(given, A) if given.ndim == 1 else given.reshape(-1)
    if not ((ends >= 0) & (ends <= 1)).all():
        s, a = divmod(int(np.argmin((ends >= 0) & (ends <= 1))), A)
        raise DataError(f"termination is {ends[s * A + a]} for action {a} in state {s}; it must be a probability.")
    return np.asarray(ends)


def _check_rows(P: Any, r: Array, ends: Array, S: int, A: int) -> None:
    kept = r > -np.inf
    empty = np.flatnonzero(~kept.reshape(S, A).any(axis=1))
    if len(empty):
        raise DataError(f"State {empty[0]} has no available action; give it one, such as to stay with reward 0.")
    rows = np.repeat(np.arange(S * A), np.diff(P.indptr))
    bad = np.flatnonzero(~((P.data >= 0) & np.isfinite(P.data)) & kept[rows])
    if len(bad):
        s, a = divmod(int(rows[bad[0]]), A)
        raise DataError(
            f"The probability of state {P.indices[bad[0]]} after action {a} in state {s} is {P.data[bad[0]]}; "
            "probabilities must be finite and non-negative."
        )
    # Differences are small here, since terms are probabilities.
    sums = np.asarray(P.sum(axis=1)).ravel()
    wrong = np.flatnonzero((np.abs(sums + ends - 1.0) > _ROUNDING) & kept)
    if len(wrong):
        s, a = divmod(int(wrong[0]), A)
        total = f"{sums[wrong[0]]:.6g}" + (f" and termination {ends[wrong[0]]:.6g}" if ends.any() else "")
        raise DataError(
            f"The probabilities of action {a} in state {s} sum to {total}, not to 1 ({len(wrong)} of {S * A} rows do "
            "not): normalise them, pass the probability that the process ends as termination=, or mark the action as "
            "not available with available=."
        )
