"""Counter-based random numbers: functions of (seed, stream, row), whatever the chunks, threads and order of evaluation.

With the finaliser M of SplitMix64 (Steele, Lea and Flood 2014) and the golden ratio g = 2^64 / phi, the key of a stream
and the bits of row i are

    key = M(M(M(seed + g) + s_1 + g) + s_2 + g) ...,        stream = (s_1, s_2, ...),                            (1)
    bits_i = M(key + (i + 1) g),                                                                                 (2)

the latter being the i-th output of SplitMix64 started at the key. All arithmetic is modulo 2^64, except that keys are
reduced modulo 2^63 to be int64 in kernels. `random_kernels` has the same functions for use inside kernels; bits,
uniforms, integers, choices and permutations agree exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "GOLDEN",
    "choice",
    "draw_seed",
    "integers",
    "mix64",
    "normal",
    "permutation",
    "random_bits",
    "seed_from",
    "stream_key",
    "uniform",
]

Bits = NDArray[np.uint64]
Rows = int | range | NDArray[np.integer[Any]]

GOLDEN = 0x9E3779B97F4A7C15
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB  # multipliers of the finaliser
_MASK = 2**64 - 1


def mix64(z: Any) -> Any:
    """Return the finaliser of SplitMix64: a bijection of 64-bit integers in which every bit depends on all bits of z.

    z is an array of uint64, or a uint64 inside a kernel.
    """
    z = (z ^ (z >> np.uint64(30))) * np.uint64(_FIRST)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(_SECOND)
    return z ^ (z >> np.uint64(31))


def stream_key(seed: int, stream: int | Sequence[int] = ()) -> int:
    """Return the key (1) of a stream of random numbers; streams with different keys are independent.

    Parameters
    ----------
    seed : int
    stream : int or sequence of int, default=()
        Identifiers of the stream, such as (purpose, tree, epoch).
    """
    key = 0
    for number in (seed, *((stream,) if isinstance(stream, int) else stream)):
        key = _mix((key + int(number) + GOLDEN) & _MASK)
    return key & (_MASK >> 1)


def _mix(z: int) -> int:
    """`mix64` of a single number, without an array around it."""
    z = (z ^ (z >> 30)) * _FIRST & _MASK
    z = (z ^ (z >> 27)) * _SECOND & _MASK
    return z ^ (z >> 31)


def draw_seed(random_state: Any) -> int:
    """Return a seed below 2^32 - 1 from the parameter `random_state`: an int, Generator, RandomState or None."""
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**32 - 1))
    from sklearn.utils import check_random_state  # imported here, since processes that compile kernels do not need it

    return int(check_random_state(random_state).randint(np.iinfo(np.uint32).max, dtype="u8"))


def seed_from(random_state: Any) -> int:
    """Return `random_state` itself if it is an int, else a seed below 2^31 drawn from it."""
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    from sklearn.utils import check_random_state

    return int(check_random_state(random_state).randint(2**31))


def random_bits(key: int, rows: Rows) -> Bits:
    """Return 64 random bits for each row, equation (2).

    Parameters
    ----------
    key : int
        From `stream_key`.
    rows : int, range or ndarray of int
        Row numbers; an int means range(rows).
    """
    if isinstance(rows, range | int):
        rows = np.arange(rows) if isinstance(rows, int) else np.arange(rows.start, rows.stop, rows.step)
    counters = (rows.astype(np.uint64) + np.uint64(1)) * np.uint64(GOLDEN) + np.uint64(key)
    return np.asarray(mix64(counters))


def uniform(key: int, rows: Rows) -> NDArray[np.float64]:
    """Return a number drawn uniformly from [0, 1) for each row, a multiple of 2^-53."""
    return np.asarray((random_bits(key, rows) >> np.uint64(11)).astype(np.float64) * 2.0**-53)


def normal(key: int, rows: Rows) -> NDArray[np.float64]:
    """Return a standard normal number for each row (Box and Muller's method)."""
    bits = random_bits(key, rows)
    radius = np.sqrt(-2.0 * np.log1p(-((bits >> np.uint64(11)).astype(np.float64) * 2.0**-53)))
    angle = (mix64(bits ^ np.uint64(GOLDEN)) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return np.asarray(radius * np.cos(2.0 * np.pi * angle))


def integers(key: int, rows: Rows, high: int) -> NDArray[np.int64]:
    """Return an integer drawn uniformly from [0, high) for each row, with replacement; `high` is below 2^32."""
    return np.asarray(((random_bits(key, rows) >> np.uint64(32)) * np.uint64(high) >> np.uint64(32)).astype(np.int64))


def permutation(key: int, n: int) -> NDArray[np.intp]:
    """Return the numbers 0 to n - 1 in the order of their random bits."""
    return np.argsort(random_bits(key, n), kind="stable")


def choice(key: int, n: int, size: int) -> NDArray[np.intp]:
    """Return `size` distinct numbers below n, sorted: those with the smallest random bits."""
    if size >= n:
        return np.arange(n)
    bits = random_bits(key, n)
    last = np.partition(bits, size)[size]
    chosen = np.flatnonzero(bits < last)
    if len(chosen) < size:  # equal bits: the first ones
        chosen = np.sort(np.argsort(bits, kind="stable")[:size])
    return chosen
