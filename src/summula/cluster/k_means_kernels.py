"""The compiled loops of k-means: distances in one fixed order, bounds, assignments and sums.

The squared distance of a row to a centre is always

    D(x, c) = sum over j of (x_j - c_j)^2                                                                          (1)

in double precision, computed by one compiled loop, so it has the same bits whatever chunk, container or thread the row
is in; its relative error is below (d + 4) 2^-53. A row belongs to the centre with the smallest D, of several to the
first. Everything else is a filter that leaves out centres which cannot be that one:

    scores     |c|^2 / 2 - x'c in single precision, from one product of matrices; centres within twice the bound on its
               rounding error of the best score are compared by (1)
    bounds     lower bounds on the distance to the other centres, one per group of centres, which every pass lowers
               by the furthest step of a centre of the group; rows with bounds above the distance to their own centre
               keep it
"""

from __future__ import annotations

from typing import Any

import numpy as np

from summula.core.compilation.compile import internal_kernel, internal_summing_kernel, kernel

__all__ = [
    "add_rows",
    "assign_rows",
    "compile_assignment",
    "open_rows",
    "reseed",
    "seed_row",
    "square_distance",
    "squared_distances",
    "warmup",
]

_TILE = 512  # rows
_SHRINK = np.float32(1.0 - 2.0**-21)  # covers the rounding of a bound in single precision


_NARROW = 32  # columns up to which rows are compared side by side
_SIDE_BY_SIDE = 64  # rows


@internal_summing_kernel
def square_distance(x: Any, c: Any) -> float:
    """Return D of a row and a centre, equation (1)."""
    s = 0.0
    for j in range(len(c)):
        t = x[j] - c[j]
        s += t * t
    return s


@kernel
def squared_distances(X: Any, C: Any, out: Any) -> None:
    """Write D of every row of X to every row of C into `out`."""
    for i in range(len(X)):
        for a in range(len(C)):
            out[i, a] = square_distance(X[i], C[a])


# --------------------------------------------------------------------------------------------------------- assignment


@internal_summing_kernel
def _write_scored(x: Any, origin: Any, out: Any) -> float:
    """Write a row less the origin, then the constant 1, in single precision; returns its length."""
    d, s = len(origin), 0.0
    for j in range(d):
        t = x[j] - origin[j]
        out[j] = t
        s += t * t
    out[d] = 1.0
    return np.sqrt(s)  # type: ignore[no-any-return]


@kernel
def open_rows(X: Any, C: Any, origin: Any, bounds: Any, state: Any, out: Any) -> int:
    """Find the rows that have to be compared with all centres, and write them down for that; returns how many.

    bounds : (apart, steps): half the distance of each centre to the nearest other one, and how far the centres of each
        group have moved, by which the bounds are lowered. A row that is nearer to its own centre than the former, or
        than its bounds, keeps it. Without steps all rows are compared.
    state : (labels, lower bounds) of the rows
    out : (own, listed, block, lengths): receives D of each row to its own centre (NaN without steps); the rows to be
        compared, and these less the origin in single precision, with a constant 1, and their lengths
    """
    apart, steps = bounds
    labels, lower = state
    own, listed, block, lengths = out
    count, groups = 0, len(steps)
    slack = 1.0 + 2.0 * (X.shape[1] + 8) * 2.0**-53
    for i in range(len(X)):
        own[i] = np.nan
        if groups > 0:
            a, lowest = labels[i], np.float32(np.inf)
            D = square_distance(X[i], C[a])
            own[i] = D
            for g in range(groups):
                bound = (lower[i, g] - steps[g]) * _SHRINK
                lower[i, g] = bound
                lowest = bound if bound < lowest else lowest
            if max(np.float64(lowest), apart[a]) > np.sqrt(D) * slack:
                continue
        listed[count] = i
        lengths[count] = _write_scored(X[i], origin, block[count])
        count += 1
    return count


# (Results go to other arrays than those they come from: a store that may leave a value as it is becomes a branch, and
# is not vectorised.)
@internal_kernel
def _lower(scores: Any, low: Any, out: Any) -> None:
    """Write the lower of two scores of each row."""
    for r in range(len(scores)):
        v, m = scores[r], low[r]
        out[r] = v if v < m else m


@internal_kernel
def _second(scores: Any, low: Any, second: Any, out: Any) -> None:
    """Write the second lowest of scores of which the lowest two so far are given."""
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
def _lowest_of_tile(scores: Any, ends: Any, lowest: Any, chosen: Any, t: int, u: int) -> None:
    """The same for the rows from t up to u, so few that the scores of one centre stay in the first-level cache."""
    last = len(ends) - 1
    for g in range(last):
        # From one of two places to the other, such that the last results are in that of the group.
        p, q = (g, last) if (ends[g + 1] - ends[g]) % 2 == 0 else (last, g)
        low, second, likely = lowest[0, p, t:u], lowest[1, p, t:u], chosen[p, t:u]
        next_low, next_second, next_likely = lowest[0, q, t:u], lowest[1, q, t:u], chosen[q, t:u]
        low[:] = np.inf
        second[:] = np.inf
        likely[:] = ends[g]
        for j in range(ends[g], ends[g + 1]):
            row = scores[j, t:u]
            _chosen(row, np.int32(j), low, likely, next_likely)
            _second(row, low, second, next_second)
            _lower(row, low, next_low)
            low, next_low = next_low, low
            second, next_second = next_second, second
            likely, next_likely = next_likely, likely


