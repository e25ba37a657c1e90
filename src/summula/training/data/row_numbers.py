"""Row numbers in messages of commands are those of the user's file, as shown by an editor or a spreadsheet.

    CSV            lines, the header being line 1 (rows, the header being row 1, where a row may take several lines)
    Parquet, ...   rows, the first being row 1

Commands process subsets of the rows: those with a target, or those that are not held out. Errors raised there
number these rows from 0; the functions here convert the numbers.
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
    """Convert row numbers in errors to positions in the file."""
    try:
        yield
    except RowError as error:
        raise error.located(table.place(error.row)) from None


@contextmanager
def numbered(number: Callable[[int], Any]) -> Iterator[None]:
    """Convert row numbers in errors by a function to numbers from 0 in the whole table."""
    try:
        yield
    except RowError as error:
        raise error.moved(int(number(error.row))) from None


def number_in_blocks(chosen: NDArray[np.bool_], row: int) -> int:
    """Return the number in the whole table of a row, given its number among the selected rows of its block."""
    start = row - row % BLOCK_ROWS
    return start + int(np.flatnonzero(chosen[start : start + BLOCK_ROWS])[row - start])
