"""Compiled loops of k-means that exclude centres by scores: products of matrices in single precision.

scores     |c|^2 / 2 - x'c in single precision, from one product of matrices; centres within twice the bound on its
rounding error of the best score are compared by (1) of `k_means_kernels`
bounds     lower bounds on the distance to the other centres, one per group of centres, which every pass reduces
by the largest step of a centre of the group; rows with bounds above the distance to their own centre
keep their label
"""

from __future__ import annotations

from typing import Any

import numpy as np

from summula.cluster.k_means_kernels import GROW, square_distance
from summula.core.compilation.compile import (
    internal_kernel,
    internal_summing_kernel,
    non_allocating_kernel,
    row_dtypes,
)

__all__ = ["TILE", "assign_rows", "compile_assignment", "open_rows", "warmup"]

TILE = 128  # rows per tile
_SHRINK = np.float32(1.0 - 2.0**-21)  # margin for the rounding of lower bounds in single precision


@internal_summing_kernel
def _write_scored(x: Any, origin: Any, out: Any) -> float:
    """Write a row minus the origin, then the constant 1, in single precision; return its norm."""
    d, s = len(origin), 0.0
    for j in range(d):
        t = x[j] - origin[j]
        out[j] = t
        s += t * t
    out[d] = 1.0
    return np.sqrt(s)  # type: ignore[no-any-return]


@non_allocating_kernel
def open_rows(X: Any, C: Any, origin: Any, bounds: Any, state: Any, out: Any) -> int:
    """List the rows that must be compared with all centres, and write them for scoring; return their number.

    bounds : (apart, steps, moves): half the distance of each centre to the nearest other one; the largest step of
        the centres of each group, by which the lower bounds are reduced; the step of each centre. A row that is nearer
        to its own centre than `apart`, or than its lower bounds, keeps its label. Without steps all rows are compared.
    state : (labels, lower bounds, upper bounds) of the rows
    out : (own, listed, block, lengths): receives D of rows to be compared to their own centre (NaN without steps);
        the numbers of these rows; the rows minus the origin in single precision, with a constant 1; their norms
    """
    apart, steps, moves = bounds
    labels, lower, upper = state
    own, listed, block, lengths = out
    count, groups = np.uint64(0), np.uint64(len(steps))
    slack = 1.0 + 2.0 * (X.shape[1] + 8) * 2.0**-53
    for i in range(np.uint64(len(X))):
        D = np.nan
        if groups > 0:
            a, lowest = np.uint64(labels[i]), np.float32(np.inf)
            for g in range(groups):
                bound = (lower[i, g] - steps[g]) * _SHRINK
                lower[i, g] = bound
                lowest = bound if bound < lowest else lowest
            limit = apart[a] if apart[a] > np.float64(lowest) else np.float64(lowest)
            if limit > np.float64((upper[i] + moves[a]) * GROW):
                continue
            D = square_distance(X[i], C[a])
            if limit > np.sqrt(D) * slack:
                continue
        own[i] = D
        listed[count] = i
        lengths[count] = _write_scored(X[i], origin, block[count])
        count += np.uint64(1)
    return np.int64(count)  # type: ignore[return-value]


@internal_kernel
def _transpose(block: Any, first: int, n: int, tile: Any) -> None:
    """Transpose some rows of a block."""
    d = np.uint64(block.shape[1] - 1)
    for r in range(np.uint64(n)):
        row = block[np.uint64(first) + r]
        for j in range(d):
            tile[j, r] = row[j]


@internal_kernel
def _copy_scores(products: Any, first: int, last: int, scores: Any) -> None:
    """Copy the scores of some rows. (Assigning a slice would also compile Numba's error for unequal shapes.)"""
    for j in range(len(products)):
        for t in range(first, last):
            scores[j, t - first] = products[j, t]


@internal_summing_kernel
def _score(c: Any, e: Any, tile: Any, out: Any, other: Any) -> None:
    """Write the scores of two centres (-c, |c|^2 / 2) for the rows of a tile."""
    d, j = len(tile), 0
    for r in range(TILE):
        out[r] = c[d]
        other[r] = e[d]
    while j + 4 <= d:
        c0, c1, c2, c3 = c[j], c[j + 1], c[j + 2], c[j + 3]
        e0, e1, e2, e3 = e[j], e[j + 1], e[j + 2], e[j + 3]
        x0, x1, x2, x3 = tile[j], tile[j + 1], tile[j + 2], tile[j + 3]
        for r in range(TILE):
            out[r] += c0 * x0[r] + c1 * x1[r] + c2 * x2[r] + c3 * x3[r]
            other[r] += e0 * x0[r] + e1 * x1[r] + e2 * x2[r] + e3 * x3[r]
        j += 4
    while j < d:
        v, w, x = c[j], e[j], tile[j]
        for r in range(TILE):
            out[r] += v * x[r]
            other[r] += w * x[r]
        j += 1


