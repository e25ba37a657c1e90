"""The compiled loops of k-means++: distances to new centres, what candidates would leave, the row that is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from summula.cluster.k_means_kernels import square_distance
from summula.core.compilation.compile import internal_kernel, kernel

__all__ = ["reseed", "seed_row", "warmup"]

_NARROW = 32  # columns up to which rows are compared side by side
_SIDE_BY_SIDE = 64  # rows


@internal_kernel
def _whole(w: float, D: float, scale: float) -> int:
    """The potential w D of a row as a whole number of units: sums of these do not depend on their order."""
    return np.int64(w * D * scale)  # type: ignore[return-value]


@kernel
def reseed(
    X: Any, C: Any, first: int, candidates: Any, apart: Any, weights: Any, scale: float, state: Any, out: Any
) -> float:
    """Move rows to the centres from `first` on where these are nearer, and add up what candidates would leave.

    apart : D between candidates (rows) and centres (columns): a candidate whose distance to the own centre of a row is
        at least twice that of the row cannot be nearer.
    state : (D to the nearest centre, its number) of each row
    out : receives the sum of w D in units of 1 / scale, first without a candidate, then with each.
    Returns the largest w D.
    """
    if X.shape[1] > _NARROW:
        return float(_reseed_rows(X, C, first, candidates, apart, weights, scale, state, out))
    largest, block = 0.0, np.empty((X.shape[1] + 1, _SIDE_BY_SIDE))
    for start in range(0, len(X), _SIDE_BY_SIDE):
        stop = min(start + _SIDE_BY_SIDE, len(X))
        for i in range(start, stop):
            for j in range(X.shape[1]):
                block[j, i - start] = X[i, j]
        largest = max(largest, _reseed_block(block, start, stop, C, first, candidates, weights, scale, state, out))
    return largest


@internal_kernel
def _reseed_rows(
    X: Any, C: Any, first: int, candidates: Any, apart: Any, weights: Any, scale: float, state: Any, out: Any
) -> float:
    """The same row by row, for many columns: candidates that cannot be nearer are passed over."""
    closest, nearest = state
    largest, weighted, m = 0.0, len(weights) > 0, len(candidates)
    for i in range(len(X)):
        D, a = closest[i], nearest[i]
        for s in range(first, len(C)):
            E = square_distance(X[i], C[s])
            if E < D or a < 0:
                D, a = E, s
        closest[i], nearest[i] = D, a
        w = weights[i] if weighted else 1.0
        largest = max(largest, w * D)
        base = _whole(w, D, scale)
        out[0] += base
        reach = 4.000001 * D
        for q in range(m):
            kept = base
            if apart[q, a] < reach:
                E = square_distance(X[i], candidates[q])
                if E < D:
                    kept = _whole(w, E, scale)
            out[1 + q] += kept
    return largest


@internal_kernel
def _reseed_block(
    block: Any,
    start: int,
    stop: int,
    C: Any,
    first: int,
    candidates: Any,
    weights: Any,
    scale: float,
    state: Any,
    out: Any,
) -> float:
    """The same for some rows that stand side by side, a column of `block` each: the compiler takes several at once."""
    closest, nearest = state
    n, E = stop - start, block[len(block) - 1]
    for s in range(first, len(C)):
        _distances_side_by_side(block, C[s], n, E)
        for r in range(n):
            if E[r] < closest[start + r] or nearest[start + r] < 0:
                closest[start + r], nearest[start + r] = E[r], s
    largest, weighted, base = 0.0, len(weights) > 0, 0
    for i in range(start, stop):
        w = weights[i] if weighted else 1.0
        largest = max(largest, w * closest[i])
        base += _whole(w, closest[i], scale)
    out[0] += base
    for q in range(len(candidates)):
        _distances_side_by_side(block, candidates[q], n, E)
        left = 0
        for r in range(n):
            w = weights[start + r] if weighted else 1.0
            left += _whole(w, min(E[r], closest[start + r]), scale)
        out[1 + q] += left
    return largest


@internal_kernel
def _distances_side_by_side(block: Any, c: Any, n: int, E: Any) -> None:
    """D of the first n rows of a block, which are its columns, and a centre."""
    for r in range(n):
        E[r] = 0.0
    for j in range(len(c)):
        v = c[j]
        for r in range(n):
            t = block[j, r] - v
            E[r] += t * t


@kernel
def seed_row(weights: Any, closest: Any, scale: float, target: int) -> int:
    """Return the first row up to which the potentials, in units of 1 / scale, add up to more than `target`."""
    passed, last, weighted = 0, 0, len(weights) > 0
    for i in range(len(closest)):
        units = _whole(weights[i] if weighted else 1.0, closest[i], scale)
        if units > 0:
            passed, last = passed + units, i
        if passed > target:
            return i
    return last


def warmup() -> None:
    """Compile for both precisions."""
    C, labels, weights, own = np.zeros((2, 1)), np.zeros(1, np.int32), np.empty(0), np.zeros(2)[:1]
    for dtype in (np.float64, np.float32):
        X = np.zeros((1, 1), dtype)
        reseed(X, C, 0, C, np.zeros((2, 2)), weights, 1.0, (own, labels), np.zeros(3, np.int64))
    seed_row(weights, own, 1.0, 0)
