"""Counter-based random numbers inside kernels: the functions of `random`, for one row at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from summula.core.compilation.compile import internal_kernel, kernel
from summula.core.engine import random

__all__ = ["choice", "integer", "mix64", "normal", "permutation", "random_bits", "shuffle", "uniform", "warmup"]

_GOLDEN = np.uint64(random.GOLDEN)
_POSITIVE = np.uint64(2**63 - 1)

mix64 = internal_kernel(random.mix64)


@internal_kernel
def random_bits(key: int, row: int) -> Any:
    """Return the 64 random bits of a row."""
    return mix64((np.uint64(row) + np.uint64(1)) * _GOLDEN + np.uint64(key))


@internal_kernel
def uniform(key: int, row: int) -> float:
    """Return a number drawn uniformly from [0, 1)."""
    return np.float64(random_bits(key, row) >> np.uint64(11)) * 2.0**-53


@internal_kernel
def normal(key: int, row: int) -> float:
    """Return a standard normal number."""
    bits = random_bits(key, row)
    radius = np.sqrt(-2.0 * np.log1p(-np.float64(bits >> np.uint64(11)) * 2.0**-53))
    angle = np.float64(mix64(bits ^ _GOLDEN) >> np.uint64(11)) * 2.0**-53
    return radius * np.cos(2.0 * np.pi * angle)  # type: ignore[no-any-return]


@internal_kernel
def integer(key: int, row: int, high: int) -> int:
    """Return an integer drawn uniformly from [0, high); `high` is below 2^32."""
    return np.int64(((random_bits(key, row) >> np.uint64(32)) * np.uint64(high)) >> np.uint64(32))  # type: ignore[return-value]


@internal_kernel
def _sift_down(keys: Any, order: Any, start: int, stop: int) -> None:
    """Restore the heap below `start`: no entry is larger than its parent."""
    root = start
    while 2 * root + 1 < stop:
        child = 2 * root + 1
        if child + 1 < stop and (
            keys[child] < keys[child + 1] or (keys[child] == keys[child + 1] and order[child] < order[child + 1])
        ):
            child += 1
        if keys[child] < keys[root] or (keys[child] == keys[root] and order[child] < order[root]):
            return
        keys[root], keys[child] = keys[child], keys[root]
        order[root], order[child] = order[child], order[root]
        root = child


@kernel
def permutation(key: int, out: Any) -> None:
    """Write the numbers 0 to len(out) - 1 in the order of their random bits."""
    n = len(out)
    keys = np.empty(n, np.uint64)
    for i in range(n):
        keys[i], out[i] = random_bits(key, i), i
    for start in range(n // 2 - 1, -1, -1):
        _sift_down(keys, out, start, n)
    for stop in range(n - 1, 0, -1):
        keys[0], keys[stop] = keys[stop], keys[0]
        out[0], out[stop] = out[stop], out[0]
        _sift_down(keys, out, 0, stop)


@internal_kernel
def shuffle(seed: int, first: int, second: int, values: Any) -> None:
    """Shuffle values in place (Fisher and Yates) with the stream (first, second) of a seed."""
    key = mix64(np.uint64(seed) + _GOLDEN)
    key = mix64(key + np.uint64(first) + _GOLDEN)
    key = mix64(key + np.uint64(second) + _GOLDEN) & _POSITIVE
    for i in range(len(values) - 1, 0, -1):
        j = integer(key, i, i + 1)
        values[i], values[j] = values[j], values[i]


@kernel
def choice(key: int, n: int, out: Any) -> None:
    """Write len(out) distinct numbers below n, sorted: those with the smallest random bits."""
    order, is_chosen, at = np.empty(n, np.int64), np.zeros(n, np.uint8), 0
    permutation(key, order)
    for k in range(len(out)):
        is_chosen[order[k]] = 1
    for i in range(n):
        if is_chosen[i]:
            out[at] = i
            at += 1


def warmup() -> None:
    """Compile for the common argument types."""
    uniform(1, 0)
    normal(1, 0)
    integer(1, 0, 2)
    permutation(1, np.zeros(2, np.int64))
    shuffle(1, 0, 0, np.zeros(2, np.int64))
    choice(1, 2, np.zeros(1, np.int64))
