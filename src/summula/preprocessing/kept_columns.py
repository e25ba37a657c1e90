"""Columns of the input that are written unchanged next to predictions: integers remain integers, codes remain text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from summula.core.data.frames import is_frame, no_such_column, opened
from summula.core.data.output import column_of
from summula.core.data.scan import Scan
from summula.core.errors import DataError, ParameterError

__all__ = ["KeptColumns", "kept_columns"]


class KeptColumns:
    """Columns returned in consecutive blocks of rows."""

    def __init__(self, names: Sequence[str], batches: Iterator[Sequence[Any]]) -> None:
        self._names, self._batches = list(names), batches
        self._open: Sequence[Any] = ()
        self._at = 0

    def take(self, rows: int) -> dict[str, Any]:
        """Return the next rows of every column."""
        import pyarrow as pa

        pieces: list[list[Any]] = [[] for _ in self._names]
        while self._names and rows:
            if not self._open or self._at == len(self._open[0]):
                self._open, self._at = next(self._batches), 0
            count = min(rows, len(self._open[0]) - self._at)
            for piece, column in zip(pieces, self._open, strict=True):
                part = column[self._at : self._at + count]
                piece.append(part if hasattr(part, "type") else pa.array(part))
            self._at, rows = self._at + count, rows - count
        return {name: column_of(_joined(piece)) for name, piece in zip(self._names, pieces, strict=True)}


def _joined(pieces: list[Any]) -> Any:
    import pyarrow as pa

    plain = [piece.dictionary_decode() if pa.types.is_dictionary(piece.type) else piece for piece in pieces]
    if len({piece.type for piece in plain}) > 1:  # files may store a column in several types
        plain = [piece.cast(pa.string()) for piece in plain]
    return plain[0] if len(plain) == 1 else pa.concat_arrays(plain)


def kept_columns(X: Any, names: list[str], taken: Sequence[str]) -> KeptColumns:
    """Return some columns of a frame or a scan; raise for missing columns and for names of prediction columns."""
    if not names:
        return KeptColumns((), iter(()))
    if not isinstance(X, Scan) and not is_frame(X):
        raise ParameterError("keep= needs column names, but X has none; pass a frame or a scan.")
    there = X.columns if isinstance(X, Scan) else [str(name) for name in opened(X).columns]
    for name in names:
        if name not in there:
            raise DataError(no_such_column(name, there))
        if name in taken:
            raise ParameterError(
                f"{name!r} is the name of a column of predictions, and cannot be written beside it: omit it, or "
                "rename it in the table."
            )
    if isinstance(X, Scan):
        return KeptColumns(names, X.stored().read(0, X.n_rows, names))
    table = opened(X).select(names).to_arrow().combine_chunks()
    return KeptColumns(names, iter([[table[name].combine_chunks() for name in names]]))
