"""Dialects of text tables: semicolons, decimal commas, line breaks inside quotes, no header.

The dialect is detected from the head of a file. Files with one row per line are read in place (`csv_table`); the rows
of others, and of compressed files and other encodings, are first written to a scratch file (`rows_of_text`, `spool`).
"""

from __future__ import annotations

import csv
import functools
import io
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from summula.core.data.printable import shortened
from summula.core.data.readers.table import column_kinds, spells_number
from summula.core.data.readers.text_streams import TextFile
from summula.core.errors import DataError

__all__ = [
    "ColumnTypes",
    "Dialect",
    "batches_of",
    "column_types",
    "convert_options",
    "dialect_of",
    "parse_options",
    "rows_of_text",
]

_BLOCK = 1 << 23
_DELIMITERS = (",", ";", "\t", "|")
_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,\d+\s*")
_DECIMAL_POINT = re.compile(r"\s*[-+]?\d+\.\d+\s*")
_DOTTED = re.compile(r"\d{1,2}\.\d{1,2}\.\d{4}( \d{1,2}:\d{2}(:\d{2})?)?")
_SLASHED = re.compile(r"(\d{1,2})/(\d{1,2})/\d{4}( \d{1,2}:\d{2}(:\d{2})?)?")
_BLANK = re.compile(r"(^|\n)\r?\n")
_FORMATS = {".": "%d.%m.%Y", "d/": "%d/%m/%Y", "m/": "%m/%d/%Y"}
_SPELLED = {".": "31.12.2024", "d/": "31/12/2024", "m/": "12/31/2024"}
_TIMES = ("", " %H:%M", " %H:%M:%S")
_COMPARED = 200  # rows compared with the first one
_PADDED = r"^\s*[-+]?0\d"  # 01000: a code, not a number
_WIDE = 500  # minimum number of columns for type detection by the first row
_WORD = re.compile(r"(?!(?:true|false|null|nan|na|none|inf|infinity)\Z)[a-z][a-z0-9_-]*", re.IGNORECASE)


class Dialect(NamedTuple):
    """Format of a text file."""

    delimiter: str = ","
    decimal: str = "."
    breaks: bool = False  # line breaks inside quotes
    blanks: bool = False  # blank lines
    days: str = ""  # date format, if not 2024-12-31
    returns: bool = False  # lines end with carriage returns only
    header: bool = True  # whether the first line contains names

    @property
    def one_row_per_line(self) -> bool:
        """Whether rows end exactly at line feeds."""
        return not (self.breaks or self.blanks or self.returns)

    def peculiarities(self, usual: str = ",") -> list[str]:
        """Describe how the text differs from the usual dialect."""
        names = {";": "semicolons between fields", "\t": "tabs between fields", "|": "bars between fields"}
        found = [names[self.delimiter]] if self.delimiter in names and self.delimiter != usual else []
        found += ["decimal commas"] if self.decimal == "," else []
        found += ["line breaks inside quotes"] if self.breaks else []
        found += ["blank lines"] if self.blanks else []
        found += ["carriage returns between lines"] if self.returns else []
        return found + ([f"dates in the form {_SPELLED[self.days]}"] if self.days else [])


def dialect_of(text: str, usual: str = ",", header: bool | None = None) -> Dialect:
    """Detect the dialect of a text from its head.

    Parameters
    ----------
    text : str
    usual : str
        Delimiter assumed if none is detected.
    header : bool, optional
        Whether the first line contains names; detected if None.
    """
    returns = "\r" in text and "\n" not in text
    text = text.replace("\r", "\n") if returns else text
    delimiter = _delimiter(text, usual)
    rows = _parsed(text, delimiter) if '"' in text else None
    blanks = _BLANK.search(text) is not None if rows is None else any(not row for row in rows)
    breaks = rows is not None and any("\n" in cell for row in rows[1:] for cell in row)
    decimal, days = ".", ""
    if _may_hold_commas_or_days(text, delimiter):
        rows = _parsed(text, delimiter) if rows is None else rows
        cells = [cell for row in rows[1:] for cell in row]
        decimal, days = _decimal(cells, delimiter), _days(cells)
    found = Dialect(delimiter, decimal, breaks, blanks, days, returns)
    return found._replace(header=_has_header(text, found) if header is None else header)


def _parsed(text: str, delimiter: str) -> list[list[str]]:
    """Return the rows of a text, with fields of any length."""
    limit = csv.field_size_limit()
    csv.field_size_limit(max(limit, len(text)))
    try:
        return list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    finally:
        csv.field_size_limit(limit)


def _may_hold_commas_or_days(text: str, delimiter: str) -> bool:
    """Whether decimal commas or dates are possible; plain searches first, which are faster than patterns."""
    return bool(
        (delimiter != "," and re.search(r"\d,\d", text))
        or ("/" in text and re.search(r"\d/\d+/\d{4}", text))
        or ("." in text and re.search(r"\d\.\d+\.\d{4}", text))
    )


