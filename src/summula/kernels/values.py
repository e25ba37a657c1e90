"""The values sum_i c_i k(x_i, x) + b of new rows, block by block."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.data.layout.blocks import product
from summula.kernels.kernel import Kernel
from summula.kernels.rows import Rows, rows_of

__all__ = ["bad_rows", "kernel_values"]

Array = NDArray[Any]

_SOME_ROWS = 512  # rows per block, and
_SOME_FITTED = 384  # rows of the model per block (a multiple of 4 KB would cause cache conflicts)


def kernel_values(
    kernel: Kernel, fitted: Rows, coef: Array, origin: Array | None, intercept: Array | float, chunk: Chunk
) -> Array:
    """Return the values for the rows x of a chunk, shape (n, n_outputs); NaN for rows that are not finite."""
    X = chunk.X if chunk.is_sparse else chunk.block()
    out = np.zeros((len(chunk), coef.shape[1]))
    parts = [slice(b, b + _SOME_FITTED) for b in range(0, len(fitted), _SOME_FITTED)]
    pieces = [(fitted.take(part), coef[part].astype(fitted.dtype)) for part in parts]
    for a in range(0, len(chunk), _SOME_ROWS):
        some = rows_of(X[a : a + _SOME_ROWS], origin, fitted.dtype)
        for rows, mine in pieces:
            out[a : a + _SOME_ROWS] += product(kernel.evaluate(some, rows), mine)
    out[bad_rows(X)] = np.nan
    return np.asarray(out + intercept)


def bad_rows(X: Any) -> NDArray[np.bool_]:
    """Return the mask of rows with NaN or infinities, which some kernels treat as distant points."""
    if hasattr(X, "indptr"):
        if np.isfinite(X.data).all():
            return np.zeros(X.shape[0], bool)
        owner = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        return np.asarray(np.bincount(owner, ~np.isfinite(X.data), X.shape[0]) > 0)
    return np.asarray(~np.isfinite(X).all(axis=1))
