"""Linear constraints G x <= h, A x = b, low <= x <= high: validation and infeasibility certificates.

They are infeasible if and only if a combination of them is a contradiction (Farkas): multipliers z, y, s, w with

    G'z + A'y - s + w = 0,     h'z + b'y - low's + high'w = -1,     z, s, w >= 0                                   (1)

since these would give 0 = 0'x <= -1. A vertex of this set of multipliers has a minimal support: without any one of its
constraints the others can be satisfied (Gleeson and Ryan 1990). So a simplex method that minimises the sum of the
multipliers subject to (1) finds a small set of contradicting constraints.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from summula.core.data.sparse_format import check_sparse
from summula.core.errors import DataError, ParameterError
from summula.optimize.problems.objective import vector

__all__ = ["LinearConstraints", "bound_pairs", "conflict", "descent_ray", "in_words"]

Array = NDArray[np.float64]

_ZERO = 1e-9  # of the largest multiplier
_MANY = 12  # maximum number of constraints listed in a message


class LinearConstraints(NamedTuple):
    """G x <= h, A x = b, low <= x <= high; G and A are dense or sparse, possibly without rows."""

    G: Any
    h: Array
    A: Any
    b: Array
    low: Array
    high: Array

    @classmethod
    def read(cls, d: int, G: Any, h: Any, A: Any, b: Any, bounds: Any, function: str, names: str) -> LinearConstraints:
        """Validate the arguments of a solver; `names` are the names of the four parameters, separated by spaces."""
        first, second, third, fourth = names.split()
        G, h = _rows(G, h, d, first, second, function)
        A, b = _rows(A, b, d, third, fourth, function)
        return cls(G, h, A, b, *bound_pairs(bounds, d, function))

    def __bool__(self) -> bool:
        return bool(len(self.h) or len(self.b) or np.isfinite(self.low).any() or np.isfinite(self.high).any())


def bound_pairs(bounds: Any, d: int, function: str) -> tuple[Array, Array]:
    """Return lower and upper bounds of d variables, infinite for no bound."""
    low, high = np.full(d, -np.inf), np.full(d, np.inf)
    if bounds is None:
        return low, high
    pairs = list(bounds)
    if len(pairs) == 2 and all(z is None or np.ndim(z) == 0 for z in pairs):
        pairs = [tuple(pairs)] * d  # one pair for all
    if len(pairs) != d:
        raise DataError(
            f"bounds has {len(pairs)} pairs but there are {d} variables; pass one pair per variable, or one for all."
        )
    for j, pair in enumerate(pairs):
        if pair is None:
            continue
        if len(pair) != 2:
            raise DataError(f"The bounds of x{j} are {pair!r}; pass a pair (low, high), with None for no bound.")
        low[j] = -np.inf if pair[0] is None else pair[0]
        high[j] = np.inf if pair[1] is None else pair[1]
        if np.isnan(low[j]) or np.isnan(high[j]):
            raise DataError(f"A bound of x{j} is NaN; pass a number, or None for no bound.")
        if low[j] > high[j] or low[j] == np.inf or high[j] == -np.inf:
            raise ParameterError(
                f"The bounds of x{j} exclude all values: low = {low[j]:g}, high = {high[j]:g}; {function} needs "
                "low <= high."
            )
    return low, high


def conflict(given: LinearConstraints) -> tuple[str, ...]:
    """Return the names of a small set of contradicting constraints, by (1); empty if there is no contradiction."""
    from scipy.optimize import linprog

    d, m, k = len(given.low), len(given.h), len(given.b)
    below, above = np.flatnonzero(np.isfinite(given.low)), np.flatnonzero(np.isfinite(given.high))
    # Rows of one system R x <= r, scaled to largest entry 1 so that multipliers are comparable.
    eye = sparse.eye_array(d, format="csr")
    A = sparse.csr_array(given.A)
    R = sparse.vstack([sparse.csr_array(given.G), A, -A, -eye[below], eye[above]]).tocsr()
    r = np.concatenate([given.h, given.b, -given.b, -given.low[below], given.high[above]])
    size = np.maximum(abs(R).max(axis=1).toarray().ravel(), 1e-300)
    size = np.where(size > 1e-300, size, 1.0)
    R, r = sparse.diags_array(1 / size) @ R, r / size
    scale = max(float(np.abs(r).max(initial=0.0)), 1e-300)  # a vertex stays one when the right-hand side is scaled
    left = sparse.vstack([R.T, sparse.csr_array(r[None, :] / scale)]).tocsr()
    found = linprog(np.ones(len(r)), A_eq=left, b_eq=np.append(np.zeros(d), -1.0), method="highs-ds")
    if found.status != 0:
        return ()
    used = np.flatnonzero(found.x > _ZERO * found.x.max())
    names = [f"inequality {i}" for i in range(m)] + 2 * [f"equality {i}" for i in range(k)]
    names += [f"the lower bound of x{j}" for j in below] + [f"the upper bound of x{j}" for j in above]
    return tuple(dict.fromkeys(names[i] for i in used))


def in_words(names: tuple[str, ...]) -> str:
    """Return the message about contradicting constraints."""
    if not names:
        return "No x satisfies all constraints; relax some of them."
    if len(names) == 1:
        return f"No x satisfies {names[0]}; relax or remove it."
    if len(names) > _MANY:
        listed = ", ".join(names[:_MANY])
        return f"No x satisfies these {len(names)} constraints simultaneously: {listed}, ...; relax one of them."
    both = "both" if len(names) == 2 else "all of"
    return f"No x satisfies {both} {', '.join(names[:-1])} and {names[-1]}; relax or remove one of them."


def descent_ray(slope: Array, given: LinearConstraints, P: Array | None = None) -> Array | None:
    """Return a feasible direction of unbounded decrease of slope'x (with zero curvature in P), or None."""
    from scipy.optimize import linprog

    d = len(slope)
    flat = [given.A] if P is None else [given.A, P]
    rows = sparse.vstack([sparse.csr_array(part) for part in flat]).tocsr()
    box = [
        (0.0 if np.isfinite(a) else -1.0, 0.0 if np.isfinite(b) else 1.0)
        for a, b in zip(given.low, given.high, strict=True)
    ]
    size = max(float(np.abs(slope).max()), 1e-300)
    inside = given.G if len(given.h) else None
    found = linprog(
        slope / size,
        A_ub=inside,
        b_ub=None if inside is None else np.zeros(len(given.h)),
        A_eq=rows if rows.shape[0] else None,
        b_eq=np.zeros(rows.shape[0]) if rows.shape[0] else None,
        bounds=box,
        method="highs-ds",
    )
    if found.status != 0 or found.fun > -1e-9 or found.x.shape != (d,):
        return None
    return np.asarray(found.x / np.abs(found.x).max() + 0.0)


