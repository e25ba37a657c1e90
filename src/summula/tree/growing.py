"""Growing a tree on binned rows: best node first, histograms of the smaller child only.

    1. of all leaves split the one of largest gain,
    2. sort its rows in two,
    3. sum the histogram of the side with fewer rows; the other's is the parent's less that,
    4. find the best split of both.

All sums are integers, so a tree is the same for any number of threads and any order of rows within chunks. The steps
themselves are in `growing_kernels`.
"""

from __future__ import annotations

import functools
import itertools
import math
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.engine.threads import inside_pool, thread_count, together
from summula.core.engine.worker_group import LINE, WorkerGroup, group_size
from summula.tree.growing_kernels import (
    COUNT,
    DONE,
    NARROWS,
    NEXT,
    STATE,
    WIDES,
    Crew,
    Room,
    Stop,
    Table,
    Turn,
    Work,
    grow,
    read,
)
from summula.tree.histogram_kernels import BLOCK
from summula.tree.nodes import Bins, Growth, Rules, Slopes, Tree
from summula.tree.partition_kernels import add_values, leaf_values
from summula.tree.split_kernels import BINS, Columns, Limits

__all__ = ["Grower", "Grown"]

Array = NDArray[Any]

_TINY = 40_000  # bins in all below which barriers cost more than they save
_SMALL = 1_200_000  # below which sharing the shorter steps does, and the worker group persists from tree to tree
_LONG = 50_000_000  # additions and comparisons per tree from which on growing is supervised: about 0.1 s
_FEW = 64  # leaves there is room for at first
_ENDLESS = 2**62  # leaves, or levels
_WIDE = 62  # bits of the sums of leaf values


class Grown(NamedTuple):
    """A tree, and the rows of its leaves: those of leaf `leaves[k]` are `rows[starts[k] : starts[k + 1]]`."""

    tree: Tree
    leaves: Array
    starts: Array
    rows: Array


