"""Tables of the command line: opened, read, split, and what their target is.

The hold-out is drawn by hashes of (seed, row), so it does not depend on how the file is read.
"""

from __future__ import annotations

import difflib
import glob
import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.cli.dialects import open_texts
from summula.core.data.files import spells_number
from summula.core.data.frames import no_such_column
from summula.core.data.scan import Scan
from summula.core.engine.random import GOLDEN, mix64
from summula.core.errors import DataError, RowError
from summula.preprocessing.table_encoder_blocks import Blocks, Columns, Piece, blocks_in_order, table_blocks

__all__ = [
    "LEAST_ROWS",
    "Task",
    "as_labels",
    "check_target",
    "fold_of",
    "free_memory",
    "held_out",
    "inferred_task",
    "open_table",
    "read_table",
    "rows_of",
    "target_values",
]

Array = NDArray[Any]

LEAST_ROWS = 10
_MOST_DIFFERENT = 0.5  # share of the rows; with more classes there is nothing to learn from
_SEPARATED = re.compile(r"\s*[^\d\s]{0,3}\s*-?\d{1,3}([,.' ]\d{3})+([,.]\d+)?\s*[^\d\s]{0,3}\s*")
_MOST_CODES = 10  # whole numbers from 0 or 1 up to so many are taken for classes


class Task(NamedTuple):
    """What is to be predicted, and how that was known."""

    kind: str  # "classes" or "numbers"
    counts: bool
    said: str


def free_memory() -> float:
    """Bytes of memory that can be had; as many as one likes where the system does not say."""
    with suppress(OSError, ValueError, StopIteration), open("/proc/meminfo", encoding="ascii") as file:
        # Linux: what caches hold can be had as well.
        return 1024.0 * int(next(line for line in file if line.startswith("MemAvailable")).split()[1])
    try:
        return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return float("inf")


def open_table(path: str, remark: Callable[[str], None]) -> Scan:
    """The rows of a file, a pattern or a folder; of a file that is not there the nearest name is said."""
    if not os.path.exists(path) and not glob.has_magic(path):
        folder = os.path.dirname(path) or "."
        names = os.listdir(folder) if os.path.isdir(folder) else []
        near = difflib.get_close_matches(os.path.basename(path), names, n=1)
        hint = f"did you mean {os.path.join(os.path.dirname(path), near[0])}?" if near else "check the path."
        raise DataError(f"There is no file {path}; {hint}")
    return open_texts(path, remark)


def check_target(table: Scan, target: str) -> None:
    """Complain of a target that is no column, with the nearest name."""
    if target not in table.columns:
        raise DataError(no_such_column(target, table.columns))
    if len(table.columns) < 2:
        raise DataError(f"The table has no column but the target {target!r}; give some to predict it from.")


def read_table(table: Scan, names: list[str] | None = None, last: int | None = None) -> Any:
    """All rows in memory, or those up to the last one wanted, as a pyarrow Table."""
    import pyarrow as pa

    names = table.columns if names is None else names
    if not table.n_rows:
        raise DataError("The table has no rows; give one that has.")
    blocks = table_blocks(table, names)
    blocks = blocks if last is None else blocks._replace(n_rows=min(last, table.n_rows), walk=None)
    pieces = list(blocks_in_order(blocks, lambda columns, start: columns))
    return pa.table({name: pa.chunked_array([_arrow(piece[name]) for piece in pieces]) for name in names})


def _arrow(values: Any) -> Any:
    import pyarrow as pa

    return pa.array(values, from_pandas=True) if isinstance(values, np.ndarray) else values


def target_values(column: Any) -> tuple[Array, Array]:
    """The target as an array of numbers or text, and which rows have one."""
    if hasattr(column, "combine_chunks"):
        column = column.combine_chunks()
    there = ~np.asarray(column.is_null().to_numpy(zero_copy_only=False), bool)
    if str(column.type).endswith("string"):
        coded = column.dictionary_encode()  # so that equal texts are one object
        words = np.array([*coded.dictionary.to_pylist(), None], object)
        return words[coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)], there
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind == "M":
        raise DataError("The target holds dates; turn it into a number of days first.")
    return values, there


def as_labels(values: Array) -> Array:
    """Class labels: text, or whole numbers as integers."""
    if values.dtype.kind == "f" and (values == np.floor(values)).all() and np.abs(values).max(initial=0) < 2**53:
        return values.astype(np.int64)
    return values


