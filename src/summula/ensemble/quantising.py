"""Gradients as integers, for the search of splits only.

A row's gradient g and curvature h become

    q = floor(g m / s + u),   clipped to -m .. m,        r = floor(h c / t + v),   clipped to 0 .. c,            (1)

with m and c what the packing of `tree.histogram_kernels` has room for, s and t the largest |g| and h, and u, v uniform
on [0, 1), so that q and r are right on average. Where a few rows are far from all others, s is m / 64 times the 99 %
quantile instead: one outlier must not round everybody else to nothing. u and v are counter-based random numbers of
(seed, tree, row), independent of chunks and threads. Leaf values never see q and r.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.engine.random_kernels import random_bits
from summula.core.engine.threads import together
from summula.core.numerics.compile import kernel
from summula.tree.histogram_kernels import COUNT_BITS, Packing
from summula.tree.nodes import Slopes

__all__ = ["pack", "quantised", "warmup"]

Array = NDArray[Any]

_LOOKED_AT = 2_000  # rows a quantile is taken from
_FINE = 64.0  # what the quantile becomes, at least
_SPLIT_AMONG_THREADS = 50_000


@kernel
def pack(
    gradients: Any,
    curvatures: Any,
    start: int,
    stop: int,
    key: int,
    factors: Any,
    most: Any,
    count_bits: int,
    bits: int,
    packed: Any,
) -> None:
    """Equation (1) for the rows from `start` up to `stop`, packed.

    factors : m / s and c / t.
    most : m and c.
    """
    part = 1.0 / 4294967296.0
    for i in range(start, stop):
        random = random_bits(key, i)
        u = np.float64(random >> np.uint64(32)) * part
        q = np.floor(np.float64(gradients[i]) * factors[0] + u)
        q = min(max(q, -most[0]), most[0])
        if bits == 0:
            packed[i] = (np.int64(q) << np.int64(count_bits)) + 1
        else:
            v = np.float64(random & np.uint64(0xFFFFFFFF)) * part
            r = min(np.floor(np.float64(curvatures[i]) * factors[1] + v), most[1])
            packed[i] = (
                (np.int64(q) << np.int64(2 * count_bits + bits)) + (np.int64(r) << np.int64(count_bits)) + np.int64(1)
            )


def quantised(
    gradients: Array, curvatures: Array, tops: tuple[float, float], key: int, packed: Array, threads: int
) -> Slopes:
    """What a tree is grown for.

    Parameters
    ----------
    gradients, curvatures : ndarray of shape (n,), float32
        No curvatures mean that all are 1.
    tops : tuple of float
        The largest |g| and the largest h.
    key : int
        Of the stream of random numbers for this tree (`core.engine.random.stream_key`).
    packed : ndarray of shape (n,), int64
        Space.
    threads : int
        Most threads.
    """
    n = len(gradients)
    # Sums of gradients have at most 52 bits, as `split_kernels` likes them.
    count_bits = min(COUNT_BITS, max(4 if len(curvatures) else 12, n.bit_length()))
    room = 64 - 3 * count_bits - 1
    bits = min(room * 9 // 21, 24) if len(curvatures) else 0
    gradient_bits = min(room - bits, 30) if bits else min(64 - 2 * count_bits - 1, 36)
    most = 2.0**gradient_bits - 1, 2.0**bits - 1
    scales = _scale(gradients, tops[0], most[0]), _scale(curvatures, tops[1], most[1])
    factors = most[0] / scales[0], most[1] / scales[1]
    pieces = threads if n > _SPLIT_AMONG_THREADS else 1
    cuts = [n * k // pieces for k in range(pieces + 1)]
    together(
        [
            functools.partial(pack, gradients, curvatures, a, b, key, factors, most, count_bits, bits, packed)
            for a, b in itertools.pairwise(cuts)
        ]
    )
    unit = scales[1] / most[1] if bits else 1.0
    packing = Packing.of(count_bits, bits)
    return Slopes(gradients, curvatures, max(tops), packed, packing, scales[0] / most[0], unit)


def _scale(values: Array, top: float, most: float) -> float:
    """What the largest integer stands for."""
    if not len(values) or top == 0:
        return 1.0
    few = np.abs(values[:: max(1, len(values) // _LOOKED_AT)])
    at = int(0.99 * (len(few) - 1))
    if np.count_nonzero(few >= top * (_FINE / most)) >= len(few) - at:  # no need to know it: it is above
        return top
    usual = float(np.partition(few, at)[at])
    return min(top, most / _FINE * usual) if usual > 0 else top


def warmup() -> None:
    """Compile for the types people use."""
    g, packed = np.zeros(1, np.float32), np.zeros(1, np.int64)
    pack(g, g, 0, 1, 1, (1.0, 1.0), (1.0, 1.0), 14, 9, packed)