# (Results are written to other arrays than the inputs: a conditional store becomes a branch, which is not vectorised.)
@internal_kernel
def _lower(scores: Any, low: Any, out: Any) -> None:
    """Write the lower of two scores of each row."""
    for r in range(len(scores)):
        v, m = scores[r], low[r]
        out[r] = v if v < m else m


@internal_kernel
def _second(scores: Any, low: Any, second: Any, out: Any) -> None:
    """Write the second lowest scores, given the lowest two so far."""
    for r in range(len(scores)):
        v, m, a = scores[r], low[r], second[r]
        h = m if v < m else v
        out[r] = h if h < a else a


@internal_kernel
def _chosen(scores: Any, j: Any, low: Any, chosen: Any, out: Any) -> None:
    """Write the centre with the lowest score so far."""
    for r in range(len(scores)):
        out[r] = j if scores[r] < low[r] else chosen[r]


@internal_kernel
def _lowest_scores(scores: Any, ends: Any, lowest: Any, chosen: Any) -> None:
    """Find the best two scores of the centres of each group, and the centre with the best score, for every row.

    scores : (centres, rows)
    lowest : (2, groups + 1, rows), receives the best scores of each group in [0, g], the second best ones in [1, g]
    chosen : (groups + 1, rows), receives the centres
    """
    last = len(ends) - 1
    for g in range(last):
        # Alternate between two buffers, such that the last results are in that of the group.
        p, q = (g, last) if (ends[g + 1] - ends[g]) % 2 == 0 else (last, g)
        low, second, likely = lowest[0, p], lowest[1, p], chosen[p]
        next_low, next_second, next_likely = lowest[0, q], lowest[1, q], chosen[q]
        low[:] = np.inf
        second[:] = np.inf
        likely[:] = ends[g]
        for j in range(ends[g], ends[g + 1]):
            row = scores[j]
            _chosen(row, np.int32(j), low, likely, next_likely)
            _second(row, low, second, next_second)
            _lower(row, low, next_low)
            low, next_low = next_low, low
            second, next_second = next_second, second
            likely, next_likely = next_likely, likely


@internal_kernel
def _best_group(low: Any, second: Any, likely: Any, best: Any, chosen: Any) -> None:
    """Find the best two scores of all groups, and the centre with the best one.

    low, second, likely : (groups + 1, rows), the best scores of the groups and their centres; the last rows are unused
    best, chosen : (4, rows) and (2, rows): the results are in best[0], best[1] and chosen[0]
    """
    groups, n = len(low) - 1, low.shape[1]
    for r in range(n):
        best[0, r], best[1, r], chosen[0, r] = low[0, r], second[0, r], likely[0, r]
    for g in range(1, groups):
        for r in range(n):
            v, m = low[g, r], best[0, r]
            best[2, r] = v if v < m else m
            chosen[1, r] = likely[g, r] if v < m else chosen[0, r]
        for r in range(n):
            v, m = low[g, r], best[0, r]
            h = m if v < m else v  # the worse of the two best ones
            a, b = best[1, r], second[g, r]
            c = b if v < m else a
            best[3, r] = c if c < h else h
        for r in range(n):
            best[0, r], best[1, r], chosen[0, r] = best[2, r], best[3, r], chosen[1, r]


@internal_kernel
def _nearest(X: Any, i: int, C: Any, order: Any, scores: Any, r: int, limit: float) -> Any:
    """Return the nearest centre among those with a score up to `limit`, and D; -1 if there is none."""
    chosen, D = -1, np.inf
    for j in range(len(C)):
        if scores[j, r] > limit:
            continue
        E = square_distance(X[i], C[j])
        if chosen < 0 or E < D or (E == D and order[j] < order[chosen]):
            chosen, D = j, E
    return chosen, D


@internal_kernel
def _bound_tile(low: Any, second: Any, likely: Any, chosen: Any, square: Any, out: Any) -> None:
    """Write lower bounds on the distances to the centres of a group other than the chosen one."""
    for r in range(len(chosen)):
        v = second[r] if likely[r] == chosen[r] else low[r]
        D = np.float32(square[r] + np.float32(2.0) * v)
        D = D if np.float32(0.0) < D else np.float32(0.0)
        out[r] = np.sqrt(D) * _SHRINK


