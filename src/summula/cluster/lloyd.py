"""Lloyd's algorithm: assign rows to their nearest centres, move centres to the means of their rows, repeat.

The inertia J = sum of w_i D(x_i, c_{a_i}) decreases with every pass, and there are finitely many assignments, so the
labels eventually do not change. The algorithm stops earlier if the sum of squared steps of the centres is below a
tolerance.

An empty cluster is assigned the row that is furthest from its centre, as in scikit-learn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from summula.cluster.passes import (
    Centres,
    ClusterSums,
    LloydPass,
    RowState,
    are_few,
    assign,
    chunk_rows,
    chunk_weights,
)
from summula.core.data.chunks import Chunk
from summula.core.data.layout.blocks import scratch_block
from summula.core.data.sources import MemorySource
from summula.core.errors import DataError
from summula.core.estimator.run import Run
from summula.core.numerics.sums import CONCATENATED, Sum, merged_by

__all__ = ["Clustering", "Labels", "Stopping", "centre_groups", "labels_of", "lloyd"]

Array = NDArray[Any]

_GROUP = 10  # centres per bound
_MOST_GROUPS = 64
_STRETCH = 2**17  # labels renumbered per block
_TOGETHER = 32  # passes over few rows in one call: a few milliseconds


class Stopping(NamedTuple):
    """Stopping rule: a maximum number of passes, and a tolerance for the sum of squared steps of the centres."""

    max_iter: int
    tolerance: float


class Clustering(NamedTuple):
    """Centres and quantities derived from them.

    Attributes
    ----------
    centres : ndarray of shape (k, d)
    labels : ndarray of shape (n,), int32, or None
        None if rows are not in this process.
    inertia : float
    n_iter : int
    trace : tuple of float
        Inertia of each pass; the last is that of the centres.
    step : float
        Sum of squared steps of the centres in the last pass; 0 if labels did not change.
    converged : bool
    """

    centres: Array
    labels: Array | None
    inertia: float
    n_iter: int
    trace: tuple[float, ...]
    step: float
    converged: bool


def centre_groups(centres: Array, count: int) -> tuple[Array, Array]:
    """Group nearby centres into about `count` groups; return their order, and where each group ends."""
    k = len(centres)
    if count >= k or count <= 1:
        return np.arange(k), np.arange(k + 1) if count >= k else np.array([0, k])
    chosen = [0]
    distance = _squares(centres, centres[:1])[:, 0]
    for _ in range(count - 1):
        chosen.append(int(distance.argmax()))
        distance = np.minimum(distance, _squares(centres, centres[chosen[-1:]])[:, 0])
    means = centres[chosen]
    for _ in range(5):
        group = _squares(centres, means).argmin(axis=1)
        means = np.array([centres[group == g].mean(axis=0) if (group == g).any() else means[g] for g in range(count)])
    sizes = np.bincount(group, minlength=count)
    return np.argsort(group, kind="stable"), np.concatenate([[0], np.cumsum(sizes[sizes > 0])])


def _squares(A: Array, B: Array) -> Array:
    """Return the squared distances of all rows of A to all rows of B."""
    return np.asarray(((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2))


def lloyd(
    run: Run,
    start: Array,
    stopping: Stopping,
    origin: Array,
    *,
    bounds: str = "auto",
    after_pass: Callable[[Clustering], None] | None = None,
) -> Clustering:
    """Run Lloyd's algorithm from some centres.

    Parameters
    ----------
    run : Run
    start : ndarray of shape (k, d)
    stopping : Stopping
    origin : ndarray of shape (d,)
        A point near the mean of the rows.
    bounds : {"auto", "groups", "centres", "none"}
        Distance bounds stored per row in memory: one per group of about ten centres, one per centre, or none. Affects
        speed only. "auto" is "groups".
    after_pass : callable, optional
        Called with the clustering at the beginning of every pass.
    """
    dtype = run.source.dtype
    state, groups = _state(run, start, bounds)
    now = Centres.of(_rounded(start, dtype), origin, groups)
    before: Centres | None = None
    trace: list[float] = []
    step = np.inf
    while len(trace) < stopping.max_iter and step > stopping.tolerance:
        several = _several_passes(run, now, state, stopping, len(trace))
        if several is not None:
            before, now, inertias, step = several
            trace += inertias
        else:
            sums = _pass(run, now, state, before)
            trace.append(sums.inertia)
            if len(trace) > 1 and sums.moved == 0:
                labels = _outside(now, state)
                return Clustering(now.outside, labels, sums.inertia, len(trace), tuple(trace), 0.0, True)
            before, now = now, _moved(run, now, sums, dtype)
            step = _squared_step(before, now)
            if state is not None:
                state.advance(before, now)
        if after_pass is not None:
            labels = _outside(before, state)
            after_pass(Clustering(before.outside, labels, trace[-1], len(trace), tuple(trace), np.inf, False))
        if step > stopping.tolerance and run.step():
            break
    n_iter = len(trace)
    sums = _pass(run, now, state, None)
    trace.append(sums.inertia)
    labels = _outside(now, state)
    return Clustering(now.outside, labels, sums.inertia, n_iter, tuple(trace), step, step <= stopping.tolerance)


class _Passes(NamedTuple):
    """Result of several passes: centres before and after the last one, the inertia of each, the last step."""

    before: Centres
    now: Centres
    inertias: list[float]
    step: float


def _several_passes(run: Run, now: Centres, state: RowState | None, stopping: Stopping, done: int) -> _Passes | None:
    """Run up to `_TOGETHER` passes in one call, for so few rows that calls take longer than passes.

    None for more rows, or if the next pass needs special handling. The results have the same bits.
    """
    source = run.source
    k, d = now.values.shape
    if state is None or run.has_callbacks or not run.rows_are_few or not are_few(source.n_rows, k, d):
        return None
    chunk = run.first_chunk()
    if chunk.is_sparse or chunk.dtype != np.float64:
        return None
    from summula.cluster.k_means_kernels import few_passes

    values, last, inertias = now.values.copy(), np.empty((k, d)), np.empty(min(_TOGETHER, stopping.max_iter - done))
    sums = np.empty((k, d)), np.empty(k), np.empty(k + 1), np.array([stopping.tolerance, np.inf])
    bounds, centres = scratch_block("k-means bounds", 2, len(chunk)), (values, last, now.order)
    bounds[:] = 0.0
    count = few_passes(chunk_rows(chunk), centres, chunk_weights(chunk), state.labels, bounds, sums, inertias)
    if not count:
        return None
    before, after = (Centres(points, now.order, now.ends, now.origin) for points in (last, values))
    return _Passes(before, after, inertias[:count].tolist(), float(sums[3][1]))


def _squared_step(before: Centres, after: Centres) -> float:
    """Return the sum of squared steps of the centres, added one by one, as in `few_passes`."""
    return float(np.cumsum((after.outside - before.outside).ravel() ** 2)[-1])


def _outside(centres: Centres, state: RowState | None) -> Array | None:
    """Return a copy of the labels of the rows of this process, in the user's order of the centres."""
    if state is None:
        return None
    labels, order = state.labels.copy(), centres.order.astype(np.int32)
    if centres.are_in_order or (order[1:] > order[:-1]).all():
        return labels
    for start in range(0, len(labels), _STRETCH):  # (NumPy converts index arrays to eight bytes)
        some = labels[start : start + _STRETCH]
        some[:] = np.take(order, some, mode="clip")
    return labels