def _decimal(cells: list[str], delimiter: str) -> str:
    """Return the decimal separator: a comma where it cannot end a field and no number has a point."""
    with_commas = delimiter != "," and any(_DECIMAL_COMMA.fullmatch(cell) for cell in cells)
    return "," if with_commas and not any(_DECIMAL_POINT.fullmatch(cell) for cell in cells) else "."


def _days(cells: list[str]) -> str:
    """Return the format of dates; with slashes, a number above 12 determines which one is the day."""
    if any(_DOTTED.fullmatch(cell) for cell in cells):
        return "."
    found = [(int(a), int(b)) for cell in cells if (match := _SLASHED.fullmatch(cell)) for a, b in [match.groups()[:2]]]
    first, second = any(a > 12 for a, _ in found), any(b > 12 for _, b in found)
    return "" if first == second else "d/" if first else "m/"


def _delimiter(text: str, usual: str) -> str:
    """Return the delimiter of the header and the rows."""
    lines = list(csv.reader(io.StringIO(text[:20_000]), delimiter="\x00", quoting=csv.QUOTE_NONE))[:20]
    header = next((line[0] for line in lines if line), "")

    def fields(delimiter: str) -> int:
        return len(next(csv.reader([header], delimiter=delimiter), []))

    return max((usual, *_DELIMITERS), key=fields)  # ties go to the first


def _has_header(text: str, dialect: Dialect) -> bool:
    """Return whether the first line contains names: not if it has numbers, and no text, above numeric columns.

    Equally spaced ascending integers (2019, 2020, 2021) are treated as names.
    """
    rows = [row for row in _parsed(text[:200_000], dialect.delimiter)[:_COMPARED] if row]
    if len(rows) < 3:
        return True
    first, rest = rows[0], rows[1:-1]  # the last may be incomplete

    def number(cell: str) -> bool:
        return spells_number(cell.replace(",", ".") if dialect.decimal == "," else cell)

    numbers = []
    for j, cell in enumerate(first):
        below = [row[j].strip() for row in rest if j < len(row) and row[j].strip()]
        numeric = bool(below) and all(map(number, below))
        if numeric and cell.strip() and not number(cell):
            return True
        if numeric and cell.strip():
            numbers.append(cell.strip())
    if not numbers:
        return True
    whole = all(re.fullmatch(r"\d+", cell) for cell in numbers) and len(numbers) > 1
    steps = {int(b) - int(a) for a, b in itertools.pairwise(numbers)} if whole else set[int]()
    return len(steps) == 1 and min(steps) > 0


# ----------------------------------------------------------------------------------------------------- types of columns


class ColumnTypes(NamedTuple):
    """Arrow types of columns by name: those used for reading, and those inferred from the text."""

    read: dict[str, Any]
    spelled: dict[str, Any]


def parse_options(dialect: Dialect) -> Any:
    """Return Arrow's options for splitting rows and fields."""
    from pyarrow import csv as arrow

    return arrow.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=dialect.breaks)


def convert_options(dialect: Dialect, types: dict[str, Any] | None = None, columns: Sequence[str] | None = None) -> Any:
    """Return Arrow's options for converting fields to values."""
    from pyarrow import csv as arrow

    more: dict[str, Any] = {} if types is None else {"column_types": types, "strings_can_be_null": True}
    more |= {} if columns is None else {"include_columns": list(columns)}
    if dialect.days:
        more["timestamp_parsers"] = [arrow.ISO8601, *(f"{_FORMATS[dialect.days]}{time}" for time in _TIMES)]
    return arrow.ConvertOptions(decimal_point=dialect.decimal, **more)


def column_types(head: bytes, dialect: Dialect, path: str) -> ColumnTypes:
    """Infer names and types from complete rows of the head; numbers are read as float64, and 01000 remains text."""
    import pyarrow as pa
    from pyarrow import compute
    from pyarrow import csv as arrow

    def parsed(convert: Any) -> Any:
        options = arrow.ReadOptions(
            use_threads=False, block_size=len(head) + 2, autogenerate_column_names=not dialect.header
        )
        source = pa.BufferReader(head if head.endswith((b"\n", b"\r")) else head + b"\n")
        return arrow.read_csv(source, options, parse_options(dialect), convert)

    evident = _evident_types(head, dialect)
    try:
        table = parsed(convert_options(dialect, evident) if evident else convert_options(dialect))
    except pa.ArrowInvalid:
        if not evident:
            raise
        table = parsed(convert_options(dialect))  # a later row has text where the first has a number
    spelled = {field.name: field.type for field in table.schema}
    column_kinds(table.schema, path)  # names must be unique
    numeric = [name for name, dtype in spelled.items() if pa.types.is_integer(dtype) or pa.types.is_floating(dtype)]
    if numeric and _may_have_padded_numbers(head, dialect):
        texts = parsed(convert_options(dialect, dict.fromkeys(numeric, pa.string()), numeric))
        cells = pa.chunked_array([chunk for name in numeric for chunk in texts[name].chunks], pa.string())
        matches = compute.fill_null(compute.match_substring_regex(cells, _PADDED), False).to_numpy()
        padded = itertools.compress(numeric, matches.reshape(len(numeric), -1).any(axis=1))
        spelled |= dict.fromkeys(padded, pa.string())
    if not dialect.header:
        spelled = {f"x{j}": dtype for j, dtype in enumerate(spelled.values())}
    return ColumnTypes({name: _type(dtype, dialect) for name, dtype in spelled.items()}, spelled)


