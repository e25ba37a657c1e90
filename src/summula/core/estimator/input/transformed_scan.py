"""Rows of files after a transformer: the result of `transform` of a scan, and the input of the next step of a pipeline.

It is an iterator of blocks. An estimator fitted to one reads the files instead, in as many passes as it needs, and
transforms each chunk of rows when it is read. Targets and weights are columns of the files.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.data.scan import Scan
from summula.core.engine.threads import one_blas_thread

__all__ = ["TransformedScan", "lifted"]

Array = NDArray[Any]


class TransformedScan:
    """The transformed blocks of a scan, each of shape (rows of the block, n_outputs)."""

    def __init__(self, scan: Scan | TransformedScan, transformer: Any, blocks: Iterator[Array]) -> None:
        self.scan, self.transformer, self._blocks = scan, transformer, blocks

    def __iter__(self) -> Iterator[Array]:
        return self

    def __next__(self) -> Array:
        return next(self._blocks)

    def __repr__(self) -> str:
        return f"TransformedScan({self.scan!r}, {type(self.transformer).__name__})"

    def close(self) -> None:
        """End the iteration."""
        close = getattr(self._blocks, "close", None)
        if close is not None:
            close()


def lifted(transformer: Any, block: Array) -> Array:
    """Return the transformed rows of a dense block."""
    out = np.empty((len(block), transformer._n_outputs()), block.dtype)
    with one_blas_thread():  # the bits of products may depend on the number of threads
        transformer._write_rows(Chunk(block, None, None, 0, len(block), block.dtype), out)
    return out
