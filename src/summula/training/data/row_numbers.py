"""Rows in messages of commands are those of the user's file, as an editor or a spreadsheet shows them.

    CSV            lines, the header being line 1 (rows, the header being row 1, where a row may take several lines)
    Parquet, ...   rows, the first being row 1

A command looks at some of the rows at a time: those with a target, those that are not held out. Errors raised there
count these rows from 0; the functions here translate the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.scan import Scan
from summula.core.errors import RowError
from summula.preprocessing.table_encoder_blocks import BLOCK_ROWS

__all__ = ["located_in", "number_in_blocks", "numbered"]


@contextmanager
def located_in(table: Scan) -> Iterator[None]:
    """Errors about a row of a table name its place in the file."""
    try:
        yield
    except RowError as error:
        raise error.located(table.place(error.row)) from None


@contextmanager
def numbered(number: Callable[[int], Any]) -> Iterator[None]:
    """Errors about a row have the number that a function gives for it, from 0 over the whole table."""
    try:
        yield
    except RowError as error:
        raise error.moved(int(number(error.row))) from None


def number_in_blocks(chosen: NDArray[np.bool_], row: int) -> int:
    """The number in the whole table of a row that is counted within its block, of which only chosen rows are there."""
    start = row - row % BLOCK_ROWS
    return start + int(np.flatnonzero(chosen[start : start + BLOCK_ROWS])[row - start])
