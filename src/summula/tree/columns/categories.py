"""Encoding of categorical columns as numbers, for arrays, frames, files and Dask collections.

Numbers are unchanged, even if categorical in a frame; text is encoded by its index among the sorted texts of the
column. Missing values, and texts that did not occur in the fit, are NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.factors import Factors, levels_and_places, used_places
from summula.core.data.frames import is_category, opened
from summula.core.data.numbers import array_of
from summula.core.data.sources import MemorySource, Source
from summula.core.errors import DataError

__all__ = ["Categories", "array_name", "check_kinds", "coded_array", "listed_columns"]

Array = NDArray[Any]


class Categories(Factors):
    """Encoder of categorical columns, and the texts of those that contain text.

    Parameters
    ----------
    estimator : str
        Class name, for error messages.
    texts : dict, optional
        Sorted texts of each column from an earlier fit; None learns them.
    listed : collection of str, optional
        The only columns that may contain text; None for any.

    Attributes
    ----------
    found : list of str
        Columns that are categorical in a frame, or contain text.
    """

    def __init__(self, estimator: str, texts: dict[str, tuple[str, ...]] | None, listed: Any = None) -> None:
        super().__init__(estimator, None if texts is None else {})
        self.texts = dict(texts or {})
        self.listed = listed
        self.found: list[str] = []

    def codes(self, name: str, values: Any, start: int = 0) -> NDArray[np.float64]:
        """Return the codes of some values of a column."""
        distinct, places = levels_and_places(name, values, self.estimator)
        used = [distinct[k] for k in used_places(places)]  # a frame may list levels without rows
        if _numeric(used) and name not in self.texts:
            if name not in self.found:
                self.found.append(name)
            numbers = [float(value) if isinstance(value, int | float) else np.nan for value in distinct]
        else:
            if name not in self.texts:
                row = int(np.flatnonzero(places >= 0)[0])
                self._take(name, used, f"{distinct[places[row]]!r} at row {start + row}")
            order = {text: k for k, text in enumerate(self.texts[name])}
            numbers = [order.get(str(value), np.nan) for value in distinct]
            if name not in self.found:
                self.found.append(name)
        return np.array([*numbers, np.nan], np.float64)[places]  # -1, a missing value, is the last

    def distinct(self, name: str, values: Any) -> list[Any]:
        """Return the distinct non-missing values among some values of a column."""
        found, places = levels_and_places(name, values, self.estimator)
        return [found[k] for k in used_places(places)]

    def known(self) -> Categories:
        """Return an encoder with these texts that learns no others."""
        return Categories(self.estimator, self.texts, self.listed)

    def learn(self, name: str, levels: Sequence[Any], *, called: bool = True) -> None:
        """Learn the texts of a column from its distinct values; numbers are categories only if `called` so."""
        if not _numeric(levels):
            self._take(name, levels, repr(levels[0]))
        if called or not _numeric(levels):
            self.found.append(name)

    def _take(self, name: str, levels: Sequence[Any], example: str) -> None:
        """Learn the texts of a column, if it may contain text."""
        if not self.learning:
            raise DataError(
                f"Column {name!r} contains {example}, but was numeric when {self.estimator} was fitted; pass columns "
                "of the same kind."
            )
        if self.listed is not None and name not in self.listed:
            raise DataError(
                f"Column {name!r} contains {example}, could not convert it to a number, and is not among the "
                f"categorical_features; {self.estimator} needs numbers elsewhere: list the column there, encode it, "
                "or drop it."
            )
        self.texts[name] = tuple(sorted({str(level) for level in levels if level is not None}))


def _numeric(values: Sequence[Any]) -> bool:
    return all(isinstance(value, int | float) for value in values if value is not None)


def array_name(j: int) -> str:
    """Return the name of a column of an array, as in scikit-learn."""
    return f"x{j}"


def listed_columns(given: Any, X: Any, others: Sequence[str]) -> tuple[str, ...] | None:
    """Return the names of the columns that may contain text: None for any.

    given : the parameter `categorical_features`.
    others : columns of X used as target or weight.
    """
    if isinstance(given, str):
        return None
    if given is None:
        return ()
    chosen = array_of(given, "categorical_features")
    if chosen.dtype.kind in "UO":
        return tuple(str(name) for name in chosen.ravel())
    names = [str(name) for name in getattr(X, "column_names", getattr(X, "columns", ()))]
    names = [name for name in names if name not in others]
    if not names and isinstance(X, np.ndarray | list | tuple) and len(X) and np.ndim(X[0]) == 1:
        names = [array_name(j) for j in range(len(X[0]))]
    if chosen.dtype.kind == "b":
        return tuple(name for name, there in zip(names, chosen.ravel(), strict=False) if there)
    return tuple(names[j] for j in chosen.ravel().tolist() if isinstance(j, int) and 0 <= j < len(names))


def coded_array(X: Any, categories: Categories) -> Any:
    """Return an array with its text columns encoded as numbers; return any other X unchanged."""
    wanted = categories.texts if not categories.learning else categories.listed
    if not wanted or not isinstance(X, np.ndarray | list | tuple):
        return X
    if isinstance(X, np.ndarray) and X.dtype.kind not in "OU":
        return X
    cells = np.array(X, dtype=object)
    for j in range(cells.shape[1] if cells.ndim == 2 else 0):
        if array_name(j) in wanted and any(isinstance(value, str) for value in cells[:, j]):
            cells[:, j] = categories.codes(array_name(j), cells[:, j])
    return cells if cells.ndim == 2 else X


def check_kinds(X: Any, source: Source, categories: Categories) -> None:
    """Raise DataError for a column that contained text when the model was fitted, and contains numbers now."""
    if not categories.texts:
        return
    names = source.names if source.names is not None else tuple(map(array_name, range(source.n_features)))
    text = {*categories.found, *_lazy_text(X)}
    for name in categories.texts:
        if name in text or name not in names:
            continue
        if isinstance(source, MemorySource):
            column = source.chunk(0, source.n_rows).X[:, [names.index(name)]]
            if np.isnan(column.toarray() if hasattr(column, "toarray") else column).all():
                continue  # no values: of either kind
        raise DataError(
            f"Column {name!r} contains numbers, but was text such as {categories.texts[name][0]!r} when "
            f"{categories.estimator} was fitted; pass columns of the same kind."
        )


def _lazy_text(X: Any) -> list[str]:
    """Return the text columns of files and Dask frames, which are encoded as they are read."""
    if hasattr(X, "kinds"):
        return [name for name, kind in X.kinds.items() if kind == "text"]
    schema = opened(X._meta).schema if hasattr(X, "_meta") and hasattr(X, "columns") else {}
    return [name for name, dtype in schema.items() if is_category(dtype)]
