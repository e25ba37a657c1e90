"""Clones of an estimator with different seeds, as fitted in the rounds of boosting."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from summula.core.engine.random import random_bits

__all__ = ["seeded_clone"]


def seeded_clone(estimator: Any, key: int) -> Any:
    """Return a clone with random seeds for every `random_state` parameter, including those of nested estimators.

    Parameters
    ----------
    estimator : estimator
    key : int
        Key of the stream of random numbers (`core.engine.random.stream_key`).
    """
    model = clone(estimator)
    names = sorted(name for name in model.get_params() if name == "random_state" or name.endswith("__random_state"))
    seeds = random_bits(key, len(names)) >> np.uint64(33)
    return model.set_params(**{name: int(seed) for name, seed in zip(names, seeds, strict=True)})
