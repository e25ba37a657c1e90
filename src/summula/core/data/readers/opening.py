"""Open files, patterns, folders, standard input, databases and frames as tables.

Files that support random access by row are read in place: Parquet, Arrow, .npy, and text in UTF-8 with one row per
line. All others are first written to a scratch file, which is removed with the scan.
"""

from __future__ import annotations

import difflib
import glob
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from summula.core.data.readers.binary_tables import IpcTable, NpyTable, ParquetTable
from summula.core.data.readers.csv_table import CsvTable
from summula.core.data.readers.databases import database_rows, is_database, without_password
from summula.core.data.readers.dialects import dialect_of, rows_of_text
from summula.core.data.readers.json_lines import rows_of_json
from summula.core.data.readers.spool import in_temporary_folder, spooled
from summula.core.data.readers.spreadsheets import rows_of_sheet, sheet_path
from summula.core.data.readers.table import Table, first_words
from summula.core.data.readers.text_streams import TextFile, compression_of, open_text
from summula.core.errors import DataError

__all__ = ["Reading", "open_table", "open_tables", "shown_name"]

_IN_PLACE: dict[str, Callable[[str], Table]] = {
    ".parquet": ParquetTable,
    ".pq": ParquetTable,
    ".arrow": IpcTable,
    ".feather": IpcTable,
    ".ipc": IpcTable,
    ".npy": NpyTable,
}
_TEXTS = (".csv", ".tsv", ".txt")
_LINES = (".jsonl", ".ndjson")
_COMPRESSED = (".gz", ".zst", ".bz2")
_STREAMS = (".arrows",)
_STANDARD_INPUT = "standard input"
_SEPARATOR = re.compile(r"[,;\t|]")
_LONGEST_MAGIC = 8  # bytes at the start of a file that name its format


class Reading(NamedTuple):
    """Options for reading files; those that are None are detected.

    Attributes
    ----------
    encoding : str or None
        Encoding of text.
    header : bool or None
        Whether the first line of text contains names.
    query : str or None
        SQL or table name, for databases.
    """

    encoding: str | None = None
    header: bool | None = None
    query: str | None = None


def open_tables(data: Any, reading: Reading) -> list[Table]:
    """Open the given tables, in order."""
    if hasattr(data, "sink_ipc"):  # a LazyFrame of polars
        return [_lazily(data)]
    if hasattr(data, "__arrow_c_stream__"):
        return [spooled(data)]
    found = [open_table(name, reading) for name in _names(data)]
    if not found:
        raise DataError("The list of files is empty; scan needs at least one.")
    if reading.query is not None and not any(is_database(table.shown_as or "") for table in found):
        raise DataError("A query is for databases: give an address such as duckdb:shop.duckdb with it.")
    return found


def shown_name(data: Any) -> str:
    """Return the name of the input, for messages and reports."""
    if isinstance(data, str | os.PathLike):
        name = os.fspath(data)
        return _STANDARD_INPUT if name == "-" else without_password(str(name))
    if isinstance(data, list | tuple) and all(isinstance(one, str | os.PathLike) for one in data):
        return shown_name(data[0]) if len(data) == 1 else f"{len(data)} files"
    return "the table"


def _names(data: Any) -> list[str]:
    if not isinstance(data, str | os.PathLike):
        if not isinstance(data, Iterable):
            raise DataError(f"scan takes a path, a pattern, a list of paths or an Arrow stream, not {data!r}.")
        return [name for one in data for name in _names(one)]
    text = os.path.expanduser(os.fspath(data))
    if text == "-" or is_database(text):
        return [text]
    if os.path.isdir(text):
        return _inside(text)
    if os.path.exists(text) or sheet_path(text) is not None:
        return [text]
    found = sorted(glob.glob(text, recursive=True))
    if not found:
        raise _no_file(text)
    return found


def _inside(folder: str) -> list[str]:
    try:
        inside = sorted(n for n in os.listdir(folder) if not n.startswith((".", "_")))
    except PermissionError:
        raise DataError(f"The folder {folder} is not readable by this user.") from None
    if not inside:
        raise DataError(f"The folder {folder} contains no files to scan; give one that does, or a file.")
    return [os.path.join(folder, name) for name in inside]


