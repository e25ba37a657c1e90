"""One pass of Lloyd's algorithm as a sum over rows.

With rows x_i, weights w_i and centres c_1, ..., c_k, a pass assigns every row to its nearest centre and sums

    a_i = argmin_a D(x_i, c_a)                                                                                    (1)
    W_a = sum of w_i over a_i = a,       T_a = sum of w_i (x_i - c_a),       J = sum of w_i D(x_i, c_{a_i})         (2)

so that the new centres are c_a + T_a / W_a, the means of the clusters. The sums are about the old centres, which has no
extra cost (the differences are those of D) and is accurate for clusters far from 0.

Assignments are the same with and without bounds (see `score_kernels`). For rows in memory, bounds on the distances to
the other centres are maintained between passes, which avoids the comparison with all centres for most rows: one bound
per row (Hamerly), one per group of about ten centres (Yinyang) or one per centre (Elkan). For rows of files the labels
are stored, at four bytes each; for rows in other processes nothing is, and a pass also compares with the previous
centres.

References
----------
Hamerly (2010), Making k-means even faster, SDM. Ding et al. (2015), Yinyang k-means, ICML.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.data.layout.blocks import empty_block, scratch_block
from summula.core.numerics.sums import Sum

__all__ = [
    "Centres",
    "ClusterSums",
    "LloydPass",
    "RowState",
    "are_few",
    "assign",
    "chunk_rows",
    "chunk_weights",
    "writeable",
]

Array = NDArray[Any]

_NONE, _NO_STEPS = np.empty(0), np.empty(0, np.float32)
_FEW = 2**18  # rows times centres times columns up to which computing all distances is as fast as filtering
_NARROW = 64  # number of columns up to which scores are computed in the kernel that compares them
_SCORES = 2**19  # otherwise, number of products of rows and centres per block, which fits the cache


@dataclass(frozen=True)
class Centres:
    """Centres in the form used by the kernels.

    Attributes
    ----------
    values : ndarray of shape (k, d)
        In the order of the groups.
    order : ndarray of shape (k,)
        The user's number of each centre.
    ends : ndarray of shape (groups + 1,)
        Group g consists of the centres from ends[g] up to ends[g + 1].
    origin : ndarray of shape (d,)
        A point near the mean of the rows, about which scores are computed.
    """

    values: Array
    order: Array
    ends: Array
    origin: Array

    @classmethod
    def of(cls, values: Array, origin: Array, groups: tuple[Array, Array] | None = None) -> Self:
        """Return the centres, given in the user's order; `groups` are (order, ends), by default a single group."""
        order, ends = (np.arange(len(values)), np.array([0, len(values)])) if groups is None else groups
        return cls(np.ascontiguousarray(values[order], np.float64), order, ends, origin)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Arrays from another process may be read-only.
        names = ("values", "order", "ends", "origin")
        self.__dict__.update({name: writeable(state[name]) for name in names})

    @property
    def outside(self) -> Array:
        """Return the centres in the user's order."""
        return self.in_order(self.values)

    @functools.cached_property
    def scoring(self) -> Scoring:
        """Return the inputs of the scores."""
        return Scoring.of(self)

    @functools.cached_property
    def apart(self) -> Array:
        """Return half the distance of each centre to the nearest other one, rounded down."""
        from summula.cluster.k_means_kernels import squared_distances

        D = np.empty((len(self.values), len(self.values)))
        squared_distances(self.values, self.values, D)
        np.fill_diagonal(D, np.inf)
        return np.asarray(np.sqrt(D.min(axis=1)) * (0.5 - 2.0**-40))

    @property
    def are_in_order(self) -> bool:
        """Return whether the order is the user's, as for a single group."""
        return len(self.ends) == 2

    def in_order(self, values: Array) -> Array:
        """Return the values of the centres in the user's order; they must not be modified."""
        if self.are_in_order:
            return values
        out = np.empty_like(values)
        out[self.order] = values
        return out


