"""Sums of columns of different kinds by class: moments of numbers, counts of categories and flags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.model_files import schema
from summula.core.numerics.statistics import Moments
from summula.naive_bayes.category_counts import CategoryCounts, check_categories
from summula.naive_bayes.normal_columns import ColumnMoments

__all__ = ["FAMILIES", "Mixed", "MixedSums", "split_columns"]

Array = NDArray[np.float64]

FAMILIES = ("gaussian", "bernoulli", "categorical")


@schema.saved(
    moments=schema.Object(Moments, n_features="n_gaussian", n_groups="n_groups"),
    counts=schema.Object(CategoryCounts, n_groups="n_groups"),
)
@dataclass(frozen=True)
class MixedSums(ColumnMoments):
    """Moments of numeric columns and counts of categorical ones, by class."""

    moments: Moments
    counts: CategoryCounts

    @property
    def count(self) -> NDArray[np.int64]:
        """Number of rows by class."""
        return self.counts.count

    @property
    def weight(self) -> Array:
        """Weight of the rows by class."""
        return self.counts.weight

    @property
    def n_rows(self) -> int:
        """Number of rows, of all classes together."""
        return self.counts.n_rows


@dataclass(frozen=True)
class Mixed:
    """The statistic; `families` has the code of the family of each column."""

    families: tuple[int, ...]

    def map_groups(self, chunk: Chunk, codes: NDArray[Any], n_groups: int, params: Array) -> MixedSums:
        """Return the sums over one chunk; `params` has an origin for each class."""
        numbers, categories = split_columns(chunk.block(np.float64), self.families)
        origin = np.ascontiguousarray(params[:, np.asarray(self.families) == 0])
        weight = chunk.weight
        if np.isinf(numbers).any() or np.isinf(categories).any():  # infinite sums, from which the error is located
            categories, weight = np.full(categories.shape, np.nan), np.full(len(chunk), np.nan)
        check_categories(categories, chunk.start, lambda j: f"column {self._place(j)}", n_groups, "MixedNB")
        counts = CategoryCounts.of(categories, codes, weight, n_groups)
        moments = Moments.of_block(np.ascontiguousarray(numbers), codes, chunk.weight, origin)
        return MixedSums(moments, counts)

    def _place(self, j: int) -> int:
        return int(np.flatnonzero(np.asarray(self.families) > 0)[j])


def split_columns(X: Array, families: Any) -> tuple[Array, Array]:
    """Return the numeric columns, and the categorical ones, with flags as 0 and 1."""
    kinds = np.asarray(families)
    categories = X[:, kinds > 0]
    flags = kinds[kinds > 0] == FAMILIES.index("bernoulli")
    if flags.any():
        some = categories[:, flags]
        categories[:, flags] = np.where(np.isfinite(some), some > 0, some)
    return X[:, kinds == 0], categories
