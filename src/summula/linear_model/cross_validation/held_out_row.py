"""A source with one row held out by giving it the weight 0, for leave-one-out cross-validation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from summula.core.data.chunks import Chunk
from summula.core.data.sources import Source, WrappedSource

__all__ = ["HeldOutRowSource"]


class HeldOutRowSource(WrappedSource):
    """Source in which one row has the weight 0."""

    def __init__(self, base: Source, row: int) -> None:
        super().__init__(base)
        self.row, self.weighted, self.is_sparse = row, True, base.is_sparse

    def chunks(self, start: int, stop: int, chunk_rows: int) -> Iterator[Chunk]:
        """The rows from `start` up to `stop`, chunk by chunk."""
        return (self._reweighted(chunk) for chunk in self.base.chunks(start, stop, chunk_rows))

    def chunk(self, start: int, stop: int) -> Chunk:
        """The rows from `start` up to `stop`."""
        return self._reweighted(self.base.chunk(start, stop))

    def only(self, start: int, stop: int) -> HeldOutRowSource:
        """Return the source restricted to these rows."""
        return HeldOutRowSource(self.base.only(start, stop), self.row)

    def _reweighted(self, chunk: Chunk) -> Chunk:
        weight = np.array(chunk.weights, dtype=np.float64)
        if chunk.start <= self.row < chunk.stop:
            weight[self.row - chunk.start] = 0.0
        return replace(chunk, weight=weight)
