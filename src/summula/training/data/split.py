"""Assignment of rows to the hold-out and to folds.

Rows are drawn by hashes of (seed, row), so that the split does not depend on how the table is read:

    random    the rows with the smallest hashes are held out; folds are stratified by class
    groups    the same for whole groups, so that rows of a group are never on both sides
    time      the latest rows are held out; models are evaluated on later rows than they were fitted on
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.engine.random import GOLDEN, mix64
from summula.core.errors import DataError, ParameterError, RowError
from summula.preprocessing.table_encoder_sums import as_dates

__all__ = ["HELD_OUT", "LEFT_OUT", "MIN_ROWS", "Rounds", "Split", "key_values", "split_rows"]

Array = NDArray[Any]

HELD_OUT, LEFT_OUT = -1, -2  # instead of a fold number
MIN_ROWS = 10
_MANY_ROWS = 50_000  # above which three folds are as informative as five
_MIN_GROUPS = 5
_YEAR_FIRST = re.compile(r"\d{4}(?!\d)", re.ASCII)
_STREAM = {"hold-out": 0, "folds": 1}

Rounds = list[tuple[list[int], int]]  # training folds, and the validation fold


class Split(NamedTuple):
    """The fold of each row of a table, HELD_OUT or LEFT_OUT.

    Attributes
    ----------
    folds : ndarray of int8
    rounds : list of (list of int, int)
        Training folds and validation fold of each round of a comparison.
    groups : ndarray or None
        The group of each held-out row.
    """

    folds: NDArray[np.int8]
    rounds: Rounds
    groups: Array | None

    @property
    def training(self) -> NDArray[np.bool_]:
        """Mask of the training rows."""
        return np.asarray(self.folds >= 0)

    @property
    def held_out(self) -> NDArray[np.bool_]:
        """Mask of the held-out rows."""
        return np.asarray(self.folds == HELD_OUT)


def split_rows(
    known: NDArray[np.bool_],
    classes: Array | None,
    share: float,
    seed: int,
    groups: Array | None = None,
    times: Array | None = None,
) -> Split:
    """Split a table.

    Parameters
    ----------
    known : ndarray of bool
        Whether each row has a target; rows without one are left out.
    classes : ndarray or None
        Classes of the known rows, for stratified folds.
    share : float
        Fraction of rows held out.
    seed : int
    groups, times : ndarray, optional
        Group, or time, of each row of the table; at most one of the two.

    Returns
    -------
    Split
    """
    if groups is not None and times is not None:
        raise ParameterError("Give groups or time_column, not both: rows are held out in one way.")
    n = int(known.sum())
    if n < MIN_ROWS:
        raise DataError(f"Only {n} rows have a value of the target; give at least {MIN_ROWS}.")
    if groups is not None:
        of_known, rounds = _by_group(groups[known], share, seed)
    elif times is not None:
        of_known, rounds = _by_time(times[known], share)
    else:
        of_known, rounds = _at_random(n, classes, share, seed)
    folds = np.full(len(known), LEFT_OUT, np.int8)
    folds[known] = of_known
    held = None if groups is None else groups[folds == HELD_OUT]
    return Split(folds, rounds, held)


def _n_folds(rows: int) -> int:
    return 5 if rows <= _MANY_ROWS else 3


def _each_once(n_folds: int) -> Rounds:
    return [([other for other in range(n_folds) if other != fold], fold) for fold in range(n_folds)]


def _at_random(n: int, classes: Array | None, share: float, seed: int) -> tuple[NDArray[np.int8], Rounds]:
    folds = np.full(n, HELD_OUT, np.int8)
    count = max(1, round(share * n))
    aside = np.argpartition(_hashes(n, seed, "hold-out"), count - 1)[:count]
    rest = np.ones(n, bool)
    rest[aside] = False
    left = np.flatnonzero(rest)
    n_folds = min(_n_folds(len(left)), len(left))
    order = np.argsort(_hashes(n, seed, "folds")[left], kind="stable")
    if classes is not None:
        codes = np.unique(classes[left], return_inverse=True)[1]
        order = order[np.argsort(codes[order], kind="stable")]
    # Consecutive rows in this order are assigned to different folds, which stratifies the folds.
    folds[left[order]] = np.arange(len(left)) % n_folds
    return folds, _each_once(n_folds)


def _by_group(groups: Array, share: float, seed: int) -> tuple[NDArray[np.int8], Rounds]:
    codes, sizes = _coded(groups)
    if len(sizes) < _MIN_GROUPS:
        raise DataError(
            f"There are {len(sizes)} groups; holding some out needs at least {_MIN_GROUPS}: give a column with more."
        )
    order = np.argsort(_hashes(len(sizes), seed, "hold-out"), kind="stable")
    held = 1 + int(np.searchsorted(np.cumsum(sizes[order]), share * len(groups)))
    held = min(held, len(sizes) - 2)
    rest = order[held:]
    n_folds = min(_n_folds(len(groups)), len(rest))
    of_group = np.full(len(sizes), HELD_OUT, np.int8)
    filled = np.zeros(n_folds)
    for group in rest[np.argsort(-sizes[rest], kind="stable")]:  # largest first, each to the smallest fold
        fold = int(filled.argmin())
        of_group[group] = fold
        filled[fold] += sizes[group]
    return of_group[codes], _each_once(n_folds)


def _by_time(times: Array, share: float) -> tuple[NDArray[np.int8], Rounds]:
    moments, places = np.unique(times, return_inverse=True)
    if len(moments) < _MIN_GROUPS:
        raise DataError(f"The time column has {len(moments)} different values; give one with at least {_MIN_GROUPS}.")
    counts = np.bincount(places)
    before = np.cumsum(counts) - counts  # rows before each moment
    n = len(times)
    first = min(max(int(np.searchsorted(before, (1 - share) * n)), 2), len(moments) - 1)
    n_blocks = min(_n_folds(n) + 1, first)
    block = np.minimum(before[:first] * n_blocks // max(int(before[first]), 1), n_blocks - 1)
    block = np.unique(block, return_inverse=True)[1]  # (a moment with many rows may skip a block)
    if block.max() < 1:
        block = (np.arange(first) >= first // 2).astype(np.intp)
    of_moment = np.full(len(moments), HELD_OUT, np.int8)
    of_moment[:first] = block
    rounds: Rounds = [(list(range(k)), k) for k in range(1, int(block.max()) + 1)]
    rounds.reverse()  # the longest history first: it is most like the final fit
    return of_moment[places], rounds


def _coded(groups: Array) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    codes = np.unique(groups, return_inverse=True)[1]
    return codes, np.bincount(codes).astype(np.int64)


def _hashes(rows: int, seed: int, what: str) -> NDArray[np.uint64]:
    start = np.uint64((seed + _STREAM[what]) * GOLDEN % 2**64)
    return np.asarray(mix64(np.arange(rows, dtype=np.uint64) + start))


def key_values(column: Any, name: str, *, times: bool = False) -> Array:
    """Return the values of a group or time column as a sortable array; raise if some are missing."""
    column = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise RowError(
            f"Column {name!r} has no value", row, "; every row needs one to be placed: fill it, or drop the row."
        )
    values = np.asarray(column.to_numpy(zero_copy_only=False))
    if values.dtype.kind != "O":
        return values
    return _text_times(values.astype(str), name) if times else values.astype(str)


def _text_times(values: Array, name: str) -> Array:
    """Convert times that are text to dates, or to text in sortable form, such as 2024-05 or 2024Q1."""
    words, places = np.unique(values, return_inverse=True)
    dates = as_dates(words.tolist())
    if dates is not None:
        return np.asarray(dates[places])
    if len({len(word) for word in words.tolist()}) == 1 and all(_YEAR_FIRST.match(word) for word in words.tolist()):
        return values
    raise DataError(
        f"The time column {name!r} contains text such as {str(values[0])!r}, which does not sort in time; convert it "
        "to dates or numbers, or write dates as 2024-12-31."
    )
