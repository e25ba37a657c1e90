"""Tables of mixed columns block by block: frames, arrays and files behind one face.

A block is a stretch of rows on a fixed grid; its columns are numbers (float64, NaN where missing), moments in time
(datetime64 in microseconds, NaT) or text (an Arrow array of strings, null; of codes and words where asked for). A
column of integers, floats, decimals or booleans is numbers whichever library keeps it, so that frames and files give
the same sums.

Files are read once, from the first row to the last, by whoever hands out the blocks; raw columns become those of a
block on the threads of the engine. So reading goes on while others compute, and no row group is decoded twice.
"""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.data.frames import column_numbers, frame_library, is_frame, opened, plain_doubles
from summula.core.data.numbers import Origin, real_numbers, refuse_silent_conversions
from summula.core.data.readers.table import decoded
from summula.core.data.scan import Scan
from summula.core.errors import DataError

__all__ = ["BLOCK_ROWS", "Blocks", "Columns", "Piece", "blocks_in_order", "table_blocks", "texts_with_places"]

Array = NDArray[Any]

BLOCK_ROWS = 1 << 15  # rows of a block; the grid of the sums
_NUMBERS = ("float64", "float32", "number")
_MICROSECONDS = "datetime64[us]"
_ESTIMATOR = "TableEncoder"  # whom errors speak of

Columns = dict[str, Any]


class Piece(NamedTuple):
    """A block that was handed out: its rows, and how to get its columns."""

    start: int
    stop: int
    columns: Callable[[], Columns]


class Blocks(NamedTuple):
    """A table that can be read in any stretch of rows, or from the first row to the last (`walk`)."""

    names: list[str]
    n_rows: int
    read: Callable[[int, int], Columns]
    streams: bool
    walk: Callable[[], Iterator[Piece]] | None = None

    def parts(self) -> list[tuple[int, int]]:
        """The stretches of the grid."""
        return [(start, min(start + BLOCK_ROWS, self.n_rows)) for start in range(0, self.n_rows, BLOCK_ROWS)]

    def pieces(self) -> Any:
        """All blocks in order, as a sequence to go through once."""
        return _Pieces(self)


