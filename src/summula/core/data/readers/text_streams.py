"""Bytes of text files as UTF-8, decompressed and transcoded, after inspecting the head.

Compression is detected by the first bytes, not by the file name. An encoding is detected by its byte order mark, or
from the bytes: UTF-8 if they are valid, UTF-16 if every second one is zero, else Windows-1252 (Latin-1
with a few more characters) unless there are too many control characters, in which case the file is not text.
"""

from __future__ import annotations

import codecs
from typing import Any, NamedTuple

from summula.core.errors import DataError

__all__ = ["HEAD", "TextFile", "compression_of", "open_text", "other_format"]

HEAD = 1 << 20  # bytes inspected

_COMPRESSIONS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2"}
_COMPRESSION_NAMES = {"gzip": "gzip", "zstd": "Zstandard", "bz2": "bzip2"}
_FORMATS = {
    b"PAR1": ("a Parquet file", ".parquet"),
    b"ARROW1": ("an Arrow file", ".arrow"),
    b"\x93NUMPY": ("a NumPy file", ".npy"),
    b"PK\x03\x04": ("a ZIP archive or a spreadsheet", ".xlsx, or unpack it"),
    b"\xd0\xcf\x11\xe0": ("an old Excel file", ".xls"),
    b"%PDF": ("a PDF document", ""),
    b"SQLite format 3": ("an SQLite database", ""),
}
_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_NAMES = {"utf-16": "UTF-16", "utf-16-le": "UTF-16", "utf-16-be": "UTF-16", "cp1252": "Latin-1 (Windows-1252)"}
_UNDEFINED = frozenset(b"\x81\x8d\x8f\x90\x9d")  # in Windows-1252
_CONTROLS = bytes(sorted({*range(32), 127} - set(b"\t\n\v\f\r\x1a\x1b")))
_MOST_CONTROLS = 0.005


class TextFile(NamedTuple):
    """Encoding and compression of a text file, and its first bytes.

    Attributes
    ----------
    path : str
    encoding : str
        Name of a Python codec.
    compression : str or None
    head : bytes
        The first megabyte as UTF-8, without a byte order mark.
    whole : bool
        Whether the head is the whole file.
    """

    path: str
    encoding: str
    compression: str | None
    head: bytes
    whole: bool

    @property
    def in_place(self) -> bool:
        """Whether the file itself is UTF-8, so that it can be read in place."""
        return self.compression is None and self.encoding == "utf-8"

    def peculiarities(self) -> list[str]:
        """Describe the compression and the encoding, if unusual."""
        found = [f"{_COMPRESSION_NAMES[self.compression]} compression"] if self.compression else []
        return (
            found if self.encoding == "utf-8" else [*found, f"the encoding {_NAMES.get(self.encoding, self.encoding)}"]
        )

    def stream(self) -> Any:
        """Open the text as a stream of UTF-8 bytes."""
        import pyarrow as pa

        found = _decompressed(self.path, self.compression)
        return found if self.encoding == "utf-8" else pa.transcoding_input_stream(found, self.encoding, "utf-8")


def _decompressed(path: str, compression: str | None) -> Any:
    import pyarrow as pa

    file = pa.OSFile(path)
    return file if compression is None else pa.CompressedInputStream(file, compression)


def compression_of(head: bytes) -> str | None:
    """Detect the compression from the first bytes."""
    return next((name for magic, name in _COMPRESSIONS.items() if head.startswith(magic)), None)


def other_format(head: bytes) -> tuple[str, str] | None:
    """Return name and extension of a binary format, detected by its first bytes."""
    return next((found for magic, found in _FORMATS.items() if head.startswith(magic)), None)


def open_text(path: str, encoding: str | None = None) -> TextFile:
    """Inspect the head of a text file; raise if it is not text, or not in the requested encoding."""
    with open(path, "rb") as file:
        compression = compression_of(file.read(8))
    try:
        with _decompressed(path, compression) as stream:
            raw = stream.read(HEAD + 4)
    except OSError as error:
        if compression is None:
            raise
        raise DataError(
            f"The file {path} cannot be decompressed ({_COMPRESSION_NAMES[compression]}); it is corrupt or truncated: "
            "obtain it again."
        ) from error
    whole = len(raw) <= HEAD
    name = _checked_encoding(encoding) if encoding is not None else _encoding_of(raw[:HEAD], whole, path)
    try:
        decoder = codecs.getincrementaldecoder("utf-8-sig" if name == "utf-8" else name)()
        head = decoder.decode(raw[:HEAD], whole).encode()
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is not in the encoding {name} (byte {error.start} cannot be decoded); leave --encoding out "
            "(encoding= in Python) to have it detected."
        ) from None
    return TextFile(path, name, compression, head, whole)


def _checked_encoding(name: str) -> str:
    try:
        found = codecs.lookup(name).name
    except LookupError:
        raise DataError(f"There is no encoding {name!r}; give one such as utf-8, utf-16, latin-1 or cp1252.") from None
    return "utf-8" if found in ("utf-8-sig", "ascii") else found


def _encoding_of(raw: bytes, whole: bool, path: str) -> str:
    for mark, name in _MARKS.items():
        if raw.startswith(mark):
            return name
    if found := other_format(raw):
        what, ending = found
        cure = f"give it the ending {ending}" if ending else "export its table as CSV"
        raise DataError(f"{path} is {what}, not text; {cure}.")
    pair = raw[: len(raw) // 2 * 2]
    if pair and (pair[::2].count(0) > 0.4 * len(pair) / 2 or pair[1::2].count(0) > 0.4 * len(pair) / 2):
        little = pair[1::2].count(0) >= pair[::2].count(0)
        if (pair[::2] if little else pair[1::2]).count(0) < 0.01 * len(pair):
            return "utf-16-le" if little else "utf-16-be"
    if len(raw.translate(None, _CONTROLS)) < (1 - _MOST_CONTROLS) * len(raw) or b"\0" in raw:
        raise DataError(f"{path} is not a text file (it contains bytes that are not text); pass a CSV or Parquet file.")
    try:
        codecs.getincrementaldecoder("utf-8")().decode(raw, whole)
    except UnicodeDecodeError:
        return "latin-1" if _UNDEFINED.intersection(raw) else "cp1252"
    return "utf-8"