@internal_kernel
def _lowest_scores(scores: Any, ends: Any, lowest: Any, chosen: Any) -> None:
    """Find the best two scores of the centres of each group, and the centre with the best score, for every row.

    scores : (centres, rows)
    lowest : (2, groups + 1, rows), receives the best scores of each group in [0, g], the second best ones in [1, g]
    chosen : (groups + 1, rows), receives the centres
    """
    n = scores.shape[1]
    for t in range(0, n, _TILE):
        _lowest_of_tile(scores, ends, lowest, chosen, t, min(t + _TILE, n))


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


@kernel
def assign_rows(
    X: Any, C: Any, groups: Any, rows: Any, scores: Any, lengths: Any, margin: Any, scratch: Any, out: Any
) -> int:
    """Assign some rows to their nearest centres, given scores of all centres; returns how many moved.

    groups : (ends, order): the centres of group g are those from ends[g] up to ends[g + 1]; of several nearest centres
        the first in `order` counts, which holds the numbers of the centres outside of the kernels.
    rows : which rows of X are assigned.
    scores, lengths : |c|^2 / 2 - x'c about an origin in single precision, and |x| about it.
    margin : (e, l): the error of a score is below e (|x| + l).
    scratch : (lowest, chosen) of `_lowest_scores`
    out : (labels, D to the own centre or NaN, lower bounds of the groups or no columns)
    """
    ends, order = groups
    lowest, likely = scratch
    labels, own, lower = out
    moved, bounds, last = 0, lower.shape[1], len(ends) - 1
    _lowest_scores(scores, ends, lowest, likely)
    for r in range(len(rows)):
        i, home = rows[r], 0
        before, best, second = labels[i], lowest[0, 0, r], lowest[1, 0, r]
        for g in range(1, last):
            low, next_low = lowest[0, g, r], lowest[1, g, r]
            if low < best:
                home, second, best = g, min(next_low, best), low
            else:
                second = low if low < second else second
        chosen = likely[home, r]
        wrong = margin[0] * (lengths[r] + margin[1])
        limit = np.float64(best) + 2.0 * wrong
        if not np.float64(second) > limit:
            chosen, own[i] = _nearest(X, i, C, order, scores, r, limit)
            chosen = chosen if chosen >= 0 else max(before, 0)  # values that are not finite
        elif chosen != before or own[i] != own[i]:
            own[i] = square_distance(X[i], C[chosen])
        if chosen != before:
            labels[i] = chosen
            moved += 1
        square = lengths[r] * lengths[r] - 2.0 * wrong
        for g in range(bounds):
            low = lowest[1, g, r] if likely[g, r] == chosen else lowest[0, g, r]
            D = np.float32(square + 2.0 * np.float64(low))
            lower[i, g] = np.sqrt(D) * _SHRINK if D > 0.0 else np.float32(0.0)
    return moved


# ---------------------------------------------------------------------------------------------------------------- sums


@kernel
def add_rows(X: Any, C: Any, weights: Any, labels: Any, own: Any, total: Any, weight: Any) -> float:
    """Add w (x - c) and w of every row to the sums of its cluster; returns the sum of w D."""
    inertia, weighted, d = 0.0, len(weights) > 0, np.uint64(X.shape[1])
    for i in range(len(X)):
        a, r = np.uint64(labels[i]), np.uint64(i)
        w = weights[i] if weighted else 1.0
        weight[a] += w
        inertia += w * own[i]
        for j in range(d):
            total[a, j] += w * (X[r, j] - C[a, j])
    return inertia


# ------------------------------------------------------------------------------------------------------------- seeding


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


def compile_assignment(dtype: Any = np.float64) -> None:
    """Compile the kernel that takes longest, and which every fit needs after it has found its first centres."""
    C, labels, rows = np.zeros((2, 1)), np.zeros(1, np.int32), np.zeros(1, np.int64)
    own, bounds, order, ends = np.zeros(2)[:1], np.zeros((1, 1), np.float32), np.arange(2), np.array([0, 2])
    scores, scratch = np.zeros((2, 1), np.float32), (np.zeros((2, 2, 1), np.float32), np.zeros((2, 1), np.int32))
    X = np.zeros((1, 1), dtype)
    assign_rows(X, C, (ends, order), rows, scores, own, (0.0, 0.0), scratch, (labels, own, bounds))


def warmup() -> None:
    """Compile for both precisions."""
    C, labels, weights = np.zeros((2, 1)), np.zeros(1, np.int32), np.empty(0)
    rows, single, own, bounds = np.zeros(1, np.int64), np.zeros(1, np.float32), np.zeros(2)[:1], np.zeros((1, 1), "f4")
    for dtype in (np.float64, np.float32):
        X, block = np.zeros((1, 1), dtype), np.zeros((1, 2), np.float32)
        squared_distances(X, C, np.zeros((1, 2)))
        open_rows(X, C, np.zeros(1), (own, single), (labels, bounds), (own, rows, block, own))
        compile_assignment(dtype)
        add_rows(X, C, weights, labels, own, np.zeros((2, 1)), np.zeros(2))
        reseed(X, C, 0, C, np.zeros((2, 2)), weights, 1.0, (own, labels), np.zeros(3, np.int64))
    seed_row(weights, own, 1.0, 0)
