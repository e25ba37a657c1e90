"""The compiled loops of k-means: distances in one fixed order, bounds, assignments and sums.

The squared distance of a row to a centre is always

    D(x, c) = sum over j of (x_j - c_j)^2                                                                          (1)

in double precision, computed by one compiled loop, so its bits do not depend on chunks, storage or threads; its
relative error is below (d + 4) 2^-53. A row is assigned to the centre with the smallest D, with ties going to the
first. Everything else is a filter that excludes centres which cannot be the nearest:

    scores     |c|^2 / 2 - x'c in single precision, from one product of matrices; centres within twice the bound on its
               rounding error of the best score are compared by (1)
    bounds     lower bounds on the distance to the other centres, one per group of centres, which every pass reduces
               by the largest step of a centre of the group; rows with bounds above the distance to their own centre
               keep their label
"""

from __future__ import annotations

from typing import Any

import numpy as np

from summula.core.compilation.compile import (
    internal_kernel,
    internal_summing_kernel,
    non_allocating_kernel,
    row_dtypes,
    summing_kernel,
)

__all__ = [
    "TILE",
    "add_few_rows",
    "add_rows",
    "assign_few_rows",
    "assign_rows",
    "compile_assignment",
    "few_passes",
    "open_rows",
    "square_distance",
    "squared_distances",
    "warmup",
]

TILE = 128  # rows per tile
# Margins for the rounding of bounds in single precision.
_SHRINK = np.float32(1.0 - 2.0**-21)
_GROW = np.float32(1.0 + 2.0**-21)


@internal_summing_kernel
def square_distance(x: Any, c: Any) -> float:
    """Return D of a row and a centre, equation (1)."""
    s = 0.0
    for j in range(len(c)):
        t = x[j] - c[j]
        s += t * t
    return s


@non_allocating_kernel
def squared_distances(X: Any, C: Any, out: Any) -> None:
    """Write D of every row of X to every row of C into `out`."""
    for i in range(len(X)):
        for a in range(len(C)):
            out[i, a] = square_distance(X[i], C[a])


# --------------------------------------------------------------------------------------------------------- assignment


@internal_kernel
def _two_nearest(x: Any, C: Any, order: Any) -> tuple[int, float, float]:
    """Return the nearest centre of a row, D to it, and D to the second nearest."""
    a, D, second, is_tied = 0, square_distance(x, C[0]), np.inf, False
    for j in range(1, len(C)):  # selections instead of branches, which cannot be predicted
        E = square_distance(x, C[j])
        is_tied |= E == D
        second = min(second, max(D, E))
        a = j if E < D else a
        D = min(D, E)
    if is_tied:
        for j in range(len(C)):
            if square_distance(x, C[j]) == D and order[j] < order[a]:
                a = j
    return a, D, second


@non_allocating_kernel
def assign_few_rows(X: Any, C: Any, order: Any, labels: Any, own: Any) -> int:
    """Assign rows to their nearest centres by all distances (1), without filters; return the number of changed labels.

    order : the user's numbers of the centres; ties go to the smallest
    labels, own : receive the centres of the rows, and D to them
    """
    moved = 0
    for i in range(len(X)):
        a, own[i], _ = _two_nearest(X[i], C, order)
        if labels[i] != a:
            labels[i] = a
            moved += 1
    return moved


@internal_kernel
def _assign_bounded(X: Any, C: Any, order: Any, labels: Any, bounds: Any, moves: Any) -> int:
    """Do the same as `assign_few_rows`; rows that are nearer to their own centre than a bound keep it.

    bounds : (own, lower): D of the rows to their centres, and lower bounds on their distances to the others, all before
        the centres moved; the latter are replaced
    moves : how far each centre moved, infinite where there are no bounds yet; the largest at the end
    """
    own, lower = bounds
    moved, slack = 0, (C.shape[1] + 16) * 2.0**-52  # covers the rounding of D and of the bounds
    for i in range(len(X)):
        bound = lower[i] * (1.0 - slack) - moves[-1] * (1.0 + slack)
        lower[i] = bound
        nearer = bound - moves[labels[i]] * (1.0 + slack)
        if nearer > 0.0 and own[i] < nearer * nearer * (1.0 - slack):
            continue
        if bound > 0.0 and square_distance(X[i], C[labels[i]]) < bound * bound * (1.0 - slack):
            continue
        a, _, second = _two_nearest(X[i], C, order)
        lower[i] = np.sqrt(second)
        if labels[i] != a:
            labels[i] = a
            moved += 1
    return moved


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
            if limit > np.float64((upper[i] + moves[a]) * _GROW):
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


# ---------------------------------------------------------------------------------------------------------------- sums


