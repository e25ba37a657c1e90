"""Histograms of gradients: for each column and bin the sums, over the rows of a node, of gradient, curvature and 1.

The three come packed in one integer a row,

    p = (g << (2 K + c)) + (h << K) + 1,      |g| < 2^(64 - 3K - c - 1),  0 <= h < 2^c,                        (1)

so that a row costs one addition a column. K bits, at most 14, hold a count below 2^K. A node with fewer rows keeps its
histogram packed, shape (columns, 256): a difference of packed sums is the packed sum of the difference. That of a
larger one is wide, shape (columns, 768), three numbers a bin: before there are too many rows packed sums are added to
it. With few rows in all K is smaller, and gradients are finer. With c = 0 every curvature is 1, the count is their sum,
and the gradient has the bits that are left:

    p = (g << K) + 1,      |g| < 2^(64 - 2K - 1).                                                               (2)

Integers add up exactly: the sums are the same in any order, on any number of threads, in any chunks.

Bins are bytes, row by row (one or two cache lines a row of thirty columns); rows of a node are scattered, so a
later one is fetched while this one is added. Columns are taken in blocks whose sums stay in the first cache.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from summula.core.engine.worker_group import LINE, is_cancelled
from summula.core.numerics.compile import kernel
from summula.core.numerics.intrinsics import prefetch

__all__ = ["BLOCK", "COUNT_BITS", "Packing", "accumulate", "block_width", "subtract", "unpacked", "warmup"]

COUNT_BITS = 14  # the largest K
_AHEAD = 24  # rows fetched ahead
BLOCK = 24  # columns summed at once: 48 kB


class Packing(NamedTuple):
    """Where the three parts of a packed integer are: p >> top, (p >> shift) & wide and p & mask."""

    top: int
    shift: int
    wide: int
    mask: int

    @classmethod
    def of(cls, count_bits: int, bits: int) -> Packing:
        """Equation (1), or (2) where `bits`, those of the curvature, are none."""
        mask = (1 << count_bits) - 1
        if not bits:
            return cls(count_bits, 0, mask, mask)
        return cls(2 * count_bits + bits, count_bits, (1 << (count_bits + bits)) - 1, mask)


@kernel
def unpacked(p: int, packing: Any) -> Any:
    """Sums of gradient, curvature and 1."""
    return p >> packing.top, (p >> packing.shift) & packing.wide, p & packing.mask


@kernel
def block_width(columns: int) -> int:
    """Of blocks of about one size, whose sums stay in the first cache."""
    blocks = (columns + BLOCK - 1) // BLOCK
    return (columns + blocks - 1) // blocks


@kernel
def _add_rows(bins: Any, rows: Any, gradients: Any, first: int, last: int, packed: Any) -> None:
    """Add rows to the packed sums of the columns from `first` up to `last`, which are all that `packed` has."""
    n, d = len(rows), np.uint64(bins.shape[1])
    flat, cells = bins.reshape(-1), packed.reshape(-1)
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


@kernel
def _take_apart(packed: Any, sums: Any, packing: Any) -> None:
    """Add packed sums to wide ones, and clear them."""
    for f in range(len(packed)):
        for b in range(256):
            p = packed[f, b]
            if p != 0:
                g, h, c = unpacked(p, packing)
                sums[f, 3 * b] += g
                sums[f, 3 * b + 1] += h
                sums[f, 3 * b + 2] += c
                packed[f, b] = 0


@kernel
def accumulate(
    bins: Any, rows: Any, gradients: Any, first: int, last: int, packing: Any, space: Any, sums: Any, table: Any
) -> None:
    """Sum the rows with these numbers for the columns from `first` up to `last` of `sums`, packed or wide.

    space : room for a block, (24, 256) integers, all zero, and left so.
    table : that of the worker group; the sums are of no use once it is cancelled.
    """
    sums[first:last] = 0
    width = block_width(last - first)
    if sums.shape[1] == 256:
        for low in range(first, last, width):
            high = min(low + width, last)
            _add_rows(bins, rows, gradients, low, high, sums[low:high])
    else:
        for start in range(0, len(rows), packing.mask):
            if is_cancelled(table):
                return
            some = rows[start : start + packing.mask]
            for low in range(first, last, width):
                high = min(low + width, last)
                _add_rows(bins, some, gradients, low, high, space[: high - low])
                _take_apart(space[: high - low], sums[low:high], packing)


@kernel
def subtract(whole: Any, part: Any, rest: Any, first: int, last: int, packing: Any) -> None:
    """The histogram of the rest of a node's rows, for the columns from `first` up to `last`.

    Each is packed or wide; `rest` may be `whole`. Packed integers are what they are modulo 2^64, so that a
    wide histogram may be packed for the difference alone.
    """
    for f in range(first, last):
        if part.shape[1] == rest.shape[1] == whole.shape[1]:
            for b in range(whole.shape[1]):
                rest[f, b] = whole[f, b] - part[f, b]
        elif rest.shape[1] == 256:
            for b in range(256):
                p = (whole[f, 3 * b] << packing.top) + whole[f, 3 * b + 2]
                if packing.shift:
                    p += whole[f, 3 * b + 1] << packing.shift
                rest[f, b] = p - part[f, b]
        else:
            for b in range(256):
                g, h, c = unpacked(part[f, b], packing)
                rest[f, 3 * b] = whole[f, 3 * b] - g
                rest[f, 3 * b + 1] = whole[f, 3 * b + 1] - h
                rest[f, 3 * b + 2] = whole[f, 3 * b + 2] - c


def warmup() -> None:
    """Compile for the types people use."""
    bins, rows, gradients = np.zeros((2, 1), np.uint8), np.arange(2, dtype=np.uint32), np.ones(2, np.int64)
    space = np.zeros((BLOCK, 256), np.int64)
    sums, table = np.zeros((1, 768), np.int64), np.zeros((2, LINE), np.int64)
    accumulate(bins, rows, gradients, 0, 1, Packing.of(COUNT_BITS, 9), space, sums, table)
