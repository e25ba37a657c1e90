"""Cache of the indexes of models, built on first use, and again when rows or parameters change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from summula.neighbors.search.base import SearchIndex

__all__ = ["cached_index"]


@dataclass(frozen=True, eq=False)
class _BuiltIndex:
    """An index with the settings from which it was built."""

    settings: tuple[Any, ...]
    index: SearchIndex

    def is_made_from(self, settings: tuple[Any, ...]) -> bool:
        return all(a is b for a, b in zip(self.settings, settings, strict=True))


# The index of each model, and by the identity of the training rows, which copies of a model share. Loaded models build
# their index on first use.
_indexes: WeakKeyDictionary[Any, _BuiltIndex] = WeakKeyDictionary()
_indexes_of_rows: WeakValueDictionary[int, _BuiltIndex] = WeakValueDictionary()


def cached_index(model: Any, settings: tuple[Any, ...], build: Callable[[], SearchIndex]) -> SearchIndex:
    """Return the index of a model for these settings, the first of which are the training rows."""
    rows = settings[0]
    known = _indexes.get(model) or _indexes_of_rows.get(id(rows))
    if known is None or not known.is_made_from(settings):
        known = _BuiltIndex(settings, build())
    if _indexes.get(model) is not known:
        _indexes[model] = _indexes_of_rows[id(rows)] = known
    return known.index