def _evident_types(head: bytes, dialect: Dialect) -> dict[str, Any]:
    """Return the types of columns of a wide table whose first value is a word, or a number with decimals.

    Arrow tries several other types before these, which adds up over thousands of columns.
    """
    import pyarrow as pa

    line = head[: head.find(b"\n") + 1]
    if line.count(dialect.delimiter.encode()) < _WIDE:
        return {}
    rows = csv.reader(io.StringIO(head.decode("utf-8", "replace"), newline=""), delimiter=dialect.delimiter)
    first = next(rows)
    names, values = (first, next(rows, [])) if dialect.header else ([f"f{j}" for j in range(len(first))], first)
    decimals = re.compile(rf"-?[0-9]+{re.escape(dialect.decimal)}[0-9]+")
    found = {name: pa.string() for name, one in zip(names, values, strict=False) if _WORD.fullmatch(one)}
    return found | {name: pa.float64() for name, one in zip(names, values, strict=False) if decimals.fullmatch(one)}


def _may_have_padded_numbers(head: bytes, dialect: Dialect) -> bool:
    """Return whether any field may have leading zeros, like 01000: one search instead of one per column."""
    begins = rb'(?:\A|[\r\n"]|' + re.escape(dialect.delimiter.encode()) + rb")[ \t]*[+-]?0[0-9]"
    return re.search(begins, head) is not None


def _type(dtype: Any, dialect: Dialect) -> Any:
    """Return the type for reading: integers and all-missing columns as float64; dates remain text."""
    import pyarrow as pa

    if pa.types.is_integer(dtype) or pa.types.is_floating(dtype) or pa.types.is_null(dtype):
        return pa.float64()
    if pa.types.is_timestamp(dtype) and dialect.days:
        return pa.timestamp("us")
    return dtype if pa.types.is_boolean(dtype) else pa.string()


# ---------------------------------------------------------------------------------------------- rows one after another


def rows_of_text(file: TextFile, dialect: Dialect) -> Any:
    """Return the rows of a file as a stream of Arrow batches."""
    import pyarrow as pa
    from pyarrow import csv as arrow

    try:
        types = column_types(whole_rows(file), dialect, file.path).read
        names = None if dialect.header else list(types)
        options = arrow.ReadOptions(use_threads=False, block_size=_BLOCK, column_names=names)
        rows = arrow.open_csv(file.stream(), options, parse_options(dialect), convert_options(dialect, types))
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        raise _located(error, file.path) from None
    faults = (pa.ArrowInvalid, UnicodeDecodeError, OSError)
    return pa.RecordBatchReader.from_batches(
        rows.schema, batches_of(rows, faults, functools.partial(_located, path=file.path))
    )


def whole_rows(file: TextFile) -> bytes:
    """Return the complete rows of the head."""
    head = file.head
    if file.whole:
        return head
    end = b"\r" if b"\n" not in head else b"\n"
    place = head.rfind(end)
    while place > 0 and head.count(b'"', 0, place) % 2:  # a break inside quotes
        place = head.rfind(end, 0, place)
    if place <= 0:
        raise DataError(f"The first row of {file.path} does not end within a megabyte; check for an unclosed quote.")
    return head[: place + 1]


def batches_of(reader: Any, faults: Any, located: Callable[[BaseException], DataError]) -> Iterator[Any]:
    """Yield the batches of a reader; `located` converts errors of the types `faults` to one with the position."""
    while True:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            return
        except faults as error:
            raise located(error) from None
        yield batch


def _located(error: BaseException, path: str) -> DataError:
    """Return pyarrow's error as one that names the row, or the file if it cannot be read to its end."""
    import pyarrow as pa

    if isinstance(error, OSError) and not isinstance(error, pa.ArrowInvalid):
        return DataError(f"The file {path} cannot be read to its end ({error}); it is corrupt or truncated.")
    message = " ".join(str(error).split())
    row = re.search(r"Row #(\d+): ", message)
    where = f"Row {row.group(1)} of {path} (the header is row 1)" if row else path
    if fields := re.search(r"Expected (\d+) columns, got (\d+)", message):
        wanted, got = fields.groups()
        return DataError(
            f"{where} has {got} field{'' if got == '1' else 's'} and the header {wanted}; fix or remove it."
        )
    if value := re.search(r"invalid value ('.*')", message):
        return DataError(
            f"{where} contains {shortened(value.group(1))}, unlike the values above it; use one type per column."
        )
    if "UTF8" in message or isinstance(error, UnicodeDecodeError):
        return DataError(
            f"{where} contains bytes of another encoding; specify the encoding with --encoding (encoding= in Python)."
        )
    return DataError(f"{where} cannot be read ({message.rstrip('.')}); fix it, or save it again as CSV in UTF-8.")
