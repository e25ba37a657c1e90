"""Estimators that support categorical columns, including text."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.sources import Source
from summula.core.estimator.estimator import Estimator
from summula.core.model_files import schema
from summula.tree.columns.categories import Categories, array_name, check_kinds, coded_array, listed_columns
from summula.tree.columns.constraints import categorical_mask

__all__ = ["CategoricalColumns"]

Array = NDArray[Any]


def _levels_have_texts(model: Any, sizes: schema.Sizes) -> str | None:
    """Rule of saved models: the levels of a column of text are places of its texts."""
    bins = model._bins
    for j, name in enumerate(map(str, getattr(model, "feature_names_in_", ()))):
        texts = model.category_levels_.get(name)
        levels = bins.levels[bins.starts[j] : bins.starts[j + 1]]
        if texts is not None and not np.isin(levels, np.arange(len(texts))).all():
            return f"_bins has levels of {name!r} without a text"
    return None


@schema.state(
    _levels_have_texts,
    category_levels_=schema.Dict(schema.Text(), schema.Items(schema.Text(), low=1)),
)
class CategoricalColumns(Estimator):
    """Mixin for categorical columns, selected by the parameter `categorical_features`.

    Parameters
    ----------
    categorical_features : "from_dtype", array-like of bool, int or str, or None, default="from_dtype"
        Columns whose values have no order: categorical and text columns of a frame, or a mask, indices or names of
        columns. With more than 255 levels, rare ones are pooled.

    Attributes
    ----------
    is_categorical_ : ndarray of shape (n_features,), bool, or None
    category_levels_ : dict
        Levels of each text column.
    """

    _factored = True  # text is categorical

    category_levels_: dict[str, tuple[str, ...]]
    is_categorical_: Array | None

    @property
    def _goes_on(self) -> bool:
        """Return whether a fit continues the previous one, with its columns."""
        return False

    @property
    def _starts_anew(self) -> bool:
        return not self._goes_on

    def _open_factors(self, X: Any, others: list[str], reset: bool) -> tuple[Any, Categories]:
        fresh = reset and not self._goes_on  # else columns and levels are those of the previous fit
        listed = listed_columns(self.categorical_features, X, others) if fresh else None
        categories = Categories(type(self).__name__, None if fresh else self.category_levels_, listed)
        return coded_array(X, categories), categories

    def _close_factors(self, X: Any, source: Source, factors: Any, reset: bool) -> None:
        if not reset or self._goes_on:
            check_kinds(X, source, factors)
            return
        self.category_levels_ = dict(factors.texts)
        found = [*factors.found, *getattr(X, "categories", ())]  # the latter of files
        mask = categorical_mask(self.categorical_features, source.n_features, source.names, found)
        self.is_categorical_ = mask if mask.any() else None

    def _level_text(self, j: int, level: float) -> str:
        """Return a level of column j as text: quoted if the column contains text, else a number."""
        names = getattr(self, "feature_names_in_", None)
        texts = self.category_levels_.get(array_name(j) if names is None else str(names[j]))
        return f"{level:g}" if texts is None else repr(texts[int(level)])

    @property
    def _example_levels(self) -> dict[str, tuple[Any, ...]]:
        """Return example levels of columns, to try a method before it is applied to a Dask frame."""
        numbers: dict[str, tuple[Any, ...]] = dict.fromkeys(map(str, getattr(self, "feature_names_in_", ())), (1.0,))
        return numbers | self.category_levels_
