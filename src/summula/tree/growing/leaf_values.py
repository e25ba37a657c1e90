"""Leaf values, computed from the rows of each leaf after the splits."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

from summula.core.engine.threads import together
from summula.tree.growing.grower import Grown
from summula.tree.growing.leaf_kernels import LeafParameters, add_leaf_values, set_newton_values
from summula.tree.growing.nodes import Gradients

__all__ = ["NewtonLeaves", "add_to_scores"]

_SUM_BITS = 62  # number of bits of the fixed-point sums of gradients


class NewtonLeaves(NamedTuple):
    """Newton steps: -learning_rate g / (h + l2), within the bounds of monotonic constraints."""

    l2: float
    learning_rate: float

    def set_values(self, grown: Grown, gradients: Gradients) -> None:
        """Set the values of the leaves of a tree, from unrounded gradients summed in fixed point."""
        n = len(grown.leaf_rows.rows)
        exponent = math.ceil(math.log2(max(gradients.largest, 1e-300))) + math.ceil(math.log2(max(n, 2)))
        parameters = LeafParameters(2.0 ** min(_SUM_BITS - exponent, 1000), self.l2, self.learning_rate)
        sums = gradients.gradients, gradients.hessians, parameters, grown.nodes, grown.tree.floats
        together([functools.partial(set_newton_values, grown.leaf_rows, a, b, *sums) for a, b in grown.shares()])


def add_to_scores(grown: Grown, scores: Any) -> None:
    """Add the values of the leaves to the scores of their rows."""
    values = grown.tree.value
    together([functools.partial(add_leaf_values, grown.leaf_rows, a, b, values, scores) for a, b in grown.shares()])
