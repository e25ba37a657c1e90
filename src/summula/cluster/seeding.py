"""Initial centres of k-means: k-means++, k-means||, random rows, given centres.

k-means++ draws each centre from the rows with probability proportional to w_i D_i, where D_i is the squared distance of
row i to the nearest centre so far; of a few draws it selects the one with the smallest potential sum of w_i D_i.
k-means|| draws about 2k rows at once in each of a few rounds, weights them by the rows nearest to them, and runs
k-means++ on these: a few passes for any k, which suits files and clusters.

Random numbers are functions of the seed and the row, and potentials are summed as integer multiples of a unit,

    u_i = floor(w_i D_i / unit),        unit a power of two,                                                       (1)

whose sums do not depend on their order, so the centres do not depend on chunks, threads or storage.

References
----------
Arthur and Vassilvitskii (2007), k-means++: the advantages of careful seeding, SODA.
Bahmani et al. (2012), Scalable k-means++, VLDB.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from summula.cluster.passes import Centres, RowState, assign, chunk_rows, chunk_weights, writeable
from summula.core.data.chunks import Chunk, Part
from summula.core.data.sources import MemorySource
from summula.core.engine.engine import SerialEngine, engine
from summula.core.engine.random import stream_key, uniform
from summula.core.estimator.run import Run, Unnamed
from summula.core.numerics.sums import CONCATENATED, Sum, merged_by

__all__ = ["k_means_parallel", "k_means_plus_plus", "random_rows"]

Array = NDArray[Any]

_UNITS = 62  # bits of a sum of potentials
_MOST_UNITS = 1_000  # maximum log2 of the units per potential of 1, which avoids overflow for tiny weights
_ROUNDS = 5  # rounds of k-means||
_TRIALS, _FIRST, _SAMPLES, _RANDOM = range(4)  # streams of random numbers


class SeedState(NamedTuple):
    """D to the nearest centre so far, and its number, for every row of this process."""

    closest: Array
    nearest: Array

    @classmethod
    def blank(cls, n: int) -> SeedState:
        """Return the initial state, without centres."""
        return cls(np.full(n, np.inf), np.full(n, -1, np.int32))


class SeedPass(NamedTuple):
    """Inputs of a pass: all centres, index of the first new one for rows in memory, candidates, 1 / unit."""

    centres: Array
    first: int
    candidates: Array
    scale: float
    state: SeedState | None


class ChunkPotential(NamedTuple):
    """The potentials of one chunk, in units: without and with each candidate; and the largest w D."""

    start: int
    stop: int
    units: Array
    largest: float


def _state_of(chunk: Chunk, given: SeedPass) -> SeedState:
    """Return the state of the rows of a chunk, updated for all centres."""
    if given.state is None:
        return SeedState.blank(len(chunk))
    return SeedState(*(values[chunk.start : chunk.stop] for values in given.state))


def _scale(n: int, largest: float) -> float:
    """Return the units per potential such that n potentials of at most `largest` sum to fewer than 2**_UNITS."""
    return float(2.0 ** min(_UNITS - 1 - n.bit_length() - int(np.ceil(np.log2(largest))), _MOST_UNITS))


def _potential(chunk: Chunk, given: SeedPass) -> tuple[SeedState, ChunkPotential]:
    """Update the rows of a chunk, and sum the potential that each candidate would leave."""
    from summula.cluster.seeding_kernels import reseed

    state, units = _state_of(chunk, given), np.zeros(1 + len(given.candidates), np.int64)
    first = 0 if given.state is None else given.first
    if chunk.is_sparse:
        largest = _reseed_sparse(chunk, given, first, state, units)
    else:
        centres, candidates = writeable(given.centres), writeable(given.candidates)
        X, w = chunk_rows(chunk), chunk_weights(chunk)
        largest = reseed(X, centres, first, candidates, w, given.scale, tuple(state), units)
    return state, ChunkPotential(chunk.start, chunk.stop, units, float(largest))


def _reseed_sparse(chunk: Chunk, given: SeedPass, first: int, state: SeedState, units: Array) -> float:
    """Do the same for sparse rows."""
    X, w = chunk.rows.csr(), chunk.weights
    squares = np.asarray(X.multiply(X).sum(axis=1), np.float64).ravel()[:, None]

    def distances(C: Array) -> Array:
        return np.asarray(np.maximum(squares + (np.einsum("kj,kj->k", C, C) - 2.0 * (X @ C.T)), 0.0))

    if first < len(given.centres):
        D = distances(given.centres[first:])
        nearer = D.min(axis=1) < state.closest
        state.nearest[nearer] = first + D.argmin(axis=1)[nearer]
        state.closest[nearer] = D.min(axis=1)[nearer]
    units[0] = (w * state.closest * given.scale).astype(np.int64).sum()
    if len(given.candidates):
        left = np.minimum(state.closest[:, None], distances(given.candidates))
        units[1:] = (w[:, None] * left * given.scale).astype(np.int64).sum(axis=0)
    return float((w * state.closest).max(initial=0.0))


def _potentials(given: SeedPass, part: Part) -> list[ChunkPotential]:
    return [_potential(chunk, given)[1] for chunk in part.chunks()]


def _rows_at(given: SeedPass, targets: list[int], part: Part) -> Array:
    """Return the rows of a chunk at which the cumulative potentials exceed each target."""
    from summula.cluster.seeding_kernels import seed_row

    (chunk,) = part.chunks()
    (closest, _), _ = _potential(chunk, given)
    w = chunk_weights(chunk)
    rows = np.array([seed_row(w, closest, given.scale, target) for target in targets])
    return np.asarray(chunk.take(rows).dense())


def _sums(run: Run, given: SeedPass) -> list[ChunkPotential]:
    """Compute the potentials of all chunks, in one pass."""
    found: list[ChunkPotential] = []
    fn = functools.partial(_potentials, given)
    with closing(_each(run, fn, run.tasks())) as results:
        for chunks in results:
            found += chunks
            run.check_clock()
    return found


def _each(run: Run, fn: Callable[[Part], Any], parts: list[Part]) -> Generator[Any, None, None]:
    """Yield the value of a function for each part; inline for few rows, as threads would take longer to start."""
    if run.rows_are_few:
        yield from map(fn, parts)
    else:
        yield from run.engine.map_ordered(fn, parts, n_jobs=run.n_jobs)


def _drawn(run: Run, given: SeedPass, chunks: list[ChunkPotential], column: int, draws: Array) -> Array:
    """Return the rows at which the cumulative potentials of a column reach the given fractions of their sum."""
    ends = np.cumsum([chunk.units[column] for chunk in chunks])
    total, part = int(ends[-1]), run.parts[0]
    targets = [min(int(share * float(total)), total - 1) for share in draws]
    places = [int(np.searchsorted(ends, target, side="right")) for target in targets]
    rows = np.empty((len(draws), run.source.n_features))
    for at in dict.fromkeys(places):
        start, stop = chunks[at].start, chunks[at].stop
        here = replace(part, start=start, stop=stop, chunk_rows=max(part.chunk_rows, stop - start))
        before, which = int(ends[at - 1]) if at else 0, [k for k, place in enumerate(places) if place == at]
        fn = functools.partial(_rows_at, given, [targets[k] - before for k in which])
        (found,) = _each(run, fn, [here])
        rows[which] = found
    return rows


def _scaled(total: int, rows: int) -> int:
    """Return the number of bits by which potentials can be scaled with a sum below 2^62."""
    return _UNITS - 1 - (total + rows).bit_length()


def k_means_plus_plus(run: Run, n_clusters: int, seed: int, n_trials: int | None = None) -> Array:
    """Draw centres by k-means++.

    Parameters
    ----------
    run : Run
    n_clusters : int
    seed : int
    n_trials : int, optional
        Number of draws per centre, of which the best is used; 2 + log(n_clusters) by default.

    Returns
    -------
    ndarray of shape (n_clusters, n_features)
    """
    n, d = run.source.n_rows, run.source.n_features
    trials = n_trials or 2 + int(np.log(n_clusters))
    state = None if run.is_remote else SeedState.blank(n)
    centres = random_rows(run, 1, stream_key(seed, _FIRST))
    none, scale = np.empty((0, d)), 0.0
    chunks = _sums(run, SeedPass(centres, 0, none, scale, state))
    largest = max(chunk.largest for chunk in chunks)
    if largest > 0 and np.isfinite(largest):
        scale = _scale(n, largest)
    column = 0
    chunks = _sums(run, SeedPass(centres, 1, none, scale, state))
    for k in range(1, n_clusters):
        key = stream_key(seed, (_TRIALS, k))
        total = sum(int(chunk.units[column]) for chunk in chunks)
        if total <= 0:  # every row is already a centre
            return np.vstack([centres, random_rows(run, n_clusters - k, key, distinct=False)])
        given = SeedPass(centres, k - 1, none, scale, state)
        candidates = _drawn(run, given, chunks, column, uniform(key, trials))
        scale *= 2.0 ** max(_scaled(total, n), 0)
        chunks = _sums(run, SeedPass(centres, k - 1, candidates, scale, state))
        left = np.sum([chunk.units for chunk in chunks], axis=0)
        column = 1 + int(left[1:].argmin())
        centres = np.vstack([centres, candidates[column - 1]])
    return centres


# ------------------------------------------------------------------------------------------------------------ k-means||


@dataclass(frozen=True)
class Samples(Sum):
    """Rows drawn independently, in row order."""

    rows: tuple[Array, ...]

    @classmethod
    def map(cls, chunk: Chunk, params: tuple[SeedPass, int, float]) -> Self:
        """Draw each row of a chunk with probability w D times a factor, by its number."""
        given, key, factor = params
        state, _ = _potential(chunk, given)
        w = 1.0 if chunk.weight is None else chunk.weight
        taken = uniform(key, range(chunk.start, chunk.stop)) < w * state.closest * factor
        rows = np.flatnonzero(taken)
        return cls((chunk.take(rows).dense(),) if len(rows) else ())


@dataclass(frozen=True)
class Nearby(Sum):
    """Weight of the rows nearest to each centre."""

    near: Array

    @classmethod
    def map(cls, chunk: Chunk, params: Centres) -> Self:
        """Return the weight nearest to each centre in one chunk."""
        state = RowState.blank(len(chunk), 0)
        assign(chunk_rows(chunk), params, state, np.empty(len(chunk)))
        return cls(np.bincount(state.labels, weights=chunk.weight, minlength=len(params.values)).astype(np.float64))


def k_means_parallel(run: Run, n_clusters: int, seed: int, origin: Array) -> Array:
    """Draw centres by k-means||, in about seven passes over the rows."""
    n, d = run.source.n_rows, run.source.n_features
    state = None if run.is_remote else SeedState.blank(n)
    none, scale, first = np.empty((0, d)), 0.0, 0
    centres = random_rows(run, 1, stream_key(seed, _FIRST))
    for k in range(_ROUNDS):
        chunks = _sums(run, SeedPass(centres, first, none, scale, state))
        largest = max(chunk.largest for chunk in chunks)
        if not (largest > 0 and np.isfinite(largest)):
            break
        scale, first = _scale(n, largest), len(centres)
        given = SeedPass(centres, first, none, scale, state)
        total = sum(int(chunk.units[0]) for chunk in _sums(run, given)) / scale
        key = stream_key(seed, (_SAMPLES, k))
        drawn = run.sum(Samples, (given, key, 2.0 * n_clusters / total), "k-means||").rows
        centres = np.vstack([centres, *drawn])
    if len(centres) <= n_clusters:
        more = random_rows(run, n_clusters - len(centres), stream_key(seed, _RANDOM), distinct=False)
        return np.vstack([centres, more])
    near = run.sum(Nearby, Centres.of(centres, origin), "k-means||").near
    few = MemorySource(centres, None, near, np.dtype(np.float64))
    with engine(SerialEngine()):
        return k_means_plus_plus(Run(Unnamed(), few, quiet=True), n_clusters, seed)


# ---------------------------------------------------------------------------------------------------------- random rows


@dataclass(frozen=True)
class Earliest(Sum):
    """The rows with the earliest random arrival times: weighted draws without replacement."""

    most: int = field(metadata=merged_by(max))
    times: Array = field(metadata=CONCATENATED)
    rows: Array = field(metadata=CONCATENATED)

    @classmethod
    def map(cls, chunk: Chunk, params: tuple[int, int]) -> Self:
        """Return the earliest rows of a chunk; times are exponential with rate w, infinite for weight 0."""
        most, key = params
        with np.errstate(divide="ignore"):
            times = -np.log1p(-uniform(key, range(chunk.start, chunk.stop)))
            times = times if chunk.weight is None else times / chunk.weight
        first = _smallest(times, most)
        first = first[np.isfinite(times[first])]
        x = chunk.take(first).dense() if len(first) else np.empty((0, chunk.n_features))
        return cls(most, times[first], x)

    def merge(self, other: Self) -> Self:
        """Return the earliest rows of both."""
        both = super().merge(other)
        kept = _smallest(both.times, both.most)
        return type(self)(both.most, both.times[kept], both.rows[kept])


def _smallest(values: Array, count: int) -> Array:
    """Return the places of the smallest values in increasing order; equal ones in order, as in a stable sort."""
    if count >= len(values):
        return np.argsort(values, kind="stable")
    among = np.flatnonzero(values <= np.partition(values, count - 1)[count - 1])
    return np.asarray(among[np.argsort(values[among], kind="stable")[:count]])


def random_rows(run: Run, count: int, key: int, *, distinct: bool = True) -> Array:
    """Draw rows with probabilities proportional to their weights, without replacement (while there are any left)."""
    if count == 0:
        return np.empty((0, run.source.n_features))
    found = run.sum(Earliest, (count, key), "random rows").rows
    if len(found) < count or not distinct:
        found = found[np.arange(count) % len(found)]
    return np.asarray(found)
