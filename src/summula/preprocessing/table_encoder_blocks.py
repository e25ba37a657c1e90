"""Blocks of tables with mixed columns: a common interface to frames, arrays and files.

A block is a range of rows on a fixed grid; its columns are numbers (float64, NaN if missing), timestamps (datetime64 in
microseconds, NaT if missing) or text (an Arrow array of strings, null if missing, possibly dictionary-encoded). Columns
of integers, floats, decimals or booleans are numbers for every library, so that frames and files give the same sums.

Files are read once, in order, by the thread that distributes the blocks; columns are converted on the threads of the
engine. So reading overlaps with computation, and no row group is decoded twice.
"""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.data.frames import column_numbers, frame_library, is_frame, opened, plain_doubles, plain_texts
from summula.core.data.joined_texts import JoinedTexts, joined_texts
from summula.core.data.numbers import Origin, real_numbers, refuse_silent_conversions
from summula.core.data.readers.table import decoded
from summula.core.data.scan import Scan
from summula.core.errors import DataError

__all__ = [
    "BLOCK_ROWS",
    "Blocks",
    "Columns",
    "Piece",
    "blocks_in_order",
    "observed",
    "table_blocks",
    "texts_with_places",
    "wide_texts",
]

Array = NDArray[Any]

BLOCK_ROWS = 1 << 15  # rows per block
_NUMBERS = ("float64", "float32", "number")
_MICROSECONDS = "datetime64[us]"
_ESTIMATOR = "TableEncoder"  # name in error messages

Columns = dict[str, Any]


class Piece(NamedTuple):
    """A block: its range of rows, and a function that returns its columns."""

    start: int
    stop: int
    columns: Callable[[], Columns]


class Blocks(NamedTuple):
    """A table that can be read in any range of rows, or sequentially (`walk`)."""

    names: list[str]
    n_rows: int
    read: Callable[[int, int], Columns]
    streams: bool
    walk: Callable[[], Iterator[Piece]] | None = None

    def parts(self) -> list[tuple[int, int]]:
        """Return the row ranges of the grid."""
        return [(start, min(start + BLOCK_ROWS, self.n_rows)) for start in range(0, self.n_rows, BLOCK_ROWS)]

    def pieces(self) -> Any:
        """Return all blocks in order, as a sequence that can be iterated over once."""
        return _Pieces(self)


