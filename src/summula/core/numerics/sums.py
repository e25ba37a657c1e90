"""Statistics that are merged field by field.

    merge(a, b) = a + b        unmerge(a, b) = a - b        field by field, once both are about the same origin

A statistic is a frozen dataclass derived from `Sum`. It defines `map`; its fields define how they are merged:

    total: Array        added; sums are merged, tuples concatenated; None on either side gives None
    largest: float = field(metadata=merged_by(max))     merged by a function of two values: rows cannot be removed
    values: Array = field(metadata=CONCATENATED)        values of single rows, in the order of the rows
    origin: Array       the origin of the other fields: unchanged, and the other side is re-centred

Declarations serve validation: `nonnegative` fields, and the sums of columns and of their squares, `column_totals` and
`column_squares`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from summula.core.model_files import schema

__all__ = ["CONCATENATED", "Groups", "Merge", "Sum", "merged_by"]

Merge = Callable[[Any, Any], Any]


def merged_by(merge: Merge) -> dict[str, Merge]:
    """Return metadata for a dataclass field that is merged by this function instead of being added."""
    return {"merge": merge}


def _concatenate(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate([a, b])


CONCATENATED = merged_by(_concatenate)  # metadata of arrays with values of single rows


def _fields(total: Any) -> tuple[tuple[str, Merge | None], ...]:
    """Return the fields of a sum with the functions that merge them; None for those that are added."""
    kind: Any = type(total)
    found: tuple[tuple[str, Merge | None], ...] = _fields_of_class(kind)
    return found


@functools.cache
def _fields_of_class(kind: Any) -> tuple[tuple[str, Merge | None], ...]:
    return tuple((one.name, one.metadata.get("merge")) for one in fields(kind))


class Sum:
    """Mixin of frozen dataclasses that are merged and unmerged field by field.

    `nonnegative` maps fields that cannot be negative to their names in error messages.
    """

    nonnegative: ClassVar[Mapping[str, str]] = {"count": "number of rows", "weight": "sum of weights"}

    def merge(self, other: Self) -> Self:
        """Return the sums of both sets of rows."""
        return self._combined(other, _added)

    def unmerge(self, other: Self) -> Self:
        """Return the sums of these rows without those of `other`, which must be a subset."""
        for name, merge in _fields(self):
            if merge is not None:
                raise TypeError(f"{type(self).__name__}.{name} is not a sum, so rows cannot be removed from it.")
        return self._combined(other, _subtracted)

    @property
    def n_rows(self) -> int:
        """Number of rows in the sums: the field `count`."""
        return int(self.count)  # type: ignore[attr-defined]

    def is_finite(self) -> bool:
        """Return whether all fields are finite; NaN and infinities in rows propagate to their sums."""
        return all(_is_finite(getattr(self, name)) for name, _ in _fields(self))

    def is_complete(self, n_rows: int) -> bool:
        """Return whether the sums include all values of all rows; overridden by statistics that skip missing values."""
        return self.is_finite()

    @property
    def column_squares(self) -> NDArray[np.float64] | None:
        """Sums of squares of each column, with the columns along the last axis; None if unavailable."""
        return None

    @property
    def column_totals(self) -> NDArray[np.float64] | None:
        """Sums of each column, where there are `column_squares`."""
        return None

    def recentre(self, origin: Any) -> Self:
        """Return the same sums about another origin."""
        raise NotImplementedError(f"{type(self).__name__} cannot be moved to another origin")

    def _aligned(self, other: Self) -> tuple[Self, Self]:
        """Return both sums about a common origin."""
        origin = getattr(self, "origin", None)
        return (self, other) if origin is None else (self, other.recentre(origin))

    def _combined(self, other: Self, plus: Merge) -> Self:
        a, b = self._aligned(other)
        return type(self)(
            **{
                name: getattr(a, name)
                if name == "origin"
                else _joined(getattr(a, name), getattr(b, name), merge or plus)
                for name, merge in _fields(self)
            }
        )


def _joined(a: Any, b: Any, merge: Merge) -> Any:
    return None if a is None or b is None else merge(a, b)


def _added(a: Any, b: Any) -> Any:
    return a.merge(b) if isinstance(a, Sum) else a + b


def _subtracted(a: Any, b: Any) -> Any:
    return a.unmerge(b) if isinstance(a, Sum) else a - b


def _is_finite(value: Any) -> bool:
    kind = type(value)
    if kind is np.ndarray:
        return value.dtype.kind != "f" or bool(np.logical_and.reduce(np.isfinite(value), axis=None))
    if kind is int:
        return True
    if isinstance(value, (float, np.floating)):
        return bool(np.isfinite(value)) if isinstance(value, np.longdouble) else math.isfinite(value)
    if isinstance(value, tuple):
        return all(_is_finite(one) for one in value)
    return value.is_finite() if isinstance(value, Sum) else True


def _merge_each(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(y if x is None else x if y is None else x.merge(y) for x, y in zip(a, b, strict=True))


def _unmerged(a: Any, b: Any) -> Any:
    """Return a - b; None if no rows remain, negative counts if too many rows are removed."""
    if b is None:
        return a
    left = b.unmerge(b).unmerge(b) if a is None else a.unmerge(b)
    return None if left.count == 0 else left


@schema.saved(
    "core.sums.Groups",
    groups=schema.Items(schema.Object(Sum, n_columns="n_columns", n_features="n_features") | None, "n_groups"),
)
@dataclass(frozen=True)
class Groups(Sum):
    """One statistic per group of rows; None for a group without rows."""

    groups: tuple[Any, ...] = field(metadata=merged_by(_merge_each))

    def unmerge(self, other: Self) -> Self:
        """Return the sums of every group without those of `other`."""
        return type(self)(tuple(map(_unmerged, self.groups, other.groups)))

    @property
    def count(self) -> NDArray[np.int64]:
        """Number of rows in each group."""
        return np.array([0 if one is None else one.count for one in self.groups], np.int64)

    @property
    def weight(self) -> NDArray[np.float64]:
        """Sum of the weights in each group."""
        return np.array([0.0 if one is None else one.weight for one in self.groups])

    @property
    def n_rows(self) -> int:
        """Total number of rows over all groups."""
        return int(self.count.sum())