def inferred_task(values: Array, wanted: str | None, target: str) -> Task:
    """Whether a target holds classes or numbers; `values` are those that are not missing."""
    if not len(values):
        raise DataError(f"Every value of the target {target!r} is missing; there is nothing to learn from.")
    different = np.unique(values.astype(str) if values.dtype.kind == "O" else values)
    if len(different) == 1:
        only = different[0].item()
        raise DataError(f"The target {target!r} is {only!r} in every row; there is nothing to predict: choose another.")
    if values.dtype.kind == "O":
        _check_text(values, different, wanted, target)
        return Task("classes", False, f"{len(different)} classes of text")
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        raise RowError(f"The target {target!r} is infinite", row, "; give a number, or nothing to leave the row out.")
    whole = bool((different == np.floor(different)).all())
    counts = whole and bool(different[0] in (0, 1))  # what is counted is sometimes none
    if wanted is not None:
        if wanted == "classes" and not whole:
            raise DataError(f"The target {target!r} holds fractions such as {different[0]:g}; use --task numbers.")
        return Task(wanted, counts and wanted == "numbers", "as --task says")
    codes = whole and len(different) <= _MOST_CODES and different[0] in (0, 1)
    if len(different) == 2 or (codes and different[-1] - different[0] == len(different) - 1):
        return Task("classes", False, f"{len(different)} different whole numbers; --task numbers takes them as numbers")
    return Task("numbers", counts, "counts" if counts else "numbers")


def _check_text(values: Array, different: Array, wanted: str | None, target: str) -> None:
    """Raise a sentence about text that cannot be told apart as classes, or should have been numbers."""
    many = len(different) > max(_MOST_DIFFERENT * len(values), _MOST_CODES)
    if not many and wanted != "numbers":
        return
    others = {word for word in different.tolist() if not spells_number(word)}
    if others and (wanted == "numbers" or 2 * len(others) < len(different)):
        row = next(row for row, value in enumerate(values) if value in others)
        raise RowError(
            f"The target {target!r} holds {values[row]!r}",
            row,
            ", which is no number, so that it cannot be taken as numbers; write it as one, such as 1000.5, or leave it "
            "empty.",
        )
    if not others:
        raise DataError(f"The target {target!r} holds numbers as text; it cannot be taken as numbers: convert it.")
    spelled = _SEPARATED.fullmatch(str(values[0])) is not None
    cure = "write numbers without thousands separators" if spelled else "choose another column"
    raise DataError(
        f"The target {target!r} holds {len(different):,} different texts in {len(values):,} rows, such as "
        f"{str(values[0])!r}, too many to tell apart; {cure}."
    )


def held_out(rows: int, share: float, seed: int) -> NDArray[np.bool_]:
    """Which rows are set aside: those with the smallest hashes of (seed, row)."""
    aside = np.zeros(rows, bool)
    count = max(1, round(share * rows))
    aside[np.argpartition(_hashes(rows, seed), count - 1)[:count]] = True
    return aside


def fold_of(rows: int, folds: int, seed: int) -> NDArray[np.int8]:
    """The fold of each row: as many in each, by the order of the hashes of (seed, row)."""
    found = np.empty(rows, np.int8)
    found[np.argsort(_hashes(rows, seed), kind="stable")] = np.arange(rows) * folds // max(rows, 1)
    return found


def _hashes(rows: int, seed: int) -> NDArray[np.uint64]:
    return np.asarray(mix64(np.arange(rows, dtype=np.uint64) + np.uint64(seed * GOLDEN % 2**64)))


def rows_of(blocks: Blocks, chosen: NDArray[np.bool_]) -> Blocks:
    """The same table with some of its rows only; blocks keep their places on the grid."""

    def some(columns: Callable[[], Columns], start: int, stop: int) -> Columns:
        kept = chosen[start:stop]
        return {
            name: values[kept] if isinstance(values, np.ndarray) else values.filter(_mask(kept))
            for name, values in columns().items()
        }

    def walk() -> Iterator[Piece]:
        for piece in blocks.pieces():
            yield piece._replace(columns=partial(some, piece.columns, piece.start, piece.stop))

    return blocks._replace(read=lambda a, b: some(partial(blocks.read, a, b), a, b), walk=walk)


def _mask(kept: NDArray[np.bool_]) -> Any:
    import pyarrow as pa

    return pa.array(kept)
