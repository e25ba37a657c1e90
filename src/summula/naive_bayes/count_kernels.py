"""Compiled sums of sparse rows by class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.compilation.compile import kernel

__all__ = ["add_sparse", "warmup"]

Array = NDArray[Any]


@kernel
def add_sparse(indptr: Array, indices: Array, data: Array, codes: Array, weight: Array, total: Array) -> None:
    """total[code of row i, column] += w_i x for every stored value of every row; codes below 0 are skipped.

    Without weights `weight` is empty.
    """
    weighted = len(weight) > 0
    for i in range(len(codes)):
        if codes[i] < 0:
            continue
        own = total[np.uint64(codes[i])]
        w = weight[i] if weighted else 1.0
        for place in range(indptr[i], indptr[i + 1]):
            own[np.uint64(indices[place])] += w * data[place]


def warmup() -> None:
    """Compile for the usual types."""
    indptr, indices = np.array([0, 1], np.int32), np.zeros(1, np.int32)
    add_sparse(indptr, indices, np.ones(1), np.zeros(1, np.int32), np.empty(0), np.zeros((1, 1)))
