"""Categorical columns as factors: codes that represent indicator columns, which are never materialised.

A factor with levels l_0 < l_1 < ... < l_m is the m columns [x = l_1], ..., [x = l_m]; the first level is the reference
and all zeros. Sources store the code 0..m as one number per row. `FactorRows` are rows of numeric columns and such
codes; a sum over a few hundred indicator columns then costs no more than a sum over the codes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.data.layout.stored_rows import FactorRows
from summula.core.data.sources import Source, WrappedSource
from summula.core.errors import DataError

__all__ = [
    "FactorSource",
    "Factors",
    "has_numbers_as_text",
    "levels_and_places",
    "numbers_for_categories",
    "several_kinds",
    "used_places",
]

Array = NDArray[Any]

_MOST_LEVELS = 10_000  # the matrix of products of the indicators takes 800 MB


class Factors:
    """Factor columns and their levels: learned from the data, or those of an earlier fit."""

    def __init__(self, estimator: str, levels: dict[str, tuple[Any, ...]] | None = None) -> None:
        self.estimator = estimator
        self.levels = dict(levels or {})
        self.learning = levels is None
        self.coded: set[str] = set()  # the columns of frames converted to codes

    def codes(self, name: str, values: Any, start: int = 0) -> NDArray[np.float64]:
        """Return the index of each value among the levels of a column, which are learned first if unknown."""
        distinct, places = levels_and_places(name, values, self.estimator)
        self.coded.add(name)
        missing = np.flatnonzero(places < 0)
        if len(missing):
            raise DataError(
                f"Column {name!r} has a missing value at row {start + int(missing[0])}; {self.estimator} needs "
                "complete data: drop the row, or make 'missing' a level."
            )
        if self.learning and name not in self.levels:
            self.learn(name, sorted(distinct[k] for k in used_places(places)))  # a frame may list unused levels
        if name not in self.levels:
            raise DataError(
                f"Column {name!r} contains categories such as {distinct[0]!r}, but contained numbers when "
                f"{self.estimator} was fitted; pass columns of the same type."
            )
        known = {level: k for k, level in enumerate(self.levels[name])}
        codes = np.array([known.get(value, -1) for value in distinct], np.float64)[places]
        unknown = np.flatnonzero(codes < 0)
        if len(unknown):
            row = int(unknown[0])
            raise DataError(
                f"Column {name!r} contains {distinct[places[row]]!r} at row {start + row}, which is not one of its "
                f"{len(known)} levels in the training data; drop such rows, or pool rare levels before fitting."
            )
        return codes

    def distinct(self, name: str, values: Any) -> list[Any]:
        """Return the distinct values of a column, sorted; raise for missing ones."""
        alone = Factors(self.estimator)
        alone.codes(name, values)
        return list(alone.levels[name])

    def known(self) -> Factors:
        """Return the same levels, without learning others, for another process."""
        return Factors(self.estimator, self.levels)

    def learn(self, name: str, levels: Sequence[Any], *, called: bool = True) -> None:
        """Set the levels of a column from its sorted, distinct values.

        `called` says whether the column has a categorical type in the frame.
        """
        if len(levels) > _MOST_LEVELS:
            raise DataError(
                f"Column {name!r} has {len(levels):,} different values, too many for indicator columns (at most "
                f"{_MOST_LEVELS:,}): drop the column, or pool rare values before fitting."
            )
        if has_numbers_as_text(levels) and not all(is_number(level) for level in levels):
            odd = next(level for level in levels if not is_number(level))
            raise DataError(
                f"Column {name!r} contains numbers as text, and {odd!r} among them; {self.estimator} needs numbers or "
                "categories: correct the value and convert the column to numbers."
            )
        self.levels[name] = tuple(levels)


def is_number(level: Any) -> bool:
    """Return whether a level is text that represents a number."""
    if not isinstance(level, str) or not level.isascii() or "_" in level:
        return False
    try:
        float(level)
    except ValueError:
        return False
    return True


def has_numbers_as_text(levels: Sequence[Any]) -> bool:
    """Return whether more than half of the levels are text that represents numbers."""
    return 2 * sum(map(is_number, levels)) > len(levels)


def levels_and_places(name: str, values: Any, estimator: str) -> tuple[list[Any], Array]:
    """Return the distinct values, and the index of each row's value among them; -1 if it is missing."""
    import pyarrow as pa

    try:
        array = values if hasattr(values, "dictionary_encode") else pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        raise DataError(several_kinds(name, estimator)) from None
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    if isinstance(array, pa.ChunkedArray):
        array = array.unify_dictionaries().combine_chunks()
        array = array.chunk(0) if isinstance(array, pa.ChunkedArray) else array
    places = array.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return array.dictionary.to_pylist(), places