class Scoring(NamedTuple):
    """Inputs of the scores: rows (-c, |c|^2 / 2) about the origin in single precision, and their error."""

    rows: Array
    margin: tuple[float, float]

    @classmethod
    def of(cls, centres: Centres) -> Scoring:
        """Scores are products of these rows with (x, 1); their errors are below `margin`."""
        about = centres.values - centres.origin
        k, d = about.shape
        rows = empty_block(k, d + 1, np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            squares = np.einsum("kj,kj->k", about, about)
            rows[:, :d], rows[:, d] = -about, squares / 2
            longest = float(np.sqrt(squares.max()))
            # d + 1 roundings of the sum, two of each factor, one of the half square.
            return cls(rows, (1.05 * (d + 8) * 2.0**-24 * longest, longest))


@dataclass
class RowState:
    """State of the rows of this process between passes: labels, and bounds, if any.

    `moves` are the steps of the centres since the last pass: the maximum of each group, and each one. None before the
    first pass.
    """

    labels: Array
    lower: Array
    upper: Array
    moves: tuple[Array, Array] | None = None

    @classmethod
    def blank(cls, n_rows: int, groups: int) -> Self:
        """Return the initial state, without labels."""
        lower, upper = np.empty((n_rows, groups), np.float32), np.empty(n_rows if groups else 0, np.float32)
        return cls(np.full(n_rows, -1, np.int32), lower, upper)

    def advance(self, before: Centres, after: Centres) -> None:
        """Record the steps of the centres, if there are bounds."""
        if not self.lower.shape[1]:
            return
        moves = np.sqrt(np.einsum("kj,kj->k", after.values - before.values, after.values - before.values))
        moves = (moves * (1 + 2.0**-20)).astype(np.float32)
        self.moves = np.maximum.reduceat(moves, before.ends[:-1]), moves

    def rows(self, start: int, stop: int) -> Self:
        """Return the state of some rows."""
        here = slice(start, stop)
        return type(self)(self.labels[here], self.lower[here], self.upper[here], self.moves)


class LloydPass(NamedTuple):
    """Inputs of a pass: centres, and the previous labels, as a state of the rows or as the previous centres.

    `few` is whether all rows together are few (`are_few`).
    """

    centres: Centres
    state: RowState | None = None
    before: Centres | None = None
    few: bool = False


@dataclass(frozen=True)
class ClusterSums(Sum):
    """The sums (2), in the order of the groups of centres.

    Attributes
    ----------
    weight : ndarray of shape (k,)
    total : ndarray of shape (k, d)
    inertia : float
    moved : int
        Number of rows whose label changed.
    """

    weight: Array
    total: Array
    inertia: float
    moved: int

    @classmethod
    def map(cls, chunk: Chunk, params: LloydPass) -> Self:
        """Assign the rows of a chunk, and return their sums."""
        centres, state, before, few = params
        k, d = centres.values.shape
        here = RowState.blank(len(chunk), 0) if state is None else state.rows(chunk.start, chunk.stop)
        weight, total, moved = np.zeros(k), np.zeros((k, d)), 0
        X, w = chunk_rows(chunk), chunk_weights(chunk)
        own = scratch_block("k-means own", 1, len(chunk))[0]
        if before is None:
            moved = assign(X, centres, here, own)
        else:
            moved = _relabelled(X, before, centres, here, own)
        if chunk.is_sparse:
            return cls(*_sparse_sums(X, w, here.labels, own, centres.values), moved)
        from summula.cluster.k_means_kernels import add_few_rows, add_rows

        if few:
            inertia = add_few_rows(X, centres.values, w, here.labels, own, total, weight)
        else:
            inertia = add_rows(X, centres.values, w, here.labels, here.upper, total, weight)
        return cls(weight, total, float(inertia), moved)


def _relabelled(X: Any, before: Centres, now: Centres, state: RowState, own: Array) -> int:
    """Assign rows whose previous labels are not stored; return the number of labels that differ from them."""
    assign(X, before, state, own)
    last = before.order[state.labels]
    assign(X, now, state, own)
    return int((last != now.order[state.labels]).sum())


def writeable(values: Array) -> Array:
    """Return an array as writeable and in C order, as the compiled kernels require."""
    return values if values.flags.c_contiguous and values.flags.writeable else values.copy(order="C")


def chunk_weights(chunk: Chunk) -> Array:
    """Return the weights of a chunk for the kernels: empty if there are none."""
    return np.empty(0) if chunk.weight is None else writeable(np.asarray(chunk.weight, np.float64))


def chunk_rows(chunk: Chunk) -> Any:
    """Return the rows of a chunk as CSR, or in C order in their own precision; valid until the next call."""
    X = chunk.rows
    if chunk.is_sparse:
        return X.csr()
    if isinstance(X, np.ndarray) and X.dtype == chunk.dtype and X.flags.c_contiguous and X.flags.writeable:
        return X
    return chunk.write(scratch_block("k-means rows", len(chunk), chunk.n_features, chunk.dtype))


def are_few(rows: int, centres: int, columns: int) -> bool:
    """Return whether to compare rows with all centres, without scores and bounds."""
    return rows * centres * columns <= _FEW


def assign(X: Any, centres: Centres, state: RowState, own: Array) -> int:
    """Write the label (1) of every row, D to its centre, and lower bounds; return the number of changed labels.

    Parameters
    ----------
    X : CSR matrix, or ndarray in C order, of shape (n, d)
    centres : Centres
    state : RowState
        State of these rows with the previous labels, which are replaced by the new ones, in the order of the groups.
        Rows whose bounds exclude other labels keep theirs.
    own : ndarray of shape (n,)
        Receives D of the other rows (all rows if there are no bounds).
    """
    if hasattr(X, "indptr"):
        return _assign_sparse(X, centres, state.labels, own)
    from summula.cluster.k_means_kernels import assign_few_rows
    from summula.cluster.score_kernels import open_rows

    n, d = X.shape
    if not state.lower.shape[1] and are_few(n, len(centres.values), d):
        return int(assign_few_rows(X, centres.values, centres.order, state.labels, own))
    bounds: tuple[Array, Array, Array] = (_NONE, _NO_STEPS, _NO_STEPS)
    if state.moves is not None and state.lower.shape[1]:
        bounds = (centres.apart, *state.moves)
    listed = scratch_block("k-means open", 1, n, np.int64)[0]
    block, lengths = scratch_block("k-means block", n, d + 1, np.float32), scratch_block("k-means lengths", 1, n)[0]
    rows, written = (state.labels, state.lower, state.upper), (own, listed, block, lengths)
    count = open_rows(X, centres.values, centres.origin, bounds, rows, written)
    most = max(256, _SCORES // len(centres.values)) if d > _NARROW else n
    moved = 0
    for first in range(0, count, most):
        some = slice(first, min(first + most, count))
        moved += _compare(X, centres, listed[some], block[some], lengths[some], (state.labels, own, state.lower))
    return moved


def _compare(X: Array, centres: Centres, rows: Array, block: Array, lengths: Array, out: tuple[Array, ...]) -> int:
    """Compare some rows with all centres; return the number of changed labels."""
    from summula.cluster.score_kernels import TILE, assign_rows

    rows_of_centres, margin = centres.scoring
    k, d, groups = len(centres.values), X.shape[1], len(centres.ends) - 1
    wide = d > _NARROW
    scores = scratch_block("k-means scores", k, len(rows) if wide else 0, np.float32)
    if wide:
        with np.errstate(over="ignore", invalid="ignore"):
            np.matmul(rows_of_centres, block.T, out=scores)
    even, lows = k + k % 2, 2 * (groups + 1)
    of_tile = scratch_block("k-means tile", even + lows + 4 + (0 if wide else d), TILE, np.float32)
    places = scratch_block("k-means chosen", groups + 3, TILE, np.int32)
    lowest = of_tile[even : even + lows].reshape(2, groups + 1, TILE)
    best, tile = of_tile[even + lows : even + lows + 4], of_tile[even + lows + 4 :]
    scratch = (of_tile[:even], lowest, places[2:], best, places[:2], tile)
    at, scored = (centres.ends, centres.order), (rows_of_centres, block, scores)
    return int(assign_rows(X, centres.values, at, rows, scored, lengths, margin, scratch, out))


def _assign_sparse(X: Any, centres: Centres, labels: Array, own: Array) -> int:
    """Do the same for sparse rows, with D = |x|^2 + (|c|^2 - 2 x'c) and without bounds."""
    C = centres.outside
    squares = np.asarray(X.multiply(X).sum(axis=1), np.float64).ravel()
    shares = np.einsum("kj,kj->k", C, C) - 2.0 * (X @ C.T)
    nearest = shares.argmin(axis=1)
    own[:] = np.maximum(squares + shares[np.arange(len(nearest)), nearest], 0.0)
    place = np.empty(len(C), np.int32)
    place[centres.order] = np.arange(len(C))
    moved = int((labels != place[nearest]).sum())
    labels[:] = place[nearest]
    return moved


def _sparse_sums(X: Any, w: Array, labels: Array, own: Array, C: Array) -> tuple[Array, Array, float]:
    """Return weights, totals about the centres and inertia of sparse rows."""
    from scipy.sparse import csr_array

    n = len(labels)
    w = np.ones(n) if not len(w) else w
    weight = np.bincount(labels, weights=w, minlength=len(C))
    member = csr_array((w, (labels, np.arange(n))), shape=(len(C), n))
    return weight, (member @ X).toarray() - weight[:, None] * C, float(w @ own)
