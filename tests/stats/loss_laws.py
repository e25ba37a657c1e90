"""Distributions of losses in [0, 1] with known means, and a test of the error rate of a bound."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import stats


class Law(NamedTuple):
    """A sampler of losses, and their mean."""

    name: str
    sample: Callable[[np.random.Generator, tuple[int, int]], Any]
    mean: float

    def draw(self, samples: int, n: int) -> Any:
        """Draw samples of n losses, the same each time."""
        return self.sample(np.random.default_rng([n, zlib.crc32(self.name.encode())]), (samples, n))


LAWS = [
    Law("bernoulli 0.05", lambda rng, shape: (rng.random(shape) < 0.05).astype(float), 0.05),
    Law("bernoulli 0.5", lambda rng, shape: (rng.random(shape) < 0.5).astype(float), 0.5),
    Law("beta 2 5", lambda rng, shape: rng.beta(2, 5, shape), 2 / 7),
    Law("near both ends", lambda rng, shape: rng.beta(0.1, 0.1, shape), 0.5),
    Law("near 0", lambda rng, shape: rng.random(shape) ** 19, 0.05),
    Law("rarely 1", lambda rng, shape: np.where(rng.random(shape) < 0.03, 1.0, rng.random(shape) / 50), 0.0397),
]


def too_often(wrong: int, times: int, delta: float) -> bool:
    """Return whether this number of failures rejects a probability of delta, by a binomial test at 1 %."""
    return bool(stats.binom.sf(wrong - 1, times, delta) < 0.01)
