"""The best threshold of one column of a node, from its rows in the order of that column.

Splits are scored by the equations (1) to (4) of `tree.growing.node_sums`, or by

    absolute error  -(sum_L w |y - m_L| + sum_R w |y - m_R|),        m the medians, summed over the targets         (5)

Missing values are last in the order; they are tried on either side. For a monotone column the values of the two sides
(means, medians, or proportions of the second class) must be in order, and within the bounds of the node.

Each criterion has a separate kernel, which is compiled on first use; there is one kernel for several targets.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from summula.core.compilation.compile import inlined, internal_kernel
from summula.core.compilation.late_binding import KernelSignature
from summula.core.engine.random_kernels import random_bits
from summula.tree.exact.records import ENTROPY, EXAMPLE_PLACE, GINI, POISSON, SQUARED, example_inputs
from summula.tree.growing.node_sums import add_row, score_sides
from summula.tree.growing.outputs import Outputs

__all__ = ["find_threshold", "scan_address"]

_ROUNDING = 1e-12  # relative to the sum over the node: smaller sums are rounding


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
    """Return the index from which on values are missing."""
    end = stop
    while end > start and x[order[end - 1]] != x[order[end - 1]]:
        end -= 1
    return end


@inlined
def _stop_of_splits(start: int, end: int, first: int, least: int) -> int:
    """Return the first split index with fewer than `least` rows on the right, at least `first`."""
    return max(start, min(end, first - least))


@inlined
def _record(split: Any, score: float, low: float, high: float, drawn: float, missing_left: int) -> None:
    """Set the split between two adjacent values; `high` is NaN if all values are on the left."""
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
    """Return whether a random threshold is not between these adjacent values."""
    return drawn == drawn and not low <= drawn < high


@inlined
def _is_allowed(place: Any, left: float, right: float) -> bool:
    """Return whether the values of both sides satisfy a monotonicity constraint."""
    sign, lower, upper = place[3], place[4], place[5]
    is_ordered = (left - right) * sign <= 0.0
    return bool(sign == 0 or (is_ordered and lower <= left and lower <= right and left <= upper and right <= upper))


@inlined
def _record_if_best(
    split: Any, score: float, place: Any, sides: Any, low: float, high: float, drawn: float, missing_left: int
) -> None:
    """Set the split if it improves on `split`, and its values are allowed; `sides` are their sums and weights."""
    (left, left_weight), (right, right_weight) = sides
    if score > split.score and _is_allowed(place, left / left_weight, right / right_weight):
        _record(split, score, low, high, drawn, missing_left)


@inlined
def _term(criterion: int, weight: float) -> float:
    """Return the contribution of the weight of one class to (1) or (2)."""
    if criterion == ENTROPY:
        return weight * np.log(weight) if weight > 0.0 else 0.0
    return weight * weight


@_SCAN.kernel
def _scan_classes(
    column: Any, place: Any, data: Any, total: Any, parameters: Any, drawn: float, split: Any, scratch: Any
) -> None:
    """Find the best threshold of one target by (1) or (2), if it improves on `split`."""
    (order, x), start, stop, left = column, place[0], place[1], scratch.left
    y, w, n_classes = data.y[0], data.weight, len(total) - 1
    criterion, least, light = parameters.criterion, parameters.min_samples_leaf, parameters.min_weight_leaf
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
        for i in range(start, _stop_of_splits(start, end, first, least)):
            row = order[i]
            code = np.int64(y[row])
            before, after = left[code], left[code] + w[row]
            left_terms += _term(criterion, after) - _term(criterion, before)
            right_terms += _term(criterion, total[code] - after) - _term(criterion, total[code] - before)
            left[code] = after
            wl += w[row]
            value, high = x[row], _value_after(order, x, i, end)
            wr, n_left = total[n_classes] - wl, i + 1 - start + offset
            if high <= value or n_left < least or min(wl, wr) < light or _is_left_out(drawn, value, high):
                continue
            if criterion == ENTROPY:
                score = left_terms - wl * np.log(wl) + right_terms - wr * np.log(wr)
            else:
                score = left_terms / wl + right_terms / wr
            sides = (left[1], wl), (total[1] - left[1], wr)
            _record_if_best(split, score, place, sides, value, high, drawn, missing_left)


@_SCAN.kernel
def _scan_two_classes(
    column: Any, place: Any, data: Any, total: Any, parameters: Any, drawn: float, split: Any, scratch: Any
) -> None:
    """Do the same by (1) for two classes, with their weights in local variables, which avoids memory accesses."""
    (order, x), start, stop, y, w = column, place[0], place[1], data.y[0], data.weight
    least, light = parameters.min_samples_leaf, parameters.min_weight_leaf
    end = _first_missing(order, x, start, stop)
    for missing_left in range(2 if end < stop else 1):
        a, b, wl, first = 0.0, 0.0, 0.0, end if missing_left else stop
        for i in range(np.uint64(first), np.uint64(stop)):
            weight, is_second = w[order[i]], y[order[i]] > 0.5
            a += 0.0 if is_second else weight
            b += weight if is_second else 0.0
            wl += weight
        n_left, high = stop - first, x[order[start]]
        for i in range(np.uint64(start), np.uint64(_stop_of_splits(start, end, first, least))):
            row, value = order[i], high
            weight, is_second = w[row], y[row] > 0.5
            a += 0.0 if is_second else weight
            b += weight if is_second else 0.0
            wl += weight
            n_left += 1
            after = i + np.uint64(1)
            high = x[order[after]] if after < np.uint64(end) else np.nan
            wr = total[2] - wl
            if high <= value or n_left < least or min(wl, wr) < light or _is_left_out(drawn, value, high):
                continue
            rest_a, rest_b = total[0] - a, total[1] - b
            score = (a * a + b * b) / wl + (rest_a * rest_a + rest_b * rest_b) / wr
            _record_if_best(split, score, place, ((b, wl), (rest_b, wr)), value, high, drawn, missing_left)


@_SCAN.kernel
def _scan_numbers(
    column: Any, place: Any, data: Any, total: Any, parameters: Any, drawn: float, split: Any, scratch: Any
) -> None:
    """Find the best threshold of one target by (3) or (4), if it improves on `split`."""
    (order, x), start, stop = column, place[0], place[1]
    y, w, criterion = data.y[0], data.weight, parameters.criterion
    least, light, whole, weight = parameters.min_samples_leaf, parameters.min_weight_leaf, total[0], total[2]
    end = _first_missing(order, x, start, stop)
    for missing_left in range(2 if end < stop else 1):
        left, wl, first = 0.0, 0.0, end if missing_left else stop
        for i in range(first, stop):
            left += w[order[i]] * y[order[i]]
            wl += w[order[i]]
        for i in range(start, _stop_of_splits(start, end, first, least)):
            row = order[i]
            left += w[row] * y[row]
            wl += w[row]
            value, high, n_left, wr = x[row], _value_after(order, x, i, end), i + 1 - start + stop - first, weight - wl
            if high <= value or n_left < least or min(wl, wr) < light or _is_left_out(drawn, value, high):
                continue
            right = whole - left
            if criterion == SQUARED:
                score = left * left / wl + right * right / wr
            elif min(left, right) > _ROUNDING * whole:  # else all targets of a side are 0
                score = left * np.log(left / wl) + right * np.log(right / wr)
            else:
                continue
            _record_if_best(split, score, place, ((left, wl), (right, wr)), value, high, drawn, missing_left)


@_SCAN.kernel
def _scan_outputs(
    column: Any, place: Any, data: Any, total: Any, parameters: Any, drawn: float, split: Any, scratch: Any
) -> None:
    """Find the best threshold of several targets by (1) to (4), if it improves on `split`."""
    (order, x), start, stop, left = column, place[0], place[1], scratch.left
    y, w, criterion, n_outputs = data.y, data.weight, parameters.criterion, parameters.n_outputs
    last, least, light = len(total) - 1, parameters.min_samples_leaf, parameters.min_weight_leaf
    end = _first_missing(order, x, start, stop)
    for missing_left in range(2 if end < stop else 1):
        left[:] = 0.0
        first = end if missing_left else stop
        for i in range(first, stop):
            add_row(left, y, order[i], w[order[i]], criterion)
        for i in range(start, _stop_of_splits(start, end, first, least)):
            row = order[i]
            add_row(left, y, row, w[row], criterion)
            value, high, n_left = x[row], _value_after(order, x, i, end), i + 1 - start + stop - first
            lighter = min(left[last], total[last] - left[last])
            if high <= value or n_left < least or lighter < light or _is_left_out(drawn, value, high):
                continue
            score = score_sides(left, total, criterion, n_outputs)
            if score > split.score:
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
def _deviation(tree: Any, size: int, targets: Any, weight: float, total: float, median: Any) -> float:
    """Return the sum of w |y - median| over the rows inserted, whose weights and weighted targets have these sums.

    The median is written to the last entry of `median`.
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
    middle = targets[min(at, size - 1)]  # the first rank at which half of the weight is reached
    median[len(median) - 1] = middle
    return middle * below - sum_below + (total - sum_below) - middle * (weight - below)  # type: ignore[no-any-return]


