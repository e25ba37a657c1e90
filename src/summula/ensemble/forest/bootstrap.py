"""Bootstrap sample of each tree: n rows drawn with replacement, in proportion to their weights.

Rows are divided into blocks of 4,096. The numbers of draws in the two halves of the blocks, in their quarters and so on
are drawn first, from binomial distributions, and then the rows of each block: together a draw from the multinomial
distribution. So the sample is a function of (seed, tree, row) that does not depend on threads, and the draws of some
rows can be reproduced without those of the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from summula.core.engine.random import integers, stream_key, uniform

__all__ = ["Bootstrap", "Sample"]

Array = NDArray[Any]

_ROWS, _SPLITS, _BLOCKS = 1, 2, 4  # streams of random numbers of a tree
_BLOCK = 4_096


@dataclass(frozen=True)
class Sample:
    """The rows of one tree.

    Attributes
    ----------
    n : int
        Number of rows to draw from.
    key : int
        Key of the random numbers.
    weight : ndarray of shape (n,), or None
    first : ndarray of shape (blocks + 1,), or None
        Number of the first draw of each block of rows, then the number of draws; None if each row is used once.
    """

    n: int
    key: int
    weight: Array | None
    first: Array | None

    def _draws_of_block(self, block: int) -> Array:
        assert self.first is not None
        start, numbers = block * _BLOCK, range(int(self.first[block]), int(self.first[block + 1]))
        stop = min(start + _BLOCK, self.n)
        if self.weight is None:
            return start + integers(self.key, numbers, stop - start)
        if not len(numbers):
            return np.empty(0, np.int64)
        total = np.cumsum(self.weight[start:stop])
        places = np.searchsorted(total, uniform(self.key, numbers) * total[-1], side="right")
        return np.asarray(start + np.minimum(places, np.flatnonzero(self.weight[start:stop])[-1]))

    def draws(self) -> Array:
        """Return the rows drawn, block by block; all rows without a bootstrap."""
        if self.first is None:
            return np.arange(self.n)
        return np.concatenate([self._draws_of_block(block) for block in range(len(self.first) - 1)])

    def counts(self, start: int, stop: int) -> Array:
        """Return how often each of the rows from `start` up to `stop` was drawn; 1 without a bootstrap."""
        if self.first is None:
            return np.ones(stop - start, np.int64)
        blocks = range(start // _BLOCK, -(-stop // _BLOCK))
        first = blocks.start * _BLOCK
        drawn = np.concatenate([np.empty(0, np.int64), *(self._draws_of_block(block) for block in blocks)])
        return np.bincount(drawn - first, minlength=stop - first)[start - first : stop - first]


@dataclass(frozen=True)
class Bootstrap:
    """The samples of all trees.

    Attributes
    ----------
    n : int
        Number of rows.
    size : int or None
        Number of draws; None if each tree has all rows.
    weight : ndarray of shape (n,), or None
    seed : int
    """

    n: int
    size: int | None
    weight: Array | None
    seed: int

    @cached_property
    def _weights_of_blocks(self) -> Array:
        starts = np.arange(0, self.n, _BLOCK)
        if self.weight is None:
            return np.minimum(_BLOCK, self.n - starts).astype(np.float64)
        return np.add.reduceat(self.weight, starts)

    def _draws_per_block(self, tree: int) -> Array:
        """Divide the draws among the blocks by recursive halving."""
        weight = self._weights_of_blocks
        n_levels = int(np.ceil(np.log2(len(weight))))
        levels = [np.append(weight, np.zeros(2**n_levels - len(weight)))]
        while len(levels[-1]) > 1:
            levels.append(levels[-1].reshape(-1, 2).sum(axis=1))
        draws = np.array([self.size], np.int64)
        for level, halves in enumerate(reversed(levels[:-1])):
            left, right = halves.reshape(-1, 2).T
            u = uniform(stream_key(self.seed, (tree, _BLOCKS, level)), len(draws))
            below = np.where(right > 0.0, 0, draws)  # all of them, if the right half is empty
            drawn = (draws > 0) & (left > 0.0) & (right > 0.0)
            found = scipy.stats.binom.ppf(u[drawn], draws[drawn], (left / np.maximum(left + right, 1e-300))[drawn])
            below[drawn] = np.clip(found, 0, draws[drawn])
            draws = np.stack([below, draws - below], axis=1).reshape(-1)
        return draws[: len(weight)]

    def sample(self, tree: int) -> Sample:
        """Return the rows of a tree."""
        first = None if self.size is None else np.concatenate([[0], np.cumsum(self._draws_per_block(tree))])
        return Sample(self.n, stream_key(self.seed, (tree, _ROWS)), self.weight, first)

    def out_of_bag(self, tree: int) -> Array:
        """Return the out-of-bag rows of a tree."""
        return np.flatnonzero(self.sample(tree).counts(0, self.n) == 0)

    def split_key(self, tree: int) -> int:
        """Return the key of the random numbers for columns and thresholds."""
        return stream_key(self.seed, (tree, _SPLITS))
