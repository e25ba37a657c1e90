"""Labelled rows of a table, on which a model is evaluated: read once, in order, a few blocks at a time.

Columns are converted by `table_encoder_blocks`, whatever the format of the file, so that the hash of a row equals the
one in training.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.scan import Scan
from summula.preprocessing.table_encoder_blocks import Columns, Piece, blocks_in_order, table_blocks

__all__ = ["LabelledRows", "count_labelled_rows", "labelled_row"]

Array = NDArray[Any]


def count_labelled_rows(table: Scan, target: str) -> int:
    """Count the rows with a value of the target, in one pass over its column."""
    blocks = table_blocks(table, [target])
    return sum(blocks_in_order(blocks, lambda columns, start: int(_there(columns[target]).sum())))


def labelled_row(table: Scan, target: str, number: int) -> int:
    """Return the row number in the table of a labelled row, given its number (from 0) among the labelled rows."""
    blocks = table_blocks(table, [target])
    for start, there in blocks_in_order(blocks, lambda columns, start: (start, _there(columns[target]))):
        if number < there.sum():
            return int(start + np.flatnonzero(there)[number])
        number -= int(there.sum())
    raise AssertionError("the row number is beyond the last row")


def _there(values: Any) -> NDArray[np.bool_]:
    if isinstance(values, np.ndarray):
        return np.asarray(~(np.isnat(values) if values.dtype.kind == "M" else np.isnan(values)))
    return np.asarray(values.is_valid().to_numpy(zero_copy_only=False), bool)


class LabelledRows(Scan):
    """A scan without the rows whose target is missing; a range of rows may thus yield fewer rows than its length."""

    def __init__(self, table: Scan, names: Sequence[str], target: str) -> None:
        super().__init__(table.tables, [*names, target])
        self._whole, self._target = table, target
        self._pieces: Iterator[Piece] = iter(())
        self._at, self._open = -1, [""]

    def read(self, start: int, stop: int, columns: Sequence[str]) -> Iterator[tuple[Array, ...]]:
        """Yield the rows of blocks from `start` to `stop`; consecutive ranges decode no block twice."""
        wanted = list(dict.fromkeys([*columns, self._target]))
        if start != self._at or wanted != self._open:
            self._pieces, self._open = iter(table_blocks(self._whole, wanted).pieces()), wanted
            self._at = 0
        while self._at < stop:
            piece = next(self._pieces)
            self._at = piece.stop
            if piece.start >= start:
                found = self._labelled(piece.columns())
                yield tuple(found[name] for name in columns)

    def _labelled(self, columns: Columns) -> dict[str, Array]:
        kept = _there(columns[self._target])
        return {
            name: (values if isinstance(values, np.ndarray) else values.to_numpy(zero_copy_only=False))[kept]
            for name, values in columns.items()
        }
