"""The Hessian of softmax regression over a block of rows.

    H = sum_i w_i (diag(p_i) - p_i p_i') (x) z_i z_i',     the third sum of `sums` for K > 1 outputs               (1)

For few classes there is one Gram matrix for each pair; otherwise one for each class, minus that of the rows p (x) z.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.data.layout.blocks import empty_block, scratch_block

__all__ = ["SoftmaxCurvature", "softmax_hessian"]

Array = NDArray[Any]

_FEW_CLASSES = 4  # maximum number of classes for which the Hessian is computed pair by pair
_WIDE_ROWS = 512  # rows per block; a row has as many values as there are parameters


class SoftmaxCurvature(NamedTuple):
    """Curvature of softmax: w and the probabilities, from which C = w (diag(p) - p p')."""

    weight: Array
    p: Array


def softmax_hessian(block: Array, curvature: SoftmaxCurvature) -> Array:
    """Compute (1).

    The rows of diag(p) - p p' sum to 0, so the blocks of one class follow from the rest: the most probable class,
    whose blocks lose no digits this way.
    """
    w, p = curvature
    width, outputs = block.shape[1], p.shape[1]
    shares = np.multiply(p.T, w, order="C")  # of each class
    last = int(np.argmax(shares.sum(axis=1)))
    others = [k for k in range(outputs) if k != last]
    inside = _by_pairs(block, shares, p, others) if outputs <= _FEW_CLASSES else _by_wide_rows(block, w, p, others)
    edge = -inside.sum(axis=2)  # the blocks (k, last)
    corner = -edge.sum(axis=0)
    H = np.empty((outputs, width, outputs, width))
    for i, k in enumerate(others):
        H[k, :, others] = inside[i].transpose(1, 0, 2)
        H[k, :, last], H[last, :, k] = edge[i], edge[i].T
    H[last, :, last] = (corner + corner.T) / 2
    return H.reshape(outputs * width, outputs * width)


def _by_pairs(block: Array, shares: Array, p: Array, classes: list[int]) -> Array:
    """Return the blocks of some classes, of shape (classes, width, classes, width): one Gram matrix for each pair."""
    width, m = block.shape[1], len(classes)
    inside = np.empty((m, width, m, width))
    scaled = scratch_block("scaled rows", len(block), block.shape[1], block.dtype)
    for i, k in enumerate(classes):
        for j in range(i, m):
            share = shares[k] * (1.0 - p[:, k] if i == j else p[:, classes[j]])
            np.multiply(block, np.sqrt(np.maximum(share, 0.0)).astype(block.dtype)[:, None], out=scaled)
            gram = scaled.T @ scaled
            inside[i, :, j] = inside[j, :, i] = gram if i == j else -gram
    return inside


def _by_wide_rows(block: Array, w: Array, p: Array, classes: list[int]) -> Array:
    """Return the same blocks as Gram matrices, one for each class, minus that of the rows p (x) z."""
    n, width, m = len(block), block.shape[1], len(classes)
    inside = np.zeros((m, width, m, width))
    scaled = empty_block(n, width, block.dtype)
    wide_rows = empty_block(min(n, _WIDE_ROWS), m * width, block.dtype)
    for i, k in enumerate(classes):
        np.multiply(block, np.sqrt(w * p[:, k]).astype(block.dtype)[:, None], out=scaled)
        inside[i, :, i] = scaled.T @ scaled
    square = inside.reshape(m * width, m * width)
    weighted = (p[:, classes] * np.sqrt(w)[:, None]).astype(block.dtype)
    for a in range(0, n, _WIDE_ROWS):
        rows = slice(a, min(a + _WIDE_ROWS, n))
        wide = wide_rows[: rows.stop - a]
        np.multiply(weighted[rows, :, None], block[rows, None, :], out=wide.reshape(-1, m, width))
        square -= wide.T @ wide
    return inside
