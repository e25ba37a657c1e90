"""Hashes of the rows a model was fitted to, so that unseen rows can be recognised.

    h(row) = M(sum over x_j != 0 of M(bits(x_j) + k_j) + M(target) + M(weight))                                  (1)

with M the finaliser of SplitMix64, k_j a key of column j, and sums modulo 2^64. Zeros contribute nothing, so sparse
and dense rows have the same hashes. Among n rows, a given row has the hash of another with probability about n / 2^64.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.engine.random import GOLDEN, mix64
from summula.core.errors import DataError

__all__ = ["RowHashes", "label_keys", "without_rows"]

Hashes = NDArray[np.uint64]
_TARGET, _WEIGHT = 2**40, 2**41  # instead of a column index


class RowHashes(NamedTuple):
    """The hashes (1) of rows, in order; `params` are the keys of the classes, or None if y is numeric."""

    values: Hashes

    @classmethod
    def map(cls, chunk: Chunk, params: Hashes | None) -> RowHashes:
        """Return the hashes of one chunk."""
        X = chunk.dense(np.float64)
        total = _mixed(X, np.arange(X.shape[1], dtype=np.uint64)).sum(axis=1, dtype=np.uint64)
        if chunk.codes is not None and params is not None:
            total = total + params[np.asarray(chunk.codes)]
        elif chunk.y is not None:
            y = np.asarray(chunk.y, np.float64)
            total = total + _mixed(y, _TARGET + np.arange(y.shape[1], dtype=np.uint64)).sum(axis=1, dtype=np.uint64)
        if chunk.weight is not None:
            w = np.asarray(chunk.weight, np.float64)[:, np.newaxis]
            # (A weight of 1 is equivalent to none.)
            total = total + np.where(w == 1.0, np.uint64(0), _mixed(w, np.array([_WEIGHT], np.uint64)))[:, 0]
        return cls(np.asarray(mix64(total)))

    def merge(self, other: RowHashes) -> RowHashes:
        """Return the hashes of both."""
        return RowHashes(np.concatenate([self.values, other.values]))


def _mixed(values: NDArray[np.float64], columns: Hashes) -> Hashes:
    """Return hashes of values, which depend on their columns; 0 for zeros."""
    with np.errstate(over="ignore"):
        bits = np.ascontiguousarray(values).view(np.uint64) + mix64(columns * np.uint64(GOLDEN) + np.uint64(GOLDEN))
        return np.where(values == 0.0, np.uint64(0), mix64(bits))


def label_keys(classes: Any) -> Hashes:
    """Return a key for each class, independent of its index."""
    keys = []
    for label in np.asarray(classes).tolist():
        word = np.frombuffer(repr(label).encode().ljust(8, b"\0"), np.uint8).astype(np.uint64)
        steps = mix64(word + np.arange(1, len(word) + 1, dtype=np.uint64) * np.uint64(GOLDEN))
        keys.append(mix64(steps.sum(dtype=np.uint64)[np.newaxis])[0])
    return np.array(keys, np.uint64)


def without_rows(kept: Hashes, removed: Hashes, name: str) -> Hashes:
    """Return the remaining hashes; raise for rows that do not occur among them (with sufficient multiplicity)."""
    left, counts = np.unique(kept, return_counts=True)
    found, first, wanted = np.unique(removed, return_index=True, return_counts=True)
    places = np.minimum(np.searchsorted(left, found), max(len(left) - 1, 0))
    there = np.where(left[places] == found, counts[places], 0) if len(left) else np.zeros(len(found), np.intp)
    missing = there < wanted
    if missing.any():
        row, n = int(first[missing].min()), int((wanted - there)[missing].sum())
        rows = "1 of these rows" if n == 1 else f"{n:,} of these rows"
        raise DataError(
            f"{name} was not fitted to {rows} (the first is row {row}), so it cannot forget them: pass rows, "
            "targets and weights "
            "as they were passed to fit."
        )
    counts[places] -= wanted
    return np.repeat(left, counts)