@internal_kernel
def _add_losses(column: Any, place: Any, data: Any, t: int, side: int, missing_left: int, scratch: Any) -> None:
    """Add the loss of target t on one side (0 left, 1 right) to that of every split between two values.

    Rows are inserted one by one, from the left or from the right.
    """
    (order, x), start, stop = column, place[0], place[1]
    y, w, tree, losses, median = data.y[t], data.weight, scratch.tree, scratch.losses, scratch.medians[side]
    n, end, ranks, targets = stop - start, _first_missing(order, x, start, stop), scratch.ranks[t], scratch.targets[t]
    last = end - 1 if missing_left or end == stop else end
    tree[:, : n + 1] = 0.0
    here, total = 0.0, 0.0
    for i in range(end if missing_left != side else stop, stop):
        row = order[i]
        _insert(tree, ranks[row], n, w[row], y[row])
        here, total = here + w[row], total + w[row] * y[row]
    for step in range(last - start):
        i = end - 1 - step if side else start + step  # the row that is inserted
        if side and last == end:
            i += 1  # a split after the last value: only missing values are on the right
        if i < end:
            row = order[i]
            _insert(tree, ranks[row], n, w[row], y[row])
            here, total = here + w[row], total + w[row] * y[row]
        at = i - 1 if side else i  # the last row on the left
        if _value_after(order, x, at, end) <= x[order[at]]:
            continue
        losses[at] += _deviation(tree, n, targets, here, total, median)
        median[at] = median[len(median) - 1]


