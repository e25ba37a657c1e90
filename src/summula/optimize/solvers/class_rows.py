"""Validation of rows and class labels for `separating_hyperplane`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from summula.core.data.frames import frame_columns, is_frame
from summula.core.data.sparse_format import check_sparse
from summula.core.errors import DataError

__all__ = ["class_codes", "finite_rows"]

Integers = NDArray[np.int64]


def finite_rows(X: Any) -> Any:
    """Return X as a float array or CSR matrix without missing or infinite values."""
    who = "separating_hyperplane"
    names = None
    if sparse.issparse(X):
        check_sparse(X)
        X = sparse.csr_array(X)
    elif is_frame(X):
        names = [repr(str(name)) for name in getattr(X, "column_names", X.columns)]
        X = frame_columns(X, who)
        X = np.column_stack(X) if isinstance(X, tuple) and X else X
    try:
        rows = X if sparse.issparse(X) else np.asarray(X)
        if rows.dtype.kind == "c":
            raise DataError(f"X is complex; {who} needs real numbers: pass real and imaginary parts as columns.")
        rows = rows if rows.dtype in (np.float64, np.float32) else rows.astype(np.float64)
    except (TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"X is not a table of numbers ({error}); {who} needs one: encode text columns first.") from None
    if rows.ndim != 2 or 0 in rows.shape:
        raise DataError(f"X has shape {rows.shape}; {who} needs a table of at least one row and one column.")
    values = rows.data if sparse.issparse(rows) else rows
    if not np.isfinite(values).all():
        row, column = _first_bad(rows)
        label = f"column {column if names is None else names[column]}"
        raise DataError(
            f"X has a missing or infinite value at row {row}, {label}; {who} needs complete data: impute or drop it."
        )
    return rows


def _first_bad(rows: Any) -> tuple[int, int]:
    if not sparse.issparse(rows):
        row, column = np.argwhere(~np.isfinite(rows))[0]
        return int(row), int(column)
    table = rows.tocoo()
    bad = np.flatnonzero(~np.isfinite(table.data))
    first = bad[np.lexsort((table.col[bad], table.row[bad]))[0]]
    return int(table.row[first]), int(table.col[first])


def class_codes(y: Any, n_rows: int) -> tuple[NDArray[Any], Integers]:
    """Return the sorted classes, and the class index of each row."""
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise DataError(f"y has shape {labels.shape}; it must be a 1d array with one label per row.")
    if len(labels) != n_rows:
        raise DataError(f"X has {n_rows} rows but y has {len(labels)}; y must have one label per row.")
    missing = [_is_missing(label) for label in labels] if labels.dtype.kind == "O" else labels != labels
    if np.any(missing):
        raise DataError(f"The label y is missing at row {int(np.argmax(missing))}; fill it in, or drop the row.")
    try:
        classes, codes = np.unique(labels, return_inverse=True)
    except TypeError:  # labels of mixed types are not ordered
        distinct = sorted(set(labels.tolist()), key=lambda label: (type(label).__name__, str(label)))
        number = {label: k for k, label in enumerate(distinct)}
        classes, codes = np.empty(len(distinct), dtype=object), np.array([number[label] for label in labels.tolist()])
        classes[:] = distinct
    if len(classes) < 2:
        only = classes[0].item() if isinstance(classes[0], np.generic) else classes[0]
        raise DataError(f"All labels in y are {only!r}; at least two classes are needed.")
    return classes, codes.astype(np.int64)


def _is_missing(label: Any) -> bool:
    return label is None or type(label).__name__ in ("NAType", "NaTType") or bool(label != label)
