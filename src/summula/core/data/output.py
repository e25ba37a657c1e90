"""Results written to files batch by batch, atomically.

Rows are written to a temporary file in the folder of the target, which is renamed to the target after the last row;
until then, and after any error, an existing file is unchanged.

Spreadsheet programs evaluate cells of a CSV file that look like a formula: a label =HYPERLINK(...) would be executed
when the file is opened. Such text is prefixed with an apostrophe, as OWASP recommends against "CSV injection", unless
the caller requests raw text. Numbers are unchanged, and Parquet is not affected.
"""

from __future__ import annotations

import errno
import functools
import os
import re
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.readers.table import decoded_type
from summula.core.engine.engine import reading_ahead
from summula.core.errors import DataError, OutputError

__all__ = ["check_folder", "column_of", "spreadsheet_safe", "write_batches", "write_tables"]

Array = NDArray[Any]

# Characters that start a formula in spreadsheets (including full-width forms), unless the text is a number.
_FORMULA = re.compile("[=+\\-@\\t\\r\\n\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_JOINED = 1 << 19  # minimum number of values written at once: files with many small row groups are slow to read


def spreadsheet_safe(text: str) -> str:
    """Return text for a CSV cell, prefixed with an apostrophe if a spreadsheet would interpret it as a formula."""
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def write_batches(
    batches: Iterable[Array], names: Sequence[str], path: str | os.PathLike[str], *, raw_text: bool = False
) -> int:
    """Write blocks of rows, one column per name, as Parquet or CSV; return the number of rows.

    With `raw_text` text is written to CSV unchanged, even if a spreadsheet would interpret it as a formula.
    """
    import pyarrow as pa

    try:
        tables = (pa.table({name: _column(block[:, j]) for j, name in enumerate(names)}) for block in _joined(batches))
        return write_tables(tables, path, raw_text=raw_text)
    finally:
        if isinstance(batches, Generator):  # stops computations after an error
            batches.close()


def write_tables(tables: Iterable[Any], path: str | os.PathLike[str], *, raw_text: bool = False) -> int:
    """Write Arrow tables with the columns and types of the first; see `write_batches`."""
    target = os.fspath(path)
    writer_of = _WRITERS.get(os.path.splitext(target)[1].lower())
    if raw_text and writer_of is _Csv:
        writer_of = functools.partial(_Csv, raw_text=True)
    if writer_of is None:
        raise DataError(f"The name of the output file must end in .parquet or .csv, not {target}.")
    folder = os.path.dirname(os.path.abspath(target))
    check_folder(target)
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=".summula-", suffix=os.path.splitext(target)[1])
    os.close(handle)
    rows, writer = 0, None
    try:
        with reading_ahead():
            for table in _joined_tables(tables):
                writer = writer_of(temporary, table.schema) if writer is None else writer
                writer.write_table(table)
                rows += table.num_rows
        if writer is None:
            raise DataError("There are no rows to write.")
        writer.close()
        _publish(temporary, target)
    except BaseException as error:
        if writer is not None:
            with suppress(OSError):  # on a full disk closing fails as well
                writer.close()
        os.unlink(temporary)
        if isinstance(error, UnicodeEncodeError):
            raise DataError(
                f"The text {error.object!r} cannot be written as UTF-8 (it holds half of a surrogate pair); change it."
            ) from None
        if isinstance(error, OSError) and error.errno in _NO_SPACE:
            failure = OutputError(
                f"{target} could not be written ({os.strerror(error.errno)}); nothing was changed: "
                "free disk space, or choose another folder."
            )
            failure.errno = error.errno
            raise failure from error
        raise
    finally:
        if isinstance(tables, Generator):
            tables.close()
    return rows


def check_folder(path: str | os.PathLike[str]) -> None:
    """Raise if the folder of an output file does not exist."""
    target = os.fspath(path)
    folder = os.path.dirname(os.path.abspath(target))
    if not os.path.isdir(folder):
        name = os.path.basename(target)
        raise OutputError(f"The folder {folder} for {name} does not exist; create it, or choose another.")


