"""Initial parameters of mixtures: a sample of the rows, and some points of it.

The sample is drawn by row number, so it does not depend on the storage of the rows. Up to 20,000 rows it contains all
rows. It is sorted by value, and points are drawn in proportion to weights, so the order of the rows does not matter,
and a weight of 3 is equivalent to repeating a row three times.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.data.layout.blocks import aligned
from summula.core.engine.random import stream_key, uniform
from summula.core.estimator.run import Run
from summula.core.numerics.sums import CONCATENATED, Sum

__all__ = ["RowSample", "nearest", "row_sample", "seed_points"]

Array = NDArray[Any]

_SAMPLE_ROWS = 20_000
_LLOYD_STEPS = 100


@dataclass(frozen=True)
class RowSample(Sum):
    """Some of the rows with positive weight, in order.

    Attributes
    ----------
    rows : ndarray of shape (m, d)
    weight : ndarray of shape (m,)
    """

    rows: Array = field(metadata=CONCATENATED)
    weight: Array = field(metadata=CONCATENATED)

    @classmethod
    def map(cls, chunk: Chunk, params: tuple[int, float]) -> Self:
        """Return the rows of one chunk whose random number, for the key, is below the sampling fraction."""
        key, share = params
        weight = chunk.weights
        chosen = weight > 0
        if share < 1:
            chosen &= uniform(key, range(chunk.start, chunk.stop)) < share
        places = np.flatnonzero(chosen)
        return cls(np.ascontiguousarray(chunk.block(np.float64)[places]), weight[places])

    def is_finite(self) -> bool:
        """Return whether there are no infinities; missing values are allowed."""
        return not np.isinf(self.rows).any()


def row_sample(run: Run, seed: int) -> RowSample:
    """Return about 20,000 rows, or all if there are fewer, sorted by value."""
    share = _SAMPLE_ROWS / run.source.n_rows
    sample = run.sum(RowSample, (stream_key(seed, 0), share), "sample of the rows")
    order = np.lexsort(sample.rows.T[::-1])
    return RowSample(sample.rows[order], sample.weight[order])


def seed_points(Z: Array, weight: Array, k: int, method: str, key: int) -> Array:
    """Return k points of the sample Z: by k-means++, by Lloyd's iteration from there ("kmeans"), or drawn at random.

    Parameters
    ----------
    Z : ndarray of shape (m, d)
        Columns with similar scales.
    weight : ndarray of shape (m,)
    k : int
    method : {"kmeans", "k-means++", "random_from_data"}
    key : int
        Key of the random numbers.

    Returns
    -------
    ndarray of shape (k, d)
    """
    # Scaled by a power of two, which preserves the bits of ratios, so that sums of weights times Z do not overflow.
    weight = np.ldexp(weight, -int(np.frexp(weight.max())[1]))
    points = _drawn_points(Z, weight, k, 0.0 if method == "random_from_data" else 1.0, key)
    return _lloyd(Z, weight, points) if method == "kmeans" else points


def _drawn_points(Z: Array, weight: Array, k: int, power: float, key: int) -> Array:
    """Draw points one by one, in proportion to a power of the squared distance from the previous ones."""
    draws = uniform(key, k)
    chosen = [_drawn(weight, draws[0])]
    distance = _squares(Z, Z[chosen[0]])
    for draw in draws[1:]:
        mass = np.where(distance > 0, weight * distance**power, 0.0)
        chosen.append(_drawn(mass if mass.any() else weight, draw))
        distance = np.minimum(distance, _squares(Z, Z[chosen[-1]]))
    return np.asarray(Z[chosen])


def _drawn(mass: Array, draw: float) -> int:
    total = np.cumsum(mass)
    return int(min(np.searchsorted(total, draw * total[-1], side="right"), len(mass) - 1))


def _squares(Z: Array, point: Array) -> Array:
    return np.asarray(((Z - point) ** 2).sum(axis=1))


def nearest(Z: Array, points: Array) -> NDArray[np.intp]:
    """Return the nearest point of each row."""
    return np.asarray(np.argmin(np.stack([_squares(Z, point) for point in points]), axis=0), np.intp)


@np.errstate(over="ignore", invalid="ignore")  # values that overflow are reported by the fit
def _lloyd(Z: Array, weight: Array, points: Array) -> Array:
    """Perform Lloyd's iteration; an empty cluster keeps its point.

    Points are compared by |c|^2 / 2 - z'c about the mean, as one matrix product, and sums of clusters are another one.
    """
    origin = (weight[:, None] * Z).sum(axis=0) / weight.sum()
    Z, points = aligned(Z - origin), points - origin
    labels = np.full(len(Z), -1)
    for _ in range(_LLOYD_STEPS):
        scores = 0.5 * (points**2).sum(axis=1) - Z @ aligned(points).T
        before, labels = labels, scores.argmin(axis=1)
        if (labels == before).all():
            break
        members = aligned(weight[:, None] * (labels[:, None] == np.arange(len(points))))
        mass = members.sum(axis=0)
        points = np.where(mass[:, None] > 0, (members.T @ Z) / np.where(mass > 0, mass, 1.0)[:, None], points)
    return np.asarray(points + origin)
