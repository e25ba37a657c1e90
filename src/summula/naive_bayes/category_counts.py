"""Counts of each category of each column in each class.

    N_kjc = weight of the rows of class k with category c in column j,   missing values (NaN) are ignored

Categories are integers from 0 on. The table is as wide as the largest number so far; adding two tables widens the
narrower one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.errors import RowError
from summula.core.model_files import schema
from summula.core.numerics.sums import Sum

__all__ = ["MAX_VALUES", "Categorical", "CategoryCounts", "check_categories"]

Array = NDArray[np.float64]

MAX_VALUES = 2**24  # maximum number of entries of a table


@schema.saved(
    count=schema.Array("int64", "n_groups", low=0),
    weight=schema.Array("float64", "n_groups"),
    total=schema.Array("float64", "n_groups", "n_categorical", "n_categories", finite=False),
)
@dataclass(frozen=True)
class CategoryCounts(Sum):
    """Weights of rows by class, column and category.

    Attributes
    ----------
    count, weight : ndarray of shape (n_classes,)
        Rows and weights.
    total : ndarray of shape (n_classes, n_columns, n_categories)
    """

    nonnegative: ClassVar[Mapping[str, str]] = {**Sum.nonnegative, "total": "count"}

    count: NDArray[np.int64]
    weight: Array
    total: Array

    @classmethod
    def of(cls, values: Array, codes: NDArray[Any], weight: Array | None, n_groups: int) -> Self:
        """Return the counts of rows of categories, with NaN for missing ones."""
        n, d = values.shape
        w = np.ones(n) if weight is None else np.asarray(weight, np.float64)
        own = codes >= 0
        count = np.bincount(codes[own], minlength=n_groups)
        weights = np.bincount(codes[own], weights=w[own], minlength=n_groups)
        present = ~np.isnan(values) & own[:, None]
        width = int(values[present].max()) + 1 if present.any() else 1
        flat = (codes[:, None].astype(np.int64) * d + np.arange(d)) * width
        flat = flat + np.where(present, values, 0.0).astype(np.int64)
        added = np.bincount(
            flat[present], weights=np.broadcast_to(w[:, None], (n, d))[present], minlength=n_groups * d * width
        )
        return cls(
            count.astype(np.int64), weights.astype(np.float64), added.astype(np.float64).reshape(n_groups, d, width)
        )

    @property
    def n_rows(self) -> int:
        """Number of rows, of all classes together."""
        return int(self.count.sum())

    def merge(self, other: Self) -> Self:
        """Return the counts of the union of two sets of rows."""
        return self._with(other, operator.add)

    def unmerge(self, other: Self) -> Self:
        """Return the counts of these rows without those of `other`."""
        return self._with(other, operator.sub)

    def _with(self, other: Self, plus: Callable[[Any, Any], Any]) -> Self:
        width = max(self.total.shape[2], other.total.shape[2])
        total = plus(_widened(self.total, width), _widened(other.total, width))
        return type(self)(plus(self.count, other.count), plus(self.weight, other.weight), total)


@dataclass(frozen=True)
class Categorical:
    """The statistic of categorical columns."""

    def map_groups(self, chunk: Chunk, codes: NDArray[Any], n_groups: int, params: Any) -> CategoryCounts:
        """Return the counts of one chunk."""
        values = chunk.block(np.float64)
        if np.isinf(values).any():  # infinite sums, from which the error is located
            return CategoryCounts.of(
                np.zeros((len(values), values.shape[1])), codes, np.full(len(values), np.nan), n_groups
            )
        check_categories(values, chunk.start, lambda j: f"column {j}", n_groups, "CategoricalNB")
        return CategoryCounts.of(values, codes, chunk.weight, n_groups)


def _widened(total: Array, width: int) -> Array:
    missing = width - total.shape[2]
    return np.pad(total, ((0, 0), (0, 0), (0, missing))) if missing else total


def check_categories(values: Array, start: int, column: Any, n_groups: int, name: str) -> None:
    """Raise for invalid categories: negative numbers, fractions, and numbers too large for a table.

    Parameters
    ----------
    values : ndarray of shape (n, n_columns)
        NaN for missing values.
    start : int
        Number of the first row.
    column : callable
        Returns the name of a column by its index, for the message.
    n_groups : int
    name : str
        Name of the model, for the message.
    """
    with np.errstate(invalid="ignore"):
        wrong = (values < 0) | (values != np.floor(values)) | (values * n_groups * values.shape[1] > MAX_VALUES)
        negative = values < 0
    wrong &= ~np.isnan(values)
    if wrong.any():
        row, j = (int(place) for place in np.argwhere(negative if negative.any() else wrong)[0])
        kind = "Negative values" if values[row, j] < 0 else "Values that are not categories"
        raise RowError(
            f"{kind} in data passed to {name} (input X): {column(j)} contains {values[row, j]:g}",
            start + row,
            "; categories must be integers from 0 on, not too large: encode them with OrdinalEncoder, or discretise "
            "numbers with KBinsDiscretizer(encode='ordinal').",
        )
