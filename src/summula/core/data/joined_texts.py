"""Texts of many short columns, concatenated into one array.

A call of pyarrow takes some microseconds, which adds up in tables with many columns and few rows. For these, all text
columns share one dictionary: with W distinct texts, row i of column j with text c has the key

    j W + c                                                                                                       (1)

and the distinct keys are the distinct texts of the columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["JoinedTexts", "joined_texts"]


class JoinedTexts(NamedTuple):
    """Distinct texts of columns of equal length.

    Attributes
    ----------
    words : list of str
        The distinct texts of the first column, in the order of their first rows, then those of the next one, and so on.
    bounds : ndarray of shape (n_columns + 1,)
        The texts of column j are words[bounds[j] : bounds[j + 1]].
    places : ndarray of shape (n_columns, n_rows)
        Index of each row's text among those of its column, -1 if missing.
    """

    words: list[str]
    bounds: NDArray[np.intp]
    places: NDArray[np.intp]

    def column(self, j: int) -> tuple[list[str], NDArray[np.intp]]:
        """Return the distinct texts of a column and the index of each row's text."""
        return self.words[self.bounds[j] : self.bounds[j + 1]], self.places[j]

    def cells(self) -> NDArray[np.intp]:
        """Return the index in `words` of each row's text, or len(words) if missing; shape (n_columns, n_rows)."""
        return np.where(self.places < 0, len(self.words), self.places + self.bounds[:-1, np.newaxis])


def joined_texts(columns: Sequence[Any]) -> JoinedTexts:
    """Find the distinct texts of Arrow arrays of strings of one type and length, of which there is at least one."""
    import pyarrow as pa

    coded = pa.concat_arrays(columns).dictionary_encode()
    codes, words = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False), coded.dictionary.to_pylist()
    known, base = np.flatnonzero(codes >= 0), max(len(words), 1)
    column = known // max(len(columns[0]), 1)
    keys, first, inverse = np.unique(column * base + codes[known], return_index=True, return_inverse=True)  # (1)
    order = np.argsort(first)
    rank = np.empty(len(order), np.intp)
    rank[order] = np.arange(len(order))
    own, chosen = np.divmod(keys[order], base)
    bounds = np.searchsorted(own, np.arange(len(columns) + 1))
    places = np.full(len(codes), -1, np.intp)
    places[known] = rank[inverse] - bounds[column]
    return JoinedTexts([words[c] for c in chosen.tolist()], bounds, places.reshape(len(columns), -1))
