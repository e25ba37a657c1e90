"""Results written to files batch by batch: whole or not at all.

Rows go to a temporary file in the folder of the target, which takes the target's name when the last one is written;
until then, and after any error, what was there stays as it was.

Spreadsheets evaluate a cell of a CSV file that begins like a formula, whoever wrote it: a label =HYPERLINK(...) would
run when the file is opened. Such text is written with an apostrophe before it, as OWASP recommends against "CSV
injection", unless the caller asks for it unchanged. Numbers stay numbers, and Parquet is not affected.
"""

from __future__ import annotations

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

# What a spreadsheet takes for the beginning of a formula (full-width forms included), unless the text is a number.
_FORMULA = re.compile("[=+\\-@\\t\\r\\n\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_JOINED = 1 << 19  # numbers that are written at once, or more: a file of many small row groups is slow to read


def spreadsheet_safe(text: str) -> str:
    """Text for a cell of a CSV file: with an apostrophe before it where a spreadsheet would take it for a formula."""
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def write_batches(
    batches: Iterable[Array], names: Sequence[str], path: str | os.PathLike[str], *, raw_text: bool = False
) -> int:
    """Write blocks of rows, one column per name, as Parquet or CSV by the ending of the path; returns how many rows.

    With `raw_text` text is written to CSV unchanged, also where a spreadsheet would take it for a formula.
    """
    import pyarrow as pa

    try:
        tables = (pa.table({name: _column(block[:, j]) for j, name in enumerate(names)}) for block in _joined(batches))
        return write_tables(tables, path, raw_text=raw_text)
    finally:
        if isinstance(batches, Generator):  # after an error nothing is computed any more
            batches.close()


def write_tables(tables: Iterable[Any], path: str | os.PathLike[str], *, raw_text: bool = False) -> int:
    """The same for Arrow tables, one after the other, with the columns and types of the first."""
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
    """An array of NumPy or Arrow as a column to be written; text as codes and words."""
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
    """Larger blocks, of two dimensions."""
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
    """Larger tables."""
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
    """A column as an Arrow array; text as codes and words, so that each word is converted once, not once per row."""
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
    # Few fractions occur twice, so a dictionary of them is useless. Without Arrow's own schema a reader of codes
    # and words gets text.
    repeated = [field.name for field in schema if not pa.types.is_floating(field.type)]
    return parquet.ParquetWriter(path, schema, use_dictionary=repeated or False, store_schema=not texts)


class _Csv:
    """Tables to a CSV file."""

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
    """A column with its words, if it has any, changed by a function."""
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