class Grower:
    """Grows trees on the same bins, one after the other.

    Parameters
    ----------
    bins : Bins
    columns : Columns
        What the columns are.
    rules : Rules
    n_jobs : int, optional
        Most threads.
    """

    def __init__(self, bins: Bins, columns: Columns, rules: Rules, n_jobs: int | None = None) -> None:
        self.bins, self.columns, self.rules = bins, columns, rules
        n, d = bins.rows.shape
        threads = 1 if inside_pool() else thread_count(n_jobs)
        self.threads = threads if n * d >= _SMALL else 1
        self._members = group_size(n_jobs) if n * d >= _TINY else 1
        self.is_long = _tree_work(n, d, rules) > _LONG
        self.rows, self._spare = np.empty(n, np.uint32), np.empty(n, np.uint32)
        self._table = Table(bins.rows, *bins.by_column)
        self._crews = {members: _crew(columns, members) for members in {1, self._members}}
        self._teams: dict[int, WorkerGroup] = {}
        self._pace = _Pace(always=self.threads > 1 or self._members == 1)
        self._growth = Growth.of(2 * min(rules.max_leaves or _FEW, _FEW) - 1)
        groups = () if rules.groups is None else rules.groups
        self._groups = np.zeros((len(groups), d), np.uint8)
        for k, group in enumerate(groups):
            self._groups[k, sorted(group)] = 1
        self._room = _room(len(self._growth.child), d, len(groups))
        self._turn = Turn(np.ones(2), np.zeros(1, np.int64))
        self._given: Array | None = None
        self._is_cancelled = False

    # ------------------------------------------------------------------------------------------------------- one tree

    def grow(self, slopes: Slopes, key: int = 0) -> Grown:
        """A tree for these gradients; `key` is that of the random numbers that draw columns (`core.engine.random`)."""
        self._room.state[COUNT] = 0
        self._turn.units[:] = slopes.gradient_unit, slopes.curvature_unit
        self._turn.key[0] = key
        if slopes.packed is not self._given:
            self._given = slopes.packed
            self._teams.clear()
        start, by_team = perf_counter(), self._pace.wants_team()
        while True:
            self._team(self._members if by_team else 1, slopes).run()
            if self._room.state[NEXT] == DONE:
                break
            self._enlarge()
            self._teams.clear()
        self._pace.note(perf_counter() - start)
        grown = self._grown(slopes)
        self._finish(grown, slopes)
        return grown

    def cancel(self) -> None:
        """End the tree that is being grown, with an error, and grow no other."""
        self._is_cancelled = True
        for group in list(self._teams.values()):
            group.cancel()

    def _team(self, members: int, slopes: Slopes) -> WorkerGroup:
        """The worker group of this size that grows trees for these gradients, in the space allocated now."""
        if members in self._teams:
            return self._teams[members]
        rules, endless = self.rules, self.rules.max_leaves is None
        leaves, depth = rules.max_leaves or _ENDLESS, _ENDLESS if rules.max_depth is None else rules.max_depth
        limits = Limits(1.0, 1.0, rules.l2, rules.min_rows, rules.min_curvature)
        stop = Stop(leaves, depth, float(rules.min_gain), endless, float(rules.share), self._groups)
        given = self._table, slopes.packed, slopes.packing, self.rows, self._spare, self.columns
        work = Work(*given, limits, stop, self._turn, self._crews[members], self._room, self._growth)
        persistent = self.threads == 1 and not self.is_long
        options = {"persistent": persistent, "supervised": self.is_long}
        self._teams[members] = WorkerGroup(functools.partial(grow, work), members, **options)
        if self._is_cancelled:
            self._teams[members].cancel()
        return self._teams[members]

    def _grown(self, slopes: Slopes) -> Grown:
        nodes = int(self._room.state[COUNT])
        whole, real = np.empty((6, nodes), np.int64), np.empty((3, nodes))
        leaves, starts = np.empty(nodes // 2 + 1, np.int64), np.empty(nodes // 2 + 2, np.int64)
        read(self._growth, nodes, slopes.curvature_unit, whole, real, leaves, starts)
        return Grown(Tree.of(whole, real, self._growth.left), leaves, starts, self.rows)

    def _enlarge(self) -> None:
        """Room for twice as many nodes, or histograms, whichever there are too few of."""
        room, state = self._room, self._room.state
        if state[COUNT] + 2 > len(self._growth.child):
            self._growth = self._growth.larger()
            room = room._replace(**{name: _doubled(getattr(room, name)) for name in ("place", "open", "member")})
        if state[NARROWS] < 2:
            room = room._replace(narrow=_doubled(room.narrow), free=_more(room.free, int(state[NARROWS])))
            state[NARROWS] += len(room.narrow) // 2
        if state[WIDES] < 1:
            room = room._replace(wide=_doubled(room.wide), free_wide=_more(room.free_wide, int(state[WIDES])))
            state[WIDES] += len(room.wide) // 2
        self._room = room

    def add_to(self, scores: Array, grown: Grown) -> None:
        """Add the values of the leaves to the scores of their rows."""
        values = grown.tree.value[grown.leaves]
        together(
            [
                functools.partial(add_values, self.rows, grown.starts, values, a, b, scores)
                for a, b in self._shares(grown)
            ]
        )

    def _shares(self, grown: Grown) -> list[tuple[int, int]]:
        """Leaves for each thread, of about as many rows."""
        if self.threads == 1:
            return [(0, len(grown.leaves))]
        cuts = np.searchsorted(grown.starts, np.linspace(0, len(self.rows), self.threads + 1))
        cuts[0], cuts[-1] = 0, len(grown.leaves)
        return [(int(a), int(b)) for a, b in itertools.pairwise(cuts) if b > a]

    def _finish(self, grown: Grown, slopes: Slopes) -> None:
        """The values of the leaves, from unrounded gradients summed in fixed point."""
        rules, tree = self.rules, grown.tree
        digits = _WIDE - math.ceil(math.log2(max(slopes.top, 1e-300))) - math.ceil(math.log2(max(len(self.rows), 2)))
        unit = 2.0 ** min(digits, 1000)
        given = slopes.gradients, slopes.curvatures, unit, rules.l2, rules.rate, self._growth.node
        places = self.rows, grown.starts, grown.leaves
        together(
            [
                functools.partial(leaf_values, *places, a, b, *given, tree.value, tree.weight)
                for a, b in self._shares(grown)
            ]
        )


def _tree_work(n: int, d: int, rules: Rules) -> float:
    """Estimate the additions and comparisons that a tree takes."""
    leaves = min(rules.max_leaves or _ENDLESS, max(n // rules.min_rows, 1))
    levels = min(math.log2(leaves) + 1, math.inf if rules.max_depth is None else rules.max_depth)
    return d * (n * levels + 2.0 * BINS * min(leaves, 2.0 ** min(levels, 60)))


class _Pace:
    """Whether a team is faster than one thread at a small tree: tried now and then, since others need processors too.

    A trial is four trees, two in each way; the shorter time of both counts until the next.
    """

    def __init__(self, *, always: bool) -> None:
        self._always, self._trees, self._team_wins = always, 0, True
        self._seconds: list[float] = []

    def wants_team(self) -> bool:
        """For the next tree."""
        return self._always or self._since() < 2 or (self._since() > 3 and self._team_wins)

    def note(self, seconds: float) -> None:
        """How long it took."""
        if self._since() < 4:
            self._seconds.append(seconds)
        if len(self._seconds) == 4:
            self._team_wins = min(self._seconds[:2]) < min(self._seconds[2:])
            self._seconds = []
        self._trees += 1

    def _since(self) -> int:
        """Trees since a trial began: at the first tree, at the 16th, the 64th, the 256th ..."""
        return self._trees if self._trees < 16 else self._trees - (1 << ((self._trees.bit_length() - 1) & ~1))


def _crew(columns: Columns, threads: int) -> Crew:
    """What the members of a team need; their columns are about as much work."""
    d = len(columns.n_bins)
    work = np.where(columns.categorical > 0, 30 + columns.n_bins, 60)  # categories are put in order first
    done = np.cumsum(work) / work.sum()
    cuts = np.concatenate([[0], np.searchsorted(done, np.arange(1, threads) / threads) + 1, [d]])
    return Crew(
        np.minimum(cuts, d).astype(np.int64),
        np.zeros((threads, min(d, BLOCK), BINS), np.int64),
        np.empty((threads - 1, d, BINS), np.int64),
        np.empty((threads - 1, d, 3 * BINS), np.int64),
        np.zeros((threads, LINE), np.int64),
        np.ones((threads, 2, d), np.uint8),
        np.empty((threads, 2)),
        np.empty((threads, 2, 6), np.int64),
        np.empty((threads, 2, BINS), np.uint8),
    )


def _room(nodes: int, d: int, groups: int) -> Room:
    """For that many nodes; memory that is never written to is never taken."""
    narrow, wide = nodes // 2 + 3, 4
    return Room(
        np.empty((narrow, d, BINS), np.int64),
        np.empty((wide, d, 3 * BINS), np.int64),
        np.empty(narrow, np.int64),
        np.empty(wide, np.int64),
        np.zeros(nodes, np.int64),
        np.zeros(nodes, np.int64),
        np.zeros((nodes, groups), np.uint8),
        np.zeros(STATE, np.int64),
    )


def _doubled(part: Array) -> Array:
    larger = np.empty((2 * len(part), *part.shape[1:]), part.dtype)
    larger[: len(part)] = part
    return larger


def _more(free: Array, left: int) -> Array:
    """The numbers of free histograms, of which `left` are left, when there are twice as many."""
    more = np.zeros(2 * len(free), np.int64)
    more[:left] = free[:left]
    more[left : left + len(free)] = np.arange(len(free), 2 * len(free))
    return more
