"""Origins about which sums are taken: near the means, from the leading rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.numerics.grouped import partition

__all__ = ["far_origin", "pilot_origin", "pilot_origins"]

Array = NDArray[np.float64]

_FAR = 1e3  # ratio of mean to standard deviation from which sums about 0 lose too many digits
_SIDE_BY_SIDE = 512  # values of narrow rows that are added side by side
_FAR_SPARSE = 10.0  # the same for sparse columns without zeros, for which all sums are about that origin


def pilot_origin(chunk: Chunk) -> Array:
    """Return an origin near the mean of [X, Y]: the mean of the leading rows with positive weight.

    For a column that is constant in these rows it is exactly that constant, so that constant columns become exactly 0.
    Sparse features have the origin 0, unless they have no zeros and are so far from 0 that sums of squares lose digits;
    indicators of factors have the origin 0. Values are rounded to the dtype of the products.
    """
    if chunk.is_sparse:
        x_origin = far_origin(chunk)
    elif chunk.has_factors:
        x_origin = np.zeros(chunk.n_features)
        x_origin[: chunk.rows.dense.shape[1]] = _mean_or_constant(chunk.rows.dense, chunk.weight)
    else:
        x_origin = _mean_or_constant(chunk.X, chunk.weight)
    if chunk.y is not None:
        x_origin = np.concatenate([x_origin, _mean_or_constant(chunk.y, chunk.weight)])
    return x_origin.astype(chunk.dtype, copy=False).astype(np.float64, copy=False)


def far_origin(chunk: Chunk) -> Array:
    """Return the means of columns that are far from 0 relative to their spread in the leading rows; else 0."""
    if chunk.weight is not None and not chunk.weight.all():
        chunk = chunk.take(np.flatnonzero(chunk.weight > 0))
    origin = np.zeros(chunk.n_features)
    if chunk.is_sparse:
        X = chunk.rows.csr()
        full = np.flatnonzero(np.bincount(X.indices, minlength=chunk.n_features) >= max(len(chunk), 1))
        few = X[:, full].toarray().astype(np.float64)
    else:
        full = np.flatnonzero(~_are_surely_near(chunk.X))
        few = chunk.X[:, full].astype(np.float64)
    if not few.size:
        return origin
    limit = _FAR_SPARSE if chunk.is_sparse else _FAR
    with np.errstate(invalid="ignore", over="ignore"):
        mean = _mean_or_constant(few, None)
        spread = np.sqrt(_column_sums(np.square(few - mean)) / len(few))
        far = (few != 0).all(axis=0) & (np.abs(mean) > limit * spread) & ((spread > 0) | (np.abs(mean) > _FAR))
    origin[full[far]] = mean[far]
    return origin


def _are_surely_near(rows: NDArray[Any]) -> NDArray[np.bool_]:
    """Return the columns that, by two of the n rows, are certainly not far from 0.

    For any two values a, b of a column: n spread^2 >= (a - b)^2 / 2, and |mean| <= |a| + sqrt(n) spread.
    """
    n = len(rows)
    if n < 2:
        return np.zeros(rows.shape[1], bool)
    with np.errstate(invalid="ignore", over="ignore"):
        a, b = rows[0].astype(np.float64), rows[-1].astype(np.float64)
        spread = np.abs(a - b) / np.sqrt(2.0 * n)
        return np.asarray(spread * (_FAR - np.sqrt(n)) > 2.0 * np.abs(a))  # (2: for rounding)


def _mean_or_constant(block: NDArray[Any], weight: Array | None) -> Array:
    if weight is not None and not weight.all():
        block = block[weight > 0]
        if not len(block):
            return np.zeros(block.shape[1])
    block = np.ascontiguousarray(block)  # so that the result does not depend on the memory layout
    with np.errstate(invalid="ignore", over="ignore"):
        origin: Array = _column_sums(block) / len(block)
        if (block[0] == block[-1]).any():
            constant = (block == block[0]).all(axis=0)
            origin[constant] = block[0, constant]
        if not np.isfinite(origin).all():
            for j in np.flatnonzero(~np.isfinite(origin)):
                finite = block[np.isfinite(block[:, j]), j]
                origin[j] = _mean_or_constant(finite[:, None], None)[0] if 0 < len(finite) < len(block) else 0.0
    return origin


def _column_sums(block: NDArray[Any]) -> Array:
    """Return the column sums of a block in C order; narrow rows are added in parallel, in longer loops."""
    n, d = block.shape
    k = max(1, _SIDE_BY_SIDE // max(d, 1))
    if k == 1 or n < 2 * k:
        return np.asarray(np.add.reduce(block, axis=0, dtype=np.float64))
    m = n // k
    wide = np.add.reduce(block[: m * k].reshape(m, k * d), axis=0, dtype=np.float64)
    return np.asarray(np.add.reduce(wide.reshape(k, d)) + np.add.reduce(block[m * k :], axis=0, dtype=np.float64))


def pilot_origins(chunk: Chunk, n_groups: int) -> Array:
    """Return an origin for each group (`chunk.codes`): its mean over the leading rows, or their overall mean."""
    assert chunk.codes is not None
    features = chunk if chunk.y is None else replace(chunk, y=None)
    groups = [] if chunk.is_sparse else [(code, index) for code, index in partition(chunk.codes) if code >= 0]
    origins = np.empty((n_groups, chunk.n_features))
    if len(groups) < n_groups:
        origins[:] = pilot_origin(features)
    for code, index in groups:
        origins[code] = pilot_origin(features if index is None else features.take(index))
    return origins