@non_allocating_kernel
def assign_rows(
    X: Any, C: Any, groups: Any, rows: Any, scored: Any, lengths: Any, margin: Any, scratch: Any, out: Any
) -> int:
    """Assign some rows to their nearest centres by scores; return the number of changed labels.

    groups : (ends, order): the centres of group g are those from ends[g] up to ends[g + 1]; `order` contains the
        user's numbers of the centres, and ties go to the smallest.
    rows : which rows of X are assigned.
    scored : (centres, block, scores): (-c, |c|^2 / 2) and (x, 1) about an origin in single precision; and their
        products, of shape (k, n), or empty to compute them here.
    lengths : |x| about the origin.
    margin : (e, l): the error of a score is below e (|x| + l).
    scratch : (scores of a tile, an even number, lowest, likely, best, chosen, tile), of `_lowest_scores`, `_best_group`
        and `_score`
    out : (labels, D to the own centre or NaN, lower bounds of the groups or no columns)
    """
    moved, n = 0, len(rows)
    centres, block, products = scored
    scores, lowest, likely, best, chosen, tile = scratch
    given = products.shape[1] > 0
    for t in range(0, n, TILE):
        u = t + TILE if t + TILE < n else n
        if given:
            _copy_scores(products, t, u, scores)
        else:
            _transpose(block, t, u - t, tile)
            for j in range(0, len(centres), 2):  # (an odd last one is scored twice, and the copy is ignored)
                k = j + 1 if j + 1 < len(centres) else j
                _score(centres[j], centres[k], tile, scores[j], scores[j + 1])
        _lowest_scores(scores, groups[0], lowest, likely)
        _best_group(lowest[0], lowest[1], likely, best, chosen)
        found = (lowest, likely, best, chosen)
        moved += _assign_tile(X, C, groups[1], rows[t:u], scores, lengths[t:u], margin, found, out)
    return moved


@internal_kernel
def _assign_tile(
    X: Any, C: Any, order: Any, rows: Any, scores: Any, lengths: Any, margin: Any, found: Any, out: Any
) -> int:
    """Assign the rows of a tile, given the best scores; return the number of changed labels."""
    labels, own, lower = out
    lowest, likely, best, chosen = found
    moved, square = 0, best[2]
    for r in range(len(rows)):
        i, a = rows[r], chosen[0, r]
        before, wrong = labels[i], margin[0] * (lengths[r] + margin[1])
        limit = np.float64(best[0, r]) + 2.0 * wrong
        if not np.float64(best[1, r]) > limit:
            a, own[i] = _nearest(X, i, C, order, scores, r, limit)
            a = a if a >= 0 else before if before >= 0 else 0  # values that are not finite
            chosen[0, r] = a
        elif a != before or own[i] != own[i]:
            own[i] = square_distance(X[i], C[a])
        if a != before:
            labels[i] = a
            moved += 1
        # (This covers the rounding to single precision; the factor of the bound covers that of the sum.)
        square[r] = np.float32(lengths[r] * lengths[r] * (1.0 - 2.0**-22) - 2.0 * wrong * (1.0 + 2.0**-22))
    for g in range(lower.shape[1]):
        _bound_tile(lowest[0, g], lowest[1, g], likely[g], chosen[0], square, best[3])
        for r in range(len(rows)):
            lower[rows[r], g] = best[3, r]
    return moved


def compile_assignment(dtype: Any = np.float64) -> None:
    """Compile the kernel that takes longest, which every fit needs after the initial centres."""
    C, labels, rows = np.zeros((2, 1)), np.zeros(1, np.int32), np.zeros(1, np.int64)
    own, bounds, order, ends = np.zeros(2)[:1], np.zeros((1, 1), np.float32), np.arange(2), np.array([0, 2])
    scores, lowest, places = np.zeros((4, TILE), "f4"), np.zeros((2, 2, TILE), "f4"), np.zeros((2, TILE), np.int32)
    scratch = (scores, lowest, places, scores, places, scores[:1])
    scored = (np.zeros((2, 2), np.float32), np.zeros((1, 2), np.float32), scores[:2])
    X = np.zeros((1, 1), dtype)
    assign_rows(X, C, (ends, order), rows, scored, own, (0.0, 0.0), scratch, (labels, own, bounds))


def warmup() -> None:
    """Compile for the usual types."""
    C, labels, own, rows = np.zeros((2, 1)), np.zeros(1, np.int32), np.zeros(2)[:1], np.zeros(1, np.int64)
    single, bounds = np.zeros(2, np.float32), np.zeros((1, 1), np.float32)
    for dtype in row_dtypes():
        X, block = np.zeros((1, 1), dtype), np.zeros((1, 2), np.float32)
        open_rows(X, C, np.zeros(1), (own, single[:1], single), (labels, bounds, single), (own, rows, block, own))
        compile_assignment(dtype)
