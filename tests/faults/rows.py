"""Rows with a linear target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Rows(NamedTuple):
    """Columns, a target of numbers, and its sign as codes of two classes."""

    X: Array
    y: Array
    codes: Array


def linear_rows(rng: np.random.Generator, n: int, slopes: Sequence[float], noise: float = 1.0) -> Rows:
    """Return n rows of standard normal columns, with a target of these slopes plus normal noise."""
    X = rng.normal(size=(n, len(slopes)))
    y = X @ slopes + noise * rng.normal(size=n)
    return Rows(X, y, (y > 0).astype(int))
