"""Text tables as people's programs write them: semicolons, decimal commas, line breaks inside quotes, blank lines.

`scan` reads the plain form: commas, decimal points, one row a line. The head of a file tells whether it is in another
form; its rows are then written once to a scratch file, which is gone when the command ends.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from summula.core.data.readers.spool import spooled
from summula.core.data.scan import Scan, _files, scan
from summula.core.errors import DataError

__all__ = ["Dialect", "dialect_of", "open_texts"]

_ENDINGS = (".csv", ".tsv", ".txt")
_HEAD = 1 << 20  # bytes that are looked at
_BLOCK = 1 << 23
_DELIMITERS = (",", ";", "\t", "|")
_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,\d+\s*")
_DECIMAL_POINT = re.compile(r"\s*[-+]?\d+\.\d+\s*")
_DOTTED = re.compile(r"\d{1,2}\.\d{1,2}\.\d{4}( \d{1,2}:\d{2}(:\d{2})?)?")
_SLASHED = re.compile(r"(\d{1,2})/(\d{1,2})/\d{4}( \d{1,2}:\d{2}(:\d{2})?)?")
_FORMATS = {".": "%d.%m.%Y", "d/": "%d/%m/%Y", "m/": "%m/%d/%Y"}
_SPELLED = {".": "31.12.2024", "d/": "31/12/2024", "m/": "12/31/2024"}
_TIMES = ("", " %H:%M", " %H:%M:%S")
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


class Dialect(NamedTuple):
    """How a text file writes a table."""

    delimiter: str = ","
    decimal: str = "."
    breaks: bool = False  # line breaks inside quotes
    blanks: bool = False  # blank lines
    days: str = ""  # how dates are spelled, where not as 2024-12-31

    def said(self) -> str:
        """What is unusual about it, in words."""
        names = {";": "semicolons between fields", "\t": "tabs between fields", "|": "bars between fields"}
        found = [names[self.delimiter]] if self.delimiter in names else []
        found += ["decimal commas"] if self.decimal == "," else []
        found += ["line breaks inside quotes"] if self.breaks else []
        found += ["blank lines"] if self.blanks else []
        found += [f"dates in the form {_SPELLED[self.days]}"] if self.days else []
        return " and ".join([", ".join(found[:-1]), found[-1]] if len(found) > 1 else found)


def open_texts(path: str, remark: Callable[[str], None]) -> Scan:
    """The rows of files; those of text in an unusual form are rewritten first, and that is said."""
    names = _files(path)
    odd = {name: found for name in names if (found := dialect_of(name)) is not None}
    if not odd:
        return scan(path)
    first = next(iter(odd.values()))
    remark(f"{path} is read with {first.said()}.")
    tables: list[Any] = []
    for name in names:
        if name not in odd:
            tables += scan(name).tables
            continue
        tables.append(spooled(_reader(name, odd[name])))
        tables[-1].rewritten_from = name
    return Scan(tables)


def dialect_of(path: str) -> Dialect | None:
    """How a text file is written; None for other files and for the plain form."""
    if not path.lower().endswith(_ENDINGS) or not os.path.isfile(path):
        return None
    with open(path, "rb") as file:
        head = file.read(_HEAD)
    if head.startswith(_UTF_16):
        raise DataError(f"The file {path} is in the encoding UTF-16; save it in the encoding UTF-8.")
    whole = head if len(head) < _HEAD else head[: head.rfind(b"\n") + 1]
    text = whole.decode("utf-8-sig", errors="replace")
    if not text.strip():
        return None
    usual = "\t" if path.lower().endswith(".tsv") else ","
    delimiter = _delimiter(text, usual)
    rows = list(csv.reader(io.StringIO(text), delimiter=delimiter))
    cells = [cell for row in rows[1:] for cell in row]
    commas = delimiter != "," and any(_DECIMAL_COMMA.fullmatch(cell) for cell in cells)
    commas = commas and not any(_DECIMAL_POINT.fullmatch(cell) for cell in cells)
    found = Dialect(
        delimiter,
        "," if commas else ".",
        any("\n" in cell for cell in cells),
        any(not row for row in rows),
        _days(cells),
    )
    return None if found == Dialect(usual) else found


def _days(cells: list[str]) -> str:
    """How dates are spelled; with slashes, a number above 12 tells which one is the day."""
    if any(_DOTTED.fullmatch(cell) for cell in cells):
        return "."
    found = [(int(a), int(b)) for cell in cells if (match := _SLASHED.fullmatch(cell)) for a, b in [match.groups()[:2]]]
    first, second = any(a > 12 for a, _ in found), any(b > 12 for _, b in found)
    return "" if first == second else "d/" if first else "m/"


def _delimiter(text: str, usual: str) -> str:
    """What splits the header, and the rows alike."""
    lines = list(csv.reader(io.StringIO(text[:20_000]), delimiter="\x00", quoting=csv.QUOTE_NONE))[:20]
    header = lines[0][0] if lines and lines[0] else ""

    def fields(delimiter: str) -> int:
        return len(next(csv.reader([header], delimiter=delimiter), []))

    return max((usual, *_DELIMITERS), key=fields)  # of equals the first


def _reader(path: str, dialect: Dialect) -> Any:
    """The rows of a file as a stream of Arrow batches."""
    import pyarrow as pa
    from pyarrow import csv as arrow

    parse = arrow.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=dialect.breaks)
    convert: dict[str, Any] = {
        "decimal_point": dialect.decimal,
        "strings_can_be_null": True,
        "timestamp_parsers": [arrow.ISO8601, *(f"{_FORMATS[dialect.days]}{t}" for t in _TIMES if dialect.days)],
    }
    with open(path, "rb") as file:
        head = file.read(_HEAD)
    options = arrow.ReadOptions(use_threads=False, block_size=_BLOCK)
    try:
        rows = arrow.open_csv(pa.BufferReader(_cut(head, path)), options, parse, arrow.ConvertOptions(**convert))
        types = {field.name: _type(field.type) for field in rows.schema}
        if len(types) < len(rows.schema):
            names = [field.name for field in rows.schema]
            twice = next(name for name in names if names.count(name) > 1)
            raise DataError(f"{path} has more than one column named {twice!r}; give each a name of its own.")
        convert["column_types"] = types
        whole = arrow.open_csv(path, options, parse, arrow.ConvertOptions(**convert))
    except pa.ArrowInvalid as error:
        raise _located(error, path) from None
    return pa.RecordBatchReader.from_batches(whole.schema, _batches(whole, path))


def _cut(head: bytes, path: str) -> bytes:
    """Whole rows of the head; a row that ends outside of it is left out."""
    if len(head) < _HEAD:
        return head
    place = head.rfind(b"\n")
    while place > 0 and head.count(b'"', 0, place) % 2:  # a break inside quotes
        place = head.rfind(b"\n", 0, place)
    if place <= 0:
        raise DataError(f"The first row of {path} does not end within a megabyte; is a quote left open?")
    return head[: place + 1]


def _type(dtype: Any) -> Any:
    """Whole numbers may have fractions later; what is missing so far may be numbers; days stay as they are spelled."""
    import pyarrow as pa

    if pa.types.is_integer(dtype) or pa.types.is_floating(dtype) or pa.types.is_null(dtype):
        return pa.float64()
    if pa.types.is_timestamp(dtype):
        return pa.timestamp("us")
    return dtype if pa.types.is_boolean(dtype) else pa.string()


def _batches(reader: Any, path: str) -> Iterator[Any]:
    import pyarrow as pa

    while True:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            return
        except pa.ArrowInvalid as error:
            raise _located(error, path) from None
        yield batch


def _located(error: BaseException, path: str) -> DataError:
    """What pyarrow says of a row."""
    said = " ".join(str(error).split())
    row = re.search(r"Row #(\d+): ", said)
    where = f"Row {row.group(1)} of {path} (the header is row 1)" if row else path
    if fields := re.search(r"Expected (\d+) columns, got (\d+)", said):
        wanted, got = fields.groups()
        return DataError(
            f"{where} has {got} field{'' if got == '1' else 's'} and the header {wanted}; mend or remove it."
        )
    if value := re.search(r"invalid value ('.*')", said):
        return DataError(
            f"{where} holds {value.group(1)} in a column that holds something else above; make it one kind."
        )
    return DataError(f"{where} cannot be read ({said.rstrip('.')}); mend it, or save it again as CSV in UTF-8.")
