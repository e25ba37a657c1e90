"""Schema fields for arrays: dtype, shape in terms of named dimensions, range and order of the entries."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.model_files.fields import Fault, Field, Sizes

__all__ = ["Array", "Labels", "Names", "Sparse"]

_DTYPES = {
    "float": ("float64", "float32"),
    "integer": ("int64", "int32"),
    "number": ("float64", "float32", "int64", "int32"),
}


class Array(Field):
    """An array.

    Parameters
    ----------
    dtype : str
        Name of a dtype, or "float" (float64 or float32), "integer" (int64 or int32), "number" (any of these).
    *shape : str or int
        Dimensions: a number, a name, or a name and a number ("n_nodes + 1"); "..." alone for any shape.
    low, high : float, optional
        Range of the entries.
    below : str, optional
        Dimension that the entries index into: they are below its size.
    finite : bool, default=True
        Whether NaN and infinities raise an error.
    ascending : bool, default=False
        Whether entries are non-decreasing along the last axis (which excludes NaN).
    row_major : bool, default=False
        Whether the array must be C-contiguous, as kernels expect.
    """

    def __init__(
        self,
        dtype: str,
        *shape: str | int,
        low: float | None = None,
        high: float | None = None,
        below: str | None = None,
        finite: bool = True,
        ascending: bool = False,
        row_major: bool = False,
    ) -> None:
        self.dtypes, self.shape = _DTYPES.get(dtype, (dtype,)), shape
        self.low, self.high, self.below = low, high, below
        self.finite, self.ascending, self.row_major = finite, ascending, row_major

    def words(self, sizes: Sizes) -> str:
        """Describe dtype and shape."""
        return f"an array of {' or '.join(self.dtypes)} of shape {_shape_words(self.shape, sizes)}"

    def check(self, value: Any, path: str, sizes: Sizes) -> None:
        """Check dtype, shape, then the entries."""
        if type(value) is not np.ndarray or value.dtype.name not in self.dtypes:
            raise self.wrong(value, path, sizes)
        if self.shape != ("...",) and not _match(value.shape, self.shape, sizes):
            raise self.wrong(value, path, sizes)
        if self.row_major and not value.flags.c_contiguous:
            raise Fault(f"{path} is not C-contiguous")
        if value.size:
            self._check_entries(value, path, sizes)

    def _check_entries(self, value: NDArray[Any], path: str, sizes: Sizes) -> None:
        if self.finite and value.dtype.kind == "f":
            _raise_if_any(~np.isfinite(value), value, path, "must be finite")
        if self.low is not None:
            _raise_if_any(~(value >= self.low), value, path, f"must be at least {self.low:g}")
        if self.high is not None:
            _raise_if_any(~(value <= self.high), value, path, f"must be at most {self.high:g}")
        if self.below is not None:
            if self.below not in sizes:
                raise Fault(f"{path} indexes {self.below}, whose size is unknown")
            size = sizes[self.below]
            _raise_if_any(~(value < size), value, path, f"must be below {self.below} = {size}")
        if self.ascending:
            decreases = ~(value[..., 1:] >= value[..., :-1])
            _raise_if_any(decreases, value[..., 1:], path, "must not decrease", offset=1)


class Labels(Field):
    """Class labels: a vector of at least `low` different numbers, booleans or strings, sorted.

    It has any length without `size`. Objects are strings.
    """

    def __init__(self, size: str | None = None, low: int = 1) -> None:
        self.size, self.low = size, low

    def words(self, sizes: Sizes) -> str:
        """Describe the shape."""
        shape = "" if self.size is None else f", {_shape_words((self.size,), sizes)}"
        return f"a vector of at least {self.low} numbers or texts{shape}"

    def check(self, value: Any, path: str, sizes: Sizes) -> None:
        """Accept vectors of the types that `save` can write."""
        if type(value) is not np.ndarray or value.dtype.kind not in "biufUO" or len(value.shape) != 1:
            raise self.wrong(value, path, sizes)
        labels = value.tolist()
        if value.dtype.kind == "O" and not all(type(label) is str for label in labels):
            raise Fault(f"{path} contains objects other than text")
        is_nan = any(label != label for label in labels[:1])  # further ones are not ascending
        if is_nan or any(not low < high for low, high in itertools.pairwise(labels)):
            raise Fault(f"{path} must be sorted, without duplicates")
        if len(value) < self.low or not (self.size is None or _match(value.shape, (self.size,), sizes)):
            raise self.wrong(value, path, sizes)


class Names(Field):
    """Column names: a vector of strings."""

    def __init__(self, size: str) -> None:
        self.size = size

    def words(self, sizes: Sizes) -> str:
        """Describe the shape."""
        return f"a vector of text of shape {_shape_words((self.size,), sizes)}"

    def check(self, value: Any, path: str, sizes: Sizes) -> None:
        """Accept strings as objects or as a NumPy string dtype."""
        if (
            type(value) is not np.ndarray
            or value.dtype.kind not in "UO"
            or not _match(value.shape, (self.size,), sizes)
        ):
            raise self.wrong(value, path, sizes)
        if value.dtype.kind == "O" and not all(isinstance(name, str) for name in value):
            raise Fault(f"{path} contains values other than text")


class Sparse(Field):
    """A CSR or CSC matrix of finite floats."""

    def __init__(self, *shape: str | int) -> None:
        self.shape = shape

    def words(self, sizes: Sizes) -> str:
        """Describe the shape."""
        return f"a sparse matrix of shape {_shape_words(self.shape, sizes)}"

    def check(self, value: Any, path: str, sizes: Sizes) -> None:
        """Check the shape, the indices and the values."""
        if getattr(value, "format", None) not in ("csr", "csc") or not _match(value.shape, self.shape, sizes):
            raise self.wrong(value, path, sizes)
        from summula.core.data.sparse_format import check_sparse

        try:
            check_sparse(value, path)
        except ValueError as error:
            raise Fault(str(error)) from None
        Array("float", "stored").check(value.data, f"{path}.data", {})


def _size(dimension: str | int, sizes: Sizes) -> int | None:
    """Return the size of a dimension, or None if it is unknown."""
    if isinstance(dimension, int):
        return dimension
    name, _, more = dimension.partition(" + ")
    return sizes[name] + int(more or 0) if name in sizes else None


def _match(shape: Sequence[int], dimensions: Sequence[str | int], sizes: Sizes) -> bool:
    """Return whether a shape matches the dimensions; sizes of new dimensions are recorded."""
    if len(shape) != len(dimensions):
        return False
    for length, dimension in zip(shape, dimensions, strict=True):
        known = _size(dimension, sizes)
        if known is None:
            name, _, more = str(dimension).partition(" + ")
            if length < int(more or 0):
                return False
            sizes[name] = length - int(more or 0)
        elif known != length:
            return False
    return True


def _shape_words(dimensions: Sequence[str | int], sizes: Sizes) -> str:
    def as_tuple(parts: Sequence[Any]) -> str:
        return f"({', '.join(map(str, parts))}{',' if len(parts) == 1 else ''})"

    known = [_size(dimension, sizes) for dimension in dimensions]
    text = as_tuple(dimensions)
    named = any(isinstance(dimension, str) for dimension in dimensions)
    if not named or None in known:
        return text
    return f"{text} = {as_tuple(known)}"


def _raise_if_any(bad: NDArray[np.bool_], value: NDArray[Any], path: str, must: str, *, offset: int = 0) -> None:
    """Raise for the first bad entry; `offset` is the index of the first entry of `value` along the last axis."""
    if bad.any():
        index = list(np.unravel_index(int(bad.argmax()), bad.shape))
        entry = value[tuple(index)]
        index[-1] += offset
        raise Fault(f"{path}[{', '.join(str(int(k)) for k in index)}] = {entry} {must}")