# Sums may be reassociated: the order is fixed when the kernel is compiled.
@summing_kernel
def add_rows(X: Any, C: Any, weights: Any, labels: Any, upper: Any, total: Any, weight: Any) -> float:
    """Add w (x - c) and w of every row to the sums of its cluster; return the sum of w D.

    upper : receives upper bounds on the distances of the rows to their centres, or is empty
    """
    inertia, weighted, bounded, d = 0.0, len(weights) > 0, len(upper) > 0, np.uint64(X.shape[1])
    for i in range(np.uint64(len(X))):
        a, D = np.uint64(labels[i]), 0.0
        w = weights[i] if weighted else 1.0
        for j in range(d):
            t = X[i, j] - C[a, j]
            total[a, j] += w * t
            D += t * t
        weight[a] += w
        inertia += w * D
        if bounded:
            upper[i] = np.float32(np.sqrt(D)) * _GROW
    return inertia


@internal_summing_kernel
def _add_row(x: Any, c: Any, w: float, total: Any) -> float:
    """Add w (x - c) to the sum of a cluster; return D of the row and its centre."""
    D = 0.0
    for j in range(len(c)):
        t = x[j] - c[j]
        total[j] += w * t
        D += t * t
    return D


@non_allocating_kernel
def add_few_rows(X: Any, C: Any, weights: Any, labels: Any, own: Any, total: Any, weight: Any) -> float:
    """Do the same as `add_rows` without bounds, with the same bits when called by `few_passes`.

    own : receives D of the rows to their centres
    """
    inertia, weighted = 0.0, len(weights) > 0
    for i in range(len(X)):
        a = labels[i]
        w = weights[i] if weighted else 1.0
        own[i] = _add_row(X[i], C[a], w, total[a])
        inertia += w * own[i]
        weight[a] += w
    return inertia


# -------------------------------------------------------------------------------------------------------- whole passes


@non_allocating_kernel
def few_passes(X: Any, centres: Any, weights: Any, labels: Any, bounds: Any, sums: Any, inertias: Any) -> int:
    """Run Lloyd's algorithm on few rows, for at most `len(inertias)` passes; return their number.

    A pass in which no label changes, a cluster is empty or sums are not finite is left to the caller. In the latter two
    cases labels are set to -1, so that the caller's pass counts all rows as changed.

    centres : (values, values before the last pass, the user's numbers of the centres); the first two are replaced
    labels : labels of the rows; replaced
    bounds : scratch memory of two values per row (`_assign_bounded`)
    sums : (total, weight, moves, step): as for `add_few_rows`; scratch memory, one value more than centres; the sum of
        squared steps of the centres at which passes end, and that of the last pass
    """
    C, before, order = centres
    total, weight, moves, step = sums
    moves[:] = np.inf
    for p in range(len(inertias)):
        moved = _assign_bounded(X, C, order, labels, bounds, moves)
        for a in range(len(C)):
            weight[a] = 0.0
            for j in range(C.shape[1]):
                total[a, j] = 0.0
        inertia = add_few_rows(X, C, weights, labels, bounds[0], total, weight)
        is_whole = moved > 0 and np.isfinite(inertia)
        for a in range(len(C)):
            is_whole = is_whole and weight[a] > 0.0
        if not is_whole:
            if moved > 0:
                for i in range(len(labels)):
                    labels[i] = -1
            return p
        inertias[p], s, moves[-1] = inertia, 0.0, 0.0
        for a in range(len(C)):
            move = 0.0
            for j in range(C.shape[1]):
                c = C[a, j] + total[a, j] / weight[a]
                t = c - C[a, j]
                s += t * t
                move += t * t
                before[a, j], C[a, j] = C[a, j], c
            moves[a] = np.sqrt(move)
            moves[-1] = max(moves[-1], moves[a])
        step[1] = s
        if s <= step[0]:
            return p + 1
    return len(inertias)


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
    C, labels, weights = np.zeros((2, 1)), np.zeros(1, np.int32), np.empty(0)
    rows, single, own, bounds = np.zeros(1, np.int64), np.zeros(2, np.float32), np.zeros(2)[:1], np.zeros((1, 1), "f4")
    for dtype in row_dtypes():
        X, block = np.zeros((1, 1), dtype), np.zeros((1, 2), np.float32)
        squared_distances(X, C, np.zeros((1, 2)))
        assign_few_rows(X, C, np.arange(2), labels, own)
        open_rows(X, C, np.zeros(1), (own, single[:1], single), (labels, bounds, single), (own, rows, block, own))
        compile_assignment(dtype)
        add_rows(X, C, weights, labels, single, np.zeros((2, 1)), np.zeros(2))
        add_few_rows(X, C, weights, labels, own, np.zeros((2, 1)), np.zeros(2))
    sums = (np.zeros((2, 1)), np.zeros(2), np.zeros(3), np.zeros(2))
    few_passes(np.zeros((1, 1)), (C, C.copy(), np.arange(2)), weights, labels, np.zeros((2, 1)), sums, np.zeros(1))