def used_places(places: Array) -> list[int]:
    """Return the sorted distinct indices into a short list, without -1 for missing values."""
    return np.flatnonzero(np.bincount(places + 1)[1:]).tolist()


def numbers_for_categories(name: str, levels: dict[str, tuple[Any, ...]]) -> DataError:
    """Return the error for numbers in a column that was categorical."""
    return DataError(
        f"Column {name!r} contains numbers, but contained categories such as {levels[name][0]!r} when the model "
        "was fitted; pass a frame with columns of the same type."
    )


def several_kinds(name: str, estimator: str) -> str:
    """Return the error message for a column with text and numbers."""
    return f"Column {name!r} contains values of several types; {estimator} needs categories of one type, such as text."


class FactorSource(WrappedSource):
    """A source with factors stored as codes: numeric columns first, then indicators, factor by factor."""

    def __init__(self, base: Source, factors: dict[str, tuple[Any, ...]]) -> None:
        super().__init__(base)
        assert base.names is not None
        self.factors = factors
        self.coded = tuple(j for j, name in enumerate(base.names) if name in factors)
        self.numeric = tuple(j for j, name in enumerate(base.names) if name not in factors)
        used = [base.names[j] for j in self.coded]
        self.sizes = tuple(len(factors[name]) - 1 for name in used)
        self.n_features = len(self.numeric) + sum(self.sizes)
        indicators = [f"{name}[{level}]" for name in used for level in factors[name][1:]]
        self.names = (*(base.names[j] for j in self.numeric), *indicators)

    def chunks(self, start: int, stop: int, chunk_rows: int) -> Iterator[Chunk]:
        """Yield the rows from `start` up to `stop`, chunk by chunk."""
        return (self._split(chunk) for chunk in self.base.chunks(start, stop, chunk_rows))

    def chunk(self, start: int, stop: int) -> Chunk:
        """Return the rows from `start` up to `stop` as one chunk."""
        return self._split(self.base.chunk(start, stop))

    def only(self, start: int, stop: int) -> FactorSource:
        """Return the source restricted to these rows."""
        return FactorSource(self.base.only(start, stop), self.factors)

    def _split(self, chunk: Chunk) -> Chunk:
        with np.errstate(invalid="ignore"):  # invalid codes become out of range
            if isinstance(chunk.rows, tuple):
                dense = np.empty((len(chunk), len(self.numeric)), self.dtype, order="F")
                for place, j in enumerate(self.numeric):
                    dense[:, place] = chunk.rows[j]
                codes = np.stack([chunk.rows[j] for j in self.coded], axis=1).astype(np.int32)
            else:
                X = chunk.X
                dense, codes = np.ascontiguousarray(X[:, self.numeric]), X[:, self.coded].astype(np.int32)
        codes = np.ascontiguousarray(codes)
        self._check_codes(codes)
        return replace(chunk, rows=FactorRows(dense, codes, self.sizes))

    def _check_codes(self, codes: Array) -> None:
        """Raise an error for a code out of range, since kernels use codes as column indices."""
        if not len(codes):
            return
        largest = codes.view(np.uint32).max(axis=0)  # negative codes become large ones
        for j, most, found in zip(self.coded, self.sizes, largest, strict=True):
            if found > most:
                assert self.base.names is not None
                raise numbers_for_categories(self.base.names[j], self.factors)