def column_of(values: Any) -> Any:
    """Return a NumPy or Arrow array as a column to write; text is dictionary-encoded."""
    import pyarrow as pa

    if isinstance(values, np.ndarray):
        return _column(values)
    text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
    return values.cast(pa.string()).dictionary_encode() if text else values


def _publish(temporary: str, target: str) -> None:
    """Rename the finished file, synced to disk, with the permissions of new files."""
    with open(temporary, "rb") as file:
        os.fsync(file.fileno())
    mask = os.umask(0)
    os.umask(mask)
    os.chmod(temporary, 0o666 & ~mask)
    os.replace(temporary, target)


def _joined(batches: Iterable[Array]) -> Iterator[Array]:
    """Concatenate blocks into larger two-dimensional ones."""
    held: list[Array] = []
    size = 0
    for batch in batches:
        block = np.asarray(batch).reshape(len(batch), -1)
        held.append(block)
        size += block.size
        if size >= _JOINED:
            yield held[0] if len(held) == 1 else np.concatenate(held)
            held, size = [], 0
    if held:
        yield held[0] if len(held) == 1 else np.concatenate(held)


def _joined_tables(tables: Iterable[Any]) -> Iterator[Any]:
    """Concatenate tables into larger ones."""
    import pyarrow as pa

    held: list[Any] = []
    for table in tables:
        held.append(table)
        if sum(one.num_rows for one in held) * table.num_columns >= _JOINED:
            yield held[0] if len(held) == 1 else pa.concat_tables(held)
            held = []
    if held:
        yield held[0] if len(held) == 1 else pa.concat_tables(held)


def _column(values: Array) -> Any:
    """Return a column as an Arrow array; text is dictionary-encoded, so that each word is converted only once."""
    import pyarrow as pa

    values = np.ascontiguousarray(values)
    if values.dtype.kind != "U" or not values.itemsize or not len(values):
        array = pa.array(values)
        return array.dictionary_encode() if pa.types.is_string(array.type) else array
    cells = pa.Array.from_buffers(pa.binary(values.itemsize), len(values), [None, pa.py_buffer(values)])
    coded = cells.dictionary_encode()
    words = np.frombuffer(b"".join(coded.dictionary.to_pylist()), values.dtype)
    return pa.DictionaryArray.from_arrays(coded.indices, pa.array(words.tolist(), pa.string()))


def _parquet(path: str, schema: Any) -> Any:
    import pyarrow as pa
    from pyarrow import parquet

    texts = any(pa.types.is_dictionary(field.type) for field in schema)
    # Most fractions are distinct, so a dictionary is useless. Without Arrow's own schema a reader of dictionary-
    # encoded columns gets text.
    repeated = [field.name for field in schema if not pa.types.is_floating(field.type)]
    return parquet.ParquetWriter(path, schema, use_dictionary=repeated or False, store_schema=not texts)


class _Csv:
    """Writer of tables to a CSV file."""

    def __init__(self, path: str, schema: Any, *, raw_text: bool = False) -> None:
        from pyarrow import csv

        self._safe = str if raw_text else spreadsheet_safe
        self._schema = _without_codes(schema, self._safe)
        self._writer = csv.CSVWriter(path, self._schema)

    def write_table(self, table: Any) -> None:
        import pyarrow as pa

        columns = [_words_by(self._safe, column) for column in table.columns]
        self._writer.write_table(pa.table(columns, self._schema.names).cast(self._schema))

    def close(self) -> None:
        self._writer.close()


def _words_by(change: Callable[[str], str], column: Any) -> Any:
    """Apply a function to the words of a column, if it has any."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        return column
    coded = column.combine_chunks()
    words = [None if word is None else change(word) for word in coded.dictionary.to_pylist()]
    return pa.DictionaryArray.from_arrays(coded.indices, pa.array(words, coded.dictionary.type))


def _without_codes(schema: Any, change: Callable[[str], str]) -> Any:
    import pyarrow as pa

    return pa.schema([pa.field(change(field.name), decoded_type(field.type)) for field in schema])


_WRITERS: dict[str, Callable[[str, Any], Any]] = {".parquet": _parquet, ".pq": _parquet, ".csv": _Csv}
