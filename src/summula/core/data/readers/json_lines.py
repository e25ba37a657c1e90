"""JSON lines: one object per line, whose fields are the columns."""

from __future__ import annotations

import functools
import re
from typing import Any

from summula.core.data.readers.dialects import batches_of, whole_rows
from summula.core.data.readers.text_streams import TextFile
from summula.core.errors import DataError

__all__ = ["rows_of_json"]

_BLOCK = 1 << 23


def rows_of_json(file: TextFile) -> Any:
    """Return the rows of a file as a stream of Arrow batches; types are inferred from the first megabyte."""
    import pyarrow as pa
    from pyarrow import json

    if file.head.lstrip()[:1] == b"[":
        raise DataError(f"{file.path} contains one JSON array; write one object per line, without brackets and commas.")
    head = whole_rows(file)
    try:
        first = json.read_json(pa.BufferReader(head), json.ReadOptions(use_threads=False, block_size=len(head) + 1))
        schema = pa.schema([pa.field(field.name, _type(field.type)) for field in first.schema])
        rows = json.open_json(
            file.stream(),
            json.ReadOptions(use_threads=False, block_size=_BLOCK),
            json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error"),
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise _located(error, file.path) from None
    return pa.RecordBatchReader.from_batches(
        rows.schema, batches_of(rows, pa.ArrowInvalid, functools.partial(_located, path=file.path))
    )


def _type(dtype: Any) -> Any:
    """Return the type for reading: integers and all-missing fields as float64."""
    import pyarrow as pa

    return pa.float64() if pa.types.is_integer(dtype) or pa.types.is_null(dtype) else dtype


def _located(error: BaseException, path: str) -> DataError:
    message = " ".join(str(error).split()).removeprefix("JSON parse error: ").rstrip(".")
    if field := re.search(r"unexpected field(.*)", message):
        return DataError(
            f"{path} has objects with a field that those of the first megabyte do not have{field.group(1)}; give it to "
            "all, as null where it is missing."
        )
    if change := re.search(r"Column\((.*)\) changed from (\w+) to (\w+)", message):
        name, one, other = change.groups()
        return DataError(
            f"Field {name.lstrip('/')!r} of {path} is {one} in some rows and {other} in others; make it one kind."
        )
    return DataError(
        f"{path} is not JSON with one object per line ({message}); write it so, or save it as CSV or Parquet."
    )
