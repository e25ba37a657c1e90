"""Rows with a constant column in memory, and products with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from summula.core.data.chunks import Chunk
from summula.core.data.layout.blocks import aligned, empty_block, product, scratch_block
from summula.core.engine.engine import local_engine

__all__ = ["BLOCK_ROWS", "RowProducts", "is_small", "rows_in_memory"]

Array = NDArray[Any]

BLOCK_ROWS = 2_048
_SMALL = 2**17  # rows times squared columns up to which a kernel's loops are faster than BLAS calls


def is_small(Z: Any) -> bool:
    """Return whether rows are dense, in double precision, and few enough for a single kernel call per step."""
    return isinstance(Z, np.ndarray) and Z.dtype == np.float64 and Z.size * Z.shape[1] <= _SMALL


class RowProducts:
    """Products with the rows z_i, or with the rows `kept`, block by block on the threads of the engine."""

    def __init__(self, chunk: Chunk, column: float, kept: NDArray[np.intp] | None = None) -> None:
        if chunk.is_sparse:
            Z = rows_in_memory(chunk, column)
            self.Z: Any = Z if kept is None else Z[kept]
        elif kept is None or len(kept) == len(chunk):
            d = chunk.n_features
            self.Z = empty_block(len(chunk), d + (column != 0.0))
            chunk.write(self.Z[:, :d])
            self.Z[:, d:] = column
        else:
            self.Z = aligned(RowProducts(chunk, column).Z[kept])
        n = self.Z.shape[0]
        self._blocks = [slice(a, min(a + BLOCK_ROWS, n)) for a in range(0, n, BLOCK_ROWS)]

    def _sum(self, of_block: Callable[[slice], Array]) -> Array:
        if len(self._blocks) == 1:
            return of_block(self._blocks[0])
        return np.asarray(local_engine().map_reduce(of_block, self._blocks, np.add))

    def scores(self, v: Array) -> Array:
        """Return Z v."""
        if len(self._blocks) == 1:
            return product(self.Z, v)
        return np.concatenate(list(local_engine().map_ordered(lambda part: product(self.Z[part], v), self._blocks)))

    def combined(self, theta: Array) -> Array:
        """Return Z'theta."""
        if len(self._blocks) == 1:
            return product(self.Z.T, theta)
        return self._sum(lambda part: product(self.Z[part].T, theta[part]))

    def gram(self, weight: Array) -> Array:
        """Return Z' diag(weight) Z."""
        root = np.sqrt(weight)

        def of_block(part: slice) -> Array:
            if sparse.issparse(self.Z):
                some = self.Z[part].multiply(root[part, None]).tocsr()
                return np.asarray((some.T @ some).toarray())
            block = scratch_block("weighted rows", part.stop - part.start, self.Z.shape[1])
            np.multiply(self.Z[part], root[part, None], out=block)
            return np.asarray(block.T @ block)

        return self._sum(of_block)


def rows_in_memory(chunk: Chunk, column: float) -> Any:
    """Return the rows z_i of all data as CSR in double precision."""
    X = chunk.X if chunk.is_sparse else sparse.csr_array(chunk.block(np.float64))
    X = X.astype(np.float64)
    if column:
        X = sparse.hstack([X, sparse.csr_array(np.full((len(chunk), 1), column))], format="csr")
    if not X.has_sorted_indices:
        X = X.sorted_indices()
    return X