def _rows(M: Any, right: Any, d: int, name: str, right_name: str, function: str) -> tuple[Any, Array]:
    """A matrix with d columns and its right-hand side."""
    if (M is None) != (right is None):
        given, missing = (name, right_name) if right is None else (right_name, name)
        raise ParameterError(f"{function} got {given} without {missing}; pass both or neither.")
    if M is None:
        return np.empty((0, d)), np.empty(0)
    check_sparse(M, name)
    try:
        matrix = sparse.csr_array(M, dtype=np.float64) if sparse.issparse(M) else np.asarray(M, np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{name} is not numeric; {function} needs rows of numbers.") from None
    matrix = matrix[None, :] if matrix.ndim == 1 else matrix
    if matrix.ndim != 2 or matrix.shape[1] != d:
        raise DataError(
            f"{name} has shape {matrix.shape} but there are {d} variables; it must have one column per variable."
        )
    values = matrix.data if sparse.issparse(matrix) else matrix
    if not np.isfinite(values).all():
        raise DataError(f"{name} has a missing or infinite entry; {function} needs finite numbers.")
    if not matrix.shape[0]:
        return matrix, np.empty(0)
    h = vector(right, right_name, function)
    if len(h) != matrix.shape[0]:
        raise DataError(f"{name} has {matrix.shape[0]} rows but {right_name} has {len(h)} entries; they must agree.")
    return matrix, h