class _Pieces:
    """Blocks that are read lazily."""

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
    """Return a frame, a scan or a two-dimensional array as blocks, with the columns `names` in this order.

    With `as_stored` columns of files may share memory with the reader's buffers, so they must not be retained, and text
    may be a dictionary-encoded Arrow array.
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
        plain = plain_doubles(X) | plain_texts(X)
        read = {name: plain[name] if name in plain else _of_series(frame.get_column(named[name])) for name in columns}
        return Blocks(columns, len(frame), _slicer(read), False)
    values = np.asarray(X)
    columns = [f"x{j}" for j in range(values.shape[1])] if names is None else names
    kept = {name: _of_objects(values[:, j], Origin(f"Column {j}", f"X[:, {j}]")) for j, name in enumerate(columns)}
    return Blocks(columns, len(values), _slicer(kept), False)


def observed(blocks: Blocks, observe: Callable[[Columns, int], None]) -> Blocks:
    """Return the same blocks; a function is called with the columns of each, and its first row, when they are read."""

    def look(columns: Callable[[], Columns], start: int) -> Columns:
        found = columns()
        observe(found, start)
        return found

    def walk() -> Iterator[Piece]:
        for piece in blocks.pieces():
            yield piece._replace(columns=functools.partial(look, piece.columns, piece.start))

    return blocks._replace(walk=walk)


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
    """Yield the blocks of files without decoding any row group twice."""
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
    """Return one column of a block from its batches."""
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
    raise DataError(f"Column {name!r} has {kind} values; a table needs numbers, text or dates: convert or drop it.")


def _of_series(series: Any) -> Any:
    """Return one column of a frame."""
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
            f"Column {name!r} has {dtype} values; a table needs numbers, text or dates: convert or drop it."
        )
    if str(dtype).startswith("Object"):
        origin = Origin.column(name, frame_library(series.to_native()))
        return _of_objects(np.asarray(series.to_numpy(), object), origin)
    return column_numbers(series, _ESTIMATOR).astype(np.float64)


def _of_objects(values: Array, origin: Origin) -> Any:
    """Return a column of an array: numbers or dates if all values are, else text."""
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
        except (TypeError, ValueError):  # neither numbers nor text: converted by str()
            pass
    elif not any(isinstance(value, str | bytes) for value in listed):  # lists, say
        real_numbers(values, origin, _ESTIMATOR)
    return _text([None if _missing(value) else str(value) for value in listed])


def _dates(values: Array) -> Array | None:
    """Return objects that are all dates or missing as datetime64, else None."""
    listed = [None if _missing(value) else value for value in values.tolist()]
    known = [value for value in listed if value is not None]
    if known and all(isinstance(value, datetime.date) and getattr(value, "tzinfo", None) is None for value in known):
        return np.array(listed, _MICROSECONDS)
    return None


def _missing(value: Any) -> bool:
    if value is None or type(value).__name__ == "NAType":
        return True
    return not hasattr(value, "__len__") and bool(value != value)  # (arrays are compared entry by entry)


def _text(values: Any) -> Any:
    """Return a contiguous Arrow array of strings, null if missing."""
    import pyarrow as pa

    array = values if hasattr(values, "type") else pa.array(values, from_pandas=True)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
        array = array if isinstance(array, pa.Array) else pa.concat_arrays(array.chunks)
    return array.cast(pa.large_string())


def _one_text(pieces: list[Any]) -> Any:
    """Concatenate text of several batches, dictionary-encoded or not, into one plain array."""
    import pyarrow as pa

    plain = [decoded(piece).cast(pa.large_string()) for piece in pieces]
    return plain[0] if len(plain) == 1 else pa.concat_arrays(plain)


def _is_coded(array: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_dictionary(array.type))


def texts_with_places(array: Any) -> tuple[list[str], NDArray[np.intp]]:
    """Return the distinct texts of an Arrow array and the index of each row's text, -1 if missing."""
    import pyarrow as pa

    if _is_coded(array) and (array.dictionary.null_count or len(array.dictionary) > len(array)):
        array = _one_text([array])
    coded = array if _is_coded(array) else array.dictionary_encode()
    indices = coded.indices.cast(pa.int64()).fill_null(-1) if coded.null_count else coded.indices
    places = indices.to_numpy(zero_copy_only=False)
    words, places = coded.dictionary, places.astype(np.intp, copy=False)
    if coded is array:  # the dictionary of a file is shared by many rows: drop texts of other rows
        used = np.zeros(len(words) + 1, bool)
        used[places] = True
        renumbered = np.cumsum(used) - 1
        renumbered[-1] = -1
        words, places = words.cast(pa.large_string()).take(pa.array(np.flatnonzero(used[:-1]))), renumbered[places]
    return words.to_pylist(), places


def wide_texts(columns: Columns) -> tuple[list[str], JoinedTexts] | None:
    """Return the text columns of a block with more columns than rows: their names and texts; None where it has none."""
    names = [name for name, column in columns.items() if not isinstance(column, np.ndarray)]
    if not names or len(columns) <= len(columns[names[0]]):
        return None
    arrays = [columns[name] for name in names]
    return names, joined_texts([_one_text([one]) if _is_coded(one) else one for one in arrays])


def blocks_in_order(blocks: Blocks, work: Callable[[Columns, int], Any], *, to_user: bool = False) -> Iterator[Any]:
    """Yield a function of each block and its first row, computed on the engine's threads, in row order.

    `to_user` is for iterators consumed by the user's code: nothing is computed while that code runs.
    """
    from summula.core.engine.engine import local_engine, map_batches

    def of_piece(piece: Piece) -> Any:
        return work(piece.columns(), piece.start)

    engine = local_engine()
    return map_batches(engine, of_piece, blocks.pieces()) if to_user else engine.map_ordered(of_piece, blocks.pieces())