def _no_file(path: str) -> DataError:
    folder = os.path.dirname(path) or "."
    if glob.has_magic(path):
        where = "" if os.path.isdir(folder) or glob.has_magic(folder) else f" (there is no folder {folder})"
        return DataError(f"No file is named or matches {path}{where}; check the path.")
    if "://" in path:
        return DataError(
            f"scan does not read URLs such as {without_password(path)}; download the file and pass its path."
        )
    names = os.listdir(folder) if os.path.isdir(folder) else []
    near = _similar(os.path.basename(path), names)
    where = "" if os.path.isdir(folder) else f" (there is no folder {folder})"
    hint = f"did you mean {os.path.join(os.path.dirname(path), near[0])}?" if near else "check the path."
    return DataError(f"There is no file {path}{where}; {hint}")


def _similar(name: str, names: list[str]) -> list[str]:
    """Return the most similar file name, if one is similar even without its extension."""
    near = difflib.get_close_matches(name, names, n=1)
    stems = [one.partition(".")[0] for one in (name, *near)]
    return near if difflib.get_close_matches(stems[0], stems[1:]) else []


def open_table(path: str, reading: Reading = Reading()) -> Table:  # noqa: B008  (a tuple)
    """Open the table in a file (format by extension), on standard input (by its first bytes), or in a database."""
    try:
        if path == "-":
            return _standard_input(reading)
        if is_database(path):
            with database_rows(path, reading.query) as rows:
                return _rewritten(rows, without_password(path))
        return _of_file(path, reading)
    except PermissionError:
        raise DataError(f"The file {path} is not readable by this user.") from None
    except (OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"The file {path} cannot be read; it is corrupt or truncated: {first_words(error)}.") from error


def _of_file(path: str, reading: Reading) -> Table:
    sheet = sheet_path(path)
    if sheet is not None:
        if not os.path.exists(sheet[0]):
            raise _no_file(sheet[0])
        rows, remarks = rows_of_sheet(*sheet)
        return _rewritten(rows, path, remarks)
    if os.path.isdir(path):
        raise DataError(f"{path} is a folder inside a folder; scan a pattern such as {os.path.join(path, '*')}.")
    name = path.lower()
    stem, ending = os.path.splitext(name)
    if ending in _COMPRESSED:
        ending = os.path.splitext(stem)[1]
        if ending not in (*_TEXTS, *_LINES):
            raise DataError(f"{path} is a compressed file that scan does not read; unpack it first (gzip -d, zstd -d).")
    if ending in _IN_PLACE:
        _check_not_text(path, ending)
        return _IN_PLACE[ending](path)
    if ending in _TEXTS:
        return _of_text(open_text(path, reading.encoding), "\t" if ending == ".tsv" else ",", reading.header)
    if ending in _LINES:
        return _rewritten(rows_of_json(open_text(path, reading.encoding)), path)
    if ending in _STREAMS:
        import pyarrow as pa

        with pa.ipc.open_stream(pa.OSFile(path)) as stream:
            return _rewritten(stream, path)
    raise _unknown_ending(path)


def _check_not_text(path: str, ending: str) -> None:
    """Raise for an empty file, and for text with the extension of a binary format."""
    with open(path, "rb") as file:
        head = file.read(256)
    if not head:
        raise DataError(f"The file {path} is empty; write it again.")
    # (A file truncated after its first bytes may consist of the name of its format.)
    if len(head) > _LONGEST_MAGIC and all(byte in b"\t\r\n" or 32 <= byte < 127 for byte in head):
        raise DataError(
            f"{path} is a text file despite its extension {ending}; if it is a CSV file, rename it to .csv."
        )


def _unknown_ending(path: str) -> DataError:
    if path.lower().endswith(".summula"):
        return DataError(f"{path} is a saved model, not a table; give a table, such as a CSV or Parquet file.")
    known = ".csv, .tsv, .jsonl, .parquet, .arrow, .npy, .xlsx and others"
    cure = "read it with pandas or polars and give the frame, or save it as Parquet or CSV"
    if path.lower().endswith(".json"):
        cure = "write one object per line and name the file .jsonl"
    elif path.lower().endswith((".zip", ".7z", ".rar", ".tar", ".tgz")):
        cure = "unpack it, and pass the files in it"
    elif path.lower().endswith((".duckdb", ".ddb")):
        cure = f"a DuckDB file is given as duckdb:{path}"
    elif not os.path.splitext(path)[1]:
        cure = "if it is text, rename it to .csv"
    return DataError(f"scan does not support the file extension of {path} (supported are {known}); {cure}.")


