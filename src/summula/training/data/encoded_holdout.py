"""Held-out rows in memory, encoded once for the certificate, the leaderboard and the report."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.preprocessing import TableModel
from summula.preprocessing.table_encoder_blocks import BLOCK_ROWS

__all__ = ["EncodedHoldout", "OnEncodedRows"]

Array = NDArray[Any]

_KEPT_CELLS = 4_000_000  # maximum number of encoded values stored for the report


class EncodedHoldout:
    """The first held-out rows, encoded on first use.

    Parameters
    ----------
    encoders : dict of encoder
        Keys are values of `Entry.codes`.
    X : pyarrow.Table
    y : ndarray
    n_rows : int
        Number of held-out rows; X may contain only the first of them.
    """

    def __init__(self, encoders: dict[bool | None, Any], X: Any, y: Array, n_rows: int) -> None:
        self.X, self.y = X, y
        self._encoders, self._is_one_block = encoders, len(y) == n_rows <= BLOCK_ROWS
        self._encoded: dict[bool | None, Array] = {}

    def rows(self, codes: bool | None) -> Array:
        """Return the rows encoded by one of the encoders."""
        if codes not in self._encoded:
            self._encoded[codes] = np.asarray(self._encoders[codes].transform(self.X))
        return self._encoded[codes]

    def predictor(self, model: TableModel, codes: bool | None) -> Any:
        """Return the model, or an equivalent one for the held-out rows in memory that does not encode them again.

        If there are several blocks, the model itself is returned, which predicts block by block.
        """
        return OnEncodedRows(model, self.rows(codes)) if self._is_one_block else model

    def kept_rows(self, codes: bool | None) -> Array | None:
        """Return the encoded rows, if they are few enough to be stored in addition to the table."""
        found = self._encoded.get(codes)
        return found if found is not None and found.size <= _KEPT_CELLS else None


class OnEncodedRows:
    """A table model as a predictor of encoded rows.

    Parameters
    ----------
    model : TableModel
    rows : ndarray
        The encoded rows of the only table that can be predicted.
    """

    def __init__(self, model: TableModel, rows: Array) -> None:
        self._model, self._rows = model, rows
        if hasattr(model.model, "classes_"):
            self.classes_ = model.classes_

    def predict(self, X: Any) -> Array:
        """Predict all rows of the table X."""
        return np.asarray(self._model._predicted(self._rows))
