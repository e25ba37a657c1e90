"""Which rows a tree has: n rows are drawn with replacement, in proportion to their weights.

The j-th draw of tree t is a function of (seed, t, j), so that samples do not depend on threads and can be drawn again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.engine.random import integers, stream_key, uniform

__all__ = ["Bootstrap"]

Array = NDArray[Any]

_ROWS, _SPLITS = 1, 2  # streams of random numbers of a tree


@dataclass(frozen=True)
class Bootstrap:
    """The samples of all trees.

    Attributes
    ----------
    n : int
        Number of rows.
    size : int or None
        Number of draws; None where each tree has all rows.
    weight : ndarray of shape (n,), or None
    seed : int
    """

    n: int
    size: int | None
    weight: Array | None
    seed: int

    def draws(self, tree: int) -> Array:
        """Return the rows drawn, in the order of the draws; all rows where there are none."""
        if self.size is None:
            return np.arange(self.n)
        key = stream_key(self.seed, (tree, _ROWS))
        if self.weight is None:
            return integers(key, self.size, self.n)
        total = np.cumsum(self.weight)
        places = np.searchsorted(total, uniform(key, self.size) * total[-1], side="right")
        return np.asarray(np.minimum(places, np.flatnonzero(self.weight)[-1]))

    def counts(self, tree: int) -> Array:
        """Return how often each row was drawn; without draws, 1."""
        if self.size is None:
            return np.ones(self.n, np.int64)
        return np.bincount(self.draws(tree), minlength=self.n)

    def out_of_bag(self, tree: int) -> Array:
        """Return the rows that a tree does not have."""
        return np.flatnonzero(self.counts(tree) == 0)

    def split_key(self, tree: int) -> int:
        """Return the key of the random numbers that columns and thresholds are drawn by."""
        return stream_key(self.seed, (tree, _SPLITS))
