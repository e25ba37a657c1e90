"""Tables and queries of databases as streams of Arrow batches.

    duckdb:shop.duckdb                     a DuckDB file: its only table, or the result of `query`
    duckdb:SELECT * FROM 'rows.parquet'    a query of DuckDB without a database
    postgresql://user@host/shop            PostgreSQL, through ADBC: the result of `query`

A query is SQL, or the name of a table.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from summula.core.errors import DataError

__all__ = ["database_rows", "is_database", "without_password"]

_BATCH_ROWS = 65_536


def is_database(path: str) -> bool:
    """Return whether a path is the address of a database."""
    return path.startswith(("duckdb:", "postgresql:", "postgres:"))


def without_password(address: str) -> str:
    """Return an address with its password, if any, replaced by asterisks."""
    return re.sub(r"(\w+://[^:/@\s]*):\S*@", r"\1:***@", address)


@contextmanager
def database_rows(address: str, query: str | None) -> Iterator[Any]:
    """Open a reader of the rows of a table or a query, within a with-block."""
    if address.startswith("duckdb:"):
        with _duckdb_rows(address.removeprefix("duckdb:").removeprefix("//"), query) as rows:
            yield rows
    else:
        with _postgresql_rows(address, query) as rows:
            yield rows


@contextmanager
def _duckdb_rows(path: str, query: str | None) -> Iterator[Any]:
    try:
        import duckdb
    except ImportError:
        raise DataError("Reading DuckDB needs the package duckdb: pip install duckdb.") from None

    if query is None and re.match(r"\s*(select|from|with|values)\b", path, re.IGNORECASE):
        path, query = ":memory:", path
    elif path != ":memory:" and not os.path.exists(path):
        raise DataError(f"There is no DuckDB file {path}; check the path.")
    try:
        with duckdb.connect(path, read_only=path != ":memory:") as connection:
            wanted = query if query is not None else _only_table(connection, path)
            relation = connection.sql(_select(wanted))
            if relation is None:
                raise DataError(f"The query {wanted!r} returns no rows; pass a SELECT statement.")
            reader = relation.to_arrow_reader if hasattr(relation, "to_arrow_reader") else relation.fetch_arrow_reader
            yield reader(_BATCH_ROWS)
    except duckdb.Error as error:
        if path != ":memory:" and not _is_duckdb(path):
            raise DataError(f"{path} is not a DuckDB file; give it without duckdb: if it is a table.") from None
        raise DataError(f"DuckDB cannot read {path}: {_first_line(error)}.") from None


def _is_duckdb(path: str) -> bool:
    """Return whether a file has DuckDB's magic bytes, after a checksum of eight bytes."""
    try:
        with open(path, "rb") as file:
            return file.read(12)[8:] == b"DUCK"
    except OSError:
        return False


def _only_table(connection: Any, path: str) -> str:
    names = [row[0] for row in connection.sql("SHOW TABLES").fetchall()]
    if len(names) == 1:
        return f'"{names[0]}"'
    found = f"the tables {', '.join(map(repr, names[:10]))}" if names else "no table"
    raise DataError(f"{path} has {found}; specify one with --query NAME (query= in Python), or pass SQL.")


@contextmanager
def _postgresql_rows(address: str, query: str | None) -> Iterator[Any]:
    try:
        from adbc_driver_manager import Error
        from adbc_driver_postgresql import dbapi
    except ImportError:
        raise DataError(
            "Reading PostgreSQL needs adbc-driver-postgresql: pip install adbc-driver-manager adbc-driver-postgresql."
        ) from None

    shown = without_password(address)
    if query is None:
        raise DataError(
            f"{shown} is a database; specify what to read with --query (query= in Python): a table, or SQL."
        )
    try:
        with dbapi.connect(address) as connection, connection.cursor() as cursor:
            cursor.execute(_select(query))
            yield _plain_types(cursor.fetch_record_batch())
    except (Error, dbapi.Error) as error:
        raise DataError(f"PostgreSQL at {shown}: {_first_line(error)}.") from None


def _select(query: str) -> str:
    """Return SQL unchanged, and the name of a table as a query for all its rows."""
    return f"SELECT * FROM {query}" if re.fullmatch(r'\s*[\w.]+\s*|\s*("[^"]+"\.)?"[^"]+"\s*', query) else query


def _first_line(error: BaseException) -> str:
    lines = [line for line in without_password(str(error)).splitlines() if line.strip()]
    return lines[0].strip().rstrip(".!") if lines else type(error).__name__


def _plain_types(reader: Any) -> Any:
    """Convert NUMERIC columns, which the driver returns as text, to float64."""
    import pyarrow as pa

    def is_numeric(dtype: Any) -> bool:
        return isinstance(dtype, pa.BaseExtensionType) and "numeric" in str(dtype)

    if not any(is_numeric(field.type) for field in reader.schema):
        return reader
    schema = pa.schema([pa.field(f.name, pa.float64() if is_numeric(f.type) else f.type) for f in reader.schema])

    def plain(column: Any) -> Any:
        return column.storage.cast(pa.float64()) if is_numeric(column.type) else column

    batches = (pa.record_batch([plain(column) for column in batch.columns], schema=schema) for batch in reader)
    return pa.RecordBatchReader.from_batches(schema, batches)
