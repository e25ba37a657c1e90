"""The compiled loops of k-means: distances in one fixed order, bounds, assignments and sums.

The squared distance of a row to a centre is always

    D(x, c) = sum over j of (x_j - c_j)^2                                                                          (1)

in double precision, computed by one compiled loop, so its bits do not depend on chunks, storage or threads; its
relative error is below (d + 4) 2^-53. A row is assigned to the centre with the smallest D, with ties going to the
first. Everything else, here and in `score_kernels`, is a filter that excludes centres which cannot be the nearest.
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
    "GROW",
    "add_few_rows",
    "add_rows",
    "assign_few_rows",
    "few_passes",
    "square_distance",
    "squared_distances",
    "warmup",
]

GROW = np.float32(1.0 + 2.0**-21)  # margin for the rounding of upper bounds in single precision


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
            upper[i] = np.float32(np.sqrt(D)) * GROW
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


def warmup() -> None:
    """Compile for the usual types."""
    C, labels, weights = np.zeros((2, 1)), np.zeros(1, np.int32), np.empty(0)
    single, own = np.zeros(2, np.float32), np.zeros(2)[:1]
    for dtype in row_dtypes():
        X = np.zeros((1, 1), dtype)
        squared_distances(X, C, np.zeros((1, 2)))
        assign_few_rows(X, C, np.arange(2), labels, own)
        add_rows(X, C, weights, labels, single, np.zeros((2, 1)), np.zeros(2))
        add_few_rows(X, C, weights, labels, own, np.zeros((2, 1)), np.zeros(2))
    sums = (np.zeros((2, 1)), np.zeros(2), np.zeros(3), np.zeros(2))
    few_passes(np.zeros((1, 1)), (C, C.copy(), np.arange(2)), weights, labels, np.zeros((2, 1)), sums, np.zeros(1))
