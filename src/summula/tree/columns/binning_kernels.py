"""Values to bins: a branch-free binary search, one column at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from summula.core.compilation.compile import kernel, row_dtypes

__all__ = ["EDGES", "bin_codes", "bin_values", "warmup"]

EDGES = 256  # length of the array of edges of a column; those after the last are infinite


@kernel
def bin_values(values: Any, edges: Any, out: Any) -> None:
    """Write the number of edges below each value: bin b has edges[b - 1] < x <= edges[b]. Missing values get 255."""
    for i in range(len(values)):
        x = values[i]
        at, step = np.uint64(0), np.uint64(128)
        for _ in range(8):  # comparisons are used as integers, which avoids branch mispredictions
            at += step * np.uint64(edges[at + step - np.uint64(1)] < x)
            step >>= np.uint64(1)
        out[i] = np.uint8(255) if x != x else np.uint8(at)


@kernel
def bin_codes(values: Any, levels: Any, bins: Any, out: Any) -> None:
    """Write the bin of each category, found among the sorted levels; 255 for missing and unknown ones."""
    for i in range(len(values)):
        x = values[i]
        out[i] = np.uint8(255)
        if x == x:
            at = np.int64(x) if 0 <= x < len(levels) else np.int64(0)  # if all codes occur, no search is needed
            if len(levels) and levels[at] != x:
                at = np.searchsorted(levels, x)
            if at < len(levels) and levels[at] == x:
                out[i] = bins[at]


def warmup() -> None:
    """Compile for the usual types."""
    edges, bins = np.full(EDGES, np.inf), np.zeros(1, np.uint8)
    for kind in row_dtypes():
        for values in (np.zeros((2, 2), kind)[:, 0], np.zeros(2, kind)):
            for out in (np.zeros((2, 2), np.uint8)[:, 0],):
                bin_values(values, edges, out)
                bin_codes(values, np.zeros(1), bins, out)