@_SCAN.kernel
def _scan_absolute(
    column: Any, place: Any, data: Any, total: Any, parameters: Any, drawn: float, split: Any, scratch: Any
) -> None:
    """Find the best threshold by (5), if it improves on `split`."""
    (order, x), start, stop, w = column, place[0], place[1], data.weight
    least, light, losses, medians = (
        parameters.min_samples_leaf,
        parameters.min_weight_leaf,
        scratch.losses,
        scratch.medians,
    )
    n, end, weight = stop - start, _first_missing(order, x, start, stop), total[len(total) - 1]
    for missing_left in range(2 if end < stop else 1):
        for i in range(start, stop):
            losses[i] = 0.0
        for t in range(len(data.y)):
            for side in range(2):
                _add_losses(column, place, data, t, side, missing_left, scratch)
        here, n_missing = 0.0, stop - end if missing_left else 0
        for i in range(stop - n_missing, stop):
            here += w[order[i]]
        for at in range(start, end - 1 if missing_left or end == stop else end):
            here += w[order[at]]
            high = _value_after(order, x, at, end)
            if high <= x[order[at]]:
                continue
            n_left = at + 1 - start + n_missing
            if min(n_left, n - n_left) < least or min(here, weight - here) < light:
                continue
            if not -losses[at] > split.score or _is_left_out(drawn, x[order[at]], high):
                continue
            if _is_allowed(place, medians[0, at], medians[1, at]):
                _record(split, -losses[at], x[order[at]], high, drawn, missing_left)


@internal_kernel
def find_threshold(column: Any, place: Any, data: Any, total: Any, parameters: Any, split: Any, scratch: Any) -> bool:
    """Find the best threshold of a column if it improves on `split`; return whether the column is not constant.

    column : the rows in the order of the column, and its values.
    place : start and stop of the rows of the node in that order, a counter of random numbers, the sign of a
    monotone column, and the bounds on its values.
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


def scan_address(criterion: int, outputs: Outputs) -> int:
    """Return the address of the kernel that finds the best threshold by a criterion."""
    if criterion > POISSON:
        return _scan_absolute.address()
    if outputs.n_outputs > 1:
        return _scan_outputs.address()
    if criterion == GINI and outputs.n_classes == (2,):
        return _scan_two_classes.address()
    return (_scan_classes if criterion < SQUARED else _scan_numbers).address()
