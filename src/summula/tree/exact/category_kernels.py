"""The best set of categories of one column of an exact tree: a prefix of the categories in some order."""

from __future__ import annotations

from typing import Any

import numpy as np

from summula.core.compilation.compile import internal_kernel
from summula.core.compilation.late_binding import KernelSignature
from summula.tree.exact.records import EXAMPLE_PLACE, SQUARED, example_inputs
from summula.tree.exact.scan_kernels import find_threshold

__all__ = ["call_categories", "find_categories"]

_MISSING = 255  # the category of missing values


def _example_categories() -> tuple[Any, ...]:
    rows, *rest = example_inputs()
    return rows, 0, EXAMPLE_PLACE, *rest


_CATEGORIES = KernelSignature(_example_categories)
call_categories = _CATEGORIES.call


@internal_kernel
def _rank_categories(
    data: Any, f: int, order: Any, start: int, stop: int, target: int, is_class: bool, scratch: Any
) -> None:
    """Rank categories by the mean of a target, or the proportion of a class, in `scratch.category_rank`."""
    x, y, w, sums, rank = data.values[f], data.y, data.weight, scratch.categories, scratch.category_rank
    sums[:] = 0.0
    for i in range(start, stop):
        row = order[i]
        b = _MISSING if x[row] != x[row] else np.int64(x[row])
        sums[0, b] += w[row]
        if is_class:
            for t in range(len(y)):
                sums[1, b] += w[row] * np.float64(y[t, row] == target)
        else:
            sums[1, b] += w[row] * y[target, row]
    used = 0
    for b in range(256):
        if sums[0, b] > 0.0:
            key, at = sums[1, b] / sums[0, b], used
            while at > 0 and sums[2, at - 1] > key:  # insertion sort: sums[2] keys, sums[3] categories
                sums[2, at], sums[3, at] = sums[2, at - 1], sums[3, at - 1]
                at -= 1
            sums[2, at], sums[3, at] = key, b
            used += 1
    rank[:] = -1
    for at in range(used):
        rank[np.int64(sums[3, at])] = at


@internal_kernel
def _order_by_category(data: Any, f: int, order: Any, start: int, stop: int, scratch: Any) -> None:
    """Write the ranks of the rows' categories, and the rows in that order, to `scratch`."""
    x, rank, counts = data.values[f], scratch.category_rank, scratch.categories
    counts[0] = 0.0
    for i in range(start, stop):
        row = order[i]
        scratch.rank_column[row] = rank[_MISSING if x[row] != x[row] else np.int64(x[row])]
        counts[0, np.int64(scratch.rank_column[row])] += 1
    place = np.float64(start)
    for b in range(256):
        here = counts[0, b]
        counts[0, b] = place
        place += here
    for i in range(start, stop):
        row = order[i]
        rank_of_row = np.int64(scratch.rank_column[row])
        scratch.order[np.int64(counts[0, rank_of_row])] = row
        counts[0, rank_of_row] += 1


@_CATEGORIES.kernel
def find_categories(data: Any, f: int, place: Any, total: Any, parameters: Any, split: Any, scratch: Any) -> None:
    """Find the best set of categories of a column, a prefix in some order, if it improves on `split`.

    Ordered by the mean of y, or the proportion of the second of two classes, some prefix is the optimal subset (Fisher
    1958) for every criterion except the absolute error; with more classes, or several targets, the order by each is
    tried.
    """
    start, stop = place[0], place[1]
    order, has_classes = data.orders[len(data.orders) - 1], parameters.criterion < SQUARED
    n_orders = len(total) - 1 if has_classes else parameters.n_outputs
    parameters.varies = 0
    for k in range(1 if has_classes and n_orders == 2 else 0, n_orders):
        _rank_categories(data, f, order, start, stop, k, has_classes, scratch)
        _order_by_category(data, f, order, start, stop, scratch)
        before = split.score
        if find_threshold((scratch.order, scratch.rank_column), place, data, total, parameters, split, scratch):
            parameters.varies = 1
        if split.score > before:
            split.feature, split.is_categorical = f, 1
            for b in range(256):
                rank = scratch.category_rank[b]
                scratch.goes_left[b] = rank >= 0 and rank <= split.threshold
            split.missing_left = scratch.goes_left[_MISSING] if scratch.category_rank[_MISSING] >= 0 else -1