def _state(run: Run, start: Array, bounds: str) -> tuple[RowState | None, tuple[Array, Array] | None]:
    """Return the state kept for each row, and the groups of centres that have a bound."""
    if run.is_remote:
        return None, None
    source, k = run.source, len(start)
    if not isinstance(source, MemorySource) or source.is_sparse or bounds == "none":
        return RowState.blank(source.n_rows, 0), None
    if are_few(source.n_rows, k, source.n_features):
        return RowState.blank(source.n_rows, 0), None
    groups = centre_groups(start, k if bounds == "centres" else min(k // _GROUP, _MOST_GROUPS))
    return RowState.blank(source.n_rows, len(groups[1]) - 1), groups


def _pass(run: Run, centres: Centres, state: RowState | None, before: Centres | None) -> ClusterSums:
    few = are_few(run.source.n_rows, *centres.values.shape)  # these have no bounds
    params = LloydPass(centres, state, before if state is None else None, few)
    sums = run.sum(ClusterSums, params, by_chunk=True)
    if not np.isfinite(sums.inertia):
        run.raise_if_not_finite()
        raise DataError("Squared distances between rows overflow float64; divide the columns by a constant first.")
    return sums


def _rounded(centres: Array, dtype: Any) -> Array:
    """Return the centres rounded to the precision of the rows, as float64."""
    return np.asarray(centres, dtype).astype(np.float64)


def _moved(run: Run, now: Centres, sums: ClusterSums, dtype: Any) -> Centres:
    """Return the means of the clusters."""
    weight, total, C = sums.weight, sums.total, now.values
    empty = np.flatnonzero(weight <= 0)
    new = C + total / np.where(weight > 0, weight, 1.0)[:, None]
    if len(empty):
        new = _relocated(run, now, sums, empty[np.argsort(now.order[empty])])
    return Centres(_rounded(new, dtype), now.order, now.ends, now.origin)


def _relocated(run: Run, now: Centres, sums: ClusterSums, empty: Array) -> Array:
    """Return the means after assigning to empty clusters the rows furthest from their centres."""
    far = run.sum(Furthest, (now, len(empty)), "empty clusters", by_chunk=True)
    weight, total = sums.weight.copy(), sums.total.copy()
    C, x = now.values.copy(), far.x
    for a, D, label, w, row in zip(empty, far.square, far.label, far.weight, x, strict=False):
        if D <= 0:  # fewer distinct rows than clusters
            break
        weight[label] -= w
        total[label] -= w * (row - now.values[label])
        C[a], weight[a], total[a] = row, w, 0.0
    new = C + total / np.where(weight > 0, weight, 1.0)[:, None]
    rest = weight <= 0
    # As in scikit-learn, a cluster that remains empty is moved to the largest one.
    new[rest] = new[int(now.order.argsort()[np.argmax(now.in_order(weight))])]
    return np.asarray(new)


# ---------------------------------------------------------------------------------------------- other statistics


@dataclass(frozen=True)
class Furthest(Sum):
    """The rows furthest from their centres, at most `most`, in decreasing order with ties by row number."""

    most: int = field(metadata=merged_by(max))
    square: Array = field(metadata=CONCATENATED)
    label: Array = field(metadata=CONCATENATED)
    weight: Array = field(metadata=CONCATENATED)
    x: Array = field(metadata=CONCATENATED)

    @classmethod
    def map(cls, chunk: Chunk, params: tuple[Centres, int]) -> Self:
        """Return the furthest rows of one chunk; rows of weight 0 are ignored."""
        centres, most = params
        labels, own = _nearest(chunk, centres)
        w = chunk.weights
        rows = np.flatnonzero(w > 0)
        rows = rows[np.argsort(-own[rows], kind="stable")][:most]
        return cls(most, own[rows], labels[rows], w[rows], chunk.take(rows).dense() if len(rows) else _none(chunk))

    def merge(self, other: Self) -> Self:
        """Return the furthest rows of both."""
        both = super().merge(other)
        kept = np.argsort(-both.square, kind="stable")[: both.most]
        return type(self)(both.most, both.square[kept], both.label[kept], both.weight[kept], both.x[kept])


def _none(chunk: Chunk) -> Array:
    return np.empty((0, chunk.n_features))


def _nearest(chunk: Chunk, centres: Centres) -> tuple[Array, Array]:
    """Return the nearest centre of each row, in the order of the groups, and D."""
    state, own = RowState.blank(len(chunk), 0), np.empty(len(chunk))
    assign(chunk_rows(chunk), centres, state, own)
    return state.labels, own


@dataclass(frozen=True)
class Labels(Sum):
    """The labels of the rows, in their order."""

    labels: tuple[Array, ...]

    @classmethod
    def map(cls, chunk: Chunk, params: Centres) -> Self:
        """Return the labels of one chunk."""
        return cls((params.order[_nearest(chunk, params)[0]].astype(np.int32),))


def labels_of(run: Run, centres: Array, origin: Array) -> Array:
    """Return the label of every row, in one pass."""
    found = run.sum(Labels, Centres.of(centres, origin), "labels")
    return np.concatenate(found.labels)
