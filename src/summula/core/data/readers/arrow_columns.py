"""Columns of Arrow batches: NumPy arrays created on request, or the addresses where doubles start.

A fit may read a thousand batches of a hundred columns. Creating an array for each column takes Python longer than
copying the values takes a kernel, so columns of plain doubles are accessed by their addresses, which Arrow's C data
interface provides for a whole batch at once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

__all__ = ["ArrowColumns", "Layout", "arrow_columns"]

Array = NDArray[Any]


class Layout(NamedTuple):
    """Positions of the requested columns in a batch, their names, and how many of the first ones are plain doubles."""

    places: NDArray[np.int64]
    names: tuple[str, ...]
    doubles: int


class ArrowColumns(Sequence[Array]):
    """Some columns of one batch.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
    layout : Layout
    convert : callable
        Converts an Arrow column, given with its name, to a NumPy array.
    """

    def __init__(self, batch: Any, layout: Layout, convert: Callable[[Any, str], Array]) -> None:
        self._batch, self._layout, self._convert = batch, layout, convert
        self._made: dict[int, Array] = {}

    def __len__(self) -> int:
        return len(self._layout.names)

    @overload
    def __getitem__(self, index: int) -> Array: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Array, ...]: ...

    def __getitem__(self, index: int | slice) -> Array | tuple[Array, ...]:
        if isinstance(index, slice):
            return tuple(self[j] for j in range(*index.indices(len(self))))
        j = range(len(self))[index]
        if j not in self._made:
            values = self._batch.column(int(self._layout.places[j]))
            self._made[j] = self._convert(values, self._layout.names[j])
        return self._made[j]

    def addresses(self, count: int) -> NDArray[np.uint64] | None:
        """Memory addresses of the first columns; None unless they are contiguous doubles."""
        if count > self._layout.doubles:
            return None
        from summula.core.data.layout.column_kernels import column_addresses

        found = np.empty(count, np.uint64)
        _, array = self._batch.__arrow_c_array__()
        whole = column_addresses(np.uint64(_pointer()(array, b"arrow_array")), self._layout.places[:count], found)
        return found if whole else None


@functools.cache
def _pointer() -> Any:
    """Return the function of Python's C interface that opens a capsule."""
    import ctypes

    return ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )


def arrow_columns(
    batches: Iterable[Any], names: Sequence[str], convert: Callable[[Any, str], Array]
) -> Iterator[ArrowColumns]:
    """Return a function that selects the columns with these names from batches with one schema."""
    layout: Layout | None = None
    for batch in batches:
        layout = layout or _layout(batch.schema, names)
        yield ArrowColumns(batch, layout, convert)


def _layout(schema: Any, names: Sequence[str]) -> Layout:
    import pyarrow as pa

    by_name = {name: j for j, name in enumerate(schema.names)}
    places = [by_name[name] for name in names]
    others = (k for k, j in enumerate(places) if not pa.types.is_float64(schema.field(j).type))
    return Layout(np.array(places, np.int64), tuple(names), next(others, len(places)))
