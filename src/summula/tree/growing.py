"""Growing a tree on binned rows: best node first, histograms of the smaller child only.

    1. of all leaves split the one of largest gain,
    2. sort its rows in two,
    3. sum the histogram of the side with fewer rows; the other's is the parent's less that,
    4. find the best split of both.

All sums are integers, so a tree is the same for any number of threads and any order of rows within chunks. Large
nodes share their rows among threads, small ones their columns; small tables are left to `growing_kernels` whole.
"""

from __future__ import annotations

import functools
import heapq
import itertools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.threads import inside_pool, thread_count, together
from summula.tree.growing_kernels import grow_alone
from summula.tree.histogram_kernels import BLOCK, accumulate
from summula.tree.nodes import Bins, Growth, Rules, Slopes, Tree
from summula.tree.partition_kernels import add_values, leaf_sums, partition
from summula.tree.split_kernels import BINS, Columns, Limits, best_split, sides, split_children, whole

__all__ = ["Grower", "Grown"]

Array = NDArray[Any]
Groups = tuple[frozenset[int], ...] | None

_BY_ROWS = 16_000  # rows of a node from which on threads share them when it is sorted
_ALONE = 80_000  # rows times columns below which one thread sums a node
_SMALL = 1_500_000  # bins in all below which handing out work costs more than it saves
_COLUMNS = 100  # beyond which there is work for several threads in any node
_LEAVES = 1_000  # whose histograms a small table has room for at once
_AT_ONCE = 2**20  # rows numbered at once: a second array of all would be the largest need of memory
_NO_ROWS = np.empty(0, np.uint32)
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
    alone : bool, default=False
        Whether a tree is grown in one call wherever it can be, because other threads grow others.
    """

    def __init__(
        self, bins: Bins, columns: Columns, rules: Rules, n_jobs: int | None = None, *, alone: bool = False
    ) -> None:
        self.bins, self.columns, self.rules = bins, columns, rules
        n, d = bins.rows.shape
        plain = rules.groups is None and rules.share == 1.0
        self.can_be_whole = plain and rules.max_leaves is not None and rules.max_leaves <= _LEAVES
        self._whole = self.can_be_whole and (alone or (n * d < _SMALL and d <= _COLUMNS))
        self.threads = 1 if self._whole or inside_pool() else thread_count(n_jobs)
        self.rows, self._spare = np.empty(n, np.uint32), np.empty(n, np.uint32)
        self._space = np.zeros((self.threads, min(d, BLOCK), BINS), np.int64)
        self._free: dict[bool, list[Array]] = {False: [], True: []}
        cuts = _cuts(0, d, min(self.threads, d))
        self._slices = list(itertools.pairwise(cuts))
        k = len(self._slices)
        self._gains, self._founds = np.empty((k, 2)), np.empty((k, 2, 6), np.int64)
        self._lefts = np.empty((k, 2, BINS), np.uint8)
        self._growth = Growth.of(2 * rules.max_leaves - 1 if rules.max_leaves else 61)

    # ------------------------------------------------------------------------------------------------------- one tree

    def grow(self, slopes: Slopes, rng: np.random.Generator | None = None) -> Grown:
        """A tree for these gradients; `rng` draws columns where not all are looked at."""
        rules = self.rules
        self._slopes, self._rng = slopes, rng
        self._limits = Limits(
            slopes.gradient_unit, slopes.curvature_unit, rules.l2, rules.min_rows, rules.min_curvature
        )
        for start in range(0, len(self.rows), _AT_ONCE):
            some = self.rows[start : start + _AT_ONCE]
            some[:] = np.arange(start, start + len(some), dtype=np.uint32)
        count = self._grow_whole() if self._whole else self._grow_shared()
        leaves = np.flatnonzero(self._growth.child[:count] == 0)
        leaves = leaves[np.argsort(self._growth.span[leaves, 0])]
        starts = np.append(self._growth.span[leaves, 0], len(self.rows))
        grown = Grown(Tree.of(self._growth, count, slopes.curvature_unit), leaves, starts, self.rows)
        self._finish(grown)
        return grown

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

    def _finish(self, grown: Grown) -> None:
        """The values of the leaves, from unrounded gradients summed in fixed point."""
        rules, slopes, tree = self.rules, self._slopes, grown.tree
        digits = _WIDE - int(np.ceil(np.log2(max(slopes.top, 1e-300)))) - int(np.ceil(np.log2(max(len(self.rows), 2))))
        unit = 2.0 ** min(digits, 1000)
        sums = np.empty((len(grown.leaves), 2))
        given = slopes.gradients, slopes.curvatures, unit, sums
        together([functools.partial(leaf_sums, self.rows, grown.starts, a, b, *given) for a, b in self._shares(grown)])
        _, low, high = self._growth.node[grown.leaves].T
        value = np.clip(-sums[:, 0] / (sums[:, 1] + rules.l2 + 1e-15), low, high)
        tree.value[grown.leaves], tree.weight[grown.leaves] = rules.rate * value, sums[:, 1]

    # -------------------------------------------------------------------------------------------------- a small table

    def _grow_whole(self) -> int:
        rules, slopes, (n, d) = self.rules, self._slopes, self.bins.rows.shape
        assert rules.max_leaves is not None
        if not self._free[False]:
            few = min(rules.max_leaves, n)
            self._free[False].append(np.empty((few + 1, d, BINS), np.int64))
            most = min(n // slopes.packing.mask, few) + 1
            self._free[True].append(np.empty((most, d, 3 * BINS), np.int64))
        return int(
            grow_alone(
                self.bins.rows,
                self.bins.columns,
                slopes.packed,
                self.rows,
                self._spare,
                self.columns,
                self._limits,
                slopes.packing,
                rules.max_leaves,
                n if rules.max_depth is None else rules.max_depth,
                rules.min_gain,
                self._space[0],
                self._free[False][0],
                self._free[True][0],
                self._growth,
            )
        )

    # -------------------------------------------------------------------------------------------------- a large table

    def _grow_shared(self) -> int:
        rules = self.rules
        self._sums: dict[int, Array] = {}  # the histograms of leaves that may be split
        self._groups: dict[int, Groups] = {0: rules.groups}
        self._root()
        queue: list[tuple[float, int]] = []
        count, leaves = 1, 1
        self._enqueue(0, queue)
        while queue and (rules.max_leaves is None or leaves < rules.max_leaves):
            leaf = heapq.heappop(queue)[1]
            if count + 2 > len(self._growth.child):
                self._growth = self._growth.larger()
            leaves += 1
            self._split(leaf, count, search=leaves != rules.max_leaves)
            for child in (count, count + 1):
                self._enqueue(child, queue)
            count += 2
        for sums in self._sums.values():
            self._give_back(sums)
        return count

    def _enqueue(self, node: int, queue: list[tuple[float, int]]) -> None:
        """The leaf of largest gain comes first; where all will be split, the last one, which needs least memory."""
        gain = float(self._growth.gain[node])
        if gain > self.rules.min_gain:
            heapq.heappush(queue, (float(-node) if self.rules.max_leaves is None else -gain, node))
        elif node in self._sums:
            self._give_back(self._sums.pop(node))

    def _root(self) -> None:
        n, growth, packing = len(self.rows), self._growth, self._slopes.packing
        growth.span[0], growth.child[0], growth.gain[0] = (0, n, 0), 0, -1.0
        sums = self._sums[0] = self._summed(self.rows)
        whole(sums, packing, self._limits, growth.total[0], growth.node[0])
        if not self._splittable(0):
            return
        given = self.columns, self._allowed(0), growth.total[0], growth.node[0], self._limits, packing, -1.0
        self._gains[:, 0] = together(
            [
                functools.partial(best_split, sums, a, b, *given, self._founds[k, 0], self._lefts[k, 0])
                for k, (a, b) in enumerate(self._slices)
            ]
        )
        self._choose(0, 0, len(self._slices))

    def _room(self, *, wide: bool) -> Array:
        """For a histogram."""
        free, d = self._free[wide], self.bins.rows.shape[1]
        return free.pop() if free else np.empty((d, 3 * BINS if wide else BINS), np.int64)

    def _give_back(self, sums: Array) -> None:
        self._free[sums.shape[1] > BINS].append(sums)

    def _summed(self, rows: Array) -> Array:
        """The histogram of many rows, which threads share."""
        slopes, d = self._slopes, self.bins.rows.shape[1]
        wide = len(rows) > slopes.packing.mask
        pieces = self.threads if wide else 1
        cuts = _cuts(0, len(rows), pieces)
        parts = [self._room(wide=wide) for _ in range(pieces)]
        together(
            [
                functools.partial(
                    accumulate,
                    self.bins.rows,
                    rows[cuts[k] : cuts[k + 1]],
                    slopes.packed,
                    0,
                    d,
                    slopes.packing,
                    self._space[k],
                    parts[k],
                )
                for k in range(pieces)
            ]
        )
        for part in parts[1:]:
            parts[0] += part
            self._give_back(part)
        return parts[0]

    def _splittable(self, node: int) -> bool:
        start, stop, depth = self._growth.span[node].tolist()
        deep = self.rules.max_depth is not None and depth >= self.rules.max_depth
        return not deep and stop - start >= 2 * self.rules.min_rows

    def _allowed(self, node: int) -> Array:
        """Which columns a node may be split on."""
        allowed = np.ones(self.bins.rows.shape[1], np.uint8)
        groups = self._groups[node]
        if groups is not None:
            allowed[:] = 0
            allowed[sorted(frozenset().union(*groups))] = 1
        if self.rules.share < 1.0 and self._rng is not None:
            candidates = np.flatnonzero(allowed)
            few = max(1, int(np.ceil(self.rules.share * len(candidates))))
            allowed[:] = 0
            allowed[self._rng.choice(candidates, few, replace=False)] = 1
        return allowed

    def _choose(self, node: int, which: int, slices: int) -> None:
        """The best of what was found on the slices of columns; of equal ones the first."""
        growth, k = self._growth, int(np.argmax(self._gains[:slices, which]))
        growth.gain[node] = self._gains[k, which]
        growth.found[node], growth.left[node] = self._founds[k, which], self._lefts[k, which]

    def _split(self, leaf: int, child: int, *, search: bool) -> None:
        """Give a leaf two children, whose number is `child` and the next."""
        growth = self._growth
        start, stop, depth = growth.span[leaf].tolist()
        f, pair = int(growth.found[leaf, 0]), slice(child, child + 2)
        middle = start + self._sort(start, stop, self.bins.columns[f], growth.left[leaf])
        growth.child[leaf], growth.child[pair], growth.gain[pair] = child, 0, -1.0
        growth.span[pair] = (start, middle, depth + 1), (middle, stop, depth + 1)
        sign = int(self.columns.monotone[f])
        sides(
            growth.total[leaf],
            growth.found[leaf],
            growth.node[leaf],
            self._limits,
            sign,
            growth.total[pair],
            growth.node[pair],
        )
        groups = self._groups.pop(leaf)
        inside = groups if groups is None else tuple(group for group in groups if f in group)
        self._groups[child] = self._groups[child + 1] = inside
        parent = self._sums.pop(leaf)
        if search and (self._splittable(child) or self._splittable(child + 1)):
            self._search(parent, child)
        else:
            self._give_back(parent)

    def _sort(self, start: int, stop: int, bins: Array, left: Array) -> int:
        """Rows that go left first; gives their number."""
        n = stop - start
        if n < _BY_ROWS or self.threads == 1:
            rows, spare = self.rows[start:stop], self._spare[start:stop]
            count = int(partition(rows, bins, left, spare))
            rows[count:] = spare[: n - count]
            return count
        cuts = _cuts(start, stop, self.threads)
        spans = list(itertools.pairwise(cuts))
        counts = together(
            [functools.partial(partition, self.rows[a:b], bins, left, self._spare[a:b]) for a, b in spans]
        )
        at = start
        for (a, _), count in zip(spans, counts, strict=True):
            if at != a:
                self.rows[at : at + count] = self.rows[a : a + count]
            at += count
        middle = at
        for (a, b), count in zip(spans, counts, strict=True):
            self.rows[at : at + b - a - count] = self._spare[a : b - count]
            at += b - a - count
        return middle - start

    def _search(self, parent: Array, child: int) -> None:
        """Histograms and best splits of both children, the parent's histogram becoming that of the larger."""
        growth, slopes, d = self._growth, self._slopes, self.bins.rows.shape[1]
        sizes = [int(growth.span[k, 1] - growth.span[k, 0]) for k in (child, child + 1)]
        which = 0 if sizes[0] <= sizes[1] else 1
        start, stop, _ = growth.span[child + which].tolist()
        rows, most = self.rows[start:stop], slopes.packing.mask
        if len(rows) > most and self.threads > 1:
            small, rows = self._summed(rows), _NO_ROWS
        else:
            small = self._room(wide=len(rows) > most)
        large = self._room(wide=False) if parent.shape[1] > BINS and max(sizes) <= most else parent
        pair = slice(child, child + 2)
        allowed = np.stack([self._allowed(child), self._allowed(child + 1)])
        alone = len(rows) * d < _ALONE and d * len(self._slices) < 256
        slices = [(0, d)] if alone else self._slices
        given = self.columns, allowed, growth.total[pair], growth.node[pair], self._limits, slopes.packing
        together(
            [
                functools.partial(
                    split_children,
                    self.bins.rows,
                    rows,
                    slopes.packed,
                    a,
                    b,
                    self._space[k],
                    small,
                    parent,
                    large,
                    which,
                    *given,
                    self._gains[k],
                    self._founds[k],
                    self._lefts[k],
                )
                for k, (a, b) in enumerate(slices)
            ]
        )
        if large is not parent:
            self._give_back(parent)
        for k, sums in ((which, small), (1 - which, large)):
            self._sums[child + k] = sums
            if self._splittable(child + k):
                self._choose(child + k, k, len(slices))


def _cuts(start: int, stop: int, pieces: int) -> list[int]:
    """Where a range is cut into pieces of about one length."""
    return [start + (stop - start) * k // pieces for k in range(pieces + 1)]