def _of_text(file: TextFile, usual: str, header: bool | None, shown: str | None = None) -> Table:
    """Open a text table: in place if possible, else rewritten."""
    shown = shown or file.path
    if not file.head.strip():
        what = "Standard input" if shown == "standard input" else f"The file {shown}"
        raise DataError(f"{what} is empty; a CSV file begins with a line of column names.")
    text = file.head.decode("utf-8", errors="replace")
    if not file.whole:
        text = text[: max(text.rfind("\n"), text.rfind("\r") if "\n" not in text else 0) + 1] or text
    dialect = dialect_of(text, usual, header)
    _check_first_line(text, shown)
    peculiarities = [*file.peculiarities(), *dialect.peculiarities(usual)]
    remarks = [f"{shown} is read with {_listed(peculiarities)}."] if peculiarities else []
    if not dialect.header and header is None:
        first = next((cell for cell in text.splitlines()[0].split(dialect.delimiter) if cell.strip()), "")
        remarks.append(
            f"{shown} seems to have no header line (its first line begins with {first.strip()!r} and has numbers "
            "above numbers): columns are called x0, x1, ...; --header (header=True in Python) takes that line as names."
        )
    if file.in_place and dialect.one_row_per_line:
        table: Table = CsvTable(file, dialect)
        table.remarks = tuple(remarks)
        return table
    table = _rewritten(rows_of_text(file, dialect), shown, tuple(remarks))
    table.text_numbers = True
    return table


def _check_first_line(text: str, shown: str) -> None:
    """Raise for a web page, and for comment lines above the column names."""
    if re.match(r"\s*<(!doctype html|html|\?xml)", text, re.IGNORECASE):
        raise DataError(f"{shown} is a web page or XML, not a table; download the table itself, as CSV or Parquet.")
    lines = text.splitlines()
    below = next((line for line in lines if not line.startswith("#")), "")
    if lines[0].startswith("#") and not _SEPARATOR.search(lines[0]) and _SEPARATOR.search(below):
        raise DataError(
            f"{shown} begins with a comment ({lines[0][:40]!r}); remove the lines above the names of the columns."
        )


def _listed(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _rewritten(rows: Any, path: str, remarks: tuple[str, ...] = ()) -> Table:
    table = spooled(rows)
    table.rewritten_from, table.remarks = path, remarks
    table.shown_as = path
    return table


def _lazily(frame: Any) -> Table:
    """Open the rows of a LazyFrame, streamed by polars to a scratch file."""

    def collect(folder: str) -> IpcTable:
        path = os.path.join(folder, "rows.arrow")
        frame.sink_ipc(path, compression="uncompressed")
        return IpcTable(path)

    table = in_temporary_folder(collect)
    table.shown_as = "the frame"
    return table


def _standard_input(reading: Reading) -> Table:
    """Return the table on standard input, of any format."""
    if sys.stdin is None or sys.stdin.isatty():
        raise DataError("No data on standard input; pipe a table to it, for example: cat t.csv | summula inspect -")

    def copy(folder: str) -> Table:
        path = os.path.join(folder, "input")
        with open(path, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
        return _of_bytes(path, reading)

    table = in_temporary_folder(copy)
    table.shown_as = _STANDARD_INPUT
    table.rewritten_from = _STANDARD_INPUT
    return table


def _of_bytes(path: str, reading: Reading) -> Table:
    with open(path, "rb") as file:
        head = file.read(16)
    if head.startswith(b"PAR1"):
        return ParquetTable(path)
    if head.startswith(b"ARROW1"):
        return IpcTable(path)
    if head.startswith(b"\xff\xff\xff\xff"):
        import pyarrow as pa

        with pa.ipc.open_stream(pa.OSFile(path)) as stream:
            return _rewritten(stream, _STANDARD_INPUT)
    if head.startswith(b"PK\x03\x04") and compression_of(head) is None:
        rows, remarks = rows_of_sheet(path, None)
        return _rewritten(rows, _STANDARD_INPUT, remarks)
    text = open_text(path, reading.encoding)
    if text.head.lstrip()[:1] == b"{":
        return _rewritten(rows_of_json(text), _STANDARD_INPUT)
    return _of_text(text, ",", reading.header, _STANDARD_INPUT)