class _Pieces:
    """Blocks that are read when they are asked for."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks

    def __len__(self) -> int:
        return -(-self._blocks.n_rows // BLOCK_ROWS)

    def __iter__(self) -> Iterator[Piece]:
        blocks = self._blocks
        if blocks.walk is not None:
            return blocks.walk()
        return (Piece(a, b, functools.partial(blocks.read, a, b)) for a, b in blocks.parts())


def table_blocks(X: Any, names: list[str] | None = None, *, as_stored: bool = False) -> Blocks:
    """A frame, a scan or a two-dimensional array as blocks; of a table with names some columns, in any order.

    `as_stored` is for those who look at a block once and keep nothing: columns of files may share memory with what was
    read, and text may be an Arrow array of codes and words.
    """
    if isinstance(X, Scan):
        columns = X.columns if names is None else names
        files = X.in_arrow(BLOCK_ROWS)
        walk = functools.partial(_walk, files, columns, as_stored) if columns else None
        return Blocks(columns, X.n_rows, _reader_of_files(files, columns, as_stored), True, walk)
    if is_frame(X):
        frame = opened(X)
        named = {str(name): name for name in frame.columns}  # names of pandas may be numbers
        columns = list(named) if names is None else names
        plain = plain_doubles(X)
        read = {name: plain[name] if name in plain else _of_series(frame.get_column(named[name])) for name in columns}
        return Blocks(columns, len(frame), _slicer(read), False)
    values = np.asarray(X)
    columns = [f"x{j}" for j in range(values.shape[1])] if names is None else names
    kept = {name: _of_objects(values[:, j], Origin(f"Column {j}", f"X[:, {j}]")) for j, name in enumerate(columns)}
    return Blocks(columns, len(values), _slicer(kept), False)


def _slicer(columns: Columns) -> Callable[[int, int], Columns]:
    return lambda start, stop: {name: column[start:stop] for name, column in columns.items()}


def _reader_of_files(scan: Scan, names: list[str], as_stored: bool) -> Callable[[int, int], Columns]:
    def read(start: int, stop: int) -> Columns:
        return _joined(scan, names, as_stored, list(scan.read(start, stop, names)) if names else [])

    return read


def _joined(scan: Scan, names: list[str], as_stored: bool, batches: Sequence[Sequence[Any]]) -> Columns:
    return {
        name: _of_file(list(pieces), scan.kinds[name], name, as_stored)
        for name, pieces in zip(names, zip(*batches, strict=True), strict=True)
    }


def _walk(scan: Scan, names: list[str], as_stored: bool) -> Iterator[Piece]:
    """The blocks of files; nothing is decoded twice, wherever row groups begin."""
    start = filled = 0
    batches: list[tuple[Any, ...]] = []
    for batch in scan.read(0, scan.n_rows, names):
        begin, length = 0, len(batch[0])
        while begin < length:
            take = min(length - begin, start + BLOCK_ROWS - filled)
            batches.append(tuple(column[begin : begin + take] for column in batch))
            begin, filled = begin + take, filled + take
            if filled == start + BLOCK_ROWS or filled == scan.n_rows:
                yield Piece(start, filled, functools.partial(_joined, scan, names, as_stored, batches))
                start, batches = filled, []


def _of_file(pieces: list[Any], kind: str, name: str, as_stored: bool) -> Any:
    """One column of a block, from the batches it lies in."""
    if kind == "text" and hasattr(pieces[0], "type"):
        return pieces[0] if as_stored and len(pieces) == 1 and _is_coded(pieces[0]) else _one_text(pieces)
    column = pieces[0] if as_stored and len(pieces) == 1 else np.concatenate(pieces)
    if kind in _NUMBERS:
        return column.astype(np.float64, copy=False)
    if column.dtype.kind == "M":
        return column.astype(_MICROSECONDS, copy=False)
    if kind.startswith("date"):  # days may come as objects
        return np.array(column, _MICROSECONDS)
    if kind == "text":
        return _text(column)
    raise DataError(
        f"Column {name!r} holds {kind} values, and a table needs numbers, text or dates: convert it or leave it out."
    )


def _of_series(series: Any) -> Any:
    """One column of a frame."""
    import narwhals as nw

    dtype, name = series.dtype, series.name
    if str(dtype).startswith(("Date", "Datetime")):
        return np.asarray(series.to_numpy()).astype(_MICROSECONDS)
    if str(dtype).startswith(("String", "Categorical", "Enum")):
        return _text(series.cast(nw.String).to_arrow())
    if series.null_count() == len(series):
        return np.full(len(series), np.nan)
    if str(dtype).startswith(("Time", "Binary")) or dtype.is_nested():
        raise DataError(
            f"Column {name!r} holds {dtype} values, and a table needs numbers, text or dates: convert it or leave it "
            "out."
        )
    if str(dtype).startswith("Object"):
        origin = Origin.column(name, frame_library(series.to_native()))
        return _of_objects(np.asarray(series.to_numpy(), object), origin)
    return column_numbers(series, _ESTIMATOR).astype(np.float64)


def _of_objects(values: Array, origin: Origin) -> Any:
    """A column of an array: numbers where all of it are, dates where all of it are, else text."""
    if values.dtype.kind == "O" and (dates := _dates(values)) is not None:
        return dates
    if values.dtype.kind == "M":
        return values.astype(_MICROSECONDS)
    refuse_silent_conversions(values, origin, _ESTIMATOR)
    if values.dtype.kind in "fiub":
        return values.astype(np.float64)
    listed = values.tolist()
    if not any(hasattr(value, "__len__") for value in listed):
        try:
            return np.array([np.nan if value is None else value for value in listed], np.float64)
        except (TypeError, ValueError):  # neither numbers nor text: what they print as
            pass
    elif not any(isinstance(value, str | bytes) for value in listed):  # lists, say
        real_numbers(values, origin, _ESTIMATOR)
    return _text([None if _missing(value) else str(value) for value in listed])


def _dates(values: Array) -> Array | None:
    """Objects that are all dates or missing as datetime64; None for others."""
    listed = [None if value is None or value != value else value for value in values.tolist()]
    there = [value for value in listed if value is not None]
    if there and all(isinstance(value, datetime.date) and getattr(value, "tzinfo", None) is None for value in there):
        return np.array(listed, _MICROSECONDS)
    return None


def _missing(value: Any) -> bool:
    return value is None or value != value


def _text(values: Any) -> Any:
    """An Arrow array of strings in one piece, null where missing."""
    import pyarrow as pa

    array = values if hasattr(values, "type") else pa.array(values, from_pandas=True)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
        array = array if isinstance(array, pa.Array) else pa.concat_arrays(array.chunks)
    return array.cast(pa.large_string())


def _one_text(pieces: list[Any]) -> Any:
    """Text of several batches, coded in one of many ways or not, as one array without codes."""
    import pyarrow as pa

    plain = [decoded(piece).cast(pa.large_string()) for piece in pieces]
    return plain[0] if len(plain) == 1 else pa.concat_arrays(plain)


def _is_coded(array: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_dictionary(array.type))


def texts_with_places(array: Any) -> tuple[list[str], NDArray[np.intp]]:
    """The different texts of an Arrow array and, for each row, the place of its own; -1 where it is missing."""
    import pyarrow as pa

    if _is_coded(array) and (array.dictionary.null_count or len(array.dictionary) > len(array)):
        array = _one_text([array])
    coded = array if _is_coded(array) else array.dictionary_encode()
    places = coded.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    words, places = coded.dictionary, places.astype(np.intp, copy=False)
    if coded is array:  # a file has one list of words for many rows: those of other rows are left out
        used = np.zeros(len(words) + 1, bool)
        used[places] = True
        renumbered = np.cumsum(used) - 1
        renumbered[-1] = -1
        words, places = words.cast(pa.large_string()).take(pa.array(np.flatnonzero(used[:-1]))), renumbered[places]
    return words.to_pylist(), places


def blocks_in_order(blocks: Blocks, work: Callable[[Columns, int], Any], *, to_user: bool = False) -> Iterator[Any]:
    """A function of every block and its first row, computed on the engine's threads, given in the order of rows.

    `to_user` is for iterators that the user's code consumes: nothing is computed while it has a value.
    """
    from summula.core.engine.engine import local_engine, map_batches

    def of_piece(piece: Piece) -> Any:
        return work(piece.columns(), piece.start)

    engine = local_engine()
    return map_batches(engine, of_piece, blocks.pieces()) if to_user else engine.map_ordered(of_piece, blocks.pieces())
