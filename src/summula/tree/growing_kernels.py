"""A whole tree in one kernel, by one thread or by a worker group.

Every member of the worker group executes the same steps (those of `growing`) and takes its share of each: rows where a
node is partitioned or summed, columns where splits are searched. Member 0 does the bookkeeping. A barrier separates two
steps; what is read after a barrier was written before it, and nothing is written by two members.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from summula.core.engine.random_kernels import random_bits
from summula.core.engine.worker_group import LINE, barrier_wait, is_cancelled, wait_for_round
from summula.core.numerics.compile import kernel, piece
from summula.tree.histogram_kernels import BLOCK, Packing, accumulate
from summula.tree.nodes import Growth
from summula.tree.partition_kernels import gather, scatter
from summula.tree.split_kernels import BINS, MISSING, Columns, Limits, best_split, sides, split_children, whole

__all__ = [
    "COUNT",
    "DONE",
    "NARROWS",
    "NEXT",
    "STATE",
    "WIDES",
    "Crew",
    "Room",
    "Stop",
    "Table",
    "Turn",
    "Work",
    "grow",
    "read",
    "warmup",
]

DONE, _FULL = -1, -2  # instead of the next leaf to split
# Places in the state: nodes, leaves, leaves that may be split, free histograms of either kind, the leaf to split,
# whether its children are searched, and the histograms of the smaller child, of the larger, of the leaf itself.
COUNT, _LEAVES, _OPEN, NARROWS, WIDES, NEXT, _SEARCH, _SMALL, _LARGE, _PARENT, STATE = range(11)
_TOGETHER = 2_000  # rows of a node from which on the team shares them when it is sorted
_PER_COLUMN = 32  # rows, times columns, from which on it shares them when a node is summed


class Table(NamedTuple):
    """Bins row by row, and with the strides for which bin f of row i is by_column[i * by_row + f * by_feature]."""

    bins: Any
    by_column: Any
    by_row: int
    by_feature: int


class Stop(NamedTuple):
    """What ends a tree, and which columns a node may use (see `nodes.Rules`)."""

    max_leaves: int
    max_depth: int
    min_gain: float
    all_leaves: bool  # each leaf will be split that can be: the last one first, which needs least memory
    share: float
    groups: Any  # (groups, columns), 1 for the members of each


class Crew(NamedTuple):
    """What the members of a team have for their own, an entry each."""

    cuts: Any  # where the columns of each start, and where the last one's stop
    space: Any
    narrow: Any  # histograms of all members but the first
    wide: Any
    counts: Any
    allowed: Any
    gains: Any
    founds: Any
    lefts: Any


class Room(NamedTuple):
    """Histograms of leaves that may be split, packed and wide; the numbers of the free ones; the books."""

    narrow: Any
    wide: Any
    free: Any
    free_wide: Any
    place: Any  # for each node that of its histogram
    open: Any
    member: Any  # (nodes, groups): whether the columns of a group may still be used
    state: Any


class Turn(NamedTuple):
    """What changes from tree to tree; in arrays, which a team that stays looks into again."""

    units: Any  # what an integer is worth, of gradients and curvatures
    key: Any  # of the random numbers that draw columns


class Work(NamedTuple):
    """All that a tree is grown from, and with."""

    table: Table
    gradients: Any
    packing: Any
    rows: Any
    spare: Any
    columns: Any
    limits: Any  # units are those of the turn
    stop: Stop
    turn: Turn
    crew: Crew
    room: Room
    growth: Any


@piece
def _packed(rows: int, packing: Any) -> bool:
    return rows <= packing.mask  # type: ignore[no-any-return]


@piece
def _take(room: Any, packed: bool) -> int:
    """A free histogram."""
    kind, free = (NARROWS, room.free) if packed else (WIDES, room.free_wide)
    state = room.state
    state[kind] -= 1
    return free[state[kind]]  # type: ignore[no-any-return]


@piece
def _give_back(room: Any, packed: bool, number: int) -> None:
    kind, free = (NARROWS, room.free) if packed else (WIDES, room.free_wide)
    state = room.state
    free[state[kind]] = number
    state[kind] += 1


@piece
def _histogram(room: Any, packed: bool, number: int) -> Any:
    return room.narrow[number] if packed else room.wide[number]


@piece
def _allow(node: int, stop: Any, turn: Any, room: Any, allowed: Any) -> None:
    """Which columns a node may be split on; a share of them is drawn by counters of node and column."""
    share, groups, member = stop.share, stop.groups, room.member
    count, d = len(groups), len(allowed)
    if count == 0 and share >= 1.0:
        return
    candidates = 0
    for f in range(d):
        allowed[f] = count == 0
        for k in range(count):
            if member[node, k] and groups[k, f]:
                allowed[f] = 1
        candidates += allowed[f]
    if share >= 1.0:
        return
    wanted = max(1, int(np.ceil(share * candidates)))
    for f in range(d):
        if allowed[f]:
            random = random_bits(turn.key[0], node * d + f)
            if np.float64(random >> np.uint64(11)) * candidates >= 2.0**53 * wanted:
                allowed[f] = 0
            else:
                wanted -= 1
            candidates -= 1


@piece
def _own(length: int, members: int, me: int) -> Any:
    """Where the share of a member starts and stops."""
    return length * me // members, length * (me + 1) // members


@piece
def _sum_together(work: Any, rows: Any, place: Any, me: int, sums: Any) -> None:
    """The histogram of a node: each member sums some rows, then adds up the sums of its columns."""
    bins, packing, crew = work.table.bins, work.packing, work.crew
    members, d, cuts = len(place) - 1, bins.shape[1], crew.cuts
    others = crew.narrow if _packed(len(rows), packing) else crew.wide
    a, b = _own(len(rows), members, me)
    own = sums if me == 0 else others[me - 1]
    accumulate(bins, rows[a:b], work.gradients, 0, d, packing, crew.space[me], own, place)
    barrier_wait(place, me)
    for k in range(members - 1):
        for f in range(cuts[me], cuts[me + 1]):
            for b in range(sums.shape[1]):
                sums[f, b] += others[k, f, b]


@piece
def _choose(node: int, side: int, stop: Any, crew: Any, room: Any, growth: Any) -> None:
    """The best of what the members have found for a node; of equal ones the first."""
    gains, founds, lefts, state = crew.gains, crew.founds, crew.lefts, room.state
    found, left = growth.found, growth.left
    best = 0
    for k in range(1, len(gains)):
        if gains[k, side] > gains[best, side]:
            best = k
    growth.gain[node] = gains[best, side]
    for k in range(6):
        found[node, k] = founds[best, side, k]
    for k in range(BINS):
        left[node, k] = lefts[best, side, k]
    if gains[best, side] > stop.min_gain:
        room.open[state[_OPEN]] = node
        state[_OPEN] += 1


@piece
def _clear(room: Any) -> None:
    """All histograms are free, and there is no node."""
    state, free, free_wide = room.state, room.free, room.free_wide
    state[:] = 0
    state[NARROWS], state[WIDES] = len(free), len(free_wide)
    for k in range(len(free)):
        free[k] = k
    for k in range(len(free_wide)):
        free_wide[k] = k


@piece
def _root(work: Any, limits: Any, place: Any, me: int) -> None:
    """The first node: all rows."""
    packing, stop, crew, room, growth = work.packing, work.stop, work.crew, work.room, work.growth
    rows, state, span, gains = work.rows, room.state, growth.span, crew.gains
    n = len(rows)
    packed = _packed(n, packing)
    first, last = _own(n, len(place) - 1, me)
    for i in range(first, last):
        rows[i] = i
    if me == 0:
        _clear(room)
        room.place[0] = _take(room, packed)
        room.member[0] = 1
        span[0, 0], span[0, 1], span[0, 2] = 0, n, 0
        growth.child[0], growth.gain[0] = 0, -1.0
        state[COUNT] = state[_LEAVES] = 1
    barrier_wait(place, me)
    sums, total, node = _histogram(room, packed, room.place[0]), growth.total[0], growth.node[0]
    _sum_together(work, rows, place, me, sums)
    barrier_wait(place, me)
    if me == 0:
        whole(sums, packing, limits, total, node)
    barrier_wait(place, me)
    gains[me, 0] = -1.0
    if n >= 2 * limits.min_rows and stop.max_depth > 0:
        cuts, allowed = crew.cuts, crew.allowed[me, 0]
        _allow(0, stop, work.turn, room, allowed)
        gains[me, 0] = best_split(
            sums,
            cuts[me],
            cuts[me + 1],
            work.columns,
            allowed,
            total,
            node,
            limits,
            packing,
            -1.0,
            crew.founds[me, 0],
            crew.lefts[me, 0],
        )
    barrier_wait(place, me)
    if me == 0:
        _choose(0, 0, stop, crew, room, growth)


@piece
def _next(stop: Any, room: Any, growth: Any) -> int:
    """The leaf to split: of largest gain, of equal ones the first."""
    state, waiting, gain = room.state, room.open, growth.gain
    if state[_OPEN] == 0 or state[_LEAVES] >= stop.max_leaves:
        return DONE
    if state[COUNT] + 2 > len(gain) or state[NARROWS] < 2 or state[WIDES] < 1:
        return _FULL
    at = state[_OPEN] - 1
    if not stop.all_leaves:
        for k in range(state[_OPEN] - 1):
            node, best = waiting[k], waiting[at]
            if gain[node] > gain[best] or (gain[node] == gain[best] and node < best):
                at = k
    leaf = waiting[at]
    state[_OPEN] -= 1
    waiting[at] = waiting[state[_OPEN]]
    return leaf  # type: ignore[no-any-return]


@piece
def _enter(work: Any, limits: Any, leaf: int, lefts: int) -> None:
    """Two children in the books, and room for their histograms: the larger one takes that of the leaf if it can."""
    packing, stop, room, growth = work.packing, work.stop, work.room, work.growth
    state, member, groups = room.state, room.member, stop.groups
    span, total, node, children, gain = growth.span, growth.total, growth.node, growth.child, growth.gain
    child, found = state[COUNT], growth.found[leaf]
    start, end, depth = span[leaf, 0], span[leaf, 1], span[leaf, 2]
    f, pair = found[0], slice(child, child + 2)
    sides(total[leaf], found, node[leaf], limits, work.columns.monotone[f], total[pair], node[pair])
    children[leaf] = child
    span[child, 0], span[child + 1, 1] = start, end
    span[child, 1] = span[child + 1, 0] = start + lefts
    for k in range(child, child + 2):
        span[k, 2], children[k], gain[k] = depth + 1, 0, -1.0
        for group in range(len(groups)):
            member[k, group] = member[leaf, group] and groups[group, f]
    state[COUNT] += 2
    state[_LEAVES] += 1
    many, few = max(lefts, end - start - lefts), min(lefts, end - start - lefts)
    packed, number = _packed(end - start, packing), room.place[leaf]
    state[_SEARCH] = many >= 2 * limits.min_rows and depth + 1 < stop.max_depth and state[_LEAVES] < stop.max_leaves
    if not state[_SEARCH]:
        _give_back(room, packed, number)
        return
    state[_SMALL], state[_LARGE], state[_PARENT] = _take(room, _packed(few, packing)), number, number
    if not packed and _packed(many, packing):
        state[_LARGE] = _take(room, True)
        _give_back(room, False, number)  # nobody takes it before the children are summed


@piece
def _sort(work: Any, leaf: int, place: Any, me: int) -> int:
    """Put the rows of a leaf that go left first; gives their number, to the first member at least."""
    table, rows, spare, growth = work.table, work.rows, work.spare, work.growth
    counts, span = work.crew.counts, growth.span
    start, end, f = span[leaf, 0], span[leaf, 1], growth.found[leaf, 0]
    members = len(place) - 1 if end - start >= _TOGETHER else 1
    if me >= members:
        return 0
    a, b = _own(end - start, members, me)
    bins = table.by_column[f * table.by_feature :]
    counts[me, 0] = scatter(rows, bins, table.by_row, growth.left[leaf], start + a, start + b, spare)
    if members > 1:
        barrier_wait(place, me)
    lefts = before = 0
    for k in range(members):
        lefts += counts[k, 0]
        before += counts[k, 0] if k < me else 0
    gather(rows, spare, start + a, start + b, counts[me, 0], start + before, start + lefts + a - before)
    return lefts


@piece
def _search(work: Any, limits: Any, leaf: int, place: Any, me: int) -> None:
    """Histograms of the children of a leaf, and their best splits."""
    rows, packing, stop, crew, room, growth = work.rows, work.packing, work.stop, work.crew, work.room, work.growth
    child, state, span, bins, cuts = growth.child[leaf], room.state, growth.span, work.table.bins, crew.cuts
    start, middle, end = span[child, 0], span[child, 1], span[child + 1, 1]
    which = 0 if middle - start <= end - middle else 1
    few = rows[start:middle] if which == 0 else rows[middle:end]
    many = end - start - len(few)
    small = _histogram(room, _packed(len(few), packing), state[_SMALL])
    large = _histogram(room, _packed(many, packing), state[_LARGE])
    parent = _histogram(room, _packed(end - start, packing), state[_PARENT])
    if len(place) > 2 and len(few) >= _PER_COLUMN * bins.shape[1]:
        _sum_together(work, few, place, me, small)
        few = few[:0]
    pair, allowed = slice(child, child + 2), crew.allowed[me]
    for side in range(2):
        _allow(child + side, stop, work.turn, room, allowed[side])
    split_children(
        bins,
        few,
        work.gradients,
        cuts[me],
        cuts[me + 1],
        crew.space[me],
        small,
        parent,
        large,
        which,
        work.columns,
        allowed,
        growth.total[pair],
        growth.node[pair],
        limits,
        packing,
        crew.gains[me],
        crew.founds[me],
        crew.lefts[me],
        place,
    )
    barrier_wait(place, me)
    if me == 0:
        for side in range(2):
            node = child + side
            _choose(node, side, stop, crew, room, growth)
            number = state[_SMALL] if side == which else state[_LARGE]
            room.place[node] = number
            if not growth.gain[node] > stop.min_gain:
                _give_back(room, _packed(span[node, 1] - span[node, 0], packing), number)


@kernel
def grow(work: Any, place: Any, me: int) -> None:
    """Split the root as often as allowed; a state other than DONE says that there is too little room to go on."""
    room, units, given = work.room, work.turn.units, work.limits
    state = room.state
    while wait_for_round(place, me):
        limits = Limits(units[0], units[1], given.l2, given.min_rows, given.min_curvature)
        fresh = state[COUNT] == 0
        barrier_wait(place, me)
        if fresh:
            _root(work, limits, place, me)
        while True:
            if me == 0:
                state[NEXT] = _next(work.stop, room, work.growth)
            barrier_wait(place, me)
            leaf = state[NEXT]
            if leaf < 0:
                break
            if is_cancelled(place):
                raise RuntimeError("the tree was cancelled")
            lefts = _sort(work, leaf, place, me)
            if me == 0:
                _enter(work, limits, leaf, lefts)
            barrier_wait(place, me)
            if state[_SEARCH]:
                _search(work, limits, leaf, place, me)
        barrier_wait(place, me)
        if me == 0:
            return


@kernel
def read(growth: Any, nodes: int, curvature_unit: float, whole: Any, real: Any, leaves: Any, starts: Any) -> None:
    """A tree as columns, the rows of `whole` and `real` (see `nodes.Tree`); its leaves in the order of their rows."""
    for node in range(nodes):
        inner = growth.child[node] > 0
        whole[0, node] = growth.found[node, 0] if inner else -1
        whole[1, node] = growth.found[node, 1] if inner else -1
        whole[2, node] = growth.left[node, MISSING] if inner else 0
        whole[3, node] = growth.child[node]
        whole[4, node] = growth.total[node, 2]
        whole[5, node] = growth.span[node, 2]
        real[0, node] = growth.node[node, 0]
        real[1, node] = growth.gain[node] if inner else 0.0
        real[2, node] = curvature_unit * growth.total[node, 1]
    waiting = np.zeros(nodes + 1, np.int64)  # the root first
    depth, found = 1, 0
    while depth > 0:
        node = waiting[depth - 1]
        if growth.child[node] > 0:
            waiting[depth - 1], waiting[depth] = growth.child[node] + 1, growth.child[node]
            depth += 1
        else:
            leaves[found], starts[found] = node, growth.span[node, 0]
            found, depth = found + 1, depth - 1
    starts[found] = growth.span[0, 1]


def warmup() -> None:
    """Compile for the types people use."""
    columns = Columns(np.ones(1, np.int64), np.zeros(1, np.int64), np.zeros(1, np.int64))
    bins, narrow, wide = (
        np.zeros((1, 1), np.uint8),
        np.zeros((2, 1, BINS), np.int64),
        np.zeros((1, 1, 3 * BINS), np.int64),
    )
    work = Work(
        Table(bins, bins.reshape(-1), 1, 1),
        np.ones(1, np.int64),
        Packing.of(14, 9),
        np.zeros(1, np.uint32),
        np.zeros(1, np.uint32),
        columns,
        Limits(1.0, 1.0, 0.0, 1, 1e-3),
        Stop(2, 2, 0.0, False, 1.0, np.zeros((0, 1), np.uint8)),
        Turn(np.ones(2), np.zeros(1, np.int64)),
        Crew(
            np.array([0, 1]),
            np.zeros((1, BLOCK, BINS), np.int64),
            narrow[:0],
            wide[:0],
            np.zeros((1, LINE), np.int64),
            np.ones((1, 2, 1), np.uint8),
            np.zeros((1, 2)),
            np.zeros((1, 2, 6), np.int64),
            np.zeros((1, 2, BINS), np.uint8),
        ),
        Room(
            narrow,
            wide,
            np.arange(2),
            np.arange(1),
            np.zeros(3, np.int64),
            np.zeros(3, np.int64),
            np.zeros((3, 0), np.uint8),
            np.array([0, 0, 0, 2, 1, 0, 0, 0, 0, 0]),
        ),
        Growth.of(3),
    )
    grow(work, np.zeros((2, LINE), np.int64), 0)
    leaves = np.zeros(2, np.int64)
    read(work.growth, 1, 1.0, np.zeros((6, 1), np.int64), np.zeros((3, 1)), leaves[:1], leaves)
