"""Split criteria of the grower.

The grower (`growing_kernels`) partitions rows, manages histograms and splits the best leaf first, for any criterion. A
criterion consists of the dtype of the sums of a node, and of the kernels that compute with them:

    accumulate(inputs, rows, first, last, block, histogram, table)      the histogram of some rows
    subtract(parent, child, sibling, first, last, packing)              the histogram of the other child
    set_root(histogram, split_inputs, node)                             sums and value of the root
    set_children(node, split_inputs, left, right)                       sums and values of the children of a split node
    find_best_split(histogram, first, last, split_inputs, node, search)

`growing_kernels.make_grow` compiles a grower with the kernels of a criterion; the two long ones, the first and the
last, are called by address (`late_binding`), so that each is compiled once. Leaf values are computed
afterwards, from the rows of the leaves (`leaf_values`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from summula.tree.growing.histogram_kernels import accumulate, subtract
from summula.tree.growing.records import NEWTON_SUMS
from summula.tree.growing.split_kernels import find_best_split, set_children, set_root

__all__ = ["NEWTON", "Criterion"]


class Criterion(NamedTuple):
    """The sums of a node, and the kernels that compute with them."""

    sums: Any
    accumulate: Any
    subtract: Any
    set_root: Any
    set_children: Any
    find_best_split: Any


NEWTON = Criterion(NEWTON_SUMS, accumulate, subtract, set_root, set_children, find_best_split)
