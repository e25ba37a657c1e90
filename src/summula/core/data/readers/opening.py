"""Tables by the ending of their files."""

from __future__ import annotations

import os

from summula.core.data.readers.binary_tables import IpcTable, NpyTable, ParquetTable
from summula.core.data.readers.csv_table import CsvTable
from summula.core.data.readers.table import Table, first_words
from summula.core.errors import DataError

__all__ = ["open_table"]


def open_table(path: str) -> Table:
    """The table in a file, by its ending."""
    kind = os.path.splitext(path)[1].lower()
    kinds = {
        ".parquet": ParquetTable,
        ".pq": ParquetTable,
        ".csv": CsvTable,
        ".txt": CsvTable,
        ".tsv": CsvTable,
        ".arrow": IpcTable,
        ".feather": IpcTable,
        ".ipc": IpcTable,
        ".npy": NpyTable,
    }
    if kind not in kinds:
        raise DataError(f"The ending of {path} is none that scan reads: {', '.join(kinds)}.")
    try:
        return kinds[kind](path)  # type: ignore[abstract]
    except PermissionError:
        raise DataError(f"The file {path} may not be read by this user.") from None
    except (OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"The file {path} cannot be read; it is damaged or cut short: {first_words(error)}.") from error
