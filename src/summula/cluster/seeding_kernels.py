"""Compiled loops of k-means++: distances to new centres, potentials of candidates, and drawing of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from summula.cluster.k_means_kernels import add_rows, square_distance, squared_distances
from summula.cluster.score_kernels import open_rows
from summula.core.compilation.compile import internal_kernel, non_allocating_kernel, row_dtypes
from summula.core.data.layout.blocks import scratch_block

__all__ = ["compile_passes", "reseed", "seed_row", "warmup"]

_NARROW = 32  # number of columns up to which rows are transposed for vectorisation
_SIDE_BY_SIDE = 64  # rows per block


@internal_kernel
def _whole(w: float, D: float, scale: float) -> int:
    """Return the potential w D of a row as an integer multiple of the unit, whose sums do not depend on the order."""
    return np.int64(w * D * scale)  # type: ignore[return-value]


def reseed(X: Any, C: Any, first: int, candidates: Any, weights: Any, scale: float, state: Any, out: Any) -> float:
    """Assign rows to the centres from `first` on if these are nearer, and sum the potentials of candidates.

    state : (D to the nearest centre, its number) of each row
    out : receives the sum of w D in units of 1 / scale, first without a candidate, then with each.
    Returns the largest w D.
    """
    centres = C, first, candidates
    if X.shape[1] > _NARROW:
        apart = np.empty((len(candidates), len(C)))
        squared_distances(candidates, C, apart)
        return float(reseed_rows(X, centres, apart, weights, scale, state, out))
    block = scratch_block("k-means seeding", X.shape[1] + 1, _SIDE_BY_SIDE)
    return float(reseed_narrow_rows(X, centres, weights, scale, block, state, out))


@non_allocating_kernel
def reseed_narrow_rows(X: Any, centres: Any, weights: Any, scale: float, block: Any, state: Any, out: Any) -> float:
    """As `reseed`, where `centres` is (C, first, candidates).

    block : scratch memory for transposed rows and their distances.
    """
    largest = 0.0
    for start in range(0, len(X), _SIDE_BY_SIDE):
        stop = start + _SIDE_BY_SIDE if start + _SIDE_BY_SIDE < len(X) else len(X)
        for i in range(start, stop):
            for j in range(X.shape[1]):
                block[j, i - start] = X[i, j]
        found = _reseed_block(block, (start, stop), centres, weights, scale, state, out)
        largest = found if found > largest else largest
    return largest


@non_allocating_kernel
def reseed_rows(X: Any, centres: Any, apart: Any, weights: Any, scale: float, state: Any, out: Any) -> float:
    """Do the same row by row, for many columns, skipping candidates that cannot be nearer.

    apart : D between candidates (rows) and centres (columns): a candidate whose distance to the own centre of a row is
        at least twice that of the row cannot be nearer.
    """
    C, first, candidates = centres
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
        largest = w * D if w * D > largest else largest
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
def _reseed_block(block: Any, rows: Any, centres: Any, weights: Any, scale: float, state: Any, out: Any) -> float:
    """Do the same for the rows from rows[0] up to rows[1], transposed to columns of `block`, for vectorisation."""
    start, stop = rows
    C, first, candidates = centres
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
        potential = w * closest[i]
        largest = potential if potential > largest else largest
        base += _whole(w, closest[i], scale)
    out[0] += base
    for q in range(len(candidates)):
        _distances_side_by_side(block, candidates[q], n, E)
        left = 0
        for r in range(n):
            w = weights[start + r] if weighted else 1.0
            D = closest[start + r]
            left += _whole(w, E[r] if E[r] < D else D, scale)
        out[1 + q] += left
    return largest


@internal_kernel
def _distances_side_by_side(block: Any, c: Any, n: int, E: Any) -> None:
    """Return D of the first n rows of a block (its columns) and a centre."""
    for r in range(n):
        E[r] = 0.0
    for j in range(len(c)):
        v = c[j]
        for r in range(n):
            t = block[j, r] - v
            E[r] += t * t


@non_allocating_kernel
def seed_row(weights: Any, closest: Any, scale: float, target: int) -> int:
    """Return the first row at which the cumulative potential, in units of 1 / scale, exceeds `target`."""
    passed, last, weighted = 0, 0, len(weights) > 0
    for i in range(len(closest)):
        units = _whole(weights[i] if weighted else 1.0, closest[i], scale)
        if units > 0:
            passed, last = passed + units, i
        if passed > target:
            return i
    return last


def compile_passes(dtype: str = "float64") -> None:
    """Compile the kernels of a fit with few columns other than `assign_rows`."""
    labels, rows, weights, own = np.zeros(1, np.int32), np.zeros(1, np.int64), np.empty(0), np.zeros(2)[:1]
    X, C, single = np.zeros((1, 1), dtype), np.zeros((2, 1)), np.zeros(2, np.float32)
    bounds, block = np.zeros((1, 1), np.float32), np.zeros((1, 2), np.float32)
    reseed(X, C, 0, C, weights, 1.0, (own, labels), np.zeros(3, np.int64))
    open_rows(X, C, np.zeros(1), (own, single[:1], single), (labels, bounds, single), (own, rows, block, own))
    add_rows(X, C, weights, labels, single, np.zeros((2, 1)), np.zeros(2))
    squared_distances(C, C, np.zeros((2, 2)))


def warmup() -> None:
    """Compile for the usual types."""
    labels, weights, own = np.zeros(1, np.int32), np.empty(0), np.zeros(2)[:1]
    for dtype in row_dtypes():
        for columns in (1, _NARROW + 1):
            C = np.zeros((2, columns))
            reseed(np.zeros((1, columns), dtype), C, 0, C, weights, 1.0, (own, labels), np.zeros(3, np.int64))
    seed_row(weights, own, 1.0, 0)
