"""Sums over the rows of a node, impurities and split scores, for exact and for binned thresholds.

The sums of a node are the class weights (target by target), or the sum of w y for every target, followed by that of
w y^2 (Poisson: w y log y) over all targets; the last one is the total weight. With W and the sums over the rows on each
side of a threshold (L and R), a split is scored by

    Gini            sum_k L_k^2 / W_L + sum_k R_k^2 / W_R,           L_k the weight of class k                      (1)
    entropy         sum_k L_k log L_k - m W_L log W_L + the same of R                                               (2)
    squared error   sum_t L_t^2 / W_L + sum_t R_t^2 / W_R,           L_t the sum of w y of target t                 (3)
    Poisson         sum_t L_t log(L_t / W_L) + sum_t R_t log(R_t / W_R)                                             (4)

for m targets, where k runs over the classes of all of them. This differs from minus the weighted impurity of both
sides, times m, by a constant of the node; the impurity is the mean over the targets.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from summula.core.compilation.compile import internal_kernel
from summula.tree.exact.records import ENTROPY, GINI, POISSON, SQUARED

__all__ = ["add_row", "add_rows", "impurity", "score_sides"]

_ROUNDING = 1e-12  # relative to the sum over the node: smaller sums are rounding


@internal_kernel
def add_row(sums: Any, y: Any, row: int, w: float, criterion: int) -> None:
    """Add a row to the sums of a node; y has the shape (targets, rows)."""
    last = len(sums) - 1
    for t in range(len(y)):
        target = y[t, row]
        if criterion <= ENTROPY:
            sums[np.int64(target)] += w
        else:
            sums[t] += w * target
            if criterion == POISSON:
                sums[last - 1] += w * target * np.log(target) if target > 0.0 else 0.0
            else:
                sums[last - 1] += w * target * target
    sums[last] += w


@internal_kernel
def add_rows(sums: Any, y: Any, weight: Any, start: int, stop: int, criterion: int) -> None:
    """Set the sums of a node to those of consecutive rows, in local variables for two classes or one number."""
    sums[:] = 0.0
    if len(y) > 1 or len(sums) != 3 or criterion > SQUARED:
        for i in range(start, stop):
            add_row(sums, y, i, weight[i], criterion)
        return
    first, second, total, targets = 0.0, 0.0, 0.0, y[0]
    if criterion <= ENTROPY:
        for i in range(np.uint64(start), np.uint64(stop)):
            w, is_second = weight[i], targets[i] > 0.5
            first += 0.0 if is_second else w
            second += w if is_second else 0.0
            total += w
    else:
        for i in range(np.uint64(start), np.uint64(stop)):
            w, target = weight[i], targets[i]
            first += w * target
            second += w * target * target
            total += w
    sums[0], sums[1], sums[2] = first, second, total


@internal_kernel
def impurity(sums: Any, criterion: int, n_outputs: int) -> float:
    """Return the impurity of a node, the mean over its targets; not for the absolute error, which has no such sums."""
    last, found = len(sums) - 1, 0.0
    weight = sums[last]
    if criterion == GINI:
        found = np.float64(n_outputs)
        for k in range(last):
            found -= (sums[k] / weight) ** 2
    elif criterion == ENTROPY:
        for k in range(last):
            share = sums[k] / weight
            if share > 0.0:
                found -= share * np.log2(share)
    else:
        found = sums[last - 1] / weight
        for t in range(n_outputs):
            mean = sums[t] / weight
            if criterion == SQUARED:
                found -= mean * mean
            elif mean > 0.0:
                found -= mean * np.log(mean)
    return max(found, 0.0) / n_outputs


@internal_kernel
def score_sides(left: Any, total: Any, criterion: int, n_outputs: int) -> float:
    """Return the score of a split from the sums of its left side and of the node; -inf if it is not allowed.

    `left` may be `total`, for the score of the node before the split; the empty side contributes nothing.
    """
    last, score = len(total) - 1, 0.0
    wl, wr = left[last], total[last] - left[last]
    if criterion == GINI:
        for_left, for_right = 0.0, 0.0
        for k in range(last):
            rest = total[k] - left[k]
            for_left += left[k] * left[k]
            for_right += rest * rest
        score = for_left / wl + (for_right / wr if wr > 0.0 else 0.0)
    elif criterion == ENTROPY:
        for k in range(last):
            rest = total[k] - left[k]
            score += left[k] * np.log(left[k]) if left[k] > 0.0 else 0.0
            score += rest * np.log(rest) if rest > 0.0 else 0.0
        score -= n_outputs * (wl * np.log(wl) + (wr * np.log(wr) if wr > 0.0 else 0.0))
    else:
        for t in range(n_outputs):
            here, rest = left[t], total[t] - left[t]
            if criterion == SQUARED:
                score += here * here / wl + (rest * rest / wr if wr > 0.0 else 0.0)
            elif here <= _ROUNDING * total[t] or (wr > 0.0 and rest <= _ROUNDING * total[t]):
                score = -np.inf  # all targets of a side are 0
            else:
                score += here * np.log(here / wl) + (rest * np.log(rest / wr) if wr > 0.0 else 0.0)
    return score
