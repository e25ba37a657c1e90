"""Quantisation of gradients to integers, for the split search only.

A row's gradient g and hessian h become

    q = floor(g m / s + u),   clipped to -m .. m,        r = floor(h c / t + v),   clipped to 0 .. c,            (1)

with m and c the largest integers that fit in the packing of `tree.histogram_kernels`, s and t the largest |g| and h,
and u, v uniform on [0, 1), so that q and r are unbiased (stochastic rounding). If there are outliers, s is m / 64 times
the 99 % quantile instead, so that they do not round all other rows to zero. u and v are counter-based random numbers of
(seed, tree, row), independent of chunks and threads. Leaf values are computed from the unrounded g and h.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.compilation.compile import kernel
from summula.core.engine.random_kernels import random_bits
from summula.core.engine.threads import together
from summula.tree.growing.histogram_kernels import COUNT_BITS, Packing
from summula.tree.growing.nodes import Gradients

__all__ = ["Scale", "pack", "quantise", "warmup"]

Array = NDArray[Any]

_QUANTILE_ROWS = 2_000  # number of rows from which the quantile is estimated
_QUANTILE_STEPS = 64.0  # minimum integer to which the quantile is mapped
_SHARED_ROWS = 50_000  # above this the rows are divided between threads


class Scale(NamedTuple):
    """Quantisation parameters: factors m / s and c / t, limits m and c, and bits of the packing."""

    gradient_factor: float
    hessian_factor: float
    max_gradient: float
    max_hessian: float
    count_bits: int
    hessian_bits: int


@kernel
def pack(gradients: Any, hessians: Any, start: int, stop: int, key: int, scale: Any, packed: Any) -> None:
    """Compute equation (1) for the rows from `start` up to `stop`, packed."""
    count_bits, hessian_bits, part = np.int64(scale.count_bits), np.int64(scale.hessian_bits), 1.0 / 4294967296.0
    for i in range(start, stop):
        random = random_bits(key, i)
        u = np.float64(random >> np.uint64(32)) * part
        q = np.floor(np.float64(gradients[i]) * scale.gradient_factor + u)
        q = min(max(q, -scale.max_gradient), scale.max_gradient)
        if hessian_bits == 0:
            packed[i] = (np.int64(q) << count_bits) + 1
        else:
            v = np.float64(random & np.uint64(0xFFFFFFFF)) * part
            r = min(np.floor(np.float64(hessians[i]) * scale.hessian_factor + v), scale.max_hessian)
            packed[i] = (np.int64(q) << (2 * count_bits + hessian_bits)) + (np.int64(r) << count_bits) + np.int64(1)


def quantise(
    gradients: Array, hessians: Array, largest: tuple[float, float], key: int, packed: Array, threads: int
) -> Gradients:
    """Return the quantised gradients for growing a tree.

    Parameters
    ----------
    gradients, hessians : ndarray of shape (n,), float32
        Empty hessians mean that all are 1.
    largest : tuple of float
        The largest |g| and the largest h.
    key : int
        Key of the random numbers of this tree (`core.engine.random.stream_key`).
    packed : ndarray of shape (n,), int64
        Output array.
    threads : int
        Maximum number of threads.
    """
    n = len(gradients)
    # Sums of gradients have at most 52 bits, so they are exact as doubles.
    count_bits = min(COUNT_BITS, max(4 if len(hessians) else 12, n.bit_length()))
    n_bits = 64 - 3 * count_bits - 1
    hessian_bits = min(n_bits * 9 // 21, 24) if len(hessians) else 0
    gradient_bits = min(n_bits - hessian_bits, 30) if hessian_bits else min(64 - 2 * count_bits - 1, 36)
    limits = 2.0**gradient_bits - 1, 2.0**hessian_bits - 1
    tops = _top(gradients, largest[0], limits[0]), _top(hessians, largest[1], limits[1])
    scale = Scale(limits[0] / tops[0], limits[1] / tops[1], *limits, count_bits, hessian_bits)
    pieces = threads if n > _SHARED_ROWS else 1
    cuts = [n * k // pieces for k in range(pieces + 1)]
    together(
        [functools.partial(pack, gradients, hessians, a, b, key, scale, packed) for a, b in itertools.pairwise(cuts)]
    )
    hessian_unit = tops[1] / limits[1] if hessian_bits else 1.0
    packing = Packing.of(count_bits, hessian_bits)
    return Gradients(gradients, hessians, max(largest), packed, packing, tops[0] / limits[0], hessian_unit)


def _top(values: Array, largest: float, limit: float) -> float:
    """Return the value that is mapped to the largest integer."""
    if not len(values) or largest == 0:
        return 1.0
    few = np.abs(values[:: max(1, len(values) // _QUANTILE_ROWS)])
    at = int(0.99 * (len(few) - 1))
    if np.count_nonzero(few >= largest * (_QUANTILE_STEPS / limit)) >= len(few) - at:  # the quantile is above
        return largest
    quantile = float(np.partition(few, at)[at])
    return min(largest, limit / _QUANTILE_STEPS * quantile) if quantile > 0 else largest


def warmup() -> None:
    """Compile for the common argument types."""
    g, packed = np.zeros(1, np.float32), np.zeros(1, np.int64)
    pack(g, g, 0, 1, 1, Scale(1.0, 1.0, 1.0, 1.0, 14, 9), packed)
