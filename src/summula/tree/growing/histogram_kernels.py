"""Histograms of gradients: for each feature and bin the sums, over the rows of a node, of gradient, hessian and 1.

The three are packed in one integer per row,

    p = (g << (2 K + c)) + (h << K) + 1,      |g| < 2^(64 - 3K - c - 1),  0 <= h < 2^c,                        (1)

so that a row costs one addition per feature. K bits, at most 14, hold a count below 2^K. A node with fewer rows keeps
its histogram packed, shape (features, 256): a difference of packed sums is the packed sum of the difference. That of a
larger one is wide, shape (features, 768), three numbers per bin: packed sums are added to it before they overflow.
With few rows in total K is smaller, and gradients have more bits. With c = 0 every hessian is 1, the count is their
sum, and the gradient has the remaining bits:

    p = (g << K) + 1,      |g| < 2^(64 - 2K - 1).                                                               (2)

Integer addition is exact: the sums are the same in any order, for any number of threads, and for any chunks.

Bins are bytes, row by row (one or two cache lines per row of thirty features); rows of a node are scattered, so later
ones are prefetched. Features are processed in blocks whose sums stay in the first-level cache.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from summula.core.compilation.compile import inlined, internal_kernel
from summula.core.compilation.intrinsics import prefetch
from summula.core.compilation.late_binding import KernelSignature
from summula.core.engine.worker_group import is_cancelled

__all__ = [
    "ACCUMULATE",
    "BINS",
    "BLOCK",
    "COUNT_BITS",
    "Packing",
    "TreeInputs",
    "accumulate",
    "block_width",
    "subtract",
    "unpack",
]

BINS = 256
COUNT_BITS = 14  # largest K
BLOCK = 24  # features per block: 48 kB
_AHEAD = 24  # number of rows to prefetch


class Packing(NamedTuple):
    """Bit layout of a packed integer: p >> top, (p >> shift) & hessian_mask and p & count_mask."""

    top: int
    shift: int
    hessian_mask: int
    count_mask: int

    @classmethod
    def of(cls, count_bits: int, hessian_bits: int) -> Packing:
        """Return the layout (1), or (2) if there are no bits for the hessian."""
        mask = (1 << count_bits) - 1
        if not hessian_bits:
            return cls(count_bits, 0, mask, mask)
        return cls(2 * count_bits + hessian_bits, count_bits, (1 << (count_bits + hessian_bits)) - 1, mask)


class TreeInputs(NamedTuple):
    """Inputs of the histograms of a tree."""

    binned: Any  # (rows, features) of uint8, C order
    packed: Any  # (rows,) of int64
    packing: Packing


@inlined
def unpack(p: int, packing: Any) -> Any:
    """Return sums of gradient, hessian and 1."""
    return p >> packing.top, (p >> packing.shift) & packing.hessian_mask, p & packing.count_mask


@inlined
def block_width(features: int) -> int:
    """Return the width of blocks of about equal size, whose sums stay in the first-level cache."""
    blocks = (features + BLOCK - 1) // BLOCK
    return (features + blocks - 1) // blocks


@internal_kernel
def _add_rows(inputs: Any, rows: Any, first: int, last: int, packed: Any) -> None:
    """Add rows to the packed sums of the features from `first` up to `last`, the only ones in `packed`."""
    gradients = inputs.packed
    n, d = len(rows), np.uint64(inputs.binned.shape[1])
    flat, cells = inputs.binned.reshape(-1), packed.reshape(-1)
    low, width = np.uint64(first), np.uint64(last - first)
    safe = n - _AHEAD
    for i in range(n):
        if i < safe:
            later = np.uint64(rows[i + _AHEAD])
            prefetch(flat, later * d + low)
            prefetch(gradients, later)
        row = np.uint64(rows[i])
        p = gradients[row]
        at = row * d + low
        for j in range(width):
            cells[(np.uint64(j) << np.uint64(8)) + np.uint64(flat[at + np.uint64(j)])] += p


@inlined
def _add_packed(packed: Any, packing: Any, wide: Any, first: int) -> None:
    """Add packed sums to those of a wide histogram from feature `first` on, and clear them."""
    for f in range(len(packed)):
        for b in range(BINS):
            p = packed[f, b]
            if p != 0:
                g, h, c = unpack(p, packing)
                wide[first + f, 3 * b] += g
                wide[first + f, 3 * b + 1] += h
                wide[first + f, 3 * b + 2] += c
                packed[f, b] = 0


def _example_accumulate() -> tuple[Any, ...]:
    sums = np.zeros((1, BINS), np.int64)
    inputs = TreeInputs(np.zeros((1, 1), np.uint8), np.zeros(1, np.int64), Packing(0, 0, 0, 0))
    return inputs, np.zeros(1, np.uint32), 0, 0, sums, sums, sums


ACCUMULATE = KernelSignature(_example_accumulate)


@ACCUMULATE.kernel
def accumulate(inputs: Any, rows: Any, first: int, last: int, block: Any, histogram: Any, table: Any) -> None:
    """Sum the rows with these numbers for the features from `first` up to `last` of a histogram, packed or wide.

    block : scratch of shape (24, 256), all zero before and after.
    table : that of the worker group; the sums are invalid once it is cancelled.
    """
    histogram[first:last] = 0
    width, most = block_width(last - first), inputs.packing.count_mask
    is_packed = histogram.shape[1] == BINS
    for start in range(0, len(rows), max(len(rows), 1) if is_packed else most):
        if is_cancelled(table):
            return
        some = rows if is_packed else rows[start : start + most]
        for low in range(first, last, width):
            high = min(low + width, last)
            sums = histogram[low:high] if is_packed else block[: high - low]
            _add_rows(inputs, some, low, high, sums)
            if not is_packed:
                _add_packed(sums, inputs.packing, histogram, low)


@internal_kernel
def subtract(parent: Any, child: Any, sibling: Any, first: int, last: int, packing: Any) -> None:
    """Compute the histogram of a sibling as parent minus child, for the features from `first` up to `last`.

    Each is packed or wide; `sibling` may be `parent`. Packed arithmetic is modulo 2^64, so a wide histogram may be
    packed just for the difference.
    """
    for f in range(first, last):
        if child.shape[1] == sibling.shape[1] == parent.shape[1]:
            for b in range(parent.shape[1]):
                sibling[f, b] = parent[f, b] - child[f, b]
        elif sibling.shape[1] == BINS:
            for b in range(BINS):
                p = (parent[f, 3 * b] << packing.top) + parent[f, 3 * b + 2]
                if packing.shift:
                    p += parent[f, 3 * b + 1] << packing.shift
                sibling[f, b] = p - child[f, b]
        else:
            for b in range(BINS):
                g, h, c = unpack(child[f, b], packing)
                sibling[f, 3 * b] = parent[f, 3 * b] - g
                sibling[f, 3 * b + 1] = parent[f, 3 * b + 1] - h
                sibling[f, 3 * b + 2] = parent[f, 3 * b + 2] - c
