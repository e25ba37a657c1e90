"""Rectangular grids of points: nearest point and multilinear interpolation.

With x between the neighbours t_i and t_{i+1} of one axis, u = (x - t_i) / (t_{i+1} - t_i), the weights of the two are
1 - u and u. In d dimensions the 2^d corners of the cell around x have the products of these weights: they are
positive, sum to 1, and reproduce functions that are linear in each coordinate.                                     (1)
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import DataError
from summula.mdp.process import as_numbers

__all__ = ["Grid", "as_states"]

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]


class Grid:
    """Points of a rectangular grid, numbered with the last axis running fastest.

    Parameters
    ----------
    *axes : array-like
        Ascending coordinates along each axis, not necessarily equally spaced.

    Attributes
    ----------
    shape : tuple of int
        Number of points along each axis.
    points : ndarray of shape (S, d)

    Examples
    --------
    >>> from summula.mdp import Grid
    >>> grid = Grid([0.0, 1.0, 2.0], [0.0, 10.0])
    >>> grid.cell([[0.9, 8.0], [5.0, -1.0]])  # numbers of the nearest points
    array([3, 4])
    >>> grid.interpolate([0.0, 10.0, 1.0, 11.0, 2.0, 12.0], [[0.5, 2.0]])  # of x + y
    array([2.5])
    """

    def __init__(self, *axes: Any) -> None:
        self.axes = tuple(as_numbers(axis, f"axis {j}") for j, axis in enumerate(axes))
        if not self.axes:
            raise DataError("Grid needs at least one axis.")
        for j, axis in enumerate(self.axes):
            if axis.ndim != 1 or not len(axis) or not np.isfinite(axis).all() or (np.diff(axis) <= 0).any():
                raise DataError(f"Axis {j} of the grid must be an array of finite, ascending coordinates.")
        self.shape = tuple(len(axis) for axis in self.axes)

    @classmethod
    def uniform(cls, low: Any, high: Any, shape: Any) -> Grid:
        """Return a grid of equally spaced points from `low` to `high`, with `shape` points along the axes."""
        low, high, shape = np.atleast_1d(low), np.atleast_1d(high), np.atleast_1d(shape)
        if shape.dtype.kind not in "iu" or (shape < 1).any():
            raise DataError(
                "The shape of a uniform grid must be the number of points along each axis, such as (21, 21)."
            )
        low, high, shape = np.broadcast_arrays(low, high, shape)
        return cls(*(np.linspace(a, b, n) for a, b, n in zip(low, high, shape.tolist(), strict=True)))

    def __len__(self) -> int:
        return int(np.prod(self.shape))

    def __repr__(self) -> str:
        return f"Grid({' x '.join(map(str, self.shape))} points)"

    @property
    def points(self) -> Array:
        """The points, one per row."""
        return np.stack(np.meshgrid(*self.axes, indexing="ij"), axis=-1).reshape(len(self), -1)

    def cell(self, states: Any) -> Any:
        """Return the number of the nearest point (along each axis) of each state; an int for a single state."""
        x = as_states(states, len(self.axes))
        places = [np.searchsorted(0.5 * (t[1:] + t[:-1]), x[:, j]) for j, t in enumerate(self.axes)]
        numbers = np.ravel_multi_index(tuple(places), self.shape)
        return int(numbers[0]) if np.ndim(states) == 1 and len(self.axes) == np.size(states) else numbers

    def weights(self, states: Any) -> tuple[Numbers, Array]:
        """Return the points around each state and their weights (1), of shape (n, 2^d); states outside are clipped."""
        x = as_states(states, len(self.axes))
        lower, share = [], []
        for j, t in enumerate(self.axes):
            i = np.clip(np.searchsorted(t, x[:, j], side="right") - 1, 0, max(len(t) - 2, 0))
            width = t[np.minimum(i + 1, len(t) - 1)] - t[i]
            u = (
                np.clip((x[:, j] - t[i]) / np.where(width > 0, width, 1.0), 0.0, 1.0)
                if len(t) > 1
                else np.zeros(len(x))
            )
            lower.append(i)
            share.append(u)
        numbers, weights = [], []
        for corner in product((0, 1), repeat=len(self.axes)):
            places = [np.minimum(i + c, n - 1) for i, c, n in zip(lower, corner, self.shape, strict=True)]
            numbers.append(np.ravel_multi_index(tuple(places), self.shape))
            factors = [u if c else 1.0 - u for u, c in zip(share, corner, strict=True)]
            weights.append(np.prod(factors, axis=0))
        return np.stack(numbers, axis=1), np.stack(weights, axis=1)

    def interpolate(self, values: Any, states: Any) -> Array:
        """Return values at the points, of shape (S,) or (S, k), interpolated to states."""
        given = as_numbers(values, "values")
        if len(given) != len(self):
            raise DataError(f"There are {len(given)} values for {len(self)} points of the grid; pass one for each.")
        numbers, weights = self.weights(states)
        return np.asarray(np.einsum("nc,nc...->n...", weights, given[numbers]))


def as_states(states: Any, d: int) -> Array:
    """Return states as an array of shape (n, d)."""
    x = as_numbers(states, "states")
    if x.ndim == 1:
        x = x.reshape(-1, d) if d == 1 or x.size == d else x[:, None]
    if x.ndim != 2 or x.shape[1] != d:
        raise DataError(f"states has shape {np.shape(states)}; it must have {d} columns, one for each coordinate.")
    if not np.isfinite(x).all():
        row, column = divmod(int(np.argmin(np.isfinite(x))), d)
        raise DataError(f"The coordinate {column} of state {row} is missing or infinite.")
    return x
