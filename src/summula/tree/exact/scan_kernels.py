"""The best threshold of one column of a node, from its rows in the order of that column.

With W, n and the sums of a criterion over the rows on each side of a threshold (L and R), a split is scored by

    Gini            sum_k L_k^2 / W_L + sum_k R_k^2 / W_R,           L_k the weight of class k                      (1)
    entropy         sum_k L_k log L_k - W_L log W_L + the same of R                                                 (2)
    squared error   L^2 / W_L + R^2 / W_R,                           L the sum of w y                               (3)
    Poisson         L log(L / W_L) + R log(R / W_R)                                                                 (4)
    absolute error  -(sum_L w |y - m_L| + sum_R w |y - m_R|),        m the medians                                  (5)

which differs from minus the weighted impurity of both sides by what is the same for every split of the node. Missing
values are last in the order; they are tried on either side. On a monotone column the values of the two sides (means,
medians, or shares of the second class) have to be in order, and within the bounds of the node.

Each criterion has a separate kernel, which is compiled when a tree is first grown by it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from summula.core.compilation.compile import inlined, internal_kernel
from summula.core.compilation.late_binding import KernelSignature
from summula.core.engine.random_kernels import random_bits
from summula.tree.exact.records import ENTROPY, EXAMPLE_PLACE, POISSON, SQUARED, example_inputs

__all__ = ["find_threshold", "scan_address"]

_ROUNDING = 1e-12  # of sums, beside the sum over the node


def _example_scan() -> tuple[Any, ...]:
    rows, sums, parameters, split, scratch = example_inputs()
    return (np.zeros(1, np.uint32), np.zeros(1)), EXAMPLE_PLACE, rows, sums, parameters, 0.0, split, scratch


_SCAN = KernelSignature(_example_scan)
_call_scan = _SCAN.call


@inlined
def _value_after(order: Any, x: Any, i: int, end: int) -> float:
    """Return the value of the next row in order; NaN after the last one."""
    return x[order[i + 1]] if i + 1 < end else np.nan


@inlined
def _first_missing(order: Any, x: Any, start: int, stop: int) -> int:
    """Return from where on the values are missing."""
    end = stop
    while end > start and x[order[end - 1]] != x[order[end - 1]]:
        end -= 1
    return end


@inlined
def _record(split: Any, score: float, low: float, high: float, drawn: float, missing_left: int) -> None:
    """Set the split between two neighbouring values; `high` is NaN where all values are on the left."""
    split.score, split.missing_left = score, missing_left
    middle = low / 2 + high / 2
    if drawn == drawn:
        split.threshold = drawn
    elif high != high:
        split.threshold = np.inf
    else:
        split.threshold = low if middle >= high or middle == -np.inf else middle


@inlined
def _is_left_out(drawn: float, low: float, high: float) -> bool:
    """Whether only one threshold is tried, and it is not between these neighbouring values."""
    return drawn == drawn and not low <= drawn < high


@inlined
def _is_allowed(place: Any, left: float, right: float) -> bool:
    """Whether the values of both sides obey a monotone column."""
    sign, lower, upper = place[3], place[4], place[5]
    is_ordered = (left - right) * sign <= 0.0
    return bool(sign == 0 or (is_ordered and lower <= left and lower <= right and left <= upper and right <= upper))


@inlined
def _term(criterion: int, weight: float) -> float:
    """Return what the weight of one class contributes to (1) or (2)."""
    if criterion == ENTROPY:
        return weight * np.log(weight) if weight > 0.0 else 0.0
    return weight * weight


@_SCAN.kernel
def _scan_classes(
    column: Any, place: Any, data: Any, total: Any, parameters: Any, drawn: float, split: Any, scratch: Any
) -> None:
    """Find the best threshold by (1) or (2), if it beats `split`."""
    (order, x), start, stop, left = column, place[0], place[1], scratch.left
    y, w, n_classes = data.y, data.weight, len(total) - 1
    criterion, n, least, light = (
        parameters.criterion,
        stop - start,
        parameters.min_samples_leaf,
        parameters.min_weight_leaf,
    )
    end = _first_missing(order, x, start, stop)
    for missing_left in range(2 if end < stop else 1):
        left[:] = 0.0
        first = end if missing_left else stop
        for i in range(first, stop):
            row = order[i]
            left[np.int64(y[row])] += w[row]
            left[n_classes] += w[row]
        left_terms, right_terms = 0.0, 0.0
        for k in range(n_classes):
            left_terms += _term(criterion, left[k])
            right_terms += _term(criterion, total[k] - left[k])
        wl, offset = left[n_classes], stop - first
        for i in range(start, end - 1 if missing_left or end == stop else end):
            row = order[i]
            code = np.int64(y[row])
            before, after = left[code], left[code] + w[row]
            left_terms += _term(criterion, after) - _term(criterion, before)
            right_terms += _term(criterion, total[code] - after) - _term(criterion, total[code] - before)
            left[code] = after
            wl += w[row]
            value, high = x[row], _value_after(order, x, i, end)
            if high <= value:
                continue
            n_left = i + 1 - start + offset
            wr = total[n_classes] - wl
            if n - n_left < least or wr < light:
                break
            if n_left < least or wl < light or _is_left_out(drawn, value, high):
                continue
            if criterion == ENTROPY:
                score = left_terms - wl * np.log(wl) + right_terms - wr * np.log(wr)
            else:
                score = left_terms / wl + right_terms / wr
            if score > split.score and _is_allowed(place, left[1] / wl, (total[1] - left[1]) / wr):
                _record(split, score, value, high, drawn, missing_left)


@_SCAN.kernel
def _scan_numbers(
    column: Any, place: Any, data: Any, total: Any, parameters: Any, drawn: float, split: Any, scratch: Any
) -> None:
    """Find the best threshold by (3) or (4), if it beats `split`."""
    (order, x), start, stop = column, place[0], place[1]
    y, w, criterion, n = data.y, data.weight, parameters.criterion, stop - start
    least, light, whole, weight = parameters.min_samples_leaf, parameters.min_weight_leaf, total[0], total[2]
    end = _first_missing(order, x, start, stop)
    for missing_left in range(2 if end < stop else 1):
        left, wl, first = 0.0, 0.0, end if missing_left else stop
        for i in range(first, stop):
            left += w[order[i]] * y[order[i]]
            wl += w[order[i]]
        for i in range(start, end - 1 if missing_left or end == stop else end):
            row = order[i]
            left += w[row] * y[row]
            wl += w[row]
            value, high = x[row], _value_after(order, x, i, end)
            if high <= value:
                continue
            n_left, right, wr = i + 1 - start + stop - first, whole - left, weight - wl
            if n - n_left < least or wr < light:
                break
            if n_left < least or wl < light or _is_left_out(drawn, value, high):
                continue
            if criterion == SQUARED:
                score = left * left / wl + right * right / wr
            elif min(left, right) > _ROUNDING * whole:  # else all targets of a side are 0
                score = left * np.log(left / wl) + right * np.log(right / wr)
            else:
                continue
            if score > split.score and _is_allowed(place, left / wl, right / wr):
                _record(split, score, value, high, drawn, missing_left)


# ------------------------------------------------------------------------------------------------------ absolute error


@inlined
def _insert(tree: Any, rank: int, size: int, weight: float, target: float) -> None:
    """Add a row to Fenwick trees of weights and weighted targets."""
    at = rank + 1
    while at <= size:
        tree[0, at] += weight
        tree[1, at] += weight * target
        at += at & -at


@internal_kernel
def _deviation(tree: Any, size: int, targets: Any, weight: float, total: float, medians: Any) -> float:
    """Return the sum of w |y - median| over the rows inserted, whose weights and weighted targets have these sums.

    The median is written to the last place of `medians`.
    """
    at, below, sum_below, step = 0, 0.0, 0.0, 1
    while 2 * step <= size:
        step *= 2
    while step > 0:
        if at + step <= size and 2 * (below + tree[0, at + step]) < weight:
            at += step
            below += tree[0, at]
            sum_below += tree[1, at]
        step //= 2
    median = targets[min(at, size - 1)]  # the first rank at which half of the weight is reached
    medians[len(medians) - 1] = median
    return median * below - sum_below + (total - sum_below) - median * (weight - below)  # type: ignore[no-any-return]


@_SCAN.kernel
def _scan_absolute(
    column: Any, place: Any, data: Any, total: Any, parameters: Any, drawn: float, split: Any, scratch: Any
) -> None:
    """Find the best threshold by (5), if it beats `split`."""
    (order, x), start, stop = column, place[0], place[1]
    y, w, n, tree, targets = data.y, data.weight, stop - start, scratch.tree, scratch.targets
    least, light, losses, ranks = parameters.min_samples_leaf, parameters.min_weight_leaf, scratch.losses, scratch.ranks
    medians = scratch.medians
    end = _first_missing(order, x, start, stop)
    weight, before = 0.0, split.score
    for i in range(start, stop):
        weight += w[order[i]]
    for missing_left in range(2 if end < stop else 1):
        last = end - 1 if missing_left or end == stop else end
        for backwards in range(2):
            tree[:, : n + 1] = 0.0
            here, total = 0.0, 0.0
            for i in range(end if missing_left != backwards else stop, stop):
                row = order[i]
                _insert(tree, ranks[row], n, w[row], y[row])
                here, total = here + w[row], total + w[row] * y[row]
            for step in range(last - start):
                i = end - 1 - step if backwards else start + step  # the row that is inserted
                if backwards and last == end:
                    i += 1  # a split after the last value: only missing values are on the right
                if i < end:
                    row = order[i]
                    _insert(tree, ranks[row], n, w[row], y[row])
                    here, total = here + w[row], total + w[row] * y[row]
                at = i - 1 if backwards else i  # the last row on the left
                high = _value_after(order, x, at, end)
                if high <= x[order[at]]:
                    continue
                loss = _deviation(tree, n, targets, here, total, medians)
                if not backwards:
                    losses[at], medians[at] = loss, medians[len(medians) - 1]
                    continue
                n_left = at + 1 - start + (stop - end if missing_left else 0)
                if min(n_left, n - n_left) < least or min(here, weight - here) < light:
                    continue
                if _is_left_out(drawn, x[order[at]], high):
                    continue
                score = -(loss + losses[at])
                is_better = score > before and score >= split.score  # of equal ones the first
                if is_better and _is_allowed(place, medians[at], medians[len(medians) - 1]):
                    _record(split, score, x[order[at]], high, drawn, missing_left)


@internal_kernel
def find_threshold(column: Any, place: Any, data: Any, total: Any, parameters: Any, split: Any, scratch: Any) -> bool:
    """Find the best threshold of a column of a node, if it beats `split`; return whether the column is not constant.

    column : the rows in the order of the column, and its values.
    place : where the rows of the node start and stop in that order, a counter for random numbers, the sign of a
        monotone column, and the bounds of its values.
    """
    (order, x), start, stop, counter = column, place[0], place[1], place[2]
    low, high, drawn = x[order[start]], x[order[stop - 1]], np.nan
    if low == high or low != low:
        return False
    if parameters.random_threshold:
        high = x[order[_first_missing(order, x, start, stop) - 1]]
        drawn = low + np.float64(random_bits(parameters.key, counter) >> np.uint64(11)) * 2.0**-53 * (high - low)
        drawn = low if drawn >= high else drawn
    _call_scan(parameters.scan, (column, place, data, total, parameters, drawn, split, scratch))
    return True


def scan_address(criterion: int) -> int:
    """Return the address of the kernel that finds the best threshold by a criterion."""
    scan = _scan_classes if criterion < SQUARED else _scan_numbers if criterion <= POISSON else _scan_absolute
    return scan.address()
